"""Scan(r): all by radius, looked at one after the other. [VALUE §3.1]

Radii do not change when one is told, so nothing is moved, and those told next to each other are
said as one range; but everybody is looked at. O(n).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from driftline.stateful.value_based.plain import Plain
from driftline.stateful.value_based.reference import DEFAULT
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.span import Address, Span, spans_of
from driftline.stateful.value_based.structure import admit_held


class ScanR(Plain):
    """See `Structure`: O(n) an event. An id is its own ring."""

    def __init__(self, value: float, rule: Rule = DEFAULT) -> None:
        super().__init__(value, rule)
        self._centres: dict[int, float] = {}
        self._order: list[tuple[float, int]] = []

    def _put(self, id: int, radius: float, centre: float) -> None:
        self._centres[id] = centre
        insort(self._order, (radius, id))

    def _take(self, id: int, radius: float) -> None:
        del self._centres[id]
        del self._order[bisect_left(self._order, (radius, id))]

    def _move(self, value: float) -> list[Span]:
        heard = [
            (radius, id, self.rule.tells(self._centres[id], radius, value))
            for radius, id in self._order
        ]
        self._centres.update((id, value) for _, id, told in heard if told)
        return spans_of(heard)

    def _ids(self, spans: list[Span]) -> list[int]:
        ids: list[int] = []
        for span in spans:
            first = bisect_left(self._order, (span.low, span.first_ring))
            last = bisect_right(self._order, (span.high, span.last_ring))
            ids += [id for _, id in self._order[first:last]]
        return ids

    def address(self, id: int) -> Address:
        """See `Structure`."""
        return Address(self._radii[admit_held(self, id)], id)

    def centre(self, id: int) -> float:
        """See `Structure`."""
        return self._centres[admit_held(self, id)]

    def _check(self) -> None:
        super()._check()
        assert self._order == sorted((radius, id) for id, radius in self._radii.items())
