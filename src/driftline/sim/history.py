"""What did tables hold after each change of their home? As a witness at that home was told.

The witness follows all rows of each table from beside it, and what it is told says by which change.
Where it was told of a gap, nothing is known of what lies before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from driftline.model.event import Event
from driftline.model.value import Value, comparable
from driftline.sim.knowledge import Told
from driftline.stateful.news import Values

Rows: TypeAlias = tuple[tuple[Value, Event], ...]
"""Keys and rows."""
Contents: TypeAlias = Mapping[str, Rows]
Moment: TypeAlias = tuple[int, int]
"""A life of the home, and a change in it."""


NEVER: Moment = (0, 0)


class Placed(NamedTuple):
    """A row of a table, and what it was before, as far as is known."""

    key: Value
    row: Event
    earlier: tuple[Event, ...] = ()


class Change(NamedTuple):
    """What happened to one row, None: it is gone, and all rows there are then."""

    number: int
    keys: tuple[Value, ...]
    row: Event | None
    rows: tuple[Placed, ...] = ()
    known: bool = True
    """Or something happened, and nobody knows what."""


class History:
    """The rows of tables, by life and change."""

    def __init__(self, tables: tuple[str, ...]) -> None:
        self._tables = tables
        # Of each table in each life, in order: from which change on, and the rows; None: unknown.
        self._rows: dict[tuple[str, int], list[tuple[int, Rows | None]]] = {}
        self._changes: dict[tuple[str, int], list[Change]] = {}
        self.latest = NEVER
        self._seen = NEVER
        """Up to here nothing was missed."""

    def add(self, table: str, moment: Moment, told: Told) -> None:
        """The witness of a table was told something, and knows this now."""
        life, change = moment
        before = self._rows.setdefault((table, life), [])
        if not before:
            # What it was not told of was not there; unless it is told of all there is.
            before.append((0, None if told.anew else ()))
        elif told.anew and before[-1][0] < change:
            before.append((before[-1][0] + 1, None))
        rows = tuple(_row(table, keys, values) for keys, values in told.known.values())
        before.append((change, rows))
        self._note(table, moment, rows, anew=told.anew)

    def _note(self, table: str, moment: Moment, rows: Rows, *, anew: bool) -> None:
        """Note what happened to a table, if anything; what happened before a gap is not known."""
        changes = self._changes.setdefault((table, moment[0]), [])
        known = changes[-1].number if changes else 0
        if anew and moment > max((moment[0], known), self._seen):
            placed = tuple(Placed(*one) for one in rows)
            changes.append(Change(moment[1], (), None, placed, known=False))
        else:
            changes += _between(changes[-1].rows if changes else (), moment[1], rows)
        if not anew:
            self._seen = max(self._seen, moment)
        self.latest = max(self.latest, moment)

    def at(self, moment: Moment) -> Contents | None:
        """What all tables held after a change; None if that is not known."""
        life, change = moment
        found: dict[str, Rows] = {}
        for table in self._tables:
            said = self._rows.get((table, life), [(0, ())])
            rows = next(rows for since, rows in reversed(said) if since <= change)
            if rows is None:
                return None
            found[table] = rows
        return found

    def changes(self, table: str, after: Moment, upto: Moment) -> list[Change]:
        """What happened to rows of a table in one life, after a moment and up to another."""
        life, first = after
        found: list[Change] = []
        for one in self._changes.get((table, life), []):
            if first < one.number <= upto[1]:
                found.append(one)
            elif one.number > upto[1]:
                # What nobody knows may have happened any time since the change before.
                within = not found or found[-1].number < upto[1]
                return [*found, one] if within and not one.known else found
        return found

    def rows(self, table: str, moment: Moment) -> tuple[Placed, ...]:
        """The rows of a table at a moment."""
        life, number = moment
        known = reversed(self._changes.get((table, life), []))
        return next((one.rows for one in known if one.number <= number), ())

    def between(self, after: Moment, before: Moment) -> Iterator[Moment]:
        """The changes of one life that lie between two moments, both left out."""
        life, first = after
        assert life == before[0]
        changes = {
            since for table in self._tables for since, _ in self._rows.get((table, life), ())
        }
        return ((life, one) for one in sorted(changes) if first < one < before[1])


def _row(table: str, keys: tuple[Value, ...], values: Values) -> tuple[Value, Event]:
    (key,) = keys
    return key, Event(table, values)


def _between(before: tuple[Placed, ...], number: int, rows: Rows) -> list[Change]:
    """The change that makes rows of rows; there is one, unless something was not told."""
    known = {comparable(one.key): one for one in before}
    now = {comparable(key): (key, row) for key, row in rows}
    placed = {
        about: known[about]
        if about in known and known[about].row == row
        else Placed(key, row, (*known[about].earlier, known[about].row) if about in known else ())
        for about, (key, row) in now.items()
    }
    after = tuple(placed.values())
    keys = [one.key for about, one in known.items() if placed.get(about) != one]
    keys += [one.key for about, one in placed.items() if about not in known]
    if len(keys) > 1:
        return [Change(number, (), None, after, known=False)]
    return [
        Change(number, (key,), now[comparable(key)][1] if comparable(key) in now else None, after)
        for key in keys
    ]
