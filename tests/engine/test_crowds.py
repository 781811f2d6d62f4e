"""Is a member of a crowd told what a subscription of its own would be told?

Random programs do to a crowd what they do to subscriptions one by one, in an engine of their own.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import driftline as dl
from driftline import Engine, Event, ManualClock
from driftline import crowd as crowd_module
from driftline.crowd_told import ToldMany
from driftline.crowding import Crowding
from driftline.errors import (
    InvalidValue,
    NotSupported,
    ParameterError,
    SubscriptionEnded,
    TableError,
)

TEXT = "SELECT price FROM stock WHERE symbol = 'IBM' AND moved(price, by => :r)"


def engine_with(ticks: dict[str, str] | None = None, label_bits: int = 40) -> Engine:
    engine = Engine(clock=ManualClock())
    engine.table("stock", key="symbol", ticks=ticks)
    engine._broker.tables.home.label_bits = label_bits
    return engine


class Twice:
    """A crowd, and subscriptions by its numbers in another engine."""

    def __init__(self, text: str, seed: int, ticks: bool, label_bits: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.text = text
        named = {"price": "0.5"} if ticks else None
        self.many, self.each = engine_with(named, label_bits), engine_with(named, label_bits)
        self.crowd = self.many.crowd(text)
        self.handles: dict[int, dl.Handle] = {}
        self.price = 100.0

    def radii(self, count: int) -> np.ndarray:
        return self.draw.choice([1.5, 2.0, 2.0, 2.0, 3.0, 7.5, 20.0], count)

    def some(self) -> np.ndarray:
        held = np.array([*self.crowd], np.int64)
        return self.draw.choice(held, self.draw.integers(0, len(held) + 1), replace=False)

    def events(self, count: int) -> list[Event]:
        found = []
        for _ in range(count):
            self.price = max(1.0, self.price + self.draw.integers(-6, 7) / 2)
            row: dict[str, object] = {"symbol": "IBM", "price": self.price, "sector": "tech"}
            chance = self.draw.random()
            if chance < 0.1:
                row["symbol"] = "DIS"
            elif chance < 0.2:
                row["sector"] = "food"
            elif chance < 0.25:
                del row["price"]
            elif chance < 0.3:
                row["price"] = int(self.price)
            found.append(Event("stock", row))
        return found

    def publish(self) -> None:
        for event in self.events(5):
            assert self.many.publish(event) == self.each.publish(event)

    def publish_many(self) -> None:
        events = self.events(self.draw.integers(0, 40))
        names = ("symbol", "price", "sector")
        columns = {name: [one.attributes.get(name) for one in events] for name in names}
        told = self.many.publish_many("stock", columns)
        assert told == self.each.publish_many("stock", pa.RecordBatch.from_pydict(columns))

    def delete(self) -> None:
        assert self.many.delete("stock", "IBM") == self.each.delete("stock", "IBM")

    def add(self) -> None:
        self.add_some(self.draw.integers(0, 30))

    def add_some(self, count: int) -> None:
        radii = self.radii(count)
        for number, radius in zip(self.crowd.add(r=radii).tolist(), radii.tolist(), strict=True):
            self.handles[number] = self.each.subscribe(self.text, {"r": radius})

    def remove(self) -> None:
        gone = self.some()
        self.crowd.remove(gone)
        for number in gone.tolist():
            self.handles.pop(number).cancel()

    def set(self) -> None:
        moved = self.some()
        radii = self.radii(len(moved))
        self.crowd.set(moved, r=radii)
        for number, radius in zip(moved.tolist(), radii.tolist(), strict=True):
            self.handles[number].set(r=radius)

    def compare(self) -> None:
        told: dict[int, list[tuple[object, ...]]] = {number: [] for number in self.handles}
        for one in self.crowd.pending():
            assert len(set(one.members.tolist())) == len(one.members) > 0
            for number in one.members.tolist():
                if number in told:
                    told[number].append((one.kind, one.values, one.time, one.event))
        for number, handle in self.handles.items():
            each = [(n.kind, n.values, n.time, n.event) for n in handle.pending()]
            assert told[number] == each, number


STEPS = ["publish"] * 3 + ["publish_many"] * 4 + ["add"] * 2 + ["remove", "set", "set", "delete"]


def run(text: str, seed: int, steps: int = 60, ticks: bool = False, label_bits: int = 40) -> Twice:
    twice = Twice(text, seed, ticks, label_bits)
    for _ in range(steps):
        getattr(twice, twice.draw.choice(STEPS))()
        twice.many._check()
        twice.compare()
        assert len(twice.crowd) == len(twice.handles)
    return twice


@pytest.mark.parametrize("rest", ["", " AND sector = 'tech'"])
@pytest.mark.parametrize(
    "moved",
    [
        "by => :r",
        "percent => :r",
        "factor => :r",
        "by => :r, strict => TRUE",
        "percent => :r, strict => TRUE",
        "by => :r, shared => TRUE",
    ],
)
def test_members_are_told_what_subscriptions_are(moved: str, rest: str, seed: int) -> None:
    run(
        f"SELECT price, sector FROM stock WHERE symbol = 'IBM'{rest} AND moved(price, {moved})",
        seed,
    )


@pytest.mark.parametrize("strict", ["", ", strict => TRUE"])
def test_in_ticks_too(strict: str, seed: int) -> None:
    text = f"SELECT * FROM stock WHERE symbol = 'IBM' AND moved(price, by => :r{strict})"
    run(text, seed, ticks=True)


@pytest.mark.parametrize("label_bits", [6, 24])
def test_members_are_found_wherever_labels_are_shifted_to(label_bits: int, seed: int) -> None:
    """Each comes between the two that came last: so there is no label left between them soon."""
    twice = Twice(TEXT, seed, False, label_bits)
    members = twice.crowd._group.members
    take, shifted = members.take_shifted, []
    members.take_shifted = lambda: shifted.append(take()) or shifted[-1]  # type: ignore[method-assign]
    twice.radii = lambda count: np.full(count, 100.0)  # type: ignore[method-assign]
    low, high = 60.0, 140.0
    for at in range(120):
        twice.price = (low + high) / 2
        low, high = (twice.price, high) if at % 2 else (low, twice.price)
        row = Event("stock", {"symbol": "IBM", "price": twice.price})
        assert twice.many.publish(row) == twice.each.publish(row)
        twice.add_some(1)
    assert sum(map(len, shifted)) > 0
    for _ in range(40):
        getattr(twice, twice.draw.choice(["publish", "publish_many", "add", "remove", "set"]))()
        twice.price += twice.draw.integers(-60, 61)
        twice.many._check()
        twice.compare()


def test_many_events_at_once_are_the_same_as_one_after_the_other(seed: int) -> None:
    """Whatever else there is; and the rows of the table are the same."""
    twice = Twice(TEXT, seed, False, 40)
    twice.add()
    for _ in range(20):
        events = twice.events(30)
        names = ("symbol", "price", "sector")
        columns = {name: [one.attributes.get(name) for one in events] for name in names}
        rows = pa.RecordBatch.from_pydict(columns).to_pylist()
        each = sum(twice.each.publish(Event("stock", row)) for row in rows)
        assert twice.many.publish_many("stock", columns) == each
        assert twice.many.rows("stock") == twice.each.rows("stock")
        twice.compare()


def test_however_few_events_are_told_together(monkeypatch, seed: int) -> None:
    monkeypatch.setattr(crowd_module, "TOGETHER", 3)
    monkeypatch.setattr(crowd_module, "TOLD_TOGETHER", 40)
    run(TEXT, seed)


def taken_at_once(monkeypatch) -> list[int]:
    """How many events each call of the short way is given."""
    taken: list[int] = []
    take = Crowding.take_many

    def counted(self, type, rows, items):
        taken.append(len(rows))
        return take(self, type, rows, items)

    monkeypatch.setattr(Crowding, "take_many", counted)
    return taken


@pytest.mark.parametrize(
    "wanted",
    [
        "SELECT * FROM stock",
        "SELECT * FROM stock WHERE price > 3 THEN SELECT * FROM stock WHERE price < 2",
        "SELECT MAX(price) FROM stock WHERE symbol = 'IBM'",
        "SELECT * FROM stock WHERE symbol = 'IBM' AND moved(price, by => 2)",
        "SELECT * FROM stock WHERE crossed(price, above => 10, clear => 9)",
        "price > 1",
    ],
)
def test_whoever_else_is_concerned_is_told_too(wanted: str, monkeypatch) -> None:
    taken = taken_at_once(monkeypatch)
    engine = Engine()  # Of two events at one instant none is the later.
    engine.table("stock", key="symbol")
    crowd = engine.crowd(TEXT, {"r": [1.0, 2.0]})
    other = engine.subscribe(dl.attr.price > 1 if wanted == "price > 1" else wanted)
    columns = {"symbol": ["IBM"] * 3, "price": [9.0, 1.0, 11.0]}
    engine.publish_many("stock", columns)
    assert other.pending()
    assert len(crowd.pending()) == 3
    assert not taken
    other.cancel()
    engine.publish_many("other", {"a": [1]})
    assert not taken


def test_the_short_way_is_taken_where_crowds_are_alone(monkeypatch) -> None:
    taken = taken_at_once(monkeypatch)
    engine = engine_with()
    engine.table("quote", key="symbol")
    engine.subscribe("SELECT * FROM quote")
    engine.crowd(TEXT, {"r": [1.0, 2.0]})
    assert engine.publish_many("stock", {"symbol": ["IBM", "DIS"], "price": [1, 2]}) == 2
    assert taken == [2]


def test_a_view_that_comes_again_has_not_missed_anything() -> None:
    """What makes its messages is still there, and knows rows by their changes."""
    engine = engine_with()
    engine.crowd(TEXT, {"r": [1.0]})
    wanted = "SELECT MIN(price) FROM stock WHERE price > 0"
    engine.subscribe(wanted).cancel()
    engine.publish_many("stock", {"symbol": ["IBM", "DIS"], "price": [9.0, 7.0]})
    assert engine.subscribe(wanted).pending()[0].values == {"MIN(price)": 7.0}


def test_who_shares_what_others_were_told_is_told_its_own_when_it_was_late() -> None:
    """Nothing was there to share when it came; home and follower must agree on what it was told."""
    engine = engine_with()
    text = (
        "SELECT price FROM stock WHERE symbol = 'IBM' AND sector = 'tech' "
        "AND moved(price, by => 5, shared => TRUE)"
    )
    rows = [(100.0, "tech"), (103.0, "tech"), (103.0, "food")]
    first = engine.subscribe(text)
    for price, sector in rows:
        engine.publish(Event("stock", {"symbol": "IBM", "price": price, "sector": sector}))
    late = engine.subscribe(text)
    for price in (103.5, 105.0, 108.5):
        engine.publish(Event("stock", {"symbol": "IBM", "price": price, "sector": "tech"}))
    assert [one.values["price"] for one in first.pending()] == [100.0, 105.0]
    assert [one.values["price"] for one in late.pending()] == [103.5, 108.5]


def test_a_crowd_is_wanted_however_long_nobody_is_told() -> None:
    engine = engine_with()
    crowd = engine.crowd(TEXT, {"r": [50.0]})
    for price in range(3_000):
        engine.publish(Event("stock", {"symbol": "IBM", "price": 100 + price % 2}))
    assert engine.publish(Event("stock", {"symbol": "IBM", "price": 500})) == 1
    assert [one.values for one in crowd.pending()] == [{"price": 100}, {"price": 500}]


def test_crowds_of_many_rows_are_told_of_their_own() -> None:
    engine = engine_with()
    texts = [TEXT.replace("IBM", name) for name in ("IBM", "DIS")]
    ibm, dis = (engine.crowd(text, {"r": [1.0, 2.0]}) for text in texts)
    symbols = ["IBM", "DIS", "IBM", "DIS", "XYZ"]
    told = engine.publish_many("stock", {"symbol": symbols, "price": [1.0, 7.0, 2.0, 9.0, 1.0]})
    assert told == 2 + 2 + 1 + 2
    assert [one.members.tolist() for one in ibm.pending()] == [[0, 1], [0]]
    assert [one.values["price"] for one in dis.pending()] == [7.0, 9.0]


def test_a_crowd_that_ended_is_told_nothing_and_forgotten() -> None:
    engine = engine_with()
    crowd = engine.crowd(TEXT, {"r": [1.0]})
    engine.publish_many("stock", {"symbol": ["IBM"], "price": [1]})
    crowd.cancel()
    crowd.cancel()
    assert engine.publish_many("stock", {"symbol": ["IBM"], "price": [9]}) == 0
    assert len(crowd.pending()) == 1
    with pytest.raises(SubscriptionEnded):
        crowd.add(r=[1.0])
    engine._check()


def test_who_would_want_what_is_advertised() -> None:
    engine = engine_with()
    says = "SELECT * FROM stock WHERE symbol IS NOT NULL AND price IS NOT NULL"
    assert not engine.interested(says)
    crowd = engine.crowd(TEXT)
    assert engine.interested(says)
    crowd.cancel()
    assert not engine.interested(says)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT * FROM stock WHERE price > :r", "moved"),
        ("SELECT * FROM stock WHERE moved(price, by => :r)", "one row"),
        ("SELECT * FROM stock WHERE symbol = :s AND moved(price, by => :r)", "one parameter"),
        ("SELECT price * :r FROM stock WHERE symbol = 'A' AND moved(price, by => :r)", "one para"),
        ("SELECT * FROM stock WHERE symbol = 'A' AND moved(price, by => 2)", "by => :r"),
        ("SELECT * FROM stock WHERE symbol = 'A' AND moved(price, by => :r + 1)", "by => :r"),
        (
            "SELECT * FROM stock WHERE symbol = 'A' AND moved(price, may => 1, must => :r)",
            "one rad",
        ),
        (
            "SELECT * FROM stock WHERE symbol = 'A' AND a > env('x') AND moved(price, by => :r)",
            "var",
        ),
        ("SELECT * FROM stock WHERE symbol = 'A' AND crossed(price, above => :r)", "one radius"),
        ("SELECT MAX(price) FROM stock", "moved"),
    ],
)
def test_what_is_no_crowd_is_refused(text: str, problem: str) -> None:
    engine = engine_with()
    with pytest.raises(NotSupported, match=problem):
        engine.crowd(text)
    engine._check()


def test_a_crowd_needs_a_table() -> None:
    with pytest.raises(TableError, match="not declared"):
        Engine().crowd(TEXT)


BAD = [
    ([1.0, float("nan")], "finite"),
    ([1.0, float("inf")], "finite"),
    ([1.0, 0.0], "above 0"),
    ([-1.0], "above 0"),
    (["1"], "numbers"),
    ([True], "numbers"),
    (2.0, "column"),
    ([[1.0]], "column"),
    ([2**60], "53 bits"),
]


@pytest.mark.parametrize(("radii", "problem"), BAD)
def test_bad_radii_change_nothing(radii: object, problem: str) -> None:
    engine = engine_with()
    crowd = engine.crowd(TEXT, {"r": [1.0, 2.0]})
    engine.publish_many("stock", {"symbol": ["IBM"], "price": [10]})
    crowd.pending()
    for act in (lambda: crowd.add(r=radii), lambda: crowd.set([0, 1], r=radii)):
        with pytest.raises(InvalidValue, match=problem):
            act()
    with pytest.raises(InvalidValue, match=problem):
        engine.crowd(TEXT, {"r": radii})
    assert not crowd.pending()
    assert len(crowd) == 2
    assert len(engine._crowding._crowds["stock"]) == 1
    engine._check()


@pytest.mark.parametrize("numbers", [[2], [-1], [0, 0], ["0"], [0.0], 0, [2**40]])
def test_unknown_numbers_change_nothing(numbers: object) -> None:
    engine = engine_with()
    crowd = engine.crowd(TEXT, {"r": [1.0, 2.0]})
    with pytest.raises(InvalidValue):
        crowd.remove(numbers)
    with pytest.raises(InvalidValue):
        crowd.set(numbers, r=[1.0, 2.0])
    assert len(crowd) == 2
    engine._check()


def test_radii_are_given_by_their_name_one_for_each() -> None:
    engine = engine_with()
    crowd = engine.crowd(TEXT, {"r": [1.0, 2.0]})
    with pytest.raises(ParameterError):
        crowd.add(s=[1.0])
    with pytest.raises(ParameterError):
        crowd.add()
    with pytest.raises(InvalidValue, match="one for each of 2"):
        crowd.set([0, 1], r=[1.0])
    with pytest.raises(ParameterError):
        engine.crowd(TEXT, {"q": [1.0]})
    assert crowd.add(r=[]).tolist() == []
    crowd.remove([])
    assert crowd.set([], r=[]) == 0


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"symbol": ["IBM", "IBM"], "price": [1.0]}, "length"),
        ({"symbol": ["IBM"], "price": [[1.0]]}, "price"),
        ({"symbol": ["IBM"], "ce_type": ["x"]}, "ce_type"),
        ({"symbol": ["IBM"], "price": np.zeros((1, 1))}, "dimension"),
        ([1, 2], "columns by name"),
        ({"symbol": ["IBM", None], "price": [1.0, 2.0]}, "key"),
        ({"symbol": ["IBM", "IBM"], "price": [1.0, float("nan")]}, "finite"),
        ({"": ["IBM"]}, "row 0"),
    ],
)
def test_rows_that_cannot_be_change_nothing(columns: object, problem: str) -> None:
    engine = engine_with()
    crowd = engine.crowd(TEXT, {"r": [1.0]})
    with pytest.raises((InvalidValue, TableError), match=problem):
        engine.publish_many("stock", columns)
    assert engine.rows("stock") == []
    assert crowd.pending() == []


@pytest.mark.parametrize("type", ["", "$rows:stock", 3])
def test_a_type_that_is_none_is_refused(type: object) -> None:
    with pytest.raises(InvalidValue, match="type"):
        engine_with().publish_many(type, {"a": [1]})  # type: ignore[arg-type]


def test_what_is_not_advertised_is_not_published() -> None:
    engine = Engine(clock=ManualClock(), advertised=True)
    engine.table("stock", key="symbol")
    engine.crowd(TEXT, {"r": [1.0]})
    columns = {"symbol": ["IBM", "DIS"], "price": [1.0, 2.0]}
    engine.advertise("SELECT * FROM stock WHERE symbol = 'IBM' AND price IS NOT NULL", party="p")
    with pytest.raises(dl.NotAdvertised):
        engine.publish_many("stock", columns, party="p")
    assert engine.rows("stock") == []


# Columns.


def published(told: ToldMany) -> list[tuple[object, ...]]:
    """What a batch told, as (kind, row of the batch, members)."""
    ends = zip(told.offsets.tolist(), told.offsets[1:].tolist(), strict=False)
    runs = [sorted(told.members[start:end].tolist()) for start, end in ends]
    return [(told.kind, *one) for one in zip(told.places.tolist(), runs, strict=True)]


def test_what_a_batch_told_is_columns_for_who_asks_for_them() -> None:
    engine = engine_with()
    crowd = engine.crowd(TEXT, {"r": [1.0, 2.0, 9.0]})
    symbols = ["DIS", "IBM", "IBM", "IBM", "DIS", "IBM"]
    engine.publish_many("stock", {"symbol": symbols, "price": [5.0, 10, 10.5, 12, 9, 1]})
    crowd.set([2], r=[0.5])
    engine.publish_many("stock", {"symbol": ["DIS", "IBM"], "price": [7.0, 1.5]})
    first, change, last = crowd.pending_columns()
    assert isinstance(first, ToldMany)
    assert isinstance(change, ToldMany)
    assert isinstance(last, ToldMany)
    assert published(first) == [("snapshot", 1, [0, 1, 2])]
    assert published(change) == [("change", 3, [0, 1]), ("change", 5, [0, 1, 2])]
    assert published(last) == [("change", 1, [2])]
    assert crowd.pending() == []


def test_columns_and_things_one_by_one_are_the_same(seed: int) -> None:
    twice = Twice(TEXT, seed, False, 40)
    other = twice.each.crowd(TEXT)
    twice.crowd.add(r=(radii := twice.radii(50)))
    other.add(r=radii)
    for _ in range(5):
        rows = [dict(one.attributes) for one in twice.events(40)]
        columns = {name: [row.get(name) for row in rows] for name in ("symbol", "price", "sector")}
        for engine in (twice.many, twice.each):
            engine.publish_many("stock", columns)
        found = [one for many in twice.crowd.pending_columns() for one in published(many)]
        each = other.pending()
        assert len(found) > 3
        assert [(kind, members) for kind, _, members in found] == [
            (one.kind, sorted(one.members.tolist())) for one in each
        ]
        prices = [rows[place]["price"] for _, place, _ in found]
        assert prices == [one.values["price"] for one in each]


def test_what_was_told_stays_when_arrays_and_the_environment_are_others() -> None:
    engine = engine_with()
    engine.set_env("v", 2)
    text = TEXT.replace("SELECT price", "SELECT price * env('v') AS twice, price")
    crowd = engine.crowd(text, {"r": [1.0]})
    prices = np.array([1.0, 5.0])
    engine.publish_many("stock", {"symbol": ["IBM", "IBM"], "price": prices})
    prices[:] = 0
    engine.set_env("v", 100)
    assert [one.values for one in crowd.pending()] == [
        {"twice": 2.0, "price": 1.0},
        {"twice": 10.0, "price": 5.0},
    ]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["IBM", "IBM", "DIS"]).dictionary_encode(),
        pa.array(["IBM", "IBM", "DIS"], pa.large_string()),
        np.array(["IBM", "IBM", "DIS"], object),
    ],
)
def test_texts_may_come_in_any_form(column: object) -> None:
    engine = engine_with()
    crowd = engine.crowd(TEXT, {"r": [1.0]})
    assert engine.publish_many("stock", {"symbol": column, "price": [1, 5, 9]}) == 2
    assert [one.values for one in crowd.pending()] == [{"price": 1}, {"price": 5}]
    assert [row.attributes["price"] for row in engine.rows("stock")] == [5, 9]


def test_stamps_of_their_own_are_kept() -> None:
    engine = engine_with()
    crowd = engine.crowd(TEXT, {"r": [1.0]})
    stamps = pa.array([3_000_000, 4_000_000], pa.timestamp("us", "UTC"))
    columns = {"symbol": ["IBM", "IBM"], "price": [1, 5], "ce_entered": stamps}
    engine.publish_many("stock", columns)
    assert [one.time for one in crowd.pending()] == [3_000_000, 4_000_000]


@pytest.mark.parametrize("price", [float("inf"), 1.25, None])
def test_the_first_row_that_a_table_does_not_take_is_named(price: float | None) -> None:
    engine = engine_with({"price": "0.5"})
    crowd = engine.crowd(TEXT, {"r": [1.0]})
    columns = {"symbol": ["IBM", None, "IBM"], "price": [1.0, price, 7.75]}
    with pytest.raises(TableError) as one_by_one:
        engine.publish(Event("stock", {} if price is None else {"price": price}))
    with pytest.raises(TableError) as together:
        engine.publish_many("stock", columns)
    assert str(together.value) == str(one_by_one.value)
    assert not crowd.pending()
    assert not engine.rows("stock")


def test_keys_that_are_numbers_name_the_same_row_however_they_are_written() -> None:
    engine = Engine(clock=ManualClock())
    engine.table("stock", key="n")
    crowd = engine.crowd("SELECT y FROM stock WHERE n = 0 AND moved(y, by => :r)", {"r": [1.0]})
    assert engine.publish_many("stock", {"n": [0.0, -0.0, 1.0], "y": [1, 5, 9]}) == 2
    assert engine.publish_many("stock", {"n": [0, 1], "y": [7, 9]}) == 1
    assert [row.attributes["y"] for row in engine.rows("stock")] == [7, 9]
    assert len(crowd.pending()) == 3
