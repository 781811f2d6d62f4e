"""What does a broker have to do with one process that answers HTTP for it?

It begins it, hears from it, and takes in who comes from there, as whom that process has found out
them to be: it is a part of the broker, started by it and by nobody else.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from driftline.errors import CannotListen
from driftline.gateway.line import FOR_THE_BROKER, Begin, Busy, Failed, Line, Ready, Said, Unproven
from driftline.net.another import command_of, environment
from driftline.net.config import VARIABLES, Config
from driftline.net.connection import Connection, Inside
from driftline.net.listening import address_of
from driftline.net.server import Server

_SECRET = (VARIABLES["journal"][0], "PGPASSWORD")
"""Variables by which a password may be said that only the broker has need of."""
_BEGINNING = 60.0
"""Seconds to begin."""
SILENCE = 60.0
"""Who says nothing for so many seconds stands still, and is ended."""
_MORE = 10.0
"""Seconds more for who has said nothing: longer than anybody takes to say something."""
_PARTING = 1.0
"""Seconds for who has hung up to end by itself."""


class Front:
    """One process that answers HTTP."""

    def __init__(self, server: Server, unproven: Callable[[str, str], None]) -> None:
        self._server = server
        self._believed = server.identities
        """Who has said to it who is who: when others say so, nobody is let in from there."""
        self._unproven = unproven
        self._line: Line | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._ready: asyncio.Future[str] = server.loop.create_future()
        self.ended: asyncio.Future[None] = server.loop.create_future()
        """Done when it answers no more."""
        self._entering: set[asyncio.Task[None]] = set()
        self.busy = Busy()
        self._has_hung_up = False
        self._has_said = False
        """Has anything been heard since it was looked for last?"""
        self._looking: asyncio.TimerHandle | None = None

    async def begin(
        self, config: Config, contents: list[bytes | None], sockets: Sequence[socket.socket]
    ) -> None:
        """Let people in; `CannotListen` says why not."""
        at = str(address_of(sockets[0]))
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                self._line = Line(ours, heard=self._heard, handed=self._handed, lost=self._hung_up)
                await self._start(theirs, sockets)
        except OSError as problem:
            # Out of files, of memory, or of processes.
            raise CannotListen(at, f"no process: {problem.strerror}") from None
        except RuntimeError as problem:
            # Out of threads: one waits for the process to end.
            raise CannotListen(at, f"no process: {problem}") from None
        # What it has no need of may be secret.
        self.say(Begin(replace(config, journal="memory:"), contents, self._server.trouble))
        done, _ = await asyncio.wait(
            (self._ready, self.ended), timeout=_BEGINNING, return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            raise CannotListen(at, f"what answers HTTP has not begun in {_BEGINNING:g} s")
        if not self._ready.done():
            raise CannotListen(at, "what answers HTTP has ended without a word")
        if why := self._ready.result():
            raise CannotListen(at, why)
        self._look()

    def _look(self, *, is_late: bool = False) -> None:
        """Look whether it still says something."""
        if is_late and not self._has_said:
            self._lost()
            return
        # Perhaps we have stood still ourselves, and it with us: it has a little time more.
        look = partial(self._look, is_late=not self._has_said)
        wait = SILENCE if self._has_said else _MORE
        self._has_said = False
        self._looking = self._server.loop.call_later(wait, look)

    async def _start(self, line: socket.socket, sockets: Sequence[socket.socket]) -> None:
        numbers = [one.fileno() for one in (line, *sockets)]
        # It has ours, so nothing interrupts it before it can say that it does not want to be.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, FOR_THE_BROKER)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *command_of("driftline.gateway", *map(str, numbers)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                pass_fds=numbers,
                env=_environment(),
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    @property
    def process(self) -> int | None:
        """Its number."""
        return None if self._process is None else self._process.pid

    def say(self, what: Said) -> None:
        """Say something to it."""
        if self._line is not None:
            self._line.say(what)

    async def end(self) -> None:
        """End it, whatever it does."""
        if self._looking is not None:
            self._looking.cancel()
        if self._line is not None:
            self._line.close()
        # Whoever waits for it to begin waits for nothing.
        self._lost()
        if self._process is not None:
            if self._has_hung_up:
                # It has ended, or is about to. To signal it now would be to take its end from
                # whoever waits for that, who would complain.
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._process.wait(), _PARTING)
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    def _hung_up(self) -> None:
        self._has_hung_up = True
        self._lost()

    def _lost(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def _heard(self, said: Said) -> None:
        self._has_said = True
        if isinstance(said, Busy):
            self.busy = said
        elif isinstance(said, Unproven):
            self._unproven(said.peer, said.why)
        elif isinstance(said, Ready | Failed) and not self._ready.done():
            self._ready.set_result(said.why if isinstance(said, Failed) else "")
            # These are the last words of who cannot begin.
            self._has_hung_up = isinstance(said, Failed)

    def _handed(self, line: socket.socket) -> None:
        """Somebody comes to the broker."""
        if self._server.draining:
            line.close()
            return
        task = self._server.loop.create_task(self._enter(line))
        self._entering.add(task)
        task.add_done_callback(self._entering.discard)

    async def _enter(self, line: socket.socket) -> None:
        known = Inside(None, self._believed)
        try:
            await self._server.loop.connect_accepted_socket(
                lambda: Connection(self._server, known), line
            )
        except OSError:
            line.close()


def _environment() -> dict[str, str]:
    """What it is begun in. It reads what strangers say: what it has no need of it does not know."""
    return {name: word for name, word in environment().items() if name not in _SECRET}
