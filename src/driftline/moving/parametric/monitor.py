"""What should the network be told of a variable that moves too often? [PARAM §6]

While a variable moves slowly, its value. When it has moved more often than a threshold within a
window of time, a range: where it has been going up and down, from the lowest to the highest that it
was; otherwise from where it is to where a curve through its past leads in a quarter of a window. As
long as it stays inside, nothing more need be said. The range always has the value of
now, so nothing is lost; what comes besides is found to be of no interest where the value is known.
One that leaves its range before the window is over gets more room on that side. When it is calm
again, its value alone.

    >>> watch = Monitor(window=1_000_000, threshold=5)
    >>> [watch.moved(value, at) for at, value in ((0, 10.0), (100_000, 11.0), (200_000, 12.0))]
    [(10.0, 10.0), (11.0, 11.0), (12.0, 12.0)]
    >>> watch.moved(13.0, 300_000)
    (13.0, 13.0)
    >>> low, high = watch.moved(14.0, 400_000)
    >>> low, round(high, 3)
    (14.0, 15.0)
    >>> watch.moved(15.0, 500_000) == (low, high)
    True
    >>> watch.calm(1_600_000)
    (15.0, 15.0)
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise

from driftline.model.value import Value
from driftline.moving.hull import Range

NEVER = 1 << 62

REMEMBERED = 12
"""So many past values make the curve."""

_AHEAD = 4
"""A range is for so much of a window: the shorter, the more are told and the less comes in vain."""


class Monitor:
    """One variable, and what the network was told of it. Times are microseconds."""

    __slots__ = ("_margin", "_past", "_range", "_threshold", "_until", "_window")

    def __init__(self, window: int, threshold: int) -> None:
        self._window = window
        self._threshold = threshold
        self._past: deque[tuple[int, float]] = deque(maxlen=max(REMEMBERED, threshold))
        self._range: Range | None = None
        self._until = 0
        self._margin = 0.0

    def moved(self, value: Value, now: int) -> Range:
        """The variable has another value; what the network should know of it."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._past.clear()
            self._range = None
            return value, value  # What is no number has no way to go.
        self._past.append((now, value))
        while self._past[0][0] <= now - self._window:
            self._past.popleft()
        if len(self._past) < self._threshold:
            self._range = None
            return value, value
        if self._range is None or now >= self._until:
            self._margin = 0.0
            self._tell(value, now)
        elif not self._inside(value):
            # It left sooner than was thought: give it more room where it goes.
            spread = self._spread()
            self._margin = min(self._margin + spread / 8, spread / 2)
            self._tell(value, now)
        assert self._range is not None
        return self._range

    def _tell(self, value: int | float, now: int) -> None:
        before, (low, high) = self._range, self._ahead(value)
        if before is not None and value > before[1]:  # type: ignore[operator]  # numbers
            high += self._margin
        elif before is not None:
            low -= self._margin
        self._range = low, high
        self._until = now + self._window // _AHEAD

    def calm(self, now: int) -> Range | None:
        """The value alone, if it is time to say so: the variable has not moved for a window."""
        if self._range is None or now < self.calm_at():
            return None
        self._range = None
        value = self._past[-1][1]
        return value, value

    def calm_at(self) -> int:
        """When `calm` has something to say, if the variable does not move before."""
        return NEVER if self._range is None else self._past[-1][0] + self._window

    def _inside(self, value: int | float) -> bool:
        assert self._range is not None
        low, high = self._range
        return low <= value <= high  # type: ignore[operator]  # numbers

    def _spread(self) -> float:
        values = [one for _, one in self._past]
        return max(values) - min(values)

    def _ahead(self, value: int | float) -> tuple[float, float]:
        values = [one for _, one in self._past]
        if _turns(values) >= 2:
            return min(values), max(values)
        # No faster than it came: a curve may lead anywhere.
        spread = self._spread() / _AHEAD
        goes = min(max(self._extrapolated(), value - spread), value + spread)
        return min(value, goes), max(value, goes)

    def _extrapolated(self) -> float:
        # It takes a while to load, and most variables are calm.
        from scipy.interpolate import CubicSpline

        times: list[int] = []
        values: list[float] = []
        for time, value in self._past:
            if times and time == times[-1]:
                values[-1] = value  # Of two at one time the later counts.
            else:
                times.append(time)
                values.append(value)
        if len(times) < 2:
            return values[-1]
        curve = CubicSpline([time - times[-1] for time in times], values)
        return float(curve(self._window / _AHEAD))


def _turns(values: list[int | float] | list[float]) -> int:
    """How often a variable went up and then down, or down and then up."""
    ways = [after > before for before, after in pairwise(values) if after != before]
    return sum(one is not other for one, other in pairwise(ways))
