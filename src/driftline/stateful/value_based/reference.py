"""Who is told of a value? From the definition, by going through all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.span import Address, Span, spans_of
from driftline.stateful.value_based.structure import (
    Held,
    admit_centre,
    admit_held,
    admit_new,
    nearest,
    read_table,
    write_table,
)

DEFAULT = Rule()


@dataclass(slots=True)
class _Subscription:
    radius: float
    centre: float


class Reference:
    """A structure that has none: subscriptions by id. An id is its own ring."""

    __slots__ = ("_held", "rule", "value")

    def __init__(self, value: float, rule: Rule = DEFAULT) -> None:
        self.rule = rule
        self.value = rule.admit_value(value)
        self._held: dict[int, _Subscription] = {}

    def insert(
        self, id: int, radius: float, centre: float | None = None, *, shared: bool = False
    ) -> float:
        """See `Structure`."""
        id, radius = admit_new(self, id), self.rule.admit_radius(radius)
        if centre is not None:
            centre = admit_centre(self.rule, self.value, radius, centre)
        elif shared:
            alike = (one.centre for one in self._held.values() if one.radius == radius)
            centre = nearest(alike, self.value)
        self._held[id] = _Subscription(radius, self.value if centre is None else centre)
        return self._held[id].centre

    def delete(self, id: int) -> None:
        """See `Structure`."""
        del self._held[admit_held(self, id)]

    def change(self, id: int, radius: float) -> bool:
        """See `Structure`."""
        one, radius = self._held[admit_held(self, id)], self.rule.admit_radius(radius)
        one.radius = radius
        overdue = self.rule.tells(one.centre, radius, self.value)
        if overdue:
            one.centre = self.value
        return overdue

    def event(self, value: float) -> list[Span]:
        """See `Structure`."""
        told = set(self.tell(value))
        return spans_of(sorted((one.radius, id, id in told) for id, one in self._held.items()))

    def tell(self, value: float) -> list[int]:
        """See `Structure`; O(n)."""
        self.value = self.rule.admit_value(value)
        told = [
            id
            for id, one in self._held.items()
            if self.rule.tells(one.centre, one.radius, self.value)
        ]
        for id in told:
            self._held[id].centre = self.value
        return told

    def address(self, id: int) -> Address:
        """See `Structure`."""
        return Address(self._held[admit_held(self, id)].radius, id)

    def centre(self, id: int) -> float:
        """See `Structure`."""
        return self._held[admit_held(self, id)].centre

    def dump(self) -> pa.Table:
        """See `Structure`."""
        rows = (Held(id, one.radius, one.centre) for id, one in self._held.items())
        return write_table(self.rule, self.value, rows)

    @classmethod
    def load(cls, table: pa.Table) -> Self:
        """See `Structure`."""
        read = read_table(table)
        made = cls(read.value, read.rule)
        made._held = {row.id: _Subscription(row.radius, row.centre) for row in read.rows()}
        return made

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, id: object) -> bool:
        return id in self._held

    def __iter__(self) -> Iterator[int]:
        return iter(self._held)

    def _check(self) -> None:
        for one in self._held.values():
            assert not self.rule.tells(one.centre, one.radius, self.value)
