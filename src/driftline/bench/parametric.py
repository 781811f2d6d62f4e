"""What does a subscription that moves cost a broker and a network, or one that is made anew?

Three studies after [PARAM §8], each in a file of its own:

- `one_broker`: what an update takes and what cancelling and subscribing again takes, on the poset
  and on the index. From that follows how many events a core has time for (*throughput*), and with
  `waiting` how long an event takes (*latency*) and a change until it is in effect (*delay*) when
  both come at random: as many events as half of what the quicker way leaves time for.
- `held`: what a subscription with variables takes of memory, beside one with constants.
- `following`: what a network sends, brings in vain and loses (*spurious* and lost events).
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any, TypeAlias

from driftline.bench import following, held, one_broker
from driftline.bench.following import Study, restless, steady
from driftline.bench.parametric_tables import tables
from driftline.bench.report import Claim, Report, at_least, at_most
from driftline.bench.waiting import Kind, percentiles, queued

RATES = (0, 10, 30, 100, 300, 1000)
"""Changes a second of each of the subscribers of one broker."""
LOAD = 0.5
"""Events come so much as often as the quicker way could take them."""

CHANGES, CHANGES_FULL = 2_000, 10_000
"""Of a variable that moves fast at times, through a network."""
NETWORK_RATES = (5, 20, 100, 300)
"""Changes a second of a variable that moves steadily, through a network."""
SECONDS, SECONDS_FULL = 10, 60

Say: TypeAlias = Callable[[str], None]
Data: TypeAlias = dict[str, Any]
"""As it goes into the JSON."""


def run(full: bool, say: Say) -> Report:
    """All three; `full` measures five times as many changes, and more happens in the network."""
    broker = _one_broker(full, say)
    memory = _memory(say)
    network = _network(full, say)
    figures: Data = {
        "seed": one_broker.SEED,
        "load": LOAD,
        **broker,
        "memory": memory,
        "network": network,
    }
    claims = _claims(broker, memory, network)
    first, *more = tables(figures)
    return Report("parametric", figures, first.columns, first.rows, claims, more)


def _claims(broker: Data, memory: Data, network: Data) -> list[Claim]:
    update, monitor = (network["restless"][way] for way in ("update", "monitor"))
    studies = (network["restless"], *network["steady"].values())
    followed = [study[way] for study in studies for way in ("update", "monitor")]
    amiss = sum(found["lost"] + found["wrong"] for found in followed)
    changes = sum(found["changes"] for found in followed)
    overhead = max(found["overhead_percent"] for found in memory.values())
    return [
        at_least("poset_throughput", 3.3, _least_ratio(broker["poset"]), "x"),
        at_least("index_throughput", 1.45, _least_ratio(broker["index"]), "x"),
        at_most("memory", 30.0, overhead, "% more"),
        at_most("nothing_lost", 0, amiss, f"in {changes:,} updates"),
        at_most("monitor_messages", 0.5, monitor["messages"] / update["messages"], "x"),
        at_most("monitor_spurious", 1.27, monitor["brought"] / update["brought"], "x"),
    ]


def _least_ratio(found: Data) -> float | None:
    """At 100 changes a second, where the paper's figures end; None: an overload has no ratio."""
    ratios = [row["throughput_ratio"]["100"] for row in found.values()]
    return min((ratio for ratio in ratios if ratio is not None), default=None)


# One broker


def _one_broker(full: bool, say: Say) -> Data:
    steps = one_broker.STEPS * (5 if full else 1)
    figures: Data = {"changes": steps}
    for matcher in one_broker.MATCHERS:
        figures[matcher] = {}
        for coverage in one_broker.COVERAGES:
            say(f"one broker, {matcher}, coverage {coverage} %")
            times = one_broker.measured(matcher, coverage, steps)
            figures[matcher][str(coverage)] = _broker_figures(times)
    return figures


def _broker_figures(times: one_broker.Times) -> Data:
    costs = {way: fmean(some) for way, some in times.changes.items()}
    event = fmean(times.events)
    figures: Data = {f"{way}_us": cost * 1e6 for way, cost in costs.items()}
    figures |= {"event_us": event * 1e6, "events_per_s": {}, "throughput_ratio": {}, "queue": {}}
    for rate in RATES:
        left = {way: _left(rate, cost, event) for way, cost in costs.items()}
        figures["events_per_s"][str(rate)] = left
        again = left["resubscribe"]
        figures["throughput_ratio"][str(rate)] = left["update"] / again if again else None
        figures["queue"][str(rate)] = _queue(rate, LOAD * max(left.values()), times)
    return figures


def _left(rate: int, change: float, event: float) -> float:
    """The events a second that one core has time for beside so many changes; 0 if for none."""
    return max(1 - rate * one_broker.SUBSCRIBERS * change, 0) / event


def _queue(rate: int, events_per_s: float, times: one_broker.Times) -> Data:
    """Latency and delay of both ways with as many events; null where the queue grows forever."""
    found: Data = {"events_per_s": events_per_s}
    for way, changes in times.changes.items():
        kinds = [Kind(events_per_s, times.events), Kind(rate * one_broker.SUBSCRIBERS, changes)]
        took = queued(kinds, one_broker.SEED)
        latency, delay = took or (None, None)
        found[way] = {
            "load": sum(kind.load for kind in kinds),
            "stable": took is not None,
            "latency_us": latency and latency.as_data(),
            "delay_us": delay and delay.as_data(),
        }
    return found


# Memory


def _memory(say: Say) -> Data:
    figures: Data = {}
    for place in held.PLACES:
        for matcher in held.MATCHERS:
            say(f"memory, {place}, {matcher}")
            constants, parametric = (
                held.bytes_per_subscription(matcher, place, parametric=parametric)
                for parametric in (False, True)
            )
            figures[f"{place}_{matcher}"] = {
                "subscriptions": held.SUBSCRIPTIONS,
                "constants_bytes": constants,
                "parametric_bytes": parametric,
                "overhead_percent": 100 * (parametric / constants - 1),
            }
    return figures


# The network


def _network(full: bool, say: Say) -> Data:
    changes, seconds = (CHANGES_FULL, SECONDS_FULL) if full else (CHANGES, SECONDS)
    figures: Data = {"changes": changes, "seconds": seconds, "restless": {}, "steady": {}}
    for way in following.WAYS:
        say(f"network, {changes:,} changes, {way}")
        figures["restless"][way] = _followed(way, restless(one_broker.SEED, changes))
    for rate in NETWORK_RATES:
        figures["steady"][str(rate)] = {}
        for way in following.WAYS:
            say(f"network, {rate} changes a second, {way}")
            trace = steady(one_broker.SEED, rate, seconds)
            figures["steady"][str(rate)][way] = _followed(way, trace)
    return figures


def _followed(way: str, trace: following.Trace) -> Data:
    study = Study(way, one_broker.SEED)
    study.follow(trace)
    lost, wrong = study.lost_and_wrong()
    told = len(study.told())
    return {
        "changes": len(study.moves),
        "messages": study.sent,
        "bytes": study.sent_bytes,
        "events": len(study.quotes),
        "brought": study.brought,
        "told": told,
        "spurious": study.brought - told,
        "lost": len(lost),
        "wrong": len(wrong),
        "delay_us": None if way == "monitor" else percentiles(study.delays()).as_data(),
        "confirm_us": percentiles(study.confirm_delays()).as_data(),
    }
