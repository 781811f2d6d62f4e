"""How much time does a broker spend on a change, and on an event between changes?

The world of [PARAM §8.2]: 10 subscribers with a subscription to each of 100 types of events with 5
attributes. In a share of the subscriptions (the coverage) the bound is a threshold, so that those
of one type cover one another; the others are narrow ranges that do not. A change draws a
subscription and moves its variable: as an update in place, or by cancelling it and subscribing
again.

Each change is timed by itself, as CPU time, and then each of as many events, once nothing changes
any more: right after a change an event takes some microseconds longer either way, which is left
out. After every change both brokers must tell the same parties of an event near it, and now and
then those that a scan finds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from random import Random

from driftline.broker.broker import Broker
from driftline.broker.effects import Deliver, Effect
from driftline.broker.requests import Cancel, Subscribe
from driftline.broker.settings import Settings
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value

SEED = 1
SUBSCRIBERS = 10
TYPES = 100
ATTRIBUTES = 5
MATCHERS = ("poset", "index")
COVERAGES = (0, 33, 67, 100)
WAYS = ("update", "resubscribe")
STEPS = 2_000
REPEATS = 3

_WIDE = 1000.0
_STEP = 5.0
# Evaluating a thousand subscriptions takes as long as many changes.
_SCAN_EVERY = 40


@dataclass(frozen=True, slots=True)
class Times:
    """What each change took, by the way it was made, and each event: seconds."""

    changes: dict[str, list[float]]
    events: list[float]


def measured(matcher: str, coverage: int, steps: int) -> Times:
    """Of a few equal runs the quickest counts: other processes can only add to it."""
    changes: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    events: list[list[float]] = []
    for _ in range(REPEATS):
        told = {}
        for way in WAYS:
            world = World(matcher, coverage)
            times, told[way] = world.change(way, steps)
            changes[way].append(times)
            events.append(world.quiet(steps))
        if told["update"] != told["resubscribe"]:
            raise AssertionError("an update and a new subscription are told different events")
    return Times({way: min(runs, key=sum) for way, runs in changes.items()}, min(events, key=sum))


class World:
    """A broker, what is wanted of it now, and what happens next: the same for each world."""

    def __init__(self, matcher: str, coverage: int) -> None:
        self._draw = Random(SEED)
        self._broker = Broker("b", settings=Settings(matcher=matcher, stores=False, alone=True))
        self._standing: dict[str, Standing] = {}
        for subscriber in range(SUBSCRIBERS):
            for type in range(TYPES):
                covering = self._draw.random() * 100 < coverage
                start = self._draw.uniform(0, _WIDE)
                self._subscribe(
                    f"p{subscriber}",
                    f"p{subscriber} t{type}",
                    Standing.of(_wanted(type, covering), {"x": start}),
                )

    def change(self, way: str, steps: int) -> tuple[list[float], list[set[str]]]:
        """So many changes: what each took, and who was told of an event after it."""
        times, told = [], []
        change = self._update if way == "update" else self._resubscribe
        for step in range(steps):
            to = self._next()
            started = time.thread_time()
            change(*to)
            times.append(time.thread_time() - started)
            event = self._event_near(*to)
            told.append(_told(self._broker.publish(event, "publisher", 0)))
            if step % _SCAN_EVERY == 0:
                self._compare(event, told[-1])
        return times, told

    def quiet(self, events: int) -> list[float]:
        """What each of so many events takes while nothing changes."""
        times = []
        for _ in range(events):
            event = self._event()
            started = time.thread_time()
            self._broker.publish(event, "publisher", 0)
            times.append(time.thread_time() - started)
        return times

    def _next(self) -> tuple[str, str, float]:
        """A party, one of its subscriptions, and the next value of its variable."""
        party = f"p{self._draw.randrange(SUBSCRIBERS)}"
        id = f"{party} t{self._draw.randrange(TYPES)}"
        value = self._standing[id].params["x"]
        assert isinstance(value, float)
        return party, id, value + self._draw.uniform(-_STEP, _STEP)

    def _event(self) -> Event:
        return Event(f"t{self._draw.randrange(TYPES)}", self._values())

    def _event_near(self, party: str, id: str, value: float) -> Event:
        """One to which it may make a difference whether a change was made."""
        near = value + self._draw.uniform(-_STEP, _STEP)
        return Event(id.removeprefix(f"{party} "), {**self._values(), "a0": near})

    def _values(self) -> dict[str, Value]:
        return {f"a{at}": self._draw.uniform(0, _WIDE) for at in range(ATTRIBUTES)}

    def _subscribe(self, party: str, id: str, standing: Standing) -> None:
        self._standing[id] = standing
        self._broker.handle(Subscribe("", id, standing), party, 0)

    def _update(self, party: str, id: str, value: float) -> None:
        self._subscribe(party, id, self._standing[id].moved_to({"x": value}))

    def _resubscribe(self, party: str, id: str, value: float) -> None:
        self._broker.handle(Cancel("", id), party, 0)
        self._subscribe(party, id, Standing.of(self._standing[id].statement, {"x": value}))

    def _compare(self, event: Event, told: set[str]) -> None:
        entered = event.entering(0)
        expected = {id for id, one in self._standing.items() if one.matches(entered, {})}
        if told != expected:
            raise AssertionError(f"{event} concerns {expected}, and told were {told}")


def _told(effects: list[Effect]) -> set[str]:
    return {id for one in effects if isinstance(one, Deliver) for id in one.subscriptions}


@cache
def _wanted(type: int, covering: bool) -> Subscription:
    where = "a0 < :x" if covering else "a0 > :x AND a0 < :x + 1"
    found = parse(f"SELECT * FROM t{type} WHERE {where} AND a1 > 0")
    assert isinstance(found, Subscription)
    return found
