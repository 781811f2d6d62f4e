"""Bounds that follow time and the environment, in the engine."""

from __future__ import annotations

import random

import pytest

import driftline as dl
from driftline.errors import InvalidValue, NotSupported, ParameterError, SubscriptionEnded
from driftline.model.subscription import Subscription

AREA = "SELECT * FROM seen WHERE x BETWEEN :x - 1 + elapsed() AND :x + 1 + elapsed()"


@pytest.fixture
def clock() -> dl.ManualClock:
    return dl.ManualClock()


@pytest.fixture
def engine(clock: dl.ManualClock) -> dl.Engine:
    return dl.Engine(clock=clock)


def kinds(handle: dl.Handle) -> list[tuple[str, object, int]]:
    return [(str(one.kind), one.key, one.time) for one in handle.pending()]


# Time


def test_a_row_that_stands_still_enters_and_leaves(engine: dl.Engine, clock) -> None:
    engine.table("seen", key="id")
    engine.publish(dl.Event("seen", {"id": "apple", "x": 5}))
    engine.publish(dl.Event("seen", {"id": "pear", "x": 0.5}))
    s = engine.subscribe(AREA, {"x": 0}, rows=True, on_change="follow")
    assert kinds(s) == [("snapshot", "pear", 0)]
    assert engine.next_wake() == 1_500_001
    clock.advance(4)
    assert engine.wake() == 2
    assert kinds(s) == [("leave", "pear", 1_500_001), ("enter", "apple", 4_000_000)]
    clock.advance(10)
    # Every operation looks at the time first.
    engine.publish(dl.Event("seen", {"id": "fig", "x": 14}))
    assert kinds(s) == [("leave", "apple", 6_000_001), ("enter", "fig", 14_000_000)]
    engine.delete("seen", "fig")
    assert kinds(s) == [("leave", "fig", 14_000_000)]
    assert engine.next_wake() is None
    engine._check()


def test_a_moved_parameter_and_the_environment_change_when(engine: dl.Engine, clock) -> None:
    engine.table("seen", key="id")
    engine.publish(dl.Event("seen", {"id": "apple", "x": 5}))
    text = "SELECT * FROM seen WHERE x <= :x + env('speed') * elapsed()"
    s = engine.subscribe(text, {"x": 0}, rows=True, on_change="follow")
    assert engine.next_wake() is None  # The speed is not known.
    engine.set_env("speed", 1)
    assert engine.next_wake() == 5_000_000
    s.set(x=2)
    assert engine.next_wake() == 3_000_000
    clock.advance(1)
    s.set(x=2, rebase=True)
    assert engine.next_wake() == 4_000_000
    clock.advance(3)
    assert engine.wake() == 1
    engine.set_env("speed", None)
    assert [one[0] for one in kinds(s)] == ["enter", "leave"]
    s.cancel()
    assert engine.next_wake() is None


def test_what_cannot_be_followed_is_refused(engine: dl.Engine) -> None:
    engine.table("seen", key="id")
    with pytest.raises(NotSupported, match="polynomial"):
        engine.subscribe("SELECT * FROM seen WHERE x < hour(now())", rows=True, on_change="follow")
    with pytest.raises(NotSupported, match="rows=True"):
        engine.subscribe("SELECT * FROM seen WHERE x < elapsed()", on_change="follow")


CONDITIONS = (
    "x < :a + :b * elapsed()",
    "x BETWEEN :a * elapsed() AND :a * elapsed() + 2",
    "x = elapsed() * elapsed() - :a",
    "NOT x > elapsed() * elapsed() * :a - 3 * elapsed()",
    "x * elapsed() < :b OR elapsed() * 2 > x + :a",
    "(x - elapsed()) * (x - elapsed()) <= :b",
    "x <= :a - (elapsed() - 5) * (elapsed() - 5)",
    "x < elapsed() AND y > elapsed() - env('v')",
)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_told_is_what_looking_all_the_time_would_see(seed: int) -> None:
    """At the moment that is computed the truth changes, and at no moment before it."""
    draw = random.Random(seed)
    clock = dl.ManualClock(draw.randrange(1 << 40))
    engine = dl.Engine(clock=clock)
    engine.table("seen", key="id")
    engine.set_env("v", draw.choice((1, 2.5)))
    values = (-2, -1, 0, 1, 2, 3, 0.5, 7)
    for id in range(5):
        row = {"id": id, "x": draw.choice(values), "y": draw.choice(values)}
        engine.publish(dl.Event("seen", row))
    text = f"SELECT * FROM seen WHERE {draw.choice(CONDITIONS)}"
    statement = dl.parse(text)
    assert isinstance(statement, Subscription)
    names = statement.variables().parameters
    params = {name: draw.choice(values) for name in names}
    s = engine.subscribe(text, params, rows=True, on_change="follow")
    inside = {one.key for one in s.pending()}
    for _ in range(12):
        before, at = clock.now(), engine.next_wake()
        span = 20_000_000 if at is None else at - before - 1
        for later in sorted(draw.randrange(span + 1) for _ in range(5)) if span > 0 else ():
            assert _inside(engine, s, before + later) == inside
        if at is None:
            break
        clock.advance(us=at - before)
        assert engine.wake()
        for one in s.pending():
            assert one.time == at
            (inside.add if one.kind == "enter" else inside.remove)(one.key)
        assert _inside(engine, s, at) == inside
        engine._check()


def _inside(engine: dl.Engine, s: dl.Handle, at: int) -> set[object]:
    statement = s.statement
    assert isinstance(statement, Subscription)
    return {
        row.attributes["id"]
        for row in engine.rows("seen")
        if statement.truth(s._standing.scope(row.stamped(at), engine.env)) is True
    }


@pytest.mark.parametrize(
    ("where", "params", "x", "changes"),
    [
        # The difference of the two is no integer of 64 bits.
        ("x < -10 + :a * elapsed()", {"a": 10**18}, 2**63 - 5, [9_223_373]),
        # Divided by the first coefficient the others are infinite.
        ("x < :a * elapsed() * elapsed() + elapsed()", {"a": 1e-320}, 5, [5_000_001]),
        ("x < :a * elapsed() * elapsed() + elapsed()", {"a": 0}, 5, [5_000_001]),
        # Four roots that meet, far from the start.
        (
            "x < (elapsed() - :a) * (elapsed() - :a) * (elapsed() - :a) * (elapsed() - :a)",
            {"a": 1000.000003},
            0,
            [1_000_000_003, 1_000_000_004],
        ),
        # A root that comes out before the start, another one is far away.
        ("elapsed() * (elapsed() - :a) < x", {"a": 1e9}, -1, [1, 10**15]),
    ],
)
def test_moments_that_are_hard_to_compute(
    engine: dl.Engine, clock, where: str, params: dict, x: float, changes: list[int]
) -> None:
    engine.table("seen", key="id")
    engine.publish(dl.Event("seen", {"id": "apple", "x": x}))
    engine.subscribe(f"SELECT * FROM seen WHERE {where}", params, rows=True, on_change="follow")
    found = []
    while (at := engine.next_wake()) is not None:
        found.append(at)
        clock.advance(us=at - clock.now())
        engine.wake()
    assert found == changes


class Ticking:
    """A clock that goes on whenever it is read, as clocks do."""

    def __init__(self) -> None:
        self.time = 0

    def now(self) -> int:
        self.time += 1000
        return self.time


@pytest.mark.parametrize("change", ["subscribe", "set", "environment"])
def test_what_happens_between_two_readings_of_the_clock_is_told(change: str) -> None:
    for x in range(60):
        clock = Ticking()
        engine = dl.Engine(clock=clock)
        engine.table("seen", key="id")
        for id in range(5):
            engine.publish(dl.Event("seen", {"id": id, "x": x / 1000}))
        engine.set_env("v", 0)
        text = "SELECT * FROM seen WHERE x < :a + elapsed() + env('v')"
        s = engine.subscribe(text, {"a": 0}, rows=True, on_change="follow")
        if change == "set":
            s.set(a=0.001)
        elif change == "environment":
            engine.set_env("v", 0.001)
        clock.time += 1_000_000
        engine.wake()
        assert {one.key for one in s.pending()} == set(range(5))


def test_a_row_with_an_old_stamp_leaves_when_it_did(engine: dl.Engine, clock) -> None:
    engine.table("seen", key="id")
    s = engine.subscribe("SELECT * FROM seen WHERE x > elapsed()", rows=True, on_change="follow")
    clock.advance(10)
    engine.publish(dl.Event("seen", {"id": "apple", "x": 5}, entered=1_000_000))
    engine.wake()
    assert kinds(s) == [("enter", "apple", 1_000_000), ("leave", "apple", 5_000_000)]


def test_what_a_provider_says_was_not_so_before(engine: dl.Engine, clock) -> None:
    engine.table("seen", key="id")
    engine.publish(dl.Event("seen", {"id": "apple", "x": 5}))
    engine.provide("v", lambda: 1 if clock.now() < 10_000_000 else 100, every=10)
    text = (
        "SELECT * FROM seen WHERE x BETWEEN elapsed() * env('v') - 1 AND elapsed() * env('v') + 1"
    )
    s = engine.subscribe(text, rows=True, on_change="follow")
    clock.advance(12)
    assert engine.wake() == 2
    assert kinds(s) == [("enter", "apple", 4_000_000), ("leave", "apple", 6_000_001)]
    assert engine.env == {"v": 100}
    engine.provide("v", lambda: 5 / 12)
    assert kinds(s) == [("enter", "apple", 12_000_000)]
    engine.provide("v", lambda: 100)
    clock.advance(1)
    assert engine.wake() == 0
    engine.provide("v", iter([5 / 13, 100]).__next__)
    clock.advance(1)
    assert engine.wake() == 1  # What a polled variable does is counted too.


def test_a_function_that_raises_does_not_keep_others_from_being_told(
    engine: dl.Engine, clock
) -> None:
    """What time made due is told by functions when all that a change does is done."""
    engine.table("seen", key="id")
    engine.publish(dl.Event("seen", {"id": "apple", "x": 5}))
    engine.subscribe(AREA, {"x": 0}, rows=True, on_change="follow", party="loud")
    engine.redirect("loud", lambda handle, told: 1 / 0)
    text = "SELECT * FROM seen WHERE x < :a"
    s = engine.subscribe(text, {"a": 0}, on_change="reevaluate")
    clock.advance(5)
    with pytest.raises(ZeroDivisionError):
        s.set(a=10)
    assert kinds(s) == [("enter", "apple", 5_000_000)]


def test_moving_a_parameter_does_not_begin_anew_unless_asked(engine: dl.Engine, clock) -> None:
    s = engine.subscribe("SELECT * FROM seen WHERE x < :a + elapsed()", {"a": 0})
    clock.advance(5)
    s.set(a=1)
    assert engine.publish(dl.Event("seen", {"x": 5})) == 1
    s.set(a=1, rebase=True)
    assert engine.publish(dl.Event("seen", {"x": 5})) == 0
    clock.advance(5)
    assert engine.publish(dl.Event("seen", {"x": 5})) == 1
    assert s.rebase() == 3
    assert engine.publish(dl.Event("seen", {"x": 5})) == 0
    with pytest.raises(ParameterError):
        s.set(rebase=True, b=2)
    assert (s.epoch, s.params) == (3, {"a": 1})


def test_a_parameter_may_be_called_rebase(engine: dl.Engine, clock) -> None:
    s = engine.subscribe("SELECT * FROM seen WHERE :rebase AND x < elapsed()", {"rebase": True})
    clock.advance(5)
    s.set(rebase=True)
    assert engine.publish(dl.Event("seen", {"x": 4})) == 1
    s.rebase()
    assert engine.publish(dl.Event("seen", {"x": 4})) == 0


# The environment


def test_a_provider_is_polled_when_its_time_has_come(engine: dl.Engine, clock) -> None:
    asked = []

    def wind() -> float:
        asked.append(clock.now())
        return float(len(asked))

    s = engine.subscribe("SELECT * FROM gust WHERE speed > env('wind')")
    assert engine.unknown() == {"wind": "nobody has given it a value (1 conditions)"}
    engine.provide("wind", wind, every=2)
    assert (asked, engine.env, engine.unknown()) == ([0], {"wind": 1.0}, {})
    assert engine.publish(dl.Event("gust", {"speed": 1.5})) == 1
    clock.advance(1.9)
    engine.wake()
    assert asked == [0]
    assert engine.next_wake() == 2_000_000
    clock.advance(0.1)
    assert engine.publish(dl.Event("gust", {"speed": 1.5})) == 0
    clock.advance(60)  # Nobody looked: it is asked once, not thirty times.
    engine.wake()
    assert asked == [0, 2_000_000, 62_000_000]
    engine.provide("wind", None)
    clock.advance(60)
    engine.wake()
    assert len(asked) == 3
    assert s.pending()


def test_a_provider_that_fails_makes_it_unknown_and_says_why(engine: dl.Engine, clock) -> None:
    values = iter([3, ZeroDivisionError("none left"), object(), 4])

    def wind() -> object:
        value = next(values)
        if isinstance(value, Exception):
            raise value
        return value

    engine.subscribe("SELECT * FROM gust WHERE speed > env('wind')")
    engine.provide("wind", wind, every=1)
    assert engine.publish(dl.Event("gust", {"speed": 5})) == 1
    clock.advance(1)
    assert engine.publish(dl.Event("gust", {"speed": 5})) == 0
    assert engine.unknown() == {"wind": "ZeroDivisionError: none left (1 conditions)"}
    clock.advance(1)
    engine.wake()
    assert "environment variable wind" in engine.unknown()["wind"]
    clock.advance(1)
    assert engine.publish(dl.Event("gust", {"speed": 5})) == 1
    assert engine.unknown() == {}


def test_a_live_set_of_rows_says_too_what_it_does_not_know(engine: dl.Engine) -> None:
    engine.table("seen", key="id")
    engine.subscribe("SELECT * FROM seen WHERE x < env('speed')", rows=True)
    assert engine.unknown() == {"speed": "nobody has given it a value (1 conditions)"}
    engine.set_env("speed", 1)
    assert engine.unknown() == {}


def test_an_engine_sends_nothing(engine: dl.Engine) -> None:
    engine.subscribe("SELECT * FROM seen WHERE env('broker.outgoing') < 100")
    assert engine.publish(dl.Event("seen", {})) == 0
    assert "broker.outgoing" in engine.unknown()


def test_a_provider_may_end_what_is_being_moved(engine: dl.Engine, clock) -> None:
    engine.table("seen", key="id")
    s = engine.subscribe(AREA, {"x": 0}, rows=True, on_change="follow")
    engine.provide("wind", lambda: clock.now() and s.cancel(), every=1)
    clock.advance(1)
    with pytest.raises(SubscriptionEnded):
        s.set(x=1)
    engine._check()
    assert engine.publish(dl.Event("seen", {"id": 1, "x": 2})) == 0


def test_what_a_provider_must_be(engine: dl.Engine) -> None:
    for every in (0, -1, float("nan"), "soon", True):
        with pytest.raises(InvalidValue, match="every"):
            engine.provide("wind", lambda: 1, every=every)
    with pytest.raises(InvalidValue, match="provider"):
        engine.provide("wind", 3)  # type: ignore[arg-type]
    for name in ("", 3, "broker.outgoing"):
        with pytest.raises(InvalidValue, match="environment variable"):
            engine.provide(name, lambda: 1)  # type: ignore[arg-type]
        with pytest.raises(InvalidValue, match="environment variable"):
            engine.set_env(name, 1)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="4096 bytes"):
        engine.set_env("long", "x" * 5000)
    assert engine.env == {}
    assert engine.next_wake() is None


def test_too_many_variables_are_refused(engine: dl.Engine) -> None:
    for at in range(100):
        engine.set_env(f"v{at}", at)
    with pytest.raises(InvalidValue, match="at most 100"):
        engine.set_env("one more", 1)
    engine.set_env("v0", None)
    engine.set_env("one more", 1)


# How they are found


@pytest.mark.parametrize("way", ["lazy", "cached", "versioned", "adaptive"])
def test_all_ways_tell_the_same(way: str) -> None:
    draw = random.Random(3)
    clock = dl.ManualClock()
    engine = dl.Engine(clock=clock, evolving=way, interval=0.5)
    reference = dl.Engine(clock=clock, evolving="lazy")
    text = "SELECT * FROM seen WHERE x BETWEEN :x - 1 + elapsed() AND :x + 1 + elapsed()"
    for _ in range(60):
        params = {"x": draw.uniform(0, 30)}
        for one in (engine, reference):
            one.subscribe(text, params)
        clock.advance(0.01)
    told = 0
    for _ in range(200):
        clock.advance(0.05)
        event = dl.Event("seen", {"x": draw.uniform(0, 40)})
        told += (count := engine.publish(event))
        assert count == reference.publish(event)
    assert told > 100
    ((asks, rows, found, why),) = engine.ways()
    assert rows == 60
    assert "elapsed()" in asks
    assert why
    assert way in (found, "adaptive")
    engine._check()


def test_a_way_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidValue, match="adaptive, lazy, cached, versioned"):
        dl.Engine(evolving="eager")
    with pytest.raises(InvalidValue, match="interval"):
        dl.Engine(interval=0)


def test_a_condition_that_cannot_be_executed_changes_nothing(engine: dl.Engine, clock) -> None:
    s = engine.subscribe("SELECT * FROM quote WHERE price < 10")
    with pytest.raises(dl.DriftlineError):
        s.add("moved(price, by => 2)")
    with pytest.raises(dl.DriftlineError):
        s.remove("price < 11")
    assert s.epoch == 0
    assert str(s.statement) == "SELECT * FROM quote WHERE price < 10"
    assert engine.publish(dl.Event("quote", {"price": 9})) == 1
    engine._check()


def test_a_provider_that_moves_what_is_being_moved_counts_before(engine: dl.Engine, clock) -> None:
    s = engine.subscribe("SELECT * FROM gust WHERE speed > :x + env('wind')", {"x": 1})
    asked = 0

    def wind() -> int:
        nonlocal asked
        asked += 1
        if asked == 2:
            s.set(x=2)
        return 0

    engine.provide("wind", wind, every=1)
    clock.advance(1)
    assert s.set(x=3) == 2
    assert (s.epoch, s.params) == (2, {"x": 3})
    engine._check()
