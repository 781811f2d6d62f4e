"""Why does an event match a subscription at this broker, or not?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.broker.views import states_of
from driftline.errors import NotSupported
from driftline.model.event import Event
from driftline.model.explanation import Explanation, explain, explain_pattern, explain_told
from driftline.model.pattern import Pattern, SequenceMatcher
from driftline.model.standing import Standing
from driftline.model.value import Value
from driftline.model.view import View

if TYPE_CHECKING:
    from driftline.broker.broker import Broker


def explained(
    broker: Broker, id: str, event: Event, standing: Standing | None = None
) -> Explanation:
    """Each condition and the values it saw, as the subscription stands now, or once stood."""
    standing = standing or broker.edge.standing(id)
    held = standing.statement
    statement = held.asked() if isinstance(held, View) else held
    scope = standing.scope(event, broker.environment.values)
    if isinstance(statement, Pattern):
        sequence = broker.edge.sequence(id) or SequenceMatcher(statement)
        return explain_pattern(sequence, scope)
    if isinstance(statement, View):
        why = "a view follows a table: single events do not match it"
        raise NotSupported(str(statement), why)
    if statement.change is not None:
        states = broker.edge.views.states(id) or states_of(standing)
        # One that asks for any type has one state, whatever the rows of tables are.
        keys: tuple[Value, ...] = ()
        if statement.source and _may_see_keys(broker, id, statement.source):
            keys = broker.tables.keys_of(event)
        return explain_told(statement, scope, states.explain(keys, event))
    return explain(statement, scope)


def _may_see_keys(broker: Broker, id: str, table: str) -> bool:
    """May it be told which row has which value? As of what is told: who may see everything."""
    owner = broker.edge.owner(id)
    return owner is not None and broker.access.sight(owner, table, kept=True).is_all
