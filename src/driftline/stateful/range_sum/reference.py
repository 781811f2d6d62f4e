"""What is the answer of an aggregate view over these rows? Slow and obvious.

- Rows count for which the condition is true; NULL in a column is passed over.
- COUNT of no rows is 0, every other aggregate of none is NULL.
- SUM is an integer if all its values are, otherwise a float: the exact sum, rounded once. Values of
  a column with ticks are the decimals they were written as. AVG is a float: the exact sum divided
  by the count, rounded once.
- What has no value is unknown, and told as NULL: a sum of anything but numbers, one that is beyond
  64 bits (in integers, or counted in ticks) or beyond the floats; the AVG where the SUM is; the MIN
  and MAX of values that do not compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction

from driftline.model.event import Event
from driftline.model.expression import Expression
from driftline.model.scope import Scope
from driftline.model.value import INTEGER_MAX, INTEGER_MIN, Kind, Value, kind_of
from driftline.model.view import Aggregate, AggregateFunction, View
from driftline.stateful.news import Values


def answer(
    view: View,
    params: Mapping[str, Value],
    rows: Iterable[Event],
    ticks: Mapping[str, Decimal],
) -> Values:
    """The selected values of the view."""
    inside = [row for row in rows if view.where.evaluate(Scope(row, params)) is True]
    return {column.name: _aggregate(column.expression, inside, ticks) for column in view.columns}


def _aggregate(
    aggregate: Expression, rows: list[Event], ticks: Mapping[str, Decimal]
) -> Value | None:
    assert isinstance(aggregate, Aggregate)
    if aggregate.argument is None:
        return len(rows)
    name = aggregate.argument.name
    found = (Scope(row).attribute(name) for row in rows)
    values = [value for value in found if value is not None]
    if aggregate.function is AggregateFunction.COUNT:
        return len(values)
    if not values or len({kind_of(value) for value in values}) > 1:
        return None
    if aggregate.function is AggregateFunction.MIN:
        return min(values)  # of one kind, so they compare
    if aggregate.function is AggregateFunction.MAX:
        return max(values)
    if kind_of(values[0]) is not Kind.NUMBER:
        return None
    return _sum(values, ticks.get(name), len(values), aggregate.function is AggregateFunction.AVG)


def _sum(
    values: list[Value], tick: Decimal | None, count: int, average: bool
) -> int | float | None:
    if tick is None:
        total = sum((Fraction(value) for value in values), Fraction())  # type: ignore[arg-type]
    else:
        total = sum((Fraction(repr(value)) for value in values), Fraction())
    whole = all(type(value) is int for value in values)
    underneath = total if tick is None else total / Fraction(tick)
    if (whole or tick is not None) and not INTEGER_MIN <= underneath <= INTEGER_MAX:
        return None
    try:
        rounded = float(total)
    except OverflowError:
        return None
    if average:
        return float(total / count)
    return int(total) if whole else rounded
