"""How is HTTP answered for a broker? In a process of its own, which that has begun (`door`)."""

from __future__ import annotations

import asyncio
import logging
import socket
import traceback
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Routed
from starlette.routing import WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from driftline.errors import DriftlineError
from driftline.gateway import sockets
from driftline.gateway.asked import Asked, answer
from driftline.gateway.asyncapi import asyncapi
from driftline.gateway.connection import Connections, listen, settings_of
from driftline.gateway.contents import files_of
from driftline.gateway.line import (
    Begin,
    Busy,
    Failed,
    Leave,
    Line,
    Ready,
    Said,
    Trouble,
)
from driftline.gateway.openapi import openapi
from driftline.gateway.pages import METHODS, Pages, check_page
from driftline.gateway.problems import Refused, problem_of
from driftline.gateway.routes import ROUTES, SOCKET, Route, V
from driftline.gateway.shares import Room
from driftline.gateway.streams import EventStream
from driftline.gateway.visitors import Visitors
from driftline.model.value import show
from driftline.net.config import Config
from driftline.net.identities import Identities
from driftline.net.listening import address_of
from driftline.net.logs import Log

log = Log("driftline.gateway")

_ENDING = 2.0
_LOOK, _AGAIN = 0.25, 5.0
"""Seconds from one time that is looked how busy it is to the next; and that this is said, also
where it has not changed: the broker takes who says nothing for dead.
"""


class Gateway:
    """What is asked of one broker over HTTP, and how it is answered."""

    def __init__(
        self,
        end: socket.socket,
        sockets: Sequence[socket.socket],
        begins: Callable[[Config], None],
        lost: Callable[[], object],
    ) -> None:
        self._sockets = sockets
        self._begins = begins
        self.line = Line(end, heard=self._heard, lost=lost)
        """To the broker. If it is `lost`, so is the broker, and its sockets are wanted by the next:
        and nobody is to be told that something ends who should come back.
        """
        self._loop = asyncio.get_running_loop()
        self._began: asyncio.Future[Begin] = self._loop.create_future()
        self._leaves: asyncio.Future[Leave] = self._loop.create_future()
        self.trouble = ""
        """Why the broker can store nothing now."""

    async def run(self) -> None:
        """Answer, for as long as the broker is there and wants it."""
        begin = await self._began
        try:
            with files_of(begin.config, begin.contents) as config:
                self._open(config)
        except (DriftlineError, OSError) as problem:
            self.line.say(Failed(str(problem)))
            return
        self.line.say(Ready())
        telling = self._loop.create_task(self._tell_how_busy())
        leave = await self._leaves
        await self._close(at_once=leave.at_once)
        telling.cancel()
        log.own_up()
        self.line.say(self.busy())
        self.line.close()

    def _heard(self, said: Said) -> None:
        if isinstance(said, Begin):
            self.trouble = said.trouble
            self._began.set_result(said)
        elif isinstance(said, Trouble):
            self.trouble = said.why
        elif isinstance(said, Leave) and not self._leaves.done():
            self._leaves.set_result(said)

    def _open(self, config: Config) -> None:
        assert config.http is not None
        self._begins(config)
        self._log = log.bind(broker=config.name)
        self.http = config.http
        self.is_closed = config.is_closed
        self.address = address_of(self._sockets[0])
        self.unfinished = Room(config.limits.unfinished_bytes)
        """For bodies that are not whole."""
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        logging.getLogger("uvicorn.error").addFilter(_is_worth_a_line)
        self.visitors = Visitors(Identities(config), self.http, self.line)
        self._state = Connections(self.http, self._unreadable)
        tls = None if config.tls is None else config.tls.server()
        settings = settings_of(self._app(), self.http)
        self._listening = listen(settings, self._state, self._sockets, tls, self._unheard)

    def busy(self) -> Busy:
        """How busy it is, and what was counted."""
        state = self._state
        return Busy(
            len(state.connections),
            self.visitors.streams,
            len(state.tasks),
            state.total_requests,
            state.turned_away,
        )

    async def _tell_how_busy(self) -> None:
        said, at = Busy(), 0.0
        while True:
            await asyncio.sleep(_LOOK)
            log.own_up()
            now, time = self.busy(), self._loop.time()
            if now != said or time - at >= _AGAIN:
                self.line.say(now)
                said, at = now, time

    def _unheard(self, peer: str, why: str) -> None:
        self._state.turned_away += 1
        self._log.stranger("turned away", peer=peer, why=why)

    def _unreadable(self, peer: str, why: str) -> None:
        self._log.stranger("what is said on a WebSocket cannot be read", peer=peer, why=why)

    async def _close(self, *, at_once: bool) -> None:
        self._listening.close()
        deadline = self._loop.time() + _ENDING
        self._state.shut()
        if at_once:
            # They hear of it by their clients, and end by themselves.
            await self.visitors.end_streams()
        while (self._state.tasks or self._state.connections) and self._loop.time() < deadline:
            await asyncio.sleep(0.01)
        await self.visitors.close()
        for task in [*self._state.tasks]:
            task.cancel()
        for one in [*self._state.connections]:
            one.transport.abort()
        await asyncio.sleep(0)

    # The application

    def _app(self) -> Starlette:
        routes: list[Any] = []
        for path in dict.fromkeys(route.path for route in ROUTES):
            known = {route.method: route for route in ROUTES if route.path == path}
            routes.append(Routed(path, self._serving(known), methods=[*known]))
        routes += [
            WebSocketRoute(SOCKET, self._socket),
            Routed(SOCKET, _no_handshake, methods=["GET"]),
            Routed(f"{V}/openapi.json", _constant(self._openapi)),
            Routed(f"{V}/asyncapi.json", _constant(asyncapi)),
        ]
        middleware = [Middleware(_Unambiguous)]
        if self.http.origins:
            middleware.append(
                Middleware(Pages, allow_origins=[*self.http.origins], allow_methods=METHODS)
            )
        app = Starlette(
            routes=routes,
            middleware=middleware,
            exception_handlers={HTTPException: _said, Exception: self._failed},
        )
        # To where it would lead, whoever asks has said themselves (Host).
        app.router.redirect_slashes = False
        app.router.default = _nowhere
        return app

    def _serving(self, known: dict[str, Route]) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            method = "GET" if request.method == "HEAD" else request.method
            try:
                return await self._answer(known[method], request)
            except Refused as refused:
                return refused.response()
            except DriftlineError as problem:
                return problem_of(problem).response()

        return serve

    async def _answer(self, route: Route, request: Request) -> Response:
        _check_address(request)
        proof = self.visitors.proven(request)
        check_page(self, request, proof)
        async with self.visitors.shared(proof) as client:
            turns = self.visitors.turns(proof)
            found = await route.does(Asked(self, request, proof, client, turns))
        if request.method == "HEAD" and isinstance(found, EventStream):
            # It would go on and on, and nothing of it be sent.
            return await found.head()
        return found

    async def _failed(self, request: Request, problem: Exception) -> Response:
        """What should not have happened: whoever asked learns nothing of it, and we do."""
        where = "".join(traceback.format_exception(problem))
        self._log.error(
            "a request failed", method=request.method, path=request.url.path, where=where
        )
        return Refused(500, "something went wrong here, which was noted").response()

    def _openapi(self) -> dict[str, Any]:
        return openapi(self.is_closed)

    async def _socket(self, websocket: WebSocket) -> None:
        await sockets.serve(self, websocket)


def _check_address(request: Request) -> None:
    """Refuse an address that is no UTF-8: what it says would be taken for something else."""
    address = request.scope["raw_path"] + b"?" + request.scope["query_string"]
    try:
        unquote_to_bytes(address).decode()
    except UnicodeDecodeError:
        wanted = "UTF-8, with % and two digits for what is no ASCII"
        raise Refused(400, f"the address: wanted {wanted}, came other bytes") from None


class _Unambiguous:
    """Refuses a request whose end those who pass it on could see elsewhere than we do: what they
    take for its body would be another request to us.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:
            why = "wanted Content-Length or Transfer-Encoding, came both"
            refused = Refused(400, why, headers={"Connection": "close"})
            await refused.response()(scope, receive, send)
            return
        if "expect" in headers:
            receive, send = _expecting(receive, send)
        await self._app(scope, receive, send)


def _expecting(receive: Receive, send: Send) -> tuple[Receive, Send]:
    """For who waits to be told to send a body: is the answer another, nobody knows whether it
    comes all the same, or the next request. So there is no next one.
    """
    told = False

    async def receiving() -> Message:
        nonlocal told
        told = True
        return await receive()

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start" and not told:
            message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
        await send(message)

    return receiving, sending


def _is_worth_a_line(line: logging.LogRecord) -> bool:
    """Not that a WebSocket was denied, of which uvicorn thinks that it was forgotten: we say so
    ourselves, and not as often as strangers like.
    """
    return not line.getMessage().startswith("ASGI callable returned without completing handshake")


def _constant(make: Callable[[], object]) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        return answer(make())

    return serve


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    """What is at an address where nothing is; a WebSocket is told so, too."""
    if scope["type"] == "websocket":
        refused = Refused(404, "there is no WebSocket at this address")
        await WebSocket(scope, receive, send).send_denial_response(refused.response())
        return
    raise HTTPException(404)


async def _no_handshake(request: Request) -> Response:
    """A WebSocket was not asked for as it should be."""
    why = getattr(request.state, "handshake", "") or "Upgrade: wanted websocket, came no such thing"
    headers = {"Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Connection": "Upgrade"}
    return Refused(426, why, headers=headers).response()


async def _said(request: Request, problem: Exception) -> Response:
    """What the framework refuses is a problem too."""
    assert isinstance(problem, HTTPException)
    headers = dict(problem.headers or {})
    detail = problem.detail
    if problem.status_code == 404:
        detail = f"there is nothing at this address: {V}/openapi.json says what there is"
    elif problem.status_code == 405:
        detail = f"wanted {headers.get('Allow', 'another method')}, came {show(request.method)}"
    return Refused(problem.status_code, detail, headers=headers).response()
