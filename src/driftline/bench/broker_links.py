"""How fast do events go from broker to broker?

Three brokers in a row. Somebody publishes at the first what somebody at the last wants half of; so
the first sends half of it on, and the one in the middle passes all on that it gets. It counts until
the last of it was told, and all of it must have been.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from driftline.bench.broker_scale import Line
from driftline.bench.driftline_broker import Driftline
from driftline.model.event import Event
from driftline.wire import asking

_NAMES = ("first", "middle", "last")
_TOGETHER = 1000
_BEHIND = 10
_HALF = "SELECT * FROM quote WHERE price < 50"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Crossed:
    """What it took to bring events over two links."""

    events: int
    told: int
    seconds: float
    events_per_s: float
    cpu_us: dict[str, float]
    """Of each broker, for each event that came to it."""


def crossed(count: int, say: Say) -> dict[str, Any]:
    """Publish so many events in batches, one after the other."""
    brokers: list[Driftline] = []
    try:
        for at, name in enumerate(_NAMES):
            dialled = {_NAMES[at - 1]: brokers[at - 1].address} if at else {}
            awaited = _NAMES[at + 1 : at + 2]
            brokers.append(Driftline(name=name, peers={**dialled, **dict.fromkeys(awaited)}))
            brokers[-1].start()
        reader = Line(brokers[-1].address, "reader")
        # Answered when it is in effect everywhere.
        reader.ask([asking.Subscribe(1, 1, _HALF, {}, 20_000_000)])
        publisher = Line(brokers[0].address, "publisher")
        events = [Event("quote", {"symbol": "A", "price": n % 100}) for n in range(_TOGETHER)]
        told = _TOGETHER // 2
        publisher.publish(events)
        reader.notices(told)
        before = [one.cpu_s() for one in brokers]
        say(f"{count:,} events over two links")
        began, batches = time.perf_counter(), max(1, count // _TOGETHER)
        for batch in range(batches):
            publisher.publish(events)
            # Not too far behind: who does not read is no longer told everything.
            if batch >= _BEHIND:
                reader.notices(told)
        reader.notices(min(_BEHIND, batches) * told)
        seconds = time.perf_counter() - began
        if reader.left:
            raise AssertionError(f"{reader.left} more notices came than were wanted")
        came = (batches * _TOGETHER, batches * told, batches * told)
        cpu = {
            one.called: (one.cpu_s() - spent) / many * 1e6
            for one, spent, many in zip(brokers, before, came, strict=True)
        }
        for line in (reader, publisher):
            line.close()
        return asdict(Crossed(came[0], came[1], seconds, came[0] / seconds, cpu))
    finally:
        for one in brokers:
            one.stop()
