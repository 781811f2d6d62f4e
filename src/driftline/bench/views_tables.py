"""How are the figures of `driftline bench views` shown to people?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from driftline.bench.report import Table
from driftline.bench.views_messages import PAPER_SUBSCRIPTIONS, PAPER_TUPLES, SUBSCRIPTIONS, TUPLES
from driftline.bench.views_unicast import QUIET

Data: TypeAlias = dict[str, Any]


def tables(figures: Data) -> Iterator[Table]:
    """One for each question."""
    yield _update(figures["update"])
    yield _told(figures["told"], figures["unicast"])
    yield _instead(figures["instead"])
    sent = figures["messages"]
    listening, by_tuples = sent["by_subscriptions"], sent["by_tuples"]
    yield _sent("Messages an update, by subscriptions", "subscriptions", listening)
    yield _sent("Messages an update, by tuples", "tuples", by_tuples)
    yield _swept(sent["swept"])
    yield _others(figures["others"])


def _update(found: Data) -> Table:
    columns = (
        "tuples",
        "µs an update",
        "one at a time",
        "x and y",
        "A2B-tree",
        "NumPy",
        "messages",
    )
    rows: list[tuple[object, ...]] = [
        (
            f"{int(count):,}",
            *(_us(one[name]) for name in ("batch_us", "single_us", "complex_us", "tree_us")),
            _us(one["numpy_us"]),
            f"{one['messages_per_update']:.2f}",
        )
        for count, one in found.items()
    ]
    return Table("views", columns, rows)


def _told(told: Data, unicast: Data) -> Table:
    columns = ("how", "subscriptions", "µs", "", "affected")
    rate = f"an update, {told['updates_per_s']:,.0f} updates/s"
    rows: list[tuple[object, ...]] = [
        (
            "told through the matcher",
            f"{told['subscriptions']:,}",
            _us(told["us"]),
            rate,
            f"{told['told_per_update']:,.0f}",
        ),
        (
            "listed for unicast",
            f"{unicast['subscriptions']:,}",
            _us(unicast["us"]),
            "a message",
            f"{unicast['affected_per_message']:,.0f}",
        ),
        (
            "listed for quiet messages",
            f"{unicast['subscriptions']:,}",
            _us(unicast["quiet_us"]),
            "a message",
            f"fewer than {QUIET:,}",
        ),
        (
            "does anybody want it?",
            f"{unicast['subscriptions']:,}",
            _us(unicast["wanted_us"]),
            "a message",
            "",
        ),
    ]
    return Table("Who is told", columns, rows)


def _instead(found: Data) -> Table:
    ours = found["driftline"]
    title = f"{ours['tuples']:,} tuples, {ours['subscriptions']:,} views"
    rows: list[tuple[object, ...]] = [("driftline", f"{ours['us'] / 1e3:,.4f}", "1", "")]
    for way, one in found.items():
        if way != "driftline":
            rows.append(
                (way, "not installed", "", "")
                if one is None
                else (
                    way,
                    f"{one['seconds'] * 1e3:,.1f}",
                    f"{one['ratio']:,.0f}",
                    f"{one['views_around']:,.0f}",
                )
            )
    return Table(title, ("way", "ms an update", "x ours", "views around"), rows)


def _sent(title: str, by: str, found: list[Data]) -> Table:
    """Ours beside the paper's, where the sizes are the same."""
    columns = (by, "S-CN", "paper's", "kept", "unicast", "paper's")
    rows: list[tuple[object, ...]] = []
    for one in found:
        messages, unicast = _paper(by, one)
        kept, told = f"{one['kept']:.2f}", f"{one['unicast']:,.0f}"
        rows.append((f"{one[by]:,}", f"{one['messages']:.2f}", messages, kept, told, unicast))
    return Table(title, columns, rows)


def _paper(by: str, one: Data) -> tuple[str, str]:
    known: Mapping[int, tuple[float, int]]
    if by == "tuples":
        known = PAPER_TUPLES if one["subscriptions"] == SUBSCRIPTIONS else {}
    else:
        known = PAPER_SUBSCRIPTIONS if one["tuples"] == TUPLES else {}
    if one[by] not in known:
        return "-", "-"
    messages, unicast = known[one[by]]
    return f"{messages:.2f}", f"{unicast:,}"


def _swept(found: list[Data]) -> Table:
    columns = ("varies", "at", "S-CN", "kept", "unicast", "ignorable", "unheard")
    rows: list[tuple[object, ...]] = [
        (
            one["varies"],
            one["at"],
            f"{one['messages']:.2f}",
            f"{one['kept']:.2f}",
            f"{one['unicast']:,.0f}",
            f"{one['ignorable']:.1%}",
            f"{one['unheard']:.1%}",
        )
        for one in found
    ]
    return Table("Messages an update, by what the paper leaves open", columns, rows)


def _others(found: Data) -> Table:
    columns = (
        *("view", "home µs", "match µs", "fold µs", "messages", "brought", "told"),
        *("bytes", "a row"),
    )
    rows: list[tuple[object, ...]] = [
        (
            kind,
            *(_us(one[name]) for name in ("home_us", "match_us", "fold_us")),
            *(f"{one[name]:.2f}" for name in ("messages", "brought", "told")),
            f"{one['bytes_per_subscription']:,.0f}",
            f"{one['bytes_per_row']:,.0f}",
        )
        for kind, one in found.items()
    ]
    return Table("Other views, a change of a row", columns, rows)


def _us(time: float | None) -> str:
    return "-" if time is None else f"{time:,.2f}" if time < 10 else f"{time:,.0f}"
