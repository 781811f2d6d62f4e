"""How does a broker keep what it must in a file?

SQLite, with a log that is synced at each commit. Nothing in a file says of itself that it has
changed since it was written, so each row has a checksum, and triggers keep the number of rows and
the sum of all checksums: a row that is gone is seen as well. What SQLite would pass over in its
log is looked for before it is opened (`wal`).

The layout was measured, at commits of 100 events as one row (`docs/reference/journal.md`): pages of
4 KiB and a log of 1,000 pages, which is overwritten rather than extended, were fastest; triggers
and giving pages back cost nothing that could be seen.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

from driftline.broker.effects import Key
from driftline.errors import (
    JournalDamaged,
    JournalError,
    JournalFull,
    JournalRefused,
    JournalUnavailable,
)
from driftline.net.journal.journal import RESTORE, Changes, entries_of
from driftline.net.journal.lock import Lock
from driftline.net.journal.stored import FORMAT
from driftline.net.journal.wal import read_log

SETTINGS = (
    "page_size = 4096",
    # Pages that are free are given back a few at a time (`_tend`).
    "auto_vacuum = INCREMENTAL",
    "journal_mode = WAL",
    # Sync the log at each commit: what is told to others then is not lost with the power.
    "synchronous = FULL",
    "wal_autocheckpoint = 1000",
    # After a large commit the log is cut to this size again.
    "journal_size_limit = 67108864",
    "cache_size = -16384",
)
_SCHEMA = (
    "CREATE TABLE about (what TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL)",
    # In the order of their places keys came; a key that is put again keeps its own.
    "CREATE TABLE entries (place INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL,"
    " value BLOB NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TABLE sums (rows INTEGER NOT NULL, crcs INTEGER NOT NULL)",
    "CREATE TRIGGER came AFTER INSERT ON entries BEGIN"
    " UPDATE sums SET rows = rows + 1, crcs = crcs + new.crc; END",
    "CREATE TRIGGER went AFTER DELETE ON entries BEGIN"
    " UPDATE sums SET rows = rows - 1, crcs = crcs - old.crc; END",
    "CREATE TRIGGER moved AFTER UPDATE ON entries BEGIN"
    " UPDATE sums SET crcs = crcs - old.crc + new.crc; END",
)
_FORGET = "DELETE FROM entries WHERE key = ?"
_PUT = (
    "INSERT INTO entries (key, value, crc) VALUES (?, ?, ?)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value, crc = excluded.crc"
)
_SAY = "INSERT OR REPLACE INTO about (what, value, crc) VALUES (?, ?, ?)"

# What may pass: the disk, somebody who copies it, memory. All else would be the same again.
_MAY_PASS = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}

_COMMITS_BETWEEN = 256
_FREE_PAGES_MAX = 2048
_GIVEN_BACK = 512


class Connection(Protocol):
    """What is asked of SQLite: Python's own module, or another where files are to be watched."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Any:
        """Run a statement."""

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Any:
        """Run a statement for each of these."""

    def close(self) -> None:
        """Let go of the files."""


def connect(path: str) -> Connection:
    """A connection in which transactions are our own business."""
    # SQLite would let everybody read what it makes; its log and its index have the file's mode.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False)


class SqliteJournal:
    """A journal in a file, `-wal` and `-shm` beside it while it is open, and its `.lock`."""

    __slots__ = ("_commits", "_connection", "_lock", "_path")

    def __init__(
        self, path: str, name: str, connect: Callable[[str], Connection] = connect
    ) -> None:
        # By one name, whatever way it is given.
        self._path = os.path.realpath(path)
        self._commits = 0
        try:
            self._lock = Lock(self._path)
        except OSError as problem:
            raise JournalUnavailable(self._path, f"cannot be opened: {problem}") from problem
        try:
            if read_log(Path(f"{self._path}-wal")).damaged:
                why = "commits in its log (-wal) have been damaged since they were written"
                raise JournalDamaged(self._path, f"{why}: {RESTORE}")
            self._connection = connect(self._path)
            try:
                self._prepare(name)
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as problem:
            self._lock.release()
            raise _named(self._path, problem) from problem
        except OSError as problem:
            self._lock.release()
            raise JournalUnavailable(self._path, f"cannot be opened: {problem}") from problem
        except BaseException:
            self._lock.release()
            raise

    def _prepare(self, name: str) -> None:
        for setting in SETTINGS:
            self._all(f"PRAGMA {setting}")
        found = self._all("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
        if not found and not self._lock.known:
            self._make(name)
        elif not found:
            why = f"is empty, and was not before: {RESTORE}, together with its .lock"
            raise JournalDamaged(self._path, why)
        self._lock.made()
        about = self._about()
        written = about.get("format", "")
        if not written.isdigit() or int(written) > FORMAT:
            known = f"up to {FORMAT} is known here: use a newer version"
            why = f"it has format {written or 'none'}, and {known}"
            raise JournalRefused(self._path, why)
        if about.get("name") != name:
            why = f"it is that of broker {about.get('name')!r}, not of {name!r}"
            raise JournalRefused(self._path, why)
        if found and [sql for (sql,) in found] != [*_SCHEMA]:
            raise JournalDamaged(self._path, f"its tables are not as they were made: {RESTORE}")
        if int(written) < FORMAT:
            # What is written from now on, an earlier version cannot read.
            self._say("format", str(FORMAT))

    def _make(self, name: str) -> None:
        self._all("BEGIN IMMEDIATE")
        for statement in _SCHEMA:
            self._all(statement)
        self._all("INSERT INTO sums VALUES (0, 0)")
        for what, value in (("name", name), ("format", str(FORMAT)), ("incarnation", "0")):
            self._say(what, value)
        self._all("COMMIT")
        self._all("PRAGMA wal_checkpoint(TRUNCATE)")
        if hasattr(os, "O_DIRECTORY"):
            # That there is such a file is to survive too.
            folder = os.open(os.path.dirname(self._path), os.O_RDONLY | os.O_DIRECTORY)
            os.fsync(folder)
            os.close(folder)

    def _about(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for what, value, crc in self._all("SELECT what, value, crc FROM about"):
            if crc != crc32(f"{what} {value}".encode()):
                raise JournalDamaged(self._path, f"what it says of itself ({what}): {RESTORE}")
            found[what] = value
        return found

    def _say(self, what: str, value: str) -> None:
        self._all(_SAY, (what, value, crc32(f"{what} {value}".encode())))

    def _all(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        return [*self._connection.execute(sql, parameters)]

    def load(self) -> dict[Key, object]:
        """See `Journal`."""
        try:
            faults = [fault for (fault,) in self._all("PRAGMA integrity_check(3)")]
            if faults != ["ok"]:
                raise JournalDamaged(self._path, f"{'; '.join(faults)[:200]}: {RESTORE}")
            rows = self._all("SELECT key, value, crc FROM entries ORDER BY place")
            ((count, crcs),) = self._all("SELECT rows, crcs FROM sums")
        except ValueError as problem:  # Not one row of sums.
            raise JournalDamaged(self._path, f"its sums are gone: {RESTORE}") from problem
        except sqlite3.Error as problem:
            raise _named(self._path, problem) from problem
        found = entries_of(self._path, rows)
        if (count, crcs) != (len(rows), sum(crc for *_, crc in rows)):
            why = f"it has {len(rows)} entries and should have {count}, or others: {RESTORE}"
            raise JournalDamaged(self._path, why)
        return found

    def commit(self, stores: Sequence[Mapping[Key, object]]) -> None:
        """See `Journal`."""
        changes = Changes.of(stores)
        put = [(one.key, one.value, one.crc) for one in changes.entries]
        try:
            self._all("BEGIN IMMEDIATE")
            self._connection.executemany(_FORGET, [(key,) for key in changes.forgotten])
            self._connection.executemany(_PUT, put)
            self._all("COMMIT")
        except sqlite3.Error as problem:
            self._undo()
            raise _named(self._path, problem) from problem
        self._commits += 1
        if self._commits % _COMMITS_BETWEEN == 0:
            self._tend()

    def _undo(self) -> None:
        # SQLite may have done it by itself, or never begun.
        with suppress(sqlite3.Error):
            self._all("ROLLBACK")

    def _tend(self) -> None:
        """Give some of what is free back to the disk, if it is much."""
        try:
            ((free,),) = self._all("PRAGMA freelist_count")
            ((pages,),) = self._all("PRAGMA page_count")
            if free > max(_FREE_PAGES_MAX, pages // 2):
                self._all("BEGIN IMMEDIATE")
                for _ in range(_GIVEN_BACK):
                    # Asked for more, Python's module takes one step and stops.
                    self._all("PRAGMA incremental_vacuum(1)")
                self._all("COMMIT")
        except sqlite3.Error:
            self._undo()  # It is tried again; what was to be kept is kept.

    def incarnation(self, at_least: int = 0) -> int:
        """See `Journal`."""
        try:
            found = max(int(self._about()["incarnation"]) + 1, at_least)
            self._all("BEGIN IMMEDIATE")
            self._say("incarnation", str(found))
            self._all("COMMIT")
        except (KeyError, ValueError) as problem:
            raise JournalDamaged(self._path, f"its incarnation is gone: {RESTORE}") from problem
        except sqlite3.Error as problem:
            self._undo()
            raise _named(self._path, problem) from problem
        return found

    def close(self) -> None:
        """See `Journal`."""
        try:
            self._connection.close()
        finally:
            self._lock.release()


def _named(path: str, problem: sqlite3.Error) -> JournalError:
    """SQLite's error as one of ours."""
    code = getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return JournalFull(path, f"no room ({problem}): free some, and it goes on")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return JournalDamaged(path, f"{problem}: {RESTORE}")
    return (JournalUnavailable if code in _MAY_PASS else JournalError)(path, str(problem))
