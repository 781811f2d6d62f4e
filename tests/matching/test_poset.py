"""The filters poset: its shape, what a walk looks at, and that few filters need no index."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest

from driftline import Event, parse
from driftline.matching.poset import Poset
from driftline.matching.relations import FEW, FilterNode
from driftline.model.covering import filter_covers
from driftline.model.filter import Filter

each_way = pytest.mark.parametrize("few", [FEW, 0], ids=["compared", "indexed"])


def filters(condition: str) -> tuple[Filter, ...]:
    return parse(f"SELECT * WHERE {condition}").filters()


def poset(*conditions: str, few: int = FEW) -> Poset:
    made = Poset(few)
    for condition in conditions:
        made.add(condition, filters(condition))
        made._check()
    return made


def roots(made: Poset) -> list[str]:
    return [str(one) for one in made.roots()]


def below(node: FilterNode) -> list[str]:
    return [str(one.said) for one in node.predecessors]


@each_way
def test_only_what_nothing_covers_is_a_root_whatever_the_order(few) -> None:
    conditions = ["x > 0", "x > 10", "x > 10 AND y = 1", "y = 1", "x = 50", "s LIKE 'a%'"]
    for order in (conditions, conditions[::-1]):
        assert sorted(roots(poset(*order, few=few))) == ["s LIKE 'a%'", "x > 0", "y = 1"]


@each_way
def test_discarding_a_root_uncovers_what_it_covered(few) -> None:
    made = poset("x > 0", "x > 10", "x > 20", "x < 5", few=few)
    made.discard("x > 0")
    made._check()
    assert roots(made) == ["x < 5", "x > 10"]
    made.discard("x > 10")
    made._check()
    assert roots(made) == ["x < 5", "x > 20"]


@each_way
def test_a_filter_put_between_two_parts_them(few) -> None:
    made = poset("x > 0", "x > 20", "x > 10", few=few)
    (root,) = made._relations.roots
    (middle,) = root.predecessors
    assert str(middle.said) == "x > 10"
    assert below(middle) == ["x > 20"]
    made.discard("x > 10")
    assert below(root) == ["x > 20"]


@each_way
def test_what_is_covered_from_two_sides_keeps_the_other_when_one_goes(few) -> None:
    made = poset(
        "x > 0", "x > 0 AND y > 0", "x > 0 AND z > 0", "x = 1 AND y = 1 AND z = 1", few=few
    )
    made.discard("x > 0 AND y > 0")
    made._check()
    (root,) = made._relations.roots
    assert below(root) == ["x > 0 AND z > 0"]


@each_way
@pytest.mark.parametrize(
    ("general", "specific"),
    [
        ("x != 5", "x > 7"),
        ("x IN (1, 2, 3)", "x IN (1, 3)"),
        ("x IN (1, 'a', TRUE)", "x = 'a'"),
        ("x IN (1, 2)", "x >= 2 AND x <= 2"),
        ("s LIKE 'ab%'", "s LIKE 'abc%'"),
        ("s LIKE '%b%'", "s = 'abc'"),
        ("s NOT LIKE 'b%'", "s = 'abc'"),
        ("s >= 'a'", "s LIKE 'ab%'"),
        ("s >= 'a' AND s < 'c'", "s = 'b'"),
        ("NOT flag", "flag = FALSE"),
        ("t > TIMESTAMP '2026-01-01 00:00:00Z'", "t = TIMESTAMP '2027-01-01 00:00:00Z'"),
        ("b > X'00'", "b = X'0001'"),
        ("x IS NULL", "x IS NULL AND y = 1"),
        ("x IS NOT NULL", "x + y > 3 AND x > 0"),
        ("x + y > 3", "x + y > 3 AND x > 0"),
        ("x < now() - y", "x < now() - y AND s = 'a'"),
        (f"x > {2**53}", f"x = {2**53 + 1}"),
        (f"x >= {-(2**63)}", f"x = {2**63 - 1}"),
        ("x >= -0.0", "x = 0"),
    ],
)
def test_whatever_covers_is_found_above_and_below(general, specific, few) -> None:
    """Also by the index, which sees of each filter only the box it lies in."""
    (wide,), (narrow,) = filters(general), filters(specific)
    assert filter_covers(wide, narrow)
    for order in ((general, specific), (specific, general)):
        made = poset(*order, few=few)
        assert roots(made) == [str(wide)]


@each_way
def test_a_candidate_that_covers_not_gives_way_to_one_behind_it(few) -> None:
    """Boxes say nothing of patterns: here one that seems to be nearest is not, on either side."""
    made = poset("x > 0", "s LIKE 'b%' AND x > 0", "s LIKE 'a%' AND x > 5", few=few)
    assert roots(made) == ["x > 0"]
    made = poset("s LIKE '%c' AND x > 1", "s = 'ac' AND x > 2", "s LIKE 'a%' AND x > 0", few=few)
    covering = [node for node in made._relations if below(node) == ["s = 'ac' AND x > 2"]]
    assert len(covering) == len(roots(made)) == 2


@each_way
def test_filters_that_say_the_same_are_one(few) -> None:
    made = poset("x > 1", "x > 1.0", "NOT x <= 1", few=few)
    assert len(roots(made)) == 1
    assert made.match(Event("e", {"x": 2})) == ["x > 1", "x > 1.0", "NOT x <= 1"]
    made.discard("x > 1")
    assert made.match(Event("e", {"x": 2})) == ["x > 1.0", "NOT x <= 1"]
    made._check()


@each_way
def test_a_bound_is_compared_as_it_is_now(few) -> None:
    made = poset("x > 10", few=few)
    made.add("moving", filters("x > :low"), {"low": 20})
    assert roots(made) == ["x > 10"]
    made.change("moving", {"low": 10})
    assert len(made._relations) == 1
    made.change("moving", {"low": 5})
    made._check()
    assert roots(made) == ["x > 5"]
    assert made.match(Event("e", {"x": 15})) == ["x > 10", "moving"]


@each_way
def test_what_nothing_satisfies_has_no_place(few) -> None:
    made = poset("x > 1 AND x < 0", "x = 1 AND x = 2", "TRUE", few=few)
    assert roots(made) == ["TRUE"]
    assert len(made) == 3


def test_a_walk_does_not_look_below_what_the_event_does_not_satisfy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = poset(*(f"x > {bound}" for bound in range(100)))
    looked: list[str] = []

    def matches(self: Filter, scope: object) -> bool:
        looked.append(str(self))
        return original(self, scope)

    original = Filter.matches
    monkeypatch.setattr(Filter, "matches", matches)
    assert len(made.match(Event("e", {"x": 3}))) == 3
    assert looked == ["x > 0", "x > 1", "x > 2", "x > 3"]


def test_a_place_is_found_without_comparing_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither among filters that are all apart, nor in a long chain."""
    made = Poset()
    for at in range(500):
        made.add(f"apart {at}", filters(f"x BETWEEN {10 * at} AND {10 * at + 5}"))
        made.add(f"chain {at}", filters(f"y < {at}"))
    compared = 0

    def covers(self: FilterNode, other: FilterNode) -> bool:
        nonlocal compared
        compared += 1
        return original(self, other)

    original = FilterNode.covers
    monkeypatch.setattr(FilterNode, "covers", covers)
    made.add("apart", filters("x BETWEEN 1001 AND 1002"))
    made.add("chain", filters("y < 250.5"))
    made.discard("apart 100")
    made.discard("chain 250")
    assert compared < 12


@each_way
def test_the_same_filters_in_any_order_stand_the_same(few, seed) -> None:
    draw = Random(seed)
    conditions = [
        f"s = '{draw.choice('ab')}' AND x BETWEEN {low} AND {low + draw.choice((1, 5, 30))}"
        for low in draw.choices(range(40), k=60)
    ]

    def edges(made: Poset) -> set[tuple[str, str]]:
        made._check()
        return {
            (str(above.said), str(node.said))
            for node in made._relations
            for above in node.successors
        }

    one = edges(poset_of(conditions, few))
    draw.shuffle(conditions)
    other = poset_of([*conditions, *(f"x < {bound}" for bound in range(0, 80, 7))], few)
    for bound in range(0, 80, 7):
        other.discard(f"x < {bound}")
    assert edges(other) == one


def poset_of(conditions: list[str], few: int) -> Poset:
    made = Poset(few)
    for condition in conditions:
        made.add(condition, filters(condition))
    return made


def test_nothing_is_left_behind_when_all_are_discarded() -> None:
    conditions = ("x = 1 OR y = 2", "x = 1", "TRUE", "y IS NULL")
    made = poset(*conditions, few=2)
    for id in conditions:
        made.discard(id)
        made._check()
    assert roots(made) == []
    assert len(made) == len(made._relations) == 0


def test_a_few_filters_load_no_compiled_code() -> None:
    program = """
import sys
from driftline import parse
from driftline.matching.poset import Poset
poset = Poset()
for bound in range(50):
    poset.add(str(bound), parse(f"SELECT * WHERE x < {bound}").filters())
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
