"""How much memory does this process hold, and does it give back what it no longer needs?"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from driftline.workload.matching import WORKLOADS

ROUNDS = 10

# Subscriptions come and go in calls of this many.
CALL = 10_000

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int | None:
    """The resident memory now, None where the system does not tell it this way.

    What the C library only keeps for reuse is given back first, where it can be asked to (glibc):
    for a plain dict of a million ids that alone makes a difference of a tenth, either way.
    """
    gc.collect()
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        pages = int(_STATM.read_text().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def churn(count: int, say: Callable[[str], None]) -> dict[str, object]:
    """Add and discard so many filters, `ROUNDS` times; what is resident after each round?

    The ids are new in every round, as they are in life. What stays after the first round is the
    measure: pools that are kept for later are in it, a leak is not.
    """
    from driftline.matching.index import Index

    (group,) = WORKLOADS["W2"].groups(count)
    (prepared,) = group.prepared()
    index = Index()
    resident: list[int] = []
    for turn in range(ROUNDS):
        say(f"churn: round {turn + 1} of {ROUNDS}")
        for start in range(0, count, CALL):
            rows = slice(start, start + CALL)
            bounds = {name: column[rows] for name, column in prepared.bounds.items()}
            index.add_batch(_ids(turn, start, count), prepared.filters, bounds)
        for start in range(0, count, CALL):
            index.discard_batch(_ids(turn, start, count))
        now = resident_bytes()
        if now is not None:
            resident.append(now)
    ratio = resident[-1] / resident[0] if resident else None
    return {"filters": count, "resident_bytes": resident, "ratio": ratio}


def _ids(turn: int, start: int, count: int) -> list[str]:
    """The ids of one call. Made for it and forgotten, so that only what the index keeps counts."""
    return [f"r{turn}-{at}" for at in range(start, min(start + CALL, count))]
