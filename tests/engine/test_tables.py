"""Tables and live sets of rows: snapshot, enter, change, leave, and what a table refuses."""

import pytest

import driftline as dl
from driftline.errors import InvalidValue, NotSupported, TableError


@pytest.fixture
def engine():
    engine = dl.Engine(clock=dl.ManualClock())
    engine.table("stock", key="symbol", ticks={"price": "0.01"})
    return engine


def put(engine, symbol, price, **more):
    return engine.publish(dl.Event("stock", {"symbol": symbol, "price": price, **more}))


def told(handle):
    return [(n.kind, n.key, n.values, n.old, n.last) for n in handle.pending()]


def test_a_plain_filter_over_a_table_is_told_every_matching_upsert(engine):
    s = engine.subscribe("SELECT price FROM stock WHERE price < 10")
    put(engine, "IBM", 9)
    put(engine, "IBM", 9)
    put(engine, "IBM", 11)
    assert [(n.kind, n.values) for n in s.pending()] == [("event", {"price": 9})] * 2


def test_a_row_set_starts_with_a_snapshot_whose_end_is_marked(engine):
    put(engine, "IBM", 9)
    put(engine, "DIS", 99)
    put(engine, "MSFT", 8)
    s = engine.subscribe("SELECT price FROM stock WHERE price < 10", rows=True)
    assert told(s) == [
        ("snapshot", "IBM", {"price": 9}, None, False),
        ("snapshot", "MSFT", {"price": 8}, None, True),
    ]


def test_a_row_enters_changes_and_leaves_with_old_and_new(engine):
    s = engine.subscribe("SELECT price FROM stock WHERE price < 10", rows=True)
    assert s.pending() == []
    put(engine, "IBM", 9)
    put(engine, "IBM", 9, note="the selected column is the same")
    put(engine, "IBM", 8)
    put(engine, "IBM", 12)
    put(engine, "IBM", 13)
    put(engine, "IBM", 7)
    engine.delete("stock", "IBM")
    assert told(s) == [
        ("enter", "IBM", {"price": 9}, None, False),
        ("change", "IBM", {"price": 8}, {"price": 9}, False),
        ("leave", "IBM", {}, {"price": 8}, False),
        ("enter", "IBM", {"price": 7}, None, False),
        ("leave", "IBM", {}, {"price": 7}, False),
    ]
    engine._check()


def test_an_upsert_replaces_the_whole_row(engine):
    s = engine.subscribe("SELECT * FROM stock WHERE note IS NOT NULL", rows=True)
    put(engine, "IBM", 9, note="here")
    put(engine, "IBM", 9)
    assert [n.kind for n in s.pending()] == ["enter", "leave"]


def test_deleting_tells_whether_there_was_a_row_and_plain_filters_nothing(engine):
    plain = engine.subscribe("SELECT * FROM stock")
    put(engine, "IBM", 9)
    assert engine.delete("stock", "IBM") is True
    assert engine.delete("stock", "IBM") is False
    assert len(plain.pending()) == 1
    assert engine.rows("stock") == []


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({"price": 9}, "key symbol"),
        ({"symbol": None, "price": 9}, "key symbol"),
        ({"symbol": "IBM", "price": float("nan")}, "finite"),
        ({"symbol": "IBM", "per": float("inf")}, "finite"),
        ({"symbol": "IBM", "price": 9.001}, "multiple of 0.01"),
        ({"symbol": "IBM", "price": 0.1 + 0.2}, "multiple of 0.01"),
        ({"symbol": "IBM", "price": "9"}, "number of ticks"),
        ({"symbol": "IBM", "price": True}, "number of ticks"),
    ],
)
def test_a_refused_row_changes_nothing_and_tells_nobody(engine, attributes, problem):
    put(engine, "IBM", 5)
    plain = engine.subscribe("SELECT * FROM stock")
    rows = engine.subscribe("SELECT * FROM stock", rows=True)
    rows.pending()
    with pytest.raises(TableError, match=problem):
        engine.publish(dl.Event("stock", attributes))
    assert (plain.pending(), rows.pending()) == ([], [])
    assert [row.attributes["price"] for row in engine.rows("stock")] == [5]


def test_money_on_its_tick_is_accepted_as_integer_or_float(engine):
    for price in (0, -3, 9.99, 0.01, 1e6, 123456.78):
        put(engine, "IBM", price)


@pytest.mark.parametrize("tick", ["0", "-0.01", "x", "nan", "inf", 0.01])
def test_a_tick_must_be_a_positive_decimal_given_as_text(engine, tick):
    with pytest.raises(TableError):
        engine.table("other", key="k", ticks={"price": tick})


def test_a_table_may_be_declared_again_only_with_the_same_words(engine):
    engine.table("stock", key="symbol", ticks={"price": "0.01"})
    with pytest.raises(TableError, match=r"already declared .*: key symbol, ticks price 0\.01"):
        engine.table("stock", key="id")
    for name, key in (("", "k"), ("t", ""), (None, "k"), ("t", None)):
        with pytest.raises(TableError):
            engine.table(name, key=key)


def test_rows_need_a_declared_table_and_a_plain_filter(engine):
    for text in ("SELECT * FROM news", "SELECT * WHERE x = 1"):
        with pytest.raises(TableError):
            engine.subscribe(text, rows=True)
    with pytest.raises(NotSupported):
        engine.subscribe("SELECT * FROM stock THEN SELECT * FROM stock", rows=True)
    with pytest.raises(TableError, match="not declared"):
        engine.delete("news", 1)
    with pytest.raises(InvalidValue):
        engine.delete("stock", [])
    with pytest.raises(TableError):
        engine.subscribe("SELECT * FROM news", on_change="reevaluate")
    with pytest.raises(NotSupported):
        engine.subscribe("SELECT * FROM stock THEN SELECT * FROM stock", on_change="reevaluate")
    engine._check()


def test_a_plain_filter_that_moves_tells_of_the_last_events_if_asked_to():
    engine = dl.Engine(clock=dl.ManualClock())
    engine.table("stock", key="symbol")
    text = "SELECT price FROM stock WHERE price < :p AND price > env('floor')"
    loud = engine.subscribe(text, {"p": 10}, on_change="reevaluate")
    silent = engine.subscribe(text, {"p": 10})
    engine.set_env("floor", 1)
    for symbol, price in (("A", 5), ("B", 15), ("C", 25), ("A", 6)):
        engine.publish(dl.Event("stock", {"symbol": symbol, "price": price}))
    loud.set(p=20)
    silent.set(p=20)
    engine.set_env("floor", 10)
    loud.replace("price < :p", "price < :p + 10")
    engine.publish(dl.Event("stock", {"symbol": "B", "price": 16}))
    engine.set_env("floor", None)
    told = [(n.kind, n.key, n.values, n.old, n.epoch) for n in loud.pending()]
    assert told == [
        ("event", None, {"price": 5}, None, 0),
        ("event", None, {"price": 6}, None, 0),
        ("enter", "B", {"price": 15}, None, 1),
        ("leave", "A", {}, {"price": 6}, 1),
        ("enter", "C", {"price": 25}, None, 2),
        ("event", None, {"price": 16}, None, 2),
        ("leave", "B", {}, {"price": 16}, 2),
        ("leave", "C", {}, {"price": 25}, 2),
    ]
    assert [n.kind for n in silent.pending()] == ["event"] * 3
    engine._check()


def test_keys_are_one_if_they_compare_equal():
    engine = dl.Engine(clock=dl.ManualClock())
    engine.table("t", key="k")
    for key in (1, 1.0, True, "1"):
        engine.publish(dl.Event("t", {"k": key}))
    assert [row.attributes["k"] for row in engine.rows("t")] == [1.0, True, "1"]


def test_by_default_a_moved_bound_is_silent_until_the_next_upsert_of_the_row(engine):
    put(engine, "IBM", 9)
    put(engine, "DIS", 12)
    s = engine.subscribe("SELECT price FROM stock WHERE price < :p", {"p": 10}, rows=True)
    s.pending()
    s.set(p=20)
    assert s.pending() == []
    put(engine, "DIS", 12)
    assert told(s) == [("enter", "DIS", {"price": 12}, None, False)]


def test_with_reevaluate_a_moved_bound_tells_what_entered_and_left(engine):
    put(engine, "IBM", 9)
    put(engine, "DIS", 12)
    s = engine.subscribe(
        "SELECT price FROM stock WHERE price BETWEEN :lo AND :lo + 5 * env('width')",
        {"lo": 5},
        rows=True,
        on_change="reevaluate",
    )
    assert s.pending() == []
    engine.set_env("width", 1)
    engine.set_env("unrelated", 1)
    s.set(lo=10)
    assert [(n.kind, n.key, n.epoch) for n in s.pending()] == [
        ("enter", "IBM", 0),
        ("leave", "IBM", 1),
        ("enter", "DIS", 1),
    ]


def test_what_may_not_be_published_is_said_before_what_no_table_takes():
    engine = dl.Engine(clock=dl.ManualClock(), advertised=True)
    engine.table("stock", key="symbol")
    with pytest.raises(dl.NotAdvertised):
        engine.publish(dl.Event("stock", {"price": 1}))
