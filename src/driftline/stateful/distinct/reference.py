"""Which values does a DISTINCT view have over these rows? Slow and obvious.

Values are the same if they are equal in the language (1 and 1.0 are, 1 and TRUE are not); NULL is
one value, and so is an expression without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from driftline.model.event import Event
from driftline.model.scope import Scope
from driftline.model.subscription import known
from driftline.model.value import Value
from driftline.model.view import View
from driftline.stateful.news import Values, value_key


def answer(view: View, params: Mapping[str, Value], rows: Iterable[Event]) -> list[Values]:
    """Each different tuple of selected values once."""
    found: dict[tuple[object, ...], Values] = {}
    for row in rows:
        scope = Scope(row, params)
        if view.where.evaluate(scope) is True:
            values = {
                column.name: known(column.expression.evaluate(scope)) for column in view.columns
            }
            found.setdefault(tuple(map(value_key, values.values())), values)
    return list(found.values())
