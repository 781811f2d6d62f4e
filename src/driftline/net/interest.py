"""Does anybody want what clients have advertised? They are told when that changes.

It is asked anew every so often, of all brokers behind this one. Here each subscription is looked
at, which takes long if there are very many: so it is done in short steps, and lets nobody wait.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple

from driftline.broker.edge import Edge
from driftline.model.advertisement import Advertisement
from driftline.model.covering import intersects
from driftline.net.counting import Steps
from driftline.net.guest import Guest

if TYPE_CHECKING:
    from driftline.net.server import Server

EVERY = 1.0
"""Seconds."""
SECONDS = 0.001
"""So long is looked at a time."""
_REST = 9.0
"""And so many times as long the loop is for others then."""


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
        self._looking: Steps[None] | None = None
        """A round that has begun."""

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
        if self._looking is None:
            self._looking = self._steps()
        began = time.perf_counter()
        for _ in self._looking:
            spent = time.perf_counter() - began
            if spent >= SECONDS:
                self._timer = self._server.loop.call_later(_REST * spent, self._look)
                return
        self._looking = None
        if self._watched:
            self._timer = self._server.loop.call_later(EVERY, self._look)

    def _steps(self) -> Steps[None]:
        for key, one in [*self._watched.items()]:
            if self._watched.get(key) is not one:
                continue
            if (yield from wanted_here(self._server.edge, one.says)):
                self._server.serving.tell_interest(one.guest, one.id, True)
            else:
                self._server.serving.look(one.guest, one.id, one.says)

    def end(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()


def wanted_here(edge: Edge, says: Advertisement) -> Steps[bool]:
    """Does anybody at this broker want some of what is advertised? May say yes too often."""
    for standing in edge.standings:
        yield
        if intersects(says, standing.statement, standing.params):
            return True
    return False
