"""Are parameters set as a whole or not at all?"""

from __future__ import annotations

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline import Event, parse
from driftline.errors import ParameterError
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.testing import strategies

MOVING = parse("SELECT * WHERE x BETWEEN :lo AND :hi AND s LIKE 'a%' AND :on AND x > :lo + 0")


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, "missing :hi, :lo, :on"),
        ({"lo": 1, "hi": 2}, "missing :on"),
        ({"lo": 1, "hi": 2, "on": True, "high": 3}, "not in the subscription :high"),
        ({"lo": "a", "hi": 2, "on": True}, ":lo: wanted a number"),
        ({"lo": 1, "hi": 2, "on": 1}, ":on: wanted a boolean, came integer"),
        ({"lo": math.nan, "hi": 2, "on": True}, ":lo: wanted a value that compares, came NaN"),
        ({"lo": 2**63, "hi": 2, "on": True}, "64 bits"),
        ({"lo": None, "hi": 2, "on": True}, ":lo: wanted a string, integer"),
        ({"lo": [1], "high": 2}, "missing :hi, :on; not in the subscription :high; :lo: wanted"),
    ],
)
def test_a_bad_name_or_value_refuses_the_whole_change(params, said: str) -> None:
    standing = Standing.of(MOVING, {"lo": 1, "hi": 2, "on": True})
    with pytest.raises(ParameterError) as refusal:
        standing.moved_to(params)
    assert said in str(refusal.value)
    assert (standing.epoch, dict(standing.params)) == (0, {"lo": 1, "hi": 2, "on": True})
    with pytest.raises(ParameterError):
        Standing.of(MOVING, params)


def test_each_accepted_change_is_a_new_epoch_of_the_same_kinds() -> None:
    standing = Standing.of(parse("SELECT * WHERE x = :p"), {"p": 1})
    assert standing.moved_to({"p": 2.5}).moved_to({"p": 3}).epoch == 2
    with pytest.raises(ParameterError, match="wanted a number as before, came string"):
        standing.moved_to({"p": "a"})


@given(strategies.subscriptions(), st.dictionaries(st.text(max_size=3), strategies.values()))
def test_any_parameters_are_taken_or_refused(wanted, params) -> None:
    try:
        standing = Standing.of(wanted, params)
    except ParameterError:
        return
    assert standing.params.keys() == wanted.variables().parameters


@given(strategies.standings(), strategies.events(), strategies.environments())
def test_a_standing_matches_by_the_definition(standing, event, env) -> None:
    elapsed = max(0.0, (event.entered - standing.start_us) / 1e6)
    expected = standing.statement.matches(event, standing.params, env, elapsed)
    assert standing.matches(event, env) is expected


def test_elapsed_counts_from_the_start_and_never_below_zero() -> None:
    standing = Standing.of(parse("SELECT * WHERE elapsed() >= :p"), {"p": 1}, 5_000_000)
    assert standing.matches(Event("q", entered=6_000_000), {})
    assert not standing.matches(Event("q", entered=5_999_999), {})
    assert Standing.of(parse("SELECT * WHERE elapsed() = 0"), {}, 9).matches(Event("q", time=1), {})


def test_a_subscription_travels_without_its_hash() -> None:
    """The hash of a text is another one in each process: who gets it must work it out anew."""
    for one in (parse("SELECT * FROM q WHERE s = 'a'"), *parse("SELECT * WHERE s = 'a'").filters()):
        hash(one)
        for asked in (one, parse(str(one)) if isinstance(one, Subscription) else one):
            again = pickle.loads(pickle.dumps(asked))
            assert again == one
            assert not hasattr(again, "_hash")
            assert hash(again) == hash(one)
