"""Which pairs does DuckDB find?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from driftline.bench.peers.shape import Join, Pairs, joins_of, repeats, stacked
from driftline.model.constraint import Operator
from driftline.workload.prepared import Group, Test

_STRINGS = {
    Operator.PREFIX: "starts_with",
    Operator.SUFFIX: "suffix",
    Operator.SUBSTRING: "contains",
}


class DuckDb:
    """Filters in tables, one for each join; one thread."""

    def __init__(self, groups: list[Group]) -> None:
        import duckdb

        self._connection = duckdb.connect()
        for setting in ("threads = 1", "preserve_insertion_order = false"):
            self._connection.execute(f"SET {setting}")
        self._distinct = repeats(groups)
        written = joins_of(groups)
        best = stacked(written)
        # The attributes of stacked joins; events carry their values in an array, too.
        self._slots = sorted({name for join in best for shape in join.shapes for name in shape})
        self._written = [
            self._query(join, self._table(f"written_{at}", join)) for at, join in enumerate(written)
        ]
        self._sorted = [
            self._query(join, self._table(f"sorted_{at}", join, join.order))
            for at, join in enumerate(best)
        ]

    def take(self, events: pa.RecordBatch) -> None:
        """A table `e` of the events with their number."""
        number = pa.array(np.arange(events.num_rows, dtype=np.int32))
        values = ", ".join(f'"{name}"' for name in self._slots) or "NULL"
        self._create("e", pa.table(events.append_column("i", number)), f"*, [{values}] AS v")

    def formulations(self) -> Mapping[str, Callable[[], Pairs]]:
        """As written, or sorted and stacked."""
        return {
            "as written": lambda: self._pairs(self._written),
            "sorted": lambda: self._pairs(self._sorted),
        }

    def _table(self, name: str, join: Join, order: tuple[str, ...] = ()) -> str:
        filters = pa.table({"id": join.numbers, **join.operands})
        # Sorting is for the best form; there integers are as narrow as the grid allows, too.
        columns = [
            f'"{field.name}"::INTEGER AS "{field.name}"'
            if order and pa.types.is_integer(field.type)
            else f'"{field.name}"'
            for field in filters.schema
        ]
        by = f"ORDER BY {', '.join(order)}" if order else ""
        self._create(name, filters, ", ".join(columns), by)
        if join.shapes:
            # Where each shape's attributes stand in the array, which counts from 1.
            places = np.array([[self._slots.index(a) for a in shape] for shape in join.shapes]) + 1
            slots = {f"p{k}": column for k, column in enumerate(places.T.astype(np.int32))}
            shape = np.arange(len(join.shapes), dtype=np.int32)
            self._create(f"{name}_shape", pa.table({"shape": shape, **slots}), "*")
        return name

    def _create(self, name: str, incoming: pa.Table, columns: str, rest: str = "") -> None:
        self._connection.register("incoming", incoming)
        self._connection.execute(
            f"CREATE OR REPLACE TABLE {name} AS SELECT {columns} FROM incoming {rest}"
        )
        self._connection.unregister("incoming")

    def _query(self, join: Join, table: str) -> str:
        conditions = [_condition(test) for test in join.tests]
        events = "e"
        if join.shapes:
            conditions.insert(0, "e.shape = g.shape")
            values = ", ".join(f"v[p{k}]::INTEGER AS x{k}" for k in range(len(join.shapes[0])))
            events = f"(SELECT i, shape, {values} FROM e, {table}_shape) e"
        return f"SELECT e.i, g.id FROM {events} JOIN {table} g ON {' AND '.join(conditions)}"

    def _pairs(self, queries: list[str]) -> Pairs:
        found: list[Any] = [self._connection.sql(query).to_arrow_table() for query in queries]
        whole = pa.concat_tables(found)
        pairs = Pairs(whole["i"].to_numpy(), whole["id"].to_numpy())
        return pairs.distinct() if self._distinct else pairs


def _condition(test: Test) -> str:
    attribute = f'e."{test.attribute}"'
    if not test.operands:
        return f"{attribute} {test.operator.value}"
    operand = f'g."{test.operands[0]}"'
    if test.operator in _STRINGS:
        return f"{_STRINGS[test.operator]}({attribute}, {operand})"
    return f"{attribute} {test.operator.value} {operand}"
