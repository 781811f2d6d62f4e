"""How does a broker keep what it must in PostgreSQL?

In two tables of the database, or schema, that its address names: one broker each. A session lock
keeps others out. Each commit counts up a number in the same transaction, from the one that we know
and in our incarnation: so nobody writes behind our back, and when the connection is lost while a
commit is on its way, the number says afterwards whether it was kept.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple
from uuid import uuid4

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from driftline.broker.effects import Key
from driftline.errors import (
    JournalDamaged,
    JournalError,
    JournalFull,
    JournalInUse,
    JournalRefused,
    JournalUnavailable,
)
from driftline.net.journal.journal import RESTORE, Changes, entries_of
from driftline.net.journal.stored import FORMAT

_SCHEMA = """
CREATE TABLE driftline_about (
    one boolean PRIMARY KEY DEFAULT true CHECK (one), name text NOT NULL, format bigint NOT NULL,
    incarnation bigint NOT NULL, commits bigint NOT NULL, session text NOT NULL
);
CREATE TABLE driftline_entries (
    key text COLLATE "C" PRIMARY KEY, place bigint NOT NULL,
    value bytea NOT NULL, crc bigint NOT NULL
);
-- Batches of events hardly get smaller, and trying takes time.
ALTER TABLE driftline_entries ALTER value SET STORAGE EXTERNAL;
"""
_SETTINGS = """
SET synchronous_commit = on; SET statement_timeout = 0; SET idle_session_timeout = 0;
-- The server is to notice within half a minute that we are gone, and let go of the lock.
SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;
"""
_IS_MADE = "SELECT to_regclass('driftline_about') IS NOT NULL"
_MAKE = "INSERT INTO driftline_about VALUES (true, %s, %s, 0, 0, '')"
_RAISE = "UPDATE driftline_about SET format = %s WHERE format < %s"
_ABOUT = "SELECT name, format, incarnation, commits, session FROM driftline_about"
_COUNT = """
UPDATE driftline_about SET incarnation = %s, commits = %s, session = %s
WHERE incarnation = %s AND commits = %s AND session = %s RETURNING commits
"""
_FORGET = "DELETE FROM driftline_entries WHERE key = ANY(%b::text[])"
_PUT = """
INSERT INTO driftline_entries (key, place, value, crc)
SELECT * FROM unnest(%b::text[], %b::bigint[], %b::bytea[], %b::bigint[])
ON CONFLICT (key) DO UPDATE SET value = excluded.value, crc = excluded.crc
"""
_LAST_PLACE = "SELECT coalesce(max(place), 0) FROM driftline_entries"
_ALL = "SELECT key, value, crc FROM driftline_entries ORDER BY place"
# With the table's own number, so that journals in schemas of one database do not meet.
_LOCK = "SELECT pg_try_advisory_lock(1148348270, 'driftline_about'::regclass::oid::int4)"
_HOLDERS = """
SELECT pid, application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND classid = 1148348270
AND objid = 'driftline_about'::regclass AND datname = current_database()
"""
_KEY_BYTES_MOST = 2000
"""An index takes no texts of more than about 2,700 bytes. Of longer keys it has what stands for
them, and they are in front of their values."""
_STANDS_FOR = "sha256 "
_SIZE = struct.Struct("<I")
_CONNECT_SECONDS = 5
_PATIENCE_SECONDS = 5.0
_PAUSE_SECONDS = 0.1


class _State(NamedTuple):
    """What the journal says of who wrote it last. No two commits leave the same."""

    incarnation: int
    commits: int
    session: str


class PostgresJournal:
    """A journal in a database. A connection that is lost is made anew when it is needed."""

    def __init__(self, url: str, name: str, patience: float = _PATIENCE_SECONDS) -> None:
        self._url = url
        self._where = _shown(url)
        self._name = name
        self._patience = patience
        # By this our own sessions are known from those of others, also after they were lost.
        self._session = f"driftline {os.getpid()} {uuid4().hex[:8]}"
        self._state: _State | None = None
        # What was tried and how many stores were in it, while nobody knows what came of it; and how
        # many of the stores that are to be kept next have turned out to be kept.
        self._tried: tuple[_State, int] | None = None
        self._kept = 0
        self._place = 0
        self._connection: psycopg.Connection | None = None
        until = time.monotonic() + patience
        # Whoever had it before may have ended just now.
        while self._connection is None:
            try:
                self._open()
            except JournalInUse:
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE_SECONDS)
            except psycopg.Error as problem:
                raise self._named(problem) from problem

    # The connection

    def _ready(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = None
            return self._open()
        return self._connection

    def _open(self) -> psycopg.Connection:
        """Connect, take the lock, and see that it is our journal, as we left it."""
        made = psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            application_name=self._session,
        )
        try:
            made.execute(_SETTINGS)
            made.prepare_threshold = 1
            if made.execute(_IS_MADE).fetchone() != (True,):
                with made.transaction():
                    made.execute(_SCHEMA)
                    made.execute(_MAKE, (self._name, FORMAT))
            self._take_lock(made)
            self._look(made)
            ((self._place,),) = made.execute(_LAST_PLACE).fetchall()
        except BaseException:
            made.close()
            raise
        self._connection = made
        return made

    def _take_lock(self, made: psycopg.Connection) -> None:
        if made.execute(_LOCK).fetchone() == (True,):
            return
        holders = made.execute(_HOLDERS).fetchall()
        for pid, session in holders:
            if session == self._session:
                # The server has not noticed yet that our last connection is gone. What was on its
                # way by it may still be kept: only when it has ended is that known.
                made.execute("SELECT pg_terminate_backend(%s)", (pid,))
                raise JournalUnavailable(self._where, "the last connection is still being ended")
        who = " and ".join(f"{session!r} (server process {pid})" for pid, session in holders)
        raise JournalInUse(self._where, f"{who or 'another process'} has it open: end that first")

    def _look(self, made: psycopg.Connection) -> None:
        about = made.execute(_ABOUT).fetchone()
        if about is None:
            raise JournalDamaged(self._where, f"what it says of itself is gone: {RESTORE}")
        name, written, *rest = about
        found = _State(*rest)
        if written > FORMAT:
            why = f"it has format {written}, and up to {FORMAT} is known here: use a newer version"
            raise JournalRefused(self._where, why)
        if name != self._name:
            why = f"it is that of broker {name!r}, not of {self._name!r}"
            raise JournalRefused(self._where, why)
        if self._tried is not None and found == self._tried[0]:
            self._kept += self._tried[1]
        elif self._state is not None and found != self._state:
            why = "another process has written it since the connection was lost: start anew"
            raise JournalInUse(self._where, why)
        self._state, self._tried = found, None
        # What is written from now on, an earlier version cannot read.
        made.execute(_RAISE, (FORMAT, FORMAT))

    def close(self) -> None:
        """See `Journal`."""
        if self._connection is not None:
            self._connection.close()

    # What is kept

    def load(self) -> dict[Key, object]:
        """See `Journal`."""
        try:
            with self._ready().cursor(binary=True) as cursor:
                rows = cursor.execute(_ALL).fetchall()
            return entries_of(self._where, (_whole(*row) for row in rows))
        except psycopg.Error as problem:
            raise self._named(problem) from problem

    def commit(self, stores: Sequence[Mapping[Key, object]]) -> None:
        """See `Journal`. A lost connection is made anew for some seconds."""
        until = time.monotonic() + self._patience
        while True:
            try:
                self._commit(stores)
            except (psycopg.Error, JournalUnavailable) as problem:
                named = self._named(problem) if isinstance(problem, psycopg.Error) else problem
                lost = self._connection is None or self._connection.closed
                if not (isinstance(named, JournalUnavailable) and lost) or time.monotonic() > until:
                    raise named from problem
                time.sleep(_PAUSE_SECONDS)
            else:
                self._kept = 0
                return

    def _commit(self, stores: Sequence[Mapping[Key, object]]) -> None:
        connection = self._ready()
        stores = stores[self._kept :]
        if not stores:
            return
        changes = Changes.of(stores)
        assert self._state is not None
        incarnation, commits, _ = self._state
        self._write(
            connection, _State(incarnation, commits + 1, self._session), len(stores), changes
        )

    def _write(
        self, connection: psycopg.Connection, then: _State, stores: int, changes: Changes
    ) -> None:
        """Make of the state that we know another, with these changes, in one transaction."""
        assert self._state is not None
        rows = [_row(one.key, one.value) for one in changes.entries]
        keys = [key for key, _ in rows]
        forgotten = [_row(key, b"")[0] for key in changes.forgotten]
        places = [*range(self._place + 1, self._place + 1 + len(keys))]
        values = [value for _, value in rows]
        crcs = [one.crc for one in changes.entries]
        self._tried = then, stores
        try:
            with connection.pipeline(), connection.transaction():
                counted = connection.execute(_COUNT, (*then, *self._state))
                if forgotten:
                    connection.execute(_FORGET, (forgotten,))
                if keys:
                    connection.execute(_PUT, (keys, places, values, crcs))
                if counted.fetchone() is None:
                    raise JournalInUse(self._where, "another process has written it: start anew")
        except psycopg.Error:
            if not connection.closed:
                self._tried = None  # The server has said that nothing was kept.
            raise
        self._state, self._tried = then, None
        self._place += len(keys)

    def incarnation(self, at_least: int = 0) -> int:
        """See `Journal`."""
        try:
            connection = self._ready()
            assert self._state is not None
            found = max(self._state.incarnation + 1, at_least)
            then = _State(found, self._state.commits + 1, self._session)
            self._write(connection, then, 0, Changes([], []))
        except psycopg.Error as problem:
            raise self._named(problem) from problem
        return found

    def _named(self, problem: psycopg.Error) -> JournalError:
        """PostgreSQL's error as one of ours."""
        said = str(problem).strip().partition("\n")[0] or type(problem).__name__
        if isinstance(problem, errors.DiskFull):
            return JournalFull(self._where, f"no room ({said}): free some, and it goes on")
        if isinstance(problem, errors.DataCorrupted | errors.IndexCorrupted):
            return JournalDamaged(self._where, f"{said}: {RESTORE}")
        passing = psycopg.OperationalError | psycopg.InterfaceError | errors.ReadOnlySqlTransaction
        if isinstance(problem, passing):
            return JournalUnavailable(self._where, said)
        return JournalError(self._where, said)


def _row(key: str, value: bytes) -> tuple[str, bytes]:
    """An entry as it is in the table."""
    said = key.encode()
    if len(said) <= _KEY_BYTES_MOST:
        return key, value
    return f"{_STANDS_FOR}{sha256(said).hexdigest()}", _SIZE.pack(len(said)) + said + value


def _whole(key: str, value: bytes, crc: int) -> tuple[str, bytes, int]:
    """An entry as it was, from how it is in the table; its checksum is of what it was."""
    if not key.startswith(_STANDS_FOR) or len(value) < _SIZE.size:
        return key, value, crc
    end = _SIZE.size + _SIZE.unpack_from(value)[0]
    return value[_SIZE.size : end].decode(errors="replace"), value[end:], crc


def _shown(url: str) -> str:
    """The address, without what is nobody's business."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "of an address that cannot be read"
    host, port = parts.get("host", ""), parts.get("port")
    return f"postgresql://{host}{f':{port}' if port else ''}/{parts.get('dbname', '')}"
