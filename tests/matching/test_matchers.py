"""Does every matcher give the answers of the definition?"""

from __future__ import annotations

import pytest
from hypothesis import settings

from driftline import Event, attr, param, parse
from driftline.errors import ParameterError
from driftline.matching.columns import Columns
from driftline.matching.scan import Scan
from driftline.model.filter import Filter
from driftline.testing.checks import check_lazy, check_matcher
from tests.matching.makers import MAKERS, each_matcher, make_index, make_indexed_poset


@each_matcher
def test_any_program_finds_what_scan_finds(make) -> None:
    check_matcher(make, settings(max_examples=40, stateful_step_count=40))


@each_matcher
def test_any_program_of_standing_subscriptions_finds_what_the_definition_says(make) -> None:
    check_lazy(make, settings(max_examples=40, stateful_step_count=30))


@pytest.mark.slow
@pytest.mark.parametrize("make", [make_index, make_indexed_poset])
def test_any_long_program_finds_what_scan_finds(make) -> None:
    check_matcher(make, settings(max_examples=30, stateful_step_count=100))


def filters(condition: str) -> tuple[Filter, ...]:
    return parse(f"SELECT * WHERE {condition}").filters()


def found(matcher, **attributes) -> list[str]:
    """By both ways of asking, which must agree."""
    event = Event("quote", attributes, time=0)
    ids = matcher.match(event)
    assert sorted(matcher.match_batch(Columns.of_events([event])).ids(0)) == sorted(ids)
    return ids


@each_matcher
def test_answers_come_in_the_order_of_adding_and_a_replaced_one_goes_last(make) -> None:
    matcher = make()
    for id in ("b", "a", "c"):
        matcher.add(id, filters("x = 1 OR x = 2"))
    assert found(matcher, x=1) == ["b", "a", "c"]
    matcher.add("b", filters("x < 2"))
    assert found(matcher, x=1) == ["a", "c", "b"]
    matcher.discard("a")
    matcher.discard("a")
    assert found(matcher, x=1) == ["c", "b"]
    assert len(matcher) == 2
    assert "b" in matcher
    assert "a" not in matcher


@each_matcher
def test_a_changed_one_keeps_its_place(make) -> None:
    matcher = make()
    for id in ("b", "a", "c"):
        matcher.add(id, filters("x < :high"), {"high": 5})
    matcher.change("b", {"high": 9})
    assert found(matcher, x=1) == ["b", "a", "c"]
    assert found(matcher, x=7) == ["b"]
    matcher.change("b", {"high": 0})
    assert found(matcher, x=1) == ["a", "c"]


@each_matcher
def test_an_id_with_several_alternatives_is_found_once(make) -> None:
    matcher = make()
    matcher.add("either", filters("x > 1 OR x > 2 OR y = 3"))
    assert found(matcher, x=5, y=3) == ["either"]
    assert found(matcher, y=3) == ["either"]
    assert found(matcher, x=0) == []


@each_matcher
def test_no_alternative_at_all_is_never_true_and_no_condition_always_is(make) -> None:
    matcher = make()
    matcher.add("never", ())
    matcher.add("always", Filter(None))
    matcher.add("typed", Filter("quote"))
    assert found(matcher) == ["always", "typed"]
    assert matcher.match(Event("other")) == ["always"]


@each_matcher
def test_a_bound_that_is_missing_or_no_value_is_refused_and_nothing_changes(make) -> None:
    matcher = make()
    matcher.add("1", filters("x BETWEEN :low AND :high"), {"low": 1, "high": 3})
    for bounds in ({"low": 5}, {"low": 5, "high": None}, {"low": 5, "high": float("nan")}):
        with pytest.raises(ParameterError, match=":high"):
            matcher.change("1", bounds)
        with pytest.raises(ParameterError, match=":high"):
            matcher.add("1", filters("x BETWEEN :low AND :high"), bounds)
    with pytest.raises(ParameterError, match="64 bits"):
        matcher.change("1", {"low": 5, "high": 2**63})
    with pytest.raises(KeyError):
        matcher.change("2", {"low": 1, "high": 2})
    assert found(matcher, x=2) == ["1"]


@each_matcher
def test_a_bound_that_no_filter_uses_is_passed_over(make) -> None:
    matcher = make()
    matcher.add("1", filters("x < :high"), {"high": 3, "column": "price"})
    matcher.change("1", {"high": 5, "other": b"x"})
    assert found(matcher, x=4) == ["1"]


@each_matcher
def test_the_mapping_of_bounds_may_be_used_again_by_the_caller(make) -> None:
    matcher = make()
    bounds = {"high": 3}
    matcher.add("1", filters("x < :high AND x != y"), bounds)
    bounds["high"] = 9
    assert found(matcher, x=4, y=0) == []
    matcher.change("1", bounds)
    bounds["high"] = 1
    assert found(matcher, x=4, y=0) == ["1"]


@each_matcher
def test_equal_numbers_of_different_types_are_one_and_booleans_are_not(make) -> None:
    matcher = make()
    for id, constant in (("integer", "1"), ("float", "1.0"), ("boolean", "TRUE")):
        matcher.add(id, filters(f"x = {constant}"))
    assert found(matcher, x=1) == ["integer", "float"]
    assert found(matcher, x=1.0) == ["integer", "float"]
    assert found(matcher, x=True) == ["boolean"]


@each_matcher
def test_integers_beyond_the_floats_are_told_apart(make) -> None:
    matcher = make()
    matcher.add("odd", filters(f"x = {2**53 + 1}"))
    matcher.add("above", filters(f"x > {2**53}"))
    matcher.add("moving", filters("x > :p"), {"p": 2**53})
    assert found(matcher, x=float(2**53)) == []
    assert found(matcher, x=2**53) == []
    assert found(matcher, x=2**53 + 1) == ["odd", "above", "moving"]


@each_matcher
def test_the_envelope_is_looked_up_too(make) -> None:
    matcher = make()
    matcher.add("1", filters("ce_type = 'quote' AND ce_id = '7'"))
    matcher.add("2", filters("ce_time >= TIMESTAMP '1970-01-01 00:00:01Z'"))
    matcher.add("3", filters("ce_source IS NULL"))
    assert matcher.match(Event("quote", id="7", source="here")) == ["1"]
    assert matcher.match(Event("quote", id="8", time=1_000_000)) == ["2", "3"]


@each_matcher
def test_what_is_not_of_the_event_or_a_parameter_is_unknown(make) -> None:
    matcher = make()
    matcher.add("environment", filters("x < env('e') OR y = 1"))
    matcher.add("elapsed", filters("NOT x < elapsed()"))
    assert found(matcher, x=0, y=0) == []
    assert found(matcher, x=0, y=1) == ["environment"]


@each_matcher
def test_an_empty_batch_has_no_matches(make) -> None:
    matcher = make()
    matcher.add("1", Filter(None))
    matches = matcher.match_batch(Columns.of_events([]))
    assert len(matches) == 0
    assert matches.offsets.tolist() == [0]


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "scan"])
def test_many_filters_of_one_shape_are_found_as_scan_finds_them(name, seed) -> None:
    """Enough of them that every structure inside a matcher is in use."""
    from random import Random

    draw, matcher, scan = Random(seed), MAKERS[name](), Scan()
    symbol = (attr.symbol == param.symbol) & attr.price.between(param.low, param.high)
    (shape,) = parse(f"SELECT * FROM quote WHERE {symbol}").filters()

    def bounds() -> dict:
        low = draw.randrange(100)
        return {"symbol": draw.choice("ABC"), "low": low, "high": low + draw.choice((0, 3, 50))}

    for id in map(str, range(400)):
        given = bounds()
        matcher.add(id, shape, given)
        scan.add(id, shape, given)
    for id in map(str, draw.sample(range(400), 150)):
        if draw.random() < 0.5:
            given = bounds()
            matcher.change(id, given)
            scan.change(id, given)
        else:
            matcher.discard(id)
            scan.discard(id)
    matcher._check()
    events = [Event("quote", {"symbol": s, "price": p}) for s in "ABCD" for p in range(0, 150, 7)]
    found_in_batch = matcher.match_batch(Columns.of_events(events))
    for at, event in enumerate(events):
        ids = scan.match(event)
        assert matcher.match(event) == ids
        assert sorted(found_in_batch.ids(at)) == sorted(ids)
