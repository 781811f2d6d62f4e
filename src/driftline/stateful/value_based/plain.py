"""What have the paper's structures in common? Everything but how they find who is told.

They hold one subscription after another and say who is told of a value; admitting, choosing a
centre, changing a radius, dumping and loading are the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import pyarrow as pa

from driftline.errors import InvalidValue
from driftline.model.value import show
from driftline.stateful.value_based.reference import DEFAULT
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.span import Address, Span
from driftline.stateful.value_based.structure import (
    Held,
    admit_centre,
    admit_held,
    admit_new,
    nearest,
    read_table,
    write_table,
)


class Plain(ABC):
    """See `Structure`."""

    def __init__(self, value: float, rule: Rule = DEFAULT) -> None:
        if not self._takes(rule):
            raise InvalidValue("rule", "one that this structure can keep", show(rule))
        self.rule = rule
        self.value = rule.admit_value(value)
        self._radii: dict[int, float] = {}

    def _takes(self, rule: Rule) -> bool:
        return True

    @abstractmethod
    def _put(self, id: int, radius: float, centre: float) -> None:
        """Take in a subscription that nobody need tell; InvalidValue if it does not fit."""

    @abstractmethod
    def _take(self, id: int, radius: float) -> None:
        """Take out a subscription."""

    @abstractmethod
    def _move(self, value: float) -> list[Span]:
        """The value is another, not yet noted: who is told, whose centre it is now."""

    @abstractmethod
    def _ids(self, spans: list[Span]) -> list[int]:
        """The ids of those in these spans, which were just said."""

    @abstractmethod
    def address(self, id: int) -> Address:
        """See `Structure`."""

    @abstractmethod
    def centre(self, id: int) -> float:
        """See `Structure`."""

    def insert(
        self, id: int, radius: float, centre: float | None = None, *, shared: bool = False
    ) -> float:
        """See `Structure`."""
        id, radius = admit_new(self, id), self.rule.admit_radius(radius)
        if centre is not None:
            centre = admit_centre(self.rule, self.value, radius, centre)
        elif shared:
            alike = (self.centre(one) for one, known in self._radii.items() if known == radius)
            centre = nearest(alike, self.value)
        centre = self.value if centre is None else centre
        self._put(id, radius, centre)
        self._radii[id] = radius
        return centre

    def delete(self, id: int) -> None:
        """See `Structure`."""
        id = admit_held(self, id)
        self._take(id, self._radii.pop(id))

    def change(self, id: int, radius: float) -> bool:
        """See `Structure`."""
        id, radius = admit_held(self, id), self.rule.admit_radius(radius)
        before, centre = self._radii[id], self.centre(id)
        overdue = self.rule.tells(centre, radius, self.value)
        self._take(id, before)
        try:
            self._put(id, radius, self.value if overdue else centre)
        except InvalidValue:
            self._put(id, before, centre)
            raise
        self._radii[id] = radius
        return overdue

    def event(self, value: float) -> list[Span]:
        """See `Structure`."""
        value = self.rule.admit_value(value)
        spans = self._move(value) if self._radii and value != self.value else []
        self.value = value
        return spans

    def tell(self, value: float) -> list[int]:
        """See `Structure`."""
        return self._ids(self.event(value))

    def dump(self) -> pa.Table:
        """See `Structure`."""
        rows = (Held(id, radius, self.centre(id)) for id, radius in self._radii.items())
        return write_table(self.rule, self.value, rows)

    @classmethod
    def load(cls, table: pa.Table) -> Self:
        """See `Structure`."""
        read = read_table(table)
        made = cls(read.value, read.rule)
        # In the order of their centres, which is that of a circle.
        for row in sorted(read.rows(), key=lambda row: (row.radius, row.centre)):
            made.insert(row.id, row.radius, row.centre)
        return made

    def __len__(self) -> int:
        return len(self._radii)

    def __contains__(self, id: object) -> bool:
        return id in self._radii

    def _check(self) -> None:
        for id, radius in self._radii.items():
            assert not self.rule.tells(self.centre(id), radius, self.value)
