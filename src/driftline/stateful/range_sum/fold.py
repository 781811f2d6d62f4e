"""When is an aggregate view told, and what? The subscriber's side.

Each change takes off what the row was, if it was in, and adds what it is, if it is in: at most one
delta. Then the gate says whether that is told.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from driftline.model.event import Event
from driftline.model.scope import Scope
from driftline.model.value import Value
from driftline.model.view import View
from driftline.stateful.cells import cell_of, values_of
from driftline.stateful.fold import Message
from driftline.stateful.news import WHEN_DIFFERENT, Gate, News
from driftline.stateful.range_sum.totals import Totals
from driftline.stateful.rows.interest import check_still
from driftline.stateful.told import Scalar, Told

_TOLD = b"driftline.told"


class Aggregates:
    """One subscription to an aggregate view: its totals, and what was last told of them."""

    __slots__ = ("_params", "_totals", "stale", "told", "view")

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
        self.told = Told(totals.values(), gate)
        self.stale = False

    def snapshot(self) -> list[News]:
        """What was last told, at first or anew."""
        return [self.told.snapshot()]

    def take(self, message: Message) -> News | None:
        """Fold in the change of a row: what to tell. O(columns)."""
        change = message.change
        was, is_now = self._has(change.old), self._has(change.new)
        if not (was or is_now):
            return None
        if was and change.old is not None:
            self._totals.add(change.old, -1)
        if is_now and change.new is not None:
            self._totals.add(change.new, 1)
        return self.told.tell(self._totals.values())

    def succeed(self, before: Scalar) -> list[News]:
        """What is told after a move: the value under the new parameters, if it is another."""
        return self.told.succeed(before.told)

    def _has(self, row: Event | None) -> bool:
        return row is not None and self.view.where.evaluate(Scope(row, self._params)) is True

    def dump(self) -> pa.Table:
        """The totals, with what was last told in the metadata."""
        return self._totals.dump().replace_schema_metadata({_TOLD: cell_of(self.told.values)})

    @classmethod
    def load(
        cls,
        view: View,
        params: Mapping[str, Value],
        table: pa.Table,
        gate: Gate = WHEN_DIFFERENT,
    ) -> Aggregates:
        """The inverse of `dump`; the parameters are the standing subscription's to keep."""
        found = cls(view, params, Totals.load(view, table), gate)
        found.told.values = values_of(table.schema.metadata[_TOLD], found.told.values)
        return found

    def _check(self) -> None:
        self._totals._check()
        told = self.told
        assert told.values.keys() == {column.name for column in self.view.columns}
        if told.gate is WHEN_DIFFERENT:
            assert not told.gate.tells(told.values, self._totals.values()), "not told of a change"
