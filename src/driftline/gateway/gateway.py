"""How is a broker reached over HTTP? A door beside its own protocol, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar
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
from driftline.gateway.openapi import openapi
from driftline.gateway.pages import METHODS, Pages, check_page
from driftline.gateway.polite import PoliteLoop
from driftline.gateway.problems import Refused, problem_of
from driftline.gateway.routes import ROUTES, SOCKET, Route, V
from driftline.gateway.shares import Room
from driftline.gateway.streams import EventStream
from driftline.gateway.visitors import Visitors
from driftline.model.value import show
from driftline.net.config import Config
from driftline.net.inside import Count
from driftline.net.listening import Listening, address_of, bound
from driftline.net.logs import Log
from driftline.net.server import Server

log = Log("driftline.gateway")

T = TypeVar("T")
_ENDING = 2.0
_SWITCH = 0.0001


class Gateway:
    """The door. See `net.inside.Door`."""

    def __init__(self, config: Config) -> None:
        assert config.http is not None
        self.http = config.http
        self._is_secure = config.tls is not None
        self._state = Connections(self.http, self._unreadable)
        self._thread: threading.Thread | None = None
        self._listening: Listening | None = None
        self.address = self.http.address
        self.unfinished = Room(config.limits.unfinished_bytes)
        """For bodies that are not whole."""

    # The door

    async def start(self, server: Server) -> None:
        """See `Door`."""
        self.server = server
        sockets = bound(self.http.address)
        self.address = address_of(sockets[0])
        self._loop = PoliteLoop()
        self._loop.turns = server.turns
        # The broker's loop asks for the interpreter whenever something has come. While requests are
        # being answered here it would wait for it up to the usual 5 ms, each time.
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH))
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="driftline-http", daemon=True
        )
        self._thread.start()
        await self._there(self._open(sockets))

    async def _open(self, sockets: list[socket.socket]) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        logging.getLogger("uvicorn.error").addFilter(_is_worth_a_line)
        self.visitors = Visitors(self.server, self.http)
        settings = settings_of(self._app(), self.http)
        self._listening = listen(settings, self._state, sockets, self.server.tls, self._unheard)

    def _unheard(self, peer: str, why: str) -> None:
        self._state.turned_away += 1
        log.stranger("turned away", peer=peer, why=why)

    def _unreadable(self, peer: str, why: str) -> None:
        log.stranger("what is said on a WebSocket cannot be read", peer=peer, why=why)

    async def _there(self, what: Coroutine[Any, Any, T]) -> T:
        """Do something on the gateway's own loop."""
        done = asyncio.run_coroutine_threadsafe(what, self._loop)
        return await asyncio.wrap_future(done)

    def renewed(self, config: Config) -> Callable[[], None]:
        """See `Door`."""

        def count() -> None:
            if self._listening is None:
                return
            if config.tls is not None:
                self._loop.call_soon_threadsafe(self._listening.renew, self.server.tls)
            self._loop.call_soon_threadsafe(self._state.shut)

        return count

    def handles(self, handler: str) -> bool:
        """See `Door`."""
        return False

    def routed(self, party: str) -> None:
        """See `Door`."""

    def facts(self) -> dict[str, object]:
        """See `Door`."""
        return {"http": f"http{'s' if self._is_secure else ''}://{self.address}"}

    def counts(self) -> list[Count]:
        """See `Door`. From another thread: each is a number that is read at once."""
        state, streams = self._state, self.visitors.streams
        return [
            Count("http_connections", len(state.connections), "Connections over HTTP."),
            Count("http_streams", streams, "Streams and WebSockets."),
            Count("http_requests", state.total_requests, "Requests that were answered.", True),
            Count(
                "http_turned_away", state.turned_away, "Connections that were turned away.", True
            ),
        ]

    async def stop(self) -> None:
        """See `Door`."""
        if self._thread is None:
            return
        await self._there(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join, _ENDING)
        self._thread = None
        self._loop.close()

    async def _close(self) -> None:
        if self._listening is not None:
            self._listening.close()
        # Streams hear of it by their clients, and end by themselves.
        await self.visitors.close()
        deadline = self._loop.time() + _ENDING
        self._state.shut()
        while self._state.tasks and self._loop.time() < deadline:
            await asyncio.sleep(0.01)
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
            exception_handlers={HTTPException: _said, Exception: _failed},
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

    async def at_broker(self, what: Callable[[], T]) -> T:
        """Do something on the broker's own loop, where its insides stand still."""

        async def done() -> T:
            return what()

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(done(), self.server.loop))

    def _openapi(self) -> dict[str, Any]:
        return openapi(self.server.config.is_closed)

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


async def _failed(request: Request, problem: Exception) -> Response:
    """What should not have happened: whoever asked learns nothing of it, and we do."""
    where = "".join(traceback.format_exception(problem))
    log.error("a request failed", method=request.method, path=request.url.path, where=where)
    return Refused(500, "something went wrong here, which was noted").response()
