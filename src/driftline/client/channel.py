"""How does a client speak with its broker over a connection that may break?

Frames go out in order, and are handed on as they come. When the connection is lost it is made
again, with a growing delay, and whoever uses it is asked to say everything anew. A token that
cannot be had just now, because its file is being replaced, is one more reason to try again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

import msgspec

from driftline.client.address import BrokerAddress
from driftline.errors import DriftlineError, FrameRefused, Unreachable
from driftline.wire import asking
from driftline.wire.asking import Goodbye, Hello, Welcome, problem_of
from driftline.wire.stream import Frames, Kind, frame

log = logging.getLogger(__name__)

Token: TypeAlias = str | Callable[[], str]
"""What proves who we are, or what gives one: a new one whenever the last has expired."""
Dial: TypeAlias = Callable[
    [Callable[[], asyncio.Protocol]], Awaitable[tuple[asyncio.BaseTransport, asyncio.Protocol]]
]
"""How a connection is made, if not by an address: with a protocol of ours at this end."""

DELAY_FIRST = 0.05
DELAY_LAST = 5.0
GREETING = 10.0
CLOSING = 1.0
TOKEN_AWAY = 10.0
"""When a token could not be had for so many seconds that is logged: nobody else may notice."""
SILENCE = 60.0
"""A broker that says nothing for so many seconds, not even when asked, is gone."""


class Owner(Protocol):
    """Whoever uses the channel."""

    def connected(self, welcome: Welcome) -> None:
        """There is a connection, the first or another: say everything on it."""

    def heard(self, kind: Kind, payload: bytes) -> None:
        """A frame has come."""

    def disconnected(self, why: str) -> None:
        """The connection is lost; another is being made."""

    def ended(self, problem: DriftlineError) -> None:
        """There will be no other."""


class _NoToken(Exception):
    """Whatever is to give a token gives none."""


class Channel:
    """A connection to one broker, as long as it is wanted."""

    def __init__(
        self,
        address: BrokerAddress,
        owner: Owner,
        hello: Hello,
        token: Token,
        tls: ssl.SSLContext | None,
        reconnect: bool,
        dial: Dial | None = None,
    ) -> None:
        self.address = address
        self._dial = dial or self._by_address
        self._owner = owner
        self._hello = hello
        self._token = token
        self._shown = ""
        """The token that was shown last."""
        self._token_away: float | None = None
        """Since when none can be had; infinite when that was logged."""
        self._tls = tls
        self._reconnect = reconnect
        self._line: _Line | None = None
        self._task: asyncio.Task[None] | None = None
        self._out: list[bytes] = []
        self._writable = asyncio.Event()
        self._closing = False
        self._final: DriftlineError | None = None
        self._problem = ""
        """Why there was no connection, when it was last tried."""

    async def open(self, within: float) -> None:
        """Connect for the first time; `Unreachable` if that does not succeed in time."""
        self._loop = asyncio.get_running_loop()
        first: asyncio.Future[None] = self._loop.create_future()
        self._task = self._loop.create_task(self._keep_connected(first))
        try:
            # Not `wait_for`: up to Python 3.11 that may swallow that it was cancelled.
            async with asyncio.timeout(within):
                await first
        except TimeoutError:
            await self.close()
            why = f"no answer within {within:g} s"
            raise Unreachable(
                str(self.address), f"{why}: {self._problem}" if self._problem else why
            ) from None
        except asyncio.CancelledError:
            self._task.cancel()
            raise

    async def _keep_connected(self, first: asyncio.Future[None]) -> None:
        delay = DELAY_FIRST
        while True:
            try:
                line = await self._connect()
            except (OSError, TimeoutError, ValueError, FrameRefused, _NoToken) as problem:
                # ValueError: a host that can be none.
                why = self._problem = _reason(problem) + _advice(problem, self.address.tls)
            else:
                delay = DELAY_FIRST
                if not first.done():
                    first.set_result(None)
                why = await line.lost
                self._line = None
                self._writable.clear()
                if self._closing:
                    return
                self._owner.disconnected(why)
            if self._final is not None or not self._reconnect:
                final = self._final or Unreachable(str(self.address), why)
                if not first.done():
                    first.set_exception(final)
                self._owner.ended(final)
                return
            # At random, so that those who lost the same broker do not all come back at once.
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))
            delay = min(2 * delay, DELAY_LAST)

    async def _connect(self) -> _Line:
        self._shown = self._token_now()
        async with asyncio.timeout(GREETING):
            _, line = await self._dial(lambda: _Line(self))
        assert isinstance(line, _Line)
        hello = msgspec.structs.replace(self._hello, token=self._shown)
        line.send(frame(Kind.HELLO, asking.encode(hello)))
        try:
            async with asyncio.timeout(GREETING):
                welcome = await line.welcome
        except BaseException:
            # Or it would be greeted later, as a second connection of this client.
            line.abort()
            raise
        self._line = line
        self._writable.set()
        self._owner.connected(welcome)
        return line

    def _token_now(self) -> str:
        if not callable(self._token):
            return self._token
        try:
            token = self._token()
        except Exception as problem:
            # Whatever it is that the program has given us, it may well succeed the next time.
            now = time.monotonic()
            since = self._token_away = now if self._token_away is None else self._token_away
            if now >= since + TOKEN_AWAY:
                self._token_away = float("inf")
                log.warning("%s: not connected: %s", self.address, problem)
            raise _NoToken(str(problem) or type(problem).__name__) from problem
        self._token_away = None
        return token

    async def _by_address(
        self, protocol: Callable[[], asyncio.Protocol]
    ) -> tuple[asyncio.BaseTransport, asyncio.Protocol]:
        address, context = self.address, self._tls
        if context is None and address.tls:
            context = ssl.create_default_context()
        return await self._loop.create_connection(protocol, address.host, address.port, ssl=context)

    @property
    def is_up(self) -> bool:
        """Is there a connection?"""
        return self._line is not None

    def send(self, data: bytes) -> None:
        """Send a frame when this turn of the loop is over; without a connection it is lost."""
        if self._line is None:
            return
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(data)

    def _flush(self) -> None:
        if self._line is not None and self._out:
            self._line.send(b"".join(self._out))
        self._out.clear()

    async def drained(self) -> None:
        """Wait until more can be sent."""
        await self._writable.wait()

    def hold(self, held: bool) -> None:
        """Read nothing for now, or read on."""
        if self._line is not None:
            self._line.hold(held)

    async def close(self) -> None:
        """Say goodbye, and end."""
        self._closing = True
        line = self._line
        if line is not None:
            self._flush()
            line.send(frame(Kind.GOODBYE, asking.encode(Goodbye("done"))))
            line.close("closed")
            # TLS has a farewell of its own, which takes a moment.
            await asyncio.wait((line.lost,), timeout=CLOSING)
            line.abort()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # For the line

    def _came(self, line: _Line, kind: Kind, payload: bytes) -> None:
        if self._line not in (None, line):
            return  # There is another connection by now.
        if kind is Kind.GOODBYE:
            said = asking.decode_goodbye(payload)
            self._turned_away(said)
            if self._line is not None:
                self._line.close(said.why)
        else:
            self._owner.heard(kind, payload)

    def _turned_away(self, said: Goodbye) -> None:
        """The broker ends it: for good, unless there is a point in coming back."""
        if self._reconnect and (said.again or self._has_another_token()):
            return
        self._final = (
            problem_of(said.error, [said.why])
            if said.error
            else Unreachable(str(self.address), said.why)
        )

    def _has_another_token(self) -> bool:
        """Is there one that was not shown, or may there be?"""
        try:
            return self._token_now() != self._shown
        except _NoToken:
            return True

    def _pressed(self, full: bool) -> None:
        (self._writable.clear if full else self._writable.set)()


class _Line(asyncio.Protocol):
    """One connection: frames out of its bytes, and is anybody there?"""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._frames = Frames()
        self._transport: asyncio.Transport | None = None
        self._why = "the broker has closed the connection"
        self._heard = True
        self._asked = False
        self._timer: asyncio.TimerHandle | None = None
        self.welcome: asyncio.Future[Welcome] = self._loop.create_future()
        self.lost: asyncio.Future[str] = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._timer = self._loop.call_later(SILENCE / 2, self._look)

    def data_received(self, data: bytes) -> None:
        self._heard = True
        try:
            for kind, payload in self._frames.feed(data):
                self._frame(kind, payload)
        except FrameRefused as problem:
            self._fail(problem)

    def _frame(self, kind: Kind, payload: bytes) -> None:
        if not self.welcome.done():
            if kind is Kind.GOODBYE:
                said = asking.decode_goodbye(payload)
                self._channel._turned_away(said)
                raise FrameRefused("hello", "a welcome", said.why)
            if kind is not Kind.HELLO:
                raise FrameRefused("hello", "a welcome", kind.name.lower())
            self.welcome.set_result(asking.decode_welcome(payload))
        elif kind is Kind.PING:
            self.send(frame(Kind.PONG, payload))
        elif kind is not Kind.PONG:
            self._channel._came(self, kind, payload)

    def _fail(self, problem: FrameRefused) -> None:
        if not self.welcome.done():
            self.welcome.set_exception(problem)
        self.close(str(problem))

    def _look(self) -> None:
        if not self._heard and self._asked:
            self.close("the broker says nothing any more")
            return
        self._asked = not self._heard
        if self._asked:
            self.send(frame(Kind.PING, b""))
        self._heard = False
        self._timer = self._loop.call_later(SILENCE / 2, self._look)

    def pause_writing(self) -> None:
        self._channel._pressed(True)

    def resume_writing(self) -> None:
        self._channel._pressed(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        why = str(exc) if exc else self._why
        if not self.welcome.done():
            self.welcome.set_exception(ConnectionError(why))
            self.welcome.exception()  # Whoever waited has gone, perhaps.
        if not self.lost.done():
            self.lost.set_result(why)

    def send(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def hold(self, held: bool) -> None:
        if self._transport is not None and not self._transport.is_closing():
            if held:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def close(self, why: str) -> None:
        self._why = why
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _reason(problem: Exception) -> str:
    """What the system says, without what asyncio adds."""
    # What TLS refuses has a number too, which is none of the system's.
    if isinstance(problem, OSError) and not isinstance(problem, ssl.SSLError):
        number = problem.errno or 0
        if number > 0:
            return os.strerror(number).lower()
    return str(problem) or type(problem).__name__


_UNKNOWN = (18, 19, 20, 21)
"""What OpenSSL calls the certificates of those whom nobody knows."""


def _advice(problem: Exception, tls: bool) -> str:
    """What is probably to be done about it, where the system's words do not say it."""
    if isinstance(problem, ssl.SSLCertVerificationError) and problem.verify_code in _UNKNOWN:
        return "; whom to believe is said by --authority, in Python by tls"
    if isinstance(problem, ssl.SSLError) and problem.reason == "WRONG_VERSION_NUMBER":
        return "; perhaps it has no TLS: driftline://"
    if type(problem) is ConnectionError and not tls:
        return " before it said anything; perhaps it has TLS: driftlines://"
    return ""
