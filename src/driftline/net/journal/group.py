"""How do many stores share one commit, without anybody waiting for the disk?

A thread of its own takes everything that waits (`waiting`), commits it and tells those who
submitted it; what is submitted meanwhile is the next commit. Under load commits become larger and
not more frequent: a sync takes as long for one store as for hundreds.

Whoever submits gives a function to be called when it is kept. It is called in that thread: give
one that hands over, such as `partial(loop.call_soon_threadsafe, release)`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Thread
from time import monotonic

from driftline.errors import DriftlineError, JournalError, JournalUnavailable
from driftline.net.buckets import Buckets
from driftline.net.journal.journal import Journal
from driftline.net.journal.waiting import Done, Stores, Waiting


class GroupCommit:
    """A journal and the thread that writes it. `troubled` hears when commits fail, and end to.

    A failure that may pass (`JournalUnavailable`) is told to all that waits and tried again. Any
    other is told likewise and is the end: `failure` says what it was, and `submit` raises it.
    """

    def __init__(
        self, journal: Journal, troubled: Callable[[DriftlineError | None], None] | None = None
    ) -> None:
        self._journal = journal
        self._troubled = troubled
        self._waiting = Waiting()
        self._changed = Condition()
        self._closing = False
        self._in_trouble = False
        self.failure: DriftlineError | None = None
        """Why nothing is kept any more."""
        self.commits = 0
        self.seconds = Buckets()
        """How long each commit took."""
        self._thread = Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    @property
    def bytes_waiting(self) -> int:
        """How much waits, about: above some limit publishers should be held back."""
        return self._waiting.bytes

    def submit(self, stores: Stores, done: Done) -> None:
        """Keep these, behind all that was submitted before; raises if nothing is kept any more."""
        with self._changed:
            if self.failure is not None:
                raise self.failure
            if self._closing:
                raise JournalError("of a broker that ends", "is being closed")
            self._waiting.submit(stores, done)
            self._changed.notify()

    def close(self, within: float = 10.0) -> bool:
        """Keep what waits, but no longer than so many seconds; was all of it kept?

        The journal is closed too, unless a commit hangs.
        """
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(within)
        if self._thread.is_alive():
            # It is between two attempts, or in one.
            self._end(JournalError("of a broker that ends", "was not available in time"))
            self._thread.join(within)
        if not self._thread.is_alive():
            self._journal.close()
        return self.failure is None

    def _run(self) -> None:
        while self._has_work():
            with self._changed:
                stores = self._waiting.take()
            began = monotonic()
            try:
                self._journal.commit(stores)
            except JournalUnavailable as problem:
                with self._changed:
                    told = self._waiting.failed(monotonic())
                self._trouble(problem)
                _tell(told, problem)
            except Exception as problem:
                if not isinstance(problem, DriftlineError):
                    problem = JournalError("of this broker", repr(problem))
                self._end(problem)
            else:
                with self._changed:
                    told = self._waiting.committed()
                self.commits += 1
                self.seconds.observe(monotonic() - began)
                self._trouble(None)
                _tell(told, None)

    def _has_work(self) -> bool:
        """Wait until there is something to do now; False: never again."""
        with self._changed:
            while self.failure is None:
                left = self._waiting.retry_at - monotonic()
                if len(self._waiting) and left <= 0:
                    return True
                if self._closing and not len(self._waiting):
                    return False
                self._changed.wait(left if len(self._waiting) else None)
        return False

    def _end(self, problem: DriftlineError) -> None:
        with self._changed:
            if self.failure is not None:
                return
            self.failure = problem
            told = self._waiting.give_up()
            self._changed.notify()
        self._trouble(problem)
        _tell(told, problem)

    def _trouble(self, problem: DriftlineError | None) -> None:
        before, self._in_trouble = self._in_trouble, problem is not None
        if self._troubled is not None and (problem is not None or before):
            with suppress(RuntimeError):
                self._troubled(problem)


def _tell(told: list[Done], problem: DriftlineError | None) -> None:
    for done in told:
        # A loop that is closed takes no more calls; the others are to hear of it all the same.
        with suppress(RuntimeError):
            done(problem)
