"""What time is it, in integer microseconds since 1970?

The only place outside the drivers that reads the machine's clock.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Anything that tells the time."""

    def now(self) -> int:
        """Microseconds since 1970 began."""


class SystemClock:
    """The machine's clock. It never goes back: a jump backwards repeats the last reading."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = 0

    def now(self) -> int:
        """Microseconds since 1970 began, never less than the reading before."""
        self._last = max(self._last, time.time_ns() // 1000)
        return self._last


class ManualClock:
    """A clock that stands still until it is moved: for tests, replays and simulations.

    >>> clock = ManualClock()
    >>> clock.advance(1.5)
    >>> clock.now()
    1500000
    """

    __slots__ = ("_now",)

    def __init__(self, now_us: int = 0) -> None:
        self._now = now_us

    def now(self) -> int:
        """Microseconds since 1970 began."""
        return self._now

    def advance(self, seconds: float = 0, *, us: int = 0) -> None:
        """Move forward by seconds, microseconds, or both."""
        step = round(seconds * 1_000_000) + us
        if step < 0:
            raise ValueError(f"a clock goes forward, not by {step} microseconds")
        self._now += step
