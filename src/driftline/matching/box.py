"""Between which ends does a filter lie?

A filter seen as a box: each attribute it asks something of lies between two numbers. If a filter
covers another then its box contains the other's, so covering can be looked for among numbers, which
an index is good at. The converse does not hold (a box says nothing of `!=` or of patterns), and
what is found must be verified.

    >>> from driftline.language.sql import parse
    >>> from driftline.model.covering import domains_of
    >>> (one,) = parse("SELECT * FROM quote WHERE price BETWEEN 5 AND 9 AND volume > 100").filters()
    >>> box = box_of(one, domains_of(one))
    >>> box.ends["price"], box.ends["volume"]
    ((5.0, 9.0), (100.0, 9007199254740991.0))
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from math import frexp
from typing import NamedTuple, TypeAlias

from driftline.model.constraint import Constraint, Operator
from driftline.model.domain import Domain
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.value import Kind, Value, comparable, kind_of, microseconds_of

Ends: TypeAlias = tuple[float, float]

# Which ends of an attribute are not at infinity, or are they one?
FROM, TO, POINT = 1, 2, 4
BETWEEN = FROM | TO
Shape: TypeAlias = tuple[tuple[str, int], ...]

# Beyond this lies everything that is larger: integers above it are not all floats, and an index
# would have to look at each twice.
FAR = 2.0**53 - 1

EVERYWHERE: Ends = (-FAR, FAR)

TYPE = ""
"""The event's type among the attributes; no attribute has this name."""
NOWHERE = "\n"
"""No attribute at all; none is asked for by this name."""

NARROWEST = -1100
"""The width of a point as a power of 2: below that of all others."""

_ORDERED = (Kind.NUMBER, Kind.TIME)


class BoxKind:
    """What a shape says: which attributes are fixed, and which one boxes are ordered by."""

    __slots__ = ("along", "fixed", "points")

    def __init__(self, shape: Shape) -> None:
        self.points = tuple(name for name, ends in shape if ends == POINT)
        self.fixed = frozenset(self.points)
        others = [(name, ends) for name, ends in shape if ends not in (POINT, 0)]
        # Best one that has both ends. Without any, all stand at the same place.
        others.sort(key=lambda one: one[1] != BETWEEN)
        self.along = others[0][0] if others else NOWHERE


kind_of_shape = lru_cache(maxsize=4096)(BoxKind)


class Place(NamedTuple):
    """The points where attributes are fixed, the ends along one, and the width as a power of 2."""

    kind: BoxKind
    points: tuple[float, ...]
    low: float
    high: float
    width: int


@dataclass(frozen=True)
class Box:
    """What a filter asks, as far as it can be compared quickly.

    `asks` is part of what every filter asks that it covers: the attributes that must be there, and
    the conditions that are no interval.
    """

    asks: frozenset[object]
    ends: Mapping[str, Ends]

    # Worked out once for all that ask.

    @cached_property
    def bounds(self) -> dict[str, float]:
        """The ends by name; where both are one, that one too."""
        found: dict[str, float] = {}
        for name, (low, high) in self.ends.items():
            found[low_of(name)], found[high_of(name)] = low, high
            if low == high:
                found[point_of(name)] = low
        return found

    @cached_property
    def shape(self) -> Shape:
        """Its attributes, and which ends each has."""
        lowest, highest = EVERYWHERE
        return tuple(
            (name, POINT) if low == high else (name, (low > lowest) * FROM | (high < highest) * TO)
            for name, (low, high) in self.ends.items()
        )

    @cached_property
    def place(self) -> Place:
        """Where it stands among boxes that fix the same attributes."""
        return self.place_as(kind_of_shape(self.shape))

    def place_as(self, kind: BoxKind) -> Place:
        """Where it would stand among boxes of a kind that fixes no attribute this one does not."""
        low, high = self.ends.get(kind.along, EVERYWHERE)
        points = tuple([self.ends[name][0] for name in kind.points])
        width = frexp(high - low)[1] if low < high else NARROWEST
        return Place(kind, points, low, high, width)

    @cached_property
    def event(self) -> Event:
        """The ends as an event."""
        return Event("box", self.bounds)

    def may_contain(self, other: Box) -> bool:
        """Could a filter with this box cover one with the other? May wrongly say yes, never no."""
        if not self.asks <= other.asks:
            return False
        for name, (low, high) in self.ends.items():
            inner_low, inner_high = other.ends.get(name, EVERYWHERE)
            if inner_low < low or inner_high > high:
                return False
        return True


def low_of(name: str) -> str:
    """How the low end of an attribute is called."""
    return f"low {name}"


def high_of(name: str) -> str:
    """How the high end of an attribute is called."""
    return f"high {name}"


def point_of(name: str) -> str:
    """How both ends are called, where they are one."""
    return f"point {name}"


def box_of(one: Filter, domains: Mapping[str, Domain]) -> Box:
    """The box of a filter, given what each attribute can be; none of these may be empty."""
    asks: set[object] = set(one.conditions)
    ends: dict[str, Ends] = {}
    for constraint in one.constraints:
        asks.update(_asked(constraint))
    for name in sorted(domains):
        if domains[name].present:
            ends[name] = _ends(domains[name])
    ends[TYPE] = EVERYWHERE if one.type is None else (_number(one.type),) * 2
    return Box(frozenset(asks), ends)


def _asked(constraint: Constraint) -> tuple[object, ...]:
    if constraint.operator is Operator.ABSENT:
        return (constraint,)
    # A bound that moves is implied by the same one only.
    return (constraint.attribute,) if constraint.constant else (constraint.attribute, constraint)


def _ends(domain: Domain) -> Ends:
    if domain.values is not None:
        if len(set(map(comparable, domain.values))) == 1:
            return (_number(domain.values[0]),) * 2
        kinds = set(map(kind_of, domain.values))
        if len(kinds) > 1 or not kinds <= {*_ORDERED}:
            return EVERYWHERE
        numbers = [*map(_number, domain.values)]
        return min(numbers), max(numbers)
    if domain.kind not in _ORDERED:
        return EVERYWHERE
    low, high = EVERYWHERE
    return (
        low if domain.low is None else _number(domain.low),
        high if domain.high is None else _number(domain.high),
    )


def _number(value: Value) -> float:
    """A number for a value: the same for equal values, and never out of order where there is one.

    Some values share one, two strings for example: then a box is found that does not contain the
    other.
    """
    if isinstance(value, str | bytes):
        return float(zlib.crc32(value.encode() if isinstance(value, str) else value))
    plain = microseconds_of(value) if isinstance(value, datetime) else value
    return float(min(max(plain, -FAR), FAR))
