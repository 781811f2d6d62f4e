"""Who follows the values of a table under one condition, and whom does a value concern?

A group is all those whose condition is the same but for the radius, and for which item it pins:
`symbol = 'IBM' AND sector = 'tech' AND moved(price, by => 2)` is in the group of `sector = 'tech'`,
at the item IBM. It has a structure for each item. Who follows every item is in all of them.

Who comes while an item's row does not satisfy the condition has not been told of it, though others
have been: it is *late*, and told of the next value that counts, whatever that is.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Protocol, TypeAlias

from driftline.errors import InvalidValue
from driftline.model.event import Event
from driftline.model.expression import Expression
from driftline.model.scope import Scope
from driftline.model.table import Table
from driftline.model.value import Value, comparable
from driftline.stateful.value_based.address import (
    EVERY_PAIR,
    EVERYBODY,
    NOWHERE,
    Box,
    between,
    boxes_of,
    place_of,
)
from driftline.stateful.value_based.conditions import Move
from driftline.stateful.value_based.items import Items
from driftline.stateful.value_based.may_must import MayMust
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.span import Shift

Item: TypeAlias = Hashable
Rows: TypeAlias = list[tuple[Value, Event]]
"""Rows with their keys."""


class Followers(Protocol):
    """Those who follow items, by numbers: in structures with one radius each, or with two."""

    everybody: Box

    def insert(self, item: Item, number: int, move: Move) -> None:
        """Begin; one told nothing yet waits if the item has no value."""

    def delete(self, item: Item, number: int) -> None: ...

    def change(self, item: Item, number: int, move: Move) -> None: ...

    def event(self, item: Item, value: float) -> list[Box]:
        """Whom a value concerns."""

    def end(self, item: Item) -> None:
        """There is no such item any more: all wait for the next."""

    def value(self, item: Item) -> float | None: ...

    def centre(self, item: Item, number: int) -> float | None: ...

    def point(self, item: Item, number: int) -> tuple[float, float]:
        """Where one is found in boxes."""

    def take_shifts(self) -> list[tuple[Item, Shift]]: ...

    def __contains__(self, item: Item) -> bool: ...

    def _check(self) -> None: ...


class Singles:
    """Those with one radius each."""

    everybody = EVERYBODY

    def __init__(self, rule: Rule, label_bits: int, many: int) -> None:
        self._items: Items[Item] = Items(rule, label_bits, many)
        self.delete = self._items.delete
        self.value = self._items.value
        self.centre = self._items.centre
        self.take_shifts = self._items.take_shifts

    def insert(self, item: Item, number: int, move: Move) -> None:
        """See `Followers`."""
        self._items.insert(item, number, move.radius, shared=move.shared)

    def change(self, item: Item, number: int, move: Move) -> None:
        """See `Followers`."""
        self._items.change(item, number, move.radius)

    def event(self, item: Item, value: float) -> list[Box]:
        """See `Followers`."""
        if self._items.value(item) is None:
            self._items.event(item, value)
            return [EVERYBODY]
        spans = self._items.event(item, value)
        return list(boxes_of(spans, ranked=self._items.ranked(item))) if spans else []

    def end(self, item: Item) -> None:
        """See `Followers`."""
        self._items.end(item)

    def point(self, item: Item, number: int) -> tuple[float, float]:
        """See `Followers`."""
        radius, ring, label = self._items.address(item, number)
        return radius, place_of(ring, label)

    def __contains__(self, item: Item) -> bool:
        return item in self._items

    def _check(self) -> None:
        self._items._check()


class Pairs:
    """Those with two radii each, may and must."""

    everybody = EVERY_PAIR

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._items: dict[Item, MayMust] = {}
        self._waiting: dict[Item, dict[int, tuple[float, float]]] = {}

    def insert(self, item: Item, number: int, move: Move) -> None:
        """See `Followers`."""
        assert move.may is not None
        held = self._items.get(item)
        if held is None:
            self._waiting.setdefault(item, {})[number] = move.may, move.radius
        else:
            held.insert(number, move.may, move.radius, shared=move.shared)

    def delete(self, item: Item, number: int) -> None:
        """See `Followers`."""
        held = self._items.get(item)
        if held is not None:
            held.delete(number)
            if not len(held):
                del self._items[item]
            return
        del self._waiting[item][number]
        if not self._waiting[item]:
            del self._waiting[item]

    def change(self, item: Item, number: int, move: Move) -> None:
        """See `Followers`."""
        assert move.may is not None
        held = self._items.get(item)
        if held is None:
            self._waiting[item][number] = move.may, move.radius
        else:
            held.change(number, move.may, move.radius)

    def event(self, item: Item, value: float) -> list[Box]:
        """See `Followers`."""
        held = self._items.get(item)
        if held is not None:
            ranges = held.event(value)
            return [box for first, last in ranges for box in between(first, last, EVERY_PAIR.high)]
        held = self._items[item] = MayMust(value, self._rule)
        for number, radii in self._waiting.pop(item).items():
            held.insert(number, *radii)
        return [EVERY_PAIR]

    def end(self, item: Item) -> None:
        """See `Followers`."""
        held = self._items.pop(item, None)
        if held is not None:
            self._waiting[item] = {number: held.radii(number) for number in held}

    def value(self, item: Item) -> float | None:
        """See `Followers`."""
        held = self._items.get(item)
        return None if held is None else held.value

    def centre(self, item: Item, number: int) -> float | None:
        """See `Followers`."""
        held = self._items.get(item)
        return None if held is None else held.centre(number)

    def point(self, item: Item, number: int) -> tuple[float, float]:
        """See `Followers`."""
        held = self._items.get(item)
        return self._waiting[item][number] if held is None else held.radii(number)

    def take_shifts(self) -> list[tuple[Item, Shift]]:
        """See `Followers`: there are no labels."""
        return []

    def __contains__(self, item: Item) -> bool:
        return item in self._items or item in self._waiting

    def _check(self) -> None:
        assert not self._items.keys() & self._waiting.keys()


class Group:
    """The followers of one group, by numbers. `reader` makes numbers of the values of rows."""

    def __init__(
        self, attribute: str, rest: Expression, reader: Move, followers: Followers, table: Table
    ) -> None:
        self.attribute = attribute
        self.rest = rest
        self.followers = followers
        self._reader = reader
        self._table = table
        # Those who follow every item, those who are late, and the last rows that counted.
        self._all: dict[int, Move] = {}
        self._late: dict[Item, dict[int, Move]] = {}
        self._last: dict[Item, tuple[Value, Event]] = {}
        self._free: list[int] = []
        self._count = 0

    def number(self) -> int:
        """A number for a new follower."""
        if self._free:
            return self._free.pop()
        self._count += 1
        return self._count - 1

    def __len__(self) -> int:
        return self._count - len(self._free)

    # Followers.

    def join(self, number: int, move: Move, pin: Value | None) -> Rows:
        """Begin to follow one item, or all: the rows that are told, with their keys."""
        if pin is not None:
            row = self._table.get(pin)
            told = [self._join(number, move, pin, row)]
        else:
            self._all[number] = move
            told = [self._join(number, move, key, row) for key, row in self._counting()]
        return [one for one in told if one is not None]

    def _counting(self) -> list[tuple[Value, Event]]:
        """The rows that count, and those that did."""
        return [
            (key, row)
            for key, row in self._table.items()
            if comparable(key) in self._last or self._value(row) is not None
        ]

    def _join(
        self, number: int, move: Move, key: Value, row: Event | None
    ) -> tuple[Value, Event] | None:
        item, followers = comparable(key), self.followers
        value = None if row is None else self._value(row)
        if row is None or value is None:
            if followers.value(item) is None:
                followers.insert(item, number, move)
            else:
                self._late.setdefault(item, {})[number] = move
            return None
        followers.insert(item, number, move)
        if followers.value(item) is None:
            followers.event(item, value)
            self._last[item] = key, row
        return key, self._told(number, item, row)

    def _told(self, number: int, item: Item, row: Event) -> Event:
        """What one was last told of a row: others may have been told it, before it was so."""
        centre = self.followers.centre(item, number)
        assert centre is not None
        if centre == self.number_of(row):
            return row
        return at_centre(row, self.attribute, centre, self._reader)

    def leave(self, number: int, pin: Value | None) -> None:
        """No longer follow."""
        self._all.pop(number, None)
        for item in [*self._last] if pin is None else [comparable(pin)]:
            self._leave(number, item)
        self._free.append(number)

    def _leave(self, number: int, item: Item) -> None:
        late = self._late.get(item, {})
        if late.pop(number, None) is None:
            self.followers.delete(item, number)
        if not late:
            self._late.pop(item, None)
        if item in self._last and self.followers.value(item) is None:
            # Nobody has been told of it: those who were late wait for it like all others.
            del self._last[item]
            self._wait(item)

    def _wait(self, item: Item) -> None:
        """Let those who are late wait. Who follows every item comes to it when it first counts."""
        for number, move in self._late.pop(item, {}).items():
            if number not in self._all:
                self.followers.insert(item, number, move)

    def change(self, number: int, move: Move, pin: Value | None) -> Rows:
        """Give one other radii: the rows that it has been told by these, at once or before."""
        if pin is None:
            self._all[number] = move
        rows: Rows = []
        # Which rows counted first may be due to others: it is told in the order of the table.
        for item in self._table.in_order(self._last) if pin is None else [comparable(pin)]:
            late = self._late.get(item, {})
            if number in late:
                late[number] = move
                continue
            self.followers.change(item, number, move)
            if item in self._last:
                key, row = self._last[item]
                rows.append((key, self._told(number, item, row)))
        return rows

    def is_late(self, number: int, key: Value) -> bool:
        """Has one no place yet, though its item has a value?"""
        return number in self._late.get(comparable(key), {})

    def key_of(self, item: Item) -> Value:
        """The key of an item that has a value."""
        return self._last[item][0]

    # Events.

    def _value(self, row: Event) -> float | None:
        """The value of a row that counts."""
        return self.number_of(row) if self.rest.evaluate(Scope(row)) is True else None

    def number_of(self, row: Event) -> float | None:
        """The value of a row that satisfies the rest, as structures take it; None: it has none."""
        try:
            return self._reader.number(row.attributes.get(self.attribute))
        except InvalidValue:
            return None  # No such number can be compared exactly.

    def take(self, key: Value, value: float, row: Event) -> list[Box]:
        """A row that counts has this value now: whom it concerns."""
        item, followers = comparable(key), self.followers
        if item not in self._last:
            for number, move in self._all.items():
                followers.insert(item, number, move)
        if item not in followers:
            return []
        self._last[item] = key, row
        late = self._late.pop(item, {})
        boxes = followers.event(item, value)
        for number, move in late.items():
            # It is told this value, whatever others were.
            followers.insert(item, number, replace(move, shared=False))
        return [*boxes, NOWHERE] if late else boxes

    def end(self, key: Value) -> bool:
        """A row is gone: has anybody been told of it?"""
        item = comparable(key)
        if self._last.pop(item, None) is None:
            return False
        late = self._late.get(item, {})
        self.followers.end(item)
        for number in self._all.keys() - late.keys():
            self.followers.delete(item, number)
        self._wait(item)
        return True

    def _check(self) -> None:
        self.followers._check()
        assert self._late.keys() <= self._last.keys()
        assert len(self._table.in_order(self._last)) == len(self._last)
        assert all(self.followers.value(item) is not None for item in self._last)
        assert all(self._late.values())


def at_centre(row: Event, attribute: str, centre: float, move: Move) -> Event:
    """A row with the value that others were told, which one shares with them."""
    value = centre if move.ticks is None else float(move.ticks.value(centre))
    whole = isinstance(row.attributes[attribute], int) and value.is_integer()
    return row.with_attribute(attribute, int(value) if whole else value)
