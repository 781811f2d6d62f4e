"""The same client for a program without `async`: every call waits until it is done.

A loop runs in a thread of its own. What is awaited there is waited for here.

    with dl.connect("driftline://host:7400") as c:
        with c.subscribe("SELECT * FROM quote WHERE price < :limit", {"limit": 10}) as s:
            c.publish(dl.Event("quote", {"price": 9.5}))
            for n in s:
                s.set(limit=9)
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from threading import Thread
from types import TracebackType
from typing import Any, TypeVar

from driftline.client.advertised import Advertised
from driftline.client.client import Client
from driftline.client.subscription import Subscription
from driftline.client.waiting_durables import WaitingDurables
from driftline.errors import DriftlineError
from driftline.model.advertisement import Advertisement
from driftline.model.covering import Statement
from driftline.model.event import Event
from driftline.model.explanation import Explanation
from driftline.model.notification import Notification
from driftline.model.value import Value

T = TypeVar("T")


class WaitingClient:
    """A client whose calls wait."""

    def __init__(
        self,
        open: Callable[[], Coroutine[Any, Any, Client]],
        close: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._open = open
        self._close = close
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="driftline", daemon=True)
        self._client: Client | None = None

    def _wait(self, what: Awaitable[T], within: float | None = None) -> T:
        async def awaited() -> T:
            return await what

        done = asyncio.run_coroutine_threadsafe(awaited(), self._loop)
        try:
            return done.result(within)
        except concurrent.futures.TimeoutError:
            done.cancel()
            raise TimeoutError from None
        except BaseException:
            done.cancel()
            raise

    @property
    def _there(self) -> Client:
        assert self._client is not None, "to be entered first"
        return self._client

    def __enter__(self) -> WaitingClient:
        self._thread.start()
        try:
            self._client = self._wait(self._open())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._wait(self._close())
        finally:
            self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def broker(self) -> str:
        """The name of the broker."""
        return self._there.broker

    @property
    def is_connected(self) -> bool:
        """Is there a connection just now?"""
        return self._there.is_connected

    def subscribe(
        self, wanted: Any, params: Mapping[str, object] | None = None, **options: Any
    ) -> WaitingSubscription:
        """See `Client.subscribe`; it has begun when this returns."""

        async def begun() -> Subscription:
            return await self._there.subscribe(wanted, params, **options)

        return WaitingSubscription(self._wait, self._wait(begun()))

    def attach(self, durable: str, **options: Any) -> WaitingSubscription:
        """See `Client.attach`."""
        return WaitingSubscription(self._wait, self._wait(self._there.attach(durable, **options)))

    @property
    def durables(self) -> WaitingDurables:
        """See `Client.durables`."""
        return WaitingDurables(self._wait, self._there.durables)

    def publish(self, event: Event, *, trace: str = "", once: bool = False) -> None:
        """See `Client.publish`."""
        self._wait(self._there.publish(event, trace=trace, once=once))

    def publish_many(
        self, events: Iterable[Event], *, once: bool = False, within: float | None = None
    ) -> int:
        """See `Client.publish_many`; `TimeoutError` if they are not all acknowledged in time."""
        return self._wait(self._there.publish_many(events, once=once), within)

    def publish_each(
        self, events: Iterable[Event], *, once: bool = False, within: float | None = None
    ) -> list[DriftlineError | None]:
        """See `Client.publish_each`; `TimeoutError` if they are not all answered in time."""
        return self._wait(self._there.publish_each(events, once=once), within)

    def set(self, durable: str, params: Mapping[str, object], *, within: float = 10.0) -> int:
        """See `Client.set`."""
        return self._wait(self._there.set(durable, params, within=within))

    def explain(self, durable: str, event: Event) -> Explanation:
        """See `Client.explain`."""
        return self._wait(self._there.explain(durable, event))

    def advertise(self, says: str | Advertisement) -> WaitingAdvertised:
        """See `Client.advertise`."""
        return WaitingAdvertised(self._wait, self._wait(self._there.advertise(says)))

    def interested(self, says: str, within: float = 10.0) -> bool:
        """See `Client.interested`."""
        return self._wait(self._there.interested(says, within))

    def declare(self, table: str, key: str, ticks: Mapping[str, str | int] | None = None) -> None:
        """See `Client.declare`."""
        self._wait(self._there.declare(table, key, ticks))

    def delete(self, table: str, key: Value) -> None:
        """See `Client.delete`."""
        self._wait(self._there.delete(table, key))

    def observe(self, name: str, value: Value | None) -> None:
        """See `Client.observe`."""
        self._wait(self._there.observe(name, value))

    def confirm(self, within: float = 10.0) -> None:
        """See `Client.confirm`."""
        self._wait(self._there.confirm(within))

    def status(self, *, subscriptions: bool = False) -> dict[str, Any]:
        """See `Client.status`."""
        return self._wait(self._there.status(subscriptions=subscriptions))

    def metrics(self) -> str:
        """See `Client.metrics`."""
        return self._wait(self._there.metrics())

    def peer(self, broker: str, address: str = "", role: str = "peer") -> None:
        """See `Client.peer`."""
        self._wait(self._there.peer(broker, address, role))

    def unpeer(self, broker: str) -> None:
        """See `Client.unpeer`."""
        self._wait(self._there.unpeer(broker))


class WaitingSubscription:
    """A subscription whose calls wait; iterating waits for what is told next."""

    def __init__(self, wait: Callable[..., Any], subscription: Subscription) -> None:
        self._wait = wait
        self._one = subscription

    @property
    def statement(self) -> Statement:
        """What was asked for."""
        return self._one.statement

    @property
    def resumed(self) -> bool:
        """Did it go on with a durable subscription that was there before?"""
        return self._one.resumed

    @property
    def suspended(self) -> bool:
        """Of a durable one: when it was attached to, was it to be told nothing until resumed?"""
        return self._one.suspended

    @property
    def mark(self) -> str:
        """See `Subscription`."""
        return self._one.mark

    @property
    def kept_up_to(self) -> int:
        """Of a durable one: the number of the last that was kept when it was attached to."""
        return self._one.kept_up_to

    @property
    def active(self) -> bool:
        """Is it still told anything?"""
        return self._one.active

    @property
    def problem(self) -> DriftlineError | None:
        """Why it has ended, if that was not asked for here; None: it has not."""
        return self._one.problem

    @property
    def params(self) -> dict[str, Value]:
        """The parameters now."""
        return self._one.params

    @property
    def epoch(self) -> int:
        """How many changes there were."""
        return self._one.epoch

    def set(self, /, **params: object) -> int:
        """See `Subscription.set`."""
        return int(self._wait(self._one.set(**params)))

    def rebase(self, /, **params: object) -> int:
        """See `Subscription.rebase`."""
        return int(self._wait(self._one.rebase(**params)))

    def add(self, condition: str, /, **params: object) -> int:
        """See `Subscription.add`."""
        return int(self._wait(self._one.add(condition, **params)))

    def remove(self, condition: str, /) -> int:
        """See `Subscription.remove`."""
        return int(self._wait(self._one.remove(condition)))

    def replace(self, condition: str, other: str, /, **params: object) -> int:
        """See `Subscription.replace`."""
        return int(self._wait(self._one.replace(condition, other, **params)))

    def explain(self, event: Event) -> Explanation:
        """See `Subscription.explain`."""
        found: Explanation = self._wait(self._one.explain(event))
        return found

    def counters(self) -> dict[str, int]:
        """See `Subscription.counters`."""
        found: dict[str, int] = self._wait(self._one.counters())
        return found

    def next(self, within: float | None = None) -> Notification:
        """The next thing it is told; `TimeoutError` if nothing is told in so many seconds."""
        found: Notification = self._wait(self._one.next(within))
        return found

    def snapshot(self, within: float | None = None) -> list[Notification]:
        """See `Subscription.snapshot`."""
        found: list[Notification] = self._wait(self._one.snapshot(within))
        return found

    def pending(self) -> list[Notification]:
        """See `Subscription.pending`."""

        async def taken() -> list[Notification]:
            return self._one.pending()

        found: list[Notification] = self._wait(taken())
        return found

    def ack(self, told: Notification) -> None:
        """See `Subscription.ack`."""
        self._wait(self._one.ack(told))

    def __iter__(self) -> Iterator[Notification]:
        return self

    def __next__(self) -> Notification:
        try:
            return self.next()
        except StopAsyncIteration:
            raise StopIteration from None

    def cancel(self) -> None:
        """End it."""
        self._wait(self._one.cancel())

    def detach(self) -> None:
        """See `Subscription.detach`."""
        self._wait(self._one.detach())

    def __enter__(self) -> WaitingSubscription:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._wait(self._one.__aexit__(kind, error, traceback))


class WaitingAdvertised:
    """An advertisement: `interested` is what is known now, and `next` waits until it changes."""

    def __init__(self, wait: Callable[..., Any], advertised: Advertised) -> None:
        self._wait = wait
        self._one = advertised

    @property
    def interested(self) -> bool:
        """Does anybody want some of it, as far as is known now?"""
        return self._one.interested

    def next(self, within: float | None = None) -> bool:
        """Whether anybody is interested, when that has changed; `TimeoutError` if it has not."""
        return bool(self._wait(self._one.__anext__(), within))

    def withdraw(self) -> None:
        """Say it no longer."""
        self._wait(self._one.withdraw())

    def __enter__(self) -> WaitingAdvertised:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.withdraw()
