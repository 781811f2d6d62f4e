"""Standing subscriptions on a matcher of filters: what evolves is evaluated only when it must."""

from __future__ import annotations

import pytest

from driftline import Event, parse
from driftline.matching.columns import Columns
from driftline.matching.lazy import Lazy
from driftline.matching.scan import Scan
from driftline.model.standing import Standing
from tests.matching.makers import each_matcher


def standing(condition: str, start_us: int = 0, **params) -> Standing:
    return Standing.of(parse(f"SELECT * FROM quote WHERE {condition}"), params, start_us)


def held(lazy: Lazy) -> list[str]:
    """What the matcher below was given."""
    return [str(one) for _, filters, _ in lazy._matcher.items() for one in filters]


@pytest.mark.parametrize(
    ("condition", "fixed"),
    [
        ("x > 1 AND y < env('e')", ["quote: x > 1"]),
        ("x > 1 AND y < 3 * elapsed()", ["quote: x > 1"]),
        ("x > 1 AND t > now()", ["quote: x > 1"]),
        ("x > 1 AND hour(now()) = 9", ["quote: x > 1"]),
        ("x > 1 AND y + env('e') > 3", ["quote: x > 1"]),
        ("x IN (1, env('e'))", ["quote: TRUE"]),
        ("env('open')", ["quote: TRUE"]),
        ("x > 1 OR y < env('e')", ["quote: x > 1", "quote: TRUE"]),
        ("x > 1 AND x + y > 3", ["quote: x > 1 AND x + y > 3"]),
    ],
)
def test_what_evolves_is_left_out_of_what_the_matcher_holds(condition, fixed) -> None:
    lazy = Lazy(Scan())
    lazy.add("1", standing(condition))
    lazy._check()
    assert held(lazy) == fixed


@each_matcher
def test_what_was_left_out_is_verified(make) -> None:
    lazy = Lazy(make())
    lazy.add("far", standing("x > 1 AND y < env('e')"))
    lazy.add("plain", standing("x > 1"))
    lazy.add("late", standing("x > 1 AND elapsed() > 5", start_us=2_000_000))
    lazy.add("hour", standing("hour(now()) = 1"))
    event = Event("quote", {"x": 2, "y": 2}, time=3_600_000_000)
    early = Event("quote", {"x": 2, "y": 2}, time=7_000_000)
    assert lazy.match(event, {"e": 3}) == ["far", "plain", "late", "hour"]
    assert lazy.match(event, {"e": 2}) == ["plain", "late", "hour"]
    assert lazy.match(event, {}) == ["plain", "late", "hour"]
    assert lazy.match(early, {"e": 3}) == ["far", "plain"]
    batch = lazy.match_batch(Columns.of_events([event, early]), {"e": 3})
    assert batch.ids(0) == ["far", "plain", "late", "hour"]
    assert batch.ids(1) == ["far", "plain"]


def test_only_what_was_left_out_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = Lazy(Scan())
    lazy.add("fixed", standing("x > 1"))
    lazy.add("evolves", standing("x > 1 AND y < env('e')"))
    lazy.add("far", standing("x > 100 AND y < env('e')"))
    looked: list[Standing] = []

    def matches(self: Standing, event: Event, env: object) -> bool:
        looked.append(self)
        return original(self, event, env)

    original = Standing.matches
    monkeypatch.setattr(Standing, "matches", matches)
    event = Event("quote", {"x": 2, "y": 2})
    assert lazy.match(event, {"e": 3}) == ["fixed", "evolves"]
    lazy.match_batch(Columns.of_events([event]), {"e": 3})
    assert looked == [lazy._standing["evolves"]] * 2


class Counted(Scan):
    """Counts what is done to it."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    def add(self, id, filters, bounds=None) -> None:
        self.done.append(f"add {id}")
        super().add(id, filters, bounds)

    def change(self, id, bounds) -> None:
        self.done.append(f"change {id}")
        super().change(id, bounds)


def test_moving_a_parameter_changes_in_place_and_only_where_the_matcher_has_it() -> None:
    matcher = Counted()
    lazy = Lazy(matcher)
    lazy.add("1", standing("x > :low", low=5))
    lazy.add("2", standing("x > 1 AND y < :low * env('e')", low=5))
    lazy.add("3", standing("x > 1"))
    lazy.move("1", lazy._standing["1"].moved_to({"low": 0}))
    lazy.move("2", lazy._standing["2"].moved_to({"low": 0}))
    lazy._check()
    assert matcher.done == ["add 1", "add 2", "add 3", "change 1"]
    event = Event("quote", {"x": 2, "y": 2})
    assert lazy.match(event, {"e": 1}) == ["1", "3"]
    lazy.move("2", lazy._standing["2"].moved_to({"low": 9}))
    assert lazy.match(event, {"e": 1}) == ["1", "2", "3"]


@each_matcher
def test_a_batch_answers_in_the_order_of_adding_whatever_was_done_before(make) -> None:
    lazy = Lazy(make())
    for id in "dcba":
        lazy.add(id, standing("x > :low", low=0))
    lazy.discard("c")
    lazy.add("d", standing("x > :low", low=0))
    lazy.add("e", standing("x > 0"))
    lazy.move("b", lazy._standing["b"].moved_to({"low": 1}))
    columns = Columns.of_events([Event("quote", {"x": x}) for x in (2, 1, 0)])
    found = lazy.match_batch(columns, {})
    assert [found.ids(at) for at in range(3)] == [["b", "a", "d", "e"], ["a", "d", "e"], []]
    lazy.discard("a")
    assert lazy.match_batch(columns, {}).ids(0) == ["b", "d", "e"]


def test_a_parameter_that_only_a_column_uses_is_no_business_of_the_matcher() -> None:
    lazy = Lazy(Scan())
    lazy.add("1", Standing.of(parse("SELECT x + :more AS y WHERE x > 1"), {"more": 3}))
    assert lazy.match(Event("quote", {"x": 2}), {}) == ["1"]
