"""What does a broker cost that knows what its subscribers want, beside one that knows subjects?

One question in each file:

- `broker_job`: what is asked of a broker, and who must be told of which event?
- `broker_contestant`: what must a broker show to take part?
- `nats`, `nats_stream`: how does NATS do it?
- `broker_driver`: how fast and how late do events come?
- `broker_runs`: and run after run?
- `broker_durable`: how many events a second are acknowledged that must not be lost?
- `driftline_broker`: how does Driftline do it?
- `broker_links`: how fast do events go from broker to broker?
- `broker_secure`: what do TLS, tokens and lists of access cost? (`--secure`, and nothing else)
- `broker_scale`: how many subscriptions can it have, and how soon is it back after a crash?

Events go over real sockets, from one publisher to 200 connections, with everything on one machine:
the driver takes its share of the cores, and says how much (`driver_busy`). Every connection must
have received exactly what it wants before a figure is told.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from driftline.bench.broker_contestant import Contestant
from driftline.bench.broker_driver import TICK_S
from driftline.bench.broker_durable import appended, syncs_per_s
from driftline.bench.broker_job import SEED, Job, Truth, fan_out_job, stock_job, truth_of
from driftline.bench.broker_links import crossed
from driftline.bench.broker_runs import (
    Figures,
    Prepared,
    Say,
    Started,
    in_turns,
    middle,
    middle_latency,
    started,
)
from driftline.bench.broker_scale import scale
from driftline.bench.broker_tables import tables
from driftline.bench.driftline_broker import Driftline
from driftline.bench.nats import Nats
from driftline.bench.report import Claim, Report, at_least, at_most

OURS, BY_SYMBOL, BUCKETED = "driftline", "NATS, subject per symbol", "NATS, bucketed"
RATE = 10_000
BATCH = 100

# How many notifications a publisher may be ahead where everybody wants everything.
_FAN_OUT_WINDOW = 400_000
# A paced run is no longer than this many events, however high its rate.
_PACED_MAX = 500_000

# What the job must look like, or the figures answer another question: useful notifications per
# event, and the messages per event of each contestant that the job was made for.
_USEFUL = (0.9, 1.2)
_MESSAGES = {BY_SYMBOL: (32, 42), BUCKETED: (1.25, 1.65)}

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """A contestant, and how many events a second or two take it."""

    make: Callable[[], Contestant]
    events: int
    events_full: int
    fans_out: bool = True
    """Raw fan-out is the same whatever the subjects are."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is run: a share of each entry's events, repeats, and so on."""

    full: bool = False
    share: float = 1.0
    repeats: int = 3
    paced_s: float = 2.0
    fan_out: int = 10_000
    durable: int = 20_000
    durable_s: float = 3.0
    links: int = 100_000
    """Events over two links."""
    scale: int = 100_000
    """Subscriptions on one broker; a tenth as many that are durable."""


ENTRIES = (
    Entry(lambda: Driftline(), 1_000_000, 4_000_000),
    Entry(lambda: Nats(), 60_000, 200_000),
    Entry(lambda: Nats(bucketed=True), 300_000, 1_000_000, fans_out=False),
)
DURABLE: tuple[Callable[[], Contestant], ...] = (
    lambda: Driftline(durable=True),
    lambda: Nats(durable=True),
)

QUICK = Sizes()
FULL = Sizes(
    full=True,
    repeats=5,
    paced_s=5.0,
    fan_out=50_000,
    durable=100_000,
    durable_s=10.0,
    links=1_000_000,
    scale=1_000_000,
)


def run(full: bool, say: Say, sizes: Sizes | None = None, secure: bool = False) -> Report:
    """Every question; `full` with more events and repeats. Or what it costs to be `secure`."""
    if secure:
        from driftline.bench.broker_secure import run_secure

        return run_secure(full, say)
    sizes = sizes or (FULL if full else QUICK)
    load = os.getloadavg()[0]
    with started([entry.make() for entry in ENTRIES]) as all_started:
        saturated = _saturated(all_started, sizes, say)
        rates = [figures["events_per_s"] for figures in saturated.values()]
        figures: Data = {
            "seed": SEED,
            "load": [load],
            "saturated": saturated,
            "latency": _latency(all_started, rates, sizes, say),
            "fan_out": _fan_out(all_started, sizes, say),
        }
    figures["durable"] = _durable(sizes, say)
    figures["links"] = crossed(sizes.links, say)
    figures |= scale(sizes.scale, say)
    # How many others there were, before and after: ours are in the second one too.
    figures["load"].append(os.getloadavg()[0])
    first, *more = tables(figures)
    return Report("broker", figures, first.columns, first.rows, claims(figures), more)


@cache
def _job(events: int) -> tuple[Job, Truth]:
    job = stock_job(events)
    return job, truth_of(job)


def _saturated(all_started: Sequence[Started], sizes: Sizes, say: Say) -> Data:
    prepared = []
    for entry, one in zip(ENTRIES, all_started, strict=True):
        say(f"{one.contestant.name}: writing the events")
        count = entry.events_full if sizes.full else entry.events
        prepared.append(Prepared.of(one, *_job(int(count * sizes.share))))
    runs = in_turns(prepared, sizes.repeats, say)
    found: Data = {}
    for ready, some in zip(prepared, runs, strict=True):
        name, figures = ready.started.contestant.name, middle(some)
        check_job(name, figures)
        found[name] = {
            "events": ready.events,
            **figures.as_data(),
            "runs": [each.as_data() for each in some],
        }
    return found


def check_job(name: str, figures: Figures) -> None:
    """Is it the job that the claims are about?"""
    for what, bounds, came in (
        ("useful notifications", _USEFUL, figures.useful_per_event),
        ("messages", _MESSAGES.get(name), figures.messages_per_event),
    ):
        if bounds is not None and not bounds[0] <= came <= bounds[1]:
            raise AssertionError(
                f"{name}: wanted {bounds[0]} to {bounds[1]} {what} per event, came {came:.2f}"
            )


def _latency(
    all_started: Sequence[Started], rates: Sequence[float], sizes: Sizes, say: Say
) -> Data:
    found: Data = {}
    for one, rate in zip(all_started, rates, strict=True):
        found[one.contestant.name] = {}
        for name, per_second in (("fixed", float(RATE)), ("half", rate / 2)):
            say(f"{one.contestant.name}: {per_second:,.0f} events a second")
            count = min(_PACED_MAX, int(per_second * sizes.paced_s))
            prepared = Prepared.of(one, *_job(count), max(1, int(per_second * TICK_S)))
            runs = [prepared.paced(per_second) for _ in range(sizes.repeats)]
            found[one.contestant.name][name] = middle_latency(runs).as_data()
    return found


def _fan_out(all_started: Sequence[Started], sizes: Sizes, say: Say) -> Data:
    job = fan_out_job(sizes.fan_out)
    prepared = [
        Prepared.of(one, job)
        for entry, one in zip(ENTRIES, all_started, strict=True)
        if entry.fans_out
    ]
    runs = in_turns(prepared, sizes.repeats, say, _FAN_OUT_WINDOW)
    return {
        one.started.contestant.name: middle(some).as_data()
        for one, some in zip(prepared, runs, strict=True)
    }


def _durable(sizes: Sizes, say: Say) -> Data:
    found: Data = {}
    job, _ = _job(sizes.durable)
    with started([make() for make in DURABLE]) as all_started:
        for one in all_started:
            for way in one.contestant.appends(job, BATCH):
                say(f"{way.name}: durable")
                found[way.name] = asdict(appended(one.address, way, sizes.durable_s))
    return {"syncs_per_s": syncs_per_s(), "ways": found}


def claims(figures: Data) -> list[Claim]:
    """What we stand for, as ratios within one run; not measured while one of the two is absent."""
    saturated, latency = figures["saturated"], figures["latency"]

    def ratio(figure: str, other: str) -> float | None:
        if OURS not in saturated or other not in saturated:
            return None
        return float(saturated[OURS][figure] / saturated[other][figure])

    fixed = latency.get(OURS, {}).get("fixed", {})
    durable = figures["durable"]["ways"].get(OURS, {}).get("events_per_s")
    million, restore = figures.get("million", {}), figures.get("restore", {})
    is_whole = restore.get("subscriptions") == 100_000
    return [
        at_least("nats_events", 10, ratio("events_per_s", BY_SYMBOL), "x NATS"),
        at_most("nats_cpu", 0.1, ratio("cpu_s_per_1m", BY_SYMBOL), "x NATS"),
        at_most("nats_bytes", 1 / 40, ratio("mb_per_100k", BY_SYMBOL), "x NATS"),
        at_least("nats_bucketed", 1.5, ratio("events_per_s", BUCKETED), "x NATS"),
        at_most("latency p50", 500, fixed.get("p50_us"), "µs"),
        at_most("latency p99", 10_000, fixed.get("p99_us"), "µs"),
        at_least("durable", 50_000, durable, "events/s"),
        at_least("million", 1_000_000, million.get("subscriptions"), "subscriptions"),
        at_most("restore", 30, restore.get("seconds") if is_whole else None, "s"),
    ]
