"""What does a subscriber let through of what its broker found under older values?"""

from __future__ import annotations

import random

import pytest

from driftline import Event, parse
from driftline.model.standing import Standing
from driftline.moving.parametric.strict import still_wanted

PATTERN = "SELECT * FROM q WHERE x = :x THEN SELECT * FROM q WHERE x > :x"


def wanted(text: str, **params: object) -> dict[str, Standing]:
    return {"s": Standing.of(parse(text), params)}


def event(x: int = 5, stamp: int = 1_000_000) -> Event:
    return Event("q", {"x": x}).stamped(stamp)


@pytest.mark.parametrize("seed", range(20))
def test_plain_subscriptions_are_judged_by_the_definition(seed: int) -> None:
    draw = random.Random(seed)
    wants = {
        str(at): Standing.of(
            parse("SELECT * FROM q WHERE x > :low OR y = :y"),
            {"low": draw.randrange(8), "y": draw.randrange(3)},
        )
        for at in range(10)
    }
    one = Event("q", {"x": draw.randrange(8), "y": draw.randrange(3)})
    expected = tuple(id for id, standing in wants.items() if standing.matches(one, {}))
    assert still_wanted(wants, one, list(wants)) == expected


def test_only_what_the_broker_found_is_let_through() -> None:
    wants = {**wanted("SELECT * FROM q"), "other": wanted("SELECT * FROM q")["s"]}
    assert still_wanted(wants, event(), ["other"]) == ("other",)


def test_what_is_cancelled_is_dropped() -> None:
    assert still_wanted({}, event(), ["s"]) == ()
    assert still_wanted({}, event(), ["s"], completed=["s"]) == ()


def test_another_type_is_not_wanted() -> None:
    assert still_wanted(wanted("SELECT * FROM r"), event(), ["s"]) == ()


def test_a_pattern_stays_as_it_was_found() -> None:
    """Though under the value of now its last event is none that it could end with."""
    assert still_wanted(wanted(PATTERN, x=7), event(5), ["s"], completed={"s": ()}) == ("s",)


def test_an_id_that_stands_for_another_kind_of_thing_now_is_dropped() -> None:
    assert still_wanted(wanted(PATTERN, x=1), event(), ["s"]) == ()
    assert still_wanted(wanted("SELECT * FROM q"), event(), ["s"], completed=["s"]) == ()


def test_without_the_environment_only_the_fixed_part_is_judged() -> None:
    wants = wanted("SELECT * FROM q WHERE x > :low AND x < env('top')", low=3)
    assert still_wanted(wants, event(5), ["s"]) == ("s",)
    assert still_wanted(wants, event(3), ["s"]) == ()


def test_with_the_environment_all_of_it_is() -> None:
    wants = wanted("SELECT * FROM q WHERE x > :low AND x < env('top')", low=3)
    assert still_wanted(wants, event(5), ["s"], env={"top": 6}) == ("s",)
    assert still_wanted(wants, event(5), ["s"], env={"top": 5}) == ()
    assert still_wanted(wants, event(5), ["s"], env={}) == ()


def test_an_alternative_that_only_the_environment_decides_may_hold() -> None:
    wants = wanted("SELECT * FROM q WHERE x > :low OR x < env('top')", low=7)
    assert still_wanted(wants, event(5), ["s"]) == ("s",)


def test_time_is_the_stamp_of_the_event_and_so_known() -> None:
    wants = wanted("SELECT * FROM q WHERE elapsed() < :seconds", seconds=2)
    assert still_wanted(wants, event(stamp=1_000_000), ["s"]) == ("s",)
    assert still_wanted(wants, event(stamp=3_000_000), ["s"]) == ()
