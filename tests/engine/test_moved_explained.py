"""Why is one told that a value moved or crossed, or not? What was last told, and the rest."""

import pytest

import driftline as dl

BY_2 = "SELECT price FROM stock WHERE symbol = 'IBM' AND moved(price, by => 2)"
ALL = "SELECT symbol, price FROM stock WHERE moved(price, by => 2)"
TECH = "SELECT symbol, price FROM stock WHERE sector = 'tech' AND moved(price, by => 2)"


@pytest.fixture
def engine():
    engine = dl.Engine(clock=dl.ManualClock())
    engine.table("stock", key="symbol", ticks={"price": "0.01"})
    yield engine
    engine._check()


def put(engine, price, symbol="IBM", **more):
    return engine.publish(dl.Event("stock", {"symbol": symbol, "price": price, **more}))


def where(change):
    return f"SELECT price FROM stock WHERE symbol = 'IBM' AND {change}"


def prices(handle):
    return [(n.kind, n.values.get("price")) for n in handle.pending()]


def explained(handle, price, symbol="IBM", **more):
    return handle.explain(dl.Event("stock", {"symbol": symbol, "price": price, **more}))


def test_explain_says_what_was_last_told_and_whether_it_would_be_now(engine):
    put(engine, 19.99)
    s = engine.subscribe(where("moved(price, by => :r)"), {"r": 2})
    (near,) = explained(s, 20.99).deciding()
    assert (near.text, near.outcome) == ("moved(price, by => :r)", False)
    assert near.seen == {"price": 20.99, ":r": 2, "last told": 19.99}
    assert explained(s, 21.99).outcome is True
    assert "last told is 19.99" in str(explained(s, 21.99))


def test_explain_changes_nothing(engine):
    put(engine, 100)
    s = engine.subscribe(BY_2)
    assert explained(s, 150).outcome is True
    assert explained(s, 7, "DIS").outcome is False
    put(engine, 101)
    put(engine, 102)
    assert prices(s) == [("snapshot", 100), ("change", 102)]


def test_explain_goes_through_the_rest_first(engine):
    put(engine, 100, sector="tech")
    s = engine.subscribe(TECH)
    found = explained(s, 200, sector="food")
    assert found.outcome is False
    assert [part.text for part in found.deciding()] == ["sector = 'tech'"]
    assert found.parts[1].outcome is True
    assert not found.parts[1].decided


@pytest.mark.parametrize(
    ("change", "price", "outcome", "reason"),
    [
        ("moved(price, by => 2)", None, None, "no value that could have moved"),
        ("moved(price, by => 2)", 2**60, None, "at most 2^52 ticks"),
        ("moved(price, may => 1, must => 5)", 103, None, "somebody else must be"),
        ("moved(price, may => 1, must => 5)", 105, True, ""),
        ("crossed(price, above => 100)", 101, False, "had not cleared"),
        ("crossed(price, above => 100)", "text", None, "no value that could have crossed"),
        ("crossed(price, above => 200)", 150, False, ""),
        ("crossed(price, above => 200)", 200, True, ""),
    ],
)
def test_explain_says_why(engine, change, price, outcome, reason):
    put(engine, 100)
    found = explained(engine.subscribe(where(change)), price)
    assert found.outcome is outcome
    assert reason in (found.reason or "")


def test_explain_of_a_row_that_nothing_was_told_of(engine):
    put(engine, 100)
    (found,) = explained(engine.subscribe(ALL), 7, "DIS").deciding()
    assert (found.outcome, found.reason) == (True, "nothing was told yet")


def test_explain_without_from_knows_the_one_state(engine):
    s = engine.subscribe("SELECT price WHERE moved(price, by => 2)")
    put(engine, 100)
    assert explained(s, 101, "DIS").outcome is False


def test_explain_of_what_was_cancelled_knows_of_nothing_told(engine):
    put(engine, 100)
    s = engine.subscribe(BY_2)
    s.cancel()
    assert explained(s, 101).outcome is True
