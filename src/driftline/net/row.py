"""Who is next, if everybody is to have their turn, whoever has asked for more?

Each owner has a row of their own, and these take turns: who has a thousand waiting waits for them,
and others for one of them.

    >>> row = Row()
    >>> for whose, what in [("mallory", 1), ("mallory", 2), ("mallory", 3), ("alice", 4)]:
    ...     row.add(whose, what)
    >>> [row.next() for _ in range(len(row))]
    [1, 4, 2, 3]
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Row(Generic[T]):
    """All that waits."""

    __slots__ = ("_count", "_rows")

    def __init__(self) -> None:
        self._rows: dict[str, deque[T]] = {}
        """By owner, in the order of their turns."""
        self._count = 0

    def add(self, whose: str, what: T) -> None:
        """The last of its owner's."""
        self._rows.setdefault(whose, deque()).append(what)
        self._count += 1

    def next(self) -> T:
        """The first of whose turn it is."""
        whose = next(iter(self._rows))
        own = self._rows.pop(whose)
        found = own.popleft()
        if own:
            self._rows[whose] = own
        self._count -= 1
        return found

    def clear(self) -> None:
        """Nothing waits any more."""
        self._rows.clear()
        self._count = 0

    def __len__(self) -> int:
        return self._count
