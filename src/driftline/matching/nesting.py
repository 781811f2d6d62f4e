"""Which boxes may contain this one, and which may it contain?

The ends of a box are an event: an attribute for the low end and one for the high end of each
attribute. What contains it, and what it contains, are then two sets of filters over such events,

    contains   low price >= :low price AND high price <= :high price
    contained  low price <= :low price AND high price >= :high price

where the parameters are the ends of the boxes that are held. So an index of filters answers both
questions, and everything it can do about many filters is of use here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from driftline.matching.box import (
    BETWEEN,
    EVERYWHERE,
    FROM,
    POINT,
    TO,
    Box,
    Shape,
    high_of,
    low_of,
    point_of,
)
from driftline.matching.matcher import Matcher
from driftline.model.constraint import Constraint, Operator
from driftline.model.event import Event
from driftline.model.expression import Parameter
from driftline.model.filter import Filter

# As many shapes of filters as a system is likely to have.
_REMEMBERED = 4096


class Nesting:
    """Boxes by id. `around` and `inside` may find too much, never too little."""

    __slots__ = ("_contained", "_containing", "_uses")

    def __init__(self, make_matcher: Callable[[], Matcher]) -> None:
        self._containing = make_matcher()
        self._contained = make_matcher()
        # How many boxes have ends on each attribute: what an event must speak of.
        self._uses: dict[str, int] = {}

    def add(self, id: str, box: Box) -> None:
        """Take in a box whose id is new."""
        self._containing.add(id, _containing(box.shape), box.bounds)
        self._contained.add(id, _contained(tuple(box.ends)), box.bounds)
        for name in box.ends:
            self._uses[name] = self._uses.get(name, 0) + 1

    def discard(self, id: str, box: Box) -> None:
        """Forget a box that is there."""
        self._containing.discard(id)
        self._contained.discard(id)
        for name in box.ends:
            self._uses[name] -= 1
            if not self._uses[name]:
                del self._uses[name]

    def around(self, box: Box) -> list[str]:
        """The boxes that may contain this one."""
        # What has an end on an attribute that this box has none on does not contain it.
        return self._containing.match(box.event)

    def inside(self, box: Box) -> list[str]:
        """The boxes that this one may contain."""
        return self._contained.match(self._event(box))

    def _event(self, box: Box) -> Event:
        """The box, and everywhere on all attributes that boxes in here have ends on."""
        if self._uses.keys() <= box.ends.keys():
            return box.event
        low, high = EVERYWHERE
        ends = {}
        for name in self._uses:
            ends[low_of(name)], ends[high_of(name)] = low, high
        return Event("box", {**ends, **box.bounds})

    def __len__(self) -> int:
        return len(self._containing)

    def _check(self) -> None:
        self._containing._check()
        self._contained._check()
        assert len(self._containing) == len(self._contained)


@lru_cache(maxsize=_REMEMBERED)
def _containing(shape: Shape) -> tuple[Filter, ...]:
    asked: list[Constraint] = []
    for name, ends in shape:
        low, high = Parameter(low_of(name)), Parameter(high_of(name))
        if ends == POINT:
            # It contains the same point only, and an equality is what an index looks up first.
            asked.append(Constraint(point_of(name), Operator.EQ, Parameter(point_of(name))))
            continue
        if ends & FROM:
            asked.append(Constraint(low_of(name), Operator.GE, low))
        if ends & TO:
            asked.append(Constraint(high_of(name), Operator.LE, high))
        if ends == BETWEEN:
            # It follows from the two, and makes the low end lie in an interval as narrow as the
            # box: an index finds narrow intervals without looking at the others.
            asked.append(Constraint(low_of(name), Operator.LE, high))
    # A tuple that stays the same one: an index knows what it has prepared by its identity.
    return (Filter(None, tuple(asked)),)


@lru_cache(maxsize=_REMEMBERED)
def _contained(names: tuple[str, ...]) -> tuple[Filter, ...]:
    asked: list[Constraint] = []
    for name in names:
        asked.append(Constraint(low_of(name), Operator.LE, Parameter(low_of(name))))
        asked.append(Constraint(high_of(name), Operator.GE, Parameter(high_of(name))))
    # A tuple that stays the same one: an index knows what it has prepared by its identity.
    return (Filter(None, tuple(asked)),)
