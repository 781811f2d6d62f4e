"""Who is asking over HTTP, and which client of the broker is theirs?

Whose a request is says its token, or the certificate of its connection. All requests of an identity
share one client of the broker; each stream and each WebSocket has one of its own, so that whoever
reads slowly fills nobody's queue but its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from starlette.requests import HTTPConnection

from driftline.client.address import BrokerAddress
from driftline.client.client import Client
from driftline.client.conversation import PENDING, Pending
from driftline.errors import NotAuthenticated
from driftline.gateway.line import Line, Unproven
from driftline.gateway.shares import Places, taker
from driftline.gateway.turns import Turns
from driftline.net.http import Http
from driftline.net.identities import Identities
from driftline.net.inside import said_of
from driftline.net.tokens import TOKEN_BYTES_MAX, Proven

INSIDE = BrokerAddress("the-broker-behind-this")
PROTOCOL = "driftline.v1"
"""What a WebSocket speaks here."""
BEARER = "bearer."
"""A browser cannot send a header with a WebSocket: a token is one more protocol, with this before
it, and is never repeated."""
_TOKENS_REMEMBERED = 10_000
_WAITING_MOST = 1_000
_IDLE = 60.0
_STREAM_PENDING = Pending(256, 1 << 20, always=True)
"""So much waits in a stream; then the broker's queue, with its policy, has it."""


@dataclass(slots=True)
class _Shared:
    """The client of an identity's requests."""

    client: Client
    users: int = 0
    closing: asyncio.TimerHandle | None = None
    opened: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_open: bool = False


class Proof(NamedTuple):
    """Whose a request is."""

    proven: Proven
    taker: str
    """Whose share of all there is it takes."""

    @property
    def identity(self) -> str:
        """Whose it is."""
        return self.proven.identity


class Visitors:
    """All who ask at one gateway, which has a line to the broker."""

    def __init__(self, identities: Identities, http: Http, line: Line) -> None:
        self._identities = identities
        self._line = line
        self._requests = Places("requests at a time", http.requests)
        self._streams = Places("streams", http.streams)
        self._proven: dict[bytes, Proven] = {}
        self._shared: dict[str, _Shared] = {}
        self._open: set[Client] = set()
        self._told: set[Client] = set()
        """Those of them that streams and WebSockets have."""
        self._closing: set[asyncio.Task[None]] = set()
        self._turns: WeakValueDictionary[str, Turns] = WeakValueDictionary()
        """Of those who ask for something just now."""
        self._aside = asyncio.Lock()
        self._reader = ThreadPoolExecutor(1, "driftline-aside")
        """One thread, also where who asked has gone meanwhile and it goes on."""

    @property
    def streams(self) -> int:
        """How many streams and WebSockets there are."""
        return self._streams.all

    # Who

    def proven(self, connection: HTTPConnection) -> Proof:
        """Whose a request is; `NotAuthenticated` if that cannot be told."""
        certificate = getattr(connection.state, "certificate", None)
        peer = connection.client
        try:
            token = _token(connection)
            proven = self._of_token(token) if token else self._identities.proven("", certificate)
        except NotAuthenticated as problem:
            # It is counted; but not what nobody has time to count.
            if self._line.waiting < _WAITING_MOST:
                where = "" if peer is None else f"{peer.host}:{peer.port}"
                self._line.say(Unproven(where, problem.why))
            raise
        return Proof(proven, taker(proven.identity, "" if peer is None else peer.host))

    def _of_token(self, token: str) -> Proven:
        if len(token) > TOKEN_BYTES_MAX:
            raise NotAuthenticated(f"a token has at most {TOKEN_BYTES_MAX} bytes")
        # The token itself is kept nowhere.
        key = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        known = self._proven.get(key)
        if known is not None and (known.until is None or time.time() < known.until):
            return known
        # Of an open broker anybody is anyone, whatever they show.
        proven = self._identities.proven(token, None)
        if len(self._proven) >= _TOKENS_REMEMBERED:
            self._proven.clear()
        self._proven[key] = proven
        return proven

    def turns(self, proof: Proof) -> Turns:
        """What all takes turns by that an identity asks for, or somebody from an address."""
        return self._turns.setdefault(proof.taker, Turns(self._aside, self._reader))

    # Clients

    @asynccontextmanager
    async def shared(self, proof: Proof) -> AsyncIterator[Client]:
        """The client that the requests of an identity share."""
        with self._requests.taken(proof.taker):
            async with self._used(proof) as client:
                yield client

    @asynccontextmanager
    async def _used(self, proof: Proof) -> AsyncIterator[Client]:
        identity = proof.identity
        one = self._shared.get(identity)
        if one is None or one.client.is_over:
            # Each request has proven anew who it is: the client lasts as long as there are any.
            lasting = proof._replace(proven=Proven(identity))
            one = self._shared[identity] = _Shared(self._client(lasting))
        if one.closing is not None:
            one.closing.cancel()
            one.closing = None
        one.users += 1
        try:
            async with one.opened:
                if not one.is_open:
                    await one.client.open()
                    one.is_open = True
                    self._open.add(one.client)
            yield one.client
        finally:
            one.users -= 1
            self._was_used(identity, one)

    def _was_used(self, identity: str, one: _Shared) -> None:
        """A request is done with its client."""
        loop = asyncio.get_running_loop()
        is_known = self._shared.get(identity) is one
        if is_known and (not one.is_open or one.client.is_over):
            # The next request finds another.
            del self._shared[identity]
            is_known = False
        if one.users:
            return
        if is_known:
            one.closing = loop.call_later(_IDLE, self._let_go, identity)
        elif one.is_open:
            self._spawn(self._close(one.client))

    def _let_go(self, identity: str) -> None:
        one = self._shared.get(identity)
        if one is not None and not one.users:
            del self._shared[identity]
            self._spawn(self._close(one.client))

    def _spawn(self, what: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(what)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    @asynccontextmanager
    async def stream(self, proof: Proof) -> AsyncIterator[Client]:
        """A client of its own, which ends with the token that it came by."""
        with self._streams.taken(proof.taker):
            client = self._client(proof, pending=_STREAM_PENDING)
            try:
                await client.open()
                self._open.add(client)
                self._told.add(client)
                yield client
            finally:
                await self._close(client)

    def _client(self, proof: Proof, pending: Pending = PENDING) -> Client:
        # What ends it, ends it: whoever asks next is proven anew, and gets another.
        said = said_of(proof.proven)
        return Client(INSIDE, token=said, dial=self._dial, reconnect=False, pending=pending)

    async def _dial(
        self, protocol: Callable[[], asyncio.Protocol]
    ) -> tuple[asyncio.BaseTransport, asyncio.Protocol]:
        """Hand the other end of a connection over to the broker."""
        ours, theirs = socket.socketpair()
        self._line.hand(theirs)
        try:
            return await asyncio.get_running_loop().create_connection(protocol, sock=ours)
        except BaseException:
            ours.close()
            raise

    async def _close(self, client: Client, why: str = "it was let go") -> None:
        self._open.discard(client)
        self._told.discard(client)
        await client.close(why)

    async def end_streams(self) -> None:
        """End those who would be told for ever; what was asked once may still be answered."""
        await self._close_all(self._told)

    async def close(self) -> None:
        """End all of them."""
        self._shared.clear()
        await self._close_all(self._open)

    async def _close_all(self, some: set[Client]) -> None:
        closing = [self._close(one, "the broker ends") for one in some]
        await asyncio.gather(*closing, return_exceptions=True)


def _token(connection: HTTPConnection) -> str:
    """The bearer token of a request, empty: none."""
    all_said = connection.headers.getlist("authorization")
    if len(all_said) > 1:
        # Whoever passes it on may look at another one than we do.
        raise NotAuthenticated("wanted one Authorization, came several")
    said = all_said[0] if all_said else ""
    scheme, _, token = said.partition(" ")
    if said and scheme.lower() != "bearer":
        raise NotAuthenticated("wanted in Authorization the word Bearer, and a token")
    if said:
        return token.strip() or "-"
    if connection.scope["type"] == "websocket":
        for one in connection.scope.get("subprotocols", ()):
            if one.startswith(BEARER):
                return str(one).removeprefix(BEARER)
    return ""
