"""A result tuple enters, changes and leaves, each told at most once for a change of a row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import NotSupported
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.value import comparable, same
from driftline.stateful.join.reference import answer
from driftline.stateful.join.reformulate import Pairs
from driftline.stateful.join.subscription import JoinSubscription, Pairing
from driftline.stateful.rows.fold import RowSet
from tests.stateful.home import Home, delivered, parameters, steps, taken

TEXT = "SELECT {columns} FROM {source} JOIN {joined} ON {on} WHERE {where}"
COLUMNS = ("stock.y", "news.s", "stock.x", "news.x + :p", "stock.key", "news.ce_id")
ON = (
    "stock.x = news.x",
    "news.x = stock.x",
    "stock.x = news.x AND stock.on = news.on",
    "stock.x = news.x AND stock.y < news.y",
    "stock.key = news.x",
    "stock.ce_id = news.ce_id",
    "TRUE",
)
WHERE = (
    "TRUE",
    "stock.y > :p AND news.s = :q",
    "stock.y > news.y OR news.s IS NULL",
    "NOT (stock.on AND news.on) AND stock.s LIKE 'a%'",
    "stock.x = news.x",
    "stock.ce_time >= news.ce_time",
    "coalesce(stock.y, 1) > coalesce(news.y, 0)",
)


@st.composite
def joins(draw) -> JoinSubscription:
    source, joined = draw(st.permutations(("stock", "news")))
    columns = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3, unique=True))
    on, where = draw(st.sampled_from(ON)), draw(st.sampled_from(WHERE))
    if on == "TRUE":
        where = f"stock.x = news.x AND ({where})"
    text = TEXT.format(columns=", ".join(columns), source=source, joined=joined, on=on, where=where)
    return JoinSubscription.of(parse(text))


def results(join: JoinSubscription, params, homes) -> dict[object, object]:
    view = join.view
    source, joined = homes[view.source].table.items(), homes[view.join.table].table.items()
    found = answer(view, params, source, joined)
    return {tuple(map(comparable, keys)): values for keys, values in found}


def equal(a: dict[str, object], b: dict[str, object]) -> bool:
    return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)


def interleaved():
    left = steps("stock", links=True).map(lambda found: [("stock", step) for step in found])
    right = steps("news", links=True).map(lambda found: [("news", step) for step in found])
    return st.tuples(left, right).flatmap(lambda both: st.permutations(both[0] + both[1]))


@given(joins(), parameters(), parameters(), interleaved())
def test_told_iff_a_result_tuple_changed(join, params, moved, program):
    homes = {"stock": Home("stock"), "news": Home("news")}
    pairs, asked = Pairs(join.pairing), join.interest()
    assert parse(str(asked)) == asked
    before = results(join, params, homes)
    fold = pair_set(join, params, pairs)
    for table, step in program:
        told = {}
        for change in pairs.take(homes[table].apply(step)):
            came = delivered(asked, params, change)
            news = None if came is None else taken(fold, came)
            if news is not None:
                hashed = tuple(map(comparable, news.keys))
                assert hashed not in told, "told twice"
                told[hashed] = news
        after = results(join, params, homes)
        check(told, before, after)
        pairs._check()
        before = after
    first, second = (homes[name].table.items() for name in join.pairing.tables)
    rebuilt = Pairs(join.pairing, first, second)
    snapshot = pair_set(join, params, rebuilt).snapshot()
    assert len(snapshot) == len(before)
    for news in snapshot:
        assert equal(news.values, before[tuple(map(comparable, news.keys))])
    after = results(join, moved, homes)
    told = pair_set(join, moved, rebuilt).succeed(fold)
    check({tuple(map(comparable, news.keys)): news for news in told}, before, after)


def pair_set(join, params, pairs: Pairs) -> RowSet:
    fold = RowSet(join.pairs, Standing(join.view, params), turned=join.turned)
    fold.fill(pairs.snapshot(), {}, 0)
    return fold


def check(told, before, after) -> None:
    for keys in before.keys() | after.keys() | told.keys():
        old, new, news = before.get(keys), after.get(keys), told.get(keys)
        if old is None or new is None:
            kind = "leave" if new is None else "enter"
        else:
            kind = None if equal(old, new) else "change"
        assert (None if news is None else news.kind) == kind
        if news is not None:
            assert (news.old is None) == (old is None)
            assert old is None or equal(news.old, old)
            assert equal(news.values, new or {})


def test_views_that_say_it_otherwise_share_their_messages() -> None:
    texts = (
        "SELECT a.x FROM a JOIN b ON a.k = b.k AND a.m = b.n WHERE a.x > 1",
        "SELECT b.y FROM b JOIN a ON b.n = a.m WHERE b.k = a.k AND a.x > b.y",
    )
    pairings = {JoinSubscription.of(parse(text)).pairing for text in texts}
    assert pairings == {Pairing(("a", "b"), (("k", "k"), ("m", "n")))}
    (pairing,) = pairings
    assert pairing.type == "$pairs:a.k = b.k AND a.m = b.n"


@pytest.mark.parametrize(
    "on", ["a.k < b.k", "TRUE", "a.k = 1", "a.k = a.m", "a.k = b.k OR a.m = 1"]
)
def test_a_join_without_an_equality_is_refused(on: str) -> None:
    with pytest.raises(NotSupported, match="needs an equality"):
        JoinSubscription.of(parse(f"SELECT a.x FROM a JOIN b ON {on}"))


def test_what_moves_by_itself_or_is_no_join_is_refused() -> None:
    with pytest.raises(NotSupported, match="follows changes of rows"):
        JoinSubscription.of(parse("SELECT a.x FROM a JOIN b ON a.k = b.k WHERE a.t > now()"))
    with pytest.raises(NotSupported, match="wanted a join"):
        JoinSubscription.of(parse("SELECT COUNT(*) FROM a"))


def test_names_with_dots_and_quotes_stay_apart() -> None:
    view = parse('SELECT "a.b".c AS p, a."b.c" AS q FROM "a.b" JOIN a ON "a.b".c = a."b.c"')
    join = JoinSubscription.of(view)
    left = Event("a.b", {"k": 1, "c": 5}, time=0)
    right = Event("a", {"k": 2, "b.c": 5}, time=0)
    pairs = Pairs(join.pairing, [(2, right)], [(1, left)])
    assert join.pairing.tables == ("a", "a.b")
    (news,) = pair_set(join, {}, pairs).snapshot()
    assert (news.keys, news.values) == ((1, 2), {"p": 5, "q": 5})


def test_an_update_is_one_message_for_each_pair() -> None:
    """The example of the language: stocks and their news."""
    view = parse(
        "SELECT stock.symbol, news.title FROM stock JOIN news ON stock.symbol = news.symbol "
        "WHERE stock.price < 10 AND news.rating > 3"
    )
    join, stock, news = JoinSubscription.of(view), Home("stock"), Home("news")
    pairs = Pairs(join.pairing)
    fold = pair_set(join, {}, pairs)

    def told(home: Home, key: object, **row: object) -> list[object]:
        event = Event(home.table.declaration.name, row, time=0) if row else None
        found = (taken(fold, change) for change in pairs.take(home.apply((key, event))))
        return [one and (one.kind, one.keys, one.values, one.old) for one in found]

    ibm = {"stock.symbol": "IBM", "news.title": "up"}
    assert told(stock, "IBM", symbol="IBM", price=9) == []
    assert told(news, 1, symbol="IBM", title="up", rating=5) == [("enter", ("IBM", 1), ibm, None)]
    assert told(news, 2, symbol="IBM", title="down", rating=1) == [None]
    assert told(news, 3, title="about nobody", rating=5) == []
    better = {**ibm, "news.title": "UP"}
    assert told(news, 1, symbol="IBM", title="UP", rating=4) == [
        ("change", ("IBM", 1), better, ibm)
    ]
    assert told(stock, "IBM", symbol="IBM", price=8) == [None, None]
    assert told(stock, "IBM") == [("leave", ("IBM", 1), {}, better), None]
