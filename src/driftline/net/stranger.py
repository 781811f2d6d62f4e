"""Who has connected: a client, a broker, or somebody who says nothing we know?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.errors import FrameRefused
from driftline.net.connection import Connection, Service
from driftline.net.link import Wire
from driftline.wire import asking
from driftline.wire.limits import FRAME_BYTES_MAX
from driftline.wire.refusal import refused
from driftline.wire.stream import HEAD_BYTES, PAYLOAD_BYTES_MAX, Kind, frame, head_of

if TYPE_CHECKING:
    from driftline.net.server import Server


class Stranger:
    """Somebody who has not said who it is."""

    def __init__(self, server: Server, connection: Connection) -> None:
        self._server = server
        self._connection = connection
        self._timer = server.loop.call_later(
            server.limits.greeting, connection.abort, "it did not say who it is"
        )

    def take(self, data: memoryview) -> int:
        """See `Service`."""
        if len(data) < HEAD_BYTES:
            return 0
        kind, size = head_of(data, 0, min(FRAME_BYTES_MAX, 1 << 16))
        end = HEAD_BYTES + size
        if len(data) < end:
            return 0
        payload = bytes(data[HEAD_BYTES:end])
        service: Service
        if kind is Kind.HELLO:
            service = self._server.greet(self._connection, asking.decode_hello(payload))
        elif kind is Kind.LINK:
            wire = Wire(self._server)
            wire.connection = self._connection
            wire.welcome(asking.decode_link(payload))
            service = wire
        else:
            raise refused("stream", "a greeting", kind.name.lower())
        self._timer.cancel()
        self._connection.service = service
        return end + service.take(data[end:])

    def eased(self) -> None:
        """See `Service`."""

    def ended(self, why: str) -> None:
        """See `Service`."""
        self._timer.cancel()

    def refuse(self, problem: FrameRefused) -> None:
        """See `Service`."""
        self._timer.cancel()
        said = asking.encode(asking.Goodbye(str(problem)[:1000], again=False))
        assert len(said) < PAYLOAD_BYTES_MAX
        self._connection.send(frame(Kind.GOODBYE, said))
