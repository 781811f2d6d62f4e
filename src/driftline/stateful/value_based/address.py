"""How is it said to a network who is told, and how does one ask for what is said? [VALUE §5]

Whoever follows an item has an *address*, a point that no value of the item moves: its radius, and
its place among those with that radius, which is ring and label in one number. Whom a value concerns
is said in boxes, each a range of radii and a range of places, and a filter finds its point in them:

    "$moved:stock"  GROUP 'price by', KEY 'IBM', RADIUS_L 2.0, RADIUS_R 3.5, LO 0, HI 9
    GROUP = 'price by' AND KEY = 'IBM' AND RADIUS_L <= 3 AND RADIUS_R >= 3 AND LO <= 7 AND HI >= 7

An arc that goes round past the last label becomes two boxes. That is rare, and one filter is enough
for an address then, where an attribute that says so (WRAP) would take three.

With two radii, may and must, these are the point [VALUE §6.1].
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from driftline.model.constraint import Operator
from driftline.model.expression import Attribute, Expression, Literal
from driftline.model.filter import Filter
from driftline.model.predicate import Comparison, conjunction
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.stateful.value_based.span import Address, Span

MOVED = "$moved:"
GROUP, KEY = "GROUP", "KEY"
RADIUS_L, RADIUS_R, LO, HI = "RADIUS_L", "RADIUS_R", "LO", "HI"
BOX = (RADIUS_L, RADIUS_R, LO, HI)
GENERATION = "GENERATION"

LABEL_BITS = 40
"""A place has so many bits for a label, above them a ring: all of it is a number of 63 bits."""

_LABELS = 1 << LABEL_BITS
_DROPPED = 64 - LABEL_BITS  # the low bits of a label, which are 0
PLACE_MAX = (1 << 63) - 1

_BOUNDS = {
    (RADIUS_L, Operator.LE): "radius",
    (RADIUS_R, Operator.GE): "radius",
    (LO, Operator.LE): "place",
    (HI, Operator.GE): "place",
    (GROUP, Operator.EQ): "group",
    (KEY, Operator.EQ): "key",
    (GENERATION, Operator.GE): "generation",
}


Point: TypeAlias = tuple[float, float]


class Box(NamedTuple):
    """All addresses with a radius and a place in these ranges."""

    radius_l: float
    radius_r: float
    low: float
    high: float

    def said(self) -> dict[str, Value]:
        """What a message says of it."""
        return dict(zip(BOX, self, strict=True))

    def has(self, point: Point) -> bool:
        """Is a point in it?"""
        radius, place = point
        return self.radius_l <= radius <= self.radius_r and self.low <= place <= self.high


def box_of(said: Mapping[str, Value]) -> Box:
    """The box that a message says."""
    return Box(*(said[name] for name in BOX))  # type: ignore[arg-type]  # as homes write them


EVERYBODY = Box(0.0, math.inf, 0, PLACE_MAX)
EVERY_PAIR = Box(0.0, math.inf, 0.0, math.inf)


def place_of(ring: int, label: int) -> int:
    """Ring and label as one number."""
    return ring << LABEL_BITS | label >> _DROPPED


def shifted(place: int, by: int) -> int:
    """A place whose label is another; labels go round."""
    return place & -_LABELS | (place + by) & (_LABELS - 1)


def boxes_of(spans: Iterable[Span], *, ranked: bool) -> Iterator[Box]:
    """Spans as boxes; `ranked`: there are rings other than 0.

    >>> list(boxes_of([Span(2.0, 4.0)], ranked=False)) == [Box(2.0, 4.0, 0, PLACE_MAX)]
    True
    """
    for span in spans:
        if span.arc is not None:
            for first, last in _round(*(label >> _DROPPED for label in span.arc)):
                ring = span.first_ring << LABEL_BITS
                yield Box(span.low, span.low, ring | first, ring | last)
        elif not ranked:
            yield Box(span.low, span.high, 0, PLACE_MAX)
        else:
            first = span.first_ring << LABEL_BITS
            last = (span.last_ring << LABEL_BITS) + _LABELS - 1
            yield from between((span.low, first), (span.high, last), PLACE_MAX)


def between(first: Point, last: Point, top: float) -> Iterator[Box]:
    """All points from one to another, in the order of both numbers, as boxes."""
    (left, low), (right, high) = first, last
    if left == right:
        yield Box(left, right, low, high)
        return
    if low > 0:
        yield Box(left, left, low, top)
        left = math.nextafter(left, math.inf)
    yield Box(right, right, 0, high)
    inner = math.nextafter(right, -math.inf)
    if left <= inner:
        yield Box(left, inner, 0, top)


def arcs_of(first: int, last: int, by: int) -> list[tuple[int, int]]:
    """Labels that are to be shifted, as ranges of places in ring 0, in an order in which none is
    shifted twice.
    """
    arcs = list(_round(first >> _DROPPED, last >> _DROPPED))
    # Those that go round must find the others gone.
    return arcs[::-1] if by > 0 else arcs


def _round(first: int, last: int) -> Iterator[tuple[int, int]]:
    if first <= last:
        yield first, last
    else:
        yield first, _LABELS - 1
        yield 0, last


class Asked(NamedTuple):
    """What one follower's filter asks for: an item of a group, at an address.

    A `generation` says up to which of its item's relabellings the place is right.
    """

    group: str
    key: Value
    radius: float
    place: float
    generation: int = 0

    @classmethod
    def at(cls, group: str, key: Value, address: Address, generation: int = 0) -> Asked:
        """A follower's filter at its address."""
        place = place_of(address.ring, address.label)
        return cls(group, key, address.radius, place, generation)

    def interest(self, type: str) -> Subscription:
        """The subscription to the messages that concern it."""
        parts = [
            _on(GROUP, "=", self.group),
            _on(KEY, "=", self.key),
            *within(RADIUS_L, RADIUS_R, self.radius),
            *within(LO, HI, self.place),
        ]
        if self.generation:
            parts.append(_on(GENERATION, ">=", self.generation))
        return Subscription(source=type, where=conjunction(tuple(parts)))

    def filter(self, type: str) -> Filter:
        """The same as a filter."""
        (one,) = self.interest(type).filters()
        return one

    def anywhere(self, type: str) -> Subscription:
        """The subscription to all with its radius: where it is among them is not known."""
        parts = (_on(GROUP, "=", self.group), _on(KEY, "=", self.key))
        radius = within(RADIUS_L, RADIUS_R, self.radius)
        return Subscription(source=type, where=conjunction((*parts, *radius)))


def asked_by(one: Filter) -> Asked | None:
    """What a filter asks for, if it is a follower's."""
    if one.type is None or not one.type.startswith(MOVED) or one.conditions:
        return None
    found: dict[str, Value] = {}
    for part in one.constraints:
        name = _BOUNDS.get((part.attribute, part.operator))
        if name is None or not isinstance(part.operand, Literal) or part.operand.value is None:
            return None
        found[name] = part.operand.value
    if not {"group", "key", "radius", "place"} <= found.keys():
        return None
    return Asked(**found)  # type: ignore[arg-type]  # as such filters are written


def within(low: str, high: str, value: float) -> list[Expression]:
    """Is a value between what two attributes say?"""
    return [_on(low, "<=", value), _on(high, ">=", value)]


def of_group(type: str, group: str, radius: float) -> Subscription:
    """The subscription to what concerns a radius, whatever the item and the place."""
    parts = (_on(GROUP, "=", group), *within(RADIUS_L, RADIUS_R, radius))
    return Subscription(source=type, where=conjunction(parts))


def _on(attribute: str, sign: str, value: Value) -> Expression:
    return Comparison(sign, Attribute(attribute), Literal(value))


class Relabelling(NamedTuple):
    """Places of an item that have become others: some are shifted, or all are 0."""

    generation: int
    radius: float
    low: float
    high: float
    by: int | None

    def of(self, asked: Asked) -> Asked:
        """What is asked for when it is done.

        >>> Relabelling(7, 2.0, 0, 9, 5).of(Asked("price by", "IBM", 2.0, 3, 4)).place
        8
        """
        if asked.generation >= self.generation:
            return asked
        if self.by is None:
            return asked._replace(place=0, generation=self.generation)
        if asked.radius != self.radius or not self.low <= asked.place <= self.high:
            return asked
        place = shifted(int(asked.place), self.by)
        return asked._replace(place=place, generation=self.generation)


SHIFT, GONE = "SHIFT", "GONE"


def relabelling_of(said: Mapping[str, Value]) -> Relabelling | None:
    """The relabelling that a message says, if it says one."""
    if GENERATION not in said or not (SHIFT in said or GONE in said):
        return None
    radius, low, high = said[RADIUS_L], said[LO], said[HI]
    return Relabelling(said[GENERATION], radius, low, high, said.get(SHIFT))  # type: ignore[arg-type]
