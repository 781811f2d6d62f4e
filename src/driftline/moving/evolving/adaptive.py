"""Whichever way is least work for what has been seen lately [EVOLVE IV.C, left open there].

What an event costs each way depends on how many rows there are and on how many events share one set
of versions: that many come within an interval, fewer if a shared variable changes sooner.

    lazy        rows × LOOK
    cached      rows × (GLANCE + WIDEN / events)
    versioned   FIND + rows × CHANGE / events + what rows that move by themselves cost

The prices are measured, in nanoseconds, and need not be exact: another way is taken only when it
promises a good deal less twice in a row. It is all counted, and no clock is read: the same events
lead to the same choices.
"""

from __future__ import annotations

from driftline.moving.evolving.arrays import Floats
from driftline.moving.evolving.cached import Cached
from driftline.moving.evolving.family import Family, Moment, Sheet
from driftline.moving.evolving.lazy import Lazy
from driftline.moving.evolving.plan import Plan
from driftline.moving.evolving.versioned import Versioned
from driftline.moving.evolving.ways import Found, Way

LOOK = 4.0
GLANCE = 3.0
WIDEN = 12.0
FIND = 25_000.0
CHANGE = 2_000.0
TOUCH = 30_000.0
"""What a row that has other values costs an index."""

_LOOKS = 32
"""So many events are counted before the choice is thought over."""

_WORTH = 0.7
_SURE = 2


class Adaptive:
    """The way of one family, which may change."""

    __slots__ = (
        "_events",
        "_first",
        "_interval",
        "_plan",
        "_sheet",
        "_switches",
        "_tempted",
        "_touched",
        "_way",
        "why",
    )

    def __init__(self, interval: int, plan: Plan) -> None:
        self._interval = interval
        self._plan = plan
        self._way: Way = Lazy()
        self.why = "nothing has been seen yet"
        self._begin(0)
        self._sheet: Sheet | None = None
        self._tempted: tuple[str, int] = ("", 0)

    def _begin(self, at: int) -> None:
        self._first = at
        self._events = 0
        self._switches = 0
        self._touched = 0

    @property
    def name(self) -> str:
        """The way that is taken now."""
        return self._way.name

    def look(self, family: Family, sheet: Sheet, moment: Moment, x: Floats, first: bool) -> Found:
        """The rows whose bounds hold, for sure or perhaps."""
        if self._events == 0:
            self._first = moment.at
        self._events += 1
        self._switches += self._sheet is not None and sheet is not self._sheet
        self._sheet = sheet
        if self._events >= _LOOKS:
            self._think(len(family), moment.at)
        return self._way.look(family, sheet, moment, x, first)

    def _think(self, rows: int, at: int) -> None:
        """Is another way worth it?"""
        intervals = abs(at - self._first) / self._interval
        together = self._events / max(intervals, self._switches, 1e-9)
        together = max(1.0, together)
        costs = prices(rows, together, self._touched / self._events)
        best = min(costs, key=costs.__getitem__)
        now = self._way.name
        self.why = (
            f"{rows} rows, {together:.0f} events to a version: "
            + ", ".join(f"{name} {cost / 1000:.0f}" for name, cost in costs.items())
            + " µs an event"
        )
        self._begin(at)
        if best == now or costs[best] > _WORTH * costs[now]:
            self._tempted = ("", 0)
            return
        times = self._tempted[1] + 1 if self._tempted[0] == best else 1
        self._tempted = (best, times)
        if times >= _SURE:
            self._tempted = ("", 0)
            self._way = self._made(best)

    def _made(self, name: str) -> Way:
        if name == "lazy":
            return Lazy()
        return Cached(self._interval) if name == "cached" else Versioned(self._interval, self._plan)

    def touch(self, name: str) -> None:
        """A row is new or has other values."""
        self._touched += 1
        self._way.touch(name)

    def forget(self, name: str) -> None:
        """A row is gone."""
        self._way.forget(name)

    def _check(self, family: Family) -> None:
        self._way._check(family)


def prices(rows: int, together: float, touched: float) -> dict[str, float]:
    """What an event costs each way, in nanoseconds, if so many share a version."""
    return {
        "lazy": rows * LOOK,
        "cached": rows * (GLANCE + WIDEN / together),
        "versioned": FIND + rows * CHANGE / together + touched * TOUCH,
    }
