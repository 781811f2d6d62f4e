"""Who follows one item under one condition, a great many with a radius each? A group of arrays.

What a `Group` does for single followers this does for the members of a crowd: it knows which rows
count, and whom a value concerns. It is a group of its own, so that its numbers are the members'.
Who waits is said in a box that no place is in:

    moved    boxes of places, from 0 on
    late     the box of those who waited, at the place below 0
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftline.errors import NotSupported
from driftline.model.event import Event
from driftline.model.expression import TRUE, Expression, Parameter
from driftline.model.scope import Scope
from driftline.model.subscription import Measure, Moved
from driftline.model.table import Table
from driftline.model.value import Value, comparable
from driftline.model.variables import variables_of
from driftline.model.view import View
from driftline.stateful.entering import Places, Rows
from driftline.stateful.value_based.address import Box
from driftline.stateful.value_based.boxes import Boxes
from driftline.stateful.value_based.conditions import Move
from driftline.stateful.value_based.group import at_centre
from driftline.stateful.value_based.members import WAITING, Members
from driftline.stateful.value_based.rule import Floats
from driftline.stateful.value_based.states import attribute_of
from driftline.stateful.value_based.structure import Ids

LATE = Box(0.0, np.inf, WAITING, WAITING)


class Joined(NamedTuple):
    """A row that some who have come are told, which is theirs alone where they share a centre."""

    row: Event
    numbers: Ids


class Counting(NamedTuple):
    """The values of rows that count, and which of a batch these rows are."""

    values: Floats
    places: Places


class CrowdGroup:
    """The members of one crowd. `move` says how their radii are read."""

    def __init__(
        self, view: View, rest: Expression, pin: Value, move: Move, table: Table, label_bits: int
    ) -> None:
        self.attribute = attribute_of(view)
        self.rest = rest
        self._all = rest == TRUE
        self.pin = pin
        self.members = Members(move.rule, label_bits)
        self._move = move
        self._strict = isinstance(view.having, Moved) and view.having.strict
        self._table = table
        self._last: Event | None = None

    @property
    def row(self) -> Event | None:
        """The row that it follows, as it is now."""
        return self._table.get(self.pin)

    # Members.

    def admit_radii(self, radii: object, name: str) -> Floats:
        """Radii as structures take them; InvalidValue if one is none."""
        ticks = self._move.ticks
        if ticks is None or self._move.rule.measure is not Measure.BY:
            return self._move.rule.admit_radii(radii, name)
        admitted = self._move.rule.admit_radii(radii, name)
        # The same few numbers, mostly: each is read once.
        wanted, which = np.unique(admitted, return_inverse=True)
        counts = [ticks.radius(radius, self._strict) for radius in wanted.tolist()]
        return np.array(counts, np.float64)[which]

    def join(self, numbers: Ids, radii: Floats) -> list[Joined]:
        """Some begin to follow: the rows that they are told, if there is one that counts."""
        row = self.row
        value = None if row is None else self._value(row)
        if row is None or value is None:
            self.members.wait(numbers, radii)
            return []
        centres = self.members.insert(numbers, radii, value, shared=self._move.shared)
        self._last = row
        told, which = np.unique(centres, return_inverse=True)
        return [
            Joined(
                row if centre == value else at_centre(row, self.attribute, centre, self._move),
                numbers[which == at],
            )
            for at, centre in enumerate(told.tolist())
        ]

    def change(self, numbers: Ids, radii: Floats) -> tuple[Event | None, Ids]:
        """Give some other radii: the last row that counted, and who is told of it at once."""
        return self._last, self.members.change(numbers, radii)

    # Events.

    def _value(self, row: Event) -> float | None:
        if not self._all and self.rest.evaluate(Scope(row)) is not True:
            return None
        return self.number_of(row)

    def number_of(self, row: Event) -> float | None:
        """The value of a row that satisfies the rest, as structures take it; None: it has none."""
        return self._move.number_or_none(row.attributes.get(self.attribute))

    def is_of(self, key: Value) -> bool:
        """Is this the key of its item?"""
        return comparable(key) == comparable(self.pin)

    def take(self, key: Value, value: float, row: Event) -> list[Box]:
        """A row that counts has this value now: whom it concerns."""
        if not self.is_of(key):
            return []
        boxes: list[Box] = []
        if self.members.value is not None:
            found = self.members.tell_many(np.array([value]))
            boxes = [Box(*box) for box in zip(*(one.tolist() for one in found[1:]), strict=True)]
        self._last = row
        if self.members.waiting or self.members.value is None:
            self.members.begin(value)
            boxes.append(LATE)
        return boxes

    def counting(self, rows: Rows, places: Places) -> Counting:
        """Which of its item's rows count, and their values."""
        numbers = rows.numbers(self.attribute) if self._all else None
        if numbers is None:
            found = [self._value(row) for row in rows.take(places)]
            counts = np.array([value is not None for value in found], np.bool_)
            return Counting(np.array([one for one in found if one is not None]), places[counts])
        places = places[numbers.known[places]]
        values = self._move.numbers(numbers.values[places])
        counts = ~np.isnan(values)
        return Counting(values[counts], places[counts])

    def take_many(self, values: Floats) -> Boxes:
        """Values of rows that count, when nobody waits: whom they concern."""
        return self.members.tell_many(values)

    def note(self, row: Event) -> None:
        """This is the last row that counts."""
        self._last = row

    def end(self, key: Value) -> bool:
        """A row is gone: has anybody been told of it?"""
        if self._last is None or not self.is_of(key):
            return False
        self._last = None
        self.members.end()
        return True

    def _check(self) -> None:
        self.members._check()
        assert (self._last is None) == (self.members.value is None)


def radius_name(view: View, pin: Value | None) -> str:
    """The parameter that is the radius of each member; raises if a view is not a crowd's."""
    change = view.having
    if not isinstance(change, Moved) or change.may is not None:
        raise NotSupported(str(view), "a crowd follows moved(…) with one radius")
    if not isinstance(change.radius, Parameter):
        raise NotSupported(str(view), "a crowd's radius is a parameter, as in by => :r")
    name = change.radius.name
    elsewhere = [view.where, *(column.expression for column in view.columns)]
    used = frozenset[str]().union(*(variables_of(one).parameters for one in elsewhere))
    if used:
        raise NotSupported(str(view), f"a crowd has one parameter, its radius; not {sorted(used)}")
    if pin is None:
        raise NotSupported(str(view), "a crowd follows one row: its condition has key = value")
    return name
