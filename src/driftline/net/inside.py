"""How does another door of a broker come to it, in its process or in one of its own?

As a client like all others, over a pair of sockets: what it may do, what waits for it and what it
is told is decided where it is for everybody. Only whose it is was found out at that door; one in a
process of its own says that in the greeting, in the place of a token.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import msgspec

from driftline.net.connection import Connection, Inside
from driftline.net.tokens import Proven

if TYPE_CHECKING:
    from driftline.net.config import Config
    from driftline.net.server import Server

Dialled = tuple[asyncio.BaseTransport, asyncio.Protocol]


class Count(NamedTuple):
    """Something that is counted at a door, for Prometheus; does it only grow?"""

    name: str
    value: int
    said: str
    grows: bool = False


class Door(Protocol):
    """Another way into a broker, opened with it and closed before it."""

    async def start(self, server: Server) -> None:
        """Let people in; raises what keeps it from that."""

    def renewed(self, config: Config) -> Callable[[], None]:
        """Who may do what is to change: nobody may go on with what was found out before.

        All that can fail fails here, and changes nothing; what is returned lets it count.
        """

    def handles(self, handler: str) -> bool:
        """Can a durable subscription be told through such a handler from here? `InvalidValue` if
        it could, but for something that is wrong with it.
        """

    def routed(self, party: str) -> None:
        """A durable subscription is told in another way, or no longer."""

    def troubled(self, why: str) -> None:
        """Nothing can be stored, for this reason; empty: it can be again."""

    async def stop(self) -> None:
        """Let nobody in any more, and everybody out."""

    def facts(self) -> dict[str, object]:
        """What to say of it when the broker is ready."""

    def counts(self) -> list[Count]:
        """How busy it is."""


class Trouble(NamedTuple):
    """Why a durable subscription is not told through its handler just now, tried so often."""

    why: str
    attempts: int


@runtime_checkable
class Handling(Protocol):
    """A door that tells durable subscriptions through handlers."""

    def holds(self, party: str) -> bool:
        """Is a durable subscription told to it just now, and not to anybody else?"""

    def trouble(self, party: str) -> Trouble | None:
        """Why telling it does not succeed; None: nothing is wrong."""

    def secret(self, party: str, generation: int) -> str:
        """What its webhooks are signed with; `NotSupported` if none are sent."""


def said_of(proven: Proven) -> str:
    """Whose somebody is, as a door says it in the place of a token."""
    return msgspec.json.encode(proven).decode()


def proven_by(said: str) -> Proven:
    """The same, read."""
    return msgspec.json.decode(said, type=Proven)


def dial_as(
    server: Server,
    proven: Proven,
    *,
    steps_aside: bool = False,
) -> Callable[[Callable[[], asyncio.Protocol]], Awaitable[Dialled]]:
    """How a client of this process connects, as somebody who has proven who they are.

    Who steps aside does not take a durable subscription from anybody.
    """
    known = Inside(proven, steps_aside=steps_aside)

    async def dial(protocol: Callable[[], asyncio.Protocol]) -> Dialled:
        if server.draining:
            raise ConnectionError("the broker ends")
        ours, theirs = socket.socketpair()
        # The other end may be in another thread, with a loop of its own.
        accepted = asyncio.run_coroutine_threadsafe(_accept(server, known, theirs), server.loop)
        try:
            # Whoever gives up must not take the socket from under the broker's loop: it is told
            # by the end of ours.
            await asyncio.shield(asyncio.wrap_future(accepted))
            return await asyncio.get_running_loop().create_connection(protocol, sock=ours)
        except BaseException:
            ours.close()
            raise

    return dial


async def _accept(server: Server, known: Inside, sock: socket.socket) -> None:
    try:
        await server.loop.connect_accepted_socket(lambda: Connection(server, known), sock)
    except BaseException:
        sock.close()
        raise
