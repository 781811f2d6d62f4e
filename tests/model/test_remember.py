"""Is what was worked out remembered, and forgotten where it would be too much?"""

from __future__ import annotations

from driftline import parse
from driftline.model.filter import Filter
from driftline.model.remember import remembered


def test_small_filters_are_worked_out_once_and_large_ones_each_time() -> None:
    asked: list[Filter] = []

    @remembered
    def size(one: Filter) -> int:
        asked.append(one)
        return len(one.constraints)

    (small,) = parse("SELECT * WHERE x < 3 AND y < :a + 2").filters()
    large = Filter(None, small.constraints * 200)
    assert small.small
    assert not large.small
    for _ in range(3):
        assert (size(small), size(large)) == (2, 400)
    assert asked.count(small) == 1
    assert asked.count(large) == 3


def test_a_long_in_and_a_deep_condition_are_large() -> None:
    values = ", ".join(map(str, range(300)))
    (one,) = parse(f"SELECT * WHERE x IN ({values})").filters()
    assert not one.small
    deep = " + ".join(["x"] * 100) + " + y"
    (one,) = parse(f"SELECT * WHERE {deep} < 3 AND {deep} > 1").filters()
    assert not one.small
