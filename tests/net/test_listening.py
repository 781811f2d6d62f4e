"""Are honest people let in while many knock who do not mean it?"""

from __future__ import annotations

import asyncio
import os
import resource
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from driftline.errors import CannotListen
from driftline.net.address import Address
from driftline.net.listening import PER_TURN_TLS, Listening, bound
from driftline.net.tls import Tls
from tests.net.here import eventually
from tests.net.secured import Authority

HERE = Address("127.0.0.1", 0)
HALF_OF_TLS = bytes.fromhex("16030102000100") + bytes(100)


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60))


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("listening") / "keys")


@pytest.fixture(scope="module")
def tls(authority):
    said = authority.tls("b")
    return Tls(Path(said["certificate"]), Path(said["key"]))


class Echo(asyncio.Protocol):
    """Says what it is told."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)


class Door:
    """Somebody who listens, and all that was said of those who were not heard."""

    def __init__(self, tls: ssl.SSLContext | None, *, patience: float = 20.0, most: int = 8):
        self.said: list[tuple[str, str]] = []
        self.listening = Listening(
            bound(HERE),
            Echo,
            tls=tls,
            patience=patience,
            most=most,
            unheard=lambda peer, why: self.said.append((peer, why)),
        )

    def __enter__(self) -> Door:
        self.listening.begin()
        return self

    def __exit__(self, *exc: object) -> None:
        self.listening.close()

    async def knock(self, trust: ssl.SSLContext | None = None):
        """Somebody who connects, with TLS or without."""
        at = self.listening.address
        return await asyncio.open_connection(at.host, at.port, ssl=trust)

    async def echo(self, trust: ssl.SSLContext | None) -> bytes:
        """What somebody honest hears."""
        reader, writer = await self.knock(trust)
        writer.write(b"hello")
        heard = await asyncio.wait_for(reader.read(100), 20)
        writer.close()
        return heard


def test_what_is_said_with_the_end_of_the_handshake_is_heard(authority, tls):
    async def test():
        with Door(tls.server(), most=40) as door:
            assert await asyncio.gather(*(door.echo(authority.trust()) for _ in range(20))) == (
                [b"hello"] * 20
            )
            assert not door.said
            await eventually(lambda: not door.listening.entering)

    run(test)


def test_of_too_many_who_are_not_through_with_tls_the_oldest_ends(authority, tls):
    async def test():
        with Door(tls.server(), most=8) as door:
            lines = []
            for n in range(1, 21):
                line = await door.knock()
                line[1].write(HALF_OF_TLS)
                lines.append(line)
                await eventually(lambda n=n: door.listening.entering + len(door.said) == n)
            assert door.listening.entering == 8
            assert [why for _, why in door.said] == (
                ["there are too many who are not through with TLS"] * 12
            )
            for reader, _ in lines[:12]:
                with pytest.raises((ConnectionError, EOFError)):
                    await asyncio.wait_for(reader.readexactly(1), 20)
            # Honest people are let in all the same, and another silent one goes for each.
            assert await door.echo(authority.trust()) == b"hello"
            assert not lines[-1][0].at_eof()
            for _, writer in lines:
                writer.transport.abort()
            await eventually(lambda: not door.listening.entering)

    run(test)


def test_who_is_not_through_with_tls_in_time_is_turned_away(tls):
    async def test():
        with Door(tls.server(), patience=0.2) as door:
            reader, writer = await door.knock()
            with pytest.raises((ConnectionError, EOFError)):
                await asyncio.wait_for(reader.readexactly(1), 20)
            await eventually(lambda: not door.listening.entering)
            ((peer, why),) = door.said
            assert peer == "{}:{}".format(*writer.get_extra_info("sockname"))
            assert why.startswith("TLS: ")
            writer.close()

    run(test)


def test_it_is_said_of_who_leaves_before_the_end_of_tls_that_they_have_left(tls):
    async def test():
        with Door(tls.server()) as door:
            _, writer = await door.knock()
            writer.close()
            await eventually(lambda: door.said)
            ((_, why),) = door.said
            assert why == "TLS: the other end has closed it"

    run(test)


def test_nobody_else_takes_an_address_between_binding_it_and_letting_people_in():
    (one,) = bound(HERE)
    with pytest.raises(CannotListen, match="address already in use"):
        bound(Address("127.0.0.1", one.getsockname()[1]))
    one.close()


def test_a_few_are_let_in_for_each_turn_of_the_loop(tls):
    async def test():
        with Door(tls.server(), most=100) as door:
            at = door.listening.address
            # They wait where the system keeps them: all have connected before anybody is let in.
            knocked = subprocess.Popen([sys.executable, "-c", KNOCK, str(at.port), "40"])
            assert knocked.wait(20) == 0
            seen = [0]
            while len(door.said) + door.listening.entering < 40:
                seen.append(max(seen[-1], len(door.said) + door.listening.entering))
                await asyncio.sleep(0)
            steps = [b - a for a, b in pairwise(seen)]
            assert max(steps) <= PER_TURN_TLS

    run(test)


KNOCK = """
import socket, sys
some = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(int(sys.argv[2]))]
if len(sys.argv) > 3:
    print("there", flush=True)
    sys.stdin.read()
"""


@contextmanager
def few_files(more: int) -> Iterator[None]:
    """Only so many files more can be opened here."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_when_there_are_no_files_left_the_oldest_goes_and_others_come_in(tls):
    async def test():
        with Door(tls.server(), most=1000) as door:
            port = str(door.listening.address.port)
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                KNOCK,
                port,
                "60",
                "held",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            assert process.stdout is not None
            assert process.stdin is not None
            with few_files(10):
                await eventually(lambda: any("no room" in why for _, why in door.said))
                assert await process.stdout.readline() == b"there\n"
                # Others have their turn, as those before them go.
                await eventually(lambda: sum("is no room" in why for _, why in door.said) >= 5)
            process.stdin.close()
            assert await process.wait() == 0
            await eventually(lambda: not door.listening.entering)

    run(test)


def test_who_closes_the_door_takes_in_nobody_and_ends_those_who_are_entering(tls):
    async def test():
        with Door(tls.server()) as door:
            reader, writer = await door.knock()
            await eventually(lambda: door.listening.entering == 1)
            at = door.listening.address
        with pytest.raises((ConnectionError, EOFError)):
            await asyncio.wait_for(reader.readexactly(1), 20)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(at.host, at.port)
        assert not door.listening.entering
        writer.close()

    run(test)


def test_without_tls_nobody_waits():
    async def test():
        with Door(None) as door:
            assert await door.echo(None) == b"hello"

    run(test)


def test_an_address_that_is_taken_is_said_to_be():
    (one,) = bound(HERE)
    one.listen()
    taken = Address("127.0.0.1", one.getsockname()[1])
    with pytest.raises(CannotListen, match="address already in use"):
        bound(taken)
    one.close()
    with pytest.raises(CannotListen):
        bound(Address("no.such.host.invalid", 1))
    # A name may have several addresses.
    for one in bound(Address("localhost", 0)):
        one.close()
