"""How long does each way take for the events of a scene, and does it find what it should?

The ways take turns within each tick of the scene, so that what disturbs one disturbs all. Only
finding is timed, with all that it makes a way do; that subscriptions are told again costs all ways
the same.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from random import Random
from typing import TypeAlias

from driftline.matching.choice import make_matcher
from driftline.model.standing import Standing
from driftline.model.value import Value
from driftline.moving.evolving.as_of import AsOf
from driftline.moving.evolving.choice import EvolvingMatcher
from driftline.moving.evolving.matcher import Evolving
from driftline.workload.evolving import SECOND, SEED, Scene, Tick, begun, ticks

WAYS = ("lazy", "cached", "versioned", "adaptive")
FIRST = 200
"""So many events come before those that are measured, and a second at least: the adaptive way has
then chosen."""

# Python evaluates about so many subscriptions, at no fewer events than two.
_SAMPLE = 50_000

Told: TypeAlias = list[list[str]]
"""Of each event the subscriptions that it satisfies."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A scene, what is varied in it, and how long (microseconds) versions are kept."""

    varies: str
    at: str
    scene: Scene
    interval: int = SECOND

    @property
    def name(self) -> str:
        """As it is called in the figures."""
        return f"{self.varies} {self.at}"

    def events(self, least: int) -> int:
        """At least so many, and all that come in a whole number of intervals."""
        each = self.scene.rate * self.interval / SECOND
        return ceil(ceil(least / each) * each)


@dataclass(frozen=True, slots=True)
class Measured:
    """Microseconds an event in Python and each way, and what the adaptive way has come to."""

    python_us: float
    us: dict[str, float]
    matches_per_event: float
    chosen: str

    @property
    def above_best(self) -> float:
        """The adaptive way, as a multiple of the best of the others."""
        return self.us["adaptive"] / min(self.us[way] for way in WAYS if way != "adaptive")


class Race:
    """Matchers that are given the same, and what they spend on it."""

    def __init__(self, scene: Scene, matchers: Mapping[str, EvolvingMatcher]) -> None:
        self._matchers = matchers
        self._order = list(matchers)
        self._draw = Random(SEED)
        self._ticks = ticks(scene)
        self._wanted = {one.id: one for one in begun(scene)}
        for one in self._wanted.values():
            for matcher in matchers.values():
                matcher.add(one.id, one.statement.filters(), one.params, one.start)
        self._env: Mapping[str, Value] = {}
        self._spent: dict[str, float] = {}
        self.rest()

    def rest(self) -> None:
        """Begin to count."""
        self._spent = dict.fromkeys(self._matchers, 0.0)
        self.events = 0

    def run(self, events: int) -> Iterator[tuple[Tick, dict[str, Told]]]:
        """Let at least so many events come; each tick, and what every matcher found for it."""
        while self.events < events:
            tick = next(self._ticks)
            for one in tick.again:
                self._wanted[one.id] = one
                for matcher in self._matchers.values():
                    matcher.change(one.id, one.params, one.start)
            if self._env and tick.env != self._env:
                for matcher in self._matchers.values():
                    matcher.advance(tick.at, self._env)
            self._env = tick.env
            self.events += len(tick.events)
            self._last = tick
            # In another order each time: who comes after whom finds other things in the caches.
            self._draw.shuffle(self._order)
            yield tick, {name: self._found(name, tick) for name in self._order}

    def _found(self, name: str, tick: Tick) -> Told:
        matcher, env = self._matchers[name], tick.env
        start = time.process_time()
        found = [matcher.match(event, env) for event in tick.events]
        self._spent[name] += time.process_time() - start
        return found

    def us(self, name: str) -> float:
        """Microseconds an event."""
        return self._spent[name] / self.events * 1e6

    def python(self, told: Told) -> float:
        """Microseconds an event of what one would write, for the last tick.

        Asserts that it finds the same.
        """
        standing = {
            id: Standing(one.statement, one.params, one.start) for id, one in self._wanted.items()
        }
        some = self._last.events[: max(2, _SAMPLE // len(standing))]
        start = time.process_time()
        found = [
            [id for id, one in standing.items() if one.matches(event, self._env)] for event in some
        ]
        spent = time.process_time() - start
        if found != told[: len(some)]:
            raise AssertionError("what is found is not what the definition says")
        return spent / len(some) * 1e6


def measured(setting: Setting, events: int) -> Measured:
    """Let all ways find the same, and some of it in Python."""
    matchers = {way: Evolving(make_matcher("auto"), way, setting.interval) for way in WAYS}
    race = Race(setting.scene, matchers)
    found = 0
    with _no_collection():
        for _, told in race.run(max(FIRST, setting.scene.rate)):
            _compare(setting, told)
        race.rest()
        for _, told in race.run(setting.events(events)):
            _compare(setting, told)
            found += sum(map(len, told["lazy"]))
    return Measured(
        race.python(told["lazy"]),
        {way: race.us(way) for way in WAYS},
        found / race.events,
        ", ".join(sorted({one.way for one in matchers["adaptive"].ways()})),
    )


def best(setting: Setting, events: int, repeats: int) -> Measured:
    """The least that each takes in a few runs: other processes can only add to it."""
    runs = [measured(setting, events) for _ in range(repeats)]
    return replace(runs[-1], us={way: min(one.us[way] for one in runs) for way in WAYS})


def _compare(setting: Setting, told: dict[str, Told]) -> None:
    for way, found in told.items():
        if found != told["lazy"]:
            raise AssertionError(f"{setting.name}: {way} does not find what lazy finds")


def as_of(scene: Scene, interval: int, events: int) -> dict[str, float]:
    """The paper's own meaning: microseconds an event, and percent told or not told wrongly."""
    race = Race(
        scene,
        {
            "exact": Evolving(make_matcher("auto"), "lazy", interval),
            "cached": AsOf(make_matcher("auto"), "cached", interval),
            "versioned": AsOf(make_matcher("auto"), "versioned", interval),
        },
    )
    wrong = {f"{name}_{how}": 0 for name in ("cached", "versioned") for how in ("more", "less")}
    exactly = 0
    for _, told in race.run(events):
        for at, exact in enumerate(told["exact"]):
            exactly += len(exact)
            for name in ("cached", "versioned"):
                wrong[f"{name}_more"] += len(set(told[name][at]) - set(exact))
                wrong[f"{name}_less"] += len(set(exact) - set(told[name][at]))
    return {f"{name}_us": race.us(name) for name in ("exact", "cached", "versioned")} | {
        f"{name}_percent": 100 * count / exactly for name, count in wrong.items()
    }


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without garbage collection: it would be told as the time of whoever it interrupts."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
