"""What do moved variables, and time that passes, tell of rows that stand still?

A parameter or the environment moves, and rows of a table that nobody touched satisfy a subscription
or no longer do. Who asked for that (`on_change`) is told what entered and left: of a live set of
rows, or of the last events that a table keeps. Time moves bounds too: `following` knows when.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from driftline.broker.broker import Broker
from driftline.errors import NotSupported, TableError
from driftline.following import Following
from driftline.handle import Handle, OnChange
from driftline.model.covering import Statement
from driftline.model.event import Event
from driftline.model.notification import NotificationKind
from driftline.model.rows import Values
from driftline.model.scope import Scope
from driftline.model.subscription import Subscription
from driftline.model.table import Table
from driftline.model.value import Value

NOTHING: Mapping[Value, Values] = {}


class Shifts:
    """The subscriptions of an engine, by their handles; `tell` makes a notification."""

    __slots__ = ("_broker", "_followed", "_following", "_handles", "_tell")

    def __init__(
        self, broker: Broker, handles: Mapping[str, Handle], tell: Callable[..., int]
    ) -> None:
        self._broker = broker
        self._handles = handles
        self._tell = tell
        self._following = Following()
        # By tables, those whose rows enter and leave with time.
        self._followed: dict[str, dict[str, None]] = {}

    def table_of(self, statement: Statement) -> Table:
        """The table of a subscription that asks for rows which are kept."""
        if not isinstance(statement, Subscription) or statement.change is not None:
            raise NotSupported(
                str(statement), "rows=True and on_change are for a plain filter over a table"
            )
        if statement.source is None:
            raise TableError("?", "rows=True and on_change need FROM a declared table")
        return self._broker.tables.get(statement.source)

    # Variables

    def before(self, handle: Handle, now: int) -> Mapping[Value, Values]:
        """What must be known before a variable moves, to tell of it."""
        if handle.on_change is OnChange.SILENT or handle.of_rows:
            return NOTHING
        return self._last_events(handle, now)

    def tell(self, handle: Handle, before: Mapping[Value, Values], now: int) -> int:
        """A variable has moved: tell what that made enter and leave."""
        told = 0
        if handle.on_change is not OnChange.SILENT:
            if handle.of_rows:
                told = self._reevaluate(handle, now)
            else:
                told = self._tell_between(handle, before, self._last_events(handle, now), now)
        self.follow(handle, now)
        return told

    def _reevaluate(self, handle: Handle, now: int) -> int:
        """Tell which rows entered, changed and left."""
        told = sum(
            self._tell_row(handle, key, self._scope(handle, row, now), now)
            for key, row in self.table_of(handle.statement).items()
        )
        self._broker.edge.narrow(handle.id)
        return told

    def _last_events(self, handle: Handle, now: int) -> dict[Value, Values]:
        """The rows that a subscription is satisfied by now, with what it selects of them."""
        statement = handle.statement
        assert isinstance(statement, Subscription)
        rows = self.table_of(statement).items()
        scopes = ((key, self._scope(handle, row, now)) for key, row in rows)
        return {
            key: statement.select(scope) for key, scope in scopes if statement.truth(scope) is True
        }

    def _tell_between(
        self,
        handle: Handle,
        before: Mapping[Value, Values],
        after: Mapping[Value, Values],
        now: int,
    ) -> int:
        """Tell which of the last events satisfy it now, and which no longer."""
        told = 0
        for key, values in after.items():
            if key not in before:
                told += self._tell(handle, NotificationKind.ENTER, None, values, key=key, at=now)
        for key, old in before.items():
            if key not in after:
                kind = NotificationKind.LEAVE
                told += self._tell(handle, kind, None, {}, old=old, key=key, at=now)
        return told

    def _tell_row(self, handle: Handle, key: Value, scope: Scope, at: int) -> int:
        news = self._broker.edge.views.rows(handle.id).live.take((key,), scope)
        if news is None:
            return 0
        kind, values, old = news
        return self._tell(handle, kind, None, values, old=old, key=key, at=at)

    def _scope(self, handle: Handle, row: Event, at: int) -> Scope:
        """A row seen without a new event: `now()` is the clock."""
        return handle._standing.scope(row, self._broker.environment.values, at)

    # Time

    def follow(self, handle: Handle, now: int) -> None:
        """Find out when each row enters or leaves what a subscription asks for after `now`.

        That is when it was looked at: what happens between two readings of the clock counts too.
        """
        if handle.on_change is OnChange.FOLLOW:
            table = self.table_of(handle.statement)
            self._followed.setdefault(table.declaration.name, {})[handle.id] = None
            for key, row in table.items():
                self._look(handle, key, row, now)

    def row_changed(self, table: str, key: Value, row: Event | None, at: int) -> None:
        """A row is another one, or gone: when does it enter or leave next?"""
        for id in self._followed.get(table, ()):
            self._look(self._handles[id], key, row, at)

    def _look(self, handle: Handle, key: Value, row: Event | None, at: int) -> None:
        self._following.look(handle, key, row, self._broker.environment.values, at)

    def pass_time(self, now: int) -> int:
        """Tell what has entered and left by now, as of when it did."""
        told = 0
        for at, id, key in self._following.take(now):
            handle = self._handles[id]
            row = self.table_of(handle.statement).get(key)
            assert row is not None
            told += self._tell_row(handle, key, self._scope(handle, row, at), at)
            self._look(handle, key, row, at)
        return told

    def next_at(self) -> int | None:
        """When the next row enters or leaves by itself."""
        return self._following.next_at()

    def forget(self, id: str) -> None:
        """A subscription has ended."""
        self._following.forget(id)
        for followed in self._followed.values():
            followed.pop(id, None)
