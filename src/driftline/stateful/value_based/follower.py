"""What does a message tell a follower of a table's values? Two folds of `States`.

`RowsFollower` gets changes of rows and finds what concerns it. `Follower` gets what the home of the
table found to concern it, or those near it, and knows its address: when that becomes another, or
is not known yet, so does what it asks the network for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa

from driftline.errors import InvalidValue
from driftline.model.event import Event
from driftline.model.notification import NotificationKind
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value, comparable
from driftline.stateful.cells import cell_of, cell_of_one, names_of, value_of_one
from driftline.stateful.fold import Message
from driftline.stateful.news import News
from driftline.stateful.rows.change import attributes_of, change_of, changed
from driftline.stateful.value_based.address import (
    GONE,
    GROUP,
    KEY,
    MOVED,
    SHIFT,
    Asked,
    box_of,
    of_group,
    relabelling_of,
)
from driftline.stateful.value_based.conditions import Move
from driftline.stateful.value_based.group import Rows
from driftline.stateful.value_based.states import NO_ENV, States, condition_of

SCHEMA = pa.schema([("row", pa.binary())])
_GROUP, _PIN, _TICK = b"driftline.group", b"driftline.pin", b"driftline.tick"
_RADIUS, _PLACE, _GENERATION = b"driftline.radius", b"driftline.place", b"driftline.generation"


class Found(NamedTuple):
    """Where a follower is found by its table's home.

    One who follows whatever satisfies a condition, and not one item, has no pin, and no place: its
    places are as many as there are items. The place of one that has not had a value, though others
    have had one, is not known before it has.
    """

    group: str
    radius: float
    pin: Value | None = None
    place: float | None = None
    generation: int = 0


class RowsFollower:
    """One subscription that finds by itself, among changes of rows, what moved."""

    __slots__ = ("_env", "_rows", "_table", "_tick", "missed", "stale", "states")

    def __init__(
        self,
        standing: Standing,
        table: str,
        rows: Rows,
        tick: Decimal | None,
        env: Mapping[str, Value],
        *,
        pinned: bool,
    ) -> None:
        """Begin with the rows that satisfy the rest of the condition, in an environment."""
        self._table = table
        self._rows = rows
        self._tick = tick
        self._env = env
        self.states = States(standing, condition_of(standing, tick))
        self.states.first = first_of(rows, pinned=pinned)
        self.stale = False
        self.missed: list[Message] = []
        """What was said before this snapshot and was not folded in."""

    def snapshot(self) -> list[News]:
        """One for each row that is told."""
        return as_snapshot(self.states.begin(_keyed(self._rows), self._env))

    def take(self, message: Message) -> News | None:
        """That a row moved, or is gone."""
        change = message.change
        if change.new is None:
            return self.states.leave(change.keys)
        if not self.states.satisfied(change.new, message.env):
            return None
        return self.states.take(change.keys, change.new, message.env)

    def succeed(self, before: RowsFollower) -> list[News]:
        """What is told by other parameters to one who knows what another was told."""
        self.states.succeed(before.states)
        # It has these parameters since it asked, whenever the answer was given.
        news = [self.take(message) for message in self.missed]
        return [*filter(None, news), *self.states.begin(_keyed(self._rows), self._env)]

    def dump(self) -> pa.Table:
        """The rows that it begins with."""
        pinned = self.states.first is NotificationKind.SNAPSHOT
        return _dumped(self._table, self._rows, {_TICK: _text(self._tick), _PIN: b"1" * pinned})

    @classmethod
    def load(cls, standing: Standing, table: str, dumped: pa.Table) -> RowsFollower:
        """The inverse of `dump`."""
        rows, said = _loaded(dumped)
        return cls(standing, table, rows, _tick(said), NO_ENV, pinned=bool(said[_PIN]))


class Follower:
    """One subscription that the home of its table knows, and finds."""

    __slots__ = (
        "_asked",
        "_rows",
        "_table",
        "_tick",
        "found",
        "missed",
        "readdressed",
        "stale",
        "states",
    )

    def __init__(
        self, standing: Standing, table: str, rows: Rows, tick: Decimal | None, found: Found
    ) -> None:
        """Begin with the rows that are to be told, as they are now."""
        condition = condition_of(standing, tick)
        assert isinstance(condition, Move)
        self._asked = condition
        if condition.may is not None:
            # What is said of it is said because somebody must be told: then one may be.
            condition = replace(condition, radius=condition.may, may=None)
        self._table = table
        self._rows = rows
        self._tick = tick
        self.found = found
        self.states = States(standing, condition)
        self.states.first = first_of(rows, pinned=found.pin is not None)
        self.stale = False
        self.missed: list[Message] = []
        """What was said before this snapshot and was not folded in."""
        self.readdressed = False
        """Does it ask the network for something else than before?"""

    def interest(self) -> Subscription:
        """What the network must bring."""
        found, type = self.found, MOVED + self._table
        if found.pin is None:
            return of_group(type, found.group, found.radius)
        if found.place is None:
            return Asked(found.group, found.pin, found.radius, 0).anywhere(type)
        asked = Asked(found.group, found.pin, found.radius, found.place, found.generation)
        return asked.interest(type)

    def snapshot(self) -> list[News]:
        """One for each row that is told."""
        return as_snapshot(self.states.begin(_keyed(self._rows), NO_ENV))

    def take(self, message: Message) -> News | None:
        """That the value moved, or that a row is gone."""
        said = message.event.attributes
        found, key = self.found, said[KEY]
        if said[GROUP] != found.group:
            return None
        if found.pin is not None and comparable(key) != comparable(found.pin):
            return None
        self._readdress(message)
        if GONE in said:
            return self.states.leave((key,))
        if SHIFT in said:
            return None
        row = message.change.new
        if row is None:
            raise InvalidValue("message", "a row", message.event.type)
        if not self._is_meant(said):
            return None
        news = self.states.take((key,), row, message.env)
        if news is not None and found.pin is not None and found.place is None:
            self.stale = True  # It has a value now, so it has a place.
        return news

    def _is_meant(self, said: Mapping[str, Value]) -> bool:
        """Is it about its two radii, if it has two?

        Of one radius the definition says who is told; of two, it is the home that decides.
        """
        may = self._asked.may
        return may is None or box_of(said).has((may, self._asked.radius))

    def _readdress(self, message: Message) -> None:
        found, relabelling = self.found, relabelling_of(message.event.attributes)
        if relabelling is None or found.pin is None or found.place is None:
            return
        asked = Asked(found.group, found.pin, found.radius, found.place, found.generation)
        after = relabelling.of(asked)
        self.readdressed = self.readdressed or after != asked
        self.found = found._replace(place=after.place, generation=after.generation)

    def succeed(self, before: Follower) -> list[News]:
        """What is told by another radius to one who knows what another was told."""
        # Until its home knew the radius it found whom to tell by the one before.
        news = [before.take(message) for message in self.missed]
        self.states.succeed(before.states)
        overdue = (
            (keys, row)
            for keys, row in _keyed(self._rows)
            if self.states.must(keys, row, self._asked)
        )
        return [*filter(None, news), *self.states.begin(overdue, NO_ENV)]

    def dump(self) -> pa.Table:
        """The rows that it begins with, and where it is found."""
        found = self.found
        said = {
            _TICK: _text(self._tick),
            _GROUP: found.group.encode(),
            _RADIUS: found.radius.hex().encode(),
            _PIN: b"" if found.pin is None else cell_of_one(found.pin),
            _PLACE: b"" if found.place is None else cell_of_one(found.place),
            _GENERATION: str(found.generation).encode(),
        }
        return _dumped(self._table, self._rows, said)

    @classmethod
    def load(cls, standing: Standing, table: str, dumped: pa.Table) -> Follower:
        """The inverse of `dump`."""
        rows, said = _loaded(dumped)
        found = Found(
            said[_GROUP].decode(),
            float.fromhex(said[_RADIUS].decode()),
            value_of_one(said[_PIN]) if said[_PIN] else None,
            value_of_one(said[_PLACE]) if said[_PLACE] else None,  # type: ignore[arg-type]
            int(said[_GENERATION]),
        )
        return cls(standing, table, rows, _tick(said), found)


def first_of(rows: Rows, *, pinned: bool) -> NotificationKind:
    """What the first that is told of a row is called behind the snapshot.

    Who follows one row that is not there yet has its snapshot when it is.
    """
    return NotificationKind.SNAPSHOT if pinned and not rows else NotificationKind.ENTER


def as_snapshot(news: list[News]) -> list[News]:
    """What is told of rows at first."""
    return [one._replace(kind=NotificationKind.SNAPSHOT) for one in news]


def _keyed(rows: Rows) -> Iterator[tuple[tuple[Value, ...], Event]]:
    return (((key,), row) for key, row in rows)


def _dumped(table: str, rows: Iterable[tuple[Value, Event]], said: dict[bytes, bytes]) -> pa.Table:
    cells = [cell_of({**attributes_of(changed(table, key, None, row))}) for key, row in rows]
    return pa.table({"row": cells}, schema=SCHEMA.with_metadata(said))


def _loaded(dumped: pa.Table) -> tuple[Rows, dict[bytes, bytes]]:
    rows: Rows = []
    for cell in dumped.column("row").to_pylist():
        change = change_of(Event.of_admitted(MOVED, names_of(cell), 0))
        assert change.new is not None
        rows.append((change.keys[0], change.new))
    return rows, dict(dumped.schema.metadata or {})


def _text(tick: Decimal | None) -> bytes:
    return b"" if tick is None else str(tick).encode()


def _tick(said: dict[bytes, bytes]) -> Decimal | None:
    return Decimal(said[_TICK].decode()) if said[_TICK] else None
