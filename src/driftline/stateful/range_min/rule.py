"""Which messages does one change of a tuple make? [DBNET §2.4.1, §3.1]

A tuple goes from (xo, yo) to (xn, yn); one that is not there has y = +inf. For a range I:

    its minimum falls  iff  I contains xn and min_before(I) > yn;  it is yn then
    its minimum rises  iff  I contains xo and min_after(I) > yo;   it is min_after(I) then

Both at once would need yn < yo and yo < yn, so nobody is told twice, whatever changed. Those whose
minimum falls are one rectangle, from the nearest tuples with y <= yn. Those whose minimum rises
are told apart by what is exposed: the least at xo itself (the peak), and going left and right from
there each x where it is less than all nearer ones, until one with y <= yo ends it (the hull).

Worked by hand, [DBNET Figure 1]: (50, 5) rises to (50, 9) between (30, 8) and (70, 6), and
(20, 3) and (100, 2) have less than 5. The peak is 9: `<9, 50, 50, 30, 70>`. Whoever reaches 30, not
70: `<8, 30, 50, 20, 70>`. Whoever reaches 70, also beyond 30, where there is but 8:
`<6, 50, 70, 20, 100>`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from driftline.stateful.range_min.change import Change
from driftline.stateful.range_min.structure import Point


class Table(Protocol):
    """What the rule must know of the tuples."""

    def least_at(self, x: float) -> float:
        """The least y of the tuples at x; +inf if there are none."""

    def find_left(self, x: float, y: float, *, strict: bool) -> float:
        """The nearest x to the left that has less than y, or y if not strict; -inf if none."""

    def find_right(self, x: float, y: float, *, strict: bool) -> float:
        """The nearest such x to the right; +inf if there is none."""


def reformulate(
    table: Table, old: Point | None, new: Point | None, apply: Callable[[], None]
) -> list[Change]:
    """Apply the change to the table; the messages it makes."""
    if old == new:
        return []
    told = [] if new is None else _falls(table, new)
    apply()
    return told if old is None else told + _rises(table, old)


def _falls(table: Table, new: Point) -> list[Change]:
    """For those who had more than y before; asked before the change."""
    x, y = new
    if table.least_at(x) <= y:
        return []
    left = table.find_left(x, y, strict=False)
    right = table.find_right(x, y, strict=False)
    return [Change(y, x, x, left, right)]


def _rises(table: Table, old: Point) -> list[Change]:
    """For those who have more than y now; asked after the change."""
    x, y = old
    peak = table.least_at(x)
    if peak <= y:
        return []
    lefts, far_left = _hull(table.find_left, table, x, peak, y)
    rights, far_right = _hull(table.find_right, table, x, peak, y)
    # The ends of each stretch: with the outermost one, each has a next.
    left_ends = [at for at, _ in lefts] + [far_left]
    right_ends = [at for at, _ in rights] + [far_right]
    told = [Change(_or_none(peak), x, x, left_ends[0], right_ends[0])]
    # Where left and right have the same least y, the left one tells those that contain both.
    for i, (at, least) in enumerate(lefts):
        end = next((there for there, other in rights if other < least), far_right)
        told.append(Change(least, at, x, left_ends[i + 1], end))
    for j, (at, least) in enumerate(rights):
        end = next((there for there, other in lefts if other <= least), far_left)
        told.append(Change(least, x, at, end, right_ends[j + 1]))
    return told


def _hull(
    find: Callable[..., float], table: Table, x: float, peak: float, floor: float
) -> tuple[list[Point], float]:
    """Going one way, each x that has less than all nearer ones; and where it goes to the floor."""
    hull: list[Point] = []
    at, least = find(x, peak, strict=True), peak
    while math.isfinite(at):
        least = table.least_at(at)
        if least <= floor:
            break
        hull.append((at, least))
        at = find(at, least, strict=True)
    return hull, at


def _or_none(least: float) -> float | None:
    return None if math.isinf(least) else least
