"""What is at hand of what a durable subscription is told?

As much as a client holds back for it, and never more: the rest stays in the broker. What is taken
out of here is told again after the connection ends, unless the broker is told that it was had.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from itertools import islice

from driftline.client.subscription import Subscription
from driftline.handlers.outgoing import Incoming, Outgoing
from driftline.model.notification import Notification

PENDING_MOST = 256
"""So many notifications are at hand; the rest stays in the broker."""
_TOGETHER = 5.0
"""Seconds in which that must have come once more which is to be handed over together again."""


class Coming:
    """What comes, in order, while a client is attached."""

    def __init__(self, subscription: Subscription, incoming: Incoming) -> None:
        self._subscription = subscription
        self._incoming = incoming
        self._waiting: deque[Outgoing] = deque()
        self._more: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    async def is_there(self, asked: asyncio.Event, within: float | None) -> bool:
        """Wait until there is something, or until there may be something else to do."""
        if self._more is None and self._waiting:
            return True
        # It may have come while nobody waited for it: then it is done, and counts for this once.
        more = self._more = self._more or asyncio.ensure_future(self._come(1))
        other = asyncio.ensure_future(asked.wait())
        try:
            await asyncio.wait((more, other), timeout=within, return_when=asyncio.FIRST_COMPLETED)
        finally:
            other.cancel()
        if not more.done():
            return False
        self._more = None
        more.result()
        return True

    async def _come(self, count: int) -> None:
        while len(self._waiting) < count:
            self._feed(await self._subscription.next())

    def _feed(self, *some: Notification) -> None:
        for told in some:
            self._waiting.extend(self._incoming.feed(told))

    def fetch(self) -> None:
        """Let all be at hand that has come."""
        if len(self._waiting) < PENDING_MOST:
            self._feed(*self._subscription.pending())

    async def fetch_again(self, ids: tuple[str, ...]) -> None:
        """If these begin it, let all of them be at hand.

        They come again one by one; some may not be seen any more, and never come.
        """
        if self._waiting[0].id == ids[0]:
            with suppress(TimeoutError):
                async with asyncio.timeout(_TOGETHER):
                    await self._come(len(ids))

    def ids(self, most: int) -> tuple[str, ...]:
        """By what the first ones are known."""
        return tuple(one.id for one in islice(self._waiting, most))

    def take(self, count: int) -> list[Outgoing]:
        """The first ones, which are not at hand any more."""
        return [self._waiting.popleft() for _ in range(count)]

    async def close(self) -> None:
        """Wait for nothing more."""
        if self._more is not None:
            self._more.cancel()
            await asyncio.gather(self._more, return_exceptions=True)
