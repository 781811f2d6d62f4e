"""Does a neighbour that is told updates know what one that is told everything knows?"""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from driftline import parse
from driftline.broker.joining import joined
from driftline.matching.relations import Relations
from driftline.model.filter import Filter
from driftline.model.message import Interest
from driftline.moving.parametric.slots import closed, opened
from driftline.moving.parametric.updates import Said, Spoken, differing, updated
from driftline.routing.table import Table
from driftline.testing.filters import filters


@given(filters())
def test_a_filter_comes_back_from_its_shape_and_values(alternatives: tuple[Filter, ...]) -> None:
    for one in alternatives:
        shape, values = opened(one)
        assert closed(shape, values) == one
        assert updated(one, differing(values, values)) == one


def test_every_constant_has_a_slot() -> None:
    (one,) = parse("SELECT * FROM q WHERE a IN (1, 2) AND s = 'x' AND b + 2 < c * 3").filters()
    shape, values = opened(one)
    assert str(shape) == "q: a IN (:0, :1) AND s = :2 AND b + :3 < c * :4"
    assert values == (1, 2, "x", 2, 3)
    assert str(updated(one, {1: 7, 3: 2.5})) == "q: a IN (1, 7) AND s = 'x' AND b + 2.5 < c * 3"
    assert updated(one, {5: 1}) is None
    # TRUE is no 1, and what is told must say so.
    assert differing((1, "a"), (True, "a")) == {0: True}


def wanted(draw: random.Random) -> Filter:
    low = draw.randrange(8)
    shapes = (
        "x < {low}",
        "x = {low}",
        "x BETWEEN {low} AND {high}",
        "x < {low} AND y = 1",
        "y = 1",
    )
    text = draw.choice(shapes).format(low=low, high=low + 2)
    (one,) = parse(f"SELECT * WHERE {text}").filters()
    return one


def hear(known: dict[str, Filter], said: Said | Interest) -> None:
    for key, moved in said.updates.items():
        after = updated(known[key], moved)
        assert after is not None
        known[key] = after
    for key in said.removed:
        del known[key]
    assert known.keys().isdisjoint(said.added)
    known.update(said.added)


@pytest.mark.parametrize("seed", range(40))
def test_updates_say_what_changes_say(seed: int) -> None:
    """One by one, or several joined while they wait for a link."""
    draw = random.Random(seed)
    table: Table[Filter] = Table(Relations())
    table.open("n")
    spoken = Spoken()
    known: dict[str, Filter] = {}
    waiting: list[Interest] = []
    count = 0
    for _ in range(200):
        for _ in range(draw.choice((1, 1, 3))):
            if draw.random() < 0.8:
                table.put("a", draw.randrange(6), wanted(draw))
            else:
                table.drop("a", draw.randrange(6))
        for change in table.settle().values():
            said = spoken.say(change.added, change.removed)
            count += len(said.updates)
            waiting.append(Interest(said.added, said.removed, updates=said.updates))
        if waiting and draw.random() < 0.5:
            together = joined(waiting)
            assert isinstance(together, Interest)
            # A key that came and went while it waited is unknown to the neighbour.
            removed = tuple(key for key in together.removed if key in known)
            hear(known, Interest(together.added, removed, updates=together.updates))
            waiting.clear()
        if not waiting:
            assert known == spoken.all(table.told("n"))
            assert sorted(map(str, known.values())) == sorted(map(str, table.told("n").values()))
    assert count > 20
