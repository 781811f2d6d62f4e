"""What happens on Ctrl-C while a query runs? It is noted, and the run ends in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interruptions() -> Iterator[list[int]]:
    """Note Ctrl-C instead of raising it.

    PySpark's own handler calls Java to cancel all jobs, from within whatever call to Java was
    going on: the connection breaks, and the query could no longer be stopped in order.
    """
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted  # Signals are the main thread's business.
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
