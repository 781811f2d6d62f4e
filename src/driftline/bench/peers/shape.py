"""Which joins of events and filters give the same pairs as the filters?

A disjunction, and an IN, is a union of joins. Filters of the same form that only differ in the
attributes they ask about (W1 has 1,140 such sets) can be stacked into one table: its column `shape`
says which attributes `x0`, `x1`, … are, and an event is joined once in each shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftline.model.constraint import ORDERINGS, Operator
from driftline.workload.prepared import Bounds, Group, Test


class Pairs(NamedTuple):
    """Which event and which subscription, both by number."""

    events: NDArray[np.int64]
    numbers: NDArray[np.int64]

    def codes(self) -> NDArray[np.int64]:
        """Each pair as one number, sorted: equal for equal sets of pairs."""
        return np.sort(self.events.astype(np.int64) << 32 | self.numbers.astype(np.int64))

    def distinct(self) -> Pairs:
        """Each pair once."""
        codes = np.unique(self.codes())
        return Pairs(codes >> 32, codes & 0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Join:
    """Filters that one join finds: all tests must be true of their operands' columns."""

    tests: tuple[Test, ...]
    numbers: NDArray[np.int32]
    operands: Bounds
    shapes: tuple[tuple[str, ...], ...] = ()

    @property
    def key(self) -> Test | None:
        """The equality to join on, if there is one."""
        return next((test for test in self.tests if test.operator is Operator.EQ), None)

    @property
    def ranges(self) -> tuple[Test, ...]:
        """The tests that compare by order."""
        return tuple(test for test in self.tests if test.operator in ORDERINGS)

    @property
    def rest(self) -> tuple[Test, ...]:
        """What is neither the key nor a range: to be checked on the pairs found."""
        return tuple(
            test for test in self.tests if test is not self.key and test.operator not in ORDERINGS
        )

    @property
    def order(self) -> tuple[str, ...]:
        """The columns to sort by: the key, then the first bound."""
        key = ("shape",) if self.shapes else self.key.operands if self.key else ()
        return (*key, self.ranges[0].operands[0])


def joins_of(groups: Iterable[Group]) -> list[Join]:
    """A join for each conjunction, with equalities in place of IN."""
    return [
        Join(conjunction, group.numbers, group.operands)
        for group in groups
        for tests in group.alternatives
        for conjunction in product(*map(_equalities, tests))
    ]


def repeats(groups: Iterable[Group]) -> bool:
    """Can two of the joins find the same pair?"""
    return any(
        len(group.alternatives) > 1 or test.operator is Operator.IN
        for group in groups
        for tests in group.alternatives
        for test in tests
    )


def stacked(joins: Sequence[Join]) -> list[Join]:
    """The joins with those of one form, and no key of their own, put into one."""
    forms: dict[object, list[Join]] = {}
    for at, join in enumerate(joins):
        form = tuple((test.operator, test.operands) for test in join.tests)
        forms.setdefault(at if join.key else form, []).append(join)
    return [same[0] if len(same) == 1 else _stack(same) for same in forms.values()]


def _stack(joins: list[Join]) -> Join:
    shapes = tuple(tuple(dict.fromkeys(test.attribute for test in join.tests)) for join in joins)
    places = {attribute: f"x{at}" for at, attribute in enumerate(shapes[0])}
    tests = tuple(replace(test, attribute=places[test.attribute]) for test in joins[0].tests)
    operands = {
        name: np.concatenate([join.operands[name] for join in joins]) for name in joins[0].operands
    }
    sizes = [len(join.numbers) for join in joins]
    operands["shape"] = np.repeat(np.arange(len(joins), dtype=np.int32), sizes)
    return Join(tests, np.concatenate([join.numbers for join in joins]), operands, shapes)


def _equalities(test: Test) -> list[Test]:
    if test.operator is not Operator.IN:
        return [test]
    return [Test(test.attribute, Operator.EQ, (operand,)) for operand in test.operands]
