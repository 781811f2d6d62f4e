"""Is there memory that this process has no use for any more, and can it be given back?

What is freed the C library keeps, in pieces between what is still needed: a process would stay as
large as it was in the worst moment of its life, and larger after each such moment, as the pieces
never fit. GNU's says how much of its memory is used, and can be asked to give back the rest, which
takes a tenth of a millisecond for each MiB. Where there is another nothing is done.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

PART, LEAST = 1 / 4, 32 << 20
"""It is asked for what is more than such a part of all, and so many bytes."""
_PAGES = Path("/proc/self/statm")


class _Said(ctypes.Structure):
    """What the C library says of its memory (`struct mallinfo2`)."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


class Trimming:
    """The memory that this process has from the system."""

    def __init__(self) -> None:
        self.is_possible = False
        if sys.platform == "linux":
            library = ctypes.CDLL(None)
            self.is_possible = hasattr(library, "mallinfo2") and hasattr(library, "malloc_trim")
        if self.is_possible:
            self._say, self._trim = library.mallinfo2, library.malloc_trim
            self._say.restype = _Said
            self._else = resident() - self._used()

    def _used(self) -> int:
        said = self._say()
        return int(said.uordblks + said.hblkhd)

    def is_due(self) -> bool:
        """Is there much that is not needed?"""
        if not self.is_possible:
            return False
        all = resident()
        other = all - self._used()
        self._else = min(self._else, other)
        return other - self._else > max(LEAST, PART * all)

    def trim(self) -> None:
        """Give it back. What is there then beside what the library says is used is another's: code,
        and memory that Python has for small objects.
        """
        self._trim(0)
        self._else = resident() - self._used()


def resident() -> int:
    """The bytes of memory that this process has; 0 where the system does not say."""
    try:
        return int(_PAGES.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
