"""The examples of range-min subscriptions [DBNET 1, 2.4.1, 3.1]."""

from __future__ import annotations

from math import inf

import pytest

from driftline.stateful.range_min.a2b_tree import A2BTree
from driftline.stateful.range_min.blocks import Blocks
from driftline.stateful.range_min.change import Change
from driftline.stateful.range_min.marginals import Hull, Kind, classify, emar, hull, mar, messages
from driftline.stateful.range_min.reference import Reference
from driftline.stateful.range_min.structure import Structure

# Figure 1, as far as the text gives numbers: t3 to t6 do, the others from what is said of them.
STOCK = {
    1: (10, 7),
    2: (20, 3),
    3: (30, 8),
    4: (40, 12),
    5: (50, 5),
    6: (70, 6),
    7: (70, 10),
    8: (100, 2),
}
RANGES = {"s1": (5, 60), "s2": (15, 55), "s3": (25, 60), "s4": (35, 80), "s5": (60, 110)}


@pytest.fixture(params=[Reference, A2BTree, Blocks])
def stock(request: pytest.FixtureRequest) -> Structure:
    made = request.param()
    for id, point in STOCK.items():
        made.change(id, point)
    return made


def others(id: int) -> list[tuple[float, float]]:
    return [point for key, point in STOCK.items() if key != id]


def affected(told: list[Change]) -> dict[str, float | None]:
    return {
        name: one.minimum for name, ends in RANGES.items() for one in told if one.affects(*ends)
    }


def test_a_good_update_is_one_message(stock: Structure) -> None:
    """t4 falls from 12 to 4 [§2.4.1]."""
    told = stock.change(4, (40, 4))
    assert told == [Change(4, 40, 40, 20, 100)]
    assert affected(told) == {"s3": 4, "s4": 4}


def test_a_bad_update_is_three_messages(stock: Structure) -> None:
    """t5 rises from 5 to 9 [§2.4.1]: s3 gets the PER of t3, s4 that of t6 [Example 1]."""
    told = stock.change(5, (50, 9))
    assert told == [
        Change(9, 50, 50, 30, 70),
        Change(8, 30, 50, 20, 70),
        Change(6, 50, 70, 20, 100),
    ]
    assert affected(told) == {"s3": 8, "s4": 6}


def test_an_ignorable_update_is_no_message(stock: Structure) -> None:
    """t7 moves above t6, which has the same risk [§2.1]."""
    assert stock.change(7, (70, 8)) == []
    assert stock.change(7, (70, 6)) == []
    assert stock.change(7, (70, 10)) == []


def test_moves_of_t4_above_t5_are_told_only_to_those_without_t5(stock: Structure) -> None:
    """Example 2: they do not concern anybody in Figure 1."""
    for y in (11, 14, 6, 12):
        assert affected(stock.change(4, (40, y))) == {}


def test_the_classes_of_updates() -> None:
    """Corollary 1, and what §2.1 says of Figure 1."""
    assert classify(others(4), 40, 12, 4) is Kind.GOOD
    assert classify(others(5), 50, 5, 9) is Kind.BAD
    assert classify(others(7), 70, 10, 8) is Kind.IGNORABLE
    # An increase is occasionally good: nothing that is nearer than t2 and t8 is below 5.5.
    assert classify(others(5), 50, 5, 5.5) is Kind.GOOD
    assert messages(others(5), 50, 5, 5.5) == [Change(5.5, 50, 50, 20, 100)]
    # What does not change is ignorable, though its Mar is not empty.
    assert classify(others(5), 50, 5, 5) is Kind.IGNORABLE


def test_the_mar_of_the_update_of_t5() -> None:
    """(20, 100) [after Definition 1]."""
    assert mar(others(5), 50, min(5, 9)) == (20, 100)
    # An end is where y is as small, and belongs to the range no more.
    assert mar(others(5), 50, 6) == (20, 70)
    assert mar(others(5), 70, 6) is None
    assert mar([], 50, 6) == (-inf, inf)


def test_a_hull_has_only_points_below_its_peak() -> None:
    """We differ from Definition 2, which has (40, 12) as well, that nobody gets as a minimum."""
    after = [*others(5), (50, 9)]
    assert hull(after, 50, 5) == Hull((50, 9), ((30, 8),), ((70, 6),))
    # Without a peak (40, 12) is exposed.
    assert hull(others(5), 50, 5) == Hull((50, inf), ((40, 12), (30, 8)), ((70, 6),))


def test_a_hull_takes_the_least_y_at_each_x() -> None:
    """By Definition 2 two equal points would keep each other out of the hull."""
    points = [(1, 4), (1, 4), (3, 6), (3, 8), (5, 7)]
    assert hull(points, 5, 2) == Hull((5, 7), ((3, 6), (1, 4)), ())


def test_points_of_the_same_y_on_both_sides() -> None:
    """The asymmetry of EMar [§3.1.2, footnote 2]: who contains both is told by the left one."""
    points = [(0, 1), (10, 5), (30, 5), (40, 1)]
    assert emar(points, 20, (10, 5)) == (0, 40)
    assert emar(points, 20, (30, 5)) == (10, 40)
    told = messages(points, 20, 2, inf)
    assert told == [
        Change(None, 20, 20, 10, 30),
        Change(5, 10, 20, 0, 40),
        Change(5, 20, 30, 10, 40),
    ]
    assert [one.inner_left for one in told if one.affects(5, 35)] == [10]


def test_an_insert_comes_from_infinity_and_a_delete_goes_there(stock: Structure) -> None:
    """§3.1.3: and where nothing is left the result is NULL."""
    assert stock.change(9, (200, 1)) == [Change(1, 200, 200, -inf, inf)]
    assert stock.change(9, None) == [
        Change(None, 200, 200, 100, inf),
        Change(2, 100, 200, -inf, inf),
    ]
    assert stock.change(9, None) == []


def test_a_complex_update_tells_nobody_twice(stock: Structure) -> None:
    """§3.1.3: a delete and an insert would tell [30, 90] of 6 and then of 4."""
    told = stock.change(5, (80, 4))
    assert told == [
        Change(4, 80, 80, 20, 100),
        Change(None, 50, 50, 40, 70),
        Change(12, 40, 50, 30, 70),
        Change(8, 30, 50, 20, 70),
        Change(6, 50, 70, 20, 80),
    ]
    assert [one.minimum for one in told if one.affects(30, 90)] == [4]


def test_find_right_of_figure_5() -> None:
    """From (102, 3) it passes a subtree whose least y is 4, and finds (112, 1) [§3.1.1]."""
    tree = A2BTree(fanout=3)
    points = [(90, 2), (101, 5), (102, 6), (110, 4), (112, 1), (117, 3), (120, 6), (150, 2)]
    for id, point in enumerate(points):
        tree.change(id, point)
    assert tree.find_right(102, 3, strict=True) == 112
    assert tree.find_right(112, 3, strict=True) == 150
    assert tree.find_right(112, 3, strict=False) == 117
    assert tree.find_right(150, 3, strict=False) == inf
    assert tree.find_left(112, 3, strict=False) == 90
    assert tree.find_left(112, 4, strict=False) == 110
    assert tree.find_left(112, 4, strict=True) == 90
