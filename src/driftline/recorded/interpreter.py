"""What is told of a recorded sequence? What the engine tells of it, operation by operation.

An interpreter is given entries with their numbers, in order, and says what is told of each. It has
two engines: one for tables and what is asked of them, one for what follows events (patterns, and
`moved` over what is no table). They are apart because one shard of many may have patterns over
events whose table is elsewhere; together they answer as one engine would.

Time is what the entries say: nothing here reads a clock, so the same entries give the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.broker.stating import stated
from driftline.engine import Engine
from driftline.errors import DriftlineError, InvalidValue, TableError
from driftline.handle import Handle, OnChange
from driftline.model.event import Event
from driftline.model.explanation import Explanation
from driftline.model.notification import Notification
from driftline.model.table import TableDeclaration
from driftline.model.view import View, ViewKind
from driftline.recorded.changes import Cancel, Change, Delete, Env, Restate, Set, Subscribe
from driftline.recorded.gathering import Gathering, Joining
from driftline.recorded.places import Share
from driftline.recorded.told import Row, table_of
from driftline.stateful.rows.change import check_published

Numbers = NDArray[np.int64]


class EntryClock:
    """It is as late as the entry says that is being taken."""

    __slots__ = ("us",)

    def __init__(self) -> None:
        self.us = 0

    def now(self) -> int:
        """Microseconds since 1970."""
        return self.us


class Interpreter:
    """Engines that are told a recorded sequence; all of it, or one shard's share."""

    def __init__(self, tables: Iterable[TableDeclaration], share: Share | None = None) -> None:
        self._share = share
        self._clock = EntryClock()
        self._home = Engine(self._clock)
        self._passing = Engine(self._clock)
        self._tables: Mapping[str, TableDeclaration] = {one.name: one for one in tables}
        for one in self._tables.values():
            self._home.table(one.name, one.key, {c: str(tick) for c, tick in one.ticks.items()})
        for engine in (self._home, self._passing):
            engine.redirect("", self._hear)
        self._handles: dict[str, Handle] = {}
        self._ids: dict[Handle, str] = {}
        self._heard: list[tuple[str, Notification]] = []
        self._follows_events = self._follows_time = False
        self._gathering = Gathering(self._home, self._tables)

    def take_changes(self, changes: Iterable[tuple[int, int, Change]]) -> list[Row]:
        """Changes, each with its number and time: what is told of them.

        Those who subscribe one after the other to one row may be gathered.
        """
        rows: list[Row] = []
        joining: dict[str, Joining] = {}
        for seq, time, change in changes:
            if isinstance(change, Subscribe) and self._may_join(change, joining):
                joining[change.id] = Joining(seq, time, change)
                continue
            rows += self._joined(joining)
            joining = {}
            rows += self.take(seq, time, change)
        return rows + self._joined(joining)

    def _may_join(self, asked: Subscribe, joining: Mapping[str, Joining]) -> bool:
        is_new = asked.id not in self and asked.id not in joining
        return is_new and self._gathering.fits(asked)

    def _joined(self, joining: Mapping[str, Joining]) -> list[Row]:
        if not joining:
            return []
        those = [*joining.values()]
        self._clock.us = those[0].time
        rows, alone = self._gathering.join(those)
        for seq, time, asked in alone:
            rows += self.take(seq, time, asked)
        return rows

    def __contains__(self, id: object) -> bool:
        return id in self._handles or id in self._gathering

    def take(self, seq: int, time: int, entry: Event | Change) -> list[Row]:
        """One entry, at its time: what is told of it, or why it was refused."""
        self._clock.us = time
        self._heard = []
        problem = None
        try:
            if isinstance(entry, Event):
                # One that its table refuses is told of where events are matched.
                if not self.refuses(entry):
                    self._publish(entry)
            else:
                self._change(entry)
        except DriftlineError as refused:
            problem = str(refused)
        rows = [Row(seq, nth, (id,), told) for nth, (id, told) in enumerate(self._heard)]
        if problem is not None:
            rows.append(Row(seq, len(rows), (), problem=problem))
        return rows

    def takes_many(self, type: str) -> bool:
        """Do rows of a table concern nobody who must be told of one after the other, or who is
        told of other rows too?
        """
        if self._follows_time or type not in self._tables or not self._home.hears_at_once(type):
            return False
        return not (self._follows_events and self._passing._broker.edge.concern.anybody(type))

    def take_many(
        self, type: str, seqs: Numbers, stamps: Numbers, columns: pa.RecordBatch
    ) -> list[pa.RecordBatch] | None:
        """Rows of a table at once, with their numbers and times: what is told of them.

        None, or TableError if the table refuses one of them: then nothing has changed.
        """
        key = self._tables[type].key
        if self._follows_events and self._share is not None and key in columns.schema.names:
            # Among what is shown to somebody may be rows that are kept elsewhere.
            own = self._share.rows(type, columns.column(key))
            seqs, stamps, columns = seqs[own], stamps[own], columns.filter(pa.array(own))
        if not len(seqs):
            return []
        self._clock.us = int(stamps[-1])
        rows: list[Row] = []
        listen = partial(self._hear_at, rows, seqs, stamps)
        if self._home.publish_heard(type, columns, listen) is None:
            return None
        told = [*self._gathering.rows(type, seqs, stamps, columns)]
        return [*told, table_of(rows)] if rows else told

    def _hear_at(
        self,
        rows: list[Row],
        seqs: Numbers,
        stamps: Numbers,
        place: int,
        handle: Handle,
        told: Notification,
    ) -> None:
        said = replace(_of_follower(handle, told), time=int(stamps[place]))
        rows.append(Row(int(seqs[place]), 0, (self._ids[handle],), said))

    def explain(self, id: str, event: Event) -> Explanation:
        """Why a subscription would or would not be told of an event that comes now."""
        return self._held(id).explain(event)

    def refuses(self, event: Event) -> bool:
        """Is it one that nobody may publish, or a row that its table refuses?"""
        table = self._tables.get(event.type)
        try:
            check_published(event)
            if table is not None:
                table.admit(event)
        except (InvalidValue, TableError):
            return True
        return False

    def _publish(self, event: Event) -> None:
        if self._keeps(event):
            self._home.publish(event)
            key = event.attributes[self._tables[event.type].key]
            self._heard += self._gathering.heard(event.type, key)
        if self._follows_events:
            self._passing.publish(event)

    def _keeps(self, event: Event) -> bool:
        """Is it a row of a table that is here?"""
        table = self._tables.get(event.type)
        if table is None or self._share is None or not self._is_shown_others(self._share):
            return table is not None
        return self._share.keeps(event.type, event.attributes[table.key])

    def _is_shown_others(self, share: Share) -> bool:
        return self._follows_events or share.places.ordered

    def _change(self, change: Change) -> None:
        if isinstance(change, Subscribe):
            self._subscribe(change)
        elif isinstance(change, Env):
            self._home.set_env(change.name, change.value)
            self._passing.set_env(change.name, change.value)
        elif isinstance(change, Delete):
            self._home.delete(change.table, change.key)
            self._heard += self._gathering.heard(change.table, change.key)
        elif change.id in self._gathering:
            self._change_member(change)
        elif isinstance(change, Set):
            handle = self._held(change.id)
            (handle.rebase if change.rebase else handle.set)(**change.params)
        elif isinstance(change, Restate):
            handle = self._held(change.id)
            handle._restate(change.statement, dict(change.params))
        else:
            self._cancel(change)

    def _change_member(self, change: Set | Restate | Cancel) -> None:
        if isinstance(change, Cancel):
            self._gathering.leave(change.id)
        elif isinstance(change, Restate):
            raise InvalidValue("restate", "to cancel it and subscribe again", repr(change.id))
        else:
            self._heard += self._gathering.set(change.id, change.params, self._clock.us)

    def _subscribe(self, asked: Subscribe) -> None:
        if asked.id in self:
            raise InvalidValue("id", "one that is not taken", repr(asked.id))
        if asked.start is not None:
            self._clock.us = asked.start
        engine = self._home if self._is_of_table(asked) else self._passing
        self._follows_events |= engine is self._passing
        self._follows_time |= asked.on_change is OnChange.FOLLOW
        handle = engine.subscribe(
            asked.statement, asked.params, rows=asked.rows, on_change=asked.on_change
        )
        self._handles[asked.id] = handle
        self._ids[handle] = asked.id
        self._heard = [(id or asked.id, told) for id, told in self._heard]

    def _is_of_table(self, asked: Subscribe) -> bool:
        statement = stated(asked.statement)
        if isinstance(statement, View) and statement.of is ViewKind.MOVED:
            return statement.source in self._tables
        return isinstance(statement, View) or asked.rows

    def _held(self, id: str) -> Handle:
        if id not in self._handles:
            raise InvalidValue("id", "that of a subscription", repr(id))
        return self._handles[id]

    def _cancel(self, change: Cancel) -> None:
        handle = self._held(change.id)
        handle.cancel()
        del self._handles[change.id], self._ids[handle]

    def _hear(self, handle: Handle, told: Notification) -> None:
        # Whoever subscribes is told a snapshot before its handle is known.
        self._heard.append((self._ids.get(handle, ""), _of_follower(handle, told)))

    def _check(self) -> None:
        self._home._check()
        self._gathering._check()
        self._passing._check()
        assert {handle: id for id, handle in self._handles.items()} == self._ids


def _of_follower(handle: Handle, told: Notification) -> Notification:
    """A follower is told rows one by one, from several shards if they are spread: no row is the
    last, and what it was told before, it knows.
    """
    statement = handle._standing.statement
    if isinstance(statement, View) and statement.of is ViewKind.MOVED:
        return replace(told, old=None, last=False)
    return told
