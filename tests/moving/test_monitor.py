"""Variables that move too often: what is said of them, and is anything lost? [PARAM §4.3, §6]"""

from __future__ import annotations

import random

import pytest

from driftline.bench.following import Study, restless
from driftline.broker.edge import Edge
from driftline.moving.parametric.monitor import Monitor
from driftline.sim.faults import MILLISECOND, SECOND


@pytest.mark.parametrize("seed", range(60))
def test_a_range_has_the_value_and_is_no_range_while_it_is_calm(seed: int) -> None:
    draw = random.Random(seed)
    often = draw.randrange(2, 9)
    watch = Monitor(SECOND, often)
    now, value, recent, told, last = 0, 0.0, [], 0, None
    for _ in range(300):
        now += draw.choice((0, 10, 50, 50, 200, 2000)) * MILLISECOND
        calm = watch.calm(now)
        assert calm in (None, (value, value))
        value += draw.choice((-3, -1, 0.5, 1, 1, 2))
        low, high = watch.moved(value, now)
        assert low <= value <= high
        recent = [one for one in (*recent, now) if one > now - SECOND]
        if len(recent) < often:
            assert low == high
        told += (low, high) != last
        last = low, high
    assert watch.calm(now + SECOND) in (None, (value, value))
    assert watch.calm(now + SECOND) is None
    assert told < 300


def test_going_up_and_down_is_told_as_a_whole() -> None:
    watch = Monitor(SECOND, 6)
    for at, value in enumerate((1, 5, 2, 6, 1, 5)):
        told = watch.moved(value, at * 10 * MILLISECOND)
    assert told == (1, 6)
    assert watch.moved(3, 70 * MILLISECOND) == (1, 6)


def test_what_is_no_number_is_told_as_it_is() -> None:
    watch = Monitor(SECOND, 2)
    assert [watch.moved(text, 0) for text in "abc"] == [("a", "a"), ("b", "b"), ("c", "c")]
    assert watch.moved(True, 0) == (True, True)
    assert watch.moved(1, 0) == (1, 1)


def followed(way: str, seed: int, changes: int) -> Study:
    study = Study(way, seed)
    study.follow(restless(seed, changes))
    return study


@pytest.mark.parametrize("way", ["update", "monitor"])
@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_lost_and_nothing_told_that_never_held(way: str, seed: int) -> None:
    study = followed(way, seed, 1000)
    assert study.lost_and_wrong() == ([], [])
    assert len(study.told()) > 200


def test_the_checker_sees_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Edge.take
    monkeypatch.setattr(
        Edge, "take", lambda self, event, *at: [] if event.time % 7 == 0 else take(self, event, *at)
    )
    assert followed("monitor", 0, 200).lost_and_wrong()[0]


def test_the_checker_sees_what_is_told_under_a_value_of_the_past(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The network is told of every change and the edge of none: told is what once held."""
    monkeypatch.setattr(Edge, "move", lambda self, id, standing, **how: None)
    lost, wrong = followed("update", 0, 200).lost_and_wrong()
    assert lost or wrong


def test_a_monitor_spares_messages_and_brings_little_more() -> None:
    """Fast for 30 % of the time: at most half the messages, at most 27 % more events brought."""
    exact, watched = (followed(way, 7, 1500) for way in ("update", "monitor"))
    assert exact.quotes == watched.quotes
    # What is brought early may be told where it was missed while an update was on its way.
    assert set(exact.told()) <= set(watched.told())
    assert watched.sent <= exact.sent / 2
    assert watched.brought <= 1.27 * exact.brought
