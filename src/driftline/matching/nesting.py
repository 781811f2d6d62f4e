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
from typing import TypeAlias

from driftline.matching.box import EVERYWHERE, Box
from driftline.matching.matcher import Matcher
from driftline.model.constraint import Constraint, Operator
from driftline.model.event import Event
from driftline.model.expression import Parameter
from driftline.model.filter import Filter

# As many shapes of filters as a system is likely to have.
_REMEMBERED = 4096

# Which ends of an attribute are not at infinity, or are they one?
_FROM, _TO, _POINT = 1, 2, 4
_Shape: TypeAlias = tuple[tuple[str, int], ...]


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
        bounds = _bounds(box)
        self._containing.add(id, _containing(_shape(box)), bounds)
        self._contained.add(id, _contained(tuple(box.ends)), bounds)
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
        return self._containing.match(self._event(box))

    def inside(self, box: Box) -> list[str]:
        """The boxes that this one may contain."""
        return self._contained.match(self._event(box))

    def _event(self, box: Box) -> Event:
        low, high = EVERYWHERE
        ends = {}
        for name in self._uses:
            ends[_low(name)], ends[_high(name)] = low, high
        ends.update(_bounds(box))
        return Event("box", ends)

    def __len__(self) -> int:
        return len(self._containing)

    def _check(self) -> None:
        self._containing._check()
        self._contained._check()
        assert len(self._containing) == len(self._contained)


def _low(name: str) -> str:
    return f"low {name}"


def _high(name: str) -> str:
    return f"high {name}"


def _point(name: str) -> str:
    return f"point {name}"


def _bounds(box: Box) -> dict[str, float]:
    """The ends by name; where both are one, that one too."""
    found: dict[str, float] = {}
    for name, (low, high) in box.ends.items():
        found[_low(name)], found[_high(name)] = low, high
        if low == high:
            found[_point(name)] = low
    return found


def _shape(box: Box) -> _Shape:
    lowest, highest = EVERYWHERE
    return tuple(
        (name, _POINT) if low == high else (name, (low > lowest) * _FROM | (high < highest) * _TO)
        for name, (low, high) in box.ends.items()
    )


@lru_cache(maxsize=_REMEMBERED)
def _containing(shape: _Shape) -> tuple[Filter, ...]:
    asked: list[Constraint] = []
    for name, ends in shape:
        low, high = Parameter(_low(name)), Parameter(_high(name))
        if ends == _POINT:
            # It contains the same point only, and an equality is what an index looks up first.
            asked.append(Constraint(_point(name), Operator.EQ, Parameter(_point(name))))
            continue
        if ends & _FROM:
            asked.append(Constraint(_low(name), Operator.GE, low))
        if ends & _TO:
            asked.append(Constraint(_high(name), Operator.LE, high))
        if ends == _FROM | _TO:
            # It follows from the two, and makes the low end lie in an interval as narrow as the
            # box: an index finds narrow intervals without looking at the others.
            asked.append(Constraint(_low(name), Operator.LE, high))
    # A tuple that stays the same one: an index knows what it has prepared by its identity.
    return (Filter(None, tuple(asked)),)


@lru_cache(maxsize=_REMEMBERED)
def _contained(names: tuple[str, ...]) -> tuple[Filter, ...]:
    asked: list[Constraint] = []
    for name in names:
        asked.append(Constraint(_low(name), Operator.LE, Parameter(_low(name))))
        asked.append(Constraint(_high(name), Operator.GE, Parameter(_high(name))))
    # A tuple that stays the same one: an index knows what it has prepared by its identity.
    return (Filter(None, tuple(asked)),)
