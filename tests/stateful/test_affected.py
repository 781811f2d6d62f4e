"""Are those listed whom `Change.affects` names, and is it known if there are any? [DBNET §2.4.1]"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from math import inf, nan

import numpy as np
import pytest

from driftline.errors import InvalidValue
from driftline.stateful.range_min.affected import Affected
from driftline.stateful.range_min.blocks import Blocks
from driftline.stateful.range_min.change import HIGHEST, LOWEST, Change

ENDS = [-inf, LOWEST, -1, -0.0, 0, 0.5, 1, 2, 3, 2.5, 1e308, HIGHEST, inf]


def row(change: Change) -> list[float]:
    inner = [change.inner_left, change.inner_right]
    return [0.0, *inner, change.outer_left, change.outer_right]


class Program:
    """Random changes of ranges, held in a dictionary too, and random messages."""

    def __init__(self, seed: int, numbers: int, top: int) -> None:
        self.draw = random.Random(seed)
        self.numbers, self.top = numbers, top
        self.affected = Affected()
        self.ranges: dict[int, tuple[float, float]] = {}

    def end(self) -> float:
        return self.draw.choice(ENDS) if self.draw.random() < 0.1 else self.draw.randrange(self.top)

    def run(self, steps: int) -> None:
        for step in range(steps):
            self.change()
            if step % (1 + steps // 40) == 0:
                self.affected._check()
                self.compare(4)
        self.affected.discard_many(np.array([*self.ranges, 10**6]))
        self.affected._check()
        assert len(self.affected) == 0

    def change(self) -> None:
        number, low, high = self.draw.randrange(self.numbers), self.end(), self.end()
        if self.draw.random() < 0.9:
            low, high = min(low, high), max(low, high)
        chance = self.draw.random()
        if chance < 0.6:
            self.affected.add(number, low, high)
            self.ranges[number] = low, high
        elif chance < 0.75:
            self.affected.discard(number)
            self.ranges.pop(number, None)
        elif number in self.ranges:
            self.affected.change(number, low, high)
            self.ranges[number] = low, high
        else:
            with pytest.raises(KeyError):
                self.affected.change(number, low, high)
        assert (number in self.affected) is (number in self.ranges)
        assert len(self.affected) == len(self.ranges)

    def message(self) -> Change:
        outer_left, left, right, outer_right = sorted(self.end() for _ in range(4))
        return Change(None, left, right, outer_left, outer_right)

    def compare(self, count: int) -> None:
        messages = [self.message() for _ in range(count)]
        rows = np.array([row(one) for one in messages])
        ids, ends = self.affected.of_many(rows)
        any_at_all = self.affected.wanted_many(rows)
        for at, message in enumerate(messages):
            wanted = sorted(n for n, ends in self.ranges.items() if message.affects(*ends))
            assert sorted(self.affected.of(message).tolist()) == wanted, message
            assert sorted(ids[ends[at] : ends[at + 1]].tolist()) == wanted
            assert self.affected.wanted(message) is bool(wanted)
            assert any_at_all[at] == bool(wanted)


@pytest.mark.parametrize(("numbers", "top"), [(8, 4), (300, 3), (2_000, 1_000), (9_000, 5)])
def test_any_program_affects_whom_the_definition_says(numbers: int, top: int, seed: int) -> None:
    Program(seed, numbers, top).run(4 * numbers)


def test_tiny_slabs_are_exact_without_the_compiler_too() -> None:
    """Slabs of up to six are split and joined all the time."""
    code = (
        "from driftline.kernels import layout, slabs\n"
        "for module in (layout, slabs):\n"
        "    module.SLAB_FIRST, module.SLAB_WORDS = 12, 24\n"
        "from tests.stateful.test_affected import Program\n"
        "for top in (2, 9, 1000):\n"
        "    Program(top, 150, top).run(1500)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_those_whose_minimum_changes_are_those_listed(seed: int) -> None:
    """Messages of a table that changes, and the minima themselves."""
    draw = np.random.default_rng(seed)
    blocks, asked = Blocks(), Affected()
    lows = draw.integers(0, 100, 400)
    highs = lows + draw.integers(0, 30, 400)
    asked.add_many(np.arange(400), lows, highs)
    points = draw.integers(0, 100, (200, 2)).astype(float)
    blocks.change_many(np.arange(200), points)
    for _ in range(30):
        id, new = int(draw.integers(0, 200)), draw.integers(0, 100, 2).astype(float)
        before = [blocks.minimum(*ends) for ends in zip(lows, highs, strict=True)]
        messages = blocks.change_many(np.array([id]), new[None, :])
        after = [blocks.minimum(*ends) for ends in zip(lows, highs, strict=True)]
        ids, _ = asked.of_many(messages.rows)
        assert sorted(ids.tolist()) == [at for at in range(400) if before[at] != after[at]]
        assert asked.wanted_many(messages.rows).any() == bool(len(ids))


def test_memory_does_not_grow_with_churn() -> None:
    asked, draw = Affected(), np.random.default_rng(1)
    numbers, sizes = np.arange(20_000), []
    for _ in range(4):
        for _ in range(3):
            asked.add_many(numbers, *draw.uniform(0, 1e4, (2, len(numbers))))
        sizes.append(asked.nbytes)
        asked.discard_many(numbers)
        asked._check()
    assert sizes[-1] <= 1.05 * sizes[0]


@pytest.mark.parametrize(
    ("lows", "highs", "wanted"),
    [
        ([1.0], [nan], "came NaN"),
        ([1.0], [1.0, 2.0], "two for each of 1 numbers"),
        ([2**53 + 1], [2**60], "53 bits"),
        (["a"], [1], "a column of numbers"),
    ],
)
def test_what_is_no_range_is_refused_and_nothing_changes(lows, highs, wanted: str) -> None:
    asked = Affected()
    with pytest.raises(InvalidValue, match=wanted):
        asked.add_many(np.array([3]), np.array(lows), np.array(highs))
    for low, high in ((nan, 1), (1, nan), (2**53 + 1, inf)):
        with pytest.raises(InvalidValue):
            asked.add(3, low, high)
    with pytest.raises(InvalidValue, match="up to 536870911"):
        asked.add(2**30, 1, 2)
    assert 3 not in asked
    assert len(asked) == 0
    with pytest.raises(InvalidValue, match="rows of 5 numbers"):
        asked.of_many(np.zeros((2, 4)))
