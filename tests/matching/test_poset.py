"""The filters poset: its shape, what a walk looks at, and that it answers as `Scan` does."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from driftline import Event, parse
from driftline.matching import poset as poset_module
from driftline.matching.poset import Poset
from driftline.model.filter import Filter
from driftline.model.standing import Standing
from driftline.testing.checks import check_matcher

CONFIG = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def poset(*conditions: str) -> Poset:
    found = Poset()
    for condition in conditions:
        found.add(condition, Standing.of(parse(f"SELECT * WHERE {condition}")))
        found._check()
    return found


def roots(found: Poset) -> list[str]:
    return [str(one) for one in found.roots()]


def test_a_poset_gives_the_answers_of_scan_whatever_is_done_to_it() -> None:
    check_matcher(Poset, CONFIG)


def test_only_what_nothing_covers_is_a_root_whatever_the_order() -> None:
    conditions = ["x > 0", "x > 10", "x > 10 AND y = 1", "y = 1", "x = 50", "s LIKE 'a%'"]
    for order in (conditions, conditions[::-1]):
        assert sorted(roots(poset(*order))) == ["s LIKE 'a%'", "x > 0", "y = 1"]


def test_discarding_a_root_uncovers_what_it_covered() -> None:
    found = poset("x > 0", "x > 10", "x > 20", "x < 5")
    found.discard("x > 0")
    found._check()
    assert roots(found) == ["x < 5", "x > 10"]
    found.discard("x > 10")
    found._check()
    assert roots(found) == ["x < 5", "x > 20"]


def test_a_filter_put_between_two_parts_them() -> None:
    found = poset("x > 0", "x > 20", "x > 10")
    (root,) = found._roots
    (middle,) = root.predecessors
    assert str(middle.filter) == "x > 10"
    assert [str(node.filter) for node in middle.predecessors] == ["x > 20"]


def test_filters_that_say_the_same_are_one() -> None:
    found = poset("x > 1", "x > 1.0", "NOT x <= 1")
    assert len(roots(found)) == 1
    assert found.match(Event("e", {"x": 2}), {}) == ["x > 1", "x > 1.0", "NOT x <= 1"]
    found.discard("x > 1")
    assert found.match(Event("e", {"x": 2}), {}) == ["x > 1.0", "NOT x <= 1"]
    found._check()


def test_what_depends_on_a_subscribers_own_clock_is_its_own() -> None:
    found = Poset()
    statement = parse("SELECT * WHERE x < elapsed()")
    found.add("early", Standing.of(statement, start_us=0))
    found.add("late", Standing.of(statement, start_us=5_000_000))
    found._check()
    assert found.match(Event("e", {"x": 2}, time=6_000_000), {}) == ["early"]


def test_a_walk_does_not_look_below_what_the_event_does_not_satisfy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = poset(*(f"x > {bound}" for bound in range(100)))
    looked: list[str] = []

    def matches(self: Filter, scope: object) -> bool:
        looked.append(str(self))
        return original(self, scope)

    original = poset_module.Filter.matches
    monkeypatch.setattr(poset_module.Filter, "matches", matches)
    assert len(found.match(Event("e", {"x": 3}), {})) == 3
    assert looked == ["x > 0", "x > 1", "x > 2", "x > 3"]


def test_nothing_is_left_behind_when_all_are_discarded() -> None:
    found = poset("x = 1 OR y = 2", "x = 1", "TRUE", "y IS NULL")
    for id in ("x = 1 OR y = 2", "x = 1", "TRUE", "y IS NULL"):
        found.discard(id)
        found._check()
    assert not found._roots
    assert len(found) == 0
