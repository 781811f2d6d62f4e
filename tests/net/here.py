"""How do tests come by a broker in their own process, where its insides can be seen?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from driftline.gateway.gateway import Gateway
from driftline.handlers import doors_of
from driftline.net.config import Config, config_of
from driftline.net.server import Server
from tests.net.in_thread import ThreadDoor


@asynccontextmanager
async def served(**said: Any) -> AsyncIterator[Server]:
    """A broker on a free port. Whatever nobody caught fails the test when it is over."""
    uncaught: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: uncaught.append(context))
    config = configured(**said)
    doors = [*doors_of(config), *([] if config.http is None else [ThreadDoor(config)])]
    server = Server(config, doors)
    await server.start()
    try:
        yield server
    finally:
        await server.drain(5)
    assert not uncaught, uncaught


def configured(**said: Any) -> Config:
    """What a broker on a free port is told."""
    return config_of({"name": "b", "listen": "127.0.0.1:0", **said})


def address(server: Server) -> str:
    """Where clients find it."""
    return f"driftline://{server.address}"


def http(server: Server) -> str:
    """Where it is reached over HTTP."""
    (found,) = [door.facts()["http"] for door in server.doors if "http" in door.facts()]
    return str(found)


def gateway(server: Server) -> Gateway:
    """What answers HTTP for it, in a thread of this process."""
    (found,) = [door for door in server.doors if isinstance(door, ThreadDoor)]
    return found.inside.gateway


async def eventually(what: Callable[[], bool], within: float = 10.0) -> None:
    """Wait until something is so."""
    deadline = asyncio.get_running_loop().time() + within
    while not what():
        assert asyncio.get_running_loop().time() < deadline, f"not so within {within:g} s"
        await asyncio.sleep(0.01)
