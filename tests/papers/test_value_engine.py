"""Examples 1 and 2 and Figure 1 of value-based notification conditions, through the engine."""

from __future__ import annotations

import pytest

import driftline as dl

TEXT = "SELECT price FROM stock WHERE symbol = 'IBM' AND moved(price, by => :r)"


@pytest.fixture(params=[64, 1], ids=["scan", "structure"])
def engine(request: pytest.FixtureRequest) -> dl.Engine:
    engine = dl.Engine(clock=dl.ManualClock())
    engine._broker.tables.home.many = request.param
    engine.table("stock", key="symbol")
    return engine


def put(engine: dl.Engine, price: float) -> None:
    engine.publish(dl.Event("stock", {"symbol": "IBM", "price": price}))
    engine._check()


def created(engine: dl.Engine, radius: float, price: float) -> dl.Handle:
    """A subscription that is created when the price is this."""
    put(engine, price)
    made = engine.subscribe(TEXT, {"r": radius})
    assert told(made) == [price]
    return made


def told(handle: dl.Handle) -> list[object]:
    return [one.values["price"] for one in handle.pending()]


def test_example_1_there_is_no_order_of_radii(engine: dl.Engine) -> None:
    """A move from 100 to 102 concerns radius 4, and neither 2 nor 6 (Figure 1, left)."""
    four, six, two = (created(engine, *one) for one in ((4, 98), (6, 99), (2, 100.5)))
    put(engine, 100)
    assert told(two) == told(four) == told(six) == []
    put(engine, 102)
    assert (told(two), told(four), told(six)) == ([], [102], [])


def test_example_2_those_with_one_radius_are_told_of_different_values(engine: dl.Engine) -> None:
    """Created at 101, 103 and 100, a move from 100 to 98 concerns the second (Figure 1, right)."""
    three = [created(engine, 4, price) for price in (101, 103, 100)]
    put(engine, 98)
    assert [told(one) for one in three] == [[], [98], []]


def test_example_2_round_robin(engine: dl.Engine) -> None:
    """A value between the two largest left ends tells one, and each in turn; none hears what
    another hears.
    """
    centres = [101.0, 103.0, 100.0]
    three = [created(engine, 4, price) for price in centres]
    turns = []
    for _ in range(12):
        _, second, first = sorted(centre - 4 for centre in centres)
        put(engine, (first + second) / 2)
        (who,) = (at for at, one in enumerate(three) if told(one))
        centres[who] = (first + second) / 2
        turns.append(who)
    assert turns == [1, 0, 2] * 4
