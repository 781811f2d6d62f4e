"""Is a view one that a text could have said?

The language makes no others. One that was built by hand, or has come over a link, is looked at
before anything is done with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from driftline.model.expression import Attribute, Expression
from driftline.model.variables import walk
from driftline.model.view import Aggregate, AggregateFunction, View, ViewKind


def fault_of_view(view: View) -> str | None:
    """What is wrong with it; None if nothing is."""
    names = [column.name for column in view.columns]
    if len(set(names)) < len(names):
        return "each column under a name of its own"
    selected = [column.expression for column in view.columns]
    moves = [] if view.having is None else [view.having.value]
    conditions = [view.where, *([] if view.join is None else [view.join.on])]
    if any(isinstance(node, Aggregate) for one in conditions for node in walk(one)):
        return "aggregates among the columns only"
    if view.of is ViewKind.AGGREGATES:
        fault = _fault_of_aggregates(selected, view)
    elif moves and view.of is not ViewKind.MOVED:
        fault = "HAVING beside aggregates only"
    elif not all(isinstance(one, Attribute) for one in moves):
        fault = "an attribute that moves or crosses"
    elif any(isinstance(node, Aggregate) for one in selected for node in walk(one)):
        fault = "aggregates without other columns"
    elif view.of not in (ViewKind.ROWS, ViewKind.MOVED) and not selected:
        fault = "a column to select"
    else:
        fault = None
    return fault or _fault_of_tables(view, [*conditions, *selected, *moves])


def _fault_of_aggregates(selected: list[Expression], view: View) -> str | None:
    for one in selected:
        if not isinstance(one, Aggregate):
            return "aggregates without other columns"
        if one.argument is None and one.function is not AggregateFunction.COUNT:
            return f"an attribute in {one.function.value}"
    if view.having is not None and view.having.value not in selected:
        return "an aggregate that is selected in HAVING"
    return None


def _fault_of_tables(view: View, expressions: list[Expression]) -> str | None:
    if view.join is None:
        named = any(one.table is not None for one in _attributes(expressions))
        return "attributes without a table, of one table" if named else None
    if view.distinct or view.join.table == view.source:
        return "two tables, and no DISTINCT, in a join"
    if any(one.table not in view.tables for one in _attributes(expressions)):
        return "attributes of the tables that are joined"
    return None


def _attributes(expressions: list[Expression]) -> Iterator[Attribute]:
    return (node for one in expressions for node in walk(one) if isinstance(node, Attribute))
