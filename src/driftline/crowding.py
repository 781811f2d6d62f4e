"""Which crowds does an engine have, and how are they told?

Of many rows at once they are told without messages one by one: see `together`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.broker.broker import Broker
from driftline.broker.stating import check_executable
from driftline.doors import Wanted, admit_statement
from driftline.errors import NotSupported
from driftline.model.advertisement import Advertisement
from driftline.model.covering import intersects
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.view import View
from driftline.stateful.entering import Items, Rows
from driftline.stateful.plan import MovedPlan, plan_of
from driftline.stateful.value_based.address import MOVED
from driftline.stateful.value_based.reformulate import pin_of

if TYPE_CHECKING:
    from driftline.crowd import Crowd, Keeper

_ANY_RADIUS = 2.0


class Crowding:
    """The crowds of an engine."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._crowds: dict[str, dict[str, tuple[str, Crowd]]] = {}

    def gather(self, keeper: Keeper, id: str, wanted: Wanted, now: int) -> Crowd:
        """Begin a crowd that nobody is in."""
        # Compiled code is loaded by those who need it.
        from driftline.crowd import Crowd
        from driftline.stateful.value_based.crowd import radius_name

        statement = admit_statement(wanted)
        if not isinstance(statement, Subscription) or statement.change is None:
            raise NotSupported(str(statement), "a crowd follows moved(…) over a table")
        tables = self._broker.tables
        view = View.of_change(statement)
        declaration = tables.get(view.source).declaration
        check_executable(view)
        parameter = radius_name(view, pin_of(view.where, declaration.key)[0])
        plan = plan_of(view, {})
        if not isinstance(plan, MovedPlan):
            raise NotSupported(str(view), "beside a crowd's moved(…) no condition has variables")
        standing = Standing.of(view, {parameter: _ANY_RADIUS}, now)
        group, members = tables.gather(id, standing, plan)
        self._broker.edge.crowds.begin(MOVED + view.source, group)
        crowd = Crowd(keeper, id, parameter, standing, members)
        self._crowds.setdefault(view.source, {})[id] = group, crowd
        return crowd

    def disperse(self, crowd: Crowd) -> None:
        """A crowd is no more."""
        table = str(crowd.statement.source)
        group, _ = self._crowds[table].pop(crowd.id)
        self._broker.edge.crowds.end(MOVED + table, group)
        self._broker.tables.disperse(table, group)

    def interested(self, says: Advertisement) -> bool:
        """Would any of them want some of what is advertised? May say yes too often."""
        crowds = (one for some in self._crowds.values() for _, one in some.values())
        return any(intersects(says, one.statement, {one.parameter: _ANY_RADIUS}) for one in crowds)

    def tell(self, table: str, cause: Event | None, now: int) -> int:
        """A row of a table has changed, by an event if it is not gone: how many are told."""
        heard = self._broker.edge.crowds
        return sum(
            crowd.hear(heard.take(MOVED + table, group), cause, now)
            for group, crowd in self._crowds.get(table, {}).values()
        )

    def take_many(self, type: str, rows: Rows, items: Items) -> int:
        """Many rows, which the table will have: how many are told."""
        return sum(
            crowd.take_many(rows, items.places_of(crowd.item))
            for _, crowd in self._crowds.get(type, {}).values()
        )

    def _check(self) -> None:
        for some in self._crowds.values():
            for _, crowd in some.values():
                crowd._check()
