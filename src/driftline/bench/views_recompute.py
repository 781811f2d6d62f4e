"""What would one do instead? Keep views right with a database.

DuckDB and SQLite hold the tuples and the views in two tables, in memory, and hear of an update:

- *recomputed*: every view whose range the tuple is in is computed again. So one would write it.
- *by hand*: the minimum of each view is kept beside it. One that is above the new y gets it; one
  that was the old y is computed again. So one would write it after a look at the first.

SQLite has an index on x with y and one on the ends of ranges, and is asked in the form that it is
faster with; DuckDB has one thread. A few updates must stand for all, as each may take seconds: they
are those in the middle of equal parts of a stream that is sorted by how many views are around the
tuple. Minima must be those that our structure gives, and the views that changed those that our
messages reach.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import fmean
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from driftline.bench.views_told import Told
from driftline.bench.views_update import table_of
from driftline.stateful.range_min.blocks import Blocks
from driftline.workload.stocks import Floats, Stocks

RECOMPUTED, BY_HAND = "recomputed", "by hand"
UPDATES = {RECOMPUTED: 3, BY_HAND: 50}

_AROUND = "low <= $x AND high >= $x"
_LEAST = "(SELECT min(y) FROM tuples WHERE x BETWEEN low AND high)"
_JOINED = (
    "SELECT view.id, min(y) FROM view JOIN tuples ON x BETWEEN low AND high "
    f"WHERE {_AROUND} GROUP BY view.id"
)
_NESTED = f"SELECT id, {_LEAST} FROM view WHERE {_AROUND}"
_FALL = f"UPDATE view SET least = $new WHERE {_AROUND} AND least > $new RETURNING id, least"
_RISE = f"UPDATE view SET least = {_LEAST} WHERE {_AROUND} AND least = $old RETURNING id, least"
_CHANGE = "UPDATE tuples SET y = $new WHERE id = $id"

Minima: TypeAlias = dict[int, float]
"""Of views, by their number."""
Ask: TypeAlias = Callable[[str, dict[str, float]], list[tuple[int, float]]]
"""Runs a statement with its values; the rows it gives."""


@dataclass(frozen=True, slots=True)
class Measured:
    """CPU seconds an update, and how many views are around its tuple."""

    seconds: float
    updates: int
    views_around: float


@dataclass(frozen=True, slots=True)
class _Step:
    """An update, the minima of the views around its tuple afterwards, and those that changed."""

    id: int
    x: float
    old: float
    new: float
    around: Minima
    changed: Minima


class Recomputing:
    """A few updates with their answers, and how long an engine takes for them in one way."""

    def __init__(self, way: str, drawn: Stocks, low: Floats, high: Floats) -> None:
        self._way, self._drawn, self._low, self._high = way, drawn, low, high
        blocks = Blocks.load(table_of(drawn))
        minima = (blocks.minimum(*ends) for ends in zip(low.tolist(), high.tolist(), strict=True))
        self._least = [np.inf if one is None else one for one in minima]
        self._steps = list(self._answered(blocks))

    def measured(self, engine: str) -> Measured | None:
        """By one engine; None if it is not installed."""
        if find_spec(_MODULES[engine]) is None:
            return None
        ask = _ENGINES[engine](self._drawn, self._low, self._high, self._least)
        times = []
        for step in self._steps:
            start = time.process_time()
            ask(_CHANGE, {"id": step.id, "new": step.new})
            if self._way == RECOMPUTED:
                found = dict(ask(_QUERIES[engine], {"x": step.x}))
            elif step.new < step.old:
                found = dict(ask(_FALL, {"x": step.x, "new": step.new}))
            else:
                found = dict(ask(_RISE, {"x": step.x, "old": step.old}))
            times.append(time.process_time() - start)
            if self._way == RECOMPUTED:
                expected = step.around
            else:  # Another tuple may have had the old y.
                expected = step.changed
                found = {view: least for view, least in found.items() if least != step.old}
            assert found == expected, f"{engine}, {self._way}: other minima"
        around = fmean(len(step.around) for step in self._steps)
        return Measured(fmean(times), len(times), around)

    def _answered(self, blocks: Blocks) -> Iterator[_Step]:
        """The updates, made by our structure one after the other."""
        told = Told(self._low, self._high)
        ys = self._drawn.points[:, 1].copy()
        before = np.array(self._least)
        updates = self._drawn.updates
        for at in self._chosen():
            id = int(updates.ids[at])
            x, new = updates.points[at].tolist()
            messages = blocks.change_many(updates.ids[at : at + 1], updates.points[at : at + 1])
            views = np.flatnonzero((self._low <= x) & (self._high >= x)).tolist()
            around = {view: self._minimum(blocks, view) for view in views}
            changed = {view: least for view, least in around.items() if least != before[view]}
            found = told.find(messages)
            assert {int(name) for _, name in found} == changed.keys(), "not those that changed"
            yield _Step(id, x, float(ys[id]), new, around, changed)
            ys[id] = new
            before[list(changed)] = list(changed.values())

    def _minimum(self, blocks: Blocks, view: int) -> float:
        least = blocks.minimum(float(self._low[view]), float(self._high[view]))
        assert least is not None, "the tuple itself is in it"
        return least

    def _chosen(self) -> list[int]:
        """Where in the stream those are that stand for the others."""
        x = self._drawn.updates.points[:, 0]
        begun = np.searchsorted(np.sort(self._low), x, side="right")
        around = begun - np.searchsorted(np.sort(self._high), x)
        order = np.argsort(around, kind="stable")
        count = UPDATES[self._way]
        middles = (np.arange(count) + 0.5) / count * len(order)
        return sorted(order[middles.astype(np.int64)].tolist())


def _duckdb(drawn: Stocks, low: Floats, high: Floats, least: list[float]) -> Ask:
    import duckdb

    connection = duckdb.connect()
    # In an interactive Python a long query would draw its progress where figures are printed.
    for setting in ("threads = 1", "enable_progress_bar = false"):
        connection.execute(f"SET {setting}")
    views = {"id": np.arange(len(low)), "low": low, "high": high, "least": least}
    for name, incoming in (("tuples", table_of(drawn)), ("view", pa.table(views))):
        connection.register("incoming", incoming)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
        connection.unregister("incoming")
    return lambda text, values: connection.execute(text, values).fetchall()


def _sqlite(drawn: Stocks, low: Floats, high: Floats, least: list[float]) -> Ask:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE tuples (id INTEGER PRIMARY KEY, x REAL, y REAL)")
    connection.execute(
        "CREATE TABLE view (id INTEGER PRIMARY KEY, low REAL, high REAL, least REAL)"
    )
    rows = zip(*(column.to_pylist() for column in table_of(drawn).columns), strict=True)
    connection.executemany("INSERT INTO tuples VALUES (?, ?, ?)", rows)
    views = zip(range(len(low)), low.tolist(), high.tolist(), least, strict=True)
    connection.executemany("INSERT INTO view VALUES (?, ?, ?, ?)", views)
    connection.execute("CREATE INDEX by_x ON tuples (x, y)")
    connection.execute("CREATE INDEX by_ends ON view (low, high, least)")
    return lambda text, values: connection.execute(text, values).fetchall()


_ENGINES = {"duckdb": _duckdb, "sqlite": _sqlite}
_MODULES = {"duckdb": "duckdb", "sqlite": "sqlite3"}
_QUERIES = {"duckdb": _JOINED, "sqlite": _NESTED}
ENGINES = tuple(_ENGINES)
