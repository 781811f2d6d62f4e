"""Whose turn is it? Requests take long, and so may events: nobody's let others wait.

In one turn of the loop requests of all guests together, and events that take long, get a little
time. Whoever still has some waits for the next turn, in a row with others, where an identity has
its turn once however many connections are its own; what is behind them on the same connection waits
too, so everything is done in the order in which it was said.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from driftline.net.row import Row

if TYPE_CHECKING:
    from driftline.net.guest import Guest
    from driftline.net.server import Server

TURN = "turn"
SECONDS = 0.001
"""For all that takes long in one turn."""
_RECENT = 0.5
"""So many seconds after somebody had to wait there still is much to do."""


class Turns:
    """The turns of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._left = SECONDS
        self._waiting: Row[Guest] = Row()
        self._armed = False
        self._pressed = -_RECENT
        """When somebody had to wait for the next turn last, by `time.monotonic`."""

    @property
    def is_pressed(self) -> bool:
        """Is there so much to do that others wait?"""
        return time.monotonic() - self._pressed < _RECENT

    def is_over(self, began: float | None = None) -> bool:
        """Is there no time left for what takes long? What began then, by `time.perf_counter`, is
        not spent yet.
        """
        spent = 0.0 if began is None else time.perf_counter() - began
        return self._left <= spent

    def spend(self, began: float) -> None:
        """Something was done that began then, by `time.perf_counter`."""
        self._left -= time.perf_counter() - began
        self._arm()

    def wait(self, guest: Guest) -> None:
        """Listen to a guest no more until it is its turn again."""
        self._pressed = time.monotonic()
        guest.connection.hold(TURN)
        self._waiting.add(guest.owner, guest)
        self._arm()

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            # In the turn after the next: what has come until then is read before.
            self._server.loop.call_soon(self._server.loop.call_soon, self._next)

    def _next(self) -> None:
        self._armed = False
        # Whoever was quick does not wait for those who are not.
        self._server.flushing.now()
        self._left = SECONDS
        for _ in range(len(self._waiting)):
            if self.is_over():
                break
            guest = self._waiting.next()
            guest.connection.release(TURN)
            guest.go_on()
        if self._waiting:
            self._arm()
