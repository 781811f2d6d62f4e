"""Does an engine that was pickled go on as if it had not been?

Random programs do the same to two engines, of which one is pickled now and then, with its arrays in
the pickle or in buffers of their own; and both must tell the same ever after.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from functools import partial
from types import MethodType

import numpy as np
import pytest

from driftline import Engine, Event, ManualClock
from driftline.stateful.news import WHEN_DIFFERENT
from driftline.stateful.value_based.crowd import CrowdGroup
from tests.engine.worlds import CROWDS, RANGES, Steps, World

STEPS = 160


def pickled(given: object, apart: bool) -> object:
    """The same again; its arrays `apart` from the rest, or not."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(given, 5, buffer_callback=buffers.append if apart else None)
    # A copy that can be written to, as what lies in a mapped file can.
    return pickle.loads(data, buffers=[memoryview(bytearray(one.raw())) for one in buffers])


def run(seed: int, *, matcher: str, evolving: str, few: bool, views: list[str] | None) -> int:
    steps = Steps(seed, views)
    world, other = (World.new(matcher, evolving, few) for _ in range(2))
    told = 0
    for at in range(STEPS):
        step = steps.next(world)
        assert world.do(step) == other.do(step), f"seed {seed}, step {at}: {step}"
        if steps.draw.random() < 0.1:
            # With what has not been read yet.
            other = pickled(other, steps.draw.random() < 0.5)
        found = world.told()
        assert other.told() == found, f"seed {seed}, step {at}: {step}"
        told += sum(map(len, found.values()))
    other.engine._check()
    return told


WAYS = [
    ("auto", "adaptive", True),
    ("auto", "versioned", False),
    ("index", "cached", False),
    ("index", "versioned", True),
    ("poset", "lazy", False),
    ("scan", "adaptive", False),
]


@pytest.mark.parametrize(("matcher", "evolving", "few"), WAYS)
def test_it_tells_what_one_tells_that_was_not_pickled(matcher, evolving, few) -> None:
    told = sum(
        run(seed, matcher=matcher, evolving=evolving, few=few, views=None) for seed in range(5)
    )
    assert told > 5 * STEPS


def test_so_it_does_with_views_over_ranges_alone() -> None:
    for seed in range(5):
        assert run(seed, matcher="auto", evolving="lazy", few=True, views=RANGES)


# Arrays.


def busy() -> World:
    """A world with much of everything."""
    steps, world = Steps(8), World.new("index", "versioned")
    steps.keys = 80
    for _ in range(2 * STEPS):
        world.do(steps.next(world))
    world.do(steps.swarm(world))
    world.gather(0, CROWDS[0], [1.0, 2.0, 3.0])
    for text in RANGES:
        world.do(steps.subscribed(text))
    world.observe(1)
    world.publish(Event("t", {"k": 1, "x": 1, "y": 2.5}))
    return world


def held(given: object) -> dict[str, np.ndarray]:
    """All arrays in something, however far down, by whose they are and what they are called."""
    found: dict[str, np.ndarray] = {}
    queue, seen = [("", given)], {id(given)}
    for name, one in queue:  # which grows
        if isinstance(one, np.ndarray):
            found[f"{name} {len(found)}"] = one
            continue
        for part, below in parts(one):
            if isinstance(below, np.ndarray) or id(below) not in seen:
                seen.add(id(below))
                queue.append((f"{type(one).__name__}.{part}", below))
    return found


def parts(one: object) -> list[tuple[object, object]]:
    if isinstance(one, dict):
        return [("key", key) for key in one] + [("value", value) for value in one.values()]
    if isinstance(one, list | tuple | set | frozenset):
        return [("item", item) for item in one]
    if isinstance(one, partial):
        return [("func", one.func)]
    if isinstance(one, MethodType):
        return [("self", one.__self__)]
    slots = [name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())]
    names = [*getattr(one, "__dict__", ()), *slots]
    return [(name, getattr(one, name)) for name in names if hasattr(one, name)]


def shared(world: World) -> set[tuple[str, str]]:
    """Which arrays are the same memory, or a part of it?"""
    found = [(name.split()[0], one) for name, one in held(world).items() if one.size]
    return {
        (min(name, other), max(name, other))
        for at, (name, one) in enumerate(found)
        for other, two in found[:at]
        # An index writes its templates again when it needs them.
        if np.may_share_memory(one, two) and not name.startswith("Template")
    }


def test_arrays_that_were_one_still_are_and_no_others() -> None:
    world = busy()
    before = shared(world)
    assert {("Combined._f", "Combined._m"), ("Blocks._f", "Blocks._m")} <= before
    assert shared(pickled(world, True)) == before


def test_large_arrays_are_not_in_the_pickle_and_are_changed_where_they_lie() -> None:
    engine = Engine(clock=ManualClock())
    engine.table("t", key="k")
    engine.crowd("SELECT y FROM t WHERE k = 1 AND moved(y, by => :r)", {"r": [*range(1, 5001)]})
    engine.publish(Event("t", {"k": 1, "y": 2.5}))
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(engine, 5, buffer_callback=buffers.append)
    size = sum(one.raw().nbytes for one in buffers)
    lie = [bytearray(one.raw()) for one in buffers]
    again = pickle.loads(data, buffers=lie)
    # Without the room that an index has for more.
    assert 500_000 < size < 2_000_000
    # What is left are names, and numbers of them.
    assert len(data) < 100_000
    before = [bytes(one) for one in lie]
    again.publish(Event("t", {"k": 1, "y": 1000.0}))
    assert [bytes(one) for one in lie] != before
    assert [one.raw().tobytes() for one in buffers] == before


def test_it_goes_on_in_another_process() -> None:
    """Where texts have other hashes."""
    steps, world = Steps(3), World.new()
    for _ in range(STEPS):
        world.do(steps.next(world))
    world.told()
    before, program = pickle.dumps(world), []
    for _ in range(40):
        program.append(steps.next(world))
        world.do(program[-1])
    given = pickle.dumps((before, program))
    command = [sys.executable, "-c", ELSEWHERE]
    done = subprocess.run(command, input=given, capture_output=True, check=True)
    assert pickle.loads(done.stdout) == world.told()


ELSEWHERE = """
import pickle, sys
before, program = pickle.load(sys.stdin.buffer)
world = pickle.loads(before)
for step in program:
    world.do(step)
sys.stdout.buffer.write(pickle.dumps(world.told()))
"""


def test_what_is_known_by_its_identity_stays_the_same() -> None:
    assert pickled(WHEN_DIFFERENT, False) is WHEN_DIFFERENT


@pytest.mark.parametrize("matcher", ["index", "poset"])
def test_it_does_not_matter_how_deep_filters_lie_within_each_other(matcher: str) -> None:
    engine = Engine(clock=ManualClock(), matcher=matcher)
    for number in range(600):
        engine.subscribe("SELECT * FROM t WHERE x BETWEEN :a AND :b", {"a": -number, "b": number})
    again = pickled(engine, False)
    assert again.publish(Event("t", {"x": 300})) == 300


def test_a_crowd_that_was_pickled_takes_columns_as_they_are(monkeypatch):
    """What is asked of its condition is asked by what it says, not by which object it is."""
    engine = Engine(clock=ManualClock())
    engine.table("t", key="k")
    text = "SELECT y FROM t WHERE k = 1 AND moved(y, by => :r)"
    engine.crowd(text, {"r": [*range(1, 101)]})
    again = pickled(engine, apart=True)
    monkeypatch.setattr(CrowdGroup, "_value", lambda self, row: pytest.fail("a row was looked at"))
    assert again.publish_many("t", {"k": [1] * 50, "y": [*map(float, range(50))]}) > 0
