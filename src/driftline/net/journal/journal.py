"""Where does a broker keep what must survive it?

A journal holds entries, keys with values, in the order in which their keys first came: a broker
that is made from them is then the same in every respect. It belongs to one broker and is open in
one process at a time. Everything here blocks: whoever must not wait gives it a thread (`group`).

A `commit` that raises `JournalUnavailable` has kept nothing as far as anybody can rely on it, and
is to be tried again: with the same stores first, because it may turn out that they were kept after
all. Any other error is final.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

from driftline.broker.effects import Key
from driftline.errors import DriftlineError, JournalDamaged
from driftline.net.journal.stored import decode, decode_key, encode, encode_key

RESTORE = "restore a backup, or remove it to begin with nothing"


class Journal(Protocol):
    """What a broker keeps. To be called by one thread at a time, whichever it is."""

    def load(self) -> dict[Key, object]:
        """All entries, in the order in which their keys came."""

    def commit(self, stores: Sequence[Mapping[Key, object]]) -> None:
        """Keep these, all or nothing: None forgets a key. When it returns nothing can undo it."""

    def incarnation(self, at_least: int = 0) -> int:
        """A number higher than any before, or as high as is said, which is itself kept.

        Somebody who fears that a journal is lost says how high, by a clock.
        """

    def close(self) -> None:
        """Let another process have it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry as it is written: its key as text, its value as bytes, and a checksum of both."""

    key: str
    value: bytes
    crc: int

    @classmethod
    def of(cls, key: Key, value: object) -> Entry:
        """Encode an entry."""
        text, data = encode_key(key), encode(key, value)
        return cls(text, data, checksum(text, data))


@dataclass(frozen=True, slots=True)
class Changes:
    """What several stores amount to: keys to forget first, and entries to put then, in order.

    A key that is forgotten and put again is in both: it comes anew, behind all others.
    """

    forgotten: list[str]
    entries: list[Entry]

    @classmethod
    def of(cls, stores: Iterable[Mapping[Key, object]]) -> Changes:
        """Only the last value of a key is encoded, and none that is forgotten again."""
        put: dict[Key, object] = {}
        forgotten: dict[Key, None] = {}
        for store in stores:
            for key, value in store.items():
                if value is None:
                    put.pop(key, None)
                    forgotten[key] = None
                else:
                    put[key] = value
        return cls([*map(encode_key, forgotten)], [Entry.of(*one) for one in put.items()])


def checksum(key: str, value: bytes) -> int:
    """By which it is seen that an entry is what was written."""
    return crc32(value, crc32(key.encode()))


def entries_of(where: str, rows: Iterable[tuple[str, bytes, int]]) -> dict[Key, object]:
    """The entries of rows as they were written; JournalDamaged if they are others."""
    found: dict[Key, object] = {}
    for text, value, crc in rows:
        try:
            sound = checksum(text, value) == crc
        except (AttributeError, TypeError, UnicodeEncodeError):
            sound = False  # It is not even of the type it was.
        if not sound:
            shown = str(text)[:80]
            raise JournalDamaged(where, f"entry {shown} is not what was written: {RESTORE}")
        try:
            key = decode_key(text)
            found[key] = decode(key, value)
        except (DriftlineError, ValueError, TypeError, KeyError) as problem:
            raise JournalDamaged(where, f"entry {text[:80]} cannot be read: {problem}") from problem
    return found
