"""A primary server and one secondary for each radius tell whom one structure tells. [VALUE §5]"""

from __future__ import annotations

import random

import pytest

from driftline.stateful.value_based.reference import Reference
from driftline.stateful.value_based.two_level import Primary, Secondary


class Servers:
    """A primary, its secondaries, and how much they said to each other."""

    def __init__(self, value: float) -> None:
        self.primary = Primary(value)
        self.secondaries: dict[float, Secondary] = {}
        self.radii: dict[int, float] = {}
        self.heard = 0

    def insert(self, id: int, radius: float) -> None:
        self.primary.insert(id, radius)
        self.radii[id] = radius
        if radius not in self.secondaries:
            self.secondaries[radius] = Secondary(radius, self.primary.value)
        self.secondaries[radius].insert(id, self.primary.value)

    def delete(self, id: int) -> None:
        radius = self.radii.pop(id)
        self.primary.delete(id)
        self.secondaries[radius].delete(id)
        if not len(self.secondaries[radius]):
            del self.secondaries[radius]

    def tell(self, value: float) -> list[int]:
        told = []
        for said in self.primary.event(value):
            for radius, secondary in self.secondaries.items():
                if said.has(radius):
                    self.heard += 1
                    told += secondary.tell(value)
        return sorted(told)


@pytest.mark.parametrize("seed", range(10))
def test_two_levels_tell_whom_the_definition_tells(seed: int) -> None:
    draw = random.Random(seed)
    servers, reference = Servers(100.0), Reference(100.0)
    value, fresh, concerned = 100.0, 0, 0
    for _ in range(400):
        chance = draw.random()
        if chance < 0.4:
            radius = float(draw.randrange(1, 9))
            servers.insert(fresh, radius)
            reference.insert(fresh, radius)
            fresh += 1
        elif chance < 0.5 and servers.radii:
            gone = draw.choice(list(servers.radii))
            servers.delete(gone)
            reference.delete(gone)
        else:
            value += draw.choice((-3, -1, -0.5, 0.5, 1, 3))
            told = sorted(reference.tell(value))
            concerned += len({reference.address(id).radius for id in told})
            assert servers.tell(value) == told
    # A secondary hears of a value only if it concerns somebody with its radius.
    assert servers.heard == concerned
    servers.primary._check()
    for one in servers.secondaries.values():
        one._check()


def test_radii_told_as_a_whole_and_in_part_are_one_range_to_the_primary() -> None:
    servers = Servers(100.0)
    for id, radius in enumerate((2.0, 3.0)):
        servers.insert(id, radius)
    servers.tell(101.0)
    servers.insert(2, 3.0)
    assert servers.primary.event(103.0) == [(2.0, 3.0)]
