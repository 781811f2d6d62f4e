"""Is what was worked out remembered, and forgotten where it would be too much?"""

from __future__ import annotations

import gc
import pickle
import weakref

import pytest

from driftline import parse
from driftline.model.filter import Filter
from driftline.model.remember import remembered


def test_of_small_filters_it_is_for_all_that_are_equal_and_of_large_ones_for_each() -> None:
    asked: list[Filter] = []

    @remembered
    def size(one: Filter) -> int:
        asked.append(one)
        return len(one.constraints)

    (small,) = parse("SELECT * WHERE x < 3 AND y < :a + 2").filters()
    large = Filter(None, small.constraints * 200)
    assert small.small
    assert not large.small
    for one in (small, Filter(None, small.constraints)):
        assert size(one) == 2
    for one in (large, large, Filter(None, large.constraints)):
        assert size(one) == 400
    assert asked.count(small) == 1
    assert asked.count(large) == 2


def test_what_a_large_one_came_to_goes_with_it() -> None:
    class Found:
        """What can be looked for."""

    @remembered
    def found(_: Filter) -> Found:
        return Found()

    (small,) = parse("SELECT * WHERE x < 3").filters()
    large = Filter(None, small.constraints * 300)
    looked = weakref.ref(found(large))
    gc.collect()
    assert looked() is found(large)
    # It does not go where the filter is sent.
    assert pickle.loads(pickle.dumps(large)).worked == {}
    del large
    gc.collect()
    assert looked() is None


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT * WHERE x IN ({', '.join(map(str, range(300)))})",
        f"SELECT * WHERE {' + '.join(['x'] * 150)} + y < 3",
    ],
)
def test_a_long_list_and_a_deep_condition_are_large(text: str) -> None:
    statement = parse(text)
    (one,) = statement.filters()
    assert not one.small
    assert not statement.small


def test_all_steps_of_a_pattern_count() -> None:
    step = " OR ".join(f"x = {at}" for at in range(50))
    assert parse(f"SELECT * FROM a WHERE {step} THEN SELECT * FROM b").small
    assert not parse(f"SELECT * FROM a WHERE {step} THEN SELECT * FROM b WHERE {step}").small
