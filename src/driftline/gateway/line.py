"""What do a broker and the process that answers HTTP for it say to one another, and how?

Over a pair of sockets, JSON objects on lines. Whoever comes to the broker from there comes by a
socket of their own, which is handed over beside the lines: whose it is stands in the greeting on
it, so that it cannot be taken for another's, whatever is lost.
"""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import socket
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from driftline.net.config import Config

_READ = 1 << 16
_SOCKETS = 64
FOR_THE_BROKER = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Whoever signals all processes of a terminal or of a service by these means the broker, which says
by the line what is to be done."""
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_HANDED = b"\n"
"""What a socket goes with: a line that says nothing."""


class Begin(Struct, tag="begin", frozen=True):
    """Answer HTTP, as this says, with what is in its files (`contents`)."""

    config: Config
    contents: list[bytes | None]
    trouble: str


class Trouble(Struct, tag="trouble", frozen=True):
    """Why the broker can store nothing now; empty: it can."""

    why: str


class Leave(Struct, tag="leave", frozen=True):
    """Let nobody in any more, and end when all that was asked is answered.

    Not at once: whoever is told something hears from the broker why it ends.
    """

    at_once: bool


class Ready(Struct, tag="ready", frozen=True):
    """People are let in."""


class Failed(Struct, tag="failed", frozen=True):
    """It cannot begin."""

    why: str


class Unproven(Struct, tag="unproven", frozen=True):
    """Somebody did not prove who they are."""

    peer: str
    why: str


class Busy(Struct, tag="busy", frozen=True):
    """How busy it is: what there is now, and what was counted since it began."""

    connections: int = 0
    streams: int = 0
    tasks: int = 0
    requests: int = 0
    turned_away: int = 0


Said: TypeAlias = Begin | Trouble | Leave | Ready | Failed | Unproven | Busy


class Line:
    """One end. `heard` is called with what the other says, `handed` with a socket that it hands
    over, `lost` when it is no more.
    """

    def __init__(
        self,
        end: socket.socket,
        *,
        heard: Callable[[Said], None],
        lost: Callable[[], object],
        handed: Callable[[socket.socket], None] | None = None,
    ) -> None:
        end.setblocking(False)
        self._end = end
        self._heard = heard
        self._handed = handed
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._rest = b""
        self._out: deque[tuple[bytes, socket.socket | None]] = deque()
        self._is_open = True
        self._loop.add_reader(end, self._read)

    @property
    def waiting(self) -> int:
        """How much was said and is not on its way yet."""
        return len(self._out)

    def say(self, what: Said) -> None:
        """Say this; nothing, if the other is no more."""
        self._put(msgspec.json.encode(what, enc_hook=_plain) + b"\n", None)

    def hand(self, one: socket.socket) -> None:
        """Hand over a socket, which is not ours any more."""
        self._put(_HANDED, one)

    def close(self) -> None:
        """Say and hear nothing any more."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._end)
            self._loop.remove_writer(self._end)
            self._end.close()
            for _, one in self._out:
                if one is not None:
                    one.close()
            self._out.clear()

    # What goes

    def _put(self, data: bytes, one: socket.socket | None) -> None:
        if not self._is_open:
            if one is not None:
                one.close()
            return
        self._out.append((data, one))
        if len(self._out) == 1:
            self._write()

    def _write(self) -> None:
        try:
            while self._out:
                data, one = self._out[0]
                if one is None:
                    sent = self._end.send(data)
                else:
                    sent = socket.send_fds(self._end, [data], [one.fileno()])
                    one.close()
                if sent < len(data):
                    self._out[0] = data[sent:], None
                else:
                    self._out.popleft()
        except BlockingIOError:
            self._loop.add_writer(self._end, self._write)
            return
        except OSError:
            self._end_it()
            return
        self._loop.remove_writer(self._end)

    # What comes

    def _read(self) -> None:
        try:
            data, handed, _, _ = socket.recv_fds(self._end, _READ, _SOCKETS, _CLOSE_ON_EXEC)
        except BlockingIOError:
            return
        except OSError:
            self._end_it()
            return
        for number in handed:
            os.set_inheritable(number, False)
            one = socket.socket(fileno=number)
            if self._handed is None:
                one.close()
            else:
                self._handed(one)
        if not data:
            self._end_it()
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line and self._is_open:
                self._heard(_DECODER.decode(line))

    def _end_it(self) -> None:
        if self._is_open:
            self.close()
            self._lost()


def _plain(what: Any) -> Any:
    if isinstance(what, Path):
        # The names of files are bytes, and need be no text.
        return os.fsencode(what)
    raise NotImplementedError(type(what))


def _known(kind: type, said: Any) -> Any:
    if issubclass(kind, Path):
        return Path(os.fsdecode(base64.b64decode(said)))
    raise NotImplementedError(kind)


_DECODER = msgspec.json.Decoder(Said, dec_hook=_known)
