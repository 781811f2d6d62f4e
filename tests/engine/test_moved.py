"""What moved and what crossed: when one is told, of which rows, and against what."""

import math

import pytest

import driftline as dl
from driftline.errors import InvalidValue, LanguageError, NotSupported
from driftline.outlets import KEEP

BY_2 = "SELECT price FROM stock WHERE symbol = 'IBM' AND moved(price, by => 2)"
ALL = "SELECT symbol, price FROM stock WHERE moved(price, by => 2)"
TECH = "SELECT symbol, price FROM stock WHERE sector = 'tech' AND moved(price, by => 2)"


@pytest.fixture
def engine():
    engine = dl.Engine(clock=dl.ManualClock())
    engine.table("stock", key="symbol")
    yield engine
    engine._check()


def put(engine, price, symbol="IBM", **more):
    return engine.publish(dl.Event("stock", {"symbol": symbol, "price": price, **more}))


def quote(engine, price, **more):
    return engine.publish(dl.Event("quote", {"price": price, **more}))


def told(handle):
    return [(n.kind, n.key, n.values, n.old, n.last) for n in handle.pending()]


def prices(handle):
    return [(n.kind, n.values.get("price")) for n in handle.pending()]


def heard(engine, text, values, params=None):
    """Which of the values of a row one is told who is there from the first on."""
    put(engine, values[0])
    s = engine.subscribe(text, params)
    for value in values[1:]:
        put(engine, value)
    return [n.values["price"] for n in s.pending()]


def where(change):
    return f"SELECT price FROM stock WHERE symbol = 'IBM' AND {change}"


# When one is told.


@pytest.mark.parametrize(
    ("change", "values", "wanted"),
    [
        ("moved(price, by => 2)", [100, 101, 102, 103, 104, 102], [100, 102, 104, 102]),
        ("moved(price, by => 2, strict => TRUE)", [100, 102, 102.5, 100.5, 100], [100, 102.5, 100]),
        ("moved(price, percent => 10)", [100, 109, 110, 120, 121, 109, 108], [100, 110, 121, 108]),
        ("moved(price, percent => 10)", [-100, -91, -90, -81], [-100, -90, -81]),
        ("moved(price, factor => 2)", [100, 199, 200, 101, 100, 51, 50], [100, 200, 100, 50]),
        ("moved(price, may => 1, must => 2)", [100, 101.5, 102, 103], [100, 102]),
        ("crossed(price, above => 100, clear => 95)", [99, 101, 97, 102, 95, 100], [101, 100]),
        ("crossed(price, above => 100)", [101, 100, 99, 100], [101, 100]),
        ("crossed(price, below => 10, clear => 15)", [12, 10, 9, 14, 8, 15, 9], [10, 9]),
    ],
)
def test_one_is_told_iff_the_value_moved_since_one_was_told(engine, change, values, wanted):
    assert heard(engine, where(change), values) == wanted


@pytest.mark.parametrize("odd", [None, "text", True, 2**60])
def test_what_is_no_number_changes_nothing(engine, odd):
    assert heard(engine, BY_2, [100, 101, odd, 101.5, 102]) == [100, 102]


@pytest.mark.parametrize("odd", [0, -3])
def test_of_a_factor_only_what_is_above_0_is_a_value(engine, odd):
    assert heard(engine, where("moved(price, factor => 2)"), [100, odd, 199, 200]) == [100, 200]


def test_thresholds_compare_integers_exactly(engine):
    text = where(f"crossed(price, above => {2**60 + 1})")
    assert heard(engine, text, [2**60, 2**60 + 1]) == [2**60 + 1]


def test_nan_is_no_value_of_an_event(engine):
    s = engine.subscribe("SELECT price FROM quote WHERE moved(price, by => 2)")
    for price in (100, math.nan, math.inf, 101, 102):
        quote(engine, price)
    assert prices(s) == [("event", 100), ("event", 102)]


def test_events_that_do_not_satisfy_the_rest_change_nothing(engine):
    put(engine, 100, sector="tech")
    s = engine.subscribe(TECH)
    for price, sector in ((150, "food"), (101, "tech"), (50, None), (102, "tech")):
        put(engine, price, sector=sector)
    assert prices(s) == [("snapshot", 100), ("change", 102)]


def test_a_row_that_satisfies_the_rest_again_is_judged_by_what_was_told_before(engine):
    put(engine, 100, sector="tech")
    s = engine.subscribe(TECH)
    put(engine, 200, sector="food")
    put(engine, 101, sector="tech")
    assert prices(s) == [("snapshot", 100)]


# Rows.


def test_each_row_is_judged_by_what_was_told_of_that_row(engine):
    put(engine, 100, "IBM")
    put(engine, 10, "DIS")
    s = engine.subscribe(ALL)
    put(engine, 11, "DIS")
    put(engine, 102, "IBM")
    put(engine, 12, "DIS")
    assert told(s)[2:] == [
        ("change", "IBM", {"symbol": "IBM", "price": 102}, {"symbol": "IBM", "price": 100}, False),
        ("change", "DIS", {"symbol": "DIS", "price": 12}, {"symbol": "DIS", "price": 10}, False),
    ]


def test_a_snapshot_has_one_for_each_row_and_its_end_is_marked(engine):
    put(engine, 100, "IBM")
    put(engine, None, "DIS")
    put(engine, 10, "MSFT")
    assert told(engine.subscribe(ALL)) == [
        ("snapshot", "IBM", {"symbol": "IBM", "price": 100}, None, False),
        ("snapshot", "MSFT", {"symbol": "MSFT", "price": 10}, None, True),
    ]


def test_a_pinned_row_that_does_not_exist_yet_is_told_as_a_snapshot_when_it_appears(engine):
    s = engine.subscribe(BY_2)
    assert told(s) == []
    put(engine, 100)
    assert told(s) == [("snapshot", "IBM", {"price": 100}, None, True)]


def test_another_row_enters(engine):
    s = engine.subscribe(ALL)
    put(engine, 100)
    assert told(s) == [("enter", "IBM", {"symbol": "IBM", "price": 100}, None, False)]


def test_deleting_the_row_ends_the_state_and_tells_leave(engine):
    put(engine, 100)
    s = engine.subscribe(BY_2)
    engine.delete("stock", "IBM")
    put(engine, 100)
    assert told(s)[1:] == [
        ("leave", "IBM", {}, {"price": 100}, False),
        ("enter", "IBM", {"price": 100}, None, False),
    ]


def test_a_row_that_nothing_was_told_of_does_not_leave(engine):
    put(engine, 99)
    s = engine.subscribe(where("crossed(price, above => 100)"))
    engine.delete("stock", "IBM")
    assert told(s) == []


def test_one_who_had_a_snapshot_gets_no_other_when_the_row_comes_back(engine):
    put(engine, 100)
    s = engine.subscribe(where("moved(price, by => :r)"), {"r": 2})
    engine.delete("stock", "IBM")
    s.set(r=3)
    put(engine, 100)
    assert [n.kind for n in s.pending()] == ["snapshot", "leave", "enter"]


def test_who_comes_while_the_row_does_not_count_is_told_of_the_next_that_does(engine):
    put(engine, 100, sector="tech")
    first = engine.subscribe(TECH)
    put(engine, 100, sector="food")
    late = engine.subscribe(TECH)
    put(engine, 101, sector="tech")
    put(engine, 102, sector="tech")
    assert prices(first) == [("snapshot", 100), ("change", 102)]
    assert prices(late) == [("enter", 101)]


def test_one_who_was_late_asks_for_its_place_when_it_has_one(engine):
    text = TECH.replace("WHERE", "WHERE symbol = 'IBM' AND")
    put(engine, 100, sector="tech")
    engine.subscribe(text)
    put(engine, 100, sector="food")
    late = engine.subscribe(text)
    asked = engine._broker.edge.views.interest
    assert "LO <=" not in str(asked(late.id).statement)
    put(engine, 101, sector="tech")
    assert "LO <=" in str(asked(late.id).statement)


def test_what_comes_and_goes_is_not_known_for_ever(engine):
    engine.subscribe(ALL)
    for at in range(9):
        put(engine, 100, f"S{at}")
        engine.delete("stock", f"S{at}")
    (messages,) = engine._broker.tables.home._reformulators.values()
    assert not messages._generations


# Types that are no tables.


def test_over_a_type_that_is_no_table_there_is_one_state_for_the_subscription(engine):
    s = engine.subscribe("SELECT price FROM quote WHERE moved(price, by => 2)")
    for symbol, price in (("IBM", 100), ("DIS", 101), ("DIS", 102)):
        quote(engine, price, symbol=symbol)
    assert told(s) == [
        ("event", None, {"price": 100}, None, False),
        ("event", None, {"price": 102}, {"price": 100}, False),
    ]


def test_without_from_events_of_any_type_are_judged_together(engine):
    s = engine.subscribe("SELECT price WHERE moved(price, by => 2)")
    quote(engine, 100)
    put(engine, 101)
    put(engine, 102)
    assert prices(s) == [("event", 100), ("event", 102)]


def test_without_from_the_messages_that_keep_views_are_no_events(engine):
    s = engine.subscribe("SELECT * WHERE moved(NEW_price, by => 2)")
    engine.subscribe("SELECT price FROM stock", rows=True)
    engine.subscribe(ALL)
    put(engine, 100)
    assert s.pending() == []


def test_when_its_type_becomes_a_table_it_begins_anew_with_rows(engine):
    s = engine.subscribe("SELECT price FROM quote WHERE moved(price, by => 2)")
    quote(engine, 100, symbol="IBM")
    engine.table("quote", key="symbol")
    quote(engine, 100, symbol="IBM")
    quote(engine, 100, symbol="DIS")
    assert [(n.kind, n.key) for n in s.pending()] == [
        ("event", None),
        ("enter", "IBM"),
        ("enter", "DIS"),
    ]


# Parameters.


def test_what_is_overdue_by_another_radius_is_told_at_once(engine):
    put(engine, 100)
    s = engine.subscribe(where("moved(price, by => :r)"), {"r": 10})
    put(engine, 104)
    s.set(r=5)
    s.set(r=4)
    assert [(n.kind, n.values["price"], n.epoch) for n in s.pending()] == [
        ("snapshot", 100, 0),
        ("change", 104, 2),
    ]


@pytest.mark.parametrize(
    ("condition", "more"),
    [("", {}), ("volume < :v AND ", {"v": 5})],
    ids=["together", "alone"],
)
@pytest.mark.parametrize("others", [False, True])
def test_rows_that_are_overdue_are_told_in_the_order_of_the_table(engine, condition, more, others):
    put(engine, None, "SAP", volume=1)
    put(engine, 100, "IBM", volume=1)
    if others:  # They are told of a later row first.
        engine.subscribe("SELECT price FROM stock WHERE symbol = 'DIS' AND moved(price, by => 9)")
    put(engine, 100, "DIS", volume=1)
    text = f"SELECT price FROM stock WHERE {condition}moved(price, by => :r)"
    s = engine.subscribe(text, {"r": 6, **more})
    put(engine, 100, "SAP", volume=1)
    for symbol in ("DIS", "SAP", "IBM"):
        put(engine, 103, symbol, volume=1)
    assert [n.key for n in s.pending()] == ["IBM", "DIS", "SAP"]
    s.set(r=2, **more)
    assert [(n.kind, n.key) for n in s.pending()] == [
        ("change", "SAP"),
        ("change", "IBM"),
        ("change", "DIS"),
    ]


def test_over_events_the_next_one_is_judged_by_another_radius(engine):
    s = engine.subscribe("SELECT price FROM quote WHERE moved(price, by => :r)", {"r": 10})
    quote(engine, 100)
    quote(engine, 104)
    s.set(r=4)
    assert prices(s) == [("event", 100)]
    quote(engine, 104)
    assert prices(s) == [("event", 104)]


def test_a_row_that_satisfies_a_moved_condition_is_told_at_once(engine):
    put(engine, 100, sector="food")
    s = engine.subscribe(
        "SELECT price FROM stock WHERE sector = :s AND moved(price, by => 2)", {"s": "tech"}
    )
    s.set(s="food")
    assert told(s) == [("enter", "IBM", {"price": 100}, None, False)]


def test_other_thresholds_know_what_was_told(engine):
    put(engine, 101)
    s = engine.subscribe(where("crossed(price, above => :a, clear => 90)"), {"a": 100})
    s.set(a=99)
    put(engine, 102)
    assert prices(s) == [("snapshot", 101)]


@pytest.mark.parametrize("radius", [0, -1, 2**60])
def test_a_radius_that_is_none_is_refused_and_nothing_changes(engine, radius):
    put(engine, 100)
    s = engine.subscribe(where("moved(price, by => :r)"), {"r": 2})
    with pytest.raises(InvalidValue):
        s.set(r=radius)
    put(engine, 102)
    assert prices(s) == [("snapshot", 100), ("change", 102)]


def test_another_condition_begins_anew(engine):
    put(engine, 100, volume=5)
    s = engine.subscribe(BY_2)
    put(engine, 101, volume=5)
    s.add("volume > 3")
    assert prices(s) == [("snapshot", 100), ("snapshot", 101)]


def test_the_environment_moves_the_rest_of_a_condition(engine):
    s = engine.subscribe("SELECT price FROM stock WHERE env('open') AND moved(price, by => 2)")
    put(engine, 100)
    engine.set_env("open", True)
    put(engine, 101)
    engine.set_env("open", False)
    put(engine, 110)
    assert prices(s) == [("enter", 101)]


@pytest.mark.parametrize("source", ["stock", "quote"])
def test_an_unknown_variable_is_counted_once_for_each_that_reads_it(engine, source):
    engine.subscribe(f"SELECT * FROM {source} WHERE env('open') AND moved(price, by => 2)")
    assert engine.unknown() == {"open": "nobody has given it a value (1 conditions)"}


# Two radii, and a centre that is shared.


def test_one_who_may_be_told_is_when_another_with_its_radii_must_be(engine):
    put(engine, 100)
    first = engine.subscribe(where("moved(price, may => 2, must => 5)"))
    put(engine, 103)
    second = engine.subscribe(where("moved(price, may => 2, must => 5)"))
    put(engine, 105)
    assert prices(first) == [("snapshot", 100), ("change", 105)]
    assert prices(second) == [("snapshot", 103), ("change", 105)]


def test_one_who_may_be_told_is_not_when_nobody_must_be(engine):
    text = "SELECT price FROM stock WHERE sector = 'tech' AND moved(price, may => 1, must => :m)"
    put(engine, 100, sector="tech")
    s = engine.subscribe(text, {"m": 10})
    put(engine, 100, sector="food")
    late = engine.subscribe(text, {"m": 100})
    for price in (105, 94, 90):
        put(engine, price, sector="tech")
    assert prices(s) == [("snapshot", 100), ("change", 90)]
    # One who is late is told, whatever the others are; then it may be, beside who must be.
    assert prices(late) == [("enter", 105), ("change", 90)]


def test_two_other_radii_tell_at_once_only_what_must_be_told(engine):
    put(engine, 100)
    s = engine.subscribe(where("moved(price, may => 1, must => :m)"), {"m": 10})
    put(engine, 104)
    s.set(m=5)
    assert prices(s) == [("snapshot", 100)]
    s.set(m=4)
    assert prices(s) == [("change", 104)]


@pytest.mark.parametrize("radii", ["by => 5", "may => 1, must => 5"])
def test_a_shared_centre_is_what_others_with_this_radius_were_told(engine, radii):
    put(engine, 100)
    first = engine.subscribe(where(f"moved(price, {radii})"))
    put(engine, 103)
    second = engine.subscribe(where(f"moved(price, {radii}, shared => TRUE)"))
    put(engine, 105)
    assert prices(first) == prices(second) == [("snapshot", 100), ("change", 105)]


def test_one_that_shares_and_is_late_starts_from_what_it_is_told(engine):
    put(engine, 100, sector="tech")
    engine.subscribe(TECH)
    put(engine, 100, sector="food")
    s = engine.subscribe(TECH.replace("by => 2", "by => 2, shared => TRUE"))
    for price in (101.5, 103, 103.5):
        put(engine, price, sector="tech")
    assert prices(s) == [("enter", 101.5), ("change", 103.5)]


# Money.


@pytest.fixture
def money():
    engine = dl.Engine(clock=dl.ManualClock())
    engine.table("stock", key="symbol", ticks={"price": "0.01"})
    yield engine
    engine._check()


def test_ticks_make_money_exact(money, engine):
    values = [0.1, 0.3, 0.6, 0.7]
    text = where("moved(price, by => 0.2)")
    assert heard(money, text, values) == [0.1, 0.3, 0.6]
    # In floats 0.1 + 0.2 is above 0.3.
    assert heard(engine, text, values) == [0.1, 0.6]


def test_strictly_by_a_tick_is_by_the_next_one(money):
    text = where("moved(price, by => 0.02, strict => TRUE)")
    assert heard(money, text, [1, 1.02, 1.03]) == [1, 1.03]


def test_a_radius_that_no_value_is_apart_is_never_reached(money):
    assert heard(money, where("moved(price, by => 1e20)"), [-4e13, 4e13]) == [-4e13]


def test_a_shared_centre_is_in_money_again(money):
    put(money, 19.99)
    money.subscribe(where("moved(price, by => 1)"))
    put(money, 20.01)
    s = money.subscribe(where("moved(price, by => 1, shared => TRUE)"))
    put(money, 20.99)
    assert prices(s) == [("snapshot", 19.99), ("change", 20.99)]


# Parties, and what is refused.


def test_what_a_suspended_party_missed_is_told_as_a_gap_and_all_of_it_anew(engine):
    put(engine, 0)
    s = engine.subscribe(BY_2, party="alice")
    s.pending()
    engine.suspend("alice")
    for at in range(KEEP + 1):
        put(engine, 2 * at + 2)
    put(engine, 0.5)
    engine.resume("alice")
    gap, *_, anew = s.pending()
    assert gap.kind == "gap"
    assert (anew.kind, anew.values, anew.last) == ("snapshot", {"price": 0.5}, True)
    put(engine, 2.5)
    assert prices(s) == [("change", 2.5)]


def test_unsubscribing_from_more_cancels_what_moved_too(engine):
    engine.subscribe(BY_2, party="alice")
    assert engine.unsubscribe("alice", "SELECT * FROM stock WHERE symbol = 'DIS'") == 0
    assert engine.unsubscribe("alice", "SELECT * FROM stock") == 1
    assert put(engine, 100) == 0


@pytest.mark.parametrize("how", [{"rows": True}, {"on_change": "reevaluate"}])
def test_live_rows_of_what_moved_are_refused(engine, how):
    with pytest.raises(NotSupported, match="plain filter"):
        engine.subscribe(ALL, **how)


@pytest.mark.parametrize(
    "where",
    [
        "moved(price, by => 2) OR price > 3",
        "moved(price, by => 2) AND crossed(price, above => 2)",
        "moved(price, by => 0)",
        "moved(price, may => 3, must => 2)",
        "crossed(price, above => 2, clear => 3)",
    ],
)
def test_what_means_nothing_is_refused_with_the_text(engine, where):
    with pytest.raises(LanguageError):
        engine.subscribe(f"SELECT * FROM stock WHERE {where}")


def test_the_builder_asks_for_the_same(engine):
    put(engine, 100)
    attr = dl.attr
    for change in (dl.moved(attr.price, by=2), dl.crossed(attr.price, above=100, clear=95)):
        s = engine.subscribe(
            dl.select(attr.price, source="stock", where=(attr.symbol == "IBM") & change)
        )
        assert prices(s) == [("snapshot", 100)]
        assert dl.parse(str(s.statement)) == s.statement
