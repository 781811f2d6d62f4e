"""Did an event come before, by its source and its id, as far as is remembered?

CloudEvents: what has the same source and the same id is the same event. A mark stands for the two,
and the marks of the last so many events are remembered, in pages that are kept as they are.

Whoever passes on what others have named may not believe that: then a mark stands for the two and
for something that those others cannot choose, which tells theirs apart.

    >>> recent = Recent(1000)
    >>> first = mark_of("feed", "7")
    >>> first in recent, list(recent.add([first])), first in recent
    (False, [1], True)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b

MARK_BYTES = 16
"""Two events of 10^12 have one mark by chance once in 10^14 times: less often than disks err."""
PAGE_MARKS = 256
"""So many are kept under one key: for an event by itself 4 KiB are written, as for any other."""


def mark_of(source: str, id: str, apart: str | None = None) -> bytes:
    """What stands for a source and an id, and for what tells them apart if there is such a thing;
    where the one ends and the other begins counts.
    """
    first, second = source.encode(), id.encode()
    said = len(first).to_bytes(4, "little") + first
    if apart is None:
        return blake2b(said + second, digest_size=MARK_BYTES).digest()
    said += len(second).to_bytes(4, "little") + second + apart.encode()
    return blake2b(said, digest_size=MARK_BYTES, person=b"apart").digest()


class Recent:
    """The marks of at least the last `size` events, and of at most a page more."""

    __slots__ = ("_last", "_marks", "_pages", "_size")

    def __init__(self, size: int, pages: Mapping[int, bytes] | None = None) -> None:
        self._size = size
        self._pages: dict[int, bytes] = dict(sorted((pages or {}).items()))
        self._marks = {one for page in self._pages.values() for one in _marks_in(page)}
        self._last = max(self._pages, default=0)

    def __contains__(self, mark: bytes) -> bool:
        return mark in self._marks

    def __len__(self) -> int:
        return len(self._marks)

    def add(self, marks: Iterable[bytes]) -> dict[int, bytes | None]:
        """Remember these; the pages that are others now, None for those that were given up."""
        changed: dict[int, bytes | None] = {}
        fresh = [one for one in dict.fromkeys(marks) if one not in self._marks]
        at = 0
        while at < len(fresh):
            page = self._pages.get(self._last, b"")
            room = PAGE_MARKS - len(page) // MARK_BYTES
            if self._last not in self._pages or room <= 0:
                self._last += 1
                page, room = b"", PAGE_MARKS
            some = fresh[at : at + room]
            changed[self._last] = self._pages[self._last] = page + b"".join(some)
            at += len(some)
        self._marks.update(fresh)
        while self._pages:
            number = next(iter(self._pages))
            if len(self._marks) - len(self._pages[number]) // MARK_BYTES < self._size:
                break
            self._marks.difference_update(_marks_in(self._pages.pop(number)))
            changed[number] = None
        return changed

    def _check(self) -> None:
        marks = [one for page in self._pages.values() for one in _marks_in(page)]
        assert set(marks) == self._marks
        assert len(marks) == len(self._marks)
        assert len(marks) < self._size + PAGE_MARKS


def _marks_in(page: bytes) -> list[bytes]:
    return [page[at : at + MARK_BYTES] for at in range(0, len(page), MARK_BYTES)]
