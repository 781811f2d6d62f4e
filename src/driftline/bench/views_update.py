"""How long does it take to find out what an update of a tuple means, and to whom?

Whether an update is ignorable, good or bad, and the messages it becomes, are one question to our
structure (`range_min.blocks`), asked in batches and one at a time. Beside it, for the first updates
of the same stream: the paper's A2B-tree, and what one would write with NumPy, a look at all tuples
for each end of a rectangle. All must make the same messages, in the same order.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
import pyarrow as pa

from driftline.stateful.range_min.a2b_tree import A2BTree
from driftline.stateful.range_min.blocks import Blocks, Messages
from driftline.stateful.range_min.change import Change
from driftline.stateful.range_min.rule import reformulate
from driftline.stateful.range_min.structure import SCHEMA, Point
from driftline.workload.stocks import Floats, Stocks, Updates, Walk, stocks

BATCH = 10_000
BATCHES = 20
"""The paper's 200,000 updates. The first batch is not measured."""
SINGLE, TREE, SCANNED = 4_000, 1_000, 200
"""So many are made one at a time by our structure, by the A2B-tree and by NumPy."""
PARTS = 5
"""In so many parts, of which the median counts."""
TREE_MAX = 100_000
"""The A2B-tree, in Python, takes a quarter of a minute to load more: only in full."""

COMPLEX = Walk(complex=1.0)


@dataclass(frozen=True, slots=True)
class Measured:
    """CPU microseconds an update, and what it makes."""

    updates: int
    batch_us: float
    single_us: float
    complex_us: float
    tree_us: float | None
    numpy_us: float
    messages_per_update: float


def measured(tuples: int, full: bool) -> Measured:
    """Every structure at one size."""
    drawn = stocks(tuples, BATCHES * BATCH)
    parts, batch_us = in_batches(drawn)
    singly = Blocks.load(table_of(drawn))
    first = list(_told(parts, SINGLE))
    loads_tree = full or tuples <= TREE_MAX
    return Measured(
        len(drawn.updates),
        batch_us,
        _one_by_one("our structure", singly.change, drawn.updates, first),
        in_batches(stocks(tuples, BATCHES * BATCH, COMPLEX))[1],
        _tree_us(drawn, first[:TREE]) if loads_tree else None,
        _one_by_one("NumPy", Scanned(drawn).change, drawn.updates, first[:SCANNED]),
        sum(map(len, parts)) / len(drawn.updates),
    )


def table_of(drawn: Stocks) -> pa.Table:
    """The tuples that are there at first, as structures load them."""
    ids = np.flatnonzero(drawn.present)
    points = drawn.points[ids]
    return pa.table([pa.array(one) for one in (ids, points[:, 0], points[:, 1])], SCHEMA)


def batches_of(updates: Updates) -> list[Updates]:
    """As they come, 10,000 at a time."""
    return [updates.part(at, at + BATCH) for at in range(0, len(updates), BATCH)]


def changed(blocks: Blocks, some: Updates) -> Messages:
    """What our structure makes of some updates."""
    return blocks.change_many(some.ids, some.points, None if some.present.all() else some.present)


def in_batches(drawn: Stocks) -> tuple[list[Messages], float]:
    """The messages of each batch, and the median of the microseconds an update."""
    blocks = Blocks.load(table_of(drawn))
    found, times = [], []
    for some in batches_of(drawn.updates):
        start = time.process_time()
        found.append(changed(blocks, some))
        times.append((time.process_time() - start) / len(some))
    return found, median(times[1:]) * 1e6


def _told(parts: Iterable[Messages], count: int) -> Iterator[list[Change]]:
    """The messages of each of the first updates."""
    for part in parts:
        for at in range(min(count, len(part.ends) - 1)):
            yield part.of(at)
        count -= len(part.ends) - 1
        if count <= 0:
            return


def _tree_us(drawn: Stocks, expected: list[list[Change]]) -> float:
    tree = A2BTree.load(table_of(drawn))
    return _one_by_one("the A2B-tree", tree.change, drawn.updates, expected)


def _one_by_one(
    who: str,
    change: Callable[[int, Point | None], list[Change]],
    updates: Updates,
    expected: list[list[Change]],
) -> float:
    """The median over some parts of the microseconds an update, all of them as expected."""
    ids = updates.ids[: len(expected)].tolist()
    points = [(x, y) for x, y in updates.points[: len(expected)].tolist()]
    size = max(1, len(expected) // PARTS)
    times = []
    for at in range(0, len(expected), size):
        given = list(zip(ids[at : at + size], points[at : at + size], strict=True))
        start = time.process_time()
        found = [change(id, point) for id, point in given]
        times.append((time.process_time() - start) / len(given))
        assert found == expected[at : at + size], f"{who} makes other messages"
    return median(times) * 1e6


class Scanned:
    """The rule with nothing but arrays in order of x; x must not change."""

    def __init__(self, drawn: Stocks) -> None:
        order = np.argsort(drawn.points[:, 0], kind="stable")
        self._x, self._y = drawn.points[order, 0], drawn.points[order, 1].copy()
        self._at = np.empty(len(order), np.int64)
        self._at[order] = np.arange(len(order))

    def change(self, id: int, new: Point | None) -> list[Change]:
        """See `Structure`."""
        assert new is not None
        at = self._at[id]
        old = float(self._x[at]), float(self._y[at])
        return reformulate(self, old, new, lambda: self._y.__setitem__(at, new[1]))

    def least_at(self, x: float) -> float:
        """See `Table`."""
        first, last = np.searchsorted(self._x, x), np.searchsorted(self._x, x, side="right")
        return float(self._y[first:last].min(initial=math.inf))

    def find_left(self, x: float, y: float, *, strict: bool) -> float:
        """See `Table`."""
        small = _small(self._y[: np.searchsorted(self._x, x)], y, strict)
        return float(self._x[small[-1]]) if len(small) else -math.inf

    def find_right(self, x: float, y: float, *, strict: bool) -> float:
        """See `Table`."""
        beyond = int(np.searchsorted(self._x, x, side="right"))
        small = _small(self._y[beyond:], y, strict)
        return float(self._x[beyond + small[0]]) if len(small) else math.inf


def _small(ys: Floats, y: float, strict: bool) -> np.ndarray:
    return np.flatnonzero(ys < y if strict else ys <= y)
