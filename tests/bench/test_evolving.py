"""`driftline bench evolving`: its figures, and that it compares before it reports."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from driftline.bench import BENCHMARKS, evolving, evolving_traffic, evolving_ways
from driftline.bench import evolving_consistency as consistency
from driftline.bench.evolving_ways import Setting, as_of, measured
from driftline.broker.edge import Edge
from driftline.moving.evolving.cached import Cached
from driftline.moving.evolving.matcher import Evolving
from driftline.workload.evolving import SECOND, Scene, begun, ticks

SMALL = Setting("a", "b", Scene(subscriptions=100, rate=200))


def _smaller(setting: Setting) -> Setting:
    scene = setting.scene
    return replace(
        setting,
        scene=replace(
            scene, subscriptions=min(scene.subscriptions, 120), rate=min(scene.rate, 300)
        ),
        interval=min(setting.interval, SECOND // 5),
    )


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evolving, "SETTINGS", tuple(map(_smaller, evolving.SETTINGS)))
    monkeypatch.setattr(evolving, "ADAPTIVE", tuple(map(_smaller, evolving.ADAPTIVE)))
    for name in ("BASE", "BUSY"):
        monkeypatch.setattr(evolving, name, _smaller(getattr(evolving, name)))
    for name, size in (("EVENTS", 30), ("LARGE", 120), ("PAPER", 100), ("REPEATS", 1)):
        monkeypatch.setattr(evolving, name, size)
    monkeypatch.setattr(evolving_ways, "FIRST", 20)
    monkeypatch.setattr(evolving_traffic, "SECONDS", 2)
    monkeypatch.setattr(evolving_traffic, "RATES", (30,))


@pytest.mark.usefixtures("_small")
def test_each_setting_and_all_ways_are_reported() -> None:
    report = evolving.run(False, lambda text: None)
    assert report.name in BENCHMARKS
    figures = report.as_data()
    assert list(figures["processing"]) == [one.name for one in evolving.SETTINGS]
    for one in figures["processing"].values():
        assert list(one["us"]) == list(evolving_ways.WAYS)
        assert min(one["python_us"], *one["us"].values()) > 0
    assert {len(row) for row in report.rows} == {len(report.columns)}
    names = ["lazy_kernel", "cached_vs_versioned", "adaptive", "fewer_messages", "same_everywhere"]
    assert [claim.name for claim in report.claims] == names
    assert all(claim.measured is not None for claim in report.claims)


def test_events_satisfy_some_and_python_agrees() -> None:
    assert measured(SMALL, 50).matches_per_event > 1


def test_a_way_that_finds_less_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    look = Cached.look
    monkeypatch.setattr(Cached, "look", lambda *all: tuple(found[1:] for found in look(*all)))
    with pytest.raises(AssertionError, match="cached does not find"):
        measured(SMALL, 50)


def test_what_all_ways_miss_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    match = Evolving.match
    monkeypatch.setattr(Evolving, "match", lambda *all: match(*all)[1:])
    with pytest.raises(AssertionError, match="not what the definition says"):
        measured(SMALL, 50)


def test_versions_as_of_a_while_ago_are_wrong_and_of_just_now_are_not() -> None:
    late = as_of(SMALL.scene, SECOND, 200)
    assert late["cached_more_percent"] > 0 < late["cached_less_percent"]
    assert late["versioned_more_percent"] > 0 < late["versioned_less_percent"]
    now = as_of(SMALL.scene, 1, 20)
    assert not any(figure for name, figure in now.items() if name.endswith("percent"))


def test_what_evolves_is_told_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evolving_traffic, "SECONDS", 3)
    monkeypatch.setattr(evolving_traffic, "RATES", (12,))
    found = evolving_traffic.measured(False, lambda text: None)[12]
    # Each change is heard by the twelve brokers that it was not made at.
    assert found["update_messages"] == 12 * 12 * 3
    assert found["again_messages"] == 2 * found["update_messages"]
    assert found["evolving_messages"] == 2 * 12 * (54 * 3 // 60)
    assert found["evolving_bytes"] < found["update_bytes"] < found["again_bytes"]


def test_an_update_that_is_not_made_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Edge, "move", lambda self, id, standing, **how: None)
    monkeypatch.setattr(evolving_traffic, "SECONDS", 5)
    with pytest.raises(AssertionError, match="not those whom it concerns"):
        evolving_traffic.measured(False, lambda text: None)


def test_a_scene_has_as_much_of_everything_as_it_says() -> None:
    scene = Scene(subscriptions=1_000, rate=70, changes=20, share=50)
    evolve = [one.id for one in begun(scene) if "dx" in one.params]
    assert len(evolve) == pytest.approx(500, abs=2)
    ten = list(islice(ticks(scene), 200))
    assert sum(len(tick.events) for tick in ten) == 700
    assert len({tick.env["visibility"] for tick in ten}) == 200
    again = [one.id for tick in ten for one in tick.again]
    assert sorted(again) == sorted(evolve), "in ten seconds each thinks again once"
    assert max(len(tick.again) for tick in ten) < 9, "of each ten about half"
    stamps = [event.stamp for tick in ten for event in tick.events]
    assert stamps == sorted(stamps)
    assert SECOND <= stamps[0] < stamps[-1] < 11 * SECOND


def test_a_network_is_right_with_stamps_and_wrong_without() -> None:
    found = {mode: consistency.measured(mode, 150) for mode in consistency.MODES}
    for mode, one in found.items():
        assert one["right"] > 200
        wrong = one["more_percent"] + one["less_percent"]
        assert (wrong == 0) is mode.startswith("stamped"), mode
