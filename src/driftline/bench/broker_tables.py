"""How are the figures of the brokers shown?"""

from __future__ import annotations

from typing import Any

from driftline.bench.report import Table

_SATURATED = (
    "broker",
    "events/s",
    "useful/s",
    "useful per event",
    "messages per event",
    "MB per 100k events",
    "broker CPU s per 1M",
    "broker cores",
    "driver busy",
    "others' cores",
)


def saturated_table(figures: dict[str, Any]) -> Table:
    """How fast events go when nobody waits."""
    return Table("broker", _SATURATED, [_row(*one) for one in figures["saturated"].items()])


def latency_table(figures: dict[str, Any]) -> Table:
    """How late notifications come."""
    return Table(
        "Latency of notifications, from when an event was due",
        (
            "broker",
            "events/s",
            "p50 µs",
            "p99 µs",
            "of it sent late p50",
            "p99",
            "broker cores",
            "others' cores",
        ),
        [
            (
                name,
                f"{one['per_second']:,.0f}",
                *(f"{one[key]:,.0f}" for key in ("p50_us", "p99_us")),
                *(f"{one[key]:,.0f}" for key in ("sent_late_p50_us", "sent_late_p99_us")),
                *(f"{one[key]:.2f}" for key in ("broker_cores", "other_cores")),
            )
            for name, rates in figures["latency"].items()
            for one in rates.values()
        ],
    )


def tables(figures: dict[str, Any]) -> list[Table]:
    """At saturation, latency, fan-out, durable."""
    return [
        saturated_table(figures),
        latency_table(figures),
        Table(
            "Raw fan-out, 1 to 200, 128 bytes",
            ("broker", "deliveries/s", "CPU µs per delivery", "driver busy", "others' cores"),
            [
                (
                    name,
                    f"{one['messages_per_s']:,.0f}",
                    f"{one['cpu_s_per_1m'] / one['messages_per_event']:.2f}",
                    _busy(one),
                    f"{one['other_cores']:.2f}",
                )
                for name, one in figures["fan_out"].items()
            ],
        ),
        Table(
            f"Durable, beside {figures['durable']['syncs_per_s']:,.0f} syncs a second",
            ("way", "setting", "events in a batch", "events/s", "batch p50 µs"),
            [
                (
                    name,
                    one["setting"],
                    one["batch"],
                    f"{one['events_per_s']:,.0f}",
                    f"{one['batch_us']['p50']:,.0f}",
                )
                for name, one in figures["durable"]["ways"].items()
            ],
        ),
        *_links(figures),
        *_scale(figures),
    ]


def _links(figures: dict[str, Any]) -> list[Table]:
    if "links" not in figures:
        return []
    one = figures["links"]
    return [
        Table(
            "Over two links, from the first of three brokers to the last",
            ("events", "told", "events/s", *(f"CPU µs at the {name}" for name in one["cpu_us"])),
            [
                (
                    f"{one['events']:,}",
                    f"{one['told']:,}",
                    f"{one['events_per_s']:,.0f}",
                    *(f"{cpu:.2f}" for cpu in one["cpu_us"].values()),
                )
            ],
        )
    ]


def _scale(figures: dict[str, Any]) -> list[Table]:
    if "million" not in figures:
        return []
    many, back = figures["million"], figures["restore"]
    return [
        Table(
            "Many subscriptions on one broker",
            ("subscriptions", "seconds", "broker CPU s", "memory MB", "CPU µs per event then"),
            [
                (
                    f"{many['subscriptions']:,}",
                    f"{many['seconds']:.0f}",
                    f"{many['cpu_s']:.0f}",
                    f"{many['memory_mb']:,.0f}",
                    f"{many['event_us']:.2f}",
                )
            ],
        ),
        Table(
            "Durable subscriptions after kill -9",
            ("subscriptions", "subscribed in s", "told again after s"),
            [(f"{back['subscriptions']:,}", f"{back['made_s']:.0f}", f"{back['seconds']:.1f}")],
        ),
    ]


def _row(name: str, one: dict[str, Any]) -> tuple[object, ...]:
    return (
        name,
        f"{one['events_per_s']:,.0f}",
        f"{one['useful_per_s']:,.0f}",
        f"{one['useful_per_event']:.2f}",
        f"{one['messages_per_event']:.2f}",
        f"{one['mb_per_100k']:.1f}",
        f"{one['cpu_s_per_1m']:.2f}",
        f"{one['broker_cores']:.2f}",
        _busy(one),
        f"{one['other_cores']:.2f}",
    )


def _busy(one: dict[str, Any]) -> str:
    return f"{one['driver_busy']:.0%}" + (", driver-bound" if one["driver_bound"] else "")
