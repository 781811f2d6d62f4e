"""What comes from outside is checked at the door: an error of the family, and nothing changed."""

import pytest

import driftline as dl
from driftline.errors import DriftlineError, InvalidValue, ParameterError, TableError


@pytest.fixture
def engine():
    return dl.Engine(clock=dl.ManualClock())


WRONG_CALLS = {
    "publish a dictionary": lambda e: e.publish({"type": "q"}),
    "publish nothing": lambda e: e.publish(None),
    "explain a dictionary": lambda e: e.subscribe("SELECT *").explain({}),
    "parameters as a list": lambda e: e.subscribe("SELECT * WHERE x < :p", [1]),
    "an unknown on_change": lambda e: e.subscribe("SELECT *", on_change="loud"),
    "a party that is no name": lambda e: e.subscribe("SELECT *", party=[1]),
    "a text that is none": lambda e: e.subscribe(5),
    "a subscription as advertisement": lambda e: e.advertise(dl.parse("SELECT *")),
    "a number as advertisement": lambda e: e.advertise(5),
    "to take back a number": lambda e: e.unadvertise("", 5),
    "an environment variable without a name": lambda e: e.set_env("", 1),
    "an environment variable named by a number": lambda e: e.set_env(5, 1),
    "an environment variable named by a list": lambda e: e.set_env(["a"], 1),
    "ticks as a list": lambda e: e.table("t", key="k", ticks=[1]),
    "a key of the envelope": lambda e: e.table("t", key="ce_id"),
    "extra parameters to unsubscribe": lambda e: e.unsubscribe("", "SELECT *", {"p": 1}),
    "parameters as a list to unsubscribe": lambda e: e.unsubscribe("", "SELECT *", [1]),
    "covers of texts": lambda e: dl.covers("SELECT *", "SELECT *"),
    "intersects the wrong way round": lambda e: dl.intersects(
        dl.parse("SELECT *"), dl.advertisement("SELECT *")
    ),
    "covers with a list": lambda e: dl.covers(dl.parse("SELECT *"), dl.parse("SELECT *"), [1]),
    "attributes as a list": lambda e: dl.Event("q", [1]),
    "to match a dictionary": lambda e: dl.parse("SELECT *").matches({}),
    "to match with a list": lambda e: dl.parse("SELECT *").matches(dl.Event("q"), [1]),
    "elapsed below 0": lambda e: dl.parse("SELECT *").matches(dl.Event("q"), elapsed=-1),
    "elapsed as text": lambda e: dl.parse("SELECT *").matches(dl.Event("q"), elapsed="x"),
    "elapsed without end": lambda e: dl.parse("SELECT *").matches(
        dl.Event("q"), elapsed=float("inf")
    ),
    "now beyond the calendar": lambda e: dl.parse("SELECT *").matches(dl.Event("q"), now=10**30),
}


@pytest.mark.parametrize("call", WRONG_CALLS.values(), ids=WRONG_CALLS.keys())
def test_a_wrong_call_gets_an_error_of_the_family(engine, call):
    with pytest.raises(DriftlineError) as refused:
        call(engine)
    assert str(refused.value)
    engine._check()
    assert engine.publish(dl.Event("q", {"x": 1})) in (0, 1)


def test_a_recorded_entry_stamp_is_kept_so_that_a_replay_gives_the_same_answers(engine):
    s = engine.subscribe("SELECT * WHERE hour(now()) = 9")
    event = dl.Event("q", {}, entered=9 * 3600 * 1_000_000)
    assert s.explain(event).outcome is True
    assert engine.publish(event) == 1
    (told,) = s.pending()
    assert (told.time, told.event.time) == (event.entered, event.entered)


def test_what_a_subscriber_does_to_a_notification_is_its_own_business(engine):
    engine.table("t", key="k")
    s = engine.subscribe("SELECT p FROM t", rows=True)
    engine.publish(dl.Event("t", {"k": 1, "p": 1}))
    s.pending()[0].values["p"] = 2
    engine.publish(dl.Event("t", {"k": 1, "p": 2}))
    assert [(n.kind, n.old) for n in s.pending()] == [("change", {"p": 1})]


@pytest.mark.parametrize("price", [1e26, 1e308, -1e308, 5e-324])
def test_a_tick_copes_with_any_number(engine, price):
    engine.table("t", key="k", ticks={"p": "0.01"})
    event = dl.Event("t", {"k": 1, "p": price})
    if abs(price) > 1:
        engine.publish(event)
    else:
        with pytest.raises(TableError, match="multiple of"):
            engine.publish(event)


def test_a_tick_beyond_all_money_is_refused(engine):
    for tick in ("1e-999999", "1e999999", "1e-19"):
        with pytest.raises(TableError, match="a tick"):
            engine.table("t", key="k", ticks={"p": tick})


def test_a_deleted_row_is_named_by_its_own_key(engine):
    engine.table("t", key="k")
    s = engine.subscribe("SELECT * FROM t", rows=True)
    engine.publish(dl.Event("t", {"k": 1}))
    engine.delete("t", 1.0)
    assert [repr(n.key) for n in s.pending()] == ["1", "1"]


def test_parameters_in_columns_and_radii_have_their_kinds_too(engine):
    with pytest.raises(ParameterError, match="wanted a number"):
        engine.subscribe("SELECT price + :p AS c FROM q", {"p": "abc"})
    engine.subscribe("SELECT :p AS c FROM q", {"p": "abc"})


def test_the_names_of_parameters_are_texts(engine):
    with pytest.raises(ParameterError):
        engine.subscribe("SELECT * WHERE x < :p", {5: 1})
    with pytest.raises(InvalidValue):
        engine.subscribe("SELECT * WHERE x < :p", "p")
