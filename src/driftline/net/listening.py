"""How are people let in, when very many knock at once?

A handshake of TLS takes about a millisecond of the loop's time, and until it is done nobody knows
of the connection but who listens. So only a few are let in for each turn of the loop, while others
wait where the system keeps them; and of those who are not through with TLS the oldest ends when
there are too many. asyncio's own servers do neither: they take in all who wait, and count nobody.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from driftline.net.address import Address, cannot_listen

PER_TURN = 16
"""So many are let in before others have their turn."""
PER_TURN_TLS = 2
_BACKLOG = 1024
_NO_ROOM = 0.25
"""Seconds after which it is tried again, when the system has no room for a connection more."""

Unheard = Callable[[str, str], None]
"""Is told of somebody with whom nobody has spoken: from where, and why."""


class _Knocked(NamedTuple):
    """Somebody who is not through with TLS, and from where they come."""

    line: socket.socket
    peer: str

    def end(self) -> None:
        """End it. The loop has it, and hears so as if the other end had done it."""
        with suppress(OSError):
            self.line.shutdown(socket.SHUT_RDWR)


class Listening:
    """Lets people in at one address.

    What they say is heard by protocols that `make` makes. Who is not through with TLS in so many
    seconds is turned away, and so is the oldest of more than `most`. Protocols ask whether
    whom they get `counts`: the certificates may be others by then. When the system has no room for
    more, `crowded` is called: of those who are in, some may do without.
    """

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        make: Callable[[], asyncio.BaseProtocol],
        *,
        tls: ssl.SSLContext | None,
        patience: float,
        most: int,
        unheard: Unheard,
        crowded: Callable[[], object] = lambda: None,
    ) -> None:
        self._sockets = sockets
        self._make = make
        self._tls = tls
        self._patience = None if tls is None else patience
        self._per_turn = PER_TURN if tls is None else PER_TURN_TLS
        # Who has just come in is not the oldest.
        self._most = max(most, 2 * self._per_turn)
        self._unheard = unheard
        self._crowded = crowded
        self._entering: dict[asyncio.Task[None], _Knocked] = {}
        """Those who are not through with TLS, the oldest first."""
        self._loop = asyncio.get_running_loop()
        self._closed = False

    @property
    def address(self) -> Address:
        """Where it is."""
        return address_of(self._sockets[0])

    @property
    def entering(self) -> int:
        """How many are not through with TLS."""
        return len(self._entering)

    def begin(self) -> None:
        """Let people in from now on."""
        for one in self._sockets:
            self._loop.add_reader(one, self._accept, one)

    def close(self) -> None:
        """Let nobody in any more; those who are in stay."""
        self._closed = True
        for one in self._sockets:
            self._loop.remove_reader(one)
            one.close()
        for knocked in self._entering.values():
            knocked.end()

    def renew(self, tls: ssl.SSLContext | None) -> None:
        """Let others in by these certificates, and end those who are not through with TLS."""
        self._tls = tls
        while self._entering:
            self._end_oldest("certificates have changed")

    def counts(self, context: object) -> bool:
        """Is who got in by this context in by the certificates that count now, and is anybody?

        Whoever is ended on their way in has perhaps said the last words before, which the system
        keeps: then they get in all the same.
        """
        return context is self._tls and not self._closed

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(self._per_turn):
            try:
                line, name = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as problem:
                # Out of files or of memory. The socket stays ready, and would be looked at always.
                self._unheard("", f"no room for connections: {problem.strerror}")
                self._end_oldest("there is no room for connections")
                self._crowded()
                self._loop.remove_reader(listening)
                self._loop.call_later(_NO_ROOM, self._again, listening)
                return
            task = self._loop.create_task(self._let_in(line))
            self._entering[task] = _Knocked(line, f"{name[0]}:{name[1]}")
            task.add_done_callback(self._entered)
            if len(self._entering) > self._most:
                self._end_oldest("there are too many who are not through with TLS")

    def _again(self, listening: socket.socket) -> None:
        if not self._closed:
            self._loop.add_reader(listening, self._accept, listening)

    async def _let_in(self, line: socket.socket) -> None:
        await self._loop.connect_accepted_socket(
            self._make,
            line,
            ssl=self._tls,
            ssl_handshake_timeout=self._patience,
            ssl_shutdown_timeout=self._patience,
        )

    def _end_oldest(self, why: str) -> None:
        oldest = next(iter(self._entering), None)
        if oldest is not None:
            knocked = self._entering.pop(oldest)
            self._unheard(knocked.peer, why)
            knocked.end()

    def _entered(self, task: asyncio.Task[None]) -> None:
        knocked = self._entering.pop(task, None)
        problem = None if task.cancelled() else task.exception()
        if problem is not None and knocked is not None:
            self._unheard(knocked.peer, f"TLS: {_plainly(problem)}")


def _plainly(problem: BaseException) -> str:
    """What went wrong with TLS, for a person; where nothing more is known, as OpenSSL has it."""
    reason = getattr(problem, "reason", None)
    if reason == "HTTP_REQUEST":
        return "wanted it, came plain HTTP"
    if reason:
        return str(reason).lower().replace("_", " ")
    # A peer that does not believe our certificate may end without a word.
    return str(problem) or "the other end has closed it"


def bound(at: Address) -> list[socket.socket]:
    """Sockets at all addresses that a name has; `CannotListen` if one of them is not free.

    From now on whoever connects waits, if need be: until it listens, another socket may have the
    same address, and neither would hear of it in time.
    """
    found: list[socket.socket] = []
    try:
        known = socket.getaddrinfo(
            at.host, at.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, name in dict.fromkeys(known):
            one = socket.socket(family, kind, protocol)
            found.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.setblocking(False)
            one.bind(name)
            one.listen(_BACKLOG)
    except OSError as problem:
        for one in found:
            one.close()
        raise cannot_listen(at, problem) from None
    return found


def address_of(bound: socket.socket) -> Address:
    """Where a socket is."""
    host, port = bound.getsockname()[:2]
    return Address(host, port)
