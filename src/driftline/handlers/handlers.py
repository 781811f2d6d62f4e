"""Which durable subscriptions are told through handlers, and by which way?

A door of the broker (see `net.inside`): it opens when the broker does, looks for all durable
subscriptions that have a handler, and is called when one is redirected, suspended, resumed or
ended. A handler is an address: `https://host/path` or `mailto:somebody@example.org`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from driftline.errors import InvalidValue, NotSupported
from driftline.handlers.delivering import Delivering, Tally
from driftline.handlers.mailing import SCHEME, Mail
from driftline.handlers.webhooks import Webhooks
from driftline.model.value import show
from driftline.net.config import Config
from driftline.net.inside import Count, Trouble
from driftline.net.logs import Log

if TYPE_CHECKING:
    from driftline.net.server import Server

log = Log("driftline.handlers")

_FINISH = 3.0
"""Seconds that what is being handed over has to be taken when the broker ends."""


class Handlers:
    """Webhooks and mail of one broker. See `Door` and `Handling`."""

    def __init__(self, config: Config) -> None:
        self._server: Server | None = None
        self._running: dict[str, tuple[Delivering, asyncio.Task[None]]] = {}
        self._unserved: dict[str, Trouble] = {}
        """Those whose handlers the configuration no longer has a way for."""
        self._closing: set[asyncio.Task[None]] = set()
        self._tally = Tally()
        self._webhooks, self._mail = self._ways(config)

    @staticmethod
    def _ways(config: Config) -> tuple[Webhooks | None, Mail | None]:
        web, mail = config.webhooks, config.email
        return (
            None if web is None else Webhooks(web),
            None if mail is None else Mail(config.name, mail),
        )

    # See `Door`

    async def start(self, server: Server) -> None:
        """Tell all who have a handler."""
        self._server = server
        for party in [*server.edge.parties.handled]:
            self.routed(party)

    def handles(self, handler: str) -> bool:
        """Can something be handed over to this address from here? `InvalidValue` if it may not."""
        way = self._way(handler)
        if way is None:
            return False
        way.address(handler)
        return True

    def _way(self, handler: str) -> Webhooks | Mail | None:
        kind = handler.partition(":")[0].lower()
        if kind in ("http", "https"):
            return self._webhooks
        if kind == "mailto":
            return self._mail
        wanted = f"https://…{'' if self._mail is None else f' or {SCHEME}…'}"
        # Only what kind it is: there may be a password in the rest.
        raise InvalidValue("handler", wanted, show(kind[:100]))

    def routed(self, party: str) -> None:
        """Begin to tell a durable subscription through its handler, go on, or end it."""
        server = self._server
        assert server is not None
        known = server.edge.parties.get(party)
        handler = "" if known is None or known.suspended else known.handler
        self._unserved.pop(party, None)
        before = self._running.get(party)
        if before is not None:
            delivering, task = before
            is_over = delivering.is_over or task.done()
            if delivering.handler == handler and not is_over:
                delivering.look()
                return
            task.cancel()
            del self._running[party]
        if not handler:
            return
        try:
            way = self._way(handler)
        except InvalidValue:
            way = None
        if way is None:
            log.warning("a handler is not served here", broker=server.config.name, party=party)
            self._unserved[party] = Trouble("its kind of handler is not served by this broker", 0)
            return
        delivering = Delivering(server, party, handler, way, self._tally)
        self._running[party] = delivering, server.loop.create_task(delivering.run())

    def troubled(self, why: str) -> None:
        """See `Door`."""

    def renewed(self, config: Config) -> Callable[[], None]:
        """Where things may go, who may send them there, and how they are signed. See `Door`."""
        return partial(self._begin_anew, self._ways(config))

    def _begin_anew(self, ways: tuple[Webhooks | None, Mail | None]) -> None:
        assert self._server is not None
        for way in (self._webhooks, self._mail):
            if way is not None:
                self._spawn(way)
        self._webhooks, self._mail = ways
        for _, task in self._running.values():
            task.cancel()
        self._running.clear()
        for party in [*self._server.edge.parties.handled]:
            self.routed(party)

    def _spawn(self, way: Webhooks | Mail) -> None:
        assert self._server is not None
        task = self._server.loop.create_task(way.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def stop(self) -> None:
        """Let what is on its way arrive, if that is soon, and begin nothing more."""
        running = [*self._running.values()]
        self._running.clear()
        idle = [task for delivering, task in running if not delivering.handing_over]
        for task in idle:
            task.cancel()
        busy = [one for one in running if one[1] not in idle]
        for delivering, _ in busy:
            delivering.finish()
        if busy:
            await asyncio.wait([task for _, task in busy], timeout=_FINISH)
        for _, task in busy:
            task.cancel()
        every = [task for _, task in running]
        await asyncio.gather(*every, *self._closing, return_exceptions=True)
        for way in (self._webhooks, self._mail):
            if way is not None:
                await way.close()

    def facts(self) -> dict[str, object]:
        """What can be served."""
        ways = {"webhooks": self._webhooks, "email": self._mail}
        return {"handlers": [name for name, way in ways.items() if way is not None]}

    def counts(self) -> list[Count]:
        """How busy it is."""
        failing = [one for one, _ in self._running.values() if one.trouble is not None]
        tally = self._tally
        return [
            Count("handlers", len(self._running), "Durable subscriptions told through handlers."),
            Count("handlers_failing", len(failing), "Those whose handler takes nothing now."),
            Count("handler_deliveries", tally.taken, "What handlers have taken.", True),
            Count("handler_failures", tally.failed, "Attempts that did not succeed.", True),
            Count("dead_letters", tally.buried, "What was given up as a dead letter.", True),
        ]

    # See `Handling`

    def holds(self, party: str) -> bool:
        """Is it told to its handler just now?"""
        known = self._running.get(party)
        return known is not None and known[0].is_attached

    def trouble(self, party: str) -> Trouble | None:
        """Why telling it does not succeed."""
        known = self._running.get(party)
        return self._unserved.get(party) if known is None else known[0].trouble

    def secret(self, party: str, generation: int) -> str:
        """What its webhooks are signed with."""
        if self._webhooks is None:
            raise NotSupported("secret", "no webhooks are sent from this broker")
        return self._webhooks.secret(party, generation)
