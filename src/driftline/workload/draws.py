"""What do the workloads draw from: popularity, ranges, names, quotes?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.model.constraint import Operator
from driftline.workload.prepared import Group, Test, between

GRID = 1_000_000
SYMBOLS = tuple(f"S{at:03}" for at in range(500))
NARROW = 5_600

_NAME_MIN, _NAME_MAX = 4, 12


def zipf(count: int) -> NDArray[np.float64]:
    """Zipf(1): the k-th of so many has a share in proportion to 1/k."""
    weights = 1.0 / np.arange(1, count + 1)
    share: NDArray[np.float64] = weights / weights.sum()
    return share


def zipf_codes(draw: np.random.Generator, choices: int, count: int) -> NDArray[np.int32]:
    """So many draws of one of the choices, by popularity."""
    return draw.choice(choices, count, p=zipf(choices)).astype(np.int32)


def ranges(
    draw: np.random.Generator, count: int, width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Closed ranges of `width` points, anywhere on the grid."""
    low = draw.integers(0, GRID - width + 1, count)
    return low, low + (width - 1)


def letters(draw: np.random.Generator, count: int, length: int) -> NDArray[np.str_]:
    """Random lowercase strings of one length."""
    codes = draw.integers(ord("a"), ord("z") + 1, (count, length), dtype=np.uint32)
    return codes.view(f"U{length}").reshape(count)


def names(draw: np.random.Generator, count: int, missing: float = 0.0) -> Any:
    """Random lowercase strings of 4 to 12 letters as Arrow, some of them null."""
    long = letters(draw, count, _NAME_MAX)
    lengths = draw.integers(_NAME_MIN, _NAME_MAX + 1, count)
    cut = np.empty(count, long.dtype)
    for length in range(_NAME_MIN, _NAME_MAX + 1):
        these = lengths == length
        cut[these] = long[these].astype(f"U{length}")
    return pa.array(cut, pa.string(), mask=draw.random(count) < missing)


def chosen(draw: np.random.Generator, words: tuple[str, ...], count: int) -> Any:
    """So many of the words by popularity, as Arrow strings."""
    return pa.array(words).take(pa.array(zipf_codes(draw, len(words), count)))


def coded(
    draw: np.random.Generator, words: tuple[str, ...], count: int, missing: float = 0.0
) -> Any:
    """The same in dictionary form, some of them null."""
    codes = pa.array(zipf_codes(draw, len(words), count), mask=draw.random(count) < missing)
    return pa.DictionaryArray.from_arrays(codes, pa.array(words))


def band(draw: np.random.Generator, numbers: NDArray[np.int32], width: int = NARROW) -> Group:
    """`symbol = :s AND price BETWEEN :lo AND :hi`, the shape of W2."""
    low, high = ranges(draw, len(numbers), width)
    operands = {"s": chosen(draw, SYMBOLS, len(numbers)), "lo": low, "hi": high}
    tests = (Test("symbol", Operator.EQ, ("s",)), *between("price"))
    return Group("quote", (tests,), numbers, operands)


def quotes(draw: np.random.Generator, count: int) -> pa.RecordBatch:
    """Events with a symbol by popularity and a price anywhere."""
    return pa.record_batch(
        {"symbol": coded(draw, SYMBOLS, count), "price": draw.integers(0, GRID, count)}
    )
