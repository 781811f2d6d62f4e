"""Who has connected: a client, a broker, or somebody who says nothing we know?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.errors import FrameRefused, LimitReached, NotAuthenticated, Unreachable
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
            try:
                service = self._server.greet(self._connection, asking.decode_hello(payload))
            except NotAuthenticated as problem:
                self._server.note_unproven(self._connection.peer, problem)
                self._turn_away(problem.why, again=False, error=type(problem).__name__)
                return len(data)
            except LimitReached as problem:
                self._server.unheard(self._connection.peer, str(problem))
                self._turn_away(str(problem), again=True)
                return len(data)
            except Unreachable as problem:
                self._turn_away(problem.why, again=True)
                return len(data)
        elif kind is Kind.LINK:
            wire = Wire(self._server)
            wire.connection = self._connection
            wire.welcome(asking.decode_link(payload))
            service = wire
        else:
            raise refused("stream", "a greeting", kind.name.lower())
        self._leave()
        self._connection.service = service
        return end + service.take(data[end:])

    def turn_away(self, why: str) -> None:
        """End it without a word."""
        self._server.unheard(self._connection.peer, why)
        self._leave()
        self._connection.abort(why)

    def _leave(self) -> None:
        self._timer.cancel()
        self._server.strangers.pop(self, None)

    def _turn_away(self, why: str, *, again: bool, error: str = "") -> None:
        """Say why it is ended, and whether there is a point in coming back."""
        self._leave()
        said = asking.Goodbye(why, again=again, error=error)
        self._connection.send(frame(Kind.GOODBYE, asking.encode(said)))
        self._connection.close(why)

    def eased(self) -> None:
        """See `Service`."""

    def ended(self, why: str) -> None:
        """See `Service`."""
        self._leave()

    def refuse(self, problem: FrameRefused) -> None:
        """See `Service`."""
        self._leave()
        peer = self._connection.peer
        self._server.log.stranger("no greeting that is known", peer=peer, problem=problem)
        said = asking.encode(asking.Goodbye(str(problem)[:1000], again=False))
        assert len(said) < PAYLOAD_BYTES_MAX
        self._connection.send(frame(Kind.GOODBYE, said))
