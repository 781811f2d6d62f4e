"""How is one broker joined to another over connections that break?

A link is a name and a role, configured at both ends. One end dials, again and again with a growing
delay, until somebody answers; the other waits. What is sent while there is no connection is lost,
and said anew: that is what the session of a link is for (`broker.session`), here as in the
simulator.
"""

from __future__ import annotations

import asyncio
import random
import struct
from typing import TYPE_CHECKING

from driftline.broker.links import Role
from driftline.errors import DriftlineError, FrameRefused
from driftline.net.address import Address
from driftline.net.certificates import has_expired, names_broker
from driftline.net.connection import Connection
from driftline.wire import asking
from driftline.wire.framing import MAGIC, OVERHEAD, VERSION
from driftline.wire.limits import FRAME_BYTES_MAX
from driftline.wire.refusal import refused
from driftline.wire.stream import HEAD_BYTES, Kind, frame, head_of

if TYPE_CHECKING:
    from driftline.net.server import Server

_PRELUDE = struct.Struct("<BBBBI")
DELAY_FIRST = 0.05
DELAY_LAST = 5.0
CROSSING = 2.0
"""So many seconds after a connection began another may be one that was dialled meanwhile."""
SILENT_MOST = 20
"""So many seconds what was sent may stay unacknowledged by the other's system: then it is gone."""
UNSENT_MOST = 1 << 24
"""What a neighbour does not take beyond this is lost: the session says it again."""

# What we are to somebody who is this to us.
OTHER_END = {
    Role.PEER: Role.PEER,
    Role.MESH: Role.MESH,
    Role.MASTER: Role.CLIENT,
    Role.CLIENT: Role.MASTER,
}


class Link:
    """One end of a link to a broker, with or without a connection."""

    def __init__(
        self,
        server: Server,
        name: str,
        role: Role,
        address: Address | None,
        certificate: str = "",
    ) -> None:
        self.server = server
        self.name = name
        self.role = role
        self.address = address
        self.certificate = certificate
        """What the other's certificate names, if not the broker."""
        self.problem = ""
        """Why there was no connection, when it was last tried."""
        self._wire: Wire | None = None
        self._since = 0.0
        self._ended = (0, 0)
        self._dialling: asyncio.Task[None] | None = None

    @property
    def is_up(self) -> bool:
        """Is there a connection?"""
        return self._wire is not None

    @property
    def carried(self) -> tuple[int, int]:
        """How many came by it and went, also on connections that are no more."""
        came, went = self._ended
        if self._wire is None:
            return came, went
        now = self._wire.connection
        return came + now.received, went + now.sent

    def begin(self) -> None:
        """Let there be a link."""
        self.server.driver.connect(self.name, self.role)
        self._dial()

    def end(self, why: str) -> None:
        """Let there be none."""
        if self._dialling is not None:
            self._dialling.cancel()
            self._dialling = None
        self.address = None
        if self._wire is not None:
            self._wire.connection.close(why)

    def again(self, why: str) -> None:
        """End the connection, if there is one, and let there be another."""
        if self._wire is not None:
            self._wire.connection.close(why)

    def send(self, data: bytes) -> None:
        """Put bytes on the link; without a connection they are lost."""
        if self._wire is not None and self._wire.connection.unsent < UNSENT_MOST:
            self._wire.connection.send(data)

    def joined(self, wire: Wire) -> None:
        """There is a connection; one that there was before is no longer listened to.

        If both ends dial, their connections may cross, and each end would end the one that the
        other keeps. So for a while the one counts that the end with the lower name has dialled.
        """
        before, now = self._wire, self.server.loop.time()
        if before is not None and before.dialled is not wire.dialled:
            mine = self.server.broker.name < self.name
            if before.dialled is mine and now - self._since < CROSSING:
                wire.connection.close("there is another connection")
                return
        self._ended = self.carried
        self._wire, self._since = wire, now
        self.problem = ""
        self.server.log.info("link up", link=self.name, peer=wire.connection.peer)
        if before is not None:
            before.connection.close("there is another connection")
        self.server.driver.retry(self.name)

    def parted(self, wire: Wire, why: str) -> None:
        """A connection has ended."""
        if self._wire is wire:
            self._ended = self.carried
            self._wire = None
            self.problem = why
            if not self.server.draining:
                self.server.log.warning("link down", link=self.name, why=why)
            self._dial()

    def _dial(self) -> None:
        busy = self._dialling is not None and not self._dialling.done()
        if self.address is not None and not busy and not self.server.draining:
            self._dialling = self.server.loop.create_task(self._keep_dialling())

    async def _keep_dialling(self) -> None:
        delay = DELAY_FIRST
        while (address := self.address) is not None:
            try:
                await self._dial_once(address)
            except (TimeoutError, OSError, ValueError, DriftlineError) as problem:
                # ValueError: a host that can be none.
                self.problem = str(problem) or type(problem).__name__
            if self.is_up:
                return
            # At random, so that those who lost the same broker do not all come back at once.
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))
            delay = min(2 * delay, DELAY_LAST)

    async def _dial_once(self, address: Address) -> None:
        server = self.server
        wire = Wire(server, self)
        connecting = server.loop.create_connection(
            lambda: Connection(_Dialled(server, wire)),
            address.host,
            address.port,
            ssl=server.dialling,
        )
        async with asyncio.timeout(server.limits.greeting):
            _, connection = await connecting
        try:
            async with asyncio.timeout(server.limits.greeting):
                await wire.greeted.wait()
        except BaseException:
            # Who answers later would find that nobody waits any more.
            connection.abort("no greeting came in time")
            raise


class _Dialled:
    """What a connection that we made needs to know."""

    def __init__(self, server: Server, wire: Wire) -> None:
        self._server = server
        self._wire = wire
        self.buffer = server.buffer

    def dirty(self, connection: Connection) -> None:
        self._server.dirty(connection)

    def hurry(self) -> None:
        self._server.hurry()

    def arrived(self, connection: Connection) -> Wire:
        self._wire.connection = connection
        self._server.connections.add(connection)
        self._wire.greet()
        return self._wire

    def left(self, connection: Connection) -> None:
        self._server.left(connection)

    def unfinished(self, more: int) -> None:
        self._server.unfinished(more)


class Wire:
    """A connection that is a link: first a greeting, then frames of `wire.framing`."""

    connection: Connection

    def __init__(self, server: Server, link: Link | None = None) -> None:
        self.server = server
        self.link = link
        self.dialled = link is not None
        self.greeted = asyncio.Event()

    def greet(self) -> None:
        """Say who we are, and what the other end is to us."""
        assert self.link is not None
        broker = self.server.broker
        said = asking.Link(
            broker.name,
            self.link.role,
            self.server.incarnation,
            broker.settings.advertised,
            broker.settings.stamped,
        )
        self.connection.send(frame(Kind.LINK, asking.encode(said)))

    def welcome(self, said: asking.Link) -> None:
        """Somebody says who it is: a broker that we have a link to, or nobody."""
        link = self.server.links.get(said.broker)
        mine = self.server.broker.settings
        is_known = link is not None and (self.link is None or link is self.link)
        if link is None or not is_known or not self._is_proven(link):
            # To a stranger the two are the same: which brokers there are is none of their business.
            raise refused("link", "a broker that is configured here, and proves it", said.broker)
        wanted = OTHER_END[link.role]
        if said.role != wanted:
            raise refused(f"link to {link.name}", f"that we are its {wanted}", said.role)
        if (said.advertised, said.stamped) != (mine.advertised, mine.stamped):
            raise refused(f"link to {link.name}", "the settings of this overlay", "others")
        if self.link is None:
            self.link = link
            self.greet()
        self.greeted.set()
        self.connection.notice_loss(SILENT_MOST)
        link.joined(self)

    def _is_proven(self, link: Link) -> bool:
        """Has this broker proven who it is, where brokers must?"""
        tls, is_closed = self.server.config.tls, self.server.config.is_closed
        if not is_closed and (tls is None or tls.authority is None):
            return True
        shown = self.connection.information("peercert")
        certificate = shown if isinstance(shown, dict) else None
        is_over = has_expired(certificate)
        if names_broker(certificate, link.name, link.certificate) and not is_over:
            return True
        came = "one that has expired" if is_over else "another" if certificate else "none"
        why = f"wanted a certificate that names it, came {came}"
        self.server.log.stranger("a link is refused", link=link.name, why=why)
        return False

    # For the connection

    def take(self, data: memoryview) -> int:
        """See `Service`."""
        at = 0
        if not self.greeted.is_set():
            if len(data) < HEAD_BYTES:
                return 0
            kind, size = head_of(data, 0, FRAME_BYTES_MAX)
            if kind is Kind.GOODBYE and len(data) >= HEAD_BYTES + size:
                why = asking.decode_goodbye(bytes(data[HEAD_BYTES : HEAD_BYTES + size])).why
                raise refused("link", "a greeting", why)
            if kind is not Kind.LINK:
                raise refused("link", "a greeting", kind.name.lower())
            at = HEAD_BYTES + size
            if len(data) < at:
                return 0
            self.welcome(asking.decode_link(bytes(data[HEAD_BYTES:at])))
        assert self.link is not None
        begun = at
        while len(data) - at >= _PRELUDE.size:
            magic, version, _, _, length = _PRELUDE.unpack_from(data, at)
            whole = length + OVERHEAD
            if magic != MAGIC or version != VERSION or whole > FRAME_BYTES_MAX:
                raise refused("link", "a frame", f"{magic:#x}, version {version}, {whole} bytes")
            if at + whole > len(data):
                break
            at += whole
        if at > begun:
            self.server.driver.receive(self.link.name, bytes(data[begun:at]))
        return at

    def eased(self) -> None:
        """See `Service`."""

    def ended(self, why: str) -> None:
        """See `Service`."""
        self.greeted.set()
        if self.link is not None:
            self.link.parted(self, why)

    def refuse(self, problem: FrameRefused) -> None:
        """See `Service`."""
        self.server.log.stranger("link refused", peer=self.connection.peer, problem=problem)
        said = asking.Goodbye(str(problem))
        self.connection.send(frame(Kind.GOODBYE, asking.encode(said)))
        if self.link is not None:
            self.link.problem = str(problem)
