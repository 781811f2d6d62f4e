"""What is an index made of, for one who keeps it?

Everything else it has is made anew, or is room to work in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from driftline.matching.axes import Axes
from driftline.matching.matcher import Bounds
from driftline.matching.memory import Memory
from driftline.model.filter import Filter


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of an index. `ids` and `said` are by number; `numbers` are those in use.

    `said` holds the filters of what moves and of what kernels cannot decide, None for the rest;
    `doubted` the bounds of the latter.
    """

    memory: Memory
    axes: Axes
    numbers: Sequence[int]
    ids: Sequence[str]
    said: Sequence[tuple[Filter, ...] | None]
    doubted: Mapping[int, Bounds]
