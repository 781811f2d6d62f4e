"""How is a long text read while others are served?

What it says cannot be found out in parts, and the longest take a quarter of a second. So they are
read in a thread, one at a time, and whoever said one waits with all that comes behind it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from driftline.errors import DriftlineError

if TYPE_CHECKING:
    from driftline.net.server import Server

T = TypeVar("T")
LETTERS = 1000
"""So many are read at once, in a few milliseconds."""
READING = "reading"
_SWITCH = 0.0001
"""So long the loop waits for the interpreter at most when something has come meanwhile: seconds."""


class Reading:
    """The thread that reads for the clients of one broker."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._thread: ThreadPoolExecutor | None = None

    def read(self, what: Callable[[], T], then: Callable[[T | DriftlineError], None]) -> None:
        """Find out something, when it is its turn, and go on in the loop with it."""
        if self._thread is None:
            sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH))
            self._thread = ThreadPoolExecutor(1, "driftline-reading")

        def found(done: Future[T | DriftlineError]) -> None:
            if not done.cancelled():
                self._server.loop.call_soon_threadsafe(then, done.result())

        self._thread.submit(_outcome, what).add_done_callback(found)

    def end(self) -> None:
        """Read nothing any more."""
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)


def _outcome(what: Callable[[], T]) -> T | DriftlineError:
    try:
        return what()
    except DriftlineError as problem:
        return problem
