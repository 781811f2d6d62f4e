"""How does an epoll wake up on time?

Its own timeout is in whole milliseconds. A timer of Linux is a file that becomes readable when it
is due, to the nanosecond; Python knows it from 3.13 on.
"""

from __future__ import annotations

import ctypes
import os
import time
from contextlib import suppress
from types import TracebackType
from typing import Self


class _Spec(ctypes.Structure):
    """`struct itimerspec`."""

    _fields_ = [(name, ctypes.c_long) for name in ("every_s", "every_ns", "first_s", "first_ns")]


class Ticks:
    """A file that becomes readable every so many seconds, from now on."""

    def __init__(self, every_s: float) -> None:
        system = ctypes.CDLL(None, use_errno=True)
        self._file = system.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        seconds, ns = divmod(round(every_s * 1e9), 1_000_000_000)
        spec = _Spec(seconds, ns, seconds, ns)
        if self._file < 0 or system.timerfd_settime(self._file, 0, ctypes.byref(spec), None) < 0:
            raise OSError(ctypes.get_errno(), "no timer")

    def fileno(self) -> int:
        """What to wait for."""
        return int(self._file)

    def clear(self) -> None:
        """Not readable until the next tick."""
        with suppress(BlockingIOError):
            os.read(self._file, 8)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)
