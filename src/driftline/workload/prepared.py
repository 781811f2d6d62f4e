"""How are a million subscriptions of a few shapes said, without a million texts?

As a database does it: a prepared statement, and a column of values for each of its parameters. A
group holds both in plain form, so that whoever wants to answer the same question in another way (a
join, a scan) can read it too. The language has no parameter inside a LIKE, so a group with patterns
is as many prepared statements as it has different patterns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.language.sql import parse
from driftline.model.constraint import Operator
from driftline.model.filter import Filter
from driftline.model.subscription import Subscription

# Typed values, one for each subscription: NumPy integers, or Arrow strings (which have no types).
Operands: TypeAlias = Any
Bounds: TypeAlias = dict[str, Operands]

_PATTERNS = {Operator.PREFIX: "{}%", Operator.SUFFIX: "%{}", Operator.SUBSTRING: "%{}%"}


@dataclass(frozen=True, slots=True)
class Test:
    """`attribute operator operands`, where an operand is the name of a column of values."""

    attribute: str
    operator: Operator
    operands: tuple[str, ...] = ()

    def text(self, patterns: Mapping[str, str]) -> str:
        """The condition in the language: parameters, and patterns in their place."""
        if self.operator in (Operator.EXISTS, Operator.ABSENT):
            return f"{self.attribute} {self.operator.value}"
        if self.operator in _PATTERNS:
            pattern = _PATTERNS[self.operator].format(patterns[self.operands[0]])
            return f"{self.attribute} LIKE '{pattern}'"
        names = ", ".join(f":{name}" for name in self.operands)
        if self.operator is Operator.IN:
            return f"{self.attribute} IN ({names})"
        return f"{self.attribute} {self.operator.value} {names}"


def between(attribute: str, low: str = "lo", high: str = "hi") -> tuple[Test, Test]:
    """A closed range."""
    return (Test(attribute, Operator.GE, (low,)), Test(attribute, Operator.LE, (high,)))


@dataclass(frozen=True, slots=True)
class Prepared:
    """One statement added many times: its filters, which subscriptions, and their bounds."""

    filters: tuple[Filter, ...]
    numbers: NDArray[np.int32]
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class Group:
    """Subscriptions of one shape: one of the alternatives must be true, all its tests."""

    type: str
    alternatives: tuple[tuple[Test, ...], ...]
    numbers: NDArray[np.int32]
    operands: Bounds

    @property
    def patterns(self) -> tuple[str, ...]:
        """The operands that stand inside a LIKE."""
        tests = (test for tests in self.alternatives for test in tests)
        return tuple(test.operands[0] for test in tests if test.operator in _PATTERNS)

    def subscription(self, patterns: Mapping[str, str]) -> Subscription:
        """The prepared statement that those with these patterns share."""
        conjunctions = (
            " AND ".join(test.text(patterns) for test in tests) for tests in self.alternatives
        )
        return _parsed(f"SELECT * FROM {self.type} WHERE {' OR '.join(conjunctions)}")

    def prepared(self) -> Iterator[Prepared]:
        """The statements, in the order of their patterns."""
        if not self.patterns:
            yield Prepared(self.subscription({}).filters(), self.numbers, self.operands)
            return
        (name,) = self.patterns
        encoded = self.operands[name].dictionary_encode()
        codes = encoded.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        edges = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
        for at, pattern in enumerate(encoded.dictionary.to_pylist()):
            rows = order[edges[at] : edges[at + 1]]
            bounds = self.taken(rows)
            del bounds[name]
            yield Prepared(self.subscription({name: pattern}).filters(), self.numbers[rows], bounds)

    def bound(self, row: int) -> tuple[Filter, ...]:
        """One of them by itself, its values in their place."""
        values = {name: _value(column[row]) for name, column in self.operands.items()}
        patterns = {name: str(values.pop(name)) for name in self.patterns}
        return self.subscription(patterns).filters(values)

    def taken(self, rows: NDArray[np.int64]) -> Bounds:
        """The operands of these rows."""
        return {
            name: column[rows] if isinstance(column, np.ndarray) else column.take(pa.array(rows))
            for name, column in self.operands.items()
        }


def moved(bounds: Bounds, draw: np.random.Generator) -> Bounds:
    """The same bounds with other numbers: each subscription takes another's, and its own strings.

    All are given, because parameters are set as a whole.
    """
    order = draw.permutation(len(next(iter(bounds.values()))))
    return {
        name: column[order] if isinstance(column, np.ndarray) else column
        for name, column in bounds.items()
    }


# As many as a workload has: a filter by itself has the same text as the prepared one.
@lru_cache(maxsize=4096)
def _parsed(text: str) -> Subscription:
    statement = parse(text)
    assert isinstance(statement, Subscription)
    return statement


def _value(cell: Any) -> int | str:
    return int(cell) if isinstance(cell, np.integer) else str(cell.as_py())
