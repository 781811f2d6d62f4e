"""Who is told of one item's values, when a great many follow it with a radius each?

They go by numbers from 0, and come, go and change in arrays. Who has no place yet, because the item
has no value, or none that counts, waits; of the next value all of them are told. Then the structure
has them (`packed`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from driftline.stateful.value_based.boxes import Boxes, boxes_of_many, places_of
from driftline.stateful.value_based.choice import structure_for, with_radii
from driftline.stateful.value_based.packed import Packed
from driftline.stateful.value_based.rule import Floats, Rule
from driftline.stateful.value_based.structure import Ids

WAITING = -1
"""The place of one who has none: no box of those who are told of a move reaches it."""

_FIRST = 64


class Members:
    """By numbers; what comes in has been admitted."""

    def __init__(self, rule: Rule, label_bits: int) -> None:
        self._rule = rule
        self._label_bits = label_bits
        self._inside: Packed | None = None
        self._radii = np.full(_FIRST, np.nan)
        self._waits = np.zeros(_FIRST, np.bool_)
        self._waiting = 0
        self._count = 0

    # Who is there.

    def __len__(self) -> int:
        return self._count

    @property
    def value(self) -> float | None:
        """The last value; None if there is none."""
        return None if self._inside is None else self._inside.value

    @property
    def waiting(self) -> int:
        """How many have no place yet."""
        return self._waiting

    def has(self, numbers: Ids) -> NDArray[np.bool_]:
        """Which of these numbers, none below 0, are somebody's?"""
        known = numbers < len(self._radii)
        there: NDArray[np.bool_] = ~np.isnan(self._radii[np.where(known, numbers, 0)])
        return known & there

    def wait(self, numbers: Ids, radii: Floats) -> None:
        """Let some who are new wait for a value."""
        self._enter(numbers, radii)
        self._waits[numbers] = True
        self._waiting += len(numbers)

    def insert(self, numbers: Ids, radii: Floats, value: float, *, shared: bool) -> Floats:
        """Let some who are new be told the value there is; or another, if they share: who what."""
        self._enter(numbers, radii)
        return self._place(numbers, value, shared)

    def _enter(self, numbers: Ids, radii: Floats) -> None:
        most = int(numbers.max(initial=-1)) + 1
        if most > len(self._radii):
            room = max(most, 2 * len(self._radii)) - len(self._radii)
            self._radii = np.concatenate((self._radii, np.full(room, np.nan)))
            self._waits = np.concatenate((self._waits, np.zeros(room, np.bool_)))
        self._radii[numbers] = radii
        self._count += len(numbers)

    def _place(self, numbers: Ids, value: float, shared: bool) -> Floats:
        radii = self._radii[numbers]
        if self._inside is None:
            self._inside = structure_for(value, radii, self._rule, self._label_bits)
        else:
            self._inside = with_radii(self._inside, radii)
        return self._inside.insert_many(numbers, radii, shared=shared)

    def delete(self, numbers: Ids) -> None:
        """Some are gone."""
        waits = self._waits[numbers]
        if self._inside is not None:
            self._inside.delete_many(numbers[~waits])
        self._radii[numbers], self._waits[numbers] = np.nan, False
        self._waiting -= int(waits.sum())
        self._count -= len(numbers)

    def change(self, numbers: Ids, radii: Floats) -> Ids:
        """Give some other radii: who is told of the value at once, being overdue by it."""
        self._radii[numbers] = radii
        placed = ~self._waits[numbers]
        if self._inside is None or not placed.any():
            return numbers[:0]
        some = numbers[placed]
        self._inside = with_radii(self._inside, radii[placed])
        return some[self._inside.change_many(some, radii[placed])]

    # Values.

    def tell_many(self, values: Floats) -> Boxes:
        """Whom many values concern, of those who do not wait; there must have been a value."""
        assert self._inside is not None
        return boxes_of_many(self._inside.tell_many(values), ranked=self._inside.ranked)

    def begin(self, value: float) -> Ids:
        """Those who wait are told a value, which the others know: who they were."""
        numbers = np.flatnonzero(self._waits)
        self._waits[numbers] = False
        self._waiting = 0
        self._place(numbers, value, shared=False)
        return numbers

    def end(self) -> None:
        """There is no such item any more: all wait for the next."""
        self._inside = None
        self._waits = ~np.isnan(self._radii)
        self._waiting = self._count

    # Where they are.

    def address(self, numbers: Ids) -> tuple[Floats, Ids]:
        """The radii and the places of some."""
        places = np.full(len(numbers), WAITING, np.int64)
        placed = ~self._waits[numbers]
        if self._inside is not None and placed.any():
            places[placed] = places_of(*self._inside.addresses(numbers[placed]))
        return self._radii[numbers], places

    def take_shifted(self) -> Ids:
        """Those whose places may have become others since this was asked last."""
        shifts = [] if self._inside is None else self._inside.take_shifts()
        radii = np.unique([shift.radius for shift in shifts])
        return np.flatnonzero(np.isin(self._radii, radii) & ~self._waits)

    def _check(self) -> None:
        there = ~np.isnan(self._radii)
        assert self._count == there.sum()
        assert self._waiting == self._waits.sum()
        assert not (self._waits & ~there).any()
        if self._inside is None:
            assert self._waiting == self._count
            return
        self._inside._check()
        table = self._inside.dump()
        ids = table.column("id").to_numpy()
        assert np.array_equal(ids, np.flatnonzero(there & ~self._waits))
        assert np.array_equal(table.column("radius").to_numpy(), self._radii[ids])
