"""What was worked out of a filter is remembered, unless that filter is large.

The same few shapes are asked for again and again. But a neighbour may send filters of any size, and
thousands of large ones must not stay in memory when they have gone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

from driftline.model.filter import Filter

T = TypeVar("T")

_REMEMBERED = 4096
"""As many shapes as are in use at a time, or nearly."""


def remembered(function: Callable[[Filter], T]) -> Callable[[Filter], T]:
    """The same function, which does not work out twice what a small filter gives."""
    kept = lru_cache(maxsize=_REMEMBERED)(function)

    @wraps(function)
    def asked(one: Filter) -> T:
        return kept(one) if one.small else function(one)

    return asked
