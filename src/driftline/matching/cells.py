"""Which boxes may contain this one, and which may it contain, among those that fix the same?

Most filters fix some attributes (the type, a symbol) and let another lie between two ends. What
covers such a filter fixes the same or less of it. So boxes are kept in *cells*, each with all that
fix the same attributes at the same points. In a cell they stand in the order of their low ends on
one attribute, in runs of about the same width: of those less than 8 wide only the ones that begin
in the last 8 before the high end of a box can contain it.

    width < 8     [1, 6]  [2, 9]  [30, 37]     what contains [33, 36] begins in  28 … 33
    width < 64    [0, 50]  [20, 70]                                      and in -28 … 33

That takes a few steps where it works. Where it does not (many begin there; there are boxes that fix
more, which would have to be looked through; there are many kinds) the answer is None, and somebody
else must know.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import Generic, TypeAlias, TypeVar

from driftline.matching.box import Box, BoxKind

T = TypeVar("T")

# To look at so many in vain costs what a question to an index costs.
_CANDIDATES_MAX = 48
_KINDS_MAX = 16


class _Run(Generic[T]):
    """Boxes of about the same width, by their low end; lists, of which a collector knows few."""

    __slots__ = ("highs", "lows", "ones")

    def __init__(self) -> None:
        self.lows: list[float] = []
        self.highs: list[float] = []
        self.ones: list[T] = []


_Cell: TypeAlias = dict[int, _Run[T]]


class Cells(Generic[T]):
    """Things by their boxes. What is found may be too much, never too little."""

    __slots__ = ("_cells", "_near")

    def __init__(self) -> None:
        self._cells: dict[BoxKind, dict[tuple[float, ...], _Cell[T]]] = {}
        # By kind: the kinds of what may contain such a box, and of what it may contain, if known.
        self._near: dict[BoxKind, tuple[list[BoxKind], list[BoxKind] | None]] = {}

    def add(self, box: Box, one: T) -> None:
        """Take in a thing, which is not there yet."""
        kind, points, low, high, width = box.place
        cells = self._cells.get(kind)
        if cells is None:
            cells = self._cells[kind] = {}
            self._near.clear()
        cell = cells.get(points)
        if cell is None:
            cell = cells[points] = {}
        run = cell.get(width)
        if run is None:
            run = cell[width] = _Run()
        at = bisect_right(run.lows, low)
        run.lows.insert(at, low)
        run.highs.insert(at, high)
        run.ones.insert(at, one)

    def discard(self, box: Box, one: T) -> None:
        """Forget a thing that is there."""
        kind, points, low, _, width = box.place
        cells = self._cells[kind]
        cell = cells[points]
        run = cell[width]
        at = bisect_left(run.lows, low)
        while run.ones[at] is not one:
            at += 1
        del run.lows[at], run.highs[at], run.ones[at]
        if not run.lows:
            del cell[width]
        if not cell:
            del cells[points]
        if not cells:
            del self._cells[kind]
            self._near.clear()

    def around(self, box: Box) -> list[T] | None:
        """What may contain this box; None where that is not known here."""
        if len(self._cells) > _KINDS_MAX:
            return None
        own = box.place
        found: list[T] = []
        for kind in self._related(own.kind)[0]:
            _, points, low, high, least = own if kind is own.kind else box.place_as(kind)
            cell = self._cells[kind].get(points)
            if cell is None:
                continue
            for width, run in cell.items():
                if width < least:
                    continue
                # None is missed: a difference is rounded to the first float that is not below it,
                # or to one that is.
                first = bisect_left(run.lows, high - 2.0**width)
                last = bisect_right(run.lows, low, first)
                if last - first > _CANDIDATES_MAX:
                    return None
                highs, ones = run.highs, run.ones
                found += [ones[at] for at in range(first, last) if highs[at] >= high]
        return found

    def inside(self, box: Box) -> list[T] | None:
        """What this box may contain; None where that is not known here."""
        own = box.place
        kinds = self._related(own.kind)[1] if len(self._cells) <= _KINDS_MAX else None
        if kinds is None:
            return None
        found: list[T] = []
        for kind in kinds:
            _, points, low, high, most = own if kind is own.kind else box.place_as(kind)
            cell = self._cells[kind].get(points)
            if cell is None:
                continue
            for width, run in cell.items():
                if width > most:
                    continue
                first = bisect_left(run.lows, low)
                last = bisect_right(run.lows, high, first)
                if last - first > _CANDIDATES_MAX:
                    return None
                highs, ones = run.highs, run.ones
                found += [ones[at] for at in range(first, last) if highs[at] <= high]
        return found

    def _related(self, kind: BoxKind) -> tuple[list[BoxKind], list[BoxKind] | None]:
        near = self._near.get(kind)
        if near is None:
            wider = [one for one in self._cells if one.fixed <= kind.fixed]
            narrower = [one for one in self._cells if one.fixed >= kind.fixed]
            known = all(one.fixed == kind.fixed for one in narrower)
            near = self._near[kind] = (wider, narrower if known else None)
        return near

    def __iter__(self) -> Iterator[T]:
        for cells in self._cells.values():
            for cell in cells.values():
                for run in cell.values():
                    yield from run.ones

    def _check(self, boxes: Mapping[T, Box]) -> None:
        """Assert that these are held, each where its box belongs."""
        assert sorted(map(id, self)) == sorted(map(id, boxes))
        for kind, cells in self._cells.items():
            for points, cell in cells.items():
                for width, run in cell.items():
                    assert run.lows == sorted(run.lows)
                    for low, high, one in zip(run.lows, run.highs, run.ones, strict=True):
                        assert boxes[one].place == (kind, points, low, high, width)
