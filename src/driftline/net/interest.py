"""Does anybody want what clients have advertised? They are told when that changes.

It is asked anew every so often, of all brokers behind this one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from driftline.model.advertisement import Advertisement
from driftline.net.guest import Guest

if TYPE_CHECKING:
    from driftline.net.server import Server

EVERY = 1.0
"""Seconds."""


class _Watched(NamedTuple):
    """What a guest advertised, of which it wants to know whether anybody wants it."""

    guest: Guest
    id: str
    says: Advertisement


class Watching:
    """The advertisements that are watched at one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._watched: dict[tuple[str, str], _Watched] = {}
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, guest: Guest, id: str, says: Advertisement) -> None:
        """Tell a guest when somebody wants what it advertises, and when nobody does any more."""
        self._watched[guest.name, id] = _Watched(guest, id, says)
        if self._timer is None:
            self._timer = self._server.loop.call_later(0, self._look)

    def unwatch(self, guest: Guest, id: str) -> None:
        """It need not know any more."""
        self._watched.pop((guest.name, id), None)

    def __len__(self) -> int:
        return len(self._watched)

    def _look(self) -> None:
        self._timer = None
        for one in [*self._watched.values()]:
            self._server.serving.look(one.guest, one.id, one.says)
        if self._watched:
            self._timer = self._server.loop.call_later(EVERY, self._look)

    def end(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
