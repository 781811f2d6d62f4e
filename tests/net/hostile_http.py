"""How do those who mean harm come by HTTP? Over TLS, with a token or none."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress

_HELD = 3.0
"""Seconds that a connection is held which only wants to be there."""
Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class HttpAttacker:
    """Somebody who means harm."""

    def __init__(self, host: str, port: int, token: str, trust: ssl.SSLContext, seed: int) -> None:
        self._where = (host, port)
        self._head = f"Host: {host}\r\nAuthorization: Bearer {token}\r\n"
        self._trust = trust
        self._random = random.Random(seed)
        self.kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "http: says nothing": self._nothing,
            "http: half of TLS": self._half_of_tls,
            "http: a byte at a time": self._drip,
            "http: a body that does not end": self._half_a_body,
            "http: too large a head": self._large_head,
            "http: too large a body": self._large_body,
            "http: a flood of requests": self._requests,
            "http: without a token": self._unproven,
            "http: a flood of streams": self._streams,
            "http: reads nothing": self._reads_nothing,
            "http: rubbish": self._rubbish,
            "http: a flood on a WebSocket": self._socket,
            "http: too large a message": self._large_message,
        }

    async def _open(self) -> Opened:
        return await asyncio.open_connection(*self._where, ssl=self._trust)

    def _request(self, method: str, path: str, body: bytes = b"", length: int = -1) -> bytes:
        size = len(body) if length < 0 else length
        kind = "Content-Type: application/json\r\n"
        head = f"{method} {path} HTTP/1.1\r\n{self._head}{kind}Content-Length: {size}\r\n\r\n"
        return head.encode() + body

    async def _nothing(self) -> None:
        _, writer = await self._open()
        await asyncio.sleep(_HELD)
        writer.transport.abort()

    async def _half_of_tls(self) -> None:
        _, writer = await asyncio.open_connection(*self._where)
        writer.write(bytes.fromhex("16030102000100") + bytes(100))
        await asyncio.sleep(_HELD)
        writer.transport.abort()

    async def _drip(self) -> None:
        _, writer = await self._open()
        for byte in self._request("GET", "/v1/subscriptions")[:100]:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.05)
        writer.transport.abort()

    async def _half_a_body(self) -> None:
        _, writer = await self._open()
        writer.write(self._request("POST", "/v1/events", b"[" * 1000, 1 << 20))
        await asyncio.sleep(_HELD)
        writer.transport.abort()

    async def _large_head(self) -> None:
        reader, writer = await self._open()
        writer.write(b"GET / HTTP/1.1\r\nX: " + b"x" * (1 << 20))
        await asyncio.wait_for(reader.read(1 << 16), 10)
        writer.close()

    async def _large_body(self) -> None:
        reader, writer = await self._open()
        writer.write(self._request("POST", "/v1/events", b"[" * (8 << 20)))
        await asyncio.wait_for(reader.read(1 << 16), 10)
        writer.transport.abort()

    async def _requests(self) -> None:
        reader, writer = await self._open()
        body = {"sql": "SELECT * FROM flood WHERE x > :x AND y LIKE '%a%'", "params": {"x": 1}}
        raw = json.dumps(body).encode()
        for at in range(50):
            writer.write(self._request("PUT", f"/v1/subscriptions/flood{at % 5}", raw))
        with suppress(TimeoutError):
            await asyncio.wait_for(reader.read(1 << 16), 5)
        writer.transport.abort()

    async def _unproven(self) -> None:
        reader, writer = await self._open()
        head = b"GET /v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x.y.z\r\n\r\n"
        writer.write(50 * head)
        await asyncio.wait_for(reader.read(1 << 16), 10)
        writer.transport.abort()

    async def _streams(self) -> None:
        some = [await self._open() for _ in range(5)]
        for _, writer in some:
            writer.write(self._request("GET", "/v1/stream?sql=SELECT+*+FROM+flood"))
        await asyncio.sleep(0.3)
        for _, writer in some:
            writer.transport.abort()

    async def _reads_nothing(self) -> None:
        reader, writer = await self._open()
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(self._request("GET", "/v1/stream?sql=SELECT+*+FROM+flood"))
        events = [{"type": "flood", "x": 1, "text": "x" * 1000}] * 200
        _, other = await self._open()
        for _ in range(5):
            other.write(self._request("POST", "/v1/events", json.dumps(events).encode()))
        await asyncio.sleep(_HELD)
        writer.transport.abort()
        other.transport.abort()

    async def _rubbish(self) -> None:
        reader, writer = await self._open()
        writer.write(self._random.randbytes(4096) + b"\r\n\r\n")
        await asyncio.wait_for(reader.read(1 << 16), 10)
        writer.close()

    async def _upgraded(self) -> Opened:
        reader, writer = await self._open()
        key = base64.b64encode(os.urandom(16)).decode()
        upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        head = f"GET /v1/socket HTTP/1.1\r\n{self._head}{upgrade}Sec-WebSocket-Key: {key}\r\n\r\n"
        writer.write(head.encode())
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        return reader, writer

    async def _socket(self) -> None:
        _, writer = await self._upgraded()
        said = {"do": "subscribe", "sql": "SELECT * FROM flood WHERE x > 1"}
        for at in range(200):
            raw = json.dumps({**said, "id": str(at)}).encode()
            # Masked with nothing, which is allowed.
            writer.write(b"\x81" + bytes([0x80 | len(raw)]) + bytes(4) + raw)
        await asyncio.sleep(0.3)
        writer.transport.abort()

    async def _large_message(self) -> None:
        reader, writer = await self._upgraded()
        writer.write(b"\x81\xff" + (1 << 40).to_bytes(8, "big") + bytes(4) + bytes(1 << 16))
        await asyncio.wait_for(reader.read(1 << 16), 10)
        writer.close()
