"""When is an aggregate view told, and what? The subscriber's side.

Each change takes off what the row was, if it was in, and adds what it is, if it is in: at most one
delta. Then the gate says whether that is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import pyarrow as pa

from driftline.model.event import Event
from driftline.model.notification import NotificationKind
from driftline.model.scope import Scope
from driftline.model.value import Value
from driftline.model.view import View
from driftline.stateful.cells import cell_of, values_of
from driftline.stateful.news import WHEN_DIFFERENT, Gate, News, Values
from driftline.stateful.range_sum.totals import NO_TICKS, Totals
from driftline.stateful.rows.change import Change
from driftline.stateful.rows.interest import check_still

_TOLD = b"driftline.told"


class Aggregates:
    """One subscription to an aggregate view: its totals, and what was last told of them."""

    __slots__ = ("_gate", "_params", "_told", "_totals", "view")

    def __init__(
        self,
        view: View,
        params: Mapping[str, Value],
        totals: Totals,
        gate: Gate = WHEN_DIFFERENT,
    ) -> None:
        """Begin with the totals of a snapshot, of which `snapshot` must be told."""
        check_still(view.where)
        self.view = view
        self._params = params
        self._totals = totals
        self._gate = gate
        self._told = totals.values()

    def snapshot(self) -> News:
        """What was last told, at first or anew: exactly one, also when all of it is NULL."""
        return News(NotificationKind.SNAPSHOT, dict(self._told))

    def take(self, change: Change) -> News | None:
        """Fold in the change of a row: what to tell. O(columns)."""
        was, is_now = self._has(change.old), self._has(change.new)
        if not (was or is_now):
            return None
        if was and change.old is not None:
            self._totals.add(change.old, -1)
        if is_now and change.new is not None:
            self._totals.add(change.new, 1)
        return self._tell()

    def move(self, params: Mapping[str, Value], totals: Totals) -> News | None:
        """The parameters moved, and these are the totals under them: what to tell."""
        self._params = params
        self._totals = totals
        return self._tell()

    def _has(self, row: Event | None) -> bool:
        return row is not None and self.view.where.evaluate(Scope(row, self._params)) is True

    def _tell(self) -> News | None:
        now = self._totals.values()
        if not self._gate.tells(self._told, now):
            return None
        old, self._told = self._told, now
        # Copies, because what is told belongs to the subscriber.
        return News(NotificationKind.CHANGE, dict(now), dict(old))

    def dump(self) -> pa.Table:
        """The totals, with what was last told in the metadata."""
        return self._totals.dump().replace_schema_metadata({_TOLD: cell_of(self._told)})

    @classmethod
    def load(
        cls,
        view: View,
        params: Mapping[str, Value],
        table: pa.Table,
        ticks: Mapping[str, Decimal] = NO_TICKS,
        gate: Gate = WHEN_DIFFERENT,
    ) -> Aggregates:
        """The inverse of `dump`; the parameters are the standing subscription's to keep."""
        found = cls(view, params, Totals.load(view, table, ticks), gate)
        found._told = values_of(table.schema.metadata[_TOLD], found._told)
        return found

    def told(self) -> Values:
        """What was last told."""
        return dict(self._told)

    def _check(self) -> None:
        self._totals._check()
        assert self._told.keys() == {column.name for column in self.view.columns}
        if self._gate is WHEN_DIFFERENT:
            assert not self._gate.tells(self._told, self._totals.values()), "not told of a change"
