"""When is what is to be sent written?

At the end of a turn of the loop, once for each connection that has something. A write costs nearly
the same for one notice as for hundreds, and over TLS several times as much. So a round of very many
connections is followed by a short pause, no longer than the round was: what comes meanwhile goes
out together. Who is to hear a reply does not wait for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from driftline.net.connection import Connection

FEW = 32
"""A round of no more connections is as quick as what follows."""
PAUSE_MOST = 0.001
"""Seconds: whoever is told hears it so much later at most."""


class Flushing:
    """The connections of one server that have something to send. `done` is called after a round."""

    def __init__(self, loop: asyncio.AbstractEventLoop, done: Callable[[], None]) -> None:
        self._loop = loop
        self._done = done
        self._dirty: list[Connection] = []
        self._not_before = 0.0
        self._soon: asyncio.Handle | None = None
        self._later: asyncio.TimerHandle | None = None

    def dirty(self, connection: Connection) -> None:
        """It has something to send."""
        self._dirty.append(connection)
        self.hurry()

    def hurry(self) -> None:
        """Look at the end of this turn who has something to send."""
        if self._soon is None:
            self._soon = self._loop.call_soon(self._flush)

    def now(self) -> None:
        """Write at once what would be when this turn is over, because something long follows."""
        if self._soon is not None:
            self._soon.cancel()
            self._flush()

    def _flush(self) -> None:
        self._soon = None
        began = self._loop.time()
        going, self._dirty = self._dirty, []
        if len(going) > FEW and began < self._not_before:
            self._dirty = [one for one in going if not one.is_urgent]
            going = [one for one in going if one.is_urgent]
            if self._later is None:
                self._later = self._loop.call_at(self._not_before, self._resume)
        for connection in going:
            connection.flush()
        if len(going) > FEW:
            ended = self._loop.time()
            self._not_before = ended + min(ended - began, PAUSE_MOST)
        self._done()

    def _resume(self) -> None:
        self._later = None
        self._not_before = 0.0
        self._flush()
