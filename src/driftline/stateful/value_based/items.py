"""Who is told of the values of a great many items, most of which few subscribe to?

A structure takes tens of kilobytes before the first subscription. So an item that one subscription
is for is a row of columns, which takes a few dozen bytes and the item's place in a dictionary; one
with some is a scan; and from `MANY` on it is a structure, which numbers its own subscriptions:
those with large ids must not cost it a place for each smaller one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

import numpy as np

from driftline.errors import InvalidValue
from driftline.model.value import show
from driftline.stateful.value_based.choice import load, structure_for, with_radii
from driftline.stateful.value_based.reference import DEFAULT, Reference
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.span import Address
from driftline.stateful.value_based.structure import admit_id

Item = TypeVar("Item", bound=Hashable)

MANY = 64
"""From so many subscriptions to an item on a structure is worth its memory."""

_FIRST = 64
_VALUE, _RADIUS, _CENTRE = range(3)


class Items(Generic[Item]):
    """Subscriptions by item, under one rule. An id is there once for an item.

    An item that has no value yet may have subscriptions: its first value is told to all of them.
    """

    def __init__(self, rule: Rule = DEFAULT) -> None:
        self.rule = rule
        self._rows: dict[Item, int] = {}
        self._several: dict[Item, Reference | _Numbered] = {}
        self._waiting: dict[Item, dict[int, float]] = {}
        self._columns = np.zeros((_FIRST, 3))
        self._ids = np.zeros(_FIRST, np.int32)
        self._free: list[int] = []
        self._count = 0

    def insert(self, item: Item, id: int, radius: float, *, shared: bool = False) -> float | None:
        """Begin a subscription; what it has been told, or None if there is no value yet."""
        id, radius = admit_id(id), self.rule.admit_radius(radius)
        if self._has(item, id):
            raise InvalidValue("id", f"one that is not there for {show(item)}", show(id))
        if item in self._waiting:
            self._waiting[item][id] = radius
            self._count += 1
            return None
        if item not in self._several and item not in self._rows:
            self._waiting[item] = {id: radius}
            self._count += 1
            return None
        told = self._structure(item).insert(id, radius, shared=shared)
        self._count += 1
        self._settle(item)
        return told

    def delete(self, item: Item, id: int) -> None:
        """End a subscription; an item with none is forgotten, with its value."""
        id = admit_id(id)
        if not self._has(item, id):
            raise InvalidValue("id", f"one that is there for {show(item)}", show(id))
        self._count -= 1
        if item in self._waiting:
            del self._waiting[item][id]
            if not self._waiting[item]:
                del self._waiting[item]
        elif item in self._rows:
            self._free.append(self._rows.pop(item))
        else:
            self._several[item].delete(id)
            self._settle(item)

    def change(self, item: Item, id: int, radius: float) -> bool:
        """Give it another radius: is it told of the current value at once, being overdue by it?"""
        id, radius = admit_id(id), self.rule.admit_radius(radius)
        if not self._has(item, id):
            raise InvalidValue("id", f"one that is there for {show(item)}", show(id))
        if item in self._waiting:
            self._waiting[item][id] = radius
            return False
        told = self._structure(item).change(id, radius)
        self._settle(item)
        return told

    def tell(self, item: Item, value: float) -> list[int]:
        """There is a new value of an item: who is told."""
        value = self.rule.admit_value(value)
        row = self._rows.get(item)
        if row is not None:
            one = self._columns[row]
            one[_VALUE] = value
            if not self.rule.tells(float(one[_CENTRE]), float(one[_RADIUS]), value):
                return []
            one[_CENTRE] = value
            return [int(self._ids[row])]
        several = self._several.get(item)
        if several is not None:
            return several.tell(value)
        waiting = self._waiting.pop(item, None)
        if waiting is None:
            return []
        if len(waiting) == 1:
            ((id, radius),) = waiting.items()
            self._put_row(item, (value, radius, value), id)
            return [id]
        made = Reference(value, self.rule)
        for id, radius in waiting.items():
            made.insert(id, radius)
        self._several[item] = made
        self._settle(item)
        return list(waiting)

    def end(self, item: Item) -> list[int]:
        """An item is no more: who was subscribed to it. They wait for its next first value."""
        if item in self._waiting:
            return []
        held = self._structure(item) if item in self._rows else self._several.get(item)
        if held is None:
            return []
        del self._several[item]
        self._waiting[item] = {id: held.address(id).radius for id in held}
        return list(self._waiting[item])

    def centre(self, item: Item, id: int) -> float | None:
        """What a subscription was last told; None if nothing yet."""
        if not self._has(item, id):
            raise InvalidValue("id", f"one that is there for {show(item)}", show(id))
        if item in self._waiting:
            return None
        if item in self._rows:
            return float(self._columns[self._rows[item], _CENTRE])
        return self._several[item].centre(id)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, item: object) -> bool:
        return item in self._rows or item in self._several or item in self._waiting

    def _has(self, item: Item, id: int) -> bool:
        row = self._rows.get(item)
        if row is not None:
            return int(self._ids[row]) == id
        held = self._several.get(item) or self._waiting.get(item, {})
        return id in held

    def _structure(self, item: Item) -> Reference | _Numbered:
        """An item's subscriptions as a structure; those of a row become one."""
        row = self._rows.pop(item, None)
        if row is None:
            return self._several[item]
        value, radius, centre = self._columns[row].tolist()
        made = Reference(value, self.rule)
        made.insert(int(self._ids[row]), radius, centre)
        self._free.append(row)
        self._several[item] = made
        return made

    def _settle(self, item: Item) -> None:
        """Keep an item as its number of subscriptions asks for."""
        held = self._several[item]
        if not len(held):
            del self._several[item]
        elif len(held) == 1:
            (id,) = held
            self._put_row(item, (held.value, held.address(id).radius, held.centre(id)), id)
            del self._several[item]
        elif len(held) > MANY and isinstance(held, Reference):
            self._several[item] = _Numbered(held)
        elif len(held) < MANY // 2 and isinstance(held, _Numbered):
            self._several[item] = held.scanned()

    def _put_row(self, item: Item, columns: tuple[float, float, float], id: int) -> None:
        row = self._free.pop() if self._free else len(self._rows)
        if row == len(self._ids):
            self._columns = np.concatenate((self._columns, np.zeros_like(self._columns)))
            self._ids = np.concatenate((self._ids, np.zeros_like(self._ids)))
        self._columns[row], self._ids[row], self._rows[item] = columns, id, row

    def _check(self) -> None:
        waiting = sum(len(one) for one in self._waiting.values())
        several = sum(len(one) for one in self._several.values())
        assert self._count == len(self._rows) + several + waiting
        assert len({*self._rows, *self._several, *self._waiting}) == (
            len(self._rows) + len(self._several) + len(self._waiting)
        )
        rows = sorted([*self._rows.values(), *self._free])
        assert rows == list(range(len(rows)))
        for row in self._rows.values():
            value, radius, centre = self._columns[row].tolist()
            assert not self.rule.tells(centre, radius, value)
        for held in self._several.values():
            assert len(held) > 1
            held._check()


class _Numbered:
    """A structure that knows its subscriptions by small numbers of its own."""

    __slots__ = ("_free", "_ids", "_inside", "_numbers")

    def __init__(self, scan: Reference) -> None:
        self._ids = list(scan)
        self._numbers = {id: number for number, id in enumerate(self._ids)}
        self._free: list[int] = []
        radii = [scan.address(id).radius for id in self._ids]
        self._inside = structure_for(scan.value, radii, scan.rule)
        centres = [scan.centre(id) for id in self._ids]
        try:
            self._inside.insert_many(range(len(radii)), radii, centres)
        except InvalidValue:
            # One radius, but in several circles, as radii were changed.
            local = Reference(scan.value, scan.rule)
            for number, (radius, centre) in enumerate(zip(radii, centres, strict=True)):
                local.insert(number, radius, centre)
            self._inside = load(local.dump())

    @property
    def value(self) -> float:
        return self._inside.value

    def insert(self, id: int, radius: float, *, shared: bool = False) -> float:
        number = self._free.pop() if self._free else len(self._ids)
        self._inside = with_radii(self._inside, [radius])
        centre = self._inside.insert(number, radius, shared=shared)
        if number == len(self._ids):
            self._ids.append(id)
        self._ids[number], self._numbers[id] = id, number
        return centre

    def delete(self, id: int) -> None:
        number = self._numbers.pop(id)
        self._inside.delete(number)
        self._free.append(number)

    def change(self, id: int, radius: float) -> bool:
        self._inside = with_radii(self._inside, [radius])
        return self._inside.change(self._numbers[id], radius)

    def tell(self, value: float) -> list[int]:
        ids = self._ids
        return [ids[number] for number in self._inside.tell(value)]

    def centre(self, id: int) -> float:
        return self._inside.centre(self._numbers[id])

    def address(self, id: int) -> Address:
        return self._inside.address(self._numbers[id])

    def scanned(self) -> Reference:
        """The same as a scan."""
        made = Reference(self.value, self._inside.rule)
        for id in self:
            made.insert(id, self.address(id).radius, self.centre(id))
        return made

    def __len__(self) -> int:
        return len(self._inside)

    def __contains__(self, id: object) -> bool:
        return id in self._numbers

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def _check(self) -> None:
        self._inside._check()
        assert len(self._numbers) == len(self._inside)
        assert all(self._ids[number] == id for id, number in self._numbers.items())
