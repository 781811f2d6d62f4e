"""How does a broker run as a process: begin, be asked to end, and end so that nothing is lost?

SIGTERM and SIGINT ask it to end: nobody is taken in any more, everything that was acknowledged is
stored, everybody is told goodbye. A second one ends it at once, which loses nothing that was
acknowledged either: that is what the journal is for. A broker whose journal is broken for good ends
by itself.

`with_parent`: it also ends when its standard input does, which is how one that another process has
started notices that this one has gone. Whatever comes there is answered on standard output with
which links are up, a JSON object on a line.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from driftline.errors import DriftlineError
from driftline.net.config import Config
from driftline.net.inside import Door
from driftline.net.logs import Log
from driftline.net.secrets import without_password
from driftline.net.server import Server
from driftline.net.sweeping import Sweeping

LOG = Log("driftline.broker")

AT_ONCE = 1
"""The exit code of a broker that was asked twice."""
_SLOW = 1.0
_LOOK = 0.5
_FILES = 1 << 16
"""So many files, connections among them, it has open at most, if the system lets it."""
_SAME = 0.5
"""Who signals a process and its group signals it twice, and means it once."""


async def run(
    config: Config,
    ready: Callable[[Server], None],
    *,
    doors: Sequence[Door] = (),
    again: Callable[[], Config] | None = None,
    with_parent: bool = False,
    drain: float = 10.0,
) -> None:
    """Serve until asked to end; `ready` is called when clients can connect.

    On SIGHUP what `again` gives counts from then on: certificates, keys of tokens, lists of access.

    Raises what keeps it from beginning, or what its journal failed of.
    """
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    first = 0.0
    log = LOG.bind(broker=config.name)

    def ask(why: str) -> None:
        nonlocal first
        if asked.is_set():
            if loop.time() - first < _SAME:
                return
            log.warning("ends at once", why=why)
            sys.stderr.flush()
            os._exit(AT_ONCE)
        log.info("ends", why=why)
        first = loop.time()
        asked.set()

    _allow_files()
    server = Server(config, doors)
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, ask, signal.Signals(one).name)
    if with_parent:
        loop.add_reader(sys.stdin, _answer_or_end, server, loop, ask)
    slow = loop.call_later(_SLOW, _say_slow, _is_first())
    beginning = loop.create_task(server.start())
    ending = loop.create_task(asked.wait())
    await asyncio.wait((beginning, ending), return_when=asyncio.FIRST_COMPLETED)
    slow.cancel()
    if not beginning.done():
        # Compiling cannot be interrupted, and nobody was promised anything.
        os._exit(0)
    beginning.result()
    if again is not None:
        loop.add_signal_handler(signal.SIGHUP, _reload, server, again)
    sweeping = Sweeping(loop)
    sweeping.begin()
    ready(server)
    while not asked.is_set() and server.failure is None:
        await asyncio.wait((ending,), timeout=_LOOK)
    ending.cancel()
    failure = server.failure
    await server.drain(drain)
    sweeping.end()
    if failure is not None:
        raise failure


def _allow_files() -> None:
    """Let it have as many files as it may: a shell gives it a thousand if nobody asks for more,
    which is less than there may be connections. Whatever it begins may have as many.
    """
    with suppress(ImportError, OSError, ValueError):
        import resource

        few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _FILES if most == resource.RLIM_INFINITY else min(most, _FILES)
        if few != resource.RLIM_INFINITY and few < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _reload(server: Server, again: Callable[[], Config]) -> None:
    """What cannot be read changes nothing."""
    try:
        server.reload(again())
    except DriftlineError as problem:
        server.log.error("goes on as before", problem=problem)


def _answer_or_end(
    server: Server, loop: asyncio.AbstractEventLoop, ask: Callable[[str], None]
) -> None:
    if os.read(sys.stdin.fileno(), 4096):
        up = {link.name: link.is_up for link in server.links.values()}
        with suppress(OSError):  # Who asked may have gone since: then nothing comes any more.
            os.write(sys.stdout.fileno(), json.dumps(up).encode() + b"\n")
    else:
        loop.remove_reader(sys.stdin)
        ask("who started it has gone")


def _is_first() -> bool:
    """Has nothing been compiled on this machine yet?"""
    from driftline.kernels.cache import directory

    return not any(directory().glob("*.nbc"))


def _say_slow(first: bool) -> None:
    if first:
        LOG.info("compiling, once on this machine: about a minute")
    else:
        LOG.info("loading compiled code")


def facts_of(server: Server) -> dict[str, object]:
    """What a broker is when it is ready, for people and for programs."""
    health = server.health_address
    facts: dict[str, object] = {
        "broker": server.config.name,
        "address": f"driftline{'s' if server.config.tls else ''}://{server.address}",
        "port": server.address.port,
        "process": os.getpid(),
        "journal": without_password(server.config.journal),
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
    for door in server.doors:
        facts |= door.facts()
    return facts
