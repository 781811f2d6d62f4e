"""Which pairs does a scan with NumPy find?

Filters and events of one key are compared all with all, a block at a time; strings are looked at on
the pairs that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.bench.peers.shape import Join, Pairs, joins_of, repeats
from driftline.model.comparison import COMPARISONS
from driftline.model.constraint import Operator
from driftline.workload.prepared import Group, Test

# Cells of a block: small enough that its masks stay in the cache.
_BLOCK = 1 << 20

_Rows = NDArray[np.int64]
_ALL = ""

_STRINGS: dict[Operator, Callable[[Any, Any], Any]] = {
    Operator.PREFIX: np.strings.startswith,
    Operator.SUFFIX: np.strings.endswith,
    Operator.SUBSTRING: lambda text, part: np.strings.find(text, part) >= 0,
}


class NumPy:
    """Filters as arrays, those of one key together."""

    def __init__(self, groups: list[Group]) -> None:
        self._distinct = repeats(groups)
        self._joins = []
        for join in joins_of(groups):
            operands = {name: _plain(column) for name, column in join.operands.items()}
            rows = np.arange(len(join.numbers))
            keys = _by_value(operands[join.key.operands[0]], rows) if join.key else {_ALL: rows}
            self._joins.append((join, operands, keys))
        self._values: dict[str, NDArray[Any]] = {}
        self._present: dict[str, NDArray[np.bool_]] = {}

    def take(self, events: pa.RecordBatch) -> None:
        """An array for each attribute, and which of its values are there."""
        self._present = {
            name: events[name].is_valid().to_numpy(False) for name in events.schema.names
        }
        self._values = {name: _plain(events[name]) for name in events.schema.names}

    def formulations(self) -> Mapping[str, Callable[[], Pairs]]:
        """The only one there is."""
        return {"scan": self._scan}

    def _scan(self) -> Pairs:
        blocks = [
            pair
            for join, operands, keys in self._joins
            for rows, events in self._blocks(join, keys)
            for pair in [self._block(join, operands, rows, events)]
        ]
        pairs = Pairs(*(np.concatenate(side) for side in zip(*blocks, strict=True)))
        return pairs.distinct() if self._distinct else pairs

    def _blocks(self, join: Join, keys: dict[str, _Rows]) -> Iterator[tuple[_Rows, _Rows]]:
        """Rows and events to compare all with all."""
        usable = np.ones(len(next(iter(self._present.values()))), bool)
        for test in join.tests:
            # Of a missing value nothing is true but that it is missing.
            usable &= self._present[test.attribute] ^ (test.operator is Operator.ABSENT)
        events = np.flatnonzero(usable)
        if join.key is None:
            groups = {_ALL: events}
        else:
            groups = _by_value(self._values[join.key.attribute][events], events)
        for key, some in groups.items():
            if key in keys:
                size = max(1, _BLOCK // len(keys[key]))
                for start in range(0, len(some), size):
                    yield keys[key], some[start : start + size]

    def _block(
        self, join: Join, operands: dict[str, NDArray[Any]], rows: _Rows, events: _Rows
    ) -> tuple[_Rows, NDArray[np.int32]]:
        mask = np.ones((len(events), len(rows)), bool)
        for test in join.ranges:
            values = self._values[test.attribute][events, None]
            mask &= COMPARISONS[test.operator.value](values, operands[test.operands[0]][rows])
        at, found = np.divmod(np.flatnonzero(mask), len(rows))
        events, rows = events[at], rows[found]
        for test in join.rest:
            if test.operands:
                left = self._values[test.attribute][events]
                kept = _holds(test, left, operands[test.operands[0]][rows])
                events, rows = events[kept], rows[kept]
        return events, join.numbers[rows]


def _holds(test: Test, left: NDArray[Any], right: NDArray[Any]) -> Any:
    if test.operator in _STRINGS:
        return _STRINGS[test.operator](left, right)
    return COMPARISONS[test.operator.value](left, right)


def _plain(column: Any) -> NDArray[Any]:
    """Integers in four bytes, which the grid allows; strings as NumPy has them; missing as any."""
    if isinstance(column, np.ndarray):
        return column.astype(np.int32)
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    if pa.types.is_string(column.type):
        return np.array(column.fill_null("").to_pylist(), dtype=np.str_)
    filled: NDArray[Any] = column.fill_null(0).to_numpy(False)
    return filled.astype(np.int32)


def _by_value(values: NDArray[Any], rows: _Rows) -> dict[str, _Rows]:
    """The rows of each value."""
    if not len(values):
        return {}
    order = np.argsort(values, kind="stable")
    found, starts = np.unique(values[order], return_index=True)
    parts = np.split(rows[order], starts[1:])
    return {str(value): part for value, part in zip(found, parts, strict=True)}
