"""Who is told of the values of a great many items, most of which few subscribe to?

A structure takes tens of kilobytes before the first subscription. So an item that one subscription
is for is a row of columns, which takes a few dozen bytes and the item's place in a dictionary; one
with some is a scan (`few`); and from `MANY` on it is a structure (`numbered`). Whatever an item is
kept as, addresses stay: who waits for a first value, and who is a row, is at ring 0 and label 0,
and what grows takes rings and labels along. Nothing shrinks before an item is empty, for a
structure may know labels that a scan cannot.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from driftline.errors import InvalidValue
from driftline.model.value import show
from driftline.stateful.value_based.circle import admit_label_bits
from driftline.stateful.value_based.few import Few
from driftline.stateful.value_based.reference import DEFAULT
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.span import Address, Shift, Span
from driftline.stateful.value_based.structure import admit_id

if TYPE_CHECKING:
    from driftline.stateful.value_based.numbered import Numbered

Item = TypeVar("Item", bound=Hashable)

MANY = 64
"""With more subscriptions to an item than this a structure is worth its memory."""

_FIRST = 64
_VALUE, _RADIUS, _CENTRE = range(3)


class Items(Generic[Item]):
    """Subscriptions by item, under one rule. An id is there once for an item.

    An item that has no value yet may have subscriptions: its first value is told to all of them.
    """

    def __init__(self, rule: Rule = DEFAULT, label_bits: int = 64, many: int = MANY) -> None:
        """From more than `many` subscriptions on an item is a structure."""
        self.rule = rule
        self._many = many
        self.label_bits = admit_label_bits(label_bits)
        self._rows: dict[Item, int] = {}
        self._several: dict[Item, Few | Numbered] = {}
        self._waiting: dict[Item, dict[int, float]] = {}
        self._columns = np.zeros((_FIRST, 3))
        self._ids = np.zeros(_FIRST, np.int32)
        self._free: list[int] = []
        self._count = 0
        self._shifts: list[tuple[Item, Shift]] = []

    # Subscriptions.

    def insert(self, item: Item, id: int, radius: float, *, shared: bool = False) -> float | None:
        """Begin a subscription; what it has been told, or None if there is no value yet."""
        id, radius = admit_id(id), self.rule.admit_radius(radius)
        if self._has(item, id):
            raise InvalidValue("id", f"one that is not there for {show(item)}", show(id))
        self._count += 1
        if item in self._rows:
            self._several[item] = self._taken_row(item)
        held = self._several.get(item)
        if held is None:
            self._waiting.setdefault(item, {})[id] = radius
            return None
        told = held.insert(id, radius, shared=shared)
        if isinstance(held, Few) and len(held) > self._many:
            self._several[item] = _numbered().grown(held, self.label_bits)
        self._note_shifts(item)
        return told

    def delete(self, item: Item, id: int) -> None:
        """End a subscription; an item with none is forgotten, with its value."""
        id = self._held(item, id)
        self._count -= 1
        if item in self._rows:
            self._free.append(self._rows.pop(item))
        elif item in self._waiting:
            del self._waiting[item][id]
            if not self._waiting[item]:
                del self._waiting[item]
        else:
            self._several[item].delete(id)
            if not len(self._several[item]):
                del self._several[item]

    def change(self, item: Item, id: int, radius: float) -> bool:
        """Give it another radius: is it told of the current value at once, being overdue by it?"""
        id, radius = self._held(item, id), self.rule.admit_radius(radius)
        if item in self._waiting:
            self._waiting[item][id] = radius
            return False
        row = self._rows.get(item)
        if row is not None:
            self._columns[row, _RADIUS] = radius
            return self._tell_row(row, float(self._columns[row, _VALUE]))
        told = self._several[item].change(id, radius)
        self._note_shifts(item)
        return told

    # Events.

    def event(self, item: Item, value: float) -> list[Span]:
        """There is a new value of an item: who is told, as spans of addresses."""
        value = self.rule.admit_value(value)
        row = self._rows.get(item)
        if row is not None:
            radius = float(self._columns[row, _RADIUS])
            return [Span(radius, radius)] if self._tell_row(row, value) else []
        several = self._several.get(item)
        if several is not None:
            return several.event(value)
        radii = self._begin(item, value).values()
        return [Span(min(radii), max(radii))] if radii else []

    def tell(self, item: Item, value: float) -> list[int]:
        """The same, as ids in any order."""
        value = self.rule.admit_value(value)
        row = self._rows.get(item)
        if row is not None:
            return [int(self._ids[row])] if self._tell_row(row, value) else []
        several = self._several.get(item)
        return list(self._begin(item, value)) if several is None else several.tell(value)

    def end(self, item: Item) -> list[int]:
        """An item is no more: who was subscribed to it. They wait for its next first value."""
        held = self._taken_row(item) if item in self._rows else self._several.pop(item, None)
        if held is None:
            return []
        self._waiting[item] = held.radii()
        return list(self._waiting[item])

    # What is asked.

    def value(self, item: Item) -> float | None:
        """The current value; None if there is none yet, or nobody asks for it."""
        row = self._rows.get(item)
        if row is not None:
            return float(self._columns[row, _VALUE])
        return self._several[item].value if item in self._several else None

    def address(self, item: Item, id: int) -> Address:
        """Where a subscription is found in spans. Who keeps it takes the shifts first."""
        id = self._held(item, id)
        if item in self._waiting:
            return Address(self._waiting[item][id])
        row = self._rows.get(item)
        if row is not None:
            return Address(float(self._columns[row, _RADIUS]))
        return self._several[item].address(id)

    def ranked(self, item: Item) -> bool:
        """Is there any ring of an item with another number than 0?"""
        return item in self._several and self._several[item].ranked

    def take_shifts(self) -> list[tuple[Item, Shift]]:
        """How labels have moved since this was asked last, in order, by item.

        Nothing else changes an address but a change of radius and the end of an item.
        """
        shifts, self._shifts = self._shifts, []
        return shifts

    def centre(self, item: Item, id: int) -> float | None:
        """What a subscription was last told; None if nothing yet."""
        id = self._held(item, id)
        if item in self._waiting:
            return None
        row = self._rows.get(item)
        if row is not None:
            return float(self._columns[row, _CENTRE])
        return self._several[item].centre(id)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, item: object) -> bool:
        return item in self._rows or item in self._several or item in self._waiting

    # How an item is kept.

    def _held(self, item: Item, id: object) -> int:
        number = admit_id(id)
        if not self._has(item, number):
            raise InvalidValue("id", f"one that is there for {show(item)}", show(id))
        return number

    def _has(self, item: Item, id: int) -> bool:
        row = self._rows.get(item)
        if row is not None:
            return int(self._ids[row]) == id
        held = self._several.get(item) or self._waiting.get(item, {})
        return id in held

    def _begin(self, item: Item, value: float) -> dict[int, float]:
        """An item has its first value: who waited for it, with their radii."""
        radii = self._waiting.pop(item, {})
        if len(radii) == 1:
            ((id, radius),) = radii.items()
            self._put_row(item, (value, radius, value), id)
        elif len(radii) > self._many:
            self._several[item] = _numbered().begun(value, self.rule, radii, self.label_bits)
        elif radii:
            self._several[item] = Few(value, self.rule, radii)
        return radii

    def _note_shifts(self, item: Item) -> None:
        held = self._several[item]
        if not isinstance(held, Few):
            self._shifts += [(item, shift) for shift in held.take_shifts()]

    def _tell_row(self, row: int, value: float) -> bool:
        """A row has this value: is its subscription told?"""
        one = self._columns[row]
        one[_VALUE] = value
        told = self.rule.tells(float(one[_CENTRE]), float(one[_RADIUS]), value)
        if told:
            one[_CENTRE] = value
        return told

    def _taken_row(self, item: Item) -> Few:
        """The subscription of a row, which is no more one."""
        row = self._rows.pop(item)
        self._free.append(row)
        value, radius, centre = self._columns[row].tolist()
        return Few.of_one(value, self.rule, int(self._ids[row]), radius, centre)

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
            assert len(held) > 0
            held._check()


def _numbered() -> type[Numbered]:
    # Compiled code is loaded by those who need it.
    from driftline.stateful.value_based.numbered import Numbered

    return Numbered
