"""How do tests cut the connection to a broker in the middle of what it says?

with Cutting(port) as line:
    line.port                   # who connects here is connected to the broker
    line.cut_after(1 << 20)     # so many bytes that it says pass from now on, and then no more
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

_PIECE = 1 << 16


class Cutting:
    """Stands between a broker and whoever connects to it, in a thread of its own."""

    def __init__(self, port: int) -> None:
        self._broker = port
        self._left: int | None = None
        self.cut = threading.Event()
        self.is_open = True
        """Is whoever connects let through?"""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def cut_after(self, size: int) -> None:
        self._left = size

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.is_open:
            writer.transport.abort()
            return
        theirs, ours = await asyncio.open_connection("127.0.0.1", self._broker)

        async def say(data: bytes) -> None:
            if self._left is not None:
                data = data[: self._left]
                self._left -= len(data)
            writer.write(data)
            await writer.drain()
            if self._left == 0:
                await asyncio.sleep(0.3)  # What has passed is to be read.
                self._left = None
                self.cut.set()
                raise ConnectionError

        async def ask(data: bytes) -> None:
            ours.write(data)
            await ours.drain()

        async def pass_on(source: asyncio.StreamReader, to: Callable[[bytes], Awaitable[None]]):
            try:
                while data := await source.read(_PIECE):
                    await to(data)
            except ConnectionError:
                pass
            finally:
                writer.transport.abort()
                ours.transport.abort()

        await asyncio.gather(pass_on(reader, ask), pass_on(theirs, say))

    def __enter__(self) -> Cutting:
        self._thread.start()

        async def begin() -> None:
            self._server = await asyncio.start_server(self._join, "127.0.0.1", 0)
            self.port = self._server.sockets[0].getsockname()[1]

        asyncio.run_coroutine_threadsafe(begin(), self._loop).result(5)
        return self

    def __exit__(self, *_: object) -> None:
        async def end() -> None:
            self._server.close()
            mine = asyncio.current_task()
            others = [one for one in asyncio.all_tasks() if one is not mine]
            for one in others:
                one.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()
