"""What does a join cost: how many messages does a change of a row become?

Stocks, and news about them: each stock has some, and a stock's change is one message for each
[DBNET §4]. A subscription asks for the pairs of stocks in its range. In the end one of them must
have the pairs that nested loops find.
"""

from __future__ import annotations

from itertools import count

from driftline.bench.views_folds import Measured, brought_to, drawn, params_of, weighed
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.notification import NotificationKind
from driftline.model.standing import Standing
from driftline.model.value import Value
from driftline.model.view import View
from driftline.stateful.fold import Message
from driftline.stateful.join.reference import answer
from driftline.stateful.join.reformulate import Pairs
from driftline.stateful.join.subscription import JoinSubscription
from driftline.stateful.news import News, Values
from driftline.stateful.rows.fold import RowSet

ROWS, SUBSCRIPTIONS, CHANGES = 200, 200, 1_000
PARTNERS = 3
"""News of each stock."""

_JOIN = (
    "SELECT stock.per, news.title FROM stock JOIN news ON stock.symbol = news.symbol "
    "WHERE stock.risk BETWEEN :low AND :high"
)


def measured() -> Measured:
    """Changes of stocks; each edge keeps the pairs that it told of."""
    view = parse(_JOIN)
    assert isinstance(view, View)
    join = JoinSubscription.of(view)
    rows, changes = drawn(ROWS, CHANGES)
    news = _news(rows)
    pairs = (rows, news) if join.pairing.tables[0] == "stock" else (news, rows)
    home = Pairs(join.pairing, *(side.items() for side in pairs))
    wanted = params_of(SUBSCRIPTIONS)
    first = wanted[0]
    folds, held = weighed(lambda: [_fold(join, params, home) for params in wanted])
    known = {one.keys: one.values for one in folds[0].snapshot()}

    def take(at: int, message: Message) -> News | None:
        told = folds[at].take(message)
        if at == 0 and told is not None:
            _follow(known, told)
        return told

    interest = join.interest()
    figures = brought_to([(interest, one) for one in wanted], changes, home.take, take)
    for change in changes:
        assert change.new is not None
        rows[change.keys[0]] = change.new
    assert known == dict(answer(view, first, rows.items(), news.items())), "not the pairs there are"
    return Measured(ROWS, SUBSCRIPTIONS, CHANGES, *figures, held / SUBSCRIPTIONS, 0.0)


def _fold(join: JoinSubscription, params: dict[str, Value], home: Pairs) -> RowSet:
    fold = RowSet(join.pairs, Standing(join.view, params), turned=join.turned)
    fold.fill(home.snapshot(), {}, 0)
    return fold


def _news(rows: dict[Value, Event]) -> dict[Value, Event]:
    numbers = count()
    return {
        number: Event("news", {"symbol": symbol, "title": f"news {number}"})
        for symbol in rows
        for _, number in zip(range(PARTNERS), numbers, strict=False)
    }


def _follow(known: dict[tuple[Value, ...], Values], told: News) -> None:
    if told.kind is NotificationKind.LEAVE:
        del known[told.keys]
    else:
        known[told.keys] = told.values
