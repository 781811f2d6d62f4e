"""B-tree(c): those with one radius by their centres. [VALUE §4.1]

Who is told has the lowest centres, or the highest: a slice from one end, which is put back at the
other as a whole. O(log n + k), and those told must be named.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from driftline.errors import InvalidValue
from driftline.model.subscription import Measure
from driftline.model.value import show
from driftline.stateful.value_based.plain import Plain
from driftline.stateful.value_based.reference import DEFAULT
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.span import Address, Span
from driftline.stateful.value_based.structure import admit_held


class BTreeC(Plain):
    """See `Structure`: O(log n + k) an event that k are told of. An id is its own ring."""

    def __init__(self, value: float, rule: Rule = DEFAULT) -> None:
        super().__init__(value, rule)
        self._centres: dict[int, float] = {}
        self._order: list[tuple[float, int]] = []

    def _takes(self, rule: Rule) -> bool:
        # Those with higher centres must have higher ends.
        return rule.measure is not Measure.PERCENT

    def _put(self, id: int, radius: float, centre: float) -> None:
        if radius != next((known for one, known in self._radii.items() if one != id), radius):
            raise InvalidValue("radius", "the one that all have", show(radius))
        self._centres[id] = centre
        insort(self._order, (centre, id))

    def _take(self, id: int, radius: float) -> None:
        del self._order[bisect_left(self._order, (self._centres.pop(id), id))]

    def _move(self, value: float) -> list[Span]:
        up, count = value > self.value, 0
        radius = next(iter(self._radii.values()))
        order = iter(self._order) if up else reversed(self._order)
        for centre, _ in order:
            if not self.rule.tells(centre, radius, value):
                break
            count += 1
        edge = count if up else len(self._order) - count
        below, above = self._order[:edge], self._order[edge:]
        told = sorted(id for _, id in (below if up else above))
        rest = above if up else below
        for id in told:
            self._centres[id] = value
        at = bisect_left(rest, (value, -1))
        if told and at < len(rest) and rest[at][0] == value:
            self._order = sorted([*rest, *((value, id) for id in told)])
        else:
            self._order = [*rest[:at], *((value, id) for id in told), *rest[at:]]
        return [Span(radius, radius, id, id) for id in told]

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
        assert self._order == sorted((centre, id) for id, centre in self._centres.items())
        assert len(set(self._radii.values())) <= 1
