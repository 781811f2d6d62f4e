"""What does a change of a row, or of a pair, tell somebody who follows a set of them?

What counts is what was told (`LiveRows`, the definition): that a row entered is known from the
message, but after a move of the subscription's own bound only from what was told before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from driftline.model.event import Event
from driftline.model.notification import NotificationKind
from driftline.model.rows import Keys, LiveRows, equal_values
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value, comparable
from driftline.stateful.cells import cell_of, names_of
from driftline.stateful.fold import Message
from driftline.stateful.news import News, Values

SCHEMA = pa.schema([("keys", pa.binary()), ("values", pa.binary())])


class RowSet:
    """One subscription to a set of rows, or of pairs of rows.

    The keys of a pair are `turned` where the subscriber has written its tables the other way round.
    """

    __slots__ = ("_standing", "_turned", "live", "stale")

    def __init__(self, rows: Subscription, standing: Standing, *, turned: bool = False) -> None:
        """With nothing told yet: `fill` or `load` begins it."""
        self.live = LiveRows(rows)
        self._standing = standing
        self._turned = turned
        self.stale = False

    def fill(self, rows: Iterable[tuple[Keys, Event]], env: Mapping[str, Value], now: int) -> None:
        """Begin with these rows as they stand now."""
        for keys, row in rows:
            self.live.take(keys, self._standing.scope(row, env, now))

    def snapshot(self) -> list[News]:
        """One for each row, in the order they came."""
        return [
            self._news(NotificationKind.SNAPSHOT, values, None, keys)
            for keys, values in self.live.told()
        ]

    def take(self, message: Message) -> News | None:
        """That the row entered, changed or left, or nothing."""
        change = message.change
        scope = None if change.new is None else self._standing.scope(change.new, message.env)
        news = self.live.take(change.keys, scope)
        if news is None:
            return None
        kind, values, old = news
        return self._news(kind, values, old, change.keys)

    def moved(self, standing: Standing) -> None:
        """Its parameters moved and nothing is told of that; the next changes will be."""
        self._standing = standing

    def succeed(self, before: RowSet) -> list[News]:
        """Which rows left, entered and changed between the two."""
        known = {tuple(map(comparable, keys)): values for keys, values in before.live.told()}
        now = {tuple(map(comparable, keys)) for keys, _ in self.live.told()}
        news = [
            self._news(NotificationKind.LEAVE, {}, values, keys)
            for keys, values in before.live.told()
            if tuple(map(comparable, keys)) not in now
        ]
        for keys, values in self.live.told():
            old = known.get(tuple(map(comparable, keys)))
            if old is None:
                news.append(self._news(NotificationKind.ENTER, values, None, keys))
            elif not equal_values(old, values):
                news.append(self._news(NotificationKind.CHANGE, values, old, keys))
        return news

    def _news(self, kind: NotificationKind, values: Values, old: Values | None, keys: Keys) -> News:
        return News(kind, values, old, keys[::-1] if self._turned else keys)

    def dump(self) -> pa.Table:
        """The rows it has told, with their keys."""
        told = list(self.live.told())
        keys = [cell_of({str(at): key for at, key in enumerate(keys)}) for keys, _ in told]
        return pa.table({"keys": keys, "values": [cell_of(one) for _, one in told]}, schema=SCHEMA)

    def load(self, table: pa.Table) -> None:
        """Begin with what another has dumped."""
        names = [column.name for column in self.live.subscription.columns]
        for row in table.to_pylist():
            values: Values = dict(names_of(row["values"]))
            if names:
                # A selected column without a value is there, and NULL.
                values = {name: values.get(name) for name in names}
            self.live.tell(tuple(names_of(row["keys"]).values()), values)
