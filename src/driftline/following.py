"""When must somebody be told because time has passed, and of what?

For every row of a table and every live set of rows that moves, the next moment at which the row
enters or leaves it, soonest first. What has changed since is passed over when its time comes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

from driftline.handle import Handle
from driftline.model.event import Event
from driftline.model.value import Value, comparable
from driftline.moving.evolving.crossing import next_change


class Following:
    """The moments to come. A row is known by its handle's id and its key."""

    __slots__ = ("_due", "_heap", "_keys", "_numbers")

    def __init__(self) -> None:
        # A number of its own tells each from all others, and spares comparing keys.
        self._numbers = count(1)
        self._heap: list[tuple[int, int, str, object]] = []
        self._due: dict[tuple[str, object], tuple[int, int]] = {}
        self._keys: dict[tuple[str, object], Value] = {}

    def look(
        self, handle: Handle, key: Value, row: Event | None, env: Mapping[str, Value], now: int
    ) -> None:
        """Find out when a row as it is now (None: gone) enters or leaves next."""
        which = (handle.id, comparable(key))
        self._due.pop(which, None)
        self._keys.pop(which, None)
        standing = replace(handle._standing, statement=handle.statement)
        at = None if row is None else next_change(standing, row, env, now)
        if at is not None:
            number = next(self._numbers)
            self._due[which] = (at, number)
            self._keys[which] = key
            heapq.heappush(self._heap, (at, number, *which))

    def forget(self, id: str) -> None:
        """A subscription has ended."""
        for which in [which for which in self._due if which[0] == id]:
            del self._due[which], self._keys[which]

    def next_at(self) -> int | None:
        """When the next is due."""
        while self._heap:
            at, number, id, key = self._heap[0]
            if self._due.get((id, key)) == (at, number):
                return at
            heapq.heappop(self._heap)
        return None

    def take(self, now: int) -> Iterator[tuple[int, str, Value]]:
        """What is due by now, soonest first: the time, the id and the key. Look at each again."""
        while (at := self.next_at()) is not None and at <= now:
            _, _, id, key = heapq.heappop(self._heap)
            del self._due[id, key]
            yield at, id, self._keys.pop((id, key))
