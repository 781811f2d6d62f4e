"""Do conditions on one value say what the structures say, and views what HAVING asks? [VALUE]"""

from __future__ import annotations

import random
from decimal import Decimal
from itertools import pairwise
from math import inf, nan

import numpy as np
import pytest

from driftline.errors import InvalidValue
from driftline.language.sql import parse
from driftline.model.scope import Scope
from driftline.model.subscription import Measure
from driftline.stateful.value_based.combined import Combined
from driftline.stateful.value_based.conditions import (
    Hysteresis,
    Move,
    hysteresis_of,
    move_of,
)
from driftline.stateful.value_based.fold import Crossing, Moving
from driftline.stateful.value_based.may_must import MayMust, told
from driftline.stateful.value_based.reference import Reference
from driftline.stateful.value_based.rule import Rule
from driftline.stateful.value_based.ticks import Ticks


def moved(condition: str, params: dict | None = None, tick: str | None = None) -> Move:
    text = f"SELECT price FROM stock WHERE moved(price, {condition})"
    return move_of(parse(text).change, Scope(params=params), Decimal(tick) if tick else None)


def crossed(condition: str) -> Hysteresis:
    return hysteresis_of(
        parse(f"SELECT price FROM stock WHERE crossed(price, {condition})").change, Scope()
    )


def told_of(fold: Moving | Crossing, *values: object) -> list[object]:
    return [value for value in values if fold.take(value)]


# moved


def test_by_a_distance() -> None:
    assert told_of(Moving(moved("by => 2")), 100, 101, 98.5, 98, 100, 102, 102) == [
        100,
        98,
        100,
        102,
    ]


def test_strictly_by_a_distance() -> None:
    fold = Moving(moved("by => 2, strict => TRUE"))
    assert told_of(fold, 100, 102, 98, 102.5, 100.5, 100) == [100, 102.5, 100]


def test_by_a_percentage_of_the_value_last_told() -> None:
    fold = Moving(moved("percent => 10"))
    assert told_of(fold, 100, 109, 110, 120, 121, 108.9) == [100, 110, 121, 108.9]


def test_of_zero_every_move_is_more_than_any_percentage() -> None:
    fold = Moving(moved("percent => 50"))
    assert told_of(fold, 0, 0, 0.0, -0.0, 1e-300, 1e-300, 0) == [0, 1e-300, 0]


def test_a_percentage_across_zero() -> None:
    fold = Moving(moved("percent => 150"))
    assert told_of(fold, 10, -4, -5, 2, 2.5, -1.25) == [10, -5, 2.5, -1.25]


def test_by_a_factor() -> None:
    fold = Moving(moved("factor => 2"))
    assert told_of(fold, 8, 15, 5, 4, 0, -9, 2, 5) == [8, 4, 2, 5]


def test_what_is_no_value_changes_nothing() -> None:
    fold = Moving(moved("by => 2"))
    assert told_of(fold, None, nan, 5, inf, "9", True, None, 6, 7) == [5, 7]


def _tells(move: Move, told: float, now: float) -> bool:
    fold = Moving(move)
    assert fold.take(told)
    return fold.take(now)


def test_a_radius_that_moves() -> None:
    fold = Moving(moved("by => :r", {"r": 5}))
    assert told_of(fold, 100, 103) == [100]
    fold.move = moved("by => :r", {"r": 3})
    assert fold.take(103)
    fold.move = moved("by => :r", {"r": 1})
    assert told_of(fold, 103, 104) == [104]


@pytest.mark.parametrize("params", [{}, {"r": 0}, {"r": -1}, {"r": nan}, {"r": "2"}, {"r": inf}])
def test_a_radius_that_is_none_is_refused(params: dict) -> None:
    with pytest.raises(InvalidValue):
        moved("by => :r", params)


def test_may_is_at_most_must() -> None:
    assert moved("may => 1.5, must => 2").may == 1.5
    with pytest.raises(InvalidValue, match="may"):
        move_of(
            parse("SELECT p FROM s WHERE moved(p, may => :a, must => 2)").change,
            Scope(params={"a": 3}),
        )


def test_a_fold_says_what_a_structure_says(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(60):
        measure = draw.choice(list(Measure))
        rule = Rule(measure, draw.random() < 0.5)
        radius = 1.25 if measure is Measure.FACTOR else draw.choice((3, 0.7))
        fold, structure = Moving(Move(rule, radius)), Combined(50.0, rule)
        fold.take(50.0)
        structure.insert(0, radius)
        value = 50.0
        for _ in range(50):
            value = max(value + draw.choice((0, 0.7, -0.7, 3, -3, draw.gauss(0, 2))), 1)
            assert fold.take(value) == (structure.tell(value) == [0])


# Ticks


def test_ticks_decide_right_where_floats_do_not() -> None:
    """Of all pairs of prices that are exactly a radius apart, floats miss some."""
    plain, exact = moved("by => 0.2"), moved("by => 0.2", tick="0.1")
    assert not _tells(plain, 0.1, 0.3)
    assert _tells(exact, 0.1, 0.3)
    wrong = 0
    for cents in range(1, 2000):
        before, after = cents / 100, (cents + 7) / 100
        assert _tells(moved("by => 0.07", tick="0.01"), before, after)
        assert not _tells(moved("by => 0.07, strict => TRUE", tick="0.01"), before, after)
        wrong += not _tells(moved("by => 0.07"), before, after)
    assert wrong > 100


def test_a_walk_of_prices_in_floats_and_in_ticks(seed: int) -> None:
    draw, cents = random.Random(seed), Ticks(Decimal("0.01"))
    floats, ticks, exact = Reference(100.0), Reference(10_000), {}
    for id in range(200):
        radius = draw.randrange(1, 500)
        floats.insert(id, radius / 100)
        ticks.insert(id, cents.radius(radius / 100))
        exact[id] = [Decimal(radius) / 100, Decimal(100)]
    price, wrong = 10_000, 0
    for _ in range(300):
        price += draw.randrange(-60, 61)
        due = {id for id, (r, c) in exact.items() if abs(Decimal(price) / 100 - c) >= r}
        for id in due:
            exact[id][1] = Decimal(price) / 100
        assert set(ticks.tell(cents.count(price / 100))) == due
        wrong += len(set(floats.tell(price / 100)) ^ due)
    assert wrong > 0


def test_what_is_no_number_of_ticks_is_refused() -> None:
    cents = Ticks(Decimal("0.01"))
    for value in (0.001, 1.005, nan, inf, "1", True, 1e30):
        with pytest.raises(InvalidValue):
            cents.count(value)
    for radius in (0, -0.01, nan, "1"):
        with pytest.raises(InvalidValue):
            cents.radius(radius)
    assert cents.value(cents.count(12.34)) == Decimal("12.34")


# crossed


def test_above_a_threshold_and_again_after_it_cleared() -> None:
    fold = Crossing(crossed("above => 100, clear => 95"))
    assert told_of(fold, 99, 100, 101, 96, 103, 95, 99, None, 100) == [100, 100]


def test_below_a_threshold() -> None:
    fold = Crossing(crossed("below => 10, clear => 12"))
    assert told_of(fold, 11, 10, 9, 11.9, 8, 12, 11, 10) == [10, 10]


def test_without_another_threshold_it_clears_below_its_own() -> None:
    fold = Crossing(crossed("above => 100"))
    assert told_of(fold, 100, 100, 101, 99.9, 100, 100) == [100, 100]


def test_large_integers_compare_exactly() -> None:
    fold = Crossing(Hysteresis(2**53 + 1, 2**53))
    assert told_of(fold, float(2**53), 2**53, 2**53 + 1) == [2**53 + 1]


def allowed(
    rule: Rule, rows: list[tuple[float, float, float]], value: float
) -> tuple[set[int], set[int], set[int]]:
    """Who must, who may, and whom the stated rule tells: written out, one group at a time."""
    must = {at for at, (_, b, c) in enumerate(rows) if rule.tells(c, b, value)}
    may = {at for at, (a, _, c) in enumerate(rows) if rule.tells(c, a, value)}
    groups: dict[tuple[float, float], set[int]] = {}
    for at, (a, b, _) in enumerate(rows):
        groups.setdefault((a, b), set()).add(at)
    order = [groups[key] for key in sorted(groups)]
    heard = set()
    for at, group in enumerate(order):
        if group & must:
            heard |= group & may
            for way in (1, -1):
                if group <= may:
                    near = at + way
                    while 0 <= near < len(order) and order[near] <= may:
                        heard |= order[near]
                        near += way
    return must, may, heard


def test_who_may_be_told_is_told_only_where_somebody_must(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(300):
        pairs = [sorted(draw.choices(range(1, 9), k=2)) for _ in range(draw.choice((1, 3, 8)))]
        rows = sorted((*draw.choice(pairs), draw.randrange(-6, 7)) for _ in range(12))
        value = draw.randrange(-9, 10)
        must, may, wanted = allowed(Rule(), rows, value)
        columns = np.array(rows, float).T
        heard = set(np.flatnonzero(told(Rule(), *columns, value)).tolist())
        assert must <= heard <= may
        assert heard == wanted, (rows, value)
        assert must or not heard


def test_a_structure_of_two_radii(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(20):
        structure, rows, value = MayMust(0.0), {}, 0.0
        for _ in range(150):
            id = draw.randrange(25)
            if id in rows and draw.random() < 0.3:
                structure.delete(id)
                del rows[id]
            elif id not in rows and draw.random() < 0.6:
                may, must = sorted(draw.choices((1, 2, 3, 5, 8), k=2))
                assert structure.insert(id, may, must) == value
                rows[id] = (may, must, value)
            value += draw.choice((-3, -1, 0, 1, 2, 0.5))
            ids = list(rows)
            wanted = {ids[at] for at in allowed(Rule(), list(rows.values()), value)[2]}
            assert set(structure.tell(value)) == wanted
            for id in wanted:
                rows[id] = (*rows[id][:2], value)
            structure._check()
            assert {id: structure.centre(id) for id in rows} == {
                id: row[2] for id, row in rows.items()
            }


def in_ranges(ranges: list, may: np.ndarray, must: np.ndarray) -> np.ndarray:
    pairs = zip(may.tolist(), must.tolist(), strict=True)
    found = [any(first <= pair <= last for first, last in ranges) for pair in pairs]
    return np.array(found, np.bool_)


def rows_of(structure: MayMust, ids: int) -> list[tuple[float, float, float]]:
    held = (id for id in range(ids) if id in structure)
    return sorted((*structure.radii(id), structure.centre(id)) for id in held)


@pytest.mark.parametrize(
    "rule", [Rule(), Rule(Measure.PERCENT), Rule(strict=True), Rule(Measure.FACTOR)], ids=str
)
def test_ranges_of_two_radii_are_as_few_as_can_be(rule: Rule, seed: int) -> None:
    draw, several = random.Random(seed), 0
    far = 50 if rule.measure is Measure.FACTOR else 2
    for _ in range(20):
        structure, value = MayMust(100.0, rule), 100.0
        ids = draw.choice((3, 12, 40))
        for _ in range(120):
            id = draw.randrange(ids)
            may, must = sorted(1 + draw.choice((1, 2, 3, 5, 8)) / far for _ in range(2))
            if id not in structure:
                assert structure.insert(id, may, must) == value
            elif draw.random() < 0.3:
                structure.delete(id)
            elif draw.random() < 0.5:
                before = structure.centre(id)
                overdue = rule.tells(before, must, value)
                assert structure.change(id, may, must) == overdue
                assert structure.centre(id) == (value if overdue else before)
                assert structure.radii(id) == (may, must)
            structure._check()
            value = max(1.0, value + draw.choice((-2, -1, -0.5, 0, 0.5, 1, 2.5, 5, -5)))
            rows = rows_of(structure, ids)
            columns = np.array(rows, float).reshape(-1, 3).T
            heard, may_be = told(rule, *columns, value), rule.tells_many(*columns[[2, 0]], value)
            ranges = structure.event(value)
            assert (in_ranges(ranges, *columns[:2]) & may_be == heard).all()
            wanted = [(*row[:2], value) if at else row for row, at in zip(rows, heard, strict=True)]
            assert rows_of(structure, ids) == sorted(wanted)
            for (_, one), (two, _) in pairwise(ranges):
                several += 1
                assert (in_ranges([(one, two)], *columns[:2]) & may_be & ~heard).any()
            for end in (end for pair in ranges for end in pair):
                assert (in_ranges([(end, end)], *columns[:2]) & heard).any()
    assert several > 0


def test_those_with_the_same_radii_get_the_same_centre() -> None:
    """§6.1: one must, so all who may are told, and they are told together from then on."""
    structure = MayMust(100.0)
    for id, value in enumerate((100, 100.5, 101, 101.4)):
        structure.tell(value)
        structure.insert(id, 0.5, 2)
    assert sorted(structure.tell(102)) == [0, 1, 2, 3]
    assert {structure.centre(id) for id in range(4)} == {102}
    for may, must in ((0, 1), (2, 1), (nan, 1), (1, inf)):
        with pytest.raises(InvalidValue):
            structure.insert(9, may, must)
