"""Whose turn is it? Requests take long, and so may events: nobody's let others wait.

In one turn of the loop requests of all guests together, and events that take long, get a little
time. Whoever still has some waits for the next turn, in a row with others; what is behind them on
the same connection waits too, so everything is done in the order in which it was said.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from driftline.net.guest import Guest
    from driftline.net.server import Server

TURN = "turn"
SECONDS = 0.002
"""For all that takes long in one turn."""


class Turns:
    """The turns of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._left = SECONDS
        self._waiting: deque[Guest] = deque()
        self._armed = False
        self.pressed = 0.0
        """When somebody had to wait for the next turn last, by `time.monotonic`."""

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
        self.pressed = time.monotonic()
        guest.connection.hold(TURN)
        self._waiting.append(guest)
        self._arm()

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self._server.loop.call_soon(self._next)

    def _next(self) -> None:
        self._armed = False
        self._left = SECONDS
        for _ in range(len(self._waiting)):
            if self.is_over():
                break
            guest = self._waiting.popleft()
            guest.connection.release(TURN)
            guest.go_on()
        if self._waiting:
            self._arm()
