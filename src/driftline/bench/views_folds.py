"""What do views cost that are not the least of one range?

They ride on changes of rows [DBNET §4]: the home makes a message of each change (`rows`), or one of
each changed pair (`join`); the index finds whose condition it satisfies or did; and there, at the
subscriber's edge, a fold makes news of it. All of that is Python, one message at a time, so these
are costs of another order than those of one range. Two ranges are among them: the paper leaves
them for later, and here each subscription keeps the values of its own rows.

In the end each subscription must know what a look at all rows says.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from driftline.bench.views_told import VIEW
from driftline.language.sql import parse
from driftline.matching.choice import make_matcher
from driftline.model.event import Event
from driftline.model.scope import Scope
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.model.view import View
from driftline.stateful.distinct import reference as distinct
from driftline.stateful.distinct.fold import Distinct
from driftline.stateful.fold import Fold, Message
from driftline.stateful.news import News, value_key
from driftline.stateful.range_sum import reference as aggregates
from driftline.stateful.range_sum.fold import Aggregates
from driftline.stateful.range_sum.totals import NO_TICKS, totals_of
from driftline.stateful.rows.change import Change, changed, message_of
from driftline.stateful.rows.interest import flags_of, interest_of_view
from driftline.workload.stocks import SEED, Walk, ranges, stocks

ROWS, SUBSCRIPTIONS, CHANGES = 2_000, 200, 1_000
WALK = Walk(complex=0.2)
"""Some rows move to another place, or a COUNT would never change."""

Params = Mapping[str, Value]

_ONE = "FROM stock WHERE risk BETWEEN :low AND :high"
KINDS = {
    "MIN in two ranges": f"SELECT MIN(per) {_ONE} AND growth BETWEEN :left AND :right",
    "COUNT": f"SELECT COUNT(*) {_ONE}",
    "SUM": f"SELECT SUM(per) {_ONE}",
    "AVG": f"SELECT AVG(per) {_ONE}",
    "DISTINCT": f"SELECT DISTINCT grade {_ONE}",
    "MIN in one range": VIEW,
}
"""The last is here to compare: the same fold for what `range_min` does in another way."""

_GRADE = 250.0


@dataclass(frozen=True, slots=True)
class Measured:
    """CPU microseconds, and counts per change of a row; memory of the folds, at the edges."""

    rows: int
    subscriptions: int
    changes: int
    home_us: float
    """To make the messages of a change."""
    match_us: float
    """To find whom a message concerns."""
    fold_us: float
    """For one message and one subscription that it is brought to."""
    messages: float
    brought: float
    told: float
    bytes_per_subscription: float
    bytes_per_row: float
    """The same, for each row that is in a subscription's range."""


def measured(kind: str) -> Measured:
    """One kind of view."""
    view = parse(KINDS[kind])
    assert isinstance(view, View)
    rows, changes = drawn(ROWS, CHANGES)
    wanted = params_of(SUBSCRIPTIONS)
    folds, held = weighed(lambda: [_fold(view, params, rows.values()) for params in wanted])
    inside = sum(_inside(view, params, rows.values()) for params in wanted)
    figures = brought_to(
        [(interest_of_view(view), params) for params in wanted],
        changes,
        lambda change: [change],
        lambda at, message: folds[at].take(message),
    )
    for change in changes:
        rows[change.keys[0]] = _new(change)
    for params, fold in zip(wanted, folds, strict=True):
        _check(view, params, fold, rows.values())
    return Measured(
        ROWS, SUBSCRIPTIONS, CHANGES, *figures, held / SUBSCRIPTIONS, held / max(1, inside)
    )


def drawn(rows: int, changes: int) -> tuple[dict[Value, Event], list[Change]]:
    """Rows by key, and what happens to them."""
    found = stocks(rows, changes, WALK)
    growth, _ = ranges(rows, SEED + 1)
    table: dict[Value, Event] = {
        id: _row(id, x, y, growth[id]) for id, (x, y) in enumerate(found.points.tolist())
    }
    now, made = dict(table), []
    for id, (x, y) in zip(found.updates.ids.tolist(), found.updates.points.tolist(), strict=True):
        new = _row(id, x, y, growth[id])
        made.append(changed("stock", id, now[id], new))
        now[id] = new
    return table, made


def params_of(count: int) -> list[dict[str, Value]]:
    """The ranges of so many subscriptions, in both columns."""
    low, high = ranges(count)
    left, right = ranges(count, SEED + 2)
    columns = (one.tolist() for one in (low, high, left, right))
    return [
        {"low": a, "high": b, "left": c, "right": d} for a, b, c, d in zip(*columns, strict=True)
    ]


def brought_to(
    wanted: Iterable[tuple[Subscription, Params]],
    changes: Iterable[Change],
    reformulate: Callable[[Change], list[Change]],
    take: Callable[[int, Message], News | None],
) -> tuple[float, float, float, float, float, float]:
    """Bring all changes to whom they concern; the times and counts of `Measured`, in its order."""
    matcher = make_matcher("index")
    flags: dict[str, frozenset[str]] = {}
    for at, (interest, params) in enumerate(wanted):
        matcher.add(str(at), interest.filters(), params)
        flags |= flags_of(interest)
    now = time.process_time
    home = match = fold = 0.0
    count = sent = brought = told = 0
    for change in changes:
        start = now()
        made = reformulate(change)
        messages = [Message(message_of(one, 0, flags), {}) for one in made]
        reformulated = now()
        found = [matcher.match(message.event) for message in messages]
        matched = now()
        news = [take(int(id), one) for one, ids in zip(messages, found, strict=True) for id in ids]
        fold += now() - matched
        home, match = home + reformulated - start, match + matched - reformulated
        count, sent, brought = count + 1, sent + len(made), brought + len(news)
        told += sum(one is not None for one in news)
    return (
        home / count * 1e6,
        match / max(1, sent) * 1e6,
        fold / brought * 1e6 if brought else 0.0,
        sent / count,
        brought / count,
        told / count,
    )


def weighed(make: Callable[[], list[Fold]]) -> tuple[list[Fold], int]:
    """What is made, and the bytes that it takes."""
    gc.collect()
    tracemalloc.start()
    try:
        made = make()
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return made, held


def _row(id: int, x: float, y: float, growth: float) -> Event:
    return Event(
        "stock",
        {"symbol": id, "risk": x, "per": y, "growth": float(growth), "grade": int(y // _GRADE)},
    )


def _new(change: Change) -> Event:
    assert change.new is not None
    return change.new


def _fold(view: View, params: Params, rows: Iterable[Event]) -> Fold:
    if view.distinct:
        return Distinct(view, params, rows)
    return Aggregates(view, params, totals_of(view, params, rows))


def _inside(view: View, params: Params, rows: Iterable[Event]) -> int:
    return sum(view.where.evaluate(Scope(row, params)) is True for row in rows)


def _check(view: View, params: Params, fold: Fold, rows: Iterable[Event]) -> None:
    if isinstance(fold, Aggregates):
        expected = aggregates.answer(view, params, rows, NO_TICKS)
        assert fold.told.values == expected, "not the answer of all rows"
        return
    assert isinstance(fold, Distinct)
    known = {tuple(map(value_key, news.values.values())) for news in fold.snapshot()}
    all_values = distinct.answer(view, params, rows)
    assert known == {tuple(map(value_key, one.values())) for one in all_values}, "not the values"
