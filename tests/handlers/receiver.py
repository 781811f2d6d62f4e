"""How do tests come by a receiver of webhooks that answers, or fails, as they say?

A server of its own, in a thread, that speaks just enough HTTP: what a library would keep one from
doing (to end in the middle of an answer, to send a byte at a time) it must be able to do.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

Answer = Callable[["Post", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Post:
    """What came."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float = field(default_factory=time.monotonic)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def values(self) -> dict[str, Any]:
        found: dict[str, Any] = self.event["data"]["values"]
        return found


def status(code: int, *headers: str, body: bytes = b"") -> Answer:
    """Answer with this."""

    async def answer(post: Post, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {code} Said", f"content-length: {len(body)}", *headers, "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()

    return answer


def after(seconds: float, then: Answer) -> Answer:
    """Answer later."""

    async def answer(post: Post, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        await then(post, writer)

    return answer


async def reset(post: Post, writer: asyncio.StreamWriter) -> None:
    """End the connection without an answer."""
    writer.transport.abort()


async def half(post: Post, writer: asyncio.StreamWriter) -> None:
    """End it in the middle of the head of an answer."""
    writer.write(b"HTTP/1.1 200 O")
    await writer.drain()
    writer.transport.abort()


async def cut_short(post: Post, writer: asyncio.StreamWriter) -> None:
    """End it in the middle of the body: what counts was said before."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nsome")
    await writer.drain()
    writer.transport.abort()


def stalled(code: int, *, chunked: bool = False) -> Answer:
    """A status, the beginning of a body, and nothing more."""
    how = "transfer-encoding: chunked" if chunked else "content-length: 5"

    async def answer(post: Post, writer: asyncio.StreamWriter) -> None:
        some = "1\r\nx\r\n" if chunked else "x"
        writer.write(f"HTTP/1.1 {code} Said\r\n{how}\r\n\r\n{some}".encode())
        await writer.drain()
        await asyncio.sleep(60)

    return answer


async def endless(post: Post, writer: asyncio.StreamWriter) -> None:
    """An answer that never ends."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"x" * 65536)
        await writer.drain()


async def dripping(post: Post, writer: asyncio.StreamWriter) -> None:
    """A head that comes a byte at a time, and never ends."""
    writer.write(b"HTTP/1.1 200 OK\r\nx: ")
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.05)


def repeated(first: bytes, piece: bytes) -> Answer:
    """Say something, and then the same again and again, for as long as anybody listens."""

    async def answer(post: Post, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while not writer.is_closing():
            writer.write(piece * 10_000)
            await writer.drain()

    return answer


OK = status(200)


class Receiver:
    """Takes what is sent. `answers` are for the first ones, then it is `otherwise`."""

    def __init__(self, *answers: Answer, otherwise: Answer = OK, tls: Any = None) -> None:
        self.posts: list[Post] = []
        self.answers = [*answers]
        self.otherwise = otherwise
        self.on_post: Callable[[Post], None] = lambda post: None
        self._tls: ssl.SSLContext | None = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    @property
    def prices(self) -> list[Any]:
        return [post.values.get("price") for post in self.posts]

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                first, *lines = head.decode().rstrip().split("\r\n")
                headers = dict(line.split(": ", 1) for line in lines)
                headers = {name.lower(): value for name, value in headers.items()}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                post = Post(first.split(" ")[1], headers, body)
                self.posts.append(post)
                self.on_post(post)
                answer = self.answers.pop(0) if self.answers else self.otherwise
                await answer(post, writer)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    def __enter__(self) -> Receiver:
        self._thread.start()

        async def begin() -> None:
            self._server = await asyncio.start_server(self._take, "127.0.0.1", 0, ssl=self._tls)
            self.port = self._server.sockets[0].getsockname()[1]

        asyncio.run_coroutine_threadsafe(begin(), self._loop).result(5)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
