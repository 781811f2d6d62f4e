"""The class style, pinned variables, and conditions that come and go [PARAM §4.2, §9.2, §10]."""

from __future__ import annotations

import pytest

import driftline as dl
from driftline.errors import InvalidValue, NotSupported, ParameterError, SubscriptionEnded


@pytest.fixture
def engine() -> dl.Engine:
    return dl.Engine(clock=dl.ManualClock())


def quote(price: float, **rest: object) -> dl.Event:
    return dl.Event("quote", {"firm": "IBM", "price": price, **rest})


class Monitor(dl.Subscriber):
    limit = dl.Parameter(10.0)
    firm = dl.Parameter("IBM")

    def __init__(self, engine: dl.Engine) -> None:
        self.told: list[object] = []
        super().__init__(engine)

    @dl.when("SELECT * FROM quote WHERE firm = :firm AND price < :limit")
    def cheap(self, price: float) -> None:
        self.told.append(price)
        self.limit = price

    @dl.when("SELECT price AS p FROM quote WHERE price > 100")
    def dear(self, p: float, missing: object, other: int = 7, **rest: object) -> None:
        self.told.append((p, missing, other, rest))


def test_an_assignment_moves_what_follows_the_field(engine) -> None:
    monitor = Monitor(engine)
    for price in (9, 9.5, 8, 8, 7):
        engine.publish(quote(price))
    assert monitor.told == [9, 8, 7]
    assert monitor.limit == 7
    monitor.firm = "DIS"
    engine.publish(quote(1))
    assert monitor.told == [9, 8, 7]


def test_arguments_are_columns_by_name(engine) -> None:
    monitor = Monitor(engine)
    engine.publish(quote(200, volume=5))
    assert monitor.told == [(200, None, 7, {})]


def test_what_was_matched_before_an_assignment_is_looked_at_again(engine) -> None:
    """Two handlers are due when the first assigns: the second is not told what no longer holds."""

    class Pair(dl.Subscriber):
        limit = dl.Parameter(10)

        def __init__(self, engine: dl.Engine) -> None:
            self.told: list[str] = []
            super().__init__(engine)

        @dl.when("SELECT * FROM quote WHERE price < :limit")
        def first(self, price: int) -> None:
            self.told.append("first")
            self.limit = price

        @dl.when("SELECT * FROM quote WHERE price < :limit AND price > 0")
        def second(self, price: int) -> None:
            self.told.append("second")

    pair = Pair(engine)
    engine.publish(quote(5))
    assert pair.told == ["first"]


def test_an_assignment_that_is_refused_moves_nothing(engine) -> None:
    monitor = Monitor(engine)
    for bad in ("ten", float("nan"), [1]):
        with pytest.raises((ParameterError, InvalidValue)):
            monitor.limit = bad
    assert monitor.limit == 10.0
    engine.publish(quote(9))
    assert monitor.told == [9]


def test_a_field_that_is_not_declared_is_missed_when_the_class_is_made() -> None:
    with pytest.raises(ParameterError, match="limit"):

        class Bad(dl.Subscriber):
            @dl.when("SELECT * FROM quote WHERE price < :limit")
            def cheap(self, price: float) -> None: ...


def test_two_of_a_class_do_not_disturb_each_other(engine) -> None:
    one, two = Monitor(engine), Monitor(engine)
    one.limit = 5
    engine.publish(quote(7))
    assert (one.told, two.told) == ([], [7])
    with one:
        pass
    engine.publish(quote(3))
    assert (one.told, two.told) == ([], [7, 3])


def test_a_local_field_is_followed_when_it_is_released(engine) -> None:
    class Near(dl.Subscriber):
        x = dl.Parameter(0.0, local=True)
        width = dl.Parameter(1.0)

        def __init__(self, engine: dl.Engine) -> None:
            self.told: list[float] = []
            super().__init__(engine)

        @dl.when("SELECT * FROM at WHERE x >= :x - :width AND x <= :x + :width")
        def here(self, x: float) -> None:
            self.told.append(x)

    near = Near(engine)
    near.x = 10.0
    engine.publish(dl.Event("at", {"x": 10.0}))
    assert (near.told, near.x, near.last("x")) == ([], 10.0, 0.0)
    near.width = 2.0  # Moves with the value last released.
    engine.publish(dl.Event("at", {"x": 1.5}))
    near.release("x")
    engine.publish(dl.Event("at", {"x": 10.0}))
    assert (near.told, near.last("x")) == ([1.5, 10.0], 10.0)
    with pytest.raises(InvalidValue, match="one of width, x"):
        near.release("y")


def test_conditions_come_and_go_without_a_gap(engine) -> None:
    handle = engine.subscribe("SELECT * FROM quote WHERE price < :p", {"p": 10})
    assert handle.add("volume > :v", v=100) == 1
    engine.publish(quote(5, volume=50))
    engine.publish(quote(5, volume=150))
    assert handle.replace("price < :p", "price < 2 * :p") == 2
    engine.publish(quote(15, volume=150))
    assert handle.remove("volume > :v") == 3
    engine.publish(quote(16))
    told = [(n.values["price"], n.epoch) for n in handle.pending()]
    assert told == [(5, 1), (15, 2), (16, 3)]
    assert (str(handle.statement), handle.params) == (
        "SELECT * FROM quote WHERE price < 2 * :p",
        {"p": 10},
    )
    engine._check()


def test_a_condition_that_is_not_there_is_not_removed(engine) -> None:
    handle = engine.subscribe("SELECT * FROM quote WHERE price < 10")
    for problem, change in (
        (InvalidValue, lambda: handle.remove("price < 11")),
        (ParameterError, lambda: handle.add("volume > :v")),
        (ParameterError, lambda: handle.add("volume > 1", v=1)),
    ):
        with pytest.raises(problem):
            change()
    assert (str(handle.statement), handle.epoch) == ("SELECT * FROM quote WHERE price < 10", 0)
    handle.remove("price < 10")
    assert str(handle.statement) == "SELECT * FROM quote"
    handle.cancel()
    with pytest.raises(SubscriptionEnded):
        handle.add("price < 3")


def test_patterns_and_live_sets_keep_their_conditions(engine) -> None:
    pattern = engine.subscribe("SELECT * FROM a THEN SELECT * FROM b")
    with pytest.raises(NotSupported):
        pattern.add("x > 1")
    engine.table("t", key="k")
    rows = engine.subscribe("SELECT * FROM t WHERE x > 1", rows=True)
    with pytest.raises(NotSupported, match="live set"):
        rows.add("x < 5")
    assert rows.epoch == 0
