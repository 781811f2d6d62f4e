"""Which pairs does Polars find?"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from driftline.bench.peers.shape import Join, Pairs, joins_of, repeats, stacked
from driftline.model.comparison import COMPARISONS
from driftline.model.constraint import Operator
from driftline.workload.prepared import Group, Test


class Polars:
    """Filters in data frames, one for each join; one thread if nobody has said otherwise."""

    def __init__(self, groups: list[Group]) -> None:
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        import polars

        self._pl: Any = polars
        self._distinct = repeats(groups)
        self._written = [(join, self._frame(join)) for join in joins_of(groups)]
        self._sorted = [
            (join, self._frame(join).sort(join.order))
            for join in stacked([join for join, _ in self._written])
        ]
        self._by_key = [
            (join, frame.partition_by(join.key.operands, as_dict=True) if join.key else frame)
            for join, frame in self._written
        ]
        self._events: Any = None
        self._columns: dict[str, Any] = {}

    def take(self, events: pa.RecordBatch) -> None:
        """A frame of the events with their number."""
        pl = self._pl
        frame = pl.from_arrow(pa.Table.from_batches([events]))
        # A hash join of plain strings is quicker than one of categories.
        self._events = frame.with_columns(pl.col(pl.Categorical).cast(pl.String)).with_row_index(
            "i"
        )
        self._columns = {
            field.name: events[field.name].to_numpy().astype(np.int32)
            for field in events.schema
            if pa.types.is_integer(field.type) and not events[field.name].null_count
        }

    def formulations(self) -> Mapping[str, Callable[[], Pairs]]:
        """As written; sorted and stacked; and key by key where there are keys."""
        ways: dict[str, Callable[[], Pairs]] = {
            "as written": lambda: self._pairs(
                [self._join(join, frame, self._events) for join, frame in self._written]
            ),
            "sorted": lambda: self._pairs(
                [self._join(join, frame, self._shaped(join)) for join, frame in self._sorted]
            ),
        }
        if any(join.key for join, _ in self._written):
            ways["per key"] = lambda: self._pairs(
                [part for join, parts in self._by_key for part in self._per_key(join, parts)]
            )
        return ways

    def _frame(self, join: Join) -> Any:
        return self._pl.from_arrow(pa.table({"id": join.numbers, **join.operands}))

    def _join(self, join: Join, filters: Any, events: Any) -> Any:
        """A hash join and a filter where there is a key, a join by ranges where there is none."""
        if join.key is not None:
            left, right = join.key.attribute, join.key.operands[0]
        elif join.shapes:
            left, right = "shape", "shape"
        else:
            return self._range_join(join, filters, events)
        conditions = [self._condition(test) for test in (*join.ranges, *join.rest)]
        return (
            events.lazy()
            .join(filters.lazy(), left_on=left, right_on=right)
            .filter(*conditions)
            .select("i", "id")
            # In the streaming engine the candidates are never all in memory.
            .collect(engine="streaming")
        )

    def _range_join(self, join: Join, filters: Any, events: Any) -> Any:
        found = events.join_where(filters, *map(self._condition, join.ranges))
        if join.rest:
            found = found.filter(*map(self._condition, join.rest))
        return found.select("i", "id")

    def _per_key(self, join: Join, parts: Any) -> list[Any]:
        if join.key is None:
            return [self._range_join(join, parts, self._events)]
        events = self._events.partition_by(join.key.attribute, as_dict=True)
        return [
            self._range_join(join, parts[key], some) for key, some in events.items() if key in parts
        ]

    def _shaped(self, join: Join) -> Any:
        """The events once in each shape, if the join has shapes."""
        if not join.shapes:
            return self._events
        count = self._events.height
        shapes = len(join.shapes)
        columns = {
            "i": np.tile(np.arange(count, dtype=np.uint32), shapes),
            "shape": np.repeat(np.arange(shapes, dtype=np.int32), count),
        }
        for at, attributes in enumerate(zip(*join.shapes, strict=True)):
            columns[f"x{at}"] = np.concatenate([self._columns[name] for name in attributes])
        return self._pl.DataFrame(columns)

    def _pairs(self, found: list[Any]) -> Pairs:
        whole = self._pl.concat(found)
        pairs = Pairs(whole["i"].to_numpy(), whole["id"].to_numpy())
        return pairs.distinct() if self._distinct else pairs

    def _condition(self, test: Test) -> Any:
        attribute = self._pl.col(test.attribute)
        if test.operator is Operator.EXISTS:
            return attribute.is_not_null()
        if test.operator is Operator.ABSENT:
            return attribute.is_null()
        operand = self._pl.col(test.operands[0])
        if test.operator is Operator.PREFIX:
            return attribute.str.starts_with(operand)
        if test.operator is Operator.SUFFIX:
            return attribute.str.ends_with(operand)
        if test.operator is Operator.SUBSTRING:
            return attribute.str.contains(operand, literal=True)
        return COMPARISONS[test.operator.value](attribute, operand)
