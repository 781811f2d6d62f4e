"""How is it said who is told? [VALUE §3.1, §4.4]

A subscription has an address that no event changes: its radius, the number of its ring among those
with that radius (nearly always 0), and its label, a place in the circle of its ring. All who are
told of a value are said in a few spans of addresses: whole rings between two radii, or an arc of
one ring. So a network that knows filters on static attributes can bring a value to those concerned.

Where there is no label left between two, some labels of a ring move by so much: a shift says it to
all who know addresses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

LABELS = 1 << 64
"""Labels are numbers modulo this."""


class Address(NamedTuple):
    """Where a subscription is found, whatever it was last told."""

    radius: float
    ring: int = 0
    label: int = 0


class Span(NamedTuple):
    """All rings from one to another, or of one ring those from one label to another, round.

    >>> Span(2.0, 4.0).has(Address(3.0)), Span(4.0, 4.0, arc=(9, 2)).has(Address(4.0, 0, 1))
    (True, True)
    """

    low: float
    high: float
    first_ring: int = 0
    last_ring: int = 0
    arc: tuple[int, int] | None = None

    def has(self, address: Address) -> bool:
        """Is a subscription meant?"""
        radius, ring, label = address
        first, last = (self.low, self.first_ring), (self.high, self.last_ring)
        if not first <= (radius, ring) <= last:
            return False
        if self.arc is None:
            return True
        start, end = self.arc
        return (label - start) % LABELS <= (end - start) % LABELS


def spans_of(rings: Iterable[tuple[float, int, bool]]) -> list[Span]:
    """The fewest spans of whole rings: of all rings, in order, is given whether they are told.

    >>> spans_of([(2.0, 0, True), (3.0, 0, True), (3.0, 1, False), (5.0, 0, True)])[0]
    Span(low=2.0, high=3.0, first_ring=0, last_ring=0, arc=None)
    """
    spans: list[Span] = []
    extends = False
    for radius, ring, told in rings:
        if told and extends:
            spans[-1] = spans[-1]._replace(high=radius, last_ring=ring)
        elif told:
            spans.append(Span(radius, radius, ring, ring))
        extends = told
    return spans


class Shift(NamedTuple):
    """Of one ring the labels from one to another, round, are so much more; less, if below 0.

    >>> Shift(4.0, 0, first=9, last=2, by=-5).of(Address(4.0, 0, 1)).label == LABELS - 4
    True
    """

    radius: float
    ring: int
    first: int
    last: int
    by: int

    def of(self, address: Address) -> Address:
        """What an address is afterwards."""
        radius, ring, label = address
        if (radius, ring) != (self.radius, self.ring):
            return address
        if (label - self.first) % LABELS > (self.last - self.first) % LABELS:
            return address
        return Address(radius, ring, (label + self.by) % LABELS)
