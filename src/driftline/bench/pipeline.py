"""How fast is a pipeline on Spark, what would Spark alone take, and how long does news take?

One question in each file:

- `pipeline_match`: how many events a second are matched from file to file, and is that flat?
- `pipeline_joins`: and by Spark's own joins?
- `pipeline_followers`: how many reach followers of values?
- `pipeline_by_hand`: and with what one writes with Spark alone?
- `pipeline_views`: and views of a least value?
- `pipeline_latency`: how long is it until what follows from a file is committed?
- `pipeline_shares`: where does the time go?

All of it on two cores and by the clock, since several processes work together: another program on
the machine shows in every figure, and `load` says how many there were. CPU times of all processes
together (`cpu_us`, `cpu_ratio`) stand beside it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from driftline.bench import (
    pipeline_by_hand,
    pipeline_followers,
    pipeline_joins,
    pipeline_latency,
    pipeline_match,
    pipeline_views,
)
from driftline.bench.pipeline_match import Size
from driftline.bench.pipeline_runs import CORES, Spark, own_place
from driftline.bench.pipeline_shares import match_shares, shard_shares
from driftline.bench.pipeline_tables import tables
from driftline.bench.report import Claim, Report, at_least, at_most
from driftline.workload.matching import SEED

SMALL, MEDIUM, LARGE = 10_000, 100_000, 1_000_000

Say: TypeAlias = Callable[[str], None]
Data: TypeAlias = dict[str, Any]
"""As it goes into the JSON."""

# Events in a batch, by workload and subscriptions: as many as make their answers a few hundred
# megabytes at most.
_SIZES = {
    ("W2", MEDIUM): Size(1_000_000, 4),
    ("W1", MEDIUM): Size(100_000, 4),
    ("W2", LARGE): Size(100_000, 4),
}
_FLAT = Size(300_000, 3)
_FOLLOWED = Size(1_000_000, 3)
_VIEWED = Size(1_000_000, 3)
# Events for Spark's joins, and in a batch of what one writes with Spark alone.
_JOINED = {"W1": 4_000, "W2": 500_000}
_PEER = 100_000


def run(full: bool, say: Say) -> Report:
    """Every question; `full` also with a million subscriptions."""
    from driftline.kernels import warm_up

    say("compiling the kernels")
    warm_up()
    load = os.getloadavg()[0]
    with own_place() as root, _session(say) as spark:
        figures: Data = {
            "seed": SEED,
            "cores": CORES,
            "load": load,
            "match": _match(spark, root, full, say),
            "flat": _flat(spark, root, full, say),
            "followers": _followers(spark, root, say),
            "views": _views(spark, root, say),
            "latency": _latency(spark, root, say),
        }
    first, *more = tables(figures)
    return Report("pipeline", figures, first.columns, first.rows, _claims(figures), more)


@contextmanager
def _session(say: Say) -> Iterator[Spark]:
    from driftline.spark.session import local_session

    say("starting Spark")
    spark = local_session("driftline bench pipeline", str(CORES))
    try:
        yield spark
    finally:
        spark.stop()


def _match(spark: Spark, root: Path, full: bool, say: Say) -> Data:
    found: Data = {}
    for (name, count), size in _SIZES.items():
        if count == LARGE and not full:
            continue
        say(f"{name}, {count:,} subscriptions")
        one = pipeline_match.measured(spark, root / f"{name}-{count}", name, count, size)
        data: Data = {**one.as_data(), "shares": match_shares(one.config, one.ran)}
        if count == MEDIUM:
            say(f"{name}, by Spark's joins")
            some = one.events.slice(0, _JOINED[name])
            pairs = partial(pipeline_match.pairs_of, one)
            joined = pipeline_joins.joined(spark, root, name, one.groups, some, pairs)
            rate = one.ran.events_per_s
            data["joins"] = {**asdict(joined), "best": joined.best}
            data["ratio"], data["ratio_counted"] = rate / joined.listed, rate / joined.best
            data["cpu_ratio"] = _ratio(joined.listed_cpu_us, one.ran.cpu_us)
            data["cpu_ratio_counted"] = _ratio(joined.counted_cpu_us, one.ran.cpu_us)
        found.setdefault(name, {})[str(count)] = data
    return found


def _ratio(theirs: float | None, ours: float | None) -> float | None:
    return None if theirs is None or ours is None else theirs / ours


def _flat(spark: Spark, root: Path, full: bool, say: Say) -> Data:
    found: Data = {}
    for count in (SMALL, MEDIUM, LARGE) if full else (SMALL, MEDIUM):
        say(f"as many matches with {count:,} subscriptions")
        one = pipeline_match.measured_flat(spark, root / f"flat-{count}", count, _FLAT)
        found[str(count)] = one.as_data()
    each = [one["us"] for one in found.values()]
    return {"by_subscriptions": found, "ratio": max(each) / min(each)}


def _followers(spark: Spark, root: Path, say: Say) -> Data:
    count = pipeline_followers.FOLLOWERS
    say(f"{count:,} followers")
    found = pipeline_followers.measured(spark, root / "followers", count, _FOLLOWED)
    data: Data = {**found.as_data(), "shares": shard_shares(found.config, found.ran)}
    say("followers by applyInPandasWithState")
    rates = pipeline_by_hand.by_hand(spark, root, found, _PEER)
    rate = found.ran.events_per_s
    return {**data, "peers": rates, "ratios": {name: rate / one for name, one in rates.items()}}


def _views(spark: Spark, root: Path, say: Say) -> Data:
    tuples, views = pipeline_views.TUPLES, pipeline_views.VIEWS
    say(f"{views:,} views of {tuples:,} tuples")
    found = pipeline_views.measured(spark, root / "views", tuples, views, _VIEWED)
    return {**found.as_data(), "shares": shard_shares(found.config, found.ran)}


def _latency(spark: Spark, root: Path, say: Say) -> Data:
    found = {}
    for name in ("stateless", "stateful"):
        say(f"files that are dropped, {name}")
        found[name] = asdict(getattr(pipeline_latency, name)(spark, root / name))
    return found


def _claims(figures: Data) -> list[Claim]:
    match, flat, latency = figures["match"], figures["flat"], figures["latency"]
    w1, w2 = (match[name][str(MEDIUM)] for name in ("W1", "W2"))
    million = match["W2"].get(str(LARGE))
    followed, viewed = figures["followers"], figures["views"]
    return [
        at_least("match_w2", 300_000, w2["events_per_s"], "events/s"),
        at_least("match_ratio_w1", 20, w1["ratio"], "x Spark's best join, the same written"),
        at_least("match_ratio_w2", 10, w2["ratio"], "x Spark's equi-join, the same written"),
        at_most("load_1m", 120, None if million is None else million["load_s"], "s"),
        at_least("reformulate_value", 100_000, followed["events_per_s"], "events/s"),
        at_least("reformulate_min", 100_000, viewed["events_per_s"], "events/s"),
        at_most("flat", 2, flat["ratio"], "x"),
        at_most("latency_stateless", 1.0, latency["stateless"]["p50_s"], "s"),
        at_most("latency_stateful", 2.5, latency["stateful"]["p50_s"], "s"),
    ]
