"""What travels where a primary server and one for each radius share the work? [VALUE §5]

A message from the primary for each range of radii, which reaches the secondaries of these, and
one from each of those for the arc that is told. Where one place keeps all (as a broker that is a
table's home does), nothing travels but its boxes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from driftline.stateful.value_based.address import boxes_of
from driftline.stateful.value_based.combined import Combined
from driftline.stateful.value_based.two_level import Primary, Secondary

_START = 10_000.0
_DOLLARS = 100
_SEED = 7


@dataclass(frozen=True, slots=True)
class Servers:
    """Messages an event."""

    subscriptions: int
    ranges: float
    """From the primary."""
    reached: float
    """Secondaries that these reach."""
    arcs: float
    """From the secondaries."""
    boxes: float
    """From one place that keeps all."""


def measured(size: int, events: int, step: float) -> Servers:
    """Subscriptions with radii of whole dollars come while the value walks; both must agree."""
    draw = random.Random(_SEED)
    primary, alone = Primary(_START), Combined(_START)
    secondaries: dict[float, Secondary] = {}
    ranges = reached = arcs = boxes = 0
    value = _START
    for at in range(events):
        for id in range(at * size // events, (at + 1) * size // events):
            radius = 100.0 * draw.randint(1, _DOLLARS)
            primary.insert(id, radius)
            alone.insert(id, radius)
            if radius not in secondaries:
                secondaries[radius] = Secondary(radius, value)
            secondaries[radius].insert(id, value)
        value = float(round(value + draw.gauss(0, step)))
        said = primary.event(value)
        found = [one for one in secondaries.values() if any(some.has(one.radius) for some in said)]
        told = [one.event(value) for one in found]
        assert all(told), "a secondary heard of a value that concerned nobody there"
        ranges, reached = ranges + len(said), reached + len(found)
        arcs += sum(map(len, told))
        boxes += len(list(boxes_of(alone.event(value), ranked=alone.ranked)))
    return Servers(size, ranges / events, reached / events, arcs / events, boxes / events)
