"""How late is the loop, and how long does an event take from where it entered to whom it is told?

Both are looked at now and then: the loop four times a second, by a timer that should come in time;
events by one of every few pieces that kernels have taken, by the stamp that its first notice
carries. If it entered at another broker, its clock is the other's.
"""

from __future__ import annotations

import asyncio

from driftline.net.buckets import Buckets
from driftline.net.clock import BrokerClock
from driftline.wire.compact import HEAD_BYTES, WORD
from driftline.wire.notices import MARKS_FEW

EVERY = 0.25
OFTEN = 16
"""Of so many pieces one is looked at."""


class Sampling:
    """What is looked at in one server."""

    def __init__(self, clock: BrokerClock) -> None:
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._pieces = 0
        self.lag = Buckets()
        """Seconds that the loop was late."""
        self.latency = Buckets()
        """Seconds from entry to the connection."""

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look at the loop from now on."""
        due = loop.time() + EVERY

        def look() -> None:
            self.lag.observe(max(0.0, loop.time() - due))
            self.begin(loop)

        self._timer = loop.call_at(due, look)

    def end(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def told(self, notice: memoryview) -> None:
        """Something is being told, of which this is the first notice: one that has no number."""
        self._pieces += 1
        marks = notice[7]
        if self._pieces % OFTEN or marks > MARKS_FEW:
            return
        (entered,) = WORD.unpack_from(notice, HEAD_BYTES + 8 * marks)
        self.latency.observe(max(0, self._clock.now() - entered) / 1e6)
