"""What if nothing is to survive, or a test wants to see what would?

>>> with_nothing = MemoryJournal()
>>> with_nothing.commit([{("seen", "a"): 1}, {("seen", "b"): 2, ("seen", "a"): None}])
>>> with_nothing.load()
{('seen', 'b'): 2}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from driftline.broker.effects import Key
from driftline.net.journal.journal import Changes, Entry, entries_of


class MemoryJournal:
    """A journal that ends with its process. Entries are bytes here too, so that errors are seen."""

    __slots__ = ("_entries", "_incarnation")

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._incarnation = 0

    def load(self) -> dict[Key, object]:
        """See `Journal`."""
        rows = ((one.key, one.value, one.crc) for one in self._entries.values())
        return entries_of("in memory", rows)

    def commit(self, stores: Sequence[Mapping[Key, object]]) -> None:
        """See `Journal`."""
        changes = Changes.of(stores)
        for key in changes.forgotten:
            self._entries.pop(key, None)
        for entry in changes.entries:
            self._entries[entry.key] = entry

    def incarnation(self, at_least: int = 0) -> int:
        """See `Journal`. It counts from 1 in each process: whoever has been before says so."""
        self._incarnation = max(self._incarnation + 1, at_least)
        return self._incarnation

    def close(self) -> None:
        """See `Journal`."""
