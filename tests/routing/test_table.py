"""Is each neighbour told what equation 1 says, whatever changes come? [SIENA §5.2]"""

from __future__ import annotations

import random

import pytest

from driftline import parse
from driftline.matching.relations import Relations
from driftline.model.filter import Filter
from driftline.routing.table import Change, Table


def wanted(condition: str) -> Filter:
    (one,) = parse(f"SELECT * WHERE {condition}").filters()
    return one


@pytest.mark.parametrize("seed", range(30))
def test_any_program_of_changes_tells_what_equation_1_says(seed: int) -> None:
    """What the neighbours have put together from the changes is what the table says they know."""
    draw = random.Random(seed)
    table = Table(Relations())
    heard: dict[str, dict[str, Filter]] = {}
    interfaces = ["a", "b", "n1", "n2", "n3"]
    for _ in range(150):
        for _ in range(draw.choice([1, 1, 1, 4])):
            chance, owner = draw.random(), draw.choice(interfaces)
            if chance < 0.55:
                table.put(owner, draw.randrange(8), _drawn(draw))
            elif chance < 0.9:
                table.drop(owner, draw.randrange(8))
            elif chance < 0.92:
                table.drop_all(owner)
            elif owner in heard:
                table.close(owner)
                del heard[owner]
            elif owner.startswith("n"):
                table.open(owner)
                heard[owner] = {}
        for out, change in table.settle().items():
            _hear(heard[out], change)
        table._check()
        assert {out: table.told(out) for out in heard} == heard
    for owner in interfaces:
        table.drop_all(owner)
    for out, change in table.settle().items():
        _hear(heard[out], change)
    table._check()
    assert len(table) == 0
    assert not any(heard.values())


def _drawn(draw: random.Random) -> Filter:
    low = draw.randrange(6)
    other = draw.choice(["", " AND y = 1", " AND y = 2", " AND s LIKE 'a%'", " AND s = 'ab'"])
    shape = draw.choice(["x > {low}", "x BETWEEN {low} AND {high}", "x = {low}", "x < 0 AND x > 1"])
    return wanted(shape.format(low=low, high=low + draw.randrange(4)) + other)


def _hear(heard: dict[str, Filter], change: Change) -> None:
    assert change
    for key in change.removed:
        del heard[key]
    assert heard.keys().isdisjoint(change.added)
    heard.update(change.added)


def test_what_is_uncovered_comes_with_what_uncovers_it() -> None:
    table = Table(Relations())
    table.open("next")
    table.put("a", 1, wanted("x > 0"))
    table.put("b", 1, wanted("x > 5"))
    table.put("b", 2, wanted("x > 7"))
    assert table.settle()["next"].told() == ["+ x > 0"]
    table.drop("a", 1)
    assert table.settle()["next"].told() == ["+ x > 5", "- x > 0"]


def test_a_neighbour_is_not_told_of_its_own_interest() -> None:
    table = Table(Relations())
    for out in ("two", "three"):
        table.open(out)
    table.put("two", 1, wanted("x > 0"))
    assert {out: change.told() for out, change in table.settle().items()} == {"three": ["+ x > 0"]}
    # Now somebody else wants it too, if less of it.
    table.put("local", 1, wanted("x > 5"))
    assert {out: change.told() for out, change in table.settle().items()} == {"two": ["+ x > 5"]}
