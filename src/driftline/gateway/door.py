"""How does a broker come by HTTP? It starts a process that answers it, and looks after that.

Two threads of one process would share the interpreter: whoever keeps the broker busy would let
everybody wait who comes over HTTP, and the other way round. So they are two processes. The sockets
that it listens on are the broker's own: while the other is begun anew, whoever connects waits.
Certificates and keys of tokens are those that the broker has read: when it reads others, another
process begins.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace

from driftline.errors import CannotListen, NotAuthenticated
from driftline.gateway.contents import contents_of
from driftline.gateway.front import Front
from driftline.gateway.line import Busy, Leave, Trouble
from driftline.net.config import Config
from driftline.net.inside import Count
from driftline.net.listening import address_of, bound
from driftline.net.logs import Log
from driftline.net.server import Server

ENDING = 5.0
"""Seconds for what is being answered, when it is to end."""
_DELAY_FIRST, _DELAY_LAST = 0.1, 10.0
"""Seconds until it is begun again, if it ends by itself, the first time and at most."""


class HttpDoor:
    """The door. See `net.inside.Door`."""

    def __init__(self, config: Config) -> None:
        assert config.http is not None
        self.address = config.http.address
        self._config = config
        self._contents: list[bytes | None] = []
        """What was in its files when the broker read them."""
        self._log = Log("driftline.gateway").bind(broker=config.name)
        self._sockets: list[socket.socket] = []
        self._front: Front | None = None
        """What answers now."""
        self._keeping: asyncio.Task[None] | None = None
        self._anew = asyncio.Event()
        self._leaving: set[asyncio.Task[None]] = set()
        self._ending: list[Front] = []
        """What is to answer no more and has not ended: what it counts goes on counting."""
        self._before = Busy()
        """What those have counted that have ended."""
        self._restarts = 0

    # The door

    async def start(self, server: Server) -> None:
        """See `Door`."""
        self.server = server
        self._contents = contents_of(self._config)
        self._sockets = bound(self.address)
        self.address = address_of(self._sockets[0])
        first: asyncio.Future[None] = server.loop.create_future()
        self._keeping = server.loop.create_task(self._keep(first))
        await first

    def renewed(self, config: Config) -> Callable[[], None]:
        """See `Door`. The broker itself has read everything that the process will read."""
        contents = contents_of(config)

        def count() -> None:
            before = self._config
            self._config = replace(
                before, tls=config.tls, tokens=config.tokens, access=config.access
            )
            self._contents = contents
            self._anew.set()
            # Whoever comes from there is not let in any more, whatever it has not heard yet.
            if self._front is not None:
                self._leave(self._front, at_once=False)

        return count

    def handles(self, handler: str) -> bool:
        """See `Door`."""
        return False

    def routed(self, party: str) -> None:
        """See `Door`."""

    def troubled(self, why: str) -> None:
        """See `Door`."""
        if self._front is not None:
            self._front.say(Trouble(why))

    def facts(self) -> dict[str, object]:
        """See `Door`."""
        return {"http": f"http{'s' if self._config.tls else ''}://{self.address}"}

    @property
    def process(self) -> int | None:
        """The number of the process that answers; None: there is none just now."""
        return None if self._front is None else self._front.process

    @property
    def busy(self) -> Busy:
        """How busy it is, and what was counted."""
        fronts = [*self._ending, *([] if self._front is None else [self._front])]
        now = [front.busy for front in fronts]
        return Busy(
            sum(one.connections for one in now),
            sum(one.streams for one in now),
            sum(one.tasks for one in now),
            self._before.requests + sum(one.requests for one in now),
            self._before.turned_away + sum(one.turned_away for one in now),
        )

    def counts(self) -> list[Count]:
        """See `Door`."""
        now = self.busy
        return [
            Count("http_connections", now.connections, "Connections over HTTP."),
            Count("http_streams", now.streams, "Streams and WebSockets."),
            Count("http_requests", now.requests, "Requests that were answered.", True),
            Count("http_turned_away", now.turned_away, "Connections that were turned away.", True),
            Count(
                "http_restarts", self._restarts, "How often what answers HTTP has crashed.", True
            ),
        ]

    async def stop(self) -> None:
        """See `Door`."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        if self._front is not None:
            self._leave(self._front, at_once=True)
        await asyncio.gather(*self._leaving)
        for front in [*self._ending]:
            # Nobody waits for its end any more.
            await front.end()
        for one in self._sockets:
            one.close()

    # What answers

    def front(self) -> Front:
        """What is to answer."""
        return Front(self.server, self.unproven)

    def unproven(self, peer: str, why: str) -> None:
        """Somebody did not prove who they are."""
        self.server.note_unproven(peer, NotAuthenticated(why))

    async def _keep(self, first: asyncio.Future[None]) -> None:
        """Have somebody answer, always."""
        delay = _DELAY_FIRST
        while True:
            self._anew.clear()
            front = self._front = self.front()
            began = self.server.loop.time()
            try:
                await front.begin(self._config, self._contents, self._sockets)
                if not first.done():
                    first.set_result(None)
                await self._until(front.ended)
                why = "it has ended"
            except CannotListen as problem:
                why = problem.why
                if not first.done():
                    await self._gone(front)
                    first.set_exception(problem)
                    return
            if self._front is not front:
                # Another is to answer.
                delay = _DELAY_FIRST
                continue
            await self._gone(front)
            self._restarts += 1
            if self.server.loop.time() - began > _DELAY_LAST:
                delay = _DELAY_FIRST
            self._log.error("what answers HTTP is begun again", why=why, after=delay)
            await self._until(asyncio.sleep(delay))
            delay = min(2 * delay, _DELAY_LAST)

    async def _until(self, what: Awaitable[None]) -> None:
        """Wait for something, or until another is to answer."""
        anew, waited = asyncio.ensure_future(self._anew.wait()), asyncio.ensure_future(what)
        try:
            await asyncio.wait((anew, waited), return_when=asyncio.FIRST_COMPLETED)
        finally:
            anew.cancel()
            if waited is not what:
                waited.cancel()

    def _set_aside(self, front: Front) -> None:
        self._front = None
        self._ending.append(front)

    def _leave(self, front: Front, *, at_once: bool) -> None:
        self._set_aside(front)
        front.say(Leave(at_once))
        task = self.server.loop.create_task(self._left(front))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _left(self, front: Front) -> None:
        await asyncio.wait((front.ended,), timeout=ENDING)
        await self._gone(front)

    async def _gone(self, front: Front) -> None:
        """It answers nothing more; what it has counted is not forgotten."""
        if self._front is front:
            self._set_aside(front)
        await front.end()
        self._ending.remove(front)
        before, now = self._before, front.busy
        self._before = Busy(
            requests=before.requests + now.requests,
            turned_away=before.turned_away + now.turned_away,
        )
