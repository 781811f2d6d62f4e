"""Do the events of an item count in their order, whatever the order they come in?"""

from __future__ import annotations

import math
import random

import pytest

from driftline.errors import InvalidValue
from driftline.model.event import Event
from driftline.model.table import TableDeclaration
from driftline.recorded.config import OrderConfig
from driftline.recorded.order import Late, Ordering

TABLES = {"quote": TableDeclaration.of("quote", "symbol")}

LATE = "late"


def event(symbol: str, position: float | None, type: str = "quote") -> Event:
    """One that has its position as its time and as its count."""
    counted = {} if position is None else {"n": position}
    seconds = int(position or 0) % 10_000
    return Event(type, {"symbol": symbol, **counted}, time=seconds * 1_000_000, entered=0)


def told(order: OrderConfig, events: list[Event]) -> list[list[int] | str]:
    """For each event the numbers of those that count when it has come, or that it is late."""
    ordering = Ordering(order, TABLES)
    found: list[list[int] | str] = []
    for seq, one in enumerate(events):
        try:
            found.append([number for number, _ in ordering.take(seq, one)])
        except Late:
            found.append(LATE)
        ordering._check()
    return found


def reference(order: OrderConfig, events: list[Event]) -> list[list[int] | str]:
    """The same from the definition: everything that has come is gone through again each time."""
    came: dict[object, list[tuple[float, int]]] = {}
    counted: dict[object, list[float]] = {}
    found: list[list[int] | str] = []
    for seq, one in enumerate(events):
        item = (one.type, one.attributes["symbol"] if one.type in TABLES else None)
        position = one.attributes["n"]
        held, done = came.setdefault(item, []), counted.setdefault(item, [])
        behind = any(
            position < other or (position == other and order.by != "time") for other in done
        )
        repeated = order.by != "time" and position in [*done[-1:], *(at for at, _ in held)]
        if order.late == "refuse" and (behind or repeated):
            found.append(LATE)
            continue
        if behind:
            found.append([seq])
            continue
        held.append((position, seq))
        top = max([*done, *(at for at, _ in held)])
        ready = sorted(pair for pair in held if pair[0] + order.lateness <= top)
        came[item] = [pair for pair in held if pair not in ready]
        done += [at for at, _ in ready]
        found.append([number for _, number in ready])
    return found


@pytest.mark.parametrize("late", ["refuse", "accept"])
@pytest.mark.parametrize("by", ["time", "n"])
def test_random_orders_count_as_the_definition_says(seed, by, late):
    source = random.Random(f"{seed} {by} {late}")
    were_late = 0
    for _ in range(300):
        order = OrderConfig(by, source.choice([0, 1, 3, 10]), late)
        spread = source.choice([2, 5, 12])
        events = [
            event(source.choice("ab"), max(at + source.randrange(-spread, spread), 0), type)
            for at in range(25)
            for type in source.choices(("quote", "note"), (4, 1))
        ]
        found = told(order, events)
        assert found == reference(order, events)
        were_late += found.count(LATE)
    assert (were_late > 500) == (late == "refuse")


def test_as_recorded_nothing_waits():
    events = [event("a", at) for at in (3, 1, 2)]
    assert told(OrderConfig(), events) == [[0], [1], [2]]


def test_an_event_waits_until_its_item_is_further_by_the_lateness():
    events = [event("a", 10), event("b", 99), event("a", 9), event("a", 12), event("a", 8)]
    late = OrderConfig("time", lateness=2)
    assert told(late, events) == [[], [], [], [2, 0], LATE]


def test_accepted_late_events_count_at_once():
    events = [event("a", 10), event("a", 12), event("a", 3)]
    assert told(OrderConfig("time", 2, "accept"), events) == [[], [0], [2]]


def test_two_at_one_time_count_both_but_nobody_counts_the_same_twice():
    events = [event("a", at) for at in (5, 5, 9, 9)]
    assert told(OrderConfig("time"), events) == [[0], [1], [2], [3]]
    assert told(OrderConfig("n"), events) == [[0], LATE, [2], LATE]
    assert told(OrderConfig("n", lateness=2), events) == [[], LATE, [0], LATE]
    assert told(OrderConfig("n", 2, "accept"), events) == [[], [], [0, 1], []]


def test_counts_beyond_the_whole_numbers_of_a_float_are_told_apart():
    first = 2**62
    events = [event("a", first + at) for at in (1, 0, 2)]
    assert told(OrderConfig("n"), events) == [[0], LATE, [2]]
    assert told(OrderConfig("n", lateness=2), events) == [[], [], [1]]


@pytest.mark.parametrize("position", [None, "7", True, math.nan, math.inf])
def test_an_event_without_a_position_is_refused_and_holds_nobody_up(position):
    ordering = Ordering(OrderConfig("n"), TABLES)
    wrong = Event("quote", {"symbol": "a"} if position is None else {"symbol": "a", "n": position})
    with pytest.raises(InvalidValue, match=r"^n: wanted a "):
        list(ordering.take(0, wrong))
    assert [number for number, _ in ordering.take(1, event("a", 1))] == [1]
    assert ordering.waiting == 0
