"""Whom does a loop over everybody tell? What one would write by hand, for benchmarks to compare."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftline.kernels.jit import jit
from driftline.kernels.types import Numbers

Floats: TypeAlias = NDArray[np.float64]


@jit
def scan(radii: Floats, centres: Floats, value: float, ids: Numbers) -> int:
    """Who is told of a value, and has it as its centre then: write their ids; how many they are."""
    told = 0
    for id in range(len(radii)):
        centre = centres[id]
        if value >= centre + radii[id] or value <= centre - radii[id]:
            centres[id] = value
            ids[told] = id
            told += 1
    return told
