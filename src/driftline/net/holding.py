"""When must publishers wait, so that nothing grows without bound and nothing is lost?

While too much waits for the journal, and while a subscriber is full that must not lose anything. A
client that is held back is not read from: it notices when the buffers between are full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.net.connection import Connection
from driftline.net.guest import Guest

if TYPE_CHECKING:
    from driftline.net.server import Server

JOURNAL, BLOCKED = "journal", "blocked"
_AGAIN = 0.01


class Holding:
    """Whom a server holds back, and why."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.for_journal = False
        self.blocking: set[Guest] = set()
        """Those who are full, and must not lose anything."""

    def arrived(self, connection: Connection) -> None:
        """Somebody new is held back as everybody is."""
        if self.for_journal:
            connection.hold(JOURNAL)
        if self.blocking:
            connection.hold(BLOCKED)

    def _hold(self, why: str) -> None:
        for guest in self._server.guests.values():
            guest.connection.hold(why)

    def _release(self, why: str) -> None:
        for guest in self._server.guests.values():
            guest.connection.release(why)

    def check_journal(self) -> None:
        """Hold publishers back while too much waits for the journal."""
        if not self.for_journal and self._waiting > self._server.limits.journal_bytes:
            self.for_journal = True
            self._hold(JOURNAL)
            self._server.loop.call_later(_AGAIN, self._recheck)

    @property
    def _waiting(self) -> int:
        commits = self._server.commits
        return 0 if commits is None else commits.bytes_waiting

    def _recheck(self) -> None:
        if self._waiting > self._server.limits.journal_bytes // 2:
            self._server.loop.call_later(_AGAIN, self._recheck)
            return
        self.for_journal = False
        self._release(JOURNAL)

    def check_blocked(self, guest: Guest) -> None:
        """Hold publishers back while somebody who must not lose anything is full.

        Nobody waits for one that has gone, though its connection may still take what it was sent.
        """
        if not guest.behind.is_full or self._server.guests.get(guest.name) is not guest:
            self.unblock(guest)
            return
        if not self.blocking:
            self._hold(BLOCKED)
        self.blocking.add(guest)

    def unblock(self, guest: Guest) -> None:
        """Somebody is no longer full, or has gone."""
        if guest in self.blocking:
            self.blocking.discard(guest)
            if not self.blocking:
                self._release(BLOCKED)
