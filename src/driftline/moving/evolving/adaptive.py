"""Whichever way is least work for what has been seen lately [EVOLVE IV.C, left open there].

What an event costs each way depends on how many rows there are and on how many events share one set
of versions: that many come within an interval, fewer if a shared variable changes sooner.

    lazy        rows × LOOK
    cached      rows × (GLANCE + WIDEN / events)
    versioned   FIND + found × EACH + rows × CHANGE / events + touched × TOUCH

where `found` rows satisfy an event and `touched` rows are new or have other values since the last
one. The prices are measured (`driftline bench evolving`), in nanoseconds, for bounds that few rows
keep. They need not be exact: what every other way would have saved is added up, and one is taken
when that has come to what it costs to begin it, and to begin the present one again. So no choice
loses much more than it has gained, and a burst of events or of changes is not taken for a habit.

It is all counted, and no clock is read: the same events lead to the same choices.
"""

from __future__ import annotations

from dataclasses import dataclass

from driftline.moving.evolving.arrays import Floats
from driftline.moving.evolving.cached import Cached
from driftline.moving.evolving.family import Family, Moment, Sheet
from driftline.moving.evolving.lazy import Lazy
from driftline.moving.evolving.plan import Plan
from driftline.moving.evolving.versioned import Versioned
from driftline.moving.evolving.ways import Found, Way

LOOK = 4.6
GLANCE = 3.3
WIDEN = 18.0
FIND = 7_000.0
EACH = 250.0
CHANGE = 900.0
TOUCH = 5_000.0
BEGIN = {"lazy": 0.0, "cached": WIDEN, "versioned": 1_000.0}
"""What a row costs when a way is taken: in an index, what it costs to be added beyond a change."""

_LOOKS = 32
"""So many events are counted before the choice is thought over."""


@dataclass(slots=True)
class Seen:
    """What has been counted since the choice was last thought over."""

    first: int = 0
    events: int = 0
    switches: int = 0
    touched: int = 0
    found: int = 0


class Adaptive:
    """The way of one family, which may change."""

    __slots__ = ("_interval", "_plan", "_saved", "_seen", "_sheet", "_way", "why")

    def __init__(self, interval: int, plan: Plan) -> None:
        self._interval = interval
        self._plan = plan
        self._way: Way = Lazy()
        self.why = "nothing has been seen yet"
        self._seen = Seen()
        self._sheet: Sheet | None = None
        # What each way would have saved beside the present one, never below nothing.
        self._saved = dict.fromkeys(BEGIN, 0.0)

    @property
    def name(self) -> str:
        """The way that is taken now."""
        return self._way.name

    def look(self, family: Family, sheet: Sheet, moment: Moment, x: Floats, first: bool) -> Found:
        """The rows whose bounds hold, for sure or perhaps."""
        seen = self._seen
        if seen.events == 0:
            seen.first = moment.at
        seen.events += 1
        seen.switches += self._sheet is not None and sheet is not self._sheet
        self._sheet = sheet
        if seen.events >= _LOOKS:
            self._think(len(family), moment.at)
        found = self._way.look(family, sheet, moment, x, first)
        self._seen.found += len(found[0])
        return found

    def _think(self, rows: int, at: int) -> None:
        """Has another way become worth it?"""
        seen, now = self._seen, self._way.name
        self._seen = Seen()
        intervals = abs(at - seen.first) / self._interval
        together = max(1.0, (seen.events - 1) / max(intervals, seen.switches, 1e-9))
        costs = prices(rows, together, seen.found / seen.events, seen.touched / seen.events)
        self.why = _said(rows, together, costs)
        for name, cost in costs.items():
            more = seen.events * (costs[now] - cost)
            self._saved[name] = max(0.0, self._saved[name] + more)
        best = max(BEGIN, key=lambda name: self._saved[name] - rows * BEGIN[name])
        if self._saved[best] > rows * (BEGIN[best] + BEGIN[now]):
            self._way = self._made(best)
            self._saved = dict.fromkeys(BEGIN, 0.0)

    def _made(self, name: str) -> Way:
        if name == "lazy":
            return Lazy()
        return Cached(self._interval) if name == "cached" else Versioned(self._interval, self._plan)

    def touch(self, name: str) -> None:
        """A row is new or has other values."""
        self._seen.touched += 1
        self._way.touch(name)

    def forget(self, name: str) -> None:
        """A row is gone."""
        self._way.forget(name)

    def _check(self, family: Family) -> None:
        self._way._check(family)


def prices(rows: int, together: float, found: float, touched: float) -> dict[str, float]:
    """What an event costs each way, in nanoseconds, if so many share a version."""
    return {
        "lazy": rows * LOOK,
        "cached": rows * (GLANCE + WIDEN / together),
        "versioned": FIND + found * EACH + rows * CHANGE / together + touched * TOUCH,
    }


def _said(rows: int, together: float, costs: dict[str, float]) -> str:
    each = ", ".join(f"{name} {cost / 1000:.0f}" for name, cost in costs.items())
    return f"{rows} rows, {together:.0f} events to a version: {each} µs an event"
