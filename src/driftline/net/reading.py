"""How is a long text read while others are served?

What it says cannot be found out in parts, and the longest take a quarter of a second. So they are
read in a thread, one at a time, of everybody in turns, and whoever said one waits with all that
comes behind it. The thread shares the interpreter with the loop: while that has so much to do that
clients wait for their turns, it rests after each text.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from driftline.errors import DriftlineError
from driftline.net.row import Row

if TYPE_CHECKING:
    from driftline.net.server import Server

T = TypeVar("T")
LETTERS = 1000
"""So many are read at once, in a few milliseconds."""
READING = "reading"
_SWITCH = 0.0001
"""So long the loop waits for the interpreter at most when something has come meanwhile: seconds."""
_REST = 9.0
"""So many times as long as a text took it rests, if others have much to do."""


class Reading:
    """The thread that reads for the clients of one broker."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._thread: ThreadPoolExecutor | None = None
        self._row: Row[Callable[[], None]] = Row()
        self._is_busy = False

    def read(
        self, whose: str, what: Callable[[], T], then: Callable[[T | DriftlineError], None]
    ) -> None:
        """Find out something, when it is its turn, and go on in the loop with it."""
        self._row.add(whose, lambda: self._begin(what, then))
        self._next()

    def _next(self) -> None:
        if self._row and not self._is_busy:
            self._is_busy = True
            self._row.next()()

    def _begin(self, what: Callable[[], T], then: Callable[[T | DriftlineError], None]) -> None:
        if self._thread is None:
            sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH))
            self._thread = ThreadPoolExecutor(1, "driftline-reading")

        def found(done: Future[tuple[T | DriftlineError, float]]) -> None:
            if not done.cancelled():
                self._server.loop.call_soon_threadsafe(self._found, done, then)

        self._thread.submit(_outcome, what).add_done_callback(found)

    def _found(
        self,
        done: Future[tuple[T | DriftlineError, float]],
        then: Callable[[T | DriftlineError], None],
    ) -> None:
        outcome, took = done.result()
        rest = _REST * took if self._server.turns.is_pressed else 0.0
        self._server.loop.call_later(rest, self._rested)
        then(outcome)

    def _rested(self) -> None:
        self._is_busy = False
        self._next()

    def end(self) -> None:
        """Read nothing any more."""
        self._row.clear()
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)


def _outcome(what: Callable[[], T]) -> tuple[T | DriftlineError, float]:
    """What was found out, and the seconds that this thread has worked for it."""
    began = time.thread_time()
    found: T | DriftlineError
    try:
        found = what()
    except DriftlineError as problem:
        found = problem
    return found, time.thread_time() - began
