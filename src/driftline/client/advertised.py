"""Does anybody want what this program publishes?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType


class Advertised:
    """An advertisement: `interested` is what is known now, and iterating tells when it changes."""

    def __init__(
        self, withdraw: Callable[[Advertised], Awaitable[None]], id: str, text: str
    ) -> None:
        self._withdraw = withdraw
        self.id = id
        self.text = text
        self.interested = False
        self._changed = asyncio.Event()
        self._over = False

    def _put(self, interested: bool) -> None:
        self.interested = interested
        self._changed.set()

    def _end(self) -> None:
        self._over = True
        self._changed.set()

    def __aiter__(self) -> AsyncIterator[bool]:
        return self

    async def __anext__(self) -> bool:
        """Whether anybody is interested, whenever that has changed."""
        await self._changed.wait()
        if self._over:
            raise StopAsyncIteration
        self._changed.clear()
        return self.interested

    async def withdraw(self) -> None:
        """Say it no longer."""
        if not self._over:
            self._end()
            await self._withdraw(self)

    async def __aenter__(self) -> Advertised:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.withdraw()
