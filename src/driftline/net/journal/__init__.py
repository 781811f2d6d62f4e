"""WHAT SURVIVES A BROKER: its entries, in a file, in PostgreSQL, or nowhere.

    Store ──stored──▶ entries of bytes ──journal──▶ sqlite · postgres · memory
    many Stores ──group──▶ one commit, and then everybody is told

Reading order: stored (with statements, tellings), journal, memory, sqlite (with lock, wal),
postgres, group.
"""

from __future__ import annotations

from pathlib import Path

from driftline.errors import JournalRefused
from driftline.net.journal.journal import Journal
from driftline.net.journal.memory import MemoryJournal
from driftline.net.journal.sqlite import SqliteJournal
from driftline.net.secrets import is_misread, without_password

_IN_FILE = "sqlite:///"
_IN_DATABASE = ("postgresql://", "postgres://")


def open_journal(url_or_path: str | Path, name: str) -> Journal:
    """The journal of a broker: `memory:`, a path or `sqlite:///path`, or `postgresql://…`.

    One that is not there is made. `sqlite:////var/lib/b` has a path from the root, as elsewhere.
    """
    said = str(url_or_path)
    if said == "memory:":
        return MemoryJournal()
    if said.startswith(_IN_DATABASE):
        if is_misread(said):
            # PostgreSQL would name parts of it in what it says.
            why = "wanted / and @ in a password written as %2F and %40"
            raise JournalRefused(without_password(said), why)
        try:
            from driftline.net.journal.postgres import PostgresJournal
        except ImportError as problem:
            why = f"needs psycopg: pip install 'driftline[postgres]' ({problem})"
            raise JournalRefused("postgresql://", why) from problem
        return PostgresJournal(said, name)
    path = said.removeprefix(_IN_FILE)
    if "://" in path or not path:
        why = "wanted a path, sqlite:///path, postgresql://… or memory:"
        raise JournalRefused(without_password(said), why)
    return SqliteJournal(path, name)


def file_of(url_or_path: str) -> Path | None:
    """The file that a journal is in, if it is in one."""
    if url_or_path == "memory:" or url_or_path.startswith(_IN_DATABASE):
        return None
    return Path(url_or_path.removeprefix(_IN_FILE))
