"""What runs in the process that answers HTTP for a broker? See `door`, which begins it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys

from driftline.gateway.gateway import Gateway
from driftline.net import logs
from driftline.net.config import Config
from driftline.net.sweeping import Sweeping

_SWITCH = 0.0001
"""Seconds that the loop waits for the interpreter while a long text is read aside."""


async def _answer(line: socket.socket, sockets: list[socket.socket]) -> None:
    sweeping = Sweeping(asyncio.get_running_loop())

    def begins(config: Config) -> None:
        logs.begin(config.logs)
        sweeping.begin()

    await Gateway(line, sockets, begins, lost=lambda: os._exit(0)).run()
    sweeping.end()


def main() -> None:
    """Answer, by the sockets of these numbers."""
    # Whoever signals all processes of a terminal or of a service means the broker, which says here
    # what is to be done.
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    sys.setswitchinterval(_SWITCH)
    line, *sockets = (socket.socket(fileno=int(one)) for one in sys.argv[1:])
    asyncio.run(_answer(line, sockets))


if __name__ == "__main__":
    main()
