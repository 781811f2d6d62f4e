"""Patterns, parties, unsubscribing by covering, and both semantics of SIENA in the engine."""

import pytest

import driftline as dl
from driftline.errors import NotAdvertised


@pytest.fixture
def engine():
    return dl.Engine(clock=dl.ManualClock())


def test_a_pattern_tells_each_completed_sequence_and_starts_anew(engine):
    s = engine.subscribe("SELECT * FROM a THEN SELECT y FROM b WHERE y > :least", {"least": 0})
    for at, (kind, y) in enumerate([("b", 1), ("a", 0), ("a", 0), ("b", -1), ("b", 2), ("b", 3)]):
        engine.publish(dl.Event(kind, {"y": y, "at": at}, time=at))
    (told,) = s.pending()
    assert (told.kind, told.values) == ("pattern", {"y": 2})
    assert [event.attributes["at"] for event in told.events] == [1, 4]
    assert told.event == told.events[-1]


def test_a_pattern_can_be_moved_and_keeps_what_it_has_matched(engine):
    s = engine.subscribe("SELECT * FROM a THEN SELECT * FROM b WHERE y > :least", {"least": 5})
    engine.publish(dl.Event("a", {}, time=1))
    s.set(least=0)
    engine.publish(dl.Event("b", {"y": 1}, time=2))
    assert [n.epoch for n in s.pending()] == [1]


def test_a_window_ends_a_partial_match_and_the_late_event_may_begin_the_next(engine):
    s = engine.subscribe("SELECT * FROM a THEN SELECT * FROM a WITHIN 1.5")
    for time in (0, 1_500_001, 3_000_001):
        engine.publish(dl.Event("a", {}, time=time))
    assert [[e.time for e in n.events] for n in s.pending()] == [[1_500_001, 3_000_001]]


def test_events_generated_at_the_same_time_are_not_one_after_the_other(engine):
    s = engine.subscribe("SELECT * FROM a THEN SELECT * FROM b")
    engine.publish(dl.Event("a", {}, time=1))
    engine.publish(dl.Event("b", {}, time=1))
    assert s.pending() == []


def test_explaining_a_pattern_marks_the_step_it_waits_for(engine):
    s = engine.subscribe("SELECT * FROM a THEN SELECT * FROM b")
    engine.publish(dl.Event("a", {}, time=5))
    found = s.explain(dl.Event("b", {}, time=6))
    assert found.outcome is True
    assert [part.decided for part in found.parts] == [False, True, False]
    early = s.explain(dl.Event("b", {}, time=5))
    assert early.outcome is False
    assert early.deciding()[-1].text == "generated later"


def test_explaining_a_pattern_knows_that_its_window_is_over(engine):
    s = engine.subscribe("SELECT * FROM a THEN SELECT * FROM b WITHIN 1")
    engine.publish(dl.Event("a", {}, time=0))
    assert s.explain(dl.Event("b", {}, time=1_000_001)).outcome is False
    assert s.explain(dl.Event("a", {}, time=1_000_001)).outcome is True
    assert s.explain(dl.Event("b", {}, time=1_000_000)).outcome is True


def test_a_window_is_exact_to_the_microsecond(engine):
    s = engine.subscribe("SELECT * FROM a THEN SELECT * FROM b WITHIN 0.000249")
    for first in (0, 1_000):
        engine.publish(dl.Event("a", {}, time=first))
        engine.publish(dl.Event("b", {}, time=first + 249 + first // 1_000))
    assert [[e.time for e in n.events] for n in s.pending()] == [[0, 249]]


def test_unsubscribing_cancels_what_is_covered_for_that_party_only(engine):
    mine = engine.subscribe("SELECT * WHERE change > 10", party="alice")
    wider = engine.subscribe("SELECT * WHERE change > 0", party="alice")
    hers = engine.subscribe("SELECT * WHERE change > 10", party="bob")
    other = engine.subscribe("SELECT * WHERE price > 10", party="alice")
    assert engine.unsubscribe("alice", "SELECT * WHERE change > 0") == 2
    assert [s.active for s in (mine, wider, hers, other)] == [False, False, True, True]


def test_unsubscribing_never_narrows(engine):
    s = engine.subscribe("SELECT * WHERE price > 100", party="alice")
    assert engine.unsubscribe("alice", "SELECT * WHERE price > 200") == 0
    engine.publish(dl.Event("q", {"price": 250}))
    assert len(s.pending()) == 1


def test_unsubscribing_a_moving_subscription_looks_at_where_it_stands(engine):
    s = engine.subscribe("SELECT * WHERE price > :p", {"p": 100}, party="alice")
    assert engine.unsubscribe("alice", "SELECT * WHERE price > :p") == 0
    assert engine.unsubscribe("alice", "SELECT * WHERE price > 150") == 0
    s.set(p=200)
    assert engine.unsubscribe("alice", "SELECT * WHERE price > :p", {"p": 150}) == 1
    assert not s.active


def test_unsubscribing_a_pattern_goes_position_by_position(engine):
    s = engine.subscribe("SELECT * WHERE x = 1 THEN SELECT * WHERE y = 2 WITHIN 5", party="a")
    assert engine.unsubscribe("a", "SELECT * WHERE x > 0") == 0
    assert engine.unsubscribe("a", "SELECT * WHERE x > 0 THEN SELECT * WHERE y > 2") == 0
    assert engine.unsubscribe("a", "SELECT * WHERE x > 0 THEN SELECT * WHERE y > 1 WITHIN 4") == 0
    assert engine.unsubscribe("a", "SELECT * WHERE x > 0 THEN SELECT * WHERE y > 1") == 1
    assert not s.active
    engine._check()


def test_row_sets_and_plain_filters_are_both_unsubscribed(engine):
    engine.table("stock", key="symbol")
    rows = engine.subscribe("SELECT * FROM stock WHERE price < 5", party="a", rows=True)
    plain = engine.subscribe("SELECT * FROM stock WHERE price < 4", party="a")
    assert engine.unsubscribe("a", "SELECT * FROM stock") == 2
    engine.publish(dl.Event("stock", {"symbol": "x", "price": 1}))
    assert (rows.pending(), plain.pending()) == ([], [])
    engine._check()


def test_under_advertisements_a_party_publishes_only_what_it_advertised():
    engine = dl.Engine(clock=dl.ManualClock(), advertised=True)
    s = engine.subscribe("SELECT * FROM quote")
    event = dl.Event("quote", {"firm": "IBM", "price": 3})
    with pytest.raises(NotAdvertised, match="nothing is advertised"):
        engine.publish(event, party="nyse")
    engine.advertise("SELECT * FROM quote WHERE firm = 'IBM'", party="nyse")
    with pytest.raises(NotAdvertised, match="price is not advertised"):
        engine.publish(event, party="nyse")
    says = engine.advertise(
        "SELECT * FROM quote WHERE firm = 'IBM' OR firm = 'DIS' AND price IS NOT NULL", party="nyse"
    )
    assert engine.publish(event, party="nyse") == 1
    with pytest.raises(NotAdvertised):
        engine.publish(event, party="lse")
    assert engine.unadvertise("nyse", says) == 2, "the narrower one is covered as well"
    with pytest.raises(NotAdvertised):
        engine.publish(event, party="nyse")
    assert len(s.pending()) == 1


def test_a_publisher_can_ask_whether_anyone_is_interested(engine):
    says = dl.advertisement("SELECT * FROM quote WHERE firm = 'IBM' AND price IS NOT NULL")
    assert not engine.interested(says)
    engine.subscribe("SELECT * FROM quote WHERE firm = 'DIS'")
    engine.subscribe("SELECT * FROM quote WHERE volume > 5")
    assert not engine.interested(says)
    s = engine.subscribe("SELECT * FROM quote WHERE price < 5")
    assert engine.interested(says)
    s.cancel()
    assert not engine.interested("SELECT * FROM quote WHERE firm = 'IBM' AND price IS NOT NULL")
