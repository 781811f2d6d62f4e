"""Does the hashed matcher give the answers of the definition?"""

from __future__ import annotations

import pytest
from hypothesis import settings

from driftline import Event, parse
from driftline.matching.hashed import Hashed
from driftline.matching.scan import Scan
from driftline.model.standing import Standing
from driftline.testing.checks import check_matcher


@pytest.mark.parametrize("make_matcher", [Hashed, Scan])
def test_any_program_finds_what_scan_finds(make_matcher) -> None:
    check_matcher(make_matcher, settings(max_examples=60, stateful_step_count=40))


@pytest.mark.slow
def test_any_long_program_finds_what_scan_finds() -> None:
    check_matcher(Hashed, settings(max_examples=150, stateful_step_count=100))


def _ids(matcher, **attributes) -> list[str]:
    return matcher.match(Event("quote", attributes, time=0), {})


@pytest.mark.parametrize("make_matcher", [Hashed, Scan])
def test_answers_come_in_the_order_of_adding_and_a_replaced_one_goes_last(make_matcher) -> None:
    matcher = make_matcher()
    for id in ("b", "a", "c"):
        matcher.add(id, Standing.of(parse("SELECT * WHERE x = 1 OR x = 2")))
    assert _ids(matcher, x=1) == ["b", "a", "c"]
    matcher.add("b", Standing.of(parse("SELECT * WHERE x < 2")))
    assert _ids(matcher, x=1) == ["a", "c", "b"]
    matcher.discard("a")
    matcher.discard("a")
    assert _ids(matcher, x=1) == ["c", "b"]
    assert len(matcher) == 2


def test_equal_numbers_of_different_types_share_a_bucket_and_booleans_do_not() -> None:
    matcher = Hashed()
    for id, constant in (("integer", "1"), ("float", "1.0"), ("boolean", "TRUE")):
        matcher.add(id, Standing.of(parse(f"SELECT * WHERE x = {constant}")))
    assert _ids(matcher, x=1) == ["integer", "float"]
    assert _ids(matcher, x=1.0) == ["integer", "float"]
    assert _ids(matcher, x=True) == ["boolean"]


def test_integers_beyond_the_floats_do_not_share_a_bucket() -> None:
    matcher = Hashed()
    matcher.add("odd", Standing.of(parse(f"SELECT * WHERE x = {2**53 + 1}")))
    assert _ids(matcher, x=float(2**53)) == []
    assert _ids(matcher, x=2**53 + 1) == ["odd"]


def test_an_equality_on_the_envelope_is_looked_up_too() -> None:
    matcher = Hashed()
    matcher.add("1", Standing.of(parse("SELECT * WHERE ce_type = 'quote' AND ce_id = '7'")))
    assert matcher.match(Event("quote", id="7"), {}) == ["1"]
    assert matcher.match(Event("quote", id="8"), {}) == []


def test_nothing_is_left_behind_when_all_are_discarded() -> None:
    matcher = Hashed()
    for id in range(20):
        matcher.add(str(id), Standing.of(parse(f"SELECT * WHERE x = {id % 3} OR s = 'a'")))
    for id in range(20):
        matcher.discard(str(id))
    matcher._check()
    assert not matcher._buckets
    assert not matcher._keyed
