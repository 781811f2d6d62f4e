"""What did tables hold after each change of their home? As a witness at that home was told.

The witness follows all rows of each table from beside it, and what it is told says by which change.
Where it was told of a gap, nothing is known of what lies before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from driftline.model.event import Event
from driftline.model.value import Value
from driftline.sim.knowledge import Told
from driftline.stateful.news import Values

Rows: TypeAlias = tuple[tuple[Value, Event], ...]
"""Keys and rows."""
Contents: TypeAlias = Mapping[str, Rows]
Moment: TypeAlias = tuple[int, int]
"""A life of the home, and a change in it."""


class History:
    """The rows of tables, by life and change."""

    def __init__(self, tables: tuple[str, ...]) -> None:
        self._tables = tables
        # Of each table in each life, in order: from which change on, and the rows; None: unknown.
        self._rows: dict[tuple[str, int], list[tuple[int, Rows | None]]] = {}

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
