"""How much memory does all take that waits for a connection, and who gives way when it is too much?

The largest queue gives way first, so that who is behind pays, and a subscription that little comes
for is not pushed out by one that much comes for. One that may lose something loses its oldest. One
that blocks loses nothing: if it is the largest, the connection is jammed, and who publishes waits.

    8 bytes at most   a drops   b drops   c blocks
                      3 3       1                     7 in all
    2 for b           3         1 2                   a was the largest
    4 for c                     1 2       4           a and b were equal, a was there first
    2 for c                     2         4 2         jammed: c is the largest, and 8 in all

An item is one copy in memory for all who may lose it, and one for all who block: if these shared
one, the former would lose for nothing what the latter keep anyway.
"""

from __future__ import annotations

from driftline.broker.items import Item
from driftline.broker.least import Least
from driftline.broker.waiting import Copy, Waiting


class Budget:
    """What waits for a connection; one copy alone may be larger than the limit."""

    __slots__ = ("_blocking", "_copies", "_dropping", "_limit", "bytes", "entries")

    def __init__(self, limit_bytes: int) -> None:
        self.bytes = 0
        """Of the copies that wait."""
        self.entries = 0
        """How many notifications wait, counted for each subscription."""
        self._limit = limit_bytes
        self._copies = 0
        # The largest first: by bytes, negative.
        self._dropping = Least()
        self._blocking = Least()

    def hold(self, item: Item, holders: int) -> Copy:
        """Keep an item for so many."""
        self.entries += holders
        self._copies += 1
        self.bytes += item.size
        return Copy(item, holders)

    def release(self, copy: Copy) -> None:
        """One of those who hold it does no longer."""
        self.entries -= 1
        copy.holders -= 1
        if not copy.holders:
            self._copies -= 1
            self.bytes -= copy.item.size

    def part(self, copy: Copy) -> Copy:
        """A copy for one alone, instead of one that may be shared."""
        self.release(copy)
        return self.hold(copy.item, 1)

    def weigh(self, one: Waiting) -> None:
        """A queue has become larger or smaller, or is now of the other kind."""
        size = -one.bytes or None
        self._blocking.set(one.number, size if one.blocks else None)
        self._dropping.set(one.number, None if one.blocks else size)

    def forget(self, one: Waiting) -> None:
        """A queue is gone, and all that waited in it."""
        for copy in one.copies():
            self.release(copy)
        self._blocking.set(one.number, None)
        self._dropping.set(one.number, None)

    @property
    def jammed(self) -> bool:
        """Is there no room, and is the largest queue one that blocks?"""
        if self.bytes < self._limit:
            return False
        blocking, dropping = self._blocking.first(), self._dropping.first()
        return blocking is not None and (dropping is None or blocking[0] < dropping[0])

    def who_gives_way(self) -> int | None:
        """The number of the largest queue that may lose something, if it is too much."""
        if self.bytes <= self._limit or self._copies <= 1:
            return None
        largest = self._dropping.first()
        return None if largest is None else largest[1]

    def _check(self, queues: list[Waiting]) -> None:
        held = [copy for one in queues for copy in one.copies()]
        copies = {id(copy): copy for copy in held}.values()
        assert self.entries == len(held) == sum(copy.holders for copy in copies)
        assert self._copies == len(copies)
        assert self.bytes == sum(copy.item.size for copy in copies)
        sizes = {one.number: -one.bytes for one in queues if one.bytes}
        blocks = {one.number for one in queues if one.blocks}
        self._blocking._check({at: size for at, size in sizes.items() if at in blocks})
        self._dropping._check({at: size for at, size in sizes.items() if at not in blocks})
        assert self.who_gives_way() is None
