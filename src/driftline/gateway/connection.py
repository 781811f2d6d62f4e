"""How is HTTP spoken here, and how long does anybody have to speak it?

By uvicorn's own protocol, in a loop of ours, and with what that leaves to a proxy in front of it:
whoever does not finish the head of a request, or connects and says nothing, is turned away.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from driftline.net.http import Http
from driftline.net.listening import Listening, Unheard

_HEAD_BYTES = 32 << 10
_KEEP_ALIVE = 30
_ROOM = 20
"""Of all connections, where there are too many, one in so many goes."""
STALLED = 60.0
"""Who takes nothing of what is sent for so many seconds is gone."""


def settings_of(app: Any, http: Http) -> Config:
    """How uvicorn is to treat connections."""
    return Config(
        app,
        loop="none",
        http=Visit,
        ws=Socket,
        ws_max_size=http.message_bytes,
        # Whoever reads nothing is noticed by it; what they are to be told does not wait here.
        ws_ping_interval=http.heartbeat,
        ws_ping_timeout=2 * http.heartbeat,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        limit_concurrency=None,
        timeout_keep_alive=_KEEP_ALIVE,
        h11_max_incomplete_event_size=_HEAD_BYTES,
    )


class Connections(ServerState):
    """All connections of one listener, and what they share."""

    def __init__(self, http: Http) -> None:
        super().__init__()
        self.http = http
        self.turned_away = 0
        self._closing: set[Any] = set()

    def make_room(self) -> bool:
        """Is there room for one more? If not, those go who have asked for nothing for longest.

        Some at once, so that not everybody is looked at for each who comes.
        """
        most = self.http.connections
        if len(self.connections) < most:
            return True
        idle = [one for one in self.connections if isinstance(one, Visit) and not one.is_busy()]
        idle.sort(key=lambda one: one.since)
        going = idle[: max(1, most // _ROOM)]
        for one in going:
            self.turn_away(one)
        return bool(going)

    def turn_away(self, one: Visit) -> None:
        """End a connection on which nothing is asked for."""
        self.turned_away += 1
        self.connections.discard(one)
        one.transport.abort()

    def look_after(self, loop: asyncio.AbstractEventLoop) -> None:
        """Forget who has been leaving for long.

        Of one that is lost just while it becomes a WebSocket, nobody may be told that it is.
        """
        leaving = {one for one in self.connections if one.transport.is_closing()}
        for one in leaving & self._closing:
            one.transport.abort()
            self.connections.discard(one)
        self._closing = leaving
        loop.call_later(2 * self.http.patience, self.look_after, loop)

    def shut(self) -> None:
        """End all connections, when what was asked on them is answered: their certificates, too,
        were believed before.
        """
        for one in [*self.connections]:
            one.shutdown()


class _Reading:
    """Is what is sent taken, by whoever asked for it? If not for long, the connection is gone."""

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    _stalled: asyncio.TimerHandle | None = None

    def stalls(self) -> None:
        """Nothing more is taken for now."""
        if self._stalled is None:
            self._stalled = self.loop.call_later(STALLED, self._abort)

    def goes_on(self) -> None:
        """It is taken again, or nothing is left to be."""
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _abort(self) -> None:
        self._stalled = None
        self.transport.abort()


class Socket(_Reading, WebSocketsSansIOProtocol):
    """One WebSocket."""

    def pause_writing(self) -> None:
        super().pause_writing()
        self.stalls()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.goes_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self.goes_on()
        if self in self.connections:
            super().connection_lost(exc)


class Visit(_Reading, H11Protocol):
    """One connection."""

    def __init__(
        self,
        config: Config,
        server_state: Connections,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._all = server_state
        self._impatient: asyncio.TimerHandle | None = None
        self.since = 0.0
        """When something was said on it last, by the loop's clock; 0: it was not let in."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if not self._all.make_room():
            self._all.turned_away += 1
            transport.abort()
            return
        self.since = self.loop.time()
        # What proves who it is, if not a token; requests see it as a part of their state.
        certificate = transport.get_extra_info("peercert")
        self.app_state = {**self.app_state, "certificate": certificate or None}
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        self.since = self.loop.time()
        super().data_received(data)
        if self.is_busy() or self not in self.connections:  # A WebSocket has it by now.
            self._stop_waiting()
        else:
            self._wait_for_head()

    def _wait_for_head(self) -> None:
        if self._impatient is None and not self.transport.is_closing():
            self._impatient = self.loop.call_later(self._all.http.patience, self._give_up)

    def _stop_waiting(self) -> None:
        if self._impatient is not None:
            self._impatient.cancel()
            self._impatient = None

    def _give_up(self) -> None:
        self._impatient = None
        if not self.is_busy():
            self._all.turn_away(self)

    def is_busy(self) -> bool:
        """Is a request being answered?"""
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def pause_writing(self) -> None:
        super().pause_writing()
        self.stalls()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.goes_on()

    def handle_websocket_upgrade(self, event: Any) -> None:
        self._stop_waiting()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self.goes_on()
        if self.since:
            super().connection_lost(exc)


def listen(
    settings: Config,
    state: Connections,
    sockets: Sequence[socket.socket],
    tls: ssl.SSLContext | None,
    unheard: Unheard,
) -> Listening:
    """Let people in."""
    loop = asyncio.get_running_loop()
    settings.load()
    state.look_after(loop)
    listening = Listening(
        sockets,
        lambda: Visit(settings, state, {}, loop),
        tls=tls,
        patience=state.http.patience,
        most=state.http.connections,
        unheard=unheard,
    )
    listening.begin()
    return listening
