"""`driftline bench parametric`: its figures, and that it compares before it reports."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys

import pytest

from driftline.bench import BENCHMARKS, following, held, one_broker, parametric, waiting
from driftline.bench.following import Move, Quote, Study, steady
from driftline.bench.report import Report, Table
from driftline.bench.waiting import Kind, queued, sojourns
from driftline.broker.edge import Edge
from driftline.cli import bench as command
from driftline.model.standing import Standing


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, size in (
        (one_broker, "TYPES", 6),
        (one_broker, "STEPS", 40),
        (one_broker, "REPEATS", 1),
        (waiting, "ARRIVALS", 2000),
        (held, "SUBSCRIPTIONS", 100),
        (held, "_WARMING", 20),
        (parametric, "CHANGES", 60),
        (parametric, "NETWORK_RATES", (20,)),
        (parametric, "SECONDS", 1),
    ):
        monkeypatch.setattr(module, name, size)


def test_all_of_the_study_is_reported(small: None) -> None:
    report = parametric.run(False, lambda text: None)
    assert report.name in BENCHMARKS
    assert len(report.rows) == len(one_broker.MATCHERS) * len(one_broker.COVERAGES)
    assert all(len(row) == len(one.columns) for one in (report, *report.more) for row in one.rows)
    figures = report.as_data()
    for matcher in one_broker.MATCHERS:
        found = figures[matcher]["33"]
        assert found["update_us"] > 0
        assert found["throughput_ratio"]["0"] == 1
        assert list(found["queue"]) == [str(rate) for rate in parametric.RATES]
        quiet, busy = found["queue"]["0"]["update"], found["queue"]["100"]["update"]
        assert quiet["delay_us"] is None
        assert 0 < quiet["latency_us"]["p50"] <= quiet["latency_us"]["p99"]
        assert 0 < busy["delay_us"]["p50"] <= busy["delay_us"]["p99"]
        assert quiet["load"] == pytest.approx(parametric.LOAD)
    assert figures["memory"]["linked_poset"]["subscriptions"] == 100
    assert figures["network"]["restless"]["update"]["changes"] == 60
    assert {claim.name: claim.holds for claim in report.claims}["nothing_lost"]


@pytest.mark.parametrize("matcher", one_broker.MATCHERS)
def test_an_update_that_is_not_made_is_no_result(
    matcher: str, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Edge, "move", lambda self, id, standing, **how: None)
    with pytest.raises(AssertionError, match=r"different events|told were"):
        one_broker.measured(matcher, 33, 40)


# Waiting


def test_a_queue_takes_as_long_as_theory_says() -> None:
    """One server, exponential times: the time there is exponential, of rate service - arrival."""
    draw = random.Random(1)
    services = [draw.expovariate(1000) for _ in range(5000)]
    found = queued([Kind(300, services), Kind(300, services)], seed=1)
    assert found is not None
    for kind in found:
        assert kind is not None
        assert kind.p50 == pytest.approx(math.log(2) / 400 * 1e6, rel=0.1)
        assert kind.p99 == pytest.approx(math.log(100) / 400 * 1e6, rel=0.15)


def test_each_waits_for_those_before() -> None:
    assert list(sojourns([0, 1, 1, 20], [5, 5, 5, 5])) == [5, 9, 13, 5]


def test_a_queue_that_grows_forever_has_no_times() -> None:
    assert queued([Kind(600, [0.001]), Kind(400, [0.001])], seed=1) is None
    assert queued([Kind(599, [0.001]), Kind(400, [0.001])], seed=1) is not None


def test_an_overload_is_said_to_be_one() -> None:
    """A thousand changes a second of ten subscribers, 0.09 ms or 0.2 ms each, of one core."""
    times = one_broker.Times({"update": [9e-5], "resubscribe": [2e-4]}, [1e-5])
    found = parametric._broker_figures(times)
    assert found["throughput_ratio"]["1000"] is None
    assert found["throughput_ratio"]["100"] == pytest.approx(0.91 / 0.8)
    queue = found["queue"]["1000"]
    assert queue["events_per_s"] == pytest.approx(5_000)
    assert queue["update"]["stable"]
    assert queue["update"]["load"] == pytest.approx(0.95)
    assert not queue["resubscribe"]["stable"]
    assert queue["resubscribe"]["latency_us"] is None


# Memory


_MEASURE = """
import json
from driftline.bench import held

held.SUBSCRIPTIONS, held._WARMING = 1000, 200

def measured(parametric):
    return held.bytes_per_subscription("index", "alone", parametric=parametric)

# What is loaded and remembered once is there already.
measured(False)
held.SEED = 1234  # Nobody has had these constants before.
found = {"first": measured(False)}
there_before = held._filled("index", "alone", False, 3000)
found |= {"second": measured(False), "own": measured(True)}
held._own = lambda statement: statement
found["shared"] = measured(True)
print(json.dumps(found))
"""


def test_memory_is_that_of_the_subscriptions_alone() -> None:
    """Not of what was there before, and with what each has of its own.

    In a process of its own: what other tests have left in this one, such as threads, counts too.
    """
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    # A table that grows four times at once, a little earlier or later, is not more than this.
    assert found["second"] == pytest.approx(found["first"], rel=0.2)
    assert found["shared"] < found["own"] - 300


# The network


def test_an_update_loses_nothing_where_a_new_subscription_does() -> None:
    """Between cancelling and subscribing lies a round trip at each link, of 50 ms a change."""
    trace = steady(seed=1, rate=20, seconds=3)
    found = {}
    for way in following.WAYS:
        study = Study(way, 1)
        study.follow(trace)
        found[way] = study
        assert not study.lost_and_wrong()[1]
    assert not found["update"].lost_and_wrong()[0]
    assert not found["monitor"].lost_and_wrong()[0]
    assert len(found["resubscribe"].lost_and_wrong()[0]) > 50
    assert found["resubscribe"].sent > 1.9 * found["update"].sent
    assert found["resubscribe"].sent_bytes > 2 * found["update"].sent_bytes


def test_changes_that_were_joined_lose_nothing_either() -> None:
    """At 100 a second several wait for a link at a time, and the newest is all that is told."""
    study = Study("update", 1)
    study.follow(steady(seed=1, rate=100, seconds=2))
    assert study.sent < 0.6 * len(study.moves)
    assert study.lost_and_wrong() == ([], [])
    assert max(study.delays()) <= 40_000


def test_a_change_counts_from_when_it_is_confirmed() -> None:
    """One that is confirmed after 40 ms is not in effect for what enters before, and is after."""
    moves = [Move(0, 10.0), Move(1_000_000, 50.0)]
    for entered, told, lost in ((1_019_000, [], []), (1_020_000, [0], []), (1_041_000, [0], [])):
        study = Study("update", 0)
        study.follow([*moves, Quote(entered, 30.0)])
        assert study.confirm_delays() == [40_000, 40_000]
        assert study.delays() == [20_000, 20_000]
        assert (list(study.told()), study.lost_and_wrong()) == (told, (lost, []))


@pytest.mark.parametrize(("entered", "must"), [(1_039_000, False), (1_041_000, True)])
def test_what_nobody_is_told_of_is_lost_once_the_change_is_confirmed(
    entered: int, must: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Edge, "take", lambda self, event, *at: [])
    study = Study("update", 0)
    study.follow([Move(0, 10.0), Move(1_000_000, 50.0), Quote(entered, 30.0)])
    assert study.lost_and_wrong() == ([0] if must else [], [])


@pytest.mark.parametrize(("entered", "wrong"), [(1_039_000, []), (1_041_000, [0])])
def test_what_is_told_must_have_held_since_the_last_change_that_was_confirmed(
    entered: int, wrong: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A subscriber that says it moved and did not: told is what no longer holds."""
    of = Standing.of
    monkeypatch.setattr(Standing, "of", lambda statement, params: of(statement, {"x": 50.0}))
    study = Study("update", 0)
    study.follow([Move(0, 50.0), Move(1_000_000, 10.0), Quote(entered, 30.0)])
    assert study.lost_and_wrong() == ([], wrong)


@pytest.mark.parametrize(("later", "must"), [(1_519_000, False), (1_521_000, True)])
def test_what_changes_after_an_event_could_have_been_told_is_no_excuse(
    later: int, must: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Edge, "take", lambda self, event, *at: [])
    study = Study("update", 0)
    study.follow([Move(0, 50.0), Quote(1_500_000, 30.0), Move(later, 10.0)])
    assert study.lost_and_wrong() == ([0] if must else [], [])


# The command


def test_every_table_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = [Table("another", ("what",), [("one",)]), Table("a third", ("what",), [("two",)])]
    report = Report("parametric", {}, ("column",), [("cell",)], [], tables)
    monkeypatch.setattr(parametric, "run", lambda full, say: report)
    command.bench("parametric")
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("cell", "another", "one", "a third", "two", "Claims"))
