"""When is memory looked through for objects that only refer to one another, and given back?

All other objects go at once when nobody needs them. For these the interpreter goes through
everything whenever much has become more; in a broker that takes tens of milliseconds, or seconds if
there are a million subscriptions, and meanwhile nobody is served. So a broker's process leaves to
the interpreter what is young, and goes through everything by itself: what was there at the
beginning never, the rest when there is reason to, and so seldom that it takes a small part of the
time. In the same way it gives memory back that it has no use for.
"""

from __future__ import annotations

import asyncio
import gc
import time

from driftline.net.trimming import Trimming

SHARE = 1 / 300
"""Of the time at most: fewer than one in a hundred requests come while it is being done."""
_OFTEN, _SELDOM = 1.0, 300.0
"""Seconds from one time to the next, at least and at most."""
_NEVER = 1 << 30


class Sweeping:
    """The memory of this process, while it serves."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._before = gc.get_threshold()
        self._next: asyncio.TimerHandle | None = None
        self._trimming = Trimming()

    def begin(self) -> None:
        """From now on: all that is there stays."""
        gc.freeze()
        young, middle, _ = self._before
        gc.set_threshold(young, middle, _NEVER)
        self._again(_OFTEN)

    def end(self) -> None:
        """Leave everything to the interpreter again."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
            gc.set_threshold(*self._before)
            gc.unfreeze()

    def _again(self, seconds: float) -> None:
        self._next = self._loop.call_later(seconds, self._look)

    def _look(self) -> None:
        """Go through everything, if as much has become old as makes the interpreter do so; give
        back what is free, if that is much.
        """
        began = time.perf_counter()
        if gc.get_count()[2] > self._before[2]:
            gc.collect()
        if self._trimming.is_due():
            self._trimming.trim()
        took = time.perf_counter() - began
        self._again(min(max(_OFTEN, took / SHARE), _SELDOM))
