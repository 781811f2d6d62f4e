"""What can a program ask of a broker that is elsewhere?

    async with dl.connect("driftline://host:7400") as c:
        async with c.subscribe("SELECT * FROM quote WHERE price < :limit", {"limit": 10}) as s:
            await c.publish(dl.Event("quote", {"firm": "IBM", "price": 9.5}))
            async for n in s:
                print(n.values)
                await s.set(limit=9)

A connection that is lost is made again, and everything is said anew: subscriptions with the
parameters they have by now, advertisements, and what was published and not acknowledged.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from types import TracebackType
from typing import Any
from uuid import uuid4

from driftline.client.address import BrokerAddress
from driftline.client.advertised import Advertised
from driftline.client.channel import Dial, Token
from driftline.client.conversation import PENDING, Conversation, Pending, explanation_of
from driftline.client.durables import Durables
from driftline.client.subscription import Subscription
from driftline.errors import (
    DriftlineError,
    InvalidValue,
)
from driftline.language.advertising import advertisement
from driftline.language.builder import Term, select
from driftline.language.sql import parse
from driftline.model.advertisement import Advertisement
from driftline.model.covering import Statement
from driftline.model.event import Event
from driftline.model.explanation import Explanation
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.model.value import Value, admit, show
from driftline.wire import asking
from driftline.wire.asking import HANDLES_MAX
from driftline.wire.compact import write_record
from driftline.wire.forms import NO_FORM, Form


class Client:
    """A connection to a broker, for a program that is awaited."""

    def __init__(
        self,
        address: BrokerAddress,
        *,
        name: str = "",
        token: Token = "",
        tls: ssl.SSLContext | None = None,
        reconnect: bool = True,
        within: float = 10.0,
        dial: Dial | None = None,
        pending: Pending = PENDING,
    ) -> None:
        self._within = within
        self._handles = count(1)
        self._talk = Conversation(
            address, name or uuid4().hex, token, tls, reconnect, dial, pending
        )

    async def open(self) -> Client:
        """Connect; `Unreachable` if nobody answers in time."""
        await self._talk.open(self._within)
        return self

    async def close(self, why: str = "the client was closed") -> None:
        """End the connection, and all subscriptions that are not durable.

        Whoever still waits for something is told `why`.
        """
        await self._talk.close(why)

    async def __aenter__(self) -> Client:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def address(self) -> BrokerAddress:
        """Where the broker is."""
        return self._talk.address

    @property
    def broker(self) -> str:
        """The name of the broker."""
        return self._talk.broker

    @property
    def is_connected(self) -> bool:
        """Is there a connection just now?"""
        return self._talk.channel.is_up

    @property
    def is_over(self) -> bool:
        """Will there be no connection any more?"""
        return self._talk.is_over

    # Subscriptions

    def subscribe(
        self,
        wanted: str | Statement | Term,
        params: Mapping[str, object] | None = None,
        *,
        rows: bool = False,
        on_change: str = "silent",
        durable: str = "",
        ack: str = "auto",
        policy: Mapping[str, object] | None = None,
        within: float = 10.0,
        after: int = 0,
        renew: bool = True,
    ) -> Subscription:
        """Ask to be told: `async with c.subscribe(...) as s`, or `s = await c.subscribe(...)`.

        `rows=True` over a table asks for its live set of matching rows; `on_change="reevaluate"`
        tells at once what a moved parameter makes enter and leave. With a name, `durable`, it goes
        on while nobody is connected; everything up to the number `after` was had. If the
        broker has lost it when a connection is made again, it is made again too, and that is a gap;
        without `renew` it ends. `policy` says what becomes of what is not taken fast enough.
        It has begun when it is in effect everywhere, `within` so many seconds.
        """
        statement = _statement(wanted)
        if on_change not in ("silent", "reevaluate"):
            raise InvalidValue("on_change", "silent or reevaluate", show(on_change))
        if ack not in ("auto", "manual"):
            raise InvalidValue("ack", "auto or manual", show(ack))
        standing = Standing.of(statement, params)
        return Subscription(
            self._talk,
            next(self._handles),
            str(statement),
            standing,
            rows=rows,
            quietly=rows and on_change == "silent",
            durable=durable,
            manual=ack == "manual",
            policy=policy,
            within=within,
            after=after,
            renew=renew,
        )

    async def attach(
        self, durable: str, *, ack: str = "auto", after: int = 0, within: float = 10.0
    ) -> Subscription:
        """Be told of a durable subscription as it stands, by its name; see `subscribe`."""
        known = await self.durables.get(durable)
        standing = Standing.of(parse(known.text), known.params)
        return await Subscription(
            self._talk,
            next(self._handles),
            known.text,
            replace(standing, epoch=known.epoch),
            rows=known.rows,
            durable=durable,
            manual=ack == "manual",
            within=within,
            after=after,
            as_it_is=True,
        )

    @property
    def durables(self) -> Durables:
        """Durable subscriptions by their names, wherever they are attached."""
        return Durables(self._talk.ask)

    async def set(self, durable: str, params: Mapping[str, object], *, within: float = 10.0) -> int:
        """Set all parameters of a durable subscription by its name; the new epoch.

        It stays attached where it is, and whoever is told of it goes on being told.
        """
        said = {name: asking.pack(admit(one, f":{name}")) for name, one in params.items()}
        within_us = round(within * 1e6)
        done = await self._talk.ask(asking.Set, 0, said, within_us, durable=durable, again=False)
        return int(done["epoch"])

    async def explain(self, durable: str, event: Event) -> Explanation:
        """Why an event does or does not match a durable subscription, by its name."""
        raw = write_record(_event(event), NO_FORM, Form(event.type, ()))
        return explanation_of(await self._talk.ask(asking.Explain, 0, raw, durable))

    # Publishing

    async def publish(self, event: Event, *, trace: str = "", once: bool = False) -> None:
        """Tell everyone who is interested; done when the broker has acknowledged it.

        What is published at the same time goes out together. What durable subscriptions are to be
        told of it is stored then. `trace` is a W3C trace context, in the place of the event's own.
        With `once`, an event that this identity has published `once` before at this broker, by its
        source and its id, is passed over, whatever has crashed since.
        """
        await self._talk.publisher.room()
        self._talk.check_open()
        done = self._talk.publisher.publish(_traced(event, trace), once=once)
        self._talk.regulate()
        await done

    async def publish_many(self, events: Iterable[Event], *, once: bool = False) -> int:
        """Publish many; how many there were, when all are acknowledged. `once`: see `publish`.

        If some are refused, the first reason is raised when all is done; the others have been
        published. `publish_each` says what became of each.
        """
        waiting: list[asyncio.Future[None]] = []
        total = 0
        first: DriftlineError | None = None
        for event in events:
            waiting.append(await self._begun(event, once=once))
            total += 1
            if len(waiting) >= 10_000 or self._talk.is_over:
                problem = await _first_of(waiting)
                first, waiting = first or problem, []
                self._talk.check_open()
        problem = await _first_of(waiting)
        first = first or problem
        if first is not None:
            raise first
        return total

    async def publish_each(
        self, events: Iterable[Event], *, once: bool = False, apart: str = ""
    ) -> list[DriftlineError | None]:
        """Publish some, in order; what became of each: None, or why it was refused.

        `once`: see `publish`. Who passes on what others have named gives the attribute, a text,
        that tells those of the same source and id `apart`.
        """
        waiting: list[asyncio.Future[None]] = []
        for event in events:
            waiting.append(await self._begun(event, once=once, apart=apart))
            if not len(waiting) % 1000:
                await asyncio.sleep(0)  # Whoever shares the loop is not to wait for all of them.
        found = await asyncio.gather(*waiting, return_exceptions=True)
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, DriftlineError):
                raise one
        return [one if isinstance(one, DriftlineError) else None for one in found]

    async def _begun(self, event: Event, *, once: bool, apart: str = "") -> asyncio.Future[None]:
        try:
            return await self._started(event, once=once, apart=apart)
        except DriftlineError as problem:
            # It cannot be said at all: that is nothing that the others need suffer from.
            refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            refused.set_exception(problem)
            return refused

    async def _started(self, event: Event, *, once: bool, apart: str = "") -> asyncio.Future[None]:
        publisher = self._talk.publisher
        if not publisher._room.is_set():
            await publisher.room()
        self._talk.check_open()
        was_idle = publisher.is_idle
        done = publisher.publish(_event(event), once=once, apart=apart)
        if was_idle:
            self._talk.regulate()
        return done

    def send(self, event: Event, *, trace: str = "", once: bool = False) -> asyncio.Future[None]:
        """Publish without waiting; the future says what became of it, if anybody wants to know."""
        self._talk.check_open()
        done = self._talk.publisher.publish(_traced(event, trace), once=once)
        done.add_done_callback(_looked_at)
        return done

    # Advertisements, tables, environment

    async def advertise(self, says: str | Advertisement) -> Advertised:
        """Say what will be published; `interested` says whether anybody wants it, as it changes."""
        text = str(advertisement(says) if isinstance(says, str) else says)
        one = Advertised(self._unadvertise, f"a{next(self._handles)}", text)
        await self._talk.until_up()
        self._talk.advertised[one.id] = one
        try:
            await self._talk.ask(asking.Advertise, one.id, text, True, again=False)
        except DriftlineError:
            self._talk.advertised.pop(one.id, None)
            raise
        return one

    async def _unadvertise(self, one: Advertised) -> None:
        if self._talk.advertised.pop(one.id, None) is not None and self._talk.channel.is_up:
            await self._talk.ask(asking.Unadvertise, one.id, again=False)

    async def interested(self, says: str | Advertisement, within: float = 10.0) -> bool:
        """Would anybody, anywhere, want some of what is advertised? May say yes too often."""
        text = str(advertisement(says) if isinstance(says, str) else says)
        said = await self._talk.ask(asking.Interested, text, round(within * 1e6))
        return bool(said["interested"])

    async def declare(
        self, table: str, key: str, ticks: Mapping[str, str | int] | None = None
    ) -> None:
        """Let events of this type be rows of a table, which this broker keeps."""
        declaration = TableDeclaration.of(table, key, ticks)
        said = {name: str(tick) for name, tick in declaration.ticks.items()}
        await self._talk.ask(asking.Declare, table, key, said)

    async def delete(self, table: str, key: Value) -> None:
        """Remove a row of a table, wherever it is kept."""
        await self._talk.ask(asking.Delete, table, asking.pack(admit(key, "key")))

    async def observe(self, name: str, value: Value | None) -> None:
        """Say what a variable of the environment is worth, where events enter at this broker."""
        known = None if value is None else admit(value, f"environment variable {name}")
        await self._talk.ask(asking.Observe, name, asking.pack(known))

    async def confirm(self, within: float = 10.0) -> None:
        """Wait until all that was asked for before is in effect everywhere."""
        await self._talk.ask(asking.Confirm, round(within * 1e6))

    async def status(self, *, subscriptions: bool = False) -> dict[str, Any]:
        """What there is at the broker, and how busy it is; with what this client subscribed to."""
        found = await self._status(subscriptions)
        if subscriptions:
            shown = {one["handle"] for one in found["mine"]}
            left = [handle for handle in self._talk.subscriptions if handle not in shown]
            while left:
                some = await self._status(True, handles=left[:HANDLES_MAX])
                found["mine"] += some["mine"]
                # As many as fit a reply, in the order asked for; none: these have ended.
                last = some["mine"][-1]["handle"] if some["mine"] else left[:HANDLES_MAX][-1]
                left = left[left.index(last) + 1 :]
        return found

    async def _status(
        self,
        subscriptions: bool,
        *,
        others: bool = False,
        handles: Sequence[int] = (),
    ) -> dict[str, Any]:
        found = await self._talk.ask(asking.Status, subscriptions, 0, others, [*handles])
        assert isinstance(found, dict)
        return found

    async def metrics(self) -> str:
        """How busy the broker is, as Prometheus reads it, for who may `operate` it."""
        found = await self._talk.ask(asking.Metrics)
        assert isinstance(found, str)
        return found

    async def peer(self, broker: str, address: str = "", role: str = "peer") -> None:
        """Let the broker be linked to another, from now on."""
        await self._talk.ask(asking.Peer, broker, address, role)

    async def unpeer(self, broker: str) -> None:
        """Let it be linked to another no longer."""
        await self._talk.ask(asking.Peer, broker, "", "")


def _looked_at(done: asyncio.Future[None]) -> None:
    if not done.cancelled():
        done.exception()


async def _first_of(waiting: list[asyncio.Future[None]]) -> DriftlineError | None:
    """The first problem, when it is known what became of all."""
    first: DriftlineError | None = None
    for one in await asyncio.gather(*waiting, return_exceptions=True):
        if isinstance(one, DriftlineError):
            first = first or one
        elif isinstance(one, BaseException):
            raise one
    return first


def _event(given: object) -> Event:
    if not isinstance(given, Event):
        raise InvalidValue("event", "an Event", show(given))
    return given


def _traced(event: Event, trace: str) -> Event:
    return _event(event).with_trace(trace) if trace else _event(event)


def _statement(wanted: str | Statement | Term) -> Statement:
    if isinstance(wanted, Term):
        return select(where=wanted)
    return parse(wanted) if isinstance(wanted, str) else wanted
