"""Which numbers does an aggregate view need, and what do they say?

One count of rows, a tally for each column that is counted or added, and the ordered values of each
whose MIN or MAX is asked for. Without those it is a few numbers however many rows there are: a home
may send them instead of the rows (`dump`, `load`), and parts of a table may be added up (`merge`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa

from driftline.model.event import Event
from driftline.model.scope import Scope
from driftline.model.subscription import known
from driftline.model.truth import Outcome
from driftline.model.value import Value
from driftline.model.view import Aggregate, AggregateFunction, View
from driftline.stateful.cells import cell_of_one, value_of_one
from driftline.stateful.news import Values
from driftline.stateful.range_sum.extremes import Extremes
from driftline.stateful.range_sum.tally import Tally

NO_TICKS: Mapping[str, Decimal] = {}

_ORDERED = (AggregateFunction.MIN, AggregateFunction.MAX)

# One row for the rows themselves (no column), one for each tally, and one for each different value
# of a column in order (`value` is set). A sum may have more digits than any integer of Arrow's.
SCHEMA = pa.schema(
    [
        ("column", pa.string()),
        ("value", pa.binary()),
        ("count", pa.int64()),
        ("floats", pa.int64()),
        ("others", pa.int64()),
        ("total", pa.string()),
        ("scale", pa.int64()),
        ("tick", pa.string()),
    ]
)


class Totals:
    """The numbers of one view's aggregates, without its condition."""

    __slots__ = ("_columns", "_extremes", "_tallies", "rows")

    def __init__(self, view: View, ticks: Mapping[str, Decimal | Fraction] = NO_TICKS) -> None:
        self._columns = tuple(
            (column.name, _aggregate(column.expression)) for column in view.columns
        )
        self.rows = 0
        self._tallies: dict[str, Tally] = {}
        self._extremes: dict[str, Extremes] = {}
        for _, aggregate in self._columns:
            if aggregate.argument is None:
                continue
            name = aggregate.argument.name
            if aggregate.function in _ORDERED:
                self._extremes.setdefault(name, Extremes())
            else:
                tick = Fraction(ticks[name]) if name in ticks else None
                self._tallies.setdefault(name, Tally(tick))

    def add(self, row: Event, times: int) -> None:
        """Count a row; -1 takes it off. O(1) for each column, see `Extremes` for MIN and MAX."""
        self.rows += times
        scope = Scope(row)
        for parts in (self._tallies, self._extremes):
            for name, part in parts.items():
                value = scope.attribute(name)
                if value is not None:
                    part.add(value, times)

    def values(self) -> Values:
        """The selected values; NULL where one is unknown."""
        return {name: known(self._value(aggregate)) for name, aggregate in self._columns}

    def _value(self, aggregate: Aggregate) -> Outcome:
        if aggregate.argument is None:
            return self.rows
        name = aggregate.argument.name
        match aggregate.function:
            case AggregateFunction.COUNT:
                return self._tallies[name].count
            case AggregateFunction.SUM:
                return self._tallies[name].sum()
            case AggregateFunction.AVG:
                return self._tallies[name].average()
            case AggregateFunction.MIN:
                return self._extremes[name].least()
            case AggregateFunction.MAX:
                return self._extremes[name].greatest()

    def merge(self, other: Totals) -> None:
        """Add what another has counted, for the same view, of other rows."""
        self.rows += other.rows
        for name, tally in other._tallies.items():
            self._tallies[name].merge(tally)
        for name, extremes in other._extremes.items():
            for value, count in extremes.items():
                self._extremes[name].add(value, count)

    def dump(self) -> pa.Table:
        """All of it, exactly, as `SCHEMA` says."""
        found: list[dict[str, object]] = [{"count": self.rows}]
        for name, tally in self._tallies.items():
            found.append(
                {
                    "column": name,
                    "count": tally.count,
                    "floats": tally.floats,
                    "others": tally.others,
                    "total": f"{tally.total:x}",
                    "scale": tally.scale,
                    "tick": None if tally.tick is None else str(tally.tick),
                }
            )
        for name, extremes in self._extremes.items():
            for value, count in extremes.items():
                found.append({"column": name, "value": cell_of_one(value), "count": count})
        return pa.Table.from_pylist(found, SCHEMA)

    @classmethod
    def load(cls, view: View, table: pa.Table) -> Totals:
        """The inverse of `dump`, for the same view."""
        rows = table.to_pylist()
        ticks = {row["column"]: Fraction(row["tick"]) for row in rows if row["tick"] is not None}
        totals = cls(view, ticks)
        for row in rows:
            if row["column"] is None:
                totals.rows = row["count"]
            elif row["value"] is not None:
                totals._extremes[row["column"]].add(value_of_one(row["value"]), row["count"])
            else:
                tally = totals._tallies[row["column"]]
                tally.count, tally.floats, tally.others = row["count"], row["floats"], row["others"]
                tally.total, tally.scale = int(row["total"], 16), row["scale"]
        return totals

    def _check(self) -> None:
        assert self.rows >= 0
        for tally in self._tallies.values():
            tally._check()
            assert tally.count <= self.rows
        for extremes in self._extremes.values():
            extremes._check()


def totals_of(
    view: View,
    params: Mapping[str, Value],
    rows: Iterable[Event],
    ticks: Mapping[str, Decimal] = NO_TICKS,
) -> Totals:
    """The totals of those of the rows that satisfy the view's condition."""
    totals = Totals(view, ticks)
    for row in rows:
        if view.where.evaluate(Scope(row, params)) is True:
            totals.add(row, 1)
    return totals


def _aggregate(expression: object) -> Aggregate:
    assert isinstance(expression, Aggregate), "the language refuses a view that mixes"
    return expression
