"""What does it cost to keep range views right?

`SELECT MIN(per) FROM stock WHERE risk BETWEEN :low AND :high`, for up to a million ranges, while
tuples change [DBNET]. One question in each file:

- `views_update`: what does it take to make messages of an update, beside the paper's structure and
  NumPy?
- `views_told`: and to find those whose view they change, through the ordinary matcher?
- `views_unicast`: and to list them for a server that tells each by itself?
- `views_recompute`: what would a database take that computes views again?
- `views_messages`: how many messages leave the server, beside the paper's tables, and what does
  that depend on?
- `views_folds`, `views_join`: what do two ranges, sums, distinct values and joins cost?

See `workload.stocks` for what happens to the tuples. All times are CPU times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from driftline.bench import (
    views_folds,
    views_join,
    views_messages,
    views_recompute,
    views_told,
    views_unicast,
    views_update,
)
from driftline.bench.report import Claim, Report, at_least, at_most
from driftline.bench.views_tables import tables
from driftline.workload.stocks import SEED, ranges, stocks

SMALL, MEDIUM, LARGE = 10_000, 100_000, 1_000_000

Say: TypeAlias = Callable[[str], None]
Data: TypeAlias = dict[str, Any]
"""As it goes into the JSON."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tuples and subscriptions of each question."""

    updated: Sequence[int]
    told: tuple[int, int]
    instead: tuple[int, int]
    listening: Sequence[int]
    """How many subscriptions there are, one after the other; with few tuples."""
    tables: Sequence[int]
    """How many tuples there are, one after the other."""
    swept: int
    """Subscriptions, where it is not they that vary."""

    @classmethod
    def of(cls, tuples: Sequence[int] | None, subscriptions: int | None) -> Sizes:
        """As published, or as wanted."""
        return cls(
            tuples or (SMALL, MEDIUM, LARGE),
            (max(tuples) if tuples else MEDIUM, subscriptions or LARGE),
            (min(tuples) if tuples else SMALL, subscriptions or MEDIUM),
            [max(1, subscriptions * fifth // 5) for fifth in range(1, 6)]
            if subscriptions
            else tuple(views_messages.PAPER_SUBSCRIPTIONS),
            tuples or tuple(views_messages.PAPER_TUPLES),
            subscriptions or views_messages.SUBSCRIPTIONS,
        )


def run(
    full: bool,
    say: Say,
    tuples: Sequence[int] | None = None,
    subscriptions: int | None = None,
) -> Report:
    """Every question; `full` tells more updates, and loads a large A2B-tree."""
    sizes = Sizes.of(tuples, subscriptions)
    say("compiling the kernels")
    _warm_up()
    figures: Data = {
        "seed": SEED,
        "update": _update(sizes, full, say),
        "told": _told(sizes, full, say),
        "unicast": _unicast(sizes, say),
        "instead": _instead(sizes, say),
        "messages": _messages(sizes, full, say),
        "others": _others(say),
    }
    first, *more = tables(figures)
    claims = _claims(figures)
    return Report("views", figures, first.columns, first.rows, claims, more)


def _warm_up() -> None:
    from driftline.kernels import warm_up

    warm_up()
    some, wanted = stocks(100, _batches(1)), ranges(100)
    views_update.measured(100, full=False)
    views_told.measured(some, *wanted)
    views_unicast.measured(some, *wanted)


def _update(sizes: Sizes, full: bool, say: Say) -> Data:
    found = {}
    for count in sizes.updated:
        say(f"updates of {count:,} tuples")
        found[str(count)] = asdict(views_update.measured(count, full))
    return found


def _told(sizes: Sizes, full: bool, say: Say) -> Data:
    tuples, subscriptions = sizes.told
    say(f"telling {subscriptions:,} subscriptions")
    updates = _batches(20 if full else views_told.BATCHES)
    return _told_data(views_told.measured(stocks(tuples, updates), *ranges(subscriptions)))


def _told_data(found: views_told.Measured) -> Data:
    return {**asdict(found), "us": found.us, "updates_per_s": found.updates_per_s}


def _batches(count: int) -> int:
    """So many updates that so many batches are measured, after a first one that is not."""
    return (1 + count) * views_update.BATCH


def _unicast(sizes: Sizes, say: Say) -> Data:
    tuples, subscriptions = sizes.told
    say(f"listing those affected of {subscriptions:,} subscriptions")
    updates = _batches(views_told.BATCHES)
    return asdict(views_unicast.measured(stocks(tuples, updates), *ranges(subscriptions)))


def _instead(sizes: Sizes, say: Say) -> Data:
    tuples, subscriptions = sizes.instead
    wanted = ranges(subscriptions)
    drawn = stocks(tuples, _batches(views_told.BATCHES))
    say(f"telling {subscriptions:,} subscriptions")
    ours = views_told.measured(drawn, *wanted)
    found: Data = {"driftline": _told_data(ours)}
    for way in (views_recompute.RECOMPUTED, views_recompute.BY_HAND):
        say(f"{subscriptions:,} views, {way}")
        steps = views_recompute.Recomputing(way, drawn, *wanted)
        for engine in views_recompute.ENGINES:
            say(f"{subscriptions:,} views, {way} by {engine}")
            took = steps.measured(engine)
            data = None if took is None else {**asdict(took), "ratio": took.seconds * 1e6 / ours.us}
            found[f"{engine} {way}"] = data
    return found


def _messages(sizes: Sizes, full: bool, say: Say) -> Data:
    tuples, _ = sizes.instead
    updates = views_messages.UPDATES
    say("messages, by subscriptions")
    listening = views_messages.by_subscriptions(tuples, sizes.listening, updates)
    say("messages, by tuples")
    tables = views_messages.by_tuples(sizes.tables, sizes.swept, updates)
    say("messages, by what the paper leaves open")
    swept = updates if full else views_messages.SWEPT
    return {
        "by_subscriptions": [asdict(one) for one in listening],
        "by_tuples": [asdict(one) for one in tables],
        "swept": [
            {"varies": varies, "at": at, **asdict(one)}
            for varies, at, one in views_messages.swept(tuples, sizes.swept, swept)
        ],
        "growth": {
            name: getattr(listening[-1], name) / getattr(listening[0], name)
            for name in ("messages", "kept", "unicast")
        },
    }


def _others(say: Say) -> Data:
    found = {}
    for kind in views_folds.KINDS:
        say(kind)
        found[kind] = asdict(views_folds.measured(kind))
    say("join")
    found["join"] = asdict(views_join.measured())
    return found


def _claims(figures: Data) -> list[Claim]:
    update = figures["update"]
    small, medium, large = (
        update[str(size)]["batch_us"] if str(size) in update else None
        for size in (SMALL, MEDIUM, LARGE)
    )
    growth = large / small if large and small else None
    return [
        at_most("update_100k", 1.5, medium, "µs"),
        at_most("update_1m", 3, large, "µs"),
        at_most("growth", 3, growth, "x"),
        at_least("told_1m", 20_000, _rate(figures["told"]), "updates/s"),
        at_most("affected_1m", 1, _listing(figures["unicast"]), "µs a message"),
        at_least("duckdb", 1_000, _ratio(figures["instead"]), "x ours"),
        at_most("flat_messages", 10, _apart(figures["messages"]), "% apart"),
    ]


# What each is at the size of its claim, and None at any other.


def _rate(told: Data) -> float | None:
    if (told["tuples"], told["subscriptions"]) != (MEDIUM, LARGE):
        return None
    return float(told["updates_per_s"])


def _listing(unicast: Data) -> float | None:
    return unicast["us"] if unicast["subscriptions"] == LARGE else None


def _ratio(instead: Data) -> float | None:
    ours, duckdb = instead["driftline"], instead["duckdb recomputed"]
    if duckdb is None or (ours["tuples"], ours["subscriptions"]) != (SMALL, MEDIUM):
        return None
    return float(duckdb["ratio"])


def _apart(messages: Data) -> float | None:
    found = messages["by_subscriptions"]
    if [one["subscriptions"] for one in found] != list(views_messages.PAPER_SUBSCRIPTIONS):
        return None
    sent = [one["messages"] for one in found]
    return float(100 * (max(sent) / min(sent) - 1))
