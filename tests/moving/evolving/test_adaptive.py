"""Which way is taken for what has been seen?"""

from __future__ import annotations

import pytest

from driftline import Event, parse
from driftline.matching.choice import make_matcher
from driftline.moving.evolving.matcher import Evolving

ROWS = 5_000
FILTERS = parse(
    "SELECT * WHERE x >= :x + :d * elapsed() AND x <= :x + 1 + :d * elapsed()"
).filters()


class World:
    """Rows far apart, so that an event finds one of them or none."""

    def __init__(self) -> None:
        self.evolving = Evolving(make_matcher("auto"), "adaptive")
        self.at = 0
        for row in range(ROWS):
            self.evolving.add(str(row), FILTERS, {"x": 10 * row, "d": 0.1})

    def events(self, count: int, each_second: float) -> None:
        for _ in range(count):
            self.at += int(1_000_000 / each_second)
            self.evolving.match(Event("e", {"x": self.at % (10 * ROWS)}).stamped(self.at), {})

    @property
    def way(self) -> str:
        return self.evolving.ways()[0].way


@pytest.fixture(scope="module")
def busy() -> World:
    world = World()
    world.events(2_000, each_second=10_000)
    return world


def test_nothing_is_prepared_for_the_first_events() -> None:
    world = World()
    world.events(20, each_second=100)
    assert world.way == "lazy"
    assert world.evolving.ways()[0].why == "nothing has been seen yet"


def test_bounds_are_kept_when_several_events_share_them() -> None:
    world = World()
    world.events(200, each_second=100)
    assert world.way == "cached"
    assert "100 events to a version" in world.evolving.ways()[0].why


def test_an_index_is_made_when_very_many_do(busy: World) -> None:
    assert busy.way == "versioned"


def test_a_burst_of_changes_is_not_taken_for_a_habit(busy: World) -> None:
    for row in range(300):
        busy.evolving.change(str(row), {"x": 10 * row, "d": -0.1})
    busy.events(40, each_second=10_000)
    assert busy.way == "versioned"


def test_an_index_is_left_when_events_become_rare() -> None:
    world = World()
    world.events(2_000, each_second=10_000)
    assert world.way == "versioned"
    world.events(100, each_second=2)
    assert world.way != "versioned"
    world.evolving._check()
