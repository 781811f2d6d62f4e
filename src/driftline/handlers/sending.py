"""How does a request go out to a receiver that may mean harm, and how much of its answer is read?

Little: whoever answers in very many small pieces lets a parser work for each of them, in the loop
that everybody shares. So a connection ends when it has said more than any answer needs, and it is
read a little at a time, with others' turns in between.

Connections are kept open for what is sent next to the same address, and to no other: what is left
on one of an answer would count as the next one's.
"""

from __future__ import annotations

import ssl
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import httpcore

_IDLE_MOST = 16
"""So many connections are kept open ..."""
_IDLE_FOR = 5.0
"""... for so many seconds, which is less than most receivers keep them."""
_ANSWER_MOST = 1 << 17
"""So many bytes may be read of an answer: more than a parser takes for a head."""
_PIECE = 1 << 11
"""So many are parsed before others have their turn: a few milliseconds, at the worst."""

PROBLEMS = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
    httpcore.ConnectionNotAvailable,
    OSError,
)
"""What may go wrong with a connection."""


class Line:
    """What sends requests to one address, one at a time; nothing else comes of an answer than what
    it says: no redirection is followed, no cookie is kept.
    """

    def __init__(self, address: str, tls: ssl.SSLContext) -> None:
        self.address = address
        self._pool = httpcore.AsyncConnectionPool(
            tls, max_connections=1, keepalive_expiry=_IDLE_FOR, network_backend=_Backend()
        )

    async def post(
        self, url: httpcore.URL, headers: Iterable[tuple[str, str]], body: bytes
    ) -> httpcore.Response:
        """Post something; the answer's head, when it is there."""
        said = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers]
        request = httpcore.Request("POST", url, headers=said, content=body)
        return await self._pool.handle_async_request(request)

    async def close(self) -> None:
        """End its connection."""
        await self._pool.aclose()


class _Idle(NamedTuple):
    """A line that can be used again, and since when it is not."""

    line: Line
    since: float


class Lines:
    """The lines to all addresses that are open and not used just now."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._idle: deque[_Idle] = deque()

    async def take(self, address: str) -> Line:
        """One to an address, which is open if there is such a one."""
        now = time.monotonic()
        found = next((one for one in self._idle if one.line.address == address), None)
        if found is not None:
            self._idle.remove(found)
        while self._idle and (
            len(self._idle) > _IDLE_MOST or self._idle[0].since < now - _IDLE_FOR
        ):
            await self._idle.popleft().line.close()
        return Line(address, self._tls) if found is None else found.line

    def give_back(self, line: Line) -> None:
        """It can be used again."""
        self._idle.append(_Idle(line, time.monotonic()))

    async def close(self) -> None:
        """End all connections."""
        while self._idle:
            await self._idle.popleft().line.close()


class _Backend(httpcore.AsyncNetworkBackend):
    """Makes connections of which little is read."""

    def __init__(self) -> None:
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(self, *given: Any, **said: Any) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._inner.connect_tcp(*given, **said))

    async def connect_unix_socket(self, *given: Any, **said: Any) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._inner.connect_unix_socket(*given, **said))

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _Stream(httpcore.AsyncNetworkStream):
    """A connection of which little is read between two things that are written."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self._left = _ANSWER_MOST

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._left <= 0:
            raise httpcore.RemoteProtocolError(f"an answer of more than {_ANSWER_MOST} bytes")
        data = await self._inner.read(min(max_bytes, _PIECE), timeout)
        self._left -= len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._left = _ANSWER_MOST
        await self._inner.write(buffer, timeout)

    async def start_tls(self, *given: Any, **said: Any) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._inner.start_tls(*given, **said))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    async def aclose(self) -> None:
        await self._inner.aclose()
