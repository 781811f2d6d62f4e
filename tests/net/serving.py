"""A broker in this process, for tests of what a client sees."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from driftline.client.address import BrokerAddress
from driftline.client.client import Client
from driftline.net.address import Address
from driftline.net.config import Config, Peer
from driftline.net.limits import Limits
from driftline.net.server import Server

WITHIN = 30.0


def run(main: Callable[[], Awaitable[None]]) -> None:
    """Run a test that is awaited; it fails if anything went wrong unseen, or takes too long."""
    problems: list[dict[str, object]] = []

    async def watched() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: problems.append(context))
        await asyncio.wait_for(main(), WITHIN)

    asyncio.run(watched())
    assert not problems, problems


@asynccontextmanager
async def broker(
    name: str = "b",
    *,
    journal: str = "memory:",
    limits: Limits | None = None,
    peers: tuple[Peer, ...] = (),
    port: int = 0,
    advertised: bool = False,
) -> AsyncIterator[Server]:
    """A broker that listens; it is drained in the end."""
    listen = Address("127.0.0.1", port)
    config = Config(
        name,
        listen,
        journal,
        peers=peers,
        limits=limits or Limits(),
        advertised=advertised,
    )
    server = Server(config)
    await server.start()
    try:
        yield server
    finally:
        await server.drain(2.0)


def client(server: Server, **options: object) -> Client:
    """A client of it, to be entered."""
    address = BrokerAddress(server.address.host, server.address.port)
    return Client(address, **options)  # type: ignore[arg-type]


async def until(what: Callable[[], bool], within: float = 10.0) -> None:
    """Wait until something is so."""
    deadline = asyncio.get_running_loop().time() + within
    while not what():
        assert asyncio.get_running_loop().time() < deadline, "it does not come about"
        await asyncio.sleep(0.005)
