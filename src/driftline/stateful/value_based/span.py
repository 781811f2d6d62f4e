"""How is it said who is told? [VALUE §3.1, §4.4]

A subscription has an address that no event changes: its radius, the number of its ring among those
with that radius (nearly always 0), and its label, a place in the circle of its ring. All who are
told of a value are said in a few spans of addresses: whole rings between two radii, or an arc of
one ring. So a network that knows filters on static attributes can bring a value to those concerned.
"""

from __future__ import annotations

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
