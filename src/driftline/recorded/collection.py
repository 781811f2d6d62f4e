"""May Python look for garbage in cycles while something large is made?

It looks again and again at all that there is already, and what is made here has none: a million
subscriptions take a quarter longer for it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Let it not look meanwhile."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
