"""How do bytes come from and go to one peer, whoever it is?

What comes is handed to whoever serves the connection, straight from the buffer that all connections
share, and what is not whole yet is kept. What is to be sent is put together and written once for
each turn of the loop.
"""

from __future__ import annotations

import asyncio
import asyncio.trsock
import socket
from typing import NamedTuple, Protocol

from driftline.errors import FrameRefused
from driftline.net.tokens import Proven

READ_BYTES = 1 << 18
WRITE_HIGH = 1 << 18
"""From so many bytes on that the system has not taken, a connection is stuffed."""
UNREAD_MOST = 1 << 20
"""Who leaves so many bytes of replies unread is not listened to until it reads them."""
LINGER = 10.0
"""So many seconds whoever is to take what was said last has for that."""

_UNREAD = "unread"
_INTERNET = (socket.AF_INET, socket.AF_INET6)


class Inside(NamedTuple):
    """Who came in by another door. If it is not known whose it is, the greeting says so."""

    proven: Proven | None
    believed: object = None
    """Those who said who it is; None: it is one of us."""
    steps_aside: bool = False
    """Does it leave a durable subscription to whom has it?"""


class Service(Protocol):
    """Whoever serves a connection."""

    def take(self, data: memoryview) -> int:
        """Deal with all that is whole, and say how many bytes that was; they are gone then."""

    def eased(self) -> None:
        """More can be sent again."""

    def ended(self, why: str) -> None:
        """The connection is no more."""

    def refuse(self, problem: FrameRefused) -> None:
        """What came cannot be read: the connection is about to be closed."""


class Hub(Protocol):
    """What connections share: a buffer, and a list of those that have something to send."""

    buffer: memoryview

    def dirty(self, connection: Connection) -> None:
        """It has something to send when this turn of the loop is over."""

    def hurry(self) -> None:
        """One that has something to send is to do so when this turn of the loop is over."""

    def arrived(self, connection: Connection) -> Service | None:
        """Somebody has connected: who serves it? None: nobody, it is turned away."""

    def left(self, connection: Connection) -> None:
        """A connection has ended."""

    def unfinished(self, more: int) -> None:
        """So many bytes more, or less, of what is not whole yet are kept."""


class Connection(asyncio.BufferedProtocol):
    """One peer."""

    def __init__(self, hub: Hub, inside: Inside | None = None) -> None:
        self._hub = hub
        self.inside = inside
        """Whose it is, if it came in by another door, where that was found out."""
        self._rest = bytearray()
        self._out: list[bytes | memoryview] = []
        self.is_urgent = False
        """Is it to be sent when this turn of the loop is over?"""
        self._transport: asyncio.Transport | None = None
        self.service: Service | None = None
        self.stuffed = False
        self.received = 0
        """Bytes."""
        self.unfinished = 0
        """How many bytes of a frame that is not whole are kept."""
        self.since: float | None = None
        """Since when it is not whole, by the loop's clock."""
        self.sent = 0
        self.peer = ""
        self._why = "the other end has closed it"
        self._held: set[str] = set()
        self.must_read = False
        """Is it to read replies before it may ask for more?"""

    # From the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        name = transport.get_extra_info("peername")
        self.peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name or "local")
        transport.set_write_buffer_limits(high=WRITE_HIGH)
        self.service = self._hub.arrived(self)
        if self.service is None:
            transport.close()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._hub.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += nbytes
        service = self.service
        if service is None:
            return
        came = self._hub.buffer[:nbytes]
        try:
            if not self._rest:
                used = service.take(came)
                if used < nbytes:
                    self._rest += came[used:]
                return
            self._rest += came
            self._take(service)
        except FrameRefused as problem:
            self._refuse(service, problem)
        finally:
            self._count_unfinished()

    def _take(self, service: Service) -> None:
        with memoryview(self._rest) as data:
            used = service.take(data)
        if used:
            try:
                del self._rest[:used]
            except BufferError:
                # Somebody still looks at it, such as the traceback of what was refused: it is left
                # to them, and what follows goes elsewhere.
                self._rest = self._rest[used:]
            self.since = None

    def _refuse(self, service: Service, problem: FrameRefused) -> None:
        service.refuse(problem)
        self.close(str(problem))

    def go_on(self) -> None:
        """Deal with what has come before and was left for later."""
        service = self.service
        if service is None or not self._rest or not self.is_open:
            return
        try:
            self._take(service)
        except FrameRefused as problem:
            self._refuse(service, problem)
        finally:
            self._count_unfinished()

    def _count_unfinished(self) -> None:
        more = len(self._rest) - self.unfinished
        if more:
            self.unfinished += more
            self._hub.unfinished(more)
        if not self.unfinished:
            self.since = None
        elif self.since is None:
            self.since = asyncio.get_running_loop().time()

    def pause_writing(self) -> None:
        self.stuffed = True

    def resume_writing(self) -> None:
        self.stuffed = False
        self.release(_UNREAD)
        if self.service is not None:
            self.service.eased()

    def connection_lost(self, exc: Exception | None) -> None:
        service, self.service = self.service, None
        self._transport = None
        self._out.clear()
        self._rest.clear()
        self._count_unfinished()
        self._hub.left(self)
        if service is not None:
            service.ended(str(exc) if exc else self._why)

    # From whoever serves it

    def send(self, data: bytes | memoryview, *, urgent: bool = True) -> None:
        """Send this when this turn of the loop is over, or what is not urgent perhaps a little
        later, together with what follows.
        """
        if not self._out:
            self.is_urgent = urgent
            self._hub.dirty(self)
        elif urgent and not self.is_urgent:
            self.is_urgent = True
            self._hub.hurry()
        self._out.append(data)

    def flush(self) -> None:
        """Hand over what is to be sent."""
        if self._transport is None or self._transport.is_closing() or not self._out:
            self._out.clear()
            return
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        self.sent += len(data)
        self._transport.write(data)
        if self.must_read and self.unsent > UNREAD_MOST:
            self.hold(_UNREAD)

    @property
    def unsent(self) -> int:
        """Bytes that the system has not taken."""
        transport = self._transport
        return 0 if transport is None else transport.get_write_buffer_size()

    @property
    def is_open(self) -> bool:
        """Can something be sent?"""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_held(self) -> bool:
        """Is it not listened to, for a reason that is not its own?"""
        return bool(self._held - {_UNREAD})

    def hold(self, why: str) -> None:
        """Read nothing for now; whoever sends notices when the buffers are full."""
        if not self._held and self.is_open:
            assert self._transport is not None
            self._transport.pause_reading()
        self._held.add(why)

    def release(self, why: str) -> None:
        """Read on, unless it is held for another reason."""
        if why not in self._held:
            return
        self._held.discard(why)
        if not self._held and self.is_open:
            assert self._transport is not None
            self._transport.resume_reading()

    def close(self, why: str) -> None:
        """Send what is to be sent, and end: also if the other does not read it."""
        transport = self._transport
        if transport is None:
            return
        self._why = why
        self.flush()
        if not transport.is_closing():
            transport.close()
            if self.unsent:
                asyncio.get_running_loop().call_later(LINGER, self._end, transport)

    def _end(self, transport: asyncio.Transport) -> None:
        if self._transport is transport:
            transport.abort()

    def abort(self, why: str) -> None:
        """End at once, whatever is to be sent."""
        if self._transport is not None:
            self._why = why
            self._transport.abort()

    def notice_loss(self, seconds: int) -> None:
        """Let the system find out in so many seconds that the other end is no longer there.

        By itself it would take a quarter of an hour, and after a while try again only every two
        minutes: a network that is there again would go unnoticed.
        """
        line = self.information("socket")
        if not isinstance(line, asyncio.trsock.TransportSocket) or line.family not in _INTERNET:
            return
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        third = max(1, seconds // 3)
        wanted = {"TCP_KEEPIDLE": third, "TCP_KEEPINTVL": third, "TCP_KEEPCNT": 2}
        wanted["TCP_USER_TIMEOUT"] = 1000 * seconds
        for name, value in wanted.items():
            # Not every system has all of them.
            if hasattr(socket, name):
                line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def information(self, name: str) -> object:
        """What the transport knows: see `asyncio.BaseTransport.get_extra_info`."""
        return None if self._transport is None else self._transport.get_extra_info(name)
