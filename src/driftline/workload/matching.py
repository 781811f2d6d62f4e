"""Which filters and events is a matcher measured on?

Integers lie on a grid of 0 … 999,999. Attributes, symbols, venues and types have the popularity of
Zipf's law: the k-th is drawn 1/k as often as the first, by subscribers and publishers alike.

W1  three closed ranges, each a tenth of the grid, over three of twenty attributes; an event has all
    twenty. A thousandth of the subscriptions match.
W2  `symbol = s AND price BETWEEN lo AND hi`: one of 500 symbols, a range of 0.0056 of the grid. One
    in 5,000 matches.
W3  W2, and a fifth of the filters also ask for a prefix of `name`: one letter, two letters, or one
    of 300 of three letters. A name is 4 to 12 random letters, so a prefix takes one event in 26, in
    676 or in 17,576.
W4  a mix of everything, half of it W2; see `driftline.workload.mixed`.
W5  `TYPE = t AND A < x AND B >= x AND C <= y AND D > y`: the event carries two ranges, the
    subscription a point, one of eight types. The shape of a range view that was reformulated into
    conditions on the event. One in 5,000 matches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.model.constraint import Operator
from driftline.workload import mixed
from driftline.workload.draws import (
    GRID,
    band,
    letters,
    names,
    quotes,
    ranges,
    zipf,
    zipf_codes,
)
from driftline.workload.prepared import Group, Test, between

SEED = 11

ATTRIBUTES = tuple(f"a{at}" for at in range(20))
TYPES = tuple(f"T{at}" for at in range(8))

_W1_WIDTH = GRID // 10
_W3_PREFIXED = 0.2
_W3_TRIPLES = 300
# Two ranges of this mean width each hold a given point in 0.00097 of all cases, and two messages
# have the same type in 0.207: one in 5,000.
_W5_WIDTH = 31_100


@dataclass(frozen=True, slots=True)
class Workload:
    """A question put to every engine: subscriptions and events, the same for the same seed."""

    name: str
    type: str
    matches_share: float
    draw_groups: Callable[[np.random.Generator, int], list[Group]]
    draw_events: Callable[[np.random.Generator, int], pa.RecordBatch]

    def groups(self, count: int) -> list[Group]:
        """So many subscriptions; all numbers below `count` occur once."""
        return self.draw_groups(self._stream(0), count)

    def events(self, count: int) -> pa.RecordBatch:
        """So many events as typed columns; null where an attribute is missing."""
        return self.draw_events(self._stream(1), count)

    def _stream(self, which: int) -> np.random.Generator:
        return np.random.default_rng([SEED, int(self.name[1:]), which])


def _w1_groups(draw: np.random.Generator, count: int) -> list[Group]:
    triples = list(combinations(range(len(ATTRIBUTES)), 3))
    chosen = draw.choice(len(triples), count, p=_triple_popularity(triples))
    order = np.argsort(chosen, kind="stable")
    edges = np.searchsorted(chosen[order], np.arange(len(triples) + 1))
    groups = []
    for at, triple in enumerate(triples):
        numbers = order[edges[at] : edges[at + 1]].astype(np.int32)
        if not len(numbers):
            continue
        tests: tuple[Test, ...] = ()
        operands = {}
        for place, attribute in enumerate(triple):
            low, high = f"lo{place}", f"hi{place}"
            operands[low], operands[high] = ranges(draw, len(numbers), _W1_WIDTH)
            tests += between(ATTRIBUTES[attribute], low, high)
        groups.append(Group("reading", (tests,), numbers, operands))
    return groups


def _triple_popularity(triples: Sequence[tuple[int, ...]]) -> NDArray[np.float64]:
    """How often three different draws, in any order, give these attributes."""
    p = zipf(len(ATTRIBUTES))
    shares: list[float] = [
        sum(p[i] * p[j] / (1 - p[i]) * p[k] / (1 - p[i] - p[j]) for i, j, k in permutations(triple))
        for triple in triples
    ]
    return np.array(shares) / sum(shares)


def _w1_events(draw: np.random.Generator, count: int) -> pa.RecordBatch:
    return pa.record_batch({name: draw.integers(0, GRID, count) for name in ATTRIBUTES})


def _w2_groups(draw: np.random.Generator, count: int) -> list[Group]:
    return [band(draw, np.arange(count, dtype=np.int32))]


def _w3_groups(draw: np.random.Generator, count: int) -> list[Group]:
    prefixed = draw.random(count) < _W3_PREFIXED
    numbers = np.arange(count, dtype=np.int32)
    plain = band(draw, numbers[~prefixed])
    other = band(draw, numbers[prefixed])
    size = len(other.numbers)
    three = letters(draw, _W3_TRIPLES, 3)[draw.integers(0, _W3_TRIPLES, size)]
    length = draw.integers(1, 4, size)
    prefix = np.where(
        length == 1, letters(draw, size, 1), np.where(length == 2, letters(draw, size, 2), three)
    )
    tests = (*other.alternatives[0], Test("name", Operator.PREFIX, ("prefix",)))
    operands = {**other.operands, "prefix": pa.array(prefix, pa.string())}
    return [plain, Group(other.type, (tests,), other.numbers, operands)]


def _w3_events(draw: np.random.Generator, count: int) -> pa.RecordBatch:
    return quotes(draw, count).append_column("name", names(draw, count))


def _w5_groups(draw: np.random.Generator, count: int) -> list[Group]:
    tests = (
        Test("TYPE", Operator.EQ, ("t",)),
        Test("A", Operator.LT, ("x",)),
        Test("B", Operator.GE, ("x",)),
        Test("C", Operator.LE, ("y",)),
        Test("D", Operator.GT, ("y",)),
    )
    operands = {
        "t": pa.array(TYPES).take(pa.array(zipf_codes(draw, len(TYPES), count))),
        "x": draw.integers(0, GRID, count),
        "y": draw.integers(0, GRID, count),
    }
    return [Group("message", (tests,), np.arange(count, dtype=np.int32), operands)]


def _w5_events(draw: np.random.Generator, count: int) -> pa.RecordBatch:
    columns = {
        "TYPE": pa.DictionaryArray.from_arrays(zipf_codes(draw, len(TYPES), count), pa.array(TYPES))
    }
    for low, high in (("A", "B"), ("C", "D")):
        width = draw.integers(1, 2 * _W5_WIDTH, count)
        columns[low] = draw.integers(0, GRID - width)
        columns[high] = columns[low] + width
    return pa.record_batch(columns)


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("W1", "reading", 1e-3, _w1_groups, _w1_events),
        Workload("W2", "quote", 2e-4, _w2_groups, quotes),
        Workload("W3", "quote", 1.6e-4, _w3_groups, _w3_events),
        Workload("W4", "quote", 2.5e-4, mixed.groups, mixed.events),
        Workload("W5", "message", 2e-4, _w5_groups, _w5_events),
    )
}
