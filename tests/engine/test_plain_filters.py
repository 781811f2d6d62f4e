"""Plain filters in the engine: being told, moving a bound, time, the environment, ending."""

import pytest

import driftline as dl
from driftline.errors import (
    InvalidValue,
    LanguageError,
    NotSupported,
    ParameterError,
    SubscriptionEnded,
)


@pytest.fixture
def clock():
    return dl.ManualClock(1_000_000)


@pytest.fixture
def engine(clock):
    return dl.Engine(clock=clock)


def quote(price, firm="IBM", **more):
    return dl.Event("quote", {"firm": firm, "price": price}, **more)


def test_a_matching_event_is_told_once_with_its_values_stamp_and_epoch(engine):
    s = engine.subscribe("SELECT price AS p FROM quote WHERE firm = 'IBM' AND price < 10")
    assert engine.publish(quote(9.5)) == 1
    assert engine.publish(quote(10.5)) == 0
    (told,) = s.pending()
    assert (told.kind, told.values, told.time, told.epoch) == ("event", {"p": 9.5}, 1_000_000, 0)
    assert told.event.attributes == {"firm": "IBM", "price": 9.5}
    assert (told.event.entered, told.event.time) == (1_000_000, 1_000_000)
    assert s.pending() == []


def test_a_disjunction_tells_once_however_many_of_its_sides_hold(engine):
    s = engine.subscribe("SELECT * WHERE price < 10 OR price < 20 OR firm = 'IBM'")
    engine.publish(quote(5))
    assert len(s.pending()) == 1


def test_selected_columns_that_are_unknown_are_told_as_none(engine):
    s = engine.subscribe("SELECT price * 2, note FROM quote")
    engine.publish(quote(4))
    (told,) = s.pending()
    assert told.values == {"price * 2": 8, "note": None}


def test_moving_a_bound_takes_effect_with_the_next_event_and_counts_epochs(engine):
    s = engine.subscribe("SELECT * FROM quote WHERE price < :limit", {"limit": 10})
    engine.publish(quote(9.5))
    assert s.set(limit=9) == 1
    engine.publish(quote(9.5))
    engine.publish(quote(8.5))
    assert [(n.values["price"], n.epoch) for n in s.pending()] == [(9.5, 0), (8.5, 1)]
    assert s.params == {"limit": 9}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"lo": 1},
        {"lo": 1, "hi": 2, "extra": 3},
        {"lo": 1, "hi": "two"},
        {"lo": 1, "hi": None},
        {"lo": 1, "hi": float("nan")},
        {"lo": 1, "hi": 2**63},
        {"lo": 1, "hi": True},
        {"lo": 1, "hi": [2]},
    ],
)
def test_a_bad_set_changes_nothing(engine, change):
    s = engine.subscribe("SELECT * WHERE price BETWEEN :lo AND :hi", {"lo": 3, "hi": 6})
    with pytest.raises(ParameterError):
        s.set(**change)
    assert (s.params, s.epoch) == ({"lo": 3, "hi": 6}, 0)
    engine.publish(quote(5))
    assert len(s.pending()) == 1


@pytest.mark.parametrize("params", [None, {}, {"other": 1}, {"limit": 1, "other": 2}])
def test_subscribing_with_wrong_parameters_is_refused_and_leaves_nothing(engine, params):
    with pytest.raises(ParameterError):
        engine.subscribe("SELECT * WHERE price < :limit", params)
    engine._check()
    assert engine.publish(quote(0)) == 0


def test_a_parameter_may_be_named_self_or_after_any_keyword(engine):
    s = engine.subscribe("SELECT * WHERE price < :self AND :on", {"self": 1, "on": True})
    assert s.set(**{"self": 2, "on": False}) == 1


def test_a_switch_suspends_and_resumes_by_one_change(engine):
    s = engine.subscribe("SELECT * FROM quote WHERE :on", {"on": True})
    engine.publish(quote(1))
    s.set(on=False)
    engine.publish(quote(2))
    s.set(on=True)
    engine.publish(quote(3))
    assert [n.values["price"] for n in s.pending()] == [1, 3]


def test_elapsed_counts_from_the_subscription_and_now_reads_the_entry_stamp(engine, clock):
    s = engine.subscribe("SELECT * WHERE price < 10 - elapsed()")
    t = engine.subscribe("SELECT * WHERE ce_time < now()")
    engine.publish(quote(9.5, time=500_000))
    clock.advance(2)
    engine.publish(quote(9.5))
    engine.publish(quote(7.5))
    assert [n.values["price"] for n in s.pending()] == [9.5, 7.5]
    assert len(t.pending()) == 1, "only the first was generated before it entered"


def test_an_unknown_environment_variable_matches_nothing_until_it_is_set(engine):
    s = engine.subscribe("SELECT * WHERE price < 10 * env('visibility')")
    engine.publish(quote(1))
    engine.set_env("visibility", 0.5)
    engine.publish(quote(4))
    engine.publish(quote(6))
    engine.set_env("visibility", None)
    engine.publish(quote(1))
    assert [n.values["price"] for n in s.pending()] == [4]
    with pytest.raises(InvalidValue):
        engine.set_env("visibility", object())


def test_a_cancelled_subscription_is_told_nothing_more_and_cannot_be_moved(engine):
    s = engine.subscribe("SELECT * FROM quote WHERE price < :p", {"p": 5})
    engine.publish(quote(1))
    s.cancel()
    s.cancel()
    engine.publish(quote(2))
    assert [n.values["price"] for n in s.pending()] == [1]
    with pytest.raises(SubscriptionEnded, match="s1"):
        s.set(p=6)
    engine._check()


def test_a_with_block_cancels_at_its_end(engine):
    with engine.subscribe("SELECT * FROM quote") as s:
        engine.publish(quote(1))
    engine.publish(quote(2))
    assert len(s.pending()) == 1


def test_terms_and_models_are_accepted_like_texts(engine):
    texts = engine.subscribe("SELECT * WHERE price < 10")
    terms = engine.subscribe(dl.attr.price < 10)
    models = engine.subscribe(dl.parse("SELECT * WHERE price < 10"))
    engine.publish(quote(9))
    assert [len(s.pending()) for s in (texts, terms, models)] == [1, 1, 1]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT price FROM stock WHERE moved(price, by => elapsed())",
        "SELECT price FROM stock WHERE crossed(price, above => env('high'), clear => 1)",
    ],
)
def test_what_the_engine_does_not_execute_is_refused_clearly(engine, text):
    with pytest.raises(NotSupported, match="follows parameters"):
        engine.subscribe(text)
    engine._check()


def test_a_refused_text_says_what_was_wanted(engine):
    with pytest.raises(LanguageError, match="wanted a SELECT, came DROP"):
        engine.subscribe("DROP TABLE quote")


def test_explain_names_the_condition_that_decided_and_the_values_it_saw(engine):
    s = engine.subscribe("SELECT * FROM quote WHERE firm = 'IBM' AND price < :limit", {"limit": 10})
    found = s.explain(quote(12))
    assert found.outcome is False
    (decider,) = found.deciding()
    assert (decider.text, decider.seen) == ("price < :limit", {"price": 12, ":limit": 10})
    assert "price < :limit   [price is 12, :limit is 10] *" in str(found)
    missing = s.explain(dl.Event("quote", {"firm": "IBM"}))
    assert (missing.outcome, missing.deciding()[0].reason) == (None, "price is missing")
    other = s.explain(dl.Event("trade", {"firm": "IBM", "price": 1}))
    assert (other.outcome, other.deciding()[0].text) == (False, "FROM quote")


def test_the_machines_clock_is_the_default_and_never_goes_back():
    engine = dl.Engine()
    s = engine.subscribe("SELECT *")
    engine.publish(dl.Event("x"))
    engine.publish(dl.Event("x"))
    first, second = (n.time for n in s.pending())
    assert 1_600_000_000_000_000 < first <= second
