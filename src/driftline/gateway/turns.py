"""How long does one request work before others have their turn?

All requests share one loop. Who has much to be read is read in slices, and of the requests of one
identity, or of one address without any, one at a time: however many they are, others wait for one
slice of each. A long text cannot be cut: it is read aside, one at a time, while the loop goes on,
and what is asked meanwhile by whoever wrote it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")

SECONDS = 0.002
"""Of one slice."""


class Turn:
    """That of one request: it may work until its slice is over."""

    def __init__(self, row: asyncio.Lock) -> None:
        self._row = row
        self._is_ours = False
        self._until = 0.0

    async def begin(self) -> None:
        """Wait until no other of the same ones works."""
        await self._row.acquire()
        self._is_ours = True
        self._until = time.perf_counter() + SECONDS

    def end(self) -> None:
        """Let the next one work. It may have been given up while it was not its turn."""
        if self._is_ours:
            self._is_ours = False
            self._row.release()

    async def rest(self) -> None:
        """Let all others have their turns, if the slice is over."""
        if time.perf_counter() >= self._until:
            self.end()
            await asyncio.sleep(0)
            await self.begin()


class Turns:
    """Whose turn it is, among the requests of one identity or address."""

    def __init__(self, aside: asyncio.Lock, reader: Executor | None = None) -> None:
        self._row = asyncio.Lock()
        self._long = asyncio.Lock()
        """That of its long texts: nothing but another of them waits for one."""
        self._aside = aside
        """That of all identities together, and what does it."""
        self._reader = reader

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Turn]:
        """Work, and `rest` again and again."""
        one = Turn(self._row)
        await one.begin()
        try:
            yield one
        finally:
            one.end()

    async def aside(self, what: Callable[[], T]) -> T:
        """Do what takes long and cannot be cut in a thread, when it is its turn."""
        async with self._long, self._aside:
            return await asyncio.get_running_loop().run_in_executor(self._reader, what)
