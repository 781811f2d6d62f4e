"""B-tree(lr): both end points of everybody, in order. [VALUE §2.3]

The value comes from within all intervals, so the ends that it passes on its way are those of the
ones to tell. Who is told gets two new ends: two deletes and two inserts each, which is what makes
it slow, O(k log n); and there is no shorter way to say who is told than to name them.

The order is kept in one list, which moves a part of itself at each change.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from driftline.stateful.value_based.plain import Plain
from driftline.stateful.value_based.reference import DEFAULT
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.span import Address, Span
from driftline.stateful.value_based.structure import admit_held


class BTreeLR(Plain):
    """See `Structure`: O(k log n) an event that k are told of. An id is its own ring."""

    def __init__(self, value: float, rule: Rule = DEFAULT) -> None:
        super().__init__(value, rule)
        self._centres: dict[int, float] = {}
        self._ends: list[tuple[float, int]] = []

    def _put(self, id: int, radius: float, centre: float) -> None:
        self._centres[id] = centre
        insort(self._ends, (self.rule.low(centre, radius), id))
        insort(self._ends, (self.rule.high(centre, radius), id))

    def _take(self, id: int, radius: float) -> None:
        centre = self._centres.pop(id)
        for end in (self.rule.low(centre, radius), self.rule.high(centre, radius)):
            del self._ends[bisect_left(self._ends, (end, id))]

    def _move(self, value: float) -> list[Span]:
        low, high = min(value, self.value), max(value, self.value)
        begin = bisect_left(self._ends, (low, -1))
        end = begin
        told: dict[int, None] = {}  # in order, each once
        while end < len(self._ends) and self._ends[end][0] <= high:
            id = self._ends[end][1]
            # An end may be the value itself, or the one before: ask for what was said.
            if self.rule.tells(self._centres[id], self._radii[id], value):
                told[id] = None
            end += 1
        for id in told:
            self._take(id, self._radii[id])
            self._put(id, self._radii[id], value)
        return [Span(self._radii[id], self._radii[id], id, id) for id in told]

    def _ids(self, spans: list[Span]) -> list[int]:
        return [span.first_ring for span in spans]

    def address(self, id: int) -> Address:
        """See `Structure`."""
        return Address(self._radii[admit_held(self, id)], id)

    def centre(self, id: int) -> float:
        """See `Structure`."""
        return self._centres[admit_held(self, id)]

    def _check(self) -> None:
        super()._check()
        assert self._ends == sorted(
            (end(self._centres[id], radius), id)
            for id, radius in self._radii.items()
            for end in (self.rule.low, self.rule.high)
        )
