"""Does whoever comes back by a session of TLS count as more than by its certificate now?"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from driftline.net.address import Address
from driftline.net.authority import sign_broker, sign_party
from driftline.net.server import Server
from driftline.wire import asking
from driftline.wire.stream import HEAD_BYTES, Frames, Kind, frame, head_of
from tests.net.here import eventually, gateway, http, served
from tests.net.in_thread import ThreadDoor
from tests.net.secured import Authority, closed
from tests.net.test_tokens import EVERYTHING

OPEN = {"listen": "127.0.0.1:0"}
DOORS = ["the broker's port", "HTTPS"]
REQUEST = b"GET /v1/subscriptions HTTP/1.1\r\nHost: localhost\r\n\r\n"
STREAM = b"GET /v1/stream?sql=SELECT+*+FROM+q HTTP/1.1\r\nHost: localhost\r\n\r\n"
TIMEOUT = 20.0


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60))


@pytest.fixture
def old(tmp_path):
    return Authority(tmp_path / "old")


@pytest.fixture
def new(tmp_path):
    return Authority(tmp_path / "new")


class Visit(NamedTuple):
    """What came of one connection."""

    heard: bytes
    session: ssl.SSLSession | None
    resumed: bool

    @property
    def believed(self) -> bool:
        """Was whoever came taken for alice?"""
        if self.heard.startswith(b"HTTP/"):
            return self.heard.startswith(b"HTTP/1.1 200 ")
        return any(kind is Kind.HELLO for kind, _ in Frames().feed(self.heard))


def door(server: Server, name: str) -> tuple[Address, bytes]:
    """Where it is, and what is said there first."""
    if name == "HTTPS":
        return Address.of(http(server).removeprefix("https://")), REQUEST
    return server.address, frame(Kind.HELLO, asking.encode(asking.Hello("c", "", 1)))


def visit(
    at: Address, said: bytes, context: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> Visit:
    """Say something, and hear the beginning of what is answered. No other client can resume."""
    heard, resumed = b"", False
    with suppress(ssl.SSLError, ConnectionError, EOFError):
        with (
            socket.create_connection((at.host, at.port), TIMEOUT) as line,
            context.wrap_socket(line, server_hostname=at.host, session=session) as secured,
        ):
            resumed = bool(secured.session_reused)
            secured.sendall(said)
            while len(heard) < HEAD_BYTES + 1 and (data := secured.recv(1 << 16)):
                heard += data
            session = secured.session
            # A session counts only if its connection ended as it should.
            secured.unwrap()
    return Visit(heard, session, resumed)


def shows(old: Authority, new: Authority, version: ssl.TLSVersion) -> ssl.SSLContext:
    """One who trusts both, and has a certificate of the old one for alice."""
    context = old.trust()
    context.load_verify_locations(new.folder / "ca.pem")
    context.load_cert_chain(*sign_party(old.folder, "alice"))
    context.maximum_version = version
    return context


def reload(server: Server, tls: dict[str, str]) -> None:
    config = server.config
    assert config.tls is not None
    files = {name: Path(file) for name, file in tls.items()}
    server.reload(replace(config, tls=replace(config.tls, **files)))


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_of_an_authority_that_is_no_longer_trusted_opens_no_door(old, new, name, version):
    async def test():
        async with closed(old, EVERYTHING, http=OPEN, tls=old.tls("b")) as server:
            context = shows(old, new, version)
            at, said = door(server, name)
            first = await asyncio.to_thread(visit, at, said, context)
            assert first.believed
            reload(server, new.tls("b"))
            await another_answers(server)
            for _ in range(2):
                again = await asyncio.to_thread(visit, at, said, context, first.session)
                assert not again.resumed
                assert not again.believed
            # By what the new one has signed it is let in, as ever.
            context.load_cert_chain(*sign_party(new.folder, "alice"))
            assert (await asyncio.to_thread(visit, at, said, context)).believed

    run(test)


@pytest.mark.parametrize("name", DOORS)
def test_a_session_whose_certificate_has_expired_meanwhile_is_nobodys(old, new, name, monkeypatch):
    """Nobody looks at a certificate again when a session of TLS 1.2 goes on."""

    async def test():
        async with closed(old, EVERYTHING, http=OPEN, tls=old.tls("b")) as server:
            context = shows(old, new, ssl.TLSVersion.TLSv1_2)
            at, said = door(server, name)
            first = await asyncio.to_thread(visit, at, said, context)
            second = await asyncio.to_thread(visit, at, said, context, first.session)
            assert second.resumed
            assert second.believed
            many_years_later(monkeypatch)
            third = await asyncio.to_thread(visit, at, said, context, first.session)
            assert third.resumed
            assert not third.believed
            assert b"the certificate has expired" in third.heard or b"401" in third.heard

    run(test)


def test_a_broker_whose_certificate_has_expired_gets_no_link_by_a_session(old, monkeypatch):
    async def test():
        async with served(name="a", tls=old.tls("a"), peers=[{"name": "b"}]) as server:
            context = old.trust()
            context.load_cert_chain(*sign_broker(old.folder, "b", ["127.0.0.1"]))
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            mine = server.broker.settings
            link = asking.Link("b", "peer", 1, mine.advertised, mine.stamped)
            said = frame(Kind.LINK, asking.encode(link))
            first = await asyncio.to_thread(visit, server.address, said, context)
            assert head_of(first.heard, 0, len(first.heard))[0] is Kind.LINK
            many_years_later(monkeypatch)
            again = await asyncio.to_thread(visit, server.address, said, context, first.session)
            assert again.resumed
            ((kind, payload),) = Frames().feed(again.heard)
            assert kind is Kind.GOODBYE
            assert "and proves it" in asking.decode_goodbye(payload).why

    run(test)


def many_years_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """For whoever asks how long a certificate counts."""
    later = SimpleNamespace(time=lambda: time.time() + 100 * 365 * 86400)
    monkeypatch.setattr("driftline.net.certificates.time", later)


class Half:
    """One whose handshake is done but for its last words."""

    def __init__(self, at: Address, context: ssl.SSLContext) -> None:
        self.line = socket.create_connection((at.host, at.port), TIMEOUT)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=at.host)

    def begin(self) -> None:
        """Go on until nothing is to be heard any more."""
        while True:
            try:
                self._tls.do_handshake()
                return
            except ssl.SSLWantReadError:
                self.line.sendall(self._out.read())
                self._in.write(self.line.recv(1 << 16))

    def end(self, said: bytes) -> None:
        """Say the last words, and what follows."""
        self._tls.write(said)
        self.line.sendall(self._out.read())

    def say(self, said: bytes) -> bytes:
        """Say something more, and hear the beginning of what is answered."""
        self.end(said)
        return self.more()

    def more(self) -> bytes:
        """What comes next; nothing, if that is the end."""
        while True:
            try:
                return self._tls.read(1 << 16)
            except ssl.SSLWantReadError:
                data = self.line.recv(1 << 16)
                if not data:
                    return b""
                self._in.write(data)

    def hear(self) -> bytes:
        """What is answered, until the end."""
        heard = b""
        with suppress(ssl.SSLError, ConnectionError), self.line:
            while data := self.line.recv(1 << 16):
                self._in.write(data)
                with suppress(ssl.SSLWantReadError):
                    while part := self._tls.read(1 << 16):
                        heard += part
        return heard


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_who_is_half_in_when_another_authority_counts_does_not_get_in_by_the_first(
    old, new, name, when
):
    async def test():
        async with closed(old, EVERYTHING, http=OPEN, tls=old.tls("b")) as server:
            at, said = door(server, name)
            context = shows(old, new, ssl.TLSVersion.TLSv1_3)
            half = await asyncio.to_thread(Half, at, context)
            await asyncio.to_thread(half.begin)
            if when == "before":
                # The system has it, and nobody has read it yet.
                if name == "HTTPS":
                    async with Rest(server):
                        half.end(said)
                        reload(server, new.tls("b"))
                    await passed(server)
                else:
                    half.end(said)
                    reload(server, new.tls("b"))
            else:
                reload(server, new.tls("b"))
                if name == "HTTPS":
                    await passed(server)
                with suppress(ConnectionError):
                    half.end(said)
            hearing = asyncio.create_task(asyncio.to_thread(half.hear))
            while not hearing.done():
                # Nobody need hear of it who may do something.
                assert not server.guests
                await asyncio.sleep(0)
            heard = hearing.result()
            assert not heard or (name == "HTTPS" and heard.startswith(b"HTTP/1.1 503 "))

    run(test)


async def another_answers(server: Server) -> None:
    """Until then who is let in over HTTPS by the certificates before is told 503."""
    (found,) = [one for one in server.doors if isinstance(one, ThreadDoor)]
    await eventually(lambda: not found._leaving)


async def passed(server: Server) -> None:
    """Let the gateway's own loop do what was asked of it before; one that has ended has done so."""
    loop, done = gateway(server)._loop, threading.Event()
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(done.set)
    while not (done.is_set() or loop.is_closed()):
        await asyncio.sleep(0.001)


class Rest:
    """While it is entered the gateway's own loop stands still."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = gateway(server)._loop
        self._here = asyncio.get_running_loop()
        self._still, self._go_on = asyncio.Event(), threading.Event()

    def begin(self) -> None:
        """For the gateway's loop."""
        self._here.call_soon_threadsafe(self._still.set)
        self._go_on.wait(TIMEOUT)

    async def __aenter__(self) -> Rest:
        self._loop.call_soon_threadsafe(self.begin)
        await self._still.wait()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._go_on.set()

    async def then(self) -> Rest:
        """Let it go on with what it has heard of by now, and stand still before that is done."""
        another = Rest(self._server)
        # Whatever it hears of now comes after the first, and before what that asks for.
        self._loop.call_soon_threadsafe(self._loop.call_soon, another.begin)
        self._go_on.set()
        await another._still.wait()
        return another


def test_what_is_asked_just_when_another_authority_counts_is_not_done_by_the_first(old, new):
    """A stream would go on for as long as nobody ends it."""

    async def test():
        async with closed(old, EVERYTHING, http=OPEN, tls=old.tls("b")) as server:
            at, said = door(server, "HTTPS")
            kept = await asyncio.to_thread(Half, at, shows(old, new, ssl.TLSVersion.TLSv1_3))
            await asyncio.to_thread(kept.begin)
            assert (await asyncio.to_thread(kept.say, said)).startswith(b"HTTP/1.1 200 ")
            await passed(server)
            async with Rest(server) as rest:
                kept.end(STREAM)
                async with await rest.then():
                    # It has been read, and who asks is looked at next.
                    reload(server, new.tls("b"))
            heard = await asyncio.to_thread(kept.more)
            while b"HTTP/1.1 " not in heard:
                heard += await asyncio.to_thread(kept.more)
            assert b"HTTP/1.1 503 " in heard
            assert not server.guests
            kept.line.close()

    run(test)
