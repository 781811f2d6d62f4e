"""Is a broker alive, and is it ready? Asked over HTTP, by whoever looks after it.

GET /health/live     200 while the process does something at all
GET /health/ready    200 while it takes clients in and can store; 503 otherwise, with the reason
GET /health          the status, as JSON
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from driftline.net.config import Address, cannot_listen

if TYPE_CHECKING:
    from driftline.net.server import Server

_WITHIN = 5.0
_HEAD_MOST = 8192


class Health:
    """Answers for one server. By hand: three questions need no framework."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._listening: asyncio.Server | None = None

    async def start(self, at: Address) -> None:
        """Listen."""
        try:
            self._listening = await asyncio.start_server(
                self._serve, at.host, at.port, limit=_HEAD_MOST
            )
        except OSError as problem:
            raise cannot_listen(at, problem) from None

    @property
    def address(self) -> Address:
        """Where it answers."""
        assert self._listening is not None
        bound = self._listening.sockets[0].getsockname()
        return Address(bound[0], bound[1])

    async def stop(self) -> None:
        """Answer no more."""
        if self._listening is not None:
            self._listening.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _WITHIN)
            code, body = self._answer(head.split(b"\r\n", 1)[0].decode("latin-1"))
            writer.write(_response(code, body))
            await asyncio.wait_for(writer.drain(), _WITHIN)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # Whoever asks so badly gets no answer.
        finally:
            writer.close()

    def _answer(self, line: str) -> tuple[int, object]:
        method, _, rest = line.partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if method not in ("GET", "HEAD"):
            return 405, {"problem": "only GET"}
        if path == "/health/live":
            return 200, {"live": True}
        if path == "/health/ready":
            why = self._server.trouble or ("it is ending" if self._server.draining else "")
            return (503, {"ready": False, "why": why}) if why else (200, {"ready": True})
        if path == "/health":
            return 200, self._server.status()
        return 404, {"problem": "wanted /health, /health/live or /health/ready"}


def _response(code: int, body: object) -> bytes:
    words = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
    data = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 {code} {words[code]}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + data
