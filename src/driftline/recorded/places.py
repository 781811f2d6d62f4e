"""On which shard is something remembered?

A shard is a share of the state that one worker has in its hands at a time. Plain filters need none.
The rest is where its table is:

    a table                    on the shard of its group; tables without one are in one group
                               together, so any view and any join of them finds its rows
    a table that is spread     each row on the shard of its key: moved(…) and crossed(…) follow rows
                               one by one, and their conditions are on every shard
    patterns, and moved(…)     on the shard of the subscription's id, where all events go that it
    over what is no table      may want; if events have an order of their own, all on one shard,
                               where all events go from the beginning: whether one is late depends
                               on those before it, also before anybody asked

What needs rows of several shards at once is refused when it is asked for, with the remedy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.broker.stating import stated
from driftline.errors import NotSupported, TableError
from driftline.model.covering import Statement
from driftline.model.event import Event
from driftline.model.pattern import Pattern
from driftline.model.subscription import Subscription
from driftline.model.table import TableDeclaration
from driftline.model.value import Value, microseconds_of
from driftline.model.view import View, ViewKind
from driftline.recorded.changes import Subscribe

_FOLLOWING = 0
"""The shard of all that follows events, where these have an order of their own."""


@dataclass(frozen=True, slots=True)
class Kept:
    """How a table is kept: whole, on the shard of its group, or spread by its keys."""

    declaration: TableDeclaration
    group: str = ""
    spread: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a subscription is: its shards, and the types of the events it must be shown there.

    The rows of tables come by themselves. `types` is None where it may want any.
    """

    shards: tuple[int, ...]
    types: frozenset[str] | None = frozenset()


@dataclass(frozen=True, slots=True)
class Places:
    """The shards, and where tables and subscriptions are."""

    shards: int
    tables: Mapping[str, Kept] = field(default_factory=dict)
    ordered: bool = False
    """Have events an order of their own, other than as they were recorded?"""

    @property
    def shown(self) -> tuple[tuple[None, int], ...]:
        """Who is shown all events in any case."""
        return ((None, _FOLLOWING),) if self.ordered else ()

    @property
    def everywhere(self) -> tuple[int, ...]:
        """All shards."""
        return tuple(range(self.shards))

    def table(self, name: str) -> Kept:
        """How a table is kept; TableError if there is none."""
        if name not in self.tables:
            raise TableError(name, "no such table is declared")
        return self.tables[name]

    def of_group(self, group: str) -> int:
        """Where the tables of a group are."""
        return _hash(f"group {group}") % self.shards

    def of_key(self, key: Value) -> int:
        """Where the rows with this key are, of tables that are spread."""
        # One time may come with the zones of several libraries, and 1 and 1.0 are one key.
        if isinstance(key, datetime):
            key = microseconds_of(key)
        whole = isinstance(key, float) and key.is_integer()
        return _hash(repr(int(key) if whole else key)) % self.shards

    def of_row(self, table: str, key: Value) -> int:
        """Where a row of a table is."""
        kept = self.table(table)
        return self.of_key(key) if kept.spread else self.of_group(kept.group)

    def of(self, asked: Subscribe) -> Place:
        """Where a subscription is that needs memory; NotSupported if no shard has what it needs."""
        statement = stated(asked.statement)
        if isinstance(statement, Pattern):
            return Place(self._of_id(asked.id), _types(*statement.steps))
        assert isinstance(statement, Subscription | View)
        tables = statement.tables if isinstance(statement, View) else (statement.source or "",)
        if isinstance(statement, View) and statement.of is ViewKind.MOVED:
            if statement.source not in self.tables:
                types = frozenset((statement.source,)) if statement.source else None
                return Place(self._of_id(asked.id), types)
            if self.tables[statement.source].spread:
                return Place(self.everywhere)
        return Place((self._together(asked.statement, tables),))

    def _of_id(self, id: str) -> tuple[int]:
        return (_FOLLOWING,) if self.ordered else (_hash(f"id {id}") % self.shards,)

    def _together(self, statement: Statement, tables: tuple[str, ...]) -> int:
        """The shard that has all rows of these tables."""
        kept = [self.table(name) for name in tables]
        for one in kept:
            if one.spread:
                why = (
                    f"it needs all rows of {one.declaration.name} together; keep it without spread"
                )
                raise NotSupported(str(statement), why)
        groups = {one.group for one in kept}
        if len(groups) > 1:
            why = f"{' and '.join(tables)} are in different groups; keep them in one"
            raise NotSupported(str(statement), why)
        return self.of_group(groups.pop())


@dataclass(frozen=True, slots=True)
class Share:
    """One shard's: which rows are its own. It may be shown others, for what follows events."""

    places: Places
    shard: int

    def keeps(self, table: str, key: Value) -> bool:
        """Is this row its own?"""
        return self.places.of_row(table, key) == self.shard

    def answers_for(self, event: Event) -> bool:
        """Does it say why an event was refused? Others may be shown it too."""
        kept = self.places.tables.get(event.type)
        if kept is None:
            return self.shard == _FOLLOWING
        return self.keeps(event.type, event.attributes[kept.declaration.key])

    def rows(self, table: str, keys: pa.Array) -> NDArray[np.bool_]:
        """Which rows are its own? One without a key is nobody's."""
        encoded = keys.dictionary_encode()
        kept = [self.keeps(table, key) for key in encoded.dictionary.to_pylist()]
        of: NDArray[np.bool_] = np.array([*kept, False], np.bool_)
        found: NDArray[np.bool_] = of[np.asarray(encoded.indices.fill_null(-1))]
        return found


def _types(*steps: Subscription) -> frozenset[str] | None:
    sources = [step.source for step in steps]
    return None if None in sources else frozenset(str(source) for source in sources)


def _hash(text: str) -> int:
    # The same in every process, which Python's own is not.
    return crc32(text.encode())
