"""Does anybody want what clients have advertised? They are told when that changes.

It is asked anew every so often, of all brokers behind this one, or when it is known: that takes
longer where very many have subscribed.
"""

from __future__ import annotations

import asyncio
from functools import partial
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
        self._asked: set[tuple[str, str]] = set()
        """Those of which it is not known yet what was asked last."""
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, guest: Guest, id: str, says: Advertisement) -> None:
        """Tell a guest when somebody wants what it advertises, and when nobody does any more."""
        self.unwatch(guest, id)
        self._watched[guest.name, id] = _Watched(guest, id, says)
        if self._timer is None:
            self._timer = self._server.loop.call_later(0, self._look)

    def unwatch(self, guest: Guest, id: str) -> None:
        """It need not know any more."""
        self._watched.pop((guest.name, id), None)
        self._asked.discard((guest.name, id))

    def __len__(self) -> int:
        return len(self._watched)

    def _look(self) -> None:
        self._timer = None
        for key, one in [*self._watched.items()]:
            if key not in self._asked:
                self._asked.add(key)
                found = partial(self._asked.discard, key)
                self._server.serving.look(one.guest, one.id, one.says, found)
        if self._watched:
            self._timer = self._server.loop.call_later(EVERY, self._look)

    def end(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
