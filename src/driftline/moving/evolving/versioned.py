"""Bounds that are wide enough for a while, in an ordinary index [EVOLVE IV.A, VES].

A version of every row holds for a window of time; an event within it finds its candidates in the
index, whose cost hardly depends on how many rows there are, and these are looked at as they are
now. Time pays: when a window is over all rows are changed at once. The paper's queue, ordered by
the next evolution, is here one window for the whole family: a batch costs a fifth of single
changes, and it is made when the first event comes that needs it, so windows that nobody looks at
cost nothing.

An event with a stamp from before the window, or with other shared values than the versions were
made for, is looked at row by row: stamps defeat versions, as the paper says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from driftline.model.constraint import Constraint, Operator
from driftline.model.expression import Parameter
from driftline.model.filter import Filter
from driftline.moving.evolving.arrays import Floats
from driftline.moving.evolving.family import Family, Moment, Sheet
from driftline.moving.evolving.lazy import Lazy
from driftline.moving.evolving.plan import Plan
from driftline.moving.evolving.ways import Found

if TYPE_CHECKING:
    from driftline.matching.index import Index

# After so many events in a row with other shared values, or from before the window, the versions
# are made for those: a clock that is wrong must not spoil them for long.
_PATIENCE = 64
# A window begins so much (as a share of it) before the event it is made for: stamps of several
# brokers come out of order.
_BEFORE = 4


class Versioned:
    """An index of versions, made anew after so many microseconds."""

    name = "versioned"
    __slots__ = (
        "_defeated",
        "_filters",
        "_fresh",
        "_index",
        "_interval",
        "_lazy",
        "_odd",
        "_sheet",
        "_since",
        "_until",
    )

    def __init__(self, interval: int, plan: Plan) -> None:
        self._interval = interval
        self._lazy = Lazy()
        self._filters = (_version(plan),)
        self._index = _index()
        self._sheet: Sheet | None = None
        self._since = self._until = 0
        self._defeated = 0
        # Rows that have no version yet, and those that can have none: their bounds are no numbers.
        self._fresh: dict[str, None] = {}
        self._odd: dict[str, None] = {}

    def look(self, family: Family, sheet: Sheet, moment: Moment, x: Floats, first: bool) -> Found:
        """The rows whose bounds hold, for sure or perhaps."""
        if not self._made_for(family, sheet, moment):
            return self._lazy.look(family, sheet, moment, x, first)
        if self._fresh:
            some = [name for name in self._fresh if name in family.row_of]
            self._enter(family, sheet, some)
        names = self._index.match(moment.event)
        if self._odd:
            names += self._odd
        rows = np.array([family.row_of[name] for name in names], np.int64)
        return self._lazy.look_at(family, sheet, moment, x, rows)

    def _made_for(self, family: Family, sheet: Sheet, moment: Moment) -> bool:
        """Are there versions for this moment, or can there be?"""
        ours = self._sheet is sheet
        if ours and self._since <= moment.at < self._until:
            self._defeated = 0
            return True
        early = moment.at < self._since
        if self._sheet is not None and (early or not ours) and self._defeated < _PATIENCE:
            self._defeated += 1
            return False
        self._begin(family, sheet, moment)
        return True

    def _begin(self, family: Family, sheet: Sheet, moment: Moment) -> None:
        """A new window, and new versions of all rows."""
        self._sheet, self._defeated = sheet, 0
        self._since = moment.at - self._interval // _BEFORE
        self._until = moment.at + self._interval
        self._fresh.clear()
        self._enter(family, sheet, family.names)

    def _enter(self, family: Family, sheet: Sheet, names: list[str]) -> None:
        """Give rows a version for the window."""
        from driftline.kernels.motion import widen

        rows = np.array([family.row_of[name] for name in names], np.int64)
        plan = family.plan
        bounds = np.zeros((len(family.starts), len(plan.bounds)))
        margin = family.margin(sheet, np.zeros(len(plan.bounds)), self._until)
        widen(
            sheet.coefficients,
            family.starts,
            rows,
            plan.degree,
            self._since,
            self._until,
            plan.sides,
            margin,
            bounds,
        )
        bounds = bounds[rows]
        sure = np.isfinite(bounds).all(axis=1)
        for at in np.flatnonzero(~sure).tolist():
            self._odd[names[at]] = None
            self._index.discard(names[at])
        known: list[int] = []
        new: list[int] = []
        for at in np.flatnonzero(sure).tolist():
            self._odd.pop(names[at], None)
            (known if names[at] in self._index else new).append(at)
        if known:
            self._index.change_batch([names[at] for at in known], _columns(bounds, known))
        if new:
            some = [names[at] for at in new]
            self._index.add_batch(some, self._filters, _columns(bounds, new))
        self._fresh.clear()

    def touch(self, name: str) -> None:
        """A row is new or has other values."""
        self._fresh[name] = None

    def forget(self, name: str) -> None:
        """A row is gone."""
        self._fresh.pop(name, None)
        self._odd.pop(name, None)
        self._index.discard(name)

    def _check(self, family: Family) -> None:
        self._index._check()
        held = {name for name in family.row_of if name in self._index}
        assert len(held) == len(self._index)
        assert not held & self._odd.keys()
        if self._sheet is not None:
            assert held | self._odd.keys() | self._fresh.keys() == family.row_of.keys()


def _index() -> Index:
    # Imported when one is made: it brings compiled code with it.
    from driftline.matching.index import Index

    return Index()


def _version(plan: Plan) -> Filter:
    """What an index asks for a row: its wide bounds, which are parameters."""
    operators = {1: Operator.GE, -1: Operator.LE}
    return Filter(
        None,
        tuple(
            Constraint(one.attribute, operators[one.side], Parameter(str(at)))
            for at, one in enumerate(plan.bounds)
        ),
    )


def _columns(bounds: Floats, rows: list[int]) -> dict[str, Floats]:
    return {str(at): bounds[rows, at] for at in range(bounds.shape[1])}
