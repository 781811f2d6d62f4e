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
import time
from collections.abc import Coroutine, Iterable, Mapping
from itertools import count
from types import TracebackType
from typing import Any
from uuid import uuid4

from driftline.client.address import BrokerAddress
from driftline.client.advertised import Advertised
from driftline.client.channel import Channel
from driftline.client.publisher import Publisher
from driftline.client.subscription import Subscription
from driftline.errors import (
    DriftlineError,
    InvalidValue,
    NotEffective,
    NotSupported,
    Unreachable,
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
from driftline.wire.asking import Detached, Interest, Moved, Welcome, problem_of
from driftline.wire.compact import split_records, write_record
from driftline.wire.forms import NO_FORM, Form
from driftline.wire.notices import read_notice
from driftline.wire.stream import Kind, frame

PENDING_MOST = 100_000
"""So many notifications wait in the program; with more of them nothing is read, and the broker's
policy for slow consumers decides."""


class Client:
    """A connection to a broker, for a program that is awaited."""

    def __init__(
        self,
        address: BrokerAddress,
        *,
        name: str = "",
        token: str = "",
        tls: ssl.SSLContext | None = None,
        reconnect: bool = True,
        within: float = 10.0,
    ) -> None:
        self.address = address
        self.broker = ""
        """The name of the broker."""
        self._name = name or uuid4().hex
        self._token = token
        self._tls = tls
        self._reconnect = reconnect
        self._within = within
        self._requests = count(1)
        self._handles = count(1)
        self._subscriptions: dict[int, Subscription] = {}
        self._advertised: dict[str, Advertised] = {}
        self._forms: dict[int, Form] = {}
        # What was asked and not replied to: how to ask again, and who waits.
        self._asked: dict[int, tuple[bytes | None, asyncio.Future[Any]]] = {}
        self._moves: dict[int, list[asyncio.Future[Any]]] = {}
        self._waiting = 0
        self._held = False
        self._ended_by: DriftlineError | None = None
        self._connections = 0
        self._up = asyncio.Event()

    async def open(self) -> Client:
        """Connect; `Unreachable` if nobody answers in time."""
        self._loop = asyncio.get_running_loop()
        hello = asking.Hello(self._name, self._token, _life())
        self._channel = Channel(self.address, self, hello, self._tls, self._reconnect)
        self._publisher = Publisher(self._channel.send, self._request)
        await self._channel.open(self._within)
        return self

    async def close(self) -> None:
        """End the connection, and all subscriptions that are not durable."""
        for one in self._subscriptions.values():
            one._send_ack()
        await self._channel.close()
        self._fail(Unreachable(str(self.address), "the client was closed"))

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
    def is_connected(self) -> bool:
        """Is there a connection just now?"""
        return self._channel.is_up

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
    ) -> Subscription:
        """Ask to be told: `async with c.subscribe(...) as s`, or `s = await c.subscribe(...)`.

        `rows=True` over a table asks for its live set of matching rows; `on_change="reevaluate"`
        tells at once what a moved parameter makes enter and leave. With a name, `durable`, it goes
        on while nobody is connected. `policy` says what becomes of what is not taken fast enough.
        It has begun when it is in effect everywhere, `within` so many seconds.
        """
        statement = _statement(wanted)
        if on_change not in ("silent", "reevaluate"):
            raise InvalidValue("on_change", "silent or reevaluate", show(on_change))
        if ack not in ("auto", "manual"):
            raise InvalidValue("ack", "auto or manual", show(ack))
        standing = Standing.of(statement, params)
        return Subscription(
            self,
            next(self._handles),
            str(statement),
            standing,
            rows=rows,
            quietly=rows and on_change == "silent",
            durable=durable,
            manual=ack == "manual",
            policy=policy,
            within=within,
        )

    async def _begin(self, subscription: Subscription) -> None:
        await self._until_up()
        self._subscriptions[subscription._handle] = subscription
        request = self._request()
        try:
            said = await self._send(request, subscription._asking(request), again=False)
        except DriftlineError as problem:
            # One that is not in effect everywhere yet counts all the same.
            if not isinstance(problem, NotEffective):
                self._subscriptions.pop(subscription._handle, None)
                subscription._end(problem)
            raise
        subscription._accepted(said)

    async def _moved(self, subscription: Subscription, asked: Any) -> Any:
        return await self._send(asked.request, asked, again=False, of=subscription)

    async def _ended(self, subscription: Subscription, *, for_good: bool) -> None:
        if self._subscriptions.pop(subscription._handle, None) is None:
            return
        if self._ended_by is not None:
            return
        kind = asking.Cancel if for_good else asking.Detach
        if not self._channel.is_up:
            if not (for_good and subscription.durable):
                return  # It has ended with the connection.
            await self._until_up()
            request = self._request()
            await self._send(request, subscription._asking(request), again=False)
        request = self._request()
        await self._send(request, kind(request, subscription._handle), again=False)

    def _told_up_to(self, subscription: Subscription, number: int) -> None:
        if self._channel.is_up:
            asked = asking.Told(self._request(), subscription._handle, number)
            self._channel.send(frame(Kind.REQUEST, asking.encode(asked)))

    async def _explain(self, subscription: Subscription, event: Event) -> Explanation:
        request = self._request()
        raw = write_record(event, NO_FORM, Form(event.type, ()))
        asked = asking.Explain(request, subscription._handle, raw)
        return _explanation(await self._send(request, asked))

    async def set(self, durable: str, params: Mapping[str, object], *, within: float = 10.0) -> int:
        """Set all parameters of a durable subscription by its name; the new epoch.

        It stays attached where it is, and whoever is told of it goes on being told.
        """
        said = {name: asking.pack(admit(one, f":{name}")) for name, one in params.items()}
        request = self._request()
        asked = asking.Set(request, 0, said, round(within * 1e6), durable=durable)
        return int((await self._send(request, asked, again=False))["epoch"])

    async def explain(self, durable: str, event: Event) -> Explanation:
        """Why an event does or does not match a durable subscription, by its name."""
        request = self._request()
        raw = write_record(_event(event), NO_FORM, Form(event.type, ()))
        return _explanation(await self._send(request, asking.Explain(request, 0, raw, durable)))

    # Publishing

    async def publish(self, event: Event, *, trace: str = "") -> None:
        """Tell everyone who is interested; done when the broker has acknowledged it.

        What is published at the same time goes out together. What durable subscriptions are to be
        told of it is stored then.
        """
        await self._publisher.room()
        self._check_open()
        done = self._publisher.publish(_event(event), trace)
        self._regulate()
        await done

    async def publish_many(self, events: Iterable[Event]) -> int:
        """Publish many; how many there were, when all are acknowledged.

        If some are refused, the first reason is raised; the others have been published.
        """
        waiting: list[asyncio.Future[None]] = []
        total = 0
        for event in events:
            if not self._publisher._room.is_set():
                await self._publisher.room()
            self._check_open()
            waiting.append(self._publisher.publish(_event(event)))
            total += 1
            if total == 1:
                self._regulate()
            if len(waiting) >= 10_000:
                await _all(waiting)
                waiting = []
        await _all(waiting)
        return total

    def send(self, event: Event, *, trace: str = "") -> asyncio.Future[None]:
        """Publish without waiting; the future says what became of it, if anybody wants to know."""
        self._check_open()
        done = self._publisher.publish(_event(event), trace)
        done.add_done_callback(_looked_at)
        return done

    # Advertisements, tables, environment

    async def advertise(self, says: str | Advertisement) -> Advertised:
        """Say what will be published; `interested` says whether anybody wants it, as it changes."""
        text = str(advertisement(says) if isinstance(says, str) else says)
        one = Advertised(self._unadvertise, f"a{next(self._handles)}", text)
        await self._until_up()
        self._advertised[one.id] = one
        request = self._request()
        try:
            await self._send(request, asking.Advertise(request, one.id, text, True), again=False)
        except DriftlineError:
            self._advertised.pop(one.id, None)
            raise
        return one

    async def _unadvertise(self, one: Advertised) -> None:
        if self._advertised.pop(one.id, None) is not None and self._channel.is_up:
            request = self._request()
            await self._send(request, asking.Unadvertise(request, one.id), again=False)

    async def interested(self, says: str | Advertisement, within: float = 10.0) -> bool:
        """Would anybody, anywhere, want some of what is advertised? May say yes too often."""
        text = str(advertisement(says) if isinstance(says, str) else says)
        request = self._request()
        said = await self._send(request, asking.Interested(request, text, round(within * 1e6)))
        return bool(said["interested"])

    async def declare(
        self, table: str, key: str, ticks: Mapping[str, str | int] | None = None
    ) -> None:
        """Let events of this type be rows of a table, which this broker keeps."""
        declaration = TableDeclaration.of(table, key, ticks)
        request = self._request()
        said = {name: str(tick) for name, tick in declaration.ticks.items()}
        await self._send(request, asking.Declare(request, table, key, said))

    async def delete(self, table: str, key: Value) -> None:
        """Remove a row of a table, wherever it is kept."""
        request = self._request()
        asked = asking.Delete(request, table, asking.pack(admit(key, "key")))
        await self._send(request, asked)

    async def observe(self, name: str, value: Value | None) -> None:
        """Say what a variable of the environment is worth, where events enter at this broker."""
        known = None if value is None else admit(value, f"environment variable {name}")
        request = self._request()
        await self._send(request, asking.Observe(request, name, asking.pack(known)))

    async def confirm(self, within: float = 10.0) -> None:
        """Wait until all that was asked for before is in effect everywhere."""
        request = self._request()
        await self._send(request, asking.Confirm(request, round(within * 1e6)))

    async def status(self, *, subscriptions: bool = False) -> dict[str, Any]:
        """What there is at the broker, and how busy it is; with what this client subscribed to."""
        request = self._request()
        found = await self._send(request, asking.Status(request, subscriptions))
        assert isinstance(found, dict)
        return found

    async def peer(self, broker: str, address: str = "", role: str = "peer") -> None:
        """Let the broker be linked to another, from now on."""
        request = self._request()
        await self._send(request, asking.Peer(request, broker, address, role))

    async def unpeer(self, broker: str) -> None:
        """Let it be linked to another no longer."""
        request = self._request()
        await self._send(request, asking.Peer(request, broker, "", ""))

    # Requests

    def _request(self) -> int:
        return next(self._requests)

    async def _send(
        self,
        request: int,
        asked: Any,
        *,
        again: bool = True,
        of: Subscription | None = None,
    ) -> Any:
        """Ask, and wait for the reply. What can be asked `again` is, after a lost connection;
        what belongs to a subscription counts as done when that has begun anew.
        """
        self._check_open()
        payload = asking.encode(asked)
        done: asyncio.Future[Any] = self._loop.create_future()
        self._asked[request] = (payload if again else None, done)
        if of is not None:
            self._moves.setdefault(of._handle, []).append(done)
        self._channel.send(frame(Kind.REQUEST, payload))
        self._regulate()
        try:
            return await done
        finally:
            self._asked.pop(request, None)
            self._regulate()
            if of is not None and done in (moves := self._moves.get(of._handle, [])):
                moves.remove(done)

    async def _until_up(self) -> None:
        """Wait until there is a connection; raises if there will be none."""
        self._check_open()
        while not self._channel.is_up:
            await self._up.wait()
            self._check_open()

    def _check_open(self) -> None:
        if self._ended_by is not None:
            raise self._ended_by

    # For the channel

    def connected(self, welcome: Welcome) -> None:
        """See `Owner`."""
        self.broker = welcome.broker
        self._up.set()
        self._forms.clear()
        self._connections += 1
        if self._connections > 1:
            for one in [*self._subscriptions.values()]:
                self._spawn(self._begin_anew(one))
            for ad in self._advertised.values():
                request = self._request()
                asked = asking.Advertise(request, ad.id, ad.text, True)
                self._channel.send(frame(Kind.REQUEST, asking.encode(asked)))
        for payload, _ in [*self._asked.values()]:
            if payload is not None:
                self._channel.send(frame(Kind.REQUEST, payload))
        self._publisher.connected()
        if self._held:
            self._channel.hold(True)

    async def _begin_anew(self, one: Subscription) -> None:
        if not one._begun or not one.active:
            return
        one._lost()
        moves = [*self._moves.get(one._handle, ())]
        came = one._came
        request = self._request()
        try:
            said = await self._send(request, one._asking(request, again=True), again=False)
        except Unreachable:
            return  # Lost once more: with the next connection all of it is tried again.
        except DriftlineError as problem:
            for move in moves:
                _settle(move, problem)
            if isinstance(problem, NotEffective):
                await self._effective_late(one, came)
            else:
                self._subscriptions.pop(one._handle, None)
                one._end(problem)
            return
        one._accepted(said)
        for move in moves:
            _settle(move, None)
        self._effective(one, came)

    async def _effective_late(self, one: Subscription, came: int) -> None:
        """Somebody has not answered; it is in effect everywhere when everybody has."""
        while one.active:
            request = self._request()
            asked = asking.Confirm(request, one._within_us or asking.WITHIN)
            try:
                await self._send(request, asked, again=False)
            except NotEffective:
                continue
            except DriftlineError:
                return  # It begins anew with the next connection, if there is one.
            self._effective(one, came)
            return

    def _effective(self, one: Subscription, came: int) -> None:
        """From here on it misses nothing; of what came since it was lost some may be missing."""
        if one._came > came and one.active and not one.durable:
            one._gap()

    def disconnected(self, why: str) -> None:
        """See `Owner`."""
        self._up.clear()
        self._publisher.disconnected()
        lost = Unreachable(str(self.address), why)
        moving = {id(move) for moves in self._moves.values() for move in moves}
        for payload, done in [*self._asked.values()]:
            if payload is None and id(done) not in moving:
                _settle(done, lost)

    def ended(self, problem: DriftlineError) -> None:
        """See `Owner`."""
        self._fail(problem)

    def _fail(self, problem: DriftlineError) -> None:
        self._ended_by = problem
        self._up.set()
        for _, done in [*self._asked.values()]:
            _settle(done, problem)
        self._publisher.ended(problem)
        for one in self._subscriptions.values():
            one._end(problem)
        for ad in self._advertised.values():
            ad._end()

    def heard(self, kind: Kind, payload: bytes) -> None:
        """See `Owner`."""
        if kind is Kind.NOTICES:
            self._notices(payload)
        elif kind is Kind.REPLY:
            self._reply(asking.decode_reply(payload))
        elif kind is Kind.KEPT:
            self._kept(int.from_bytes(payload[:4], "little"), payload[4:])
        elif kind is Kind.TOLD:
            self._told(payload)
        elif kind is Kind.FORM:
            number, form = asking.decode_form(payload)
            self._forms[number] = form

    def _notices(self, payload: bytes) -> None:
        for raw in split_records(payload, "notices"):
            notice = read_notice(raw, self._forms)
            for handle, epoch in notice.marks:
                one = self._subscriptions.get(handle)
                if one is not None:
                    self._taken(-1)
                    one._notice(notice, epoch)

    def _kept(self, handle: int, payload: bytes) -> None:
        one = self._subscriptions.get(handle)
        if one is None:
            return
        for raw in split_records(payload, "notices"):
            notice = read_notice(raw, self._forms)
            for _, epoch in notice.marks:
                self._taken(-1)
                one._notice(notice, epoch)

    def _told(self, payload: bytes) -> None:
        said = asking.decode_said(payload)
        if isinstance(said, Interest):
            ad = self._advertised.get(said.id)
            if ad is not None:
                ad._put(said.interested)
            return
        one = self._subscriptions.get(said.handle)
        if one is None:
            return
        if isinstance(said, Detached):
            del self._subscriptions[said.handle]
            one._end(Unreachable(one.durable, said.why))
        elif isinstance(said, Moved):
            if said.epoch > one.epoch:
                one._moved_by_another(said.epoch, said.params)
        else:
            self._taken(-1)
            one._said(said)

    def _reply(self, reply: asking.Reply) -> None:
        if self._publisher.answered(reply):
            self._regulate()
            return
        found = self._asked.get(reply.request)
        if found is None:
            return
        problem = problem_of(reply.error, reply.facts) if reply.error else None
        _settle(found[1], problem, reply.value)

    def _taken(self, count: int) -> None:
        """So many notifications wait less; held back while too many do."""
        self._waiting -= count
        self._regulate()

    def _regulate(self) -> None:
        """Read on, or not: not while too much waits, but while a reply is waited for. It comes
        behind notifications, and who waits for it may be the one who is to look at these.
        """
        most = PENDING_MOST // 2 if self._held else PENDING_MOST
        held = self._waiting > most and not self._asked and self._publisher.is_idle
        if held != self._held:
            self._held = held
            self._channel.hold(held)

    def _spawn(self, what: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(what)
        # The loop itself keeps only a weak reference.
        _TASKS.add(task)
        task.add_done_callback(_TASKS.discard)


_TASKS: set[asyncio.Task[None]] = set()


def _life() -> int:
    """A number that is higher each time a client begins to count what it publishes."""
    return time.time_ns() // 1000


def _settle(done: asyncio.Future[Any], problem: DriftlineError | None, value: Any = None) -> None:
    if done.done():
        return
    if problem is None:
        done.set_result(value)
    else:
        done.set_exception(problem)


def _looked_at(done: asyncio.Future[None]) -> None:
    if not done.cancelled():
        done.exception()


async def _all(waiting: list[asyncio.Future[None]]) -> None:
    found = await asyncio.gather(*waiting, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one


def _event(given: object) -> Event:
    if not isinstance(given, Event):
        raise InvalidValue("event", "an Event", show(given))
    return given


def _statement(wanted: str | Statement | Term) -> Statement:
    if isinstance(wanted, Term):
        return select(where=wanted)
    return parse(wanted) if isinstance(wanted, str) else wanted


def _explanation(said: Any) -> Explanation:
    if not isinstance(said, list) or len(said) != 6:
        raise NotSupported("explanation", "the broker said something else")
    text, outcome, reason, seen, decided, parts = said
    return Explanation(
        text,
        outcome,
        reason,
        asking.unpack_all(seen, "seen"),
        decided,
        tuple(_explanation(part) for part in parts),
    )
