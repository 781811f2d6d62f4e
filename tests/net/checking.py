"""What was acknowledged, was it told, and was anything told that should not be?

Publishers number their events. Whoever reads checks each thing it is told when it comes:

    durable   every acknowledged event, at least once, each publisher's in order
    plain     the same, except where it is told of a gap
    moving    only what satisfies the parameters of the epoch that it names
    rows      changes that fit what was known; in the end what the table holds

What was published when its broker died may have been taken and not acknowledged: it is published
again, and may be told twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass, field
from typing import Any

import driftline as dl
from driftline.client.client import Client
from driftline.client.subscription import Subscription
from driftline.errors import NotEffective
from driftline.model.notification import Notification, NotificationKind

GAP = NotificationKind.GAP


@dataclass(slots=True)
class Published:
    """What one publisher has said, and how much of it was acknowledged: all up to `acked`."""

    name: str
    sent: int = 0
    acked: int = 0


@dataclass(slots=True)
class Wrong:
    """What should not have been; the first few are enough."""

    found: list[str] = field(default_factory=list)

    def note(self, what: str) -> None:
        """Something is wrong."""
        if len(self.found) < 20:
            self.found.append(what)


class Publisher:
    """Publishes numbered events, and counts those that are acknowledged."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.done = Published(name)

    async def run(self, rate: float, over: asyncio.Event) -> None:
        """Publish about so many a second, several at a time."""
        many = max(1, round(rate / 50))
        while not over.is_set():
            await self.some(many)
            await asyncio.sleep(many / rate)

    async def some(self, many: int) -> None:
        """Publish so many at once."""
        done = self.done
        first = done.sent + 1
        done.sent += many
        events = [
            dl.Event("q", {"p": done.name, "n": n, "x": n % 10}) for n in range(first, first + many)
        ]
        await self.client.publish_many(events)
        done.acked = first + many - 1


class Reader:
    """Somebody who is told of numbered events."""

    def __init__(
        self, name: str, subscription: Subscription, wrong: Wrong, wanted: range, *, durable: bool
    ) -> None:
        self.name = name
        self.subscription = subscription
        self.wanted = wanted
        self.durable = durable
        self.told: dict[str, int] = {}
        """The last of each publisher."""
        self.gaps = 0
        self.count = 0
        self.twice = 0
        self._wrong = wrong
        self._behind_gap: set[str] = set()
        self._number = 0
        self._first: dict[str, int] = {}

    def begins(self, published: list[Published]) -> None:
        """From here on everything that is published must come."""
        for one in published:
            self._first[one.name] = one.sent
            self.told.setdefault(one.name, one.sent)

    async def run(self) -> None:
        """Read until it is cancelled."""
        async for told in self.subscription:
            self.take(told)

    def take(self, told: Notification) -> None:
        """Check what comes."""
        if told.kind is GAP:
            self.gaps += 1
            if self.durable:
                self._wrong.note(f"{self.name}: a gap in what is durable")
            self._behind_gap = set(self.told)
            return
        self.count += 1
        values = told.values
        who, n = str(values["p"]), values["n"]
        assert isinstance(n, int)
        if n % 10 not in self.wanted or values["x"] != n % 10:
            self._wrong.note(f"{self.name}: told of {values}, which it did not ask for")
        if self.durable:
            if told.number <= self._number:
                self._wrong.note(f"{self.name}: number {told.number} behind {self._number}")
            self._number = told.number
        last = self.told.get(who, 0)
        if n <= last:
            self.twice += 1
            return
        if who not in self._behind_gap and self._between(last, n):
            self._wrong.note(f"{self.name}: {who} {n} behind {last}, and none between")
        self._behind_gap.discard(who)
        self.told[who] = n

    def _between(self, last: int, n: int) -> bool:
        return any(one % 10 in self.wanted for one in range(last + 1, min(n, last + 11)))

    def missing(self, published: list[Published]) -> str:
        """What was acknowledged in the end and did not come, or nothing."""
        for one in published:
            last = self.told.get(one.name, 0)
            wanted = [n for n in range(last + 1, one.acked + 1) if n % 10 in self.wanted]
            if wanted:
                return f"{self.name}: of {one.name} {len(wanted)} are missing from {wanted[0]} on"
        return ""


class Mover:
    """Somebody whose parameter moves all the time; what it is told must fit the epoch it names."""

    def __init__(self, name: str, subscription: Subscription, wrong: Wrong) -> None:
        self.name = name
        self.subscription = subscription
        self.lows = {subscription.epoch: int(str(subscription.params["low"]))}
        self.count = 0
        self.gaps = 0
        self.moves = 0
        self._wrong = wrong

    async def move(self, draw: random.Random, over: asyncio.Event) -> None:
        """Move it, again and again."""
        while not over.is_set():
            low = draw.randrange(10)
            self.lows[self.subscription.epoch + 1] = low
            # If a broker is down, it counts here all the same.
            with contextlib.suppress(NotEffective):
                await self.subscription.set(low=low)
            self.moves += 1
            await asyncio.sleep(0.2)

    async def run(self) -> None:
        """Read until it is cancelled."""
        async for told in self.subscription:
            if told.kind is GAP:
                self.gaps += 1
                continue
            self.count += 1
            low, x = self.lows.get(told.epoch), told.values["x"]
            if low is None or not isinstance(x, int) or x < low:
                self._wrong.note(f"{self.name}: x = {x} in epoch {told.epoch}, where low is {low}")


class Rows:
    """Somebody who follows a set of rows, or one value of it."""

    def __init__(self, name: str, subscription: Subscription, wrong: Wrong) -> None:
        self.name = name
        self.subscription = subscription
        self.known: dict[Any, dict[str, Any]] = {}
        self.gaps = 0
        self.count = 0
        self._wrong = wrong
        self._sure = False
        self._snapshot = False

    async def run(self) -> None:
        """Read until it is cancelled."""
        async for told in self.subscription:
            self.take(told)

    def take(self, told: Notification) -> None:
        """Apply what comes to what was known."""
        self.count += 1
        kind, key = told.kind, told.key
        if kind is GAP:
            self.gaps += 1
            self._sure = self._snapshot = False
        elif kind is NotificationKind.SNAPSHOT:
            if not self._snapshot:
                self.known.clear()
            self._snapshot = not told.last
            self._sure = told.last
            self.known[key] = told.values
        elif kind is NotificationKind.ENTER:
            if self._sure and key in self.known:
                self._wrong.note(f"{self.name}: {key} enters and was there")
            self.known[key] = told.values
        elif kind is NotificationKind.CHANGE:
            if self._sure and self.known.get(key) != told.old:
                self._wrong.note(f"{self.name}: {key} was {self.known.get(key)}, not {told.old}")
            self.known[key] = told.values
        elif kind is NotificationKind.LEAVE:
            if self._sure and key not in self.known:
                self._wrong.note(f"{self.name}: {key} leaves and was not there")
            self.known.pop(key, None)


class RowPublisher:
    """Puts rows into a table, and knows what is in it."""

    def __init__(self, client: Client, keys: int) -> None:
        self.client = client
        self.rows: dict[int, dict[str, Any]] = {}
        self._keys = keys
        self._count = 0

    async def run(self, over: asyncio.Event) -> None:
        """Put a row, again and again."""
        while not over.is_set():
            await self.one()
            await asyncio.sleep(0.05)

    async def one(self) -> None:
        """Put one row."""
        self._count += 1
        row = {"k": self._count % self._keys, "y": self._count}
        await self.client.publish(dl.Event("t", row))
        self.rows[row["k"]] = row
