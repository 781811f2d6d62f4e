"""What does it cost a network of brokers to learn who wants what, and to bring events to them?

All brokers run in one simulated overlay, frames and all: what is counted is the CPU time of all of
them together. Each has one party. The subscriptions are `symbol = s AND price BETWEEN lo AND hi`
over 500 symbols, some much more wanted than others, so hardly any filter covers another and a peer
must hear of nearly all: the hard case for forwarding [SIENA §5.2]. Beside the network stands one
broker alone, with the same subscriptions and events.

Who was told of what must be what evaluating every event against every subscription gives.

- *acyclic*: a random tree of peers, each told of all the others want.
- *hierarchical*: the same tree, interest goes up and all events too.
- *mesh*: the same tree and half as many links again; members tell all others what they want.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np

from driftline.bench.report import Report, at_most
from driftline.broker.links import Role
from driftline.broker.requests import Publish, Subscribe
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.sim.overlay import Overlay

SEED = 1
BROKERS = 100
SUBSCRIPTIONS = 10_000
EVENTS = 10_000
TOPOLOGIES = {"acyclic": Role.PEER, "hierarchical": Role.MASTER, "mesh": Role.MESH}

# So many are asked for before the network comes to rest.
_SUBSCRIPTIONS_AT_ONCE = 200
_EVENTS_AT_ONCE = 100
_SYMBOLS = 500
_PRICE_MAX = 1_000_000
_WIDTH = 5_600
"""Each event then satisfies about two subscriptions of ten thousand."""

_WANTED = "SELECT * FROM quote WHERE symbol = :s AND price BETWEEN :low AND :high"


@dataclass(frozen=True, slots=True)
class _Workload:
    """Where each subscription and event enters, and what it says."""

    brokers: int
    wants: list[tuple[int, int, int]]
    """At which broker, for which symbol, from which price on."""
    events: list[tuple[int, int, int]]
    """At which broker, of which symbol, at which price."""


def run(
    full: bool,
    say: Callable[[str], None],
    brokers: int = BROKERS,
    subscriptions: int = SUBSCRIPTIONS,
    events: int = EVENTS,
    topology: str | None = None,
) -> Report:
    """Measure a topology, the acyclic one if none is chosen; `full` measures all."""
    topologies = list(TOPOLOGIES) if full else ["acyclic"]
    if topology is not None:
        topologies = [topology]
    work = _workload(brokers, subscriptions, events)
    say("compile")
    _measured("alone", _workload(1, 300, 100), lambda text: None)
    figures: dict[str, object] = {
        "seed": SEED,
        "brokers": brokers,
        "subscriptions": subscriptions,
        "events": events,
    }
    rows: list[tuple[object, ...]] = []
    totals: dict[str, float] = {}
    for name in ("alone", *topologies):
        found = figures[name] = _measured(name, work, say)
        totals[name] = found["subscribe_s"] + found["publish_s"]
        rows.append((name, *map(_shown, found.values())))
    measured = (brokers, subscriptions, events) == (BROKERS, SUBSCRIPTIONS, EVENTS)
    claims = [
        at_most(f"{name}_s", 60.0, totals.get(name) if measured else None, "s")
        for name in ("acyclic", "hierarchical")
    ]
    columns = (
        "topology",
        "subscribe s",
        "frames",
        "bytes",
        "publish s",
        "frames",
        "bytes",
        "told",
        "events/s",
    )
    return Report("overlay", figures, columns, rows, claims)


def _shown(figure: float) -> str:
    return f"{figure:,}" if isinstance(figure, int) else f"{figure:,.2f}"


def _workload(brokers: int, subscriptions: int, events: int) -> _Workload:
    draw = Random(SEED)
    symbols = range(_SYMBOLS)
    weights = [1 / (rank + 1) for rank in symbols]
    wanted = draw.choices(symbols, weights, k=subscriptions)
    told = draw.choices(symbols, weights, k=events)
    return _Workload(
        brokers,
        [(at % brokers, s, draw.randrange(_PRICE_MAX - _WIDTH)) for at, s in enumerate(wanted)],
        [(draw.randrange(brokers), symbol, draw.randrange(_PRICE_MAX)) for symbol in told],
    )


def _measured(name: str, work: _Workload, say: Callable[[str], None]) -> dict[str, float]:
    """CPU seconds of both phases, and what they sent; asserts that the right ones were told."""
    overlay = Overlay(SEED)
    brokers = _linked(overlay, name, work.brokers)
    parties = [overlay.party(f"{broker}-party", broker) for broker in brokers]
    statement = parse(_WANTED)
    overlay.run()
    frames, sent = overlay.frames, overlay.bytes
    start = time.process_time()
    for at, (place, symbol, low) in enumerate(work.wants):
        if at % _SUBSCRIPTIONS_AT_ONCE == 0:
            say(f"{name}, {at:,} of {len(work.wants):,} subscriptions")
            overlay.run()
        params = {"s": f"S{symbol:03}", "low": low, "high": low + _WIDTH}
        asked = Subscribe("subscribe", str(at), Standing.of(statement, params))
        overlay.ask(parties[place % len(parties)], asked)
    overlay.run()
    subscribed = time.process_time()
    found = {
        "subscribe_s": subscribed - start,
        "subscribe_frames": overlay.frames - frames,
        "subscribe_bytes": overlay.bytes - sent,
    }
    frames, sent = overlay.frames, overlay.bytes
    for at, (place, symbol, price) in enumerate(work.events):
        if at % _EVENTS_AT_ONCE == 0:
            say(f"{name}, {at:,} of {len(work.events):,} events")
            overlay.run()
        event = Event("quote", {"symbol": f"S{symbol:03}", "price": price, "number": at})
        overlay.ask(parties[place % len(parties)], Publish("publish", event))
    overlay.run()
    publish_s = time.process_time() - subscribed
    told = [
        (int(str(deliver.event.attributes["number"])), int(id))
        for party in parties
        for deliver in party.told
        for id in deliver.subscriptions
    ]
    assert sorted(told) == _expected(work), f"{name}: not those whom it concerns"
    return {
        **found,
        "publish_s": publish_s,
        "publish_frames": overlay.frames - frames,
        "publish_bytes": overlay.bytes - sent,
        "deliveries": len(told),
        "events_per_s": len(work.events) / publish_s,
    }


def _linked(overlay: Overlay, name: str, count: int) -> list[str]:
    """The brokers of a topology, with links between them."""
    brokers = [f"b{at}" for at in range(1 if name == "alone" else count)]
    for broker in brokers:
        overlay.broker(broker)
    if name == "alone":
        return brokers
    draw, role = Random(SEED), TOPOLOGIES[name]
    for at, broker in enumerate(brokers[1:], 1):
        overlay.link(broker, brokers[draw.randrange(at)], role)
    for _ in range(count // 2 if name == "mesh" and count > 1 else 0):
        here, there = draw.sample(brokers, 2)
        if (here, there) not in overlay.links():
            overlay.link(here, there, role)
    return brokers


def _expected(work: _Workload) -> list[tuple[int, int]]:
    """Which subscriptions each event satisfies, by what they say."""
    symbols = np.array([symbol for _, symbol, _ in work.wants])
    lows = np.array([low for _, _, low in work.wants])
    found: list[tuple[int, int]] = []
    for at, (_, symbol, price) in enumerate(work.events):
        told = (symbols == symbol) & (lows <= price) & (price <= lows + _WIDTH)
        found += [(at, number) for number in np.flatnonzero(told).tolist()]
    return found
