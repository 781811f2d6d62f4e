"""How are the figures of `driftline bench pipeline` shown to people?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from driftline.bench.report import Table

Data: TypeAlias = dict[str, Any]


def tables(figures: Data) -> Iterator[Table]:
    """One for each question."""
    yield _match(figures["match"], figures["flat"])
    yield _remembering(figures["followers"], figures["views"])
    yield _instead(figures["match"], figures["followers"])
    yield _latency(figures["latency"])
    yield _shares(figures)


def _match(match: Data, flat: Data) -> Table:
    columns = ("workload", "subscriptions", "batch", "matches", "events/s", "CPU µs", "loaded in s")
    named = [(name, one) for name, sizes in match.items() for one in sizes.values()]
    named += [("as many matches", one) for one in flat["by_subscriptions"].values()]
    rows: list[tuple[object, ...]] = [
        (
            name,
            f"{one['subscriptions']:,}",
            f"{one['batch']:,}",
            f"{one['matches_per_event']:.1f}",
            _rate(one["events_per_s"]),
            _us(one["cpu_us"]),
            f"{one['load_s']:.0f}",
        )
        for name, one in named
    ]
    return Table("pipeline", columns, rows)


def _remembering(followers: Data, views: Data) -> Table:
    columns = (
        "what needs memory",
        "subscriptions",
        "batch",
        "told",
        "events/s",
        "CPU µs",
        "loaded in s",
    )
    named = (
        (f"moved, {followers['items']} items", followers["subscriptions"], followers),
        (f"MIN, {views['tuples']:,} tuples", views["views"], views),
    )
    rows: list[tuple[object, ...]] = [
        (
            name,
            f"{count:,}",
            f"{one['batch']:,}",
            f"{one['told_per_event']:.2f}",
            _rate(one["events_per_s"]),
            _us(one["cpu_us"]),
            f"{one['load_s']:.0f}",
        )
        for name, count, one in named
    ]
    return Table("Views and followers", columns, rows)


def _instead(match: Data, followers: Data) -> Table:
    rows: list[tuple[object, ...]] = []
    for name, sizes in match.items():
        for one in sizes.values():
            if "joins" in one:
                rate, joins = one["events_per_s"], one["joins"]
                ways = {**joins["counted"], "best, listed as ours": joins["listed"]}
                rows += [(name, way, _rate(r), f"{rate / r:.1f}") for way, r in ways.items()]
    for way, rate in followers["peers"].items():
        rows.append(("moved", f"by hand, {way}", _rate(rate), f"{followers['ratios'][way]:.1f}"))
    return Table("With Spark alone", ("what", "how", "events/s", "ours to it"), rows)


def _latency(latency: Data) -> Table:
    columns = ("files", "count", "p50 s", "p95 s", "max s", "a batch by Spark, ms")
    rows: list[tuple[object, ...]] = [
        (
            name,
            one["files"],
            *(f"{one[key]:.2f}" for key in ("p50_s", "p95_s", "max_s")),
            ", ".join(f"{step} {ms:.0f}" for step, ms in one["batch_ms"].items() if ms >= 1),
        )
        for name, one in latency.items()
    ]
    return Table("From a file to what follows from it", columns, rows)


def _shares(figures: Data) -> Table:
    parts = ("kernel", "arrow", "state store", "rest")
    named = [
        (f"{name}, {int(count):,}", one["shares"])
        for name, sizes in figures["match"].items()
        for count, one in sizes.items()
    ]
    named += [("moved", figures["followers"]["shares"]), ("MIN", figures["views"]["shares"])]
    rows: list[tuple[object, ...]] = [
        (name, *(f"{shares[part]:.0%}" if part in shares else "-" for part in parts))
        for name, shares in named
    ]
    return Table("Shares of all cores' time", ("batch of", *parts), rows)


def _us(us: float | None) -> str:
    return "-" if us is None else f"{us:.2f}"


def _rate(events_per_s: float) -> str:
    return f"{events_per_s:,.0f}"
