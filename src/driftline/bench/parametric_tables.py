"""How are the figures of `driftline bench parametric` shown to people?"""

from __future__ import annotations

from typing import Any, TypeAlias

from driftline.bench import following, one_broker
from driftline.bench.report import Table

Data: TypeAlias = dict[str, Any]
# Short, as the tables are wide.
_SHOWN = {"update": "update", "resubscribe": "again", "monitor": "monitor"}


def tables(figures: Data) -> list[Table]:
    """All that the JSON has, or nearly."""
    return [
        _throughput_table(figures),
        *(_queue_table(matcher, figures) for matcher in one_broker.MATCHERS),
        _memory_table(figures["memory"]),
        _restless_table(figures["network"]),
        _steady_table(figures["network"]["steady"]),
    ]


def _throughput_table(figures: Data) -> Table:
    rates = figures["poset"]["0"]["throughput_ratio"]
    rows: list[tuple[object, ...]] = [
        (
            matcher,
            f"{coverage} %",
            *(f"{row[name]:.1f}" for name in ("update_us", "resubscribe_us", "event_us")),
            *map(_ratio, row["throughput_ratio"].values()),
        )
        for matcher in one_broker.MATCHERS
        for coverage, row in figures[matcher].items()
    ]
    columns = ("matcher", "coverage", "update µs", "again µs", "event µs")
    return Table("throughput", (*columns, *(f"x at {rate}/s" for rate in rates)), rows)


def _ratio(ratio: float | None) -> str:
    return "overload" if ratio is None else f"{ratio:.2f}"


def _queue_table(matcher: str, figures: Data) -> Table:
    rows: list[tuple[object, ...]] = []
    for coverage, row in figures[matcher].items():
        for rate, queue in row["queue"].items():
            ways = [queue[way] for way in one_broker.WAYS]
            shown = [_took(way, name) for name in ("latency_us", "delay_us") for way in ways]
            rows.append((f"{coverage} %", rate, f"{queue['events_per_s']:,.0f}", *shown))
    return Table(
        f"{matcher}: µs, p50 / p99; changes of each subscriber, events at"
        f" {figures['load']:.0%} of what the quicker way leaves time for",
        (
            "coverage",
            "changes/s",
            "events/s",
            "latency, update",
            "latency, again",
            "delay, update",
            "delay, again",
        ),
        rows,
    )


def _took(way: Data, name: str) -> str:
    if not way["stable"]:
        return "overload"
    return f"{way[name]['p50']:,.0f} / {way[name]['p99']:,.0f}" if way[name] else "-"


def _memory_table(memory: Data) -> Table:
    return Table(
        "memory: bytes per subscription",
        ("broker", "constants", "parametric", "more"),
        [
            (
                name.replace("_", ", "),
                f"{found['constants_bytes']:,.0f}",
                f"{found['parametric_bytes']:,.0f}",
                f"{found['overhead_percent']:.0f} %",
            )
            for name, found in memory.items()
        ],
    )


_NETWORK_COLUMNS = (
    "messages",
    "bytes",
    "brought",
    "told",
    "spurious",
    "lost",
    "wrong",
    "delay ms",
    "confirm ms",
)


def _restless_table(network: Data) -> Table:
    return Table(
        f"network: {network['changes']:,} changes, fast for 30 % of the time, each confirmed",
        ("way", *_NETWORK_COLUMNS),
        [(_SHOWN[way], *_network_row(found)) for way, found in network["restless"].items()],
    )


def _steady_table(steady: Data) -> Table:
    return Table(
        f"network: steady changes, {following.EVENTS_PER_SECOND} events a second",
        ("changes/s", "way", *_NETWORK_COLUMNS),
        [
            (rate, _SHOWN[way], *_network_row(found))
            for rate, ways in steady.items()
            for way, found in ways.items()
        ],
    )


def _network_row(found: Data) -> tuple[object, ...]:
    return (
        *(f"{found[name]:,}" for name in ("messages", "bytes", "brought", "told")),
        f"{found['spurious'] / max(found['brought'], 1):.1%}",
        found["lost"],
        found["wrong"],
        _milliseconds(found["delay_us"]),
        _milliseconds(found["confirm_us"]),
    )


def _milliseconds(took: dict[str, float] | None) -> str:
    return "-" if took is None else f"{took['p50'] / 1000:.0f} / {took['p99'] / 1000:.0f}"
