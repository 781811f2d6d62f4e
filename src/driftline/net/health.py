"""Is a broker alive, is it ready, and how does it do? Asked over HTTP, by whoever looks after it.

GET /health/live     200 while the process does something at all
GET /health/ready    200 while it takes clients in and can store; 503 otherwise, with the reason
GET /health          the status, as JSON
GET /metrics         the metrics, for Prometheus

At a broker that is closed the last two are for those who may `operate` it, and say so by a token:
`Authorization: Bearer …`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from driftline.broker.identity import guest_of
from driftline.errors import NotAllowed, NotAuthenticated, NotSupported
from driftline.net.address import Address, cannot_listen
from driftline.net.metrics import CONTENT_TYPE, metrics_of

if TYPE_CHECKING:
    from driftline.net.server import Server

_WITHIN = 5.0
_HEAD_MOST = 8192
_JSON = "application/json"
_WORDS = {
    200: "OK",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    501: "Not Implemented",
    503: "Service Unavailable",
}


class _Answer(NamedTuple):
    code: int
    body: bytes
    kind: str = _JSON


class Health:
    """Answers for one server. By hand: four questions need no framework."""

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
            line, headers = _read(head)
            method = line.partition(" ")[0]
            writer.write(_response(self._answer(line, headers), with_body=method != "HEAD"))
            await asyncio.wait_for(writer.drain(), _WITHIN)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # Whoever asks so badly gets no answer.
        finally:
            writer.close()

    def _answer(self, line: str, headers: Mapping[str, str]) -> _Answer:
        method, _, rest = line.partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if method not in ("GET", "HEAD"):
            return _problem(405, "only GET")
        if path == "/health/live":
            return _said(200, {"live": True})
        if path == "/health/ready":
            why = self._server.trouble or ("it is ending" if self._server.draining else "")
            return _said(503, {"ready": False, "why": why}) if why else _said(200, {"ready": True})
        if path not in ("/health", "/metrics"):
            return _problem(404, "wanted /health, /health/live, /health/ready or /metrics")
        try:
            check_operator(self._server, headers.get("authorization", ""))
            if path == "/health":
                return _said(200, self._server.status())
            return _Answer(200, metrics_of(self._server), CONTENT_TYPE)
        except NotAuthenticated as problem:
            return _problem(401, str(problem))
        except NotAllowed as problem:
            return _problem(403, str(problem))
        except NotSupported as problem:
            return _problem(501, str(problem))


def check_operator(server: Server, authorization: str) -> None:
    """Raise unless whoever shows this header may see how a broker does."""
    if not server.config.is_closed:
        return
    scheme, _, token = authorization.strip().partition(" ")
    if authorization and scheme.lower() != "bearer":
        raise NotAuthenticated("a bearer token is wanted")
    proven = server.identities.proven(token.strip(), None)
    server.broker.access.operate(guest_of(proven.identity, ""))


def _read(head: bytes) -> tuple[str, dict[str, str]]:
    """The first line of a request, and its headers by their names in small letters."""
    line, *rest = head.decode("latin-1").split("\r\n")
    pairs = (one.partition(":") for one in rest)
    return line, {name.strip().lower(): value.strip() for name, _, value in pairs}


def _said(code: int, body: object) -> _Answer:
    return _Answer(code, json.dumps(body).encode())


def _problem(code: int, why: str) -> _Answer:
    body = {"type": "about:blank", "title": _WORDS[code], "status": code, "detail": why}
    return _Answer(code, json.dumps(body).encode(), "application/problem+json")


def _response(answer: _Answer, *, with_body: bool) -> bytes:
    code, body, kind = answer
    head = f"HTTP/1.1 {code} {_WORDS[code]}\r\nContent-Type: {kind}\r\n"
    if code == 401:
        head += "WWW-Authenticate: Bearer\r\n"
    head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + (body if with_body else b"")
