"""The arrays that kernels take."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]
Numbers: TypeAlias = NDArray[np.int32]
Codes: TypeAlias = NDArray[np.uint8]
