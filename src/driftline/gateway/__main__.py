"""What runs in the process that answers HTTP for a broker? See `door`, which begins it."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import sys

from driftline.gateway.gateway import Gateway
from driftline.gateway.line import FOR_THE_BROKER
from driftline.net import logs
from driftline.net.config import Config
from driftline.net.sweeping import Sweeping

_SWITCH = 0.0001
"""Seconds that the loop waits for the interpreter while a long text is read aside."""
_WITH_PARENT = 1
"""What Linux is told so that we are killed when our parent ends (prctl, PR_SET_PDEATHSIG)."""


async def _answer(line: socket.socket, sockets: list[socket.socket]) -> None:
    sweeping = Sweeping(asyncio.get_running_loop())

    def begins(config: Config) -> None:
        logs.begin(config.logs)
        sweeping.begin()

    await Gateway(line, sockets, begins, lost=lambda: os._exit(0)).run()
    sweeping.end()


def main() -> None:
    """Answer, by the sockets of these numbers."""
    # Until here they were held back, by whoever began this.
    for one in FOR_THE_BROKER:
        signal.signal(one, signal.SIG_IGN)
    if sys.platform == "linux":
        # The line says it too; but who stands still hears nothing, and would keep the address from
        # the next broker.
        ctypes.CDLL(None).prctl(_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    sys.setswitchinterval(_SWITCH)
    line, *sockets = (socket.socket(fileno=int(one)) for one in sys.argv[1:])
    asyncio.run(_answer(line, sockets))


if __name__ == "__main__":
    main()
