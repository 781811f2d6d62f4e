"""What is the minimum over a range, and for whom does a change make it another?

From the definition, by going through all tuples. `Reference` answers the rule's questions that way:
what it says is the rule itself, without any structure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Self, TypeAlias

import pyarrow as pa

from driftline.stateful.range_min.change import Change
from driftline.stateful.range_min.rule import reformulate
from driftline.stateful.range_min.structure import (
    Point,
    admit_id,
    admit_point,
    admit_range,
    read_table,
    write_table,
)

Range: TypeAlias = tuple[float, float]


def minimum_over(points: Iterable[Point], low: float, high: float) -> float | None:
    """The least y of the points with x in [low, high]; None if there are none.

    >>> minimum_over([(1, 5), (2, 3), (4, 1)], 1, 2)
    3
    """
    return min((y for x, y in points if low <= x <= high), default=None)


def changed_minima(
    before: Mapping[int, Point], id: int, new: Point | None, ranges: Iterable[Range]
) -> dict[Range, float | None]:
    """The ranges whose minimum is another when a tuple is changed, and that minimum."""
    after = {key: point for key, point in before.items() if key != id}
    if new is not None:
        after[id] = new
    minima = {
        one: (minimum_over(before.values(), *one), minimum_over(after.values(), *one))
        for one in ranges
    }
    return {one: now for one, (was, now) in minima.items() if was != now}


class Reference:
    """A structure that has none: tuples by id."""

    def __init__(self) -> None:
        self.points: dict[int, Point] = {}

    def change(self, id: int, new: Point | None) -> list[Change]:
        """See `Structure`; O(n) a message."""
        id, new = admit_id(id), admit_point(new)
        return reformulate(self, self.points.get(id), new, lambda: self._put(id, new))

    def minimum(self, low: float, high: float) -> float | None:
        """See `Structure`; O(n)."""
        return minimum_over(self.points.values(), *admit_range(low, high))

    def least_at(self, x: float) -> float:
        """See `Table`."""
        least = minimum_over(self.points.values(), x, x)
        return math.inf if least is None else least

    def find_left(self, x: float, y: float, *, strict: bool) -> float:
        """See `Table`."""
        return max((at for at in self._at_most(y, strict) if at < x), default=-math.inf)

    def find_right(self, x: float, y: float, *, strict: bool) -> float:
        """See `Table`."""
        return min((at for at in self._at_most(y, strict) if at > x), default=math.inf)

    def dump(self) -> pa.Table:
        """See `Structure`."""
        return write_table(self.points.items())

    @classmethod
    def load(cls, table: pa.Table) -> Self:
        """See `Structure`."""
        made = cls()
        for id, point in read_table(table):
            made._put(id, point)
        return made

    def __len__(self) -> int:
        return len(self.points)

    def _put(self, id: int, new: Point | None) -> None:
        if new is None:
            del self.points[id]
        else:
            self.points[id] = new

    def _at_most(self, y: float, strict: bool) -> list[float]:
        return [x for x, least in self.points.values() if least < y or (least == y and not strict)]

    def _check(self) -> None:
        assert all(math.isfinite(x) and math.isfinite(y) for x, y in self.points.values())
