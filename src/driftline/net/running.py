"""How does a broker run as a process: begin, be asked to end, and end so that nothing is lost?

SIGTERM and SIGINT ask it to end: nobody is taken in any more, everything that was acknowledged is
stored, everybody is told goodbye. A second one ends it at once, which loses nothing that was
acknowledged either: that is what the journal is for. A broker whose journal is broken for good ends
by itself.

`with_parent`: it also ends when its standard input does, which is how one that another process has
started notices that this one has gone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import sys
from collections.abc import Callable
from urllib.parse import urlsplit

from driftline.net.config import Config
from driftline.net.server import Server

log = logging.getLogger("driftline.broker")

AT_ONCE = 1
"""The exit code of a broker that was asked twice."""
_SLOW = 1.0
_LOOK = 0.5
_SAME = 0.5
"""Who signals a process and its group signals it twice, and means it once."""


async def run(
    config: Config,
    ready: Callable[[Server], None],
    *,
    with_parent: bool = False,
    drain: float = 10.0,
) -> None:
    """Serve until asked to end; `ready` is called when clients can connect.

    Raises what keeps it from beginning, or what its journal failed of.
    """
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    first = 0.0

    def ask(why: str) -> None:
        nonlocal first
        if asked.is_set():
            if loop.time() - first < _SAME:
                return
            log.warning("%s ends at once: %s", config.name, why)
            sys.stderr.flush()
            os._exit(AT_ONCE)
        log.info("%s ends: %s", config.name, why)
        first = loop.time()
        asked.set()

    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, ask, signal.Signals(one).name)
    if with_parent:
        loop.add_reader(sys.stdin, _read_or_end, loop, ask)
    server = Server(config)
    slow = loop.call_later(_SLOW, _say_slow, _is_first())
    beginning = loop.create_task(server.start())
    ending = loop.create_task(asked.wait())
    await asyncio.wait((beginning, ending), return_when=asyncio.FIRST_COMPLETED)
    slow.cancel()
    if not beginning.done():
        # Compiling cannot be interrupted, and nobody was promised anything.
        os._exit(0)
    beginning.result()
    ready(server)
    while not asked.is_set() and server.failure is None:
        await asyncio.wait((ending,), timeout=_LOOK)
    ending.cancel()
    failure = server.failure
    await server.drain(drain)
    if failure is not None:
        raise failure


def _read_or_end(loop: asyncio.AbstractEventLoop, ask: Callable[[str], None]) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        loop.remove_reader(sys.stdin)
        ask("who started it has gone")


def _is_first() -> bool:
    """Has nothing been compiled on this machine yet?"""
    from driftline.kernels.cache import directory

    return not any(directory().glob("*.nbc"))


def _say_slow(first: bool) -> None:
    if first:
        log.info("compiling, once on this machine: about a minute")
    else:
        log.info("loading compiled code")


def shown(journal: str) -> str:
    """A journal's address as it may be shown: without a password."""
    if "://" not in journal:
        return journal
    try:
        parts = urlsplit(re.sub(r"(?i)(password=)[^&]*", r"\1***", journal))
        if parts.password is None:
            return parts.geturl()
        host = parts.netloc.rpartition("@")[2]
        return parts._replace(netloc=f"{parts.username}:***@{host}").geturl()
    except ValueError:
        return journal.partition("://")[0] + "://…"


def facts_of(server: Server) -> dict[str, object]:
    """What a broker is when it is ready, for people and for programs."""
    health = server.health_address
    return {
        "broker": server.config.name,
        "address": f"driftline{'s' if server.config.tls else ''}://{server.address}",
        "port": server.address.port,
        "process": os.getpid(),
        "journal": shown(server.config.journal),
        "health": None if health is None else f"http://{health}/health",
        "peers": [
            {
                "broker": peer.name,
                "role": str(peer.role),
                "address": None if peer.address is None else str(peer.address),
            }
            for peer in server.config.peers
        ],
    }
