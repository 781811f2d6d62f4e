"""How is the work shared out where one server should not do all of it? [VALUE §5]

A *primary* server knows all radii and says, of a value, which of them it concerns: as a whole or in
part. For each radius a *secondary* server knows those who have it, and says who of them is told: an
arc of their circle. It hears of the values that concern its radius, and of no others.

    value ──▶ primary ──ranges of radii──▶ secondaries ──arcs──▶ those who are told

The primary cannot do with less than the whole structure: what is left of a radius told in part is
known only from its members. In a broker that keeps a table both are one (see `reformulate`), and
what would be said between them is not said at all: `driftline bench value-based` counts it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import NamedTuple

from driftline.stateful.value_based.classes import Classes
from driftline.stateful.value_based.combined import Combined
from driftline.stateful.value_based.reference import DEFAULT
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.span import Span


class Affected(NamedTuple):
    """Radii that a value concerns, from one to another."""

    low: float
    high: float

    def has(self, radius: float) -> bool:
        """Is a radius among them?"""
        return self.low <= radius <= self.high


class Primary:
    """Which radii does a value concern?"""

    def __init__(self, value: float, rule: Rule = DEFAULT) -> None:
        self._structure = Combined(value, rule)
        # How many have each radius, and the radii in order.
        self._count: dict[float, int] = {}
        self._radii: list[float] = []

    @property
    def value(self) -> float:
        """The current value."""
        return self._structure.value

    def insert(self, id: int, radius: float) -> None:
        """Begin a subscription."""
        self._structure.insert(id, radius)
        if radius not in self._count:
            insort(self._radii, radius)
        self._count[radius] = self._count.get(radius, 0) + 1

    def delete(self, id: int) -> None:
        """End a subscription."""
        radius = self._structure.address(id).radius
        self._structure.delete(id)
        self._count[radius] -= 1
        if not self._count[radius]:
            del self._count[radius], self._radii[bisect_left(self._radii, radius)]

    def event(self, value: float) -> list[Affected]:
        """There is a new value: the radii that it concerns, as few ranges as there can be."""
        ranges: list[Affected] = []
        for span in self._structure.event(value):
            if ranges and self._touch(ranges[-1].high, span.low):
                ranges[-1] = Affected(ranges[-1].low, span.high)
            else:
                ranges.append(Affected(span.low, span.high))
        return ranges

    def _touch(self, high: float, low: float) -> bool:
        """Is there no radius between two? What is told in part is no gap either."""
        return bisect_left(self._radii, low) <= bisect_right(self._radii, high)

    def _check(self) -> None:
        self._structure._check()
        assert self._radii == sorted(self._count)
        assert sum(self._count.values()) == len(self._structure)


class Secondary:
    """Who of those with one radius is told?

    It may not have heard of the current value, as that concerned nobody here; so whoever comes says
    what the value is.
    """

    def __init__(self, radius: float, value: float, rule: Rule = DEFAULT) -> None:
        self.radius = radius
        self._structure = Classes(value, rule)

    def insert(self, id: int, value: float) -> None:
        """Begin a subscription, which is told the current value."""
        told = self._structure.event(value)
        assert not told, "a value that concerned somebody was not said"
        self._structure.insert(id, self.radius)

    def delete(self, id: int) -> None:
        """End a subscription."""
        self._structure.delete(id)

    def event(self, value: float) -> list[Span]:
        """A value concerns this radius: who is told, as one arc or as a whole."""
        return self._structure.event(value)

    def tell(self, value: float) -> list[int]:
        """The same, as ids."""
        return self._structure.tell(value)

    def __len__(self) -> int:
        return len(self._structure)

    def _check(self) -> None:
        self._structure._check()
