"""When does a DISTINCT view gain or lose a value? The subscriber's side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import pyarrow as pa

from driftline.errors import InvalidValue
from driftline.model.event import Event
from driftline.model.notification import NotificationKind
from driftline.model.scope import Scope
from driftline.model.subscription import known
from driftline.model.value import Value
from driftline.model.view import View
from driftline.stateful.cells import cell_of, values_of
from driftline.stateful.fold import Message
from driftline.stateful.news import News, Values, value_key
from driftline.stateful.rows.interest import check_still

SCHEMA = pa.schema([("values", pa.binary()), ("count", pa.int64())])

_Key: TypeAlias = tuple[object, ...]


class Distinct:
    """One subscription to a DISTINCT view: its values, each with the number of its rows."""

    __slots__ = ("_counts", "_params", "_values", "stale", "view")

    def __init__(self, view: View, params: Mapping[str, Value], rows: Iterable[Event] = ()) -> None:
        """Begin with a snapshot of the rows, of which `snapshot` must be told."""
        for expression in (view.where, *(column.expression for column in view.columns)):
            check_still(expression)
        self.view = view
        self._params = params
        self.stale = False
        self._counts: dict[_Key, int] = {}
        # As they were told: of those that are equal, the ones that came first.
        self._values: dict[_Key, Values] = {}
        for row in rows:
            self._add(self._selected(row))

    def snapshot(self) -> list[News]:
        """One for each value, in the order they came."""
        return [News(NotificationKind.SNAPSHOT, dict(values)) for values in self._values.values()]

    def take(self, message: Message) -> News | None:
        """Fold in the change of a row: what to tell. O(columns)."""
        change = message.change
        # The new one first, so that a row which keeps the last of its value does not lose it.
        came = self._add(self._selected(change.new))
        gone = self._take_off(self._selected(change.old))
        if came is not None and gone is not None:
            return News(NotificationKind.CHANGE, came, gone)
        if came is not None:
            return News(NotificationKind.ENTER, came)
        return None if gone is None else News(NotificationKind.LEAVE, {}, gone)

    def succeed(self, before: Distinct) -> list[News]:
        """What is told after a move, leaving first; a value that stays is known as it was told."""
        leave, enter = NotificationKind.LEAVE, NotificationKind.ENTER
        gone = [
            News(leave, {}, values)
            for key, values in before._values.items()
            if key not in self._values
        ]
        came = [
            News(enter, dict(values))
            for key, values in self._values.items()
            if key not in before._values
        ]
        self._values = {
            key: before._values.get(key, values) for key, values in self._values.items()
        }
        return gone + came

    def _selected(self, row: Event | None) -> Values | None:
        if row is None:
            return None
        scope = Scope(row, self._params)
        if self.view.where.evaluate(scope) is not True:
            return None
        return {
            column.name: known(column.expression.evaluate(scope)) for column in self.view.columns
        }

    def _add(self, values: Values | None) -> Values | None:
        """Count a row of these values; they are given back if it is the first."""
        if values is None:
            return None
        key = _key(values)
        self._counts[key] = self._counts.get(key, 0) + 1
        if key in self._values:
            return None
        self._values[key] = dict(values)
        return values

    def _take_off(self, values: Values | None) -> Values | None:
        """Take off a row of these values; what was told of them is given back if it is the last."""
        if values is None:
            return None
        key = _key(values)
        if key not in self._counts:
            raise InvalidValue("a row that goes", "values that are there", str(values))
        self._counts[key] -= 1
        if self._counts[key]:
            return None
        del self._counts[key]
        return self._values.pop(key)

    def dump(self) -> pa.Table:
        """Each value with its count, as `SCHEMA` says."""
        cells = [cell_of(values) for values in self._values.values()]
        counts = [self._counts[key] for key in self._values]
        return pa.table({"values": cells, "count": counts}, schema=SCHEMA)

    @classmethod
    def load(cls, view: View, params: Mapping[str, Value], table: pa.Table) -> Distinct:
        """The inverse of `dump`; the parameters are the standing subscription's to keep."""
        found = cls(view, params)
        names = [column.name for column in view.columns]
        for row in table.to_pylist():
            values = values_of(row["values"], names)
            found._values[_key(values)] = values
            found._counts[_key(values)] = row["count"]
        return found

    def _check(self) -> None:
        assert self._counts.keys() == self._values.keys()
        assert all(count > 0 for count in self._counts.values())
        assert all(_key(values) == key for key, values in self._values.items())


def _key(values: Values) -> _Key:
    return tuple(map(value_key, values.values()))
