"""How is HTTP spoken here, and how long does anybody have to speak it?

By uvicorn's own protocol, in a loop of ours, and with what that leaves to a proxy in front of it:
whoever does not finish the head of a request, or connects and says nothing, is turned away.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
import sys
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import CloseCode, Frame
from websockets.protocol import State

from driftline.gateway.problems import Refused
from driftline.model.value import show
from driftline.net.http import Http
from driftline.net.listening import Listening, Unheard

_HEAD_BYTES = 32 << 10
_HEADERS_MOST, _LINE_MOST, _KEY_BYTES = 100, 8_000, 16
"""Of what a WebSocket begins with."""
_KEEP_ALIVE = 30
_FAREWELL = 1.0
"""So many seconds somebody has to hear why a WebSocket ends."""
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

    def __init__(self, http: Http, unreadable: Unheard) -> None:
        super().__init__()
        self.http = http
        self.unreadable = unreadable
        """Says whose WebSocket ends, and why: what was said on it is none."""
        self.turned_away = 0
        self.listening: Listening | None = None
        self._closing: set[Any] = set()

    def make_room(self) -> bool:
        """Is there room for one more? If not, some go who ask for nothing."""
        return len(self.connections) < self.http.connections or self.turn_idle_away()

    def turn_idle_away(self) -> bool:
        """Let those go who have asked for nothing for longest; is there anybody who does not ask?

        Some at once, so that not everybody is looked at for each who comes.
        """
        idle = [one for one in self.connections if isinstance(one, Visit) and not one.is_busy()]
        idle.sort(key=lambda one: one.since)
        going = idle[: max(1, self.http.connections // _ROOM)]
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

    _heard = 0.0
    """When anything came on it last, by the loop's clock."""

    def __init__(
        self,
        config: Config,
        server_state: Connections,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._all = server_state
        self._has_failed = False
        self._pong = b""
        """What is to be answered to the last ping, when there is room again."""

    def data_received(self, data: bytes) -> None:
        self._heard = self.loop.time()
        if not self._has_failed:
            super().data_received(data)
        if not self.handshake_initiated:
            # All of its beginning has come, and is none to whoever reads it: nothing follows, and
            # nobody else would ever end it.
            self.transport.abort()

    def handle_cont(self, event: Frame) -> None:
        """One more part of a message. All are kept in one piece: each by itself would take many
        times its bytes, and those that are empty are as many as anybody likes.
        """
        frames: list[Any] = self.frames
        if not isinstance(frames[0], bytearray):
            frames[0] = bytearray(frames[0])
        frames[0] += event.data
        if event.fin:
            self.send_receive_event_to_app()

    def send_receive_event_to_app(self) -> None:
        """Hand on a message, which is UTF-8 if it is a text."""
        data = b"".join(self.frames)
        self.frames = []
        if self.close_sent:
            return
        if self.curr_msg_data_type == "text":
            try:
                data.decode()
            except UnicodeDecodeError as problem:
                why = f"{problem.reason} at position {problem.start}"
                self.conn.fail(CloseCode.INVALID_DATA, why)
                self.handle_parser_exception()
                return
        self.queue.put_nowait({"type": "websocket.receive", "bytes": data})
        if not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def handle_parser_exception(self) -> None:
        """It ends for what was said, which is a line in our log and no more. What was said behind
        it is read and thrown away for a while: or nobody would be told why.
        """
        said = self.conn.close_sent
        code, why = (CloseCode.ABNORMAL_CLOSURE, "") if said is None else (said.code, said.reason)
        self._has_failed = self.close_sent = True
        self._all.unreadable("" if self.client is None else "{}:{}".format(*self.client), why)
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": why})
        self.transport.write(b"".join(self.conn.data_to_send()))
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        if self.close_timer is None:
            self.close_timer = self.loop.call_later(_FAREWELL, self.transport.close)

    def shutdown(self) -> None:
        """See `Visit`. To whom it has been said, or who has said it, it is not said once more."""
        if self.handshake_complete and self.conn.state is not State.OPEN:
            self.stop_keepalive()
            self.transport.close()
        else:
            super().shutdown()

    def keepalive_timeout(self) -> None:
        """Somebody does not answer. What they said before comes before the answer, and is read no
        faster than it is done: they are gone only if nothing came, though it was read.
        """
        if self.read_paused or self._heard > self.ping_sent_at:
            self.pong_timer = None
            self.pending_ping_payload = None
            self.schedule_ping()
            return
        super().keepalive_timeout()

    def handle_ping(self) -> None:
        """Answer it. Of many whose answers are not read only the last is answered, as may be
        (RFC 6455 §5.5.3): or they would fill our memory.
        """
        answers = self.conn.data_to_send()
        if self.writable.is_set() or self.conn.state is not State.OPEN:
            self.transport.write(b"".join(answers))
        else:
            self._pong = answers[-1] if answers else self._pong

    def pause_writing(self) -> None:
        super().pause_writing()
        self.stalls()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.goes_on()
        pong, self._pong = self._pong, b""
        if pong and not self.close_sent:
            self.transport.write(pong)

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
        listening = self._all.listening
        assert listening is not None
        tls = transport.get_extra_info("sslcontext")
        if not listening.counts(tls) or not self._all.make_room():
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

    def shutdown(self) -> None:
        # Whoever is being answered learns from the answer that it is the last one here.
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_started:
            cycle.default_headers = [*cycle.default_headers, CLOSE_HEADER]
        super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is a problem, too, as far as it can still be answered."""
        problem = sys.exception()
        cycle: Any = self.cycle
        if cycle is not None:
            # Nobody is to be answered any more to whom it belonged.
            cycle.disconnected = True
            cycle.message_event.set()
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        status = getattr(problem, "error_status_hint", 400)
        why = f"wanted a request as HTTP/1.1 has it: {_plainly(problem)}"
        if status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            why = f"the head of a request: wanted at most {_HEAD_BYTES} bytes, came more"
        refused = Refused(status, why, headers={"Connection": "close"}).response()
        reason = HTTPStatus(status).phrase.encode()
        head = h11.Response(status_code=status, headers=refused.raw_headers, reason=reason)
        for event in (head, h11.Data(data=bytes(refused.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _should_upgrade(self) -> bool:
        if not super()._should_upgrade():
            return False
        address = self.scope["raw_path"] + b"?" + self.scope["query_string"]
        why = _no_handshake(self.scope["method"], address, self.headers)
        # Whoever answers it as what it is otherwise says so.
        self.scope["state"]["handshake"] = why
        return not why

    def handle_websocket_upgrade(self, event: Any) -> None:
        self._stop_waiting()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self.goes_on()
        if self.since:
            super().connection_lost(exc)


def _plainly(problem: BaseException | None) -> str:
    """What h11 says, and of what came no more than tells what it is."""
    said = str(problem)
    if "bytearray(b'\\x16\\x03" in said:
        return "came TLS, which is not spoken here"
    return said if len(said) <= 200 else f"{said[:200]}…"


def _no_handshake(method: str, address: bytes, headers: list[tuple[bytes, bytes]]) -> str:
    """Why it is none that a WebSocket begins with; empty: it is one (RFC 6455 §4.2.1)."""
    if method != "GET":
        return f"wanted GET, came {method}"
    # What reads it next takes so much and no more.
    if len(address) > _LINE_MOST:
        return f"wanted an address of at most {_LINE_MOST} bytes, came more"
    if any(k == b"transfer-encoding" or (k == b"content-length" and v != b"0") for k, v in headers):
        return "wanted no body, came one"
    if len(headers) > _HEADERS_MOST or any(len(k) + len(v) > _LINE_MOST for k, v in headers):
        return f"wanted at most {_HEADERS_MOST} headers of {_LINE_MOST} bytes, came more"
    found = {name: value for name, value in headers if name.startswith(b"sec-websocket-")}
    version = found.get(b"sec-websocket-version", b"nothing").decode("latin-1")
    if version != "13":
        return f"Sec-WebSocket-Version: wanted 13, came {show(version)}"
    key = found.get(b"sec-websocket-key", b"")
    try:
        is_key = len(base64.b64decode(key, validate=True)) == _KEY_BYTES
    except ValueError:
        is_key = False
    return "" if is_key else f"Sec-WebSocket-Key: wanted {_KEY_BYTES} bytes in base64, came another"


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
    state.listening = listening = Listening(
        sockets,
        lambda: Visit(settings, state, {}, loop),
        tls=tls,
        patience=state.http.patience,
        most=state.http.connections,
        unheard=unheard,
        crowded=state.turn_idle_away,
    )
    listening.begin()
    return listening
