"""Views in the engine: told what the definition says, when it says so, and once."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftline as dl
from driftline.handle import Handle
from driftline.model.expression import TRUE, Attribute, Literal
from driftline.model.notification import Notification
from driftline.model.predicate import Comparison
from driftline.model.scope import Scope
from driftline.model.subscription import Column, Measure, Moved
from driftline.model.value import comparable, same
from driftline.model.view import Aggregate, AggregateFunction, Join, View, ViewKind
from driftline.stateful.distinct import reference as distinct
from driftline.stateful.join import reference as join
from driftline.stateful.news import Values, value_key
from driftline.stateful.range_sum import reference as range_sum
from tests.stateful.home import KEYS, TICK, rows

TEXTS = (
    "SELECT MIN(y) FROM stock WHERE x BETWEEN :lo AND :hi",
    "SELECT MAX(y) AS top FROM stock WHERE x BETWEEN :lo AND :hi",
    "SELECT MIN(y) FROM stock WHERE x > :lo AND x < :hi",
    "SELECT MAX(y) FROM stock WHERE x >= :lo",
    "SELECT MIN(y) FROM stock WHERE x < :hi",
    "SELECT MIN(y) FROM stock",
    "SELECT MIN(y) FROM stock WHERE s = 'a'",
    "SELECT MIN(y) FROM stock WHERE s = 'a' AND x BETWEEN :lo AND :hi",
    'SELECT MAX(money) FROM stock WHERE s = :name AND "on" = TRUE AND x <= :hi',
    "SELECT MIN(x) FROM stock WHERE x BETWEEN :lo AND :hi",
    "SELECT MIN(y) FROM stock WHERE x = :lo",
    "SELECT MIN(y) FROM stock WHERE x BETWEEN :lo AND :hi AND money > 0",
    "SELECT MIN(y), MAX(y) FROM stock WHERE x BETWEEN :lo AND :hi",
    "SELECT COUNT(*), COUNT(y), SUM(y), AVG(y) FROM stock WHERE x BETWEEN :lo AND :hi",
    "SELECT SUM(money) AS total FROM stock WHERE s LIKE 'a%' OR x < :lo",
    "SELECT DISTINCT s FROM stock WHERE x >= :lo",
    "SELECT DISTINCT x, s FROM stock",
    "SELECT stock.key, other.y FROM stock JOIN other ON stock.s = other.s WHERE stock.x < :hi",
)
ROWS = ("SELECT * FROM stock WHERE x BETWEEN :lo AND :hi", "SELECT y, s FROM stock WHERE x > :lo")

COUNT = Aggregate(AggregateFunction.COUNT)
MIN_X = Aggregate(AggregateFunction.MIN, Attribute("x"))


@dataclass
class Subscriber:
    """Somebody who has nothing but what he was told."""

    handle: Handle
    view: View
    scalar: Values | None = None
    known: dict[object, Values] = field(default_factory=dict)

    def hear(self) -> list[Notification]:
        told = self.handle.pending()
        for one in told:
            if self.view.of is ViewKind.AGGREGATES:
                assert (one.old is None) is (self.scalar is None)
                assert one.old is None or equal(one.old, self.scalar)
                self.scalar = one.values
            else:
                self._set(one)
        return told

    def _set(self, one: Notification) -> None:
        if one.old is not None:
            key = self._key(one, one.old)
            assert same_values(self.known.pop(key), one.old)
        if one.kind != "leave":
            key = self._key(one, one.values)
            assert key not in self.known
            self.known[key] = one.values

    def _key(self, one: Notification, values: Values) -> object:
        if self.view.of is ViewKind.DISTINCT:
            return tuple(map(value_key, values.values()))
        keys = one.key if isinstance(one.key, tuple) else (one.key,)
        return tuple(map(comparable, keys))

    def check(self, engine: dl.Engine) -> None:
        """Does he know what is so?"""
        tables = {name: engine.rows(name) for name in ("stock", "other")}
        params = self.handle.params
        if self.view.of is ViewKind.AGGREGATES:
            ticks = {"money": Decimal(TICK["money"])}
            wanted = range_sum.answer(self.view, params, tables["stock"], ticks)
            assert self.scalar is not None
            assert equal(self.scalar, wanted), (self.scalar, wanted)
            return
        if self.view.of is ViewKind.DISTINCT:
            found = distinct.answer(self.view, params, tables["stock"])
            assert self.known.keys() == {tuple(map(value_key, one.values())) for one in found}
            return
        if self.view.of is ViewKind.PAIRS:
            sides = ([(row.attributes["key"], row) for row in tables[name]] for name in tables)
            expected = {
                tuple(map(comparable, keys)): values
                for keys, values in join.answer(self.view, params, *sides)
            }
        else:
            asked = self.view.condition()
            expected = {
                (comparable(row.attributes["key"]),): asked.select(Scope(row, params))
                for row in tables["stock"]
                if asked.matches(row, params)
            }
        assert self.known.keys() == expected.keys()
        assert all(same_values(self.known[key], expected[key]) for key in expected)


def equal(a: Values, b: Values) -> bool:
    return {n: value_key(v) for n, v in a.items()} == {n: value_key(v) for n, v in b.items()}


def same_values(a: Values, b: Values) -> bool:
    return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)


def with_key(row: dl.Event, key: object) -> dl.Event:
    return dl.Event(row.type, {**row.attributes, "key": key}, time=row.time)


def operations():
    upsert = st.tuples(st.just("put"), st.sampled_from(KEYS), rows("stock"))
    other = st.tuples(st.just("put"), st.sampled_from(KEYS), rows("other"))
    gone = st.tuples(st.just("delete"), st.sampled_from(KEYS), st.sampled_from(("stock", "other")))
    moved = st.tuples(st.just("move"), st.integers(-1, 2), st.integers(0, 3))
    begun = st.tuples(st.just("begin"), st.sampled_from(TEXTS + ROWS), st.none())
    return st.lists(st.one_of(upsert, upsert, upsert, other, gone, moved, begun), max_size=20)


@given(operations(), st.sampled_from(("index", "scan")))
def test_whoever_follows_what_he_is_told_knows_what_is_so(program, matcher) -> None:
    engine = dl.Engine(clock=dl.ManualClock(), matcher=matcher)
    engine.table("stock", key="key", ticks=TICK)
    engine.table("other", key="key")
    bounds = {"lo": 0, "hi": 2, "name": "a"}
    followers: list[Subscriber] = []

    def begin(text: str) -> None:
        live = text in ROWS
        params = {name: value for name, value in bounds.items() if f":{name}" in text}
        handle = engine.subscribe(
            text, params, rows=live, on_change="reevaluate" if live else "silent"
        )
        statement = handle._standing.statement
        assert isinstance(statement, View)
        followers.append(Subscriber(handle, statement))
        first = followers[-1].hear()
        assert all(one.kind == "snapshot" for one in first)
        assert [one.last for one in first] == [False] * (len(first) - 1) + [True] * bool(first)

    for text in (*TEXTS[::3], TEXTS[-1], ROWS[0]):
        begin(text)
    for what, one, another in program:
        if what == "begin":
            begin(one)
        elif what == "put":
            engine.publish(with_key(another, one))
        elif what == "delete":
            engine.delete(another, one)
        else:
            bounds |= {"lo": one, "hi": another}
            for follower in followers:
                names = follower.handle.params
                if names:
                    follower.handle.set(**{name: bounds[name] for name in names})
        for follower in followers:
            told = follower.hear()
            # A change of a row of a join may change several pairs, and so may any move of a set.
            if what in ("put", "delete") and follower.view.of is not ViewKind.PAIRS:
                assert len(told) <= 1
            follower.check(engine)
        engine._check()


@pytest.fixture
def engine() -> dl.Engine:
    engine = dl.Engine(clock=dl.ManualClock())
    engine.table("stock", key="symbol")
    return engine


def put(engine: dl.Engine, symbol: str, **values: object) -> int:
    return engine.publish(dl.Event("stock", {"symbol": symbol, **values}))


def told(handle: Handle) -> list[tuple[str, object]]:
    return [(one.kind, next(iter(one.values.values()), None)) for one in handle.pending()]


def test_a_view_is_told_its_value_and_then_the_changes(engine) -> None:
    put(engine, "A", risk=30, per=8)
    view = engine.subscribe("SELECT MIN(per) FROM stock WHERE risk BETWEEN 20 AND 60")
    assert told(view) == [("snapshot", 8)]
    assert put(engine, "B", risk=40, per=9) == 0
    assert put(engine, "C", risk=50, per=5) == 1
    assert engine.delete("stock", "C")
    assert put(engine, "A", risk=70, per=8) == 1
    assert engine.delete("stock", "B")
    assert told(view) == [("change", 5), ("change", 8), ("change", 9), ("change", None)]


def test_a_view_of_nothing_is_null_and_counts_zero(engine) -> None:
    least = engine.subscribe("SELECT MIN(per) FROM stock WHERE risk < 5")
    count = engine.subscribe("SELECT COUNT(*) FROM stock WHERE risk < 5")
    assert (told(least), told(count)) == ([("snapshot", None)], [("snapshot", 0)])


def test_moving_a_bound_tells_the_new_value(engine) -> None:
    put(engine, "A", risk=30, per=8)
    put(engine, "B", risk=50, per=3)
    view = engine.subscribe("SELECT MIN(per) FROM stock WHERE risk < :r", {"r": 40})
    view.set(r=60)
    view.set(r=70)
    (first, second) = view.pending()
    assert (first.values, second.values, second.epoch) == ({"MIN(per)": 8}, {"MIN(per)": 3}, 1)


def test_a_bound_may_become_infinite(engine) -> None:
    put(engine, "A", risk=30, per=8)
    view = engine.subscribe("SELECT MIN(per) FROM stock WHERE risk < :r", {"r": 20.0})
    view.set(r=float("inf"))
    put(engine, "B", risk=1e300, per=1)
    view.set(r=0.0)
    assert told(view) == [("snapshot", None), ("change", 8), ("change", 1), ("change", None)]


@pytest.mark.parametrize("odd", [2**60, "text", True, 2**53 + 1])
def test_what_floats_cannot_hold_is_told_all_the_same(engine, odd) -> None:
    put(engine, "A", risk=30, per=2**53)
    view = engine.subscribe("SELECT MAX(per) FROM stock WHERE risk < 40")
    put(engine, "B", risk=30, per=odd)
    put(engine, "C", risk=odd, per=1)
    put(engine, "B", risk=30, per=4)
    number = isinstance(odd, int) and not isinstance(odd, bool)
    assert told(view) == [
        ("snapshot", 2**53),
        ("change", odd if number else None),
        ("change", 2**53),
    ]


def test_integers_are_told_as_integers(engine) -> None:
    put(engine, "A", risk=1, per=8)
    view = engine.subscribe("SELECT MIN(per) FROM stock WHERE risk < 5")
    put(engine, "A", risk=1, per=7)
    put(engine, "B", risk=1, per=2.5)
    assert [type(value) for _, value in told(view)] == [int, int, float]


def test_having_moved_tells_only_then(engine) -> None:
    view = engine.subscribe("SELECT MIN(per) FROM stock HAVING moved(MIN(per), by => :r)", {"r": 2})
    for per in (10, 9, 8, 7, 6, 7.5):
        put(engine, "A", per=per)
    assert told(view) == [("snapshot", None), *(("change", n) for n in (10, 8, 6))]
    engine.delete("stock", "A")
    assert told(view) == [("change", None)]


def test_having_crossed_waits_until_it_is_clear(engine) -> None:
    text = "SELECT SUM(n) FROM stock HAVING crossed(SUM(n), above => 10, clear => 5)"
    view = engine.subscribe(text)
    for n in (9, 11, 9, 12, 5, 10):
        put(engine, "A", n=n)
    assert told(view) == [("snapshot", None), ("change", 11), ("change", 10)]


def test_messages_about_tables_are_nobody_elses(engine) -> None:
    everything = engine.subscribe("SELECT *")
    pattern = engine.subscribe("SELECT * THEN SELECT *")
    engine.subscribe("SELECT COUNT(*) FROM stock")
    for time in (1, 2):
        engine.publish(dl.Event("stock", {"symbol": "A", "per": time}, time=time))
    assert len(everything.pending()) == 2
    assert len(pattern.pending()) == 1


@pytest.mark.parametrize(
    "refused",
    [
        lambda engine: engine.publish(dl.Event("$rows:stock", {"KEY": 1})),
        lambda engine: engine.table("$t", key="k"),
        lambda engine: engine.subscribe('SELECT * FROM "$rows:stock"'),
        lambda engine: engine.subscribe('SELECT COUNT(*) FROM "$rows:stock"'),
        lambda engine: engine.subscribe('SELECT * FROM a THEN SELECT * FROM "$rows:stock"'),
        lambda engine: engine.subscribe("SELECT COUNT(*) FROM nowhere"),
        lambda engine: engine.subscribe("SELECT a.x FROM stock JOIN a ON a.k = stock.k"),
        lambda engine: engine.subscribe("SELECT COUNT(*) FROM stock WHERE t > now()"),
        lambda engine: engine.subscribe("SELECT stock.x FROM stock JOIN n ON stock.x < n.x"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_stays(engine, refused) -> None:
    with pytest.raises(dl.DriftlineError):
        refused(engine)
    engine._check()
    assert not engine._handles


def test_a_view_that_ended_is_told_nothing(engine) -> None:
    with engine.subscribe("SELECT COUNT(*) FROM stock") as view:
        pass
    assert put(engine, "A", per=1) == 0
    assert told(view) == [("snapshot", 0)]


def test_a_suspended_party_gets_its_views_later(engine) -> None:
    view = engine.subscribe("SELECT COUNT(*) FROM stock", party="p")
    engine.suspend("p")
    put(engine, "A", per=1)
    assert told(view) == [("snapshot", 0)]
    engine.resume("p")
    assert told(view) == [("change", 1)]


def test_a_join_is_told_for_each_pair(engine) -> None:
    engine.table("news", key="id")
    view = engine.subscribe(
        "SELECT news.title, stock.symbol FROM news JOIN stock ON stock.symbol = news.symbol"
    )
    put(engine, "A", per=1)
    for id in (1, 2):
        engine.publish(dl.Event("news", {"id": id, "symbol": "A", "title": f"t{id}"}))
    engine.delete("stock", "A")
    assert [(one.kind, one.key) for one in view.pending()] == [
        ("enter", (1, "A")),
        ("enter", (2, "A")),
        ("leave", (1, "A")),
        ("leave", (2, "A")),
    ]


def test_messages_that_nobody_wants_are_no_longer_made(engine, monkeypatch) -> None:
    monkeypatch.setattr("driftline.broker.demand.IDLE", 4)
    home = engine._broker.tables.home
    view = engine.subscribe("SELECT MIN(per) FROM stock WHERE risk < 5")
    for risk in range(9, 0, -1):
        put(engine, "A", risk=risk, per=risk)
    assert home.types() == ["$min:stock.per/risk"]
    view.cancel()
    for risk in range(9):
        put(engine, "A", risk=risk, per=risk)
    assert home.types() == []
    again = engine.subscribe("SELECT MIN(per) FROM stock WHERE risk < 50")
    put(engine, "A", risk=1, per=1)
    assert told(again) == [("snapshot", 8), ("change", 1)]


def test_who_could_not_be_told_everything_is_told_all_of_it_behind_the_gap(engine) -> None:
    for at in range(1200):
        put(engine, f"S{at}", per=at)
    engine.suspend("p")
    views = [
        engine.subscribe("SELECT per FROM stock", rows=True, party="p"),
        engine.subscribe("SELECT DISTINCT per FROM stock", party="p"),
    ]
    engine.resume("p")
    for view in views:
        kinds = [one.kind for one in view.pending()]
        assert kinds[-1201:] == ["gap", *["snapshot"] * 1200]


def test_a_crossing_is_remembered_when_a_view_joins_anew(engine) -> None:
    put(engine, "A", per=50)
    put(engine, "Z", per=2**60)  # With it, each change is asked for.
    view = engine.subscribe(
        "SELECT MIN(per) FROM stock HAVING crossed(MIN(per), above => 100, clear => 95)"
    )
    for per in (101, 90, 105):
        put(engine, "A", per=per)
    assert told(view) == [("snapshot", 50), ("change", 101), ("change", 105)]


def test_having_moved_over_what_is_no_number(engine) -> None:
    view = engine.subscribe("SELECT MIN(name) FROM stock HAVING moved(MIN(name), by => 1)")
    put(engine, "A", name="x")
    put(engine, "A", name="y")
    engine.delete("stock", "A")
    assert told(view) == [("snapshot", None), ("change", "x"), ("change", "y"), ("change", None)]


def test_a_factor_of_one_or_less_tells_differences_only(engine) -> None:
    view = engine.subscribe(
        "SELECT SUM(per) FROM stock HAVING moved(SUM(per), factor => :f)", {"f": 0.5}
    )
    for symbol, per in (("A", 5), ("B", 0), ("C", 1)):
        put(engine, symbol, per=per)
    assert told(view) == [("snapshot", None), ("change", 5), ("change", 6)]


@pytest.mark.parametrize(
    "having",
    ["moved(MIN(x), by => env('r'))", "moved(MIN(x), by => 1, shared => TRUE)"],
)
def test_a_gate_that_cannot_be_honoured_is_refused(engine, having) -> None:
    with pytest.raises(dl.NotSupported):
        engine.subscribe(f"SELECT MIN(x) FROM stock HAVING {having}")


def test_rows_know_when_they_entered(engine) -> None:
    engine.publish(dl.Event("stock", {"symbol": "A"}, time=5, entered=5))
    engine._clock.advance(100)
    rows = engine.subscribe("SELECT ce_entered FROM stock", rows=True)
    (one,) = rows.pending()
    assert one.values["ce_entered"].microsecond == 5


def test_keys_of_two_kinds_are_followed(engine) -> None:
    engine.table("t", key="k")
    rows = engine.subscribe("SELECT k FROM t WHERE elapsed() > x", rows=True, on_change="follow")
    for key in (1, "a", True):
        engine.publish(dl.Event("t", {"k": key, "x": 1}))
    engine._clock.advance(2)
    engine.wake()
    assert [one.kind for one in rows.pending()] == ["enter"] * 3


@pytest.mark.parametrize(
    "view",
    [
        View((), "stock", distinct=True),
        View((Column(Aggregate(AggregateFunction.MIN)),), "stock"),
        View((Column(COUNT), Column(Attribute("x"))), "stock"),
        View((Column(COUNT), Column(COUNT)), "stock"),
        View((Column(COUNT),), "stock", where=Comparison(">", COUNT, Literal(1))),
        View((Column(Attribute("x")),), "stock", having=Moved(COUNT, Measure.BY, Literal(1))),
        View((), "stock", having=Moved(Attribute("x", "other"), Measure.BY, Literal(1))),
        View((Column(COUNT),), "stock", having=Moved(MIN_X, Measure.BY, Literal(1))),
        View((Column(Attribute("x", "other")),), "stock", distinct=True),
        View((Column(Attribute("x", "stock")),), "stock", join=Join("stock", TRUE)),
    ],
    ids=str,
)
def test_a_view_that_no_text_says_is_refused(engine, view) -> None:
    with pytest.raises(dl.NotSupported):
        engine.subscribe(view)
    assert not engine._handles


def test_a_set_of_rows_that_was_told_of_its_move_sees_no_more_than_it_asks_for(engine) -> None:
    rows = engine.subscribe(
        "SELECT * FROM stock WHERE x < :r", {"r": 1}, rows=True, on_change="reevaluate"
    )
    rows.set(r=2)
    matched = engine._broker.edge._plain.match
    message = dl.Event.of_admitted("$rows:stock", {"KEY": 1, "NEW": True, "NEW_x": 5}, 0)
    assert matched(message, {}, 0) == []
