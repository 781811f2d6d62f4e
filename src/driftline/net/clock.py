"""What time is it for a broker, whose machine's clock may jump?

It never goes back, and it never stands still: timers must go on. A jump forward is believed at
once. After a jump back it goes at half speed until the machine's clock has caught up.

    >>> wall, steady = iter([100, 90, 94, 98, 110]), iter([0, 4, 8, 12, 24])
    >>> clock = BrokerClock(wall.__next__, steady.__next__)
    >>> [clock.now() for _ in range(4)]
    [102, 104, 106, 112]
"""

from __future__ import annotations

import time
from collections.abc import Callable


def _wall() -> int:
    return time.time_ns() // 1000


def _steady() -> int:
    return time.monotonic_ns() // 1000


class BrokerClock:
    """Microseconds since 1970, as near to the machine's as can be without ever going back."""

    __slots__ = ("_now", "_since", "_steady", "_wall")

    def __init__(
        self, wall: Callable[[], int] = _wall, steady: Callable[[], int] = _steady
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._now = wall()
        self._since = steady()

    def now(self) -> int:
        """The time, never less than the one before."""
        since = self._steady()
        passed, self._since = since - self._since, since
        self._now = max(self._wall(), self._now + passed // 2)
        return self._now
