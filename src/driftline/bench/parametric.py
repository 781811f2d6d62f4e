"""What does a subscription that moves cost a broker, and what if it is made anew instead?

The study of one broker [PARAM §8.2]: 10 subscribers with a subscription to each of 100 types of
events with 5 attributes. In a share of the subscriptions (the coverage) the bound is a threshold,
so that those of one type cover one another; the others are narrow ranges that do not. A change
draws a subscription and moves its variable: as an update in place, or by cancelling it and
subscribing again.

Both brokers must tell the same parties of the same events, and what a scan finds.

- *change µs*: CPU time of one change, with everything that the broker does about it.
- *events/s*: what is left for events at so many changes a second of each subscriber, of one core.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from driftline.bench.report import Report, at_least
from driftline.broker.broker import Broker
from driftline.broker.effects import Deliver
from driftline.broker.requests import Cancel, Subscribe
from driftline.broker.settings import Settings
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription

SEED = 1
SUBSCRIBERS = 10
TYPES = 100
ATTRIBUTES = 5
COVERAGES = (0, 33, 67, 100)
RATES = (0, 100, 1000)
MATCHERS = ("poset", "index")
CHANGES, EVENTS = 2_000, 1_000
_WIDE = 1000.0
_REPEATS = 3


@dataclass(slots=True)
class _World:
    """What is wanted now, and where variables go next."""

    draw: Random
    standing: dict[str, Standing]

    def next(self) -> tuple[str, str, float]:
        """A subscription, its party and the next value of its variable."""
        subscriber = f"p{self.draw.randrange(SUBSCRIBERS)}"
        id = f"{subscriber} t{self.draw.randrange(TYPES)}"
        value = self.standing[id].params["x"]
        assert isinstance(value, float)
        return id, subscriber, value + self.draw.uniform(-5.0, 5.0)


def run(full: bool, say: Callable[[str], None]) -> Report:
    """Measure both ways at each coverage; `full` takes ten times as many changes and events."""
    times = 10 if full else 1
    figures: dict[str, object] = {
        "seed": SEED,
        "changes": CHANGES * times,
        "events": EVENTS * times,
    }
    rows: list[tuple[object, ...]] = []
    ratios: dict[str, list[float]] = {name: [] for name in MATCHERS}
    for matcher in MATCHERS:
        found: dict[str, object] = {}
        for coverage in COVERAGES:
            say(f"{matcher}, coverage {coverage} %")
            row = found[str(coverage)] = _measured(matcher, coverage, times)
            ratios[matcher].append(row["throughput_ratio"]["100"])
            rows.append(
                (
                    matcher,
                    f"{coverage} %",
                    *(f"{row[name]:.1f}" for name in ("update_us", "resubscribe_us", "event_us")),
                    *(f"{row['throughput_ratio'][str(rate)]:.2f}" for rate in RATES),
                )
            )
        figures[matcher] = found
    claims = [
        at_least("poset_throughput", 3.3, min(ratios["poset"]), "x"),
        at_least("index_throughput", 1.45, min(ratios["index"]), "x"),
    ]
    rates = (f"x at {rate}/s" for rate in RATES)
    columns = ("matcher", "coverage", "update µs", "again µs", "event µs", *rates)
    return Report("parametric", figures, columns, rows, claims)


def _measured(matcher: str, coverage: int, times: int) -> dict:  # type: ignore[type-arg]  # JSON
    update, again, event = [], [], []
    for _ in range(_REPEATS):
        moving, world = _broker(matcher, coverage)
        renewed, other = _broker(matcher, coverage)
        update.append(_changed(world, CHANGES * times, lambda *to, on=moving: _update(on, *to)))
        again.append(_changed(other, CHANGES * times, lambda *to, on=renewed: _again(on, *to)))
        events = _events(world.draw, EVENTS * times)
        started = time.process_time()
        told = [_told(moving, one) for one in events]
        event.append((time.process_time() - started) / len(events))
        if told[:EVENTS] != [_told(renewed, one) for one in events[:EVENTS]]:
            raise AssertionError("an update and a new subscription are told different events")
        _compare(world, events[:50], told[:50])
    costs = min(update), min(again), min(event)
    return {
        "update_us": costs[0] * 1e6,
        "resubscribe_us": costs[1] * 1e6,
        "event_us": costs[2] * 1e6,
        "events_per_s": {
            str(rate): {
                "update": _left(rate, costs[0], costs[2]),
                "resubscribe": _left(rate, costs[1], costs[2]),
            }
            for rate in RATES
        },
        "throughput_ratio": {
            str(rate): _left(rate, costs[0], costs[2]) / max(_left(rate, costs[1], costs[2]), 1e-9)
            for rate in RATES
        },
    }


def _left(rate: int, change: float, event: float) -> float:
    """Events a second of one core that spends what it must on changes; at least a hundredth."""
    return max(1 - rate * SUBSCRIBERS * change, 0.01) / event


def _broker(matcher: str, coverage: int) -> tuple[Broker, _World]:
    broker = Broker("b", settings=Settings(matcher=matcher, stores=False, alone=True))
    world = _World(Random(SEED), {})
    for subscriber in range(SUBSCRIBERS):
        for type in range(TYPES):
            id = f"p{subscriber} t{type}"
            covering = world.draw.random() * 100 < coverage
            start = world.draw.uniform(0, _WIDE)
            world.standing[id] = Standing.of(_wanted(type, covering), {"x": start})
            broker.handle(Subscribe("", id, world.standing[id]), f"p{subscriber}", 0)
    return broker, world


def _wanted(type: int, covering: bool) -> Subscription:
    where = "a0 < :x" if covering else "a0 > :x AND a0 < :x + 1"
    found = parse(f"SELECT * FROM t{type} WHERE {where} AND a1 > 0")
    assert isinstance(found, Subscription)
    return found


def _changed(
    world: _World, changes: int, change: Callable[[_World, str, str, float], None]
) -> float:
    started = time.process_time()
    for _ in range(changes):
        change(world, *world.next())
    return (time.process_time() - started) / changes


def _update(broker: Broker, world: _World, id: str, party: str, value: float) -> None:
    world.standing[id] = world.standing[id].moved_to({"x": value})
    broker.handle(Subscribe("", id, world.standing[id]), party, 0)


def _again(broker: Broker, world: _World, id: str, party: str, value: float) -> None:
    world.standing[id] = Standing.of(world.standing[id].statement, {"x": value})
    broker.handle(Cancel("", id), party, 0)
    broker.handle(Subscribe("", id, world.standing[id]), party, 0)


def _events(draw: Random, count: int) -> list[Event]:
    return [
        Event(
            f"t{draw.randrange(TYPES)}",
            {f"a{at}": draw.uniform(0, _WIDE) for at in range(ATTRIBUTES)},
        )
        for _ in range(count)
    ]


def _told(broker: Broker, event: Event) -> set[str]:
    effects = broker.publish(event, "publisher", 0)
    return {id for one in effects if isinstance(one, Deliver) for id in one.subscriptions}


def _compare(world: _World, events: list[Event], told: list[set[str]]) -> None:
    for event, found in zip(events, told, strict=True):
        entered = event.entering(0)
        expected = {id for id, one in world.standing.items() if one.matches(entered, {})}
        if found != expected:
            raise AssertionError(f"{event} concerns {expected}, and told were {found}")
