"""Which pairs of rows are in a join, and what is selected of them? Slow and obvious.

Every row of the one table is tried with every row of the other: each attribute in the condition is
replaced by what it is in the row of its table, and what is left is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from driftline.model.event import Event
from driftline.model.expression import Attribute, Expression, Literal
from driftline.model.predicate import And, IsNull
from driftline.model.scope import Scope
from driftline.model.subscription import known
from driftline.model.value import Value
from driftline.model.view import View
from driftline.stateful.news import Values

Row = tuple[Value, Event]


def answer(
    view: View, params: Mapping[str, Value], source: Iterable[Row], joined: Iterable[Row]
) -> Iterator[tuple[tuple[Value, Value], Values]]:
    """The keys of each pair and its selected values, for the rows of FROM and of JOIN."""
    assert view.join is not None
    condition = And((view.join.on, view.where))
    scope = Scope(params=params)
    joined = list(joined)
    for key, row in source:
        for other_key, other in joined:
            pair = {view.source: row, view.join.table: other}
            if _filled(condition, pair).evaluate(scope) is True:
                yield (
                    (key, other_key),
                    {
                        column.name: known(_filled(column.expression, pair).evaluate(scope))
                        for column in view.columns
                    },
                )


def _filled(node: Expression, pair: Mapping[str, Event]) -> Expression:
    """The expression with every attribute replaced by its value."""
    if isinstance(node, Attribute):
        assert node.table is not None
        return Literal(Scope(pair[node.table]).attribute(node.name))
    if isinstance(node, IsNull):
        return Literal(_filled(node.operand, pair) == Literal(None))
    return node.rebuilt(tuple(_filled(child, pair) for child in node.children()))
