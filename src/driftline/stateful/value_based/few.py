"""Who is told of the values of an item that few subscribe to? By going through all, as `Reference`.

But addresses are such as a structure can go on with, for few may become many. Who begins with the
radius and the centre of another shares its ring, as both are told together for ever; else it is in
a ring of its own, the first that is free. So all of a ring have one centre, and one label will do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.span import Address, Span, spans_of
from driftline.stateful.value_based.structure import Held, nearest


@dataclass(slots=True)
class _Subscription:
    radius: float
    ring: int
    centre: float


class Few:
    """See `Structure`; what comes in has been admitted. O(n) an event and a change."""

    __slots__ = ("_held", "rule", "value")

    def __init__(self, value: float, rule: Rule, radii: dict[int, float]) -> None:
        """With those who have just been told the value."""
        self.rule = rule
        self.value = value
        self._held = {id: _Subscription(radius, 0, value) for id, radius in radii.items()}

    @classmethod
    def of_one(cls, value: float, rule: Rule, id: int, radius: float, centre: float) -> Few:
        """With one, who was told this centre."""
        made = cls(value, rule, {id: radius})
        made._held[id].centre = centre
        return made

    def insert(self, id: int, radius: float, *, shared: bool = False) -> float:
        """See `Structure`."""
        centre = None
        if shared:
            alike = (one.centre for one in self._held.values() if one.radius == radius)
            centre = nearest(alike, self.value)
        centre = self.value if centre is None else centre
        self._held[id] = _Subscription(radius, self._ring(radius, centre), centre)
        return centre

    def delete(self, id: int) -> None:
        """See `Structure`."""
        del self._held[id]

    def change(self, id: int, radius: float) -> bool:
        """See `Structure`; who has this radius stays where it is."""
        one = self._held[id]
        if one.radius == radius:
            return False
        overdue = self.rule.tells(one.centre, radius, self.value)
        centre = self.value if overdue else one.centre
        self._held[id] = _Subscription(radius, self._ring(radius, centre), centre)
        return overdue

    def event(self, value: float) -> list[Span]:
        """See `Structure`."""
        told = set(self.tell(value))
        rings = {(one.radius, one.ring, id in told) for id, one in self._held.items()}
        return spans_of(sorted(rings))

    def tell(self, value: float) -> list[int]:
        """See `Structure`."""
        self.value = value
        told = [
            id for id, one in self._held.items() if self.rule.tells(one.centre, one.radius, value)
        ]
        for id in told:
            self._held[id].centre = value
        return told

    def address(self, id: int) -> Address:
        """See `Structure`."""
        return Address(self._held[id].radius, self._held[id].ring)

    def centre(self, id: int) -> float:
        """See `Structure`."""
        return self._held[id].centre

    @property
    def ranked(self) -> bool:
        """Is there any ring with another number than 0?"""
        return any(one.ring for one in self._held.values())

    def radii(self) -> dict[int, float]:
        """The radii of all, by id."""
        return {id: one.radius for id, one in self._held.items()}

    def rows(self) -> list[Held]:
        """All of them, as a table has them."""
        return [Held(id, one.radius, one.centre, one.ring, 0) for id, one in self._held.items()]

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, id: object) -> bool:
        return id in self._held

    def __iter__(self) -> Iterator[int]:
        return iter(self._held)

    def _ring(self, radius: float, centre: float) -> int:
        """Where one who begins belongs."""
        alike = [one for one in self._held.values() if one.radius == radius]
        same = [one.ring for one in alike if one.centre == centre]
        if same:
            return min(same)
        used = {one.ring for one in alike}
        return next(ring for ring in count() if ring not in used)

    def _check(self) -> None:
        centres: dict[tuple[float, int], float] = {}
        for one in self._held.values():
            assert not self.rule.tells(one.centre, one.radius, self.value)
            assert centres.setdefault((one.radius, one.ring), one.centre) == one.centre
