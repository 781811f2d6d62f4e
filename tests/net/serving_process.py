"""What runs in the process of a broker that is tested?

A server of a configuration given as JSON. Its port is said on standard output, and it ends in peace
on SIGTERM; on SIGHUP it reads anew who may do what. An exception that nobody caught ends it
at once, with a code of its own: a broker must never go on as if nothing had been. Each line on
standard input is a question or an order, as JSON, and is answered with a line.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import sys
import threading
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from driftline.errors import DriftlineError
from driftline.gateway.door import HttpDoor
from driftline.gateway.doors import doors_of
from driftline.net.clock import BrokerClock
from driftline.net.config import config_of
from driftline.net.server import Server
from driftline.net.sweeping import Sweeping

REFUSED = 65
"""It could not begin, and has said why."""
UNCAUGHT = 70


def _fail(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    print("UNCAUGHT", context.get("message"), file=sys.stderr)
    problem = context.get("exception")
    if problem is not None:
        traceback.print_exception(problem)
    sys.stderr.flush()
    os._exit(UNCAUGHT)


def _rss(process: object) -> int:
    """All bytes of memory that a process has; of none, none."""
    if process is None:
        return 0
    pages = Path(f"/proc/{process}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _http(server: Server) -> list[HttpDoor]:
    return [door for door in server.doors if isinstance(door, HttpDoor)]


def _answer(server: Server, asked: dict[str, Any]) -> object:
    if asked["do"] == "count":
        gc.collect()
        return {
            "tasks": len(asyncio.all_tasks(server.loop)),
            "connections": len(server.connections),
            "guests": len(server.guests),
            "parties": len(server.edge.parties),
            "subscriptions": sum(1 for _ in server.edge),
            "awaited": len(server._awaited),
            "awaiting": Counter(one.__qualname__ for one in server._awaited.values()),
            "attached": server.durables.attached,
            "watched": len(server.watching),
            "policies": sum(one.behind.policies for one in server.guests.values()),
            "behind": server.driver.waiting,
            "forms": len(server.forms),
            "links": len(server.links),
            "http": sum(
                door.busy.connections + door.busy.tasks + door.busy.streams
                for door in _http(server)
            ),
            "rss": _rss("self") + sum(_rss(door.process) for door in _http(server)),
        }
    if asked["do"] == "http":
        return [door.process for door in _http(server)]
    if asked["do"] == "joining":
        return sum(bool(one.asked) for one in server.edge.views._views.values())
    if asked["do"] == "stacks":
        tasks = asyncio.all_tasks(server.loop)
        return [" > ".join(_awaited(task.get_coro())) for task in tasks]
    if asked["do"] == "check":
        server.broker._check()
        return "sound"
    raise AssertionError(asked)


def _awaited(what: Any) -> list[str]:
    """Where a coroutine waits, and what it waits for."""
    found = []
    while what is not None:
        frame = getattr(what, "cr_frame", None) or getattr(what, "ag_frame", None)
        name = getattr(what, "__qualname__", type(what).__name__)
        found.append(f"{name}:{frame.f_lineno}" if frame is not None else f"{what!r}"[:200])
        what = getattr(what, "cr_await", None) or getattr(what, "ag_await", None)
    return found


def _listen(server: Server) -> None:
    """Answer what comes on standard input, on the loop's thread."""

    def one(line: str) -> None:
        print(json.dumps(_answer(server, json.loads(line))), flush=True)

    for line in sys.stdin:
        server.loop.call_soon_threadsafe(one, line)


async def _serve(said: dict[str, Any]) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_fail)
    skew = said.pop("skew", 0)
    config = config_of(said)
    server = Server(config, doors_of(config))
    if skew:
        import time

        server.clock = BrokerClock(lambda: time.time_ns() // 1000 + skew)
    await server.start()
    over = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, over.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: server.reload(config_of({**said})))
    threading.Thread(target=_listen, args=(server,), daemon=True).start()
    ready = {"port": server.address.port}
    for door in _http(server):
        ready["http"] = door.address.port
    sweeping = Sweeping(loop)
    sweeping.begin()
    print(json.dumps(ready), flush=True)
    await over.wait()
    await server.drain()
    sweeping.end()


def main() -> None:
    """Run a broker."""
    logging.basicConfig(level=logging.WARNING, format="%(name)s %(levelname)s %(message)s")
    threading.excepthook = lambda args: os._exit(UNCAUGHT)
    try:
        asyncio.run(_serve(json.loads(sys.argv[1])))
    except DriftlineError as problem:
        print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
        sys.exit(REFUSED)


if __name__ == "__main__":
    main()
