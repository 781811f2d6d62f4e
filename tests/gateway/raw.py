"""How do tests say to a broker what no library would, byte by byte?"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from driftline.net.server import Server
from tests.net.here import http

HANDSHAKE = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==\r\n"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came."""

    status: int
    headers: dict[str, str]
    body: bytes
    ended: bool
    """Was the connection ended by the broker?"""

    @property
    def problem(self) -> dict[str, Any]:
        """The problem that it is."""
        assert self.headers["content-type"] == "application/problem+json", self
        said = json.loads(self.body)
        assert said["status"] == self.status
        return said  # type: ignore[no-any-return]


def framed(kind: int, data: bytes, *, last: bool = True) -> bytes:
    """A frame of a WebSocket as a client says it: 1 a text, 8 a close."""
    size = len(data)
    known = bytes([128 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    # Masked by nothing.
    return bytes([last << 7 | kind]) + known + bytes(4) + data


async def opened(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection."""
    host, _, port = http(server).removeprefix("http://").partition(":")
    return await asyncio.open_connection(host, int(port))


async def answered(reader: asyncio.StreamReader) -> Answer:
    """The next answer; is it the last?"""
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    try:
        ended = await asyncio.wait_for(reader.read(1), 0.3) == b""
    except TimeoutError:
        ended = False
    return Answer(int(first.split()[1]), headers, body, ended)


async def asked(server: Server, said: bytes) -> Answer:
    """What is answered to this."""
    reader, writer = await opened(server)
    writer.write(said)
    try:
        return await answered(reader)
    finally:
        writer.close()
