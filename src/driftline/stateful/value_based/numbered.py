"""How does an item that many subscribe to have a structure, when their ids are large?

A structure has a place for every id up to the largest. So one of many knows its subscriptions by
small numbers of its own, each of which is used again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

from driftline.stateful.value_based.choice import load, structure_for, with_radii
from driftline.stateful.value_based.few import Few
from driftline.stateful.value_based.packed import Packed
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.span import Address, Shift, Span
from driftline.stateful.value_based.structure import write_table


class Numbered:
    """See `Structure`; what comes in has been admitted."""

    __slots__ = ("_free", "_ids", "_inside", "_numbers")

    def __init__(self, inside: Packed, ids: Iterable[int]) -> None:
        """A structure in which these ids are numbered from 0."""
        self._inside = inside
        self._ids = list(ids)
        self._numbers = {id: number for number, id in enumerate(self._ids)}
        self._free: list[int] = []

    @classmethod
    def begun(cls, value: float, rule: Rule, radii: dict[int, float], label_bits: int) -> Self:
        """With those who have just been told the value."""
        inside = structure_for(value, list(radii.values()), rule, label_bits)
        inside.insert_many(range(len(radii)), list(radii.values()))
        return cls(inside, radii)

    @classmethod
    def grown(cls, few: Few, label_bits: int) -> Self:
        """With those who were few, at the addresses that they have."""
        rows = [row._replace(id=number) for number, row in enumerate(few.rows())]
        return cls(load(write_table(few.rule, few.value, rows), label_bits), few)

    @property
    def value(self) -> float:
        """See `Structure`."""
        return self._inside.value

    @property
    def ranked(self) -> bool:
        """Is there any ring with another number than 0?"""
        return self._inside.ranked

    def insert(self, id: int, radius: float, *, shared: bool = False) -> float:
        """See `Structure`."""
        number = self._free.pop() if self._free else len(self._ids)
        self._inside = with_radii(self._inside, [radius])
        centre = self._inside.insert(number, radius, shared=shared)
        if number == len(self._ids):
            self._ids.append(id)
        self._ids[number], self._numbers[id] = id, number
        return centre

    def delete(self, id: int) -> None:
        """See `Structure`."""
        number = self._numbers.pop(id)
        self._inside.delete(number)
        self._free.append(number)

    def change(self, id: int, radius: float) -> bool:
        """See `Structure`; who has this radius stays where it is."""
        self._inside = with_radii(self._inside, [radius])
        return self._inside.change(self._numbers[id], radius)

    def event(self, value: float) -> list[Span]:
        """See `Structure`."""
        return self._inside.event(value)

    def tell(self, value: float) -> list[int]:
        """See `Structure`."""
        ids = self._ids
        return [ids[number] for number in self._inside.tell(value)]

    def address(self, id: int) -> Address:
        """See `Structure`."""
        return self._inside.address(self._numbers[id])

    def centre(self, id: int) -> float:
        """See `Structure`."""
        return self._inside.centre(self._numbers[id])

    def take_shifts(self) -> list[Shift]:
        """See `Packed`."""
        return self._inside.take_shifts()

    def radii(self) -> dict[int, float]:
        """The radii of all, by id."""
        table = self._inside.dump()
        columns = (table.column(name).to_pylist() for name in ("id", "radius"))
        return {self._ids[number]: radius for number, radius in zip(*columns, strict=True)}

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
        assert len(self._ids) == len(self._numbers) + len(self._free)
