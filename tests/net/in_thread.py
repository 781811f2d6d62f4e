"""What answers HTTP for a broker that is tested, in a thread where its insides can be seen.

It is what runs in a process of its own otherwise (`driftline.gateway.front`), and says the same on
the same line.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress

from driftline.gateway.door import HttpDoor
from driftline.gateway.front import Front
from driftline.gateway.gateway import Gateway
from driftline.net.config import Config

_ENDING = 5.0


class ThreadDoor(HttpDoor):
    """The door of a broker whose HTTP is answered in a thread."""

    def front(self) -> Front:
        self.inside = ThreadFront(self.server, self.unproven)
        return self.inside


class ThreadFront(Front):
    """What answers, in a thread."""

    gateway: Gateway
    loop: asyncio.AbstractEventLoop

    async def _start(self, line: socket.socket, sockets: Sequence[socket.socket]) -> None:
        begun = threading.Event()
        own = [one.dup() for one in (line, *sockets)]

        async def answer() -> None:
            self.loop = asyncio.get_running_loop()
            # A process of its own would say so in its log.
            here = self._server.loop.call_exception_handler
            self.loop.set_exception_handler(
                lambda _, context: self._server.loop.call_soon_threadsafe(here, context)
            )
            this = asyncio.current_task()
            assert this is not None
            self.gateway = Gateway(own[0], own[1:], _nothing, this.cancel)
            begun.set()
            await self.gateway.run()

        def run() -> None:
            with suppress(asyncio.CancelledError):
                asyncio.run(answer())
            for one in own:
                one.close()

        self._thread = threading.Thread(target=run, name="driftline-http", daemon=True)
        self._thread.start()
        await asyncio.to_thread(begun.wait)

    async def end(self) -> None:
        await super().end()
        await asyncio.to_thread(self._thread.join, _ENDING)


def _nothing(config: Config) -> None:
    """It logs as this process does."""
