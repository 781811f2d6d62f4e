"""Which messages does a change of a row make for MIN and MAX views? The home's side.

Rows lie in a structure for each combination of the values that views ask for by equality; one row
is a point there, if it has a value to be the least and one to be in range. The structures compute
with floats. A row that is no point of floats (an integer beyond 2^53, a text) is *odd*: while there
is one, messages carry no value but say whom they concern, and to ask again. So the answer is right
whatever is in the table, and fast where the columns hold numbers but for a few.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from driftline.model.event import Event
from driftline.model.scope import Scope
from driftline.model.subscription import known
from driftline.model.value import KIND_OF, Kind, Value, comparable
from driftline.model.view import AggregateFunction, View
from driftline.stateful.entering import Items, Numbers, Rows
from driftline.stateful.range_min.change import Change as Span
from driftline.stateful.range_min.many import Bools, Moves, are_exact, before_each
from driftline.stateful.range_min.maxima import Maxima
from driftline.stateful.range_min.reference import Reference
from driftline.stateful.range_min.structure import EXACT_MAX, Ids, Structure
from driftline.stateful.range_min.subscription import (
    AGAIN,
    ENDS,
    EQUAL,
    NEW_MIN,
    RangeView,
    Shape,
)
from driftline.stateful.range_sum.extremes import Extremes
from driftline.stateful.rows.change import Change

Said = dict[str, Value]

FEW = 32
"""A group of so many rows is gone through; a larger one has a structure, which takes memory."""


@dataclass(slots=True)
class _Group:
    """The rows that have the same values where views ask for equality."""

    equal: Said
    structure: Structure | Maxima[Structure]
    numbers: dict[object, int] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    odd: dict[object, _Place] = field(default_factory=dict)
    """The rows that are no points."""
    floats: int = 0
    """So many of the rows have a float to be the least; without any, integers are told."""

    def number(self, row: object) -> int:
        """The structure's number for a row, which it keeps while it is there."""
        if row not in self.numbers:
            self.numbers[row] = self.free.pop() if self.free else len(self.numbers)
        return self.numbers[row]

    def ids(self, rows: Iterable[object]) -> Ids:
        """The same of many rows."""
        known = map(self.numbers.get, rows)
        return np.array(
            [self.number(row) if id is None else id for row, id in zip(rows, known, strict=True)],
            np.int64,
        )


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a row lies: in a group, at x, with y."""

    group: tuple[object, ...]
    equal: Said
    x: Value
    y: Value
    row: Event

    @property
    def odd(self) -> bool:
        return not (_exact(self.x) and _exact(self.y))


class RangeMessages:
    """The state of the views of one shape."""

    __slots__ = ("_groups", "_rows", "shape", "type")

    def __init__(self, shape: Shape, rows: Iterable[tuple[Value, Event]] = ()) -> None:
        self.shape = shape
        self.type = shape.type
        self._groups: dict[tuple[object, ...], _Group] = {}
        # Those that lie somewhere; where, is found in them.
        self._rows: dict[object, Event] = {}
        for key, row in rows:
            self._put(comparable(key), row)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables whose changes it must be told."""
        return (self.shape.table,)

    def take(self, change: Change) -> list[Said]:
        """Apply the change of a row: what its messages say. O(log n) for each of them."""
        return self._put(comparable(change.keys[0]), change.new)

    def takes_many(self, rows: Rows) -> bool:
        """Can rows be taken at once? They must be points of one group, and so must all others."""
        x, y = self._numbers(rows)
        if x is None or y is None or self.shape.equal:
            return False
        exact = are_exact(x) and are_exact(y)
        return exact and not any(group.odd for group in self._groups.values())

    def _numbers(self, rows: Rows) -> tuple[Numbers | None, Numbers | None]:
        if self.shape.x is None:
            everywhere = Numbers(np.zeros(len(rows)), np.ones(len(rows), np.bool_))
            return everywhere, rows.numbers(self.shape.y)
        return rows.numbers(self.shape.x), rows.numbers(self.shape.y)

    def take_many(self, rows: Rows, items: Items, last: Sequence[Event]) -> Moves:
        """Apply changes of rows, of which each item has a last one: as they are to be made.

        What is said is made of it (`Moves.say`), before anything else is asked.
        """
        x, y = self._numbers(rows)
        assert x is not None
        assert y is not None
        group = self._group((), {})
        if _is_small(group.structure):
            group.structure = _packed(group.structure)
        old = [*map(self._rows.get, items.numbers)]
        was = np.array([row is not None for row in old], np.bool_)
        name = self.shape.y
        was_float = np.array(
            [row is not None and type(row.attributes[name]) is float for row in old], np.bool_
        )
        is_now = x.known & y.known
        floats = is_now & (y.values.dtype.kind == "f")
        before = before_each(is_now, was, items)
        more = floats.astype(np.int64) - before_each(floats, was_float, items)
        count = group.floats + np.cumsum(more)
        ids = group.ids(items.numbers)
        (of,) = np.nonzero(is_now | before)
        points = np.column_stack((x.values, y.values)).astype(np.float64)
        self._settle(group, items, last, is_now[items.last()])
        group.floats += int(more.sum())
        return Moves(
            self.shape,
            group.structure,  # type: ignore[arg-type]  # packed
            of,
            ids[items.of()][of],
            points[of],
            is_now[of],
            count[of] > 0,
        )

    def _settle(self, group: _Group, items: Items, last: Sequence[Event], there: Bools) -> None:
        """The last rows are known as they are."""
        for key, row, is_there in zip(items.numbers, last, there.tolist(), strict=True):
            if is_there:
                self._rows[key] = row
            else:
                self._rows.pop(key, None)
                group.free.append(group.numbers.pop(key))
        if not group.numbers:
            del self._groups[()]

    def notice(self, flags: Mapping[str, frozenset[str]]) -> bool:
        """There are no flags in messages that say all there is."""
        return False

    def flags(self) -> frozenset[str]:
        """There are none."""
        return frozenset()

    def retain(self, flags: set[str]) -> None:
        """There are none to keep."""

    def _put(self, row: object, event: Event | None) -> list[Said]:
        old, new = self._place(self._rows.pop(row, None)), self._place(event)
        if event is not None and new is not None:
            self._rows[row] = event
        said: list[Said] = []
        # In one group at once, so that nobody is told of a row's going and of its coming.
        for group in dict.fromkeys(place.group for place in (old, new) if place is not None):
            was = old if old is not None and old.group == group else None
            is_now = new if new is not None and new.group == group else None
            said += self._within(row, was, is_now)
        return said

    def _within(self, row: object, was: _Place | None, is_now: _Place | None) -> list[Said]:
        """A row came, went or moved within a group."""
        place = is_now or was
        assert place is not None
        group = self._group(place.group, place.equal)
        doubtful = bool(group.odd)
        group.odd.pop(row, None)
        group.floats -= was is not None and isinstance(was.y, float)
        group.floats += is_now is not None and isinstance(is_now.y, float)
        spans = self._structured(group, row, was, is_now)
        if is_now is not None and is_now.odd:
            group.odd[row] = is_now
        if doubtful or group.odd:
            said = [*self._doubted(group, was, is_now)]
        else:
            said = [self._said(group, span) for span in spans]
        if not group.numbers and not group.odd:
            del self._groups[place.group]
        return said

    def _group(self, key: tuple[object, ...], equal: Said) -> _Group:
        group = self._groups.get(key)
        if group is None:
            least = self.shape.function is AggregateFunction.MIN
            structure = Reference() if least else Maxima[Structure](Reference())
            group = self._groups[key] = _Group(equal, structure)
        return group

    def _structured(
        self, group: _Group, row: object, was: _Place | None, is_now: _Place | None
    ) -> list[Span]:
        """Let the structure know of it, as far as it is a matter of points."""
        if is_now is not None and not is_now.odd:
            point = float(is_now.x), float(is_now.y)  # type: ignore[arg-type]  # as odd says
            if len(group.numbers) == FEW and row not in group.numbers:
                group.structure = _packed(group.structure)
            return group.structure.change(group.number(row), point)
        if was is None or was.odd:
            return []
        number = group.numbers.pop(row)
        group.free.append(number)
        return group.structure.change(number, None)

    def _said(self, group: _Group, span: Span) -> Said:
        said = dict(group.equal)
        least = span.minimum
        if least is not None:
            said[NEW_MIN] = least if group.floats else int(least)
        if self.shape.x is not None:
            ends = (span.inner_left, span.inner_right, span.outer_left, span.outer_right)
            said.update(zip(ENDS, ends, strict=True))
        return said

    def _doubted(self, group: _Group, was: _Place | None, is_now: _Place | None) -> Iterator[Said]:
        """Whom it may concern: whoever has the row in range, or had it."""
        places = dict.fromkeys(place.x for place in (was, is_now) if place is not None)
        for x in places:
            said: Said = {**group.equal, AGAIN: True}
            if self.shape.x is not None:
                said.update(zip(ENDS, (x, x, -math.inf, math.inf), strict=True))
            yield said

    def value(self, view: View, parts: RangeView, params: Mapping[str, Value]) -> Value | None:
        """The view's value now: what a snapshot says. O(log n), and O(1) for each odd row."""
        scope = Scope(params=params)
        wanted = [one.operand.evaluate(scope) for one in parts.equal]  # type: ignore[union-attr]
        if not all(type(value) in KIND_OF for value in wanted):
            return None
        group = self._groups.get(tuple(map(comparable, wanted)))  # type: ignore[arg-type]
        if group is None:
            return None
        low, high = parts.range(params)
        structure = group.structure
        if isinstance(structure, Maxima):
            found = structure.maximum(low, high)
        else:
            found = structure.minimum(low, high)
        value = found if found is None or group.floats else int(found)
        return self._among(value, group, view, params) if group.odd else value

    def _among(
        self, found: Value | None, group: _Group, view: View, params: Mapping[str, Value]
    ) -> Value | None:
        """The value of the points and the odd rows together."""
        values = Extremes()
        if found is not None:
            values.add(found, 1)
        for place in group.odd.values():
            if view.where.evaluate(Scope(place.row, params)) is True:
                values.add(place.y, 1)
        least = self.shape.function is AggregateFunction.MIN
        return known(values.least() if least else values.greatest())

    def _place(self, row: Event | None) -> _Place | None:
        """Where a row lies, if it is in any view's range."""
        if row is None:
            return None
        scope = Scope(row)
        y = scope.attribute(self.shape.y)
        x: Value | None = 0.0 if self.shape.x is None else scope.attribute(self.shape.x)
        if y is None or x is None or KIND_OF[type(x)] is not Kind.NUMBER:
            return None
        equal: Said = {}
        for name in self.shape.equal:
            value = scope.attribute(name)
            if value is None:
                return None
            equal[EQUAL + name] = value
        return _Place(tuple(map(comparable, equal.values())), equal, x, y, row)

    def _check(self) -> None:
        assert all(group.numbers or group.odd for group in self._groups.values())
        for key, group in self._groups.items():
            group.structure._check()
            assert len(group.structure) == len(group.numbers)
            found = ((row, self._place(event)) for row, event in self._rows.items())
            places = {row: one for row, one in found if one is not None and one.group == key}
            assert group.odd == {row: one for row, one in places.items() if one.odd}
            assert group.numbers.keys() == places.keys() - group.odd.keys()
            assert group.floats == sum(isinstance(one.y, float) for one in places.values())
            assert len({*group.numbers.values(), *group.free}) == len(group.numbers) + len(
                group.free
            )


def _is_small(structure: Structure | Maxima[Structure]) -> bool:
    below = structure.below if isinstance(structure, Maxima) else structure
    return isinstance(below, Reference)


def _packed(structure: Structure | Maxima[Structure]) -> Structure | Maxima[Structure]:
    """The same tuples where many are found fast."""
    # Compiled code is loaded by those who need it.
    from driftline.stateful.range_min.blocks import Blocks

    if isinstance(structure, Maxima):
        return Maxima[Structure](Blocks.load(structure.below.dump()))
    return Blocks.load(structure.dump())


def _exact(value: Value) -> bool:
    """Is it a number that a float can be?"""
    kind = type(value)
    if kind is float:
        return math.isfinite(value)  # type: ignore[arg-type]
    return kind is int and -EXACT_MAX <= value <= EXACT_MAX  # type: ignore[operator]
