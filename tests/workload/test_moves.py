"""What needs memory, and limits that move, fit the prices and the subscriptions they are for."""

from __future__ import annotations

from driftline.model.table import TableDeclaration
from driftline.recorded.book import Book
from driftline.recorded.changes import Set, Subscribe, change_from
from driftline.recorded.places import Kept, Places
from driftline.workload.moves import moves, remembered
from driftline.workload.prices import quotes
from driftline.workload.subscriptions import subscriptions


def test_a_seed_gives_the_same_always():
    events = quotes()
    records = subscriptions(events, 300)
    assert remembered(20, 5) == remembered(20, 5) != remembered(20, 6)
    assert moves(records, events, 9, 5) == moves(records, events, 9, 5)
    assert moves(records, events, 9, 5) != moves(records, events, 9, 6)


def test_a_pipeline_honours_all_of_them():
    events = quotes()
    records = subscriptions(events, 1000)
    book = Book(Places(2, {"quote": Kept(TableDeclaration.of("quote", "symbol"))}))
    asked = [Subscribe(one.id, one.standing.statement, one.standing.params) for one in records]
    rows = [*remembered(40), *moves(records, events[:2000], 12)]
    changes = [*asked, *(change_from(row, "?") for row in rows)]
    assert book.write(0, 0, changes).refused == []
    assert len(book.remembered) == 40
    moved = [change for change in changes if isinstance(change, Set)]
    assert len(moved) == len({change.id for change in moved}) == 12
    assert all(book.filters[change.id].epoch == 1 for change in moved)


def test_a_limit_is_set_beside_the_last_price_of_its_own_stock():
    events = quotes()
    last = {event.attributes["symbol"]: event.attributes["price"] for event in events}
    records = {one.id: one for one in subscriptions(events, 2000)}
    rows = moves(records.values(), events, 50)
    assert len(rows) == 50
    for row in rows:
        text = str(records[row["id"]].standing.statement)
        (price,) = [price for symbol, price in last.items() if f"'{symbol}'" in text]
        ratio = row["params"]["limit"] / price
        assert 0.74 < ratio < 0.96 if "price <" in text else 1.04 < ratio < 1.26
