"""How does a conversation with a broker go on, whatever becomes of its connections?

What was asked waits for its reply. When a connection was lost, subscriptions and advertisements are
said anew on the next one, and so is what can be asked again. What comes goes to whom it is for, and
when too much of that waits in the program, nothing more is read.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Coroutine
from itertools import count
from typing import Any, NamedTuple

from driftline.client.address import BrokerAddress
from driftline.client.advertised import Advertised
from driftline.client.channel import Channel, Dial, Token
from driftline.client.publisher import Publisher
from driftline.client.subscription import Subscription
from driftline.errors import (
    DriftlineError,
    FrameRefused,
    InvalidValue,
    NotEffective,
    NotSupported,
    SubscriptionEnded,
    Unreachable,
)
from driftline.model.event import Event
from driftline.model.explanation import Explanation
from driftline.wire import asking
from driftline.wire.asking import Detached, Interest, Moved, Welcome, problem_of
from driftline.wire.compact import split_records, write_record
from driftline.wire.forms import NO_FORM, Form
from driftline.wire.notices import read_notice
from driftline.wire.stream import HEAD_BYTES, PAYLOAD_BYTES_MAX, Kind, frame


class Pending(NamedTuple):
    """How much waits in the program; with more of it nothing is read, and the broker's policy for
    slow consumers decides.
    """

    notifications: int = 100_000
    size: int = 1 << 40
    """Bytes, about."""
    always: bool = False
    """Also while a reply is waited for: for programs that look at notifications all the same."""


PENDING = Pending()


COUNTERS = (
    *("evaluated", "matched", "suppressed", "sent"),
    *("waiting", "dropped", "conflated", "repeated"),
)
"""What is counted of each subscription."""


class Conversation:
    """All that a client and its broker have said and not done with. See `Owner` and `Keeper`."""

    def __init__(
        self,
        address: BrokerAddress,
        name: str,
        token: Token,
        tls: ssl.SSLContext | None,
        reconnect: bool,
        dial: Dial | None = None,
        pending: Pending = PENDING,
    ) -> None:
        self.address = address
        self._dial = dial
        self._pending_most = pending
        self.broker = ""
        """The name of the broker."""
        self.subscriptions: dict[int, Subscription] = {}
        self.advertised: dict[str, Advertised] = {}
        self._name = name
        self._token = token
        self._tls = tls
        self._reconnect = reconnect
        self._requests = count(1)
        self._forms: dict[int, Form] = {}
        # What was asked and not replied to: how to ask again, and who waits.
        self._asked: dict[int, tuple[bytes | None, asyncio.Future[Any]]] = {}
        self._moves: dict[int, list[asyncio.Future[Any]]] = {}
        self._waiting = self._waiting_bytes = 0
        self._held = False
        self._ended_by: DriftlineError | None = None
        self._connections = 0
        self._up = asyncio.Event()
        self._payload_most = PAYLOAD_BYTES_MAX

    async def open(self, within: float) -> None:
        """Begin; `Unreachable` if nobody answers in time."""
        self._loop = asyncio.get_running_loop()
        hello = asking.Hello(self._name, "", _life())
        self.channel = Channel(
            self.address, self, hello, self._token, self._tls, self._reconnect, self._dial
        )
        self.publisher = Publisher(self.channel.send, self._request)
        await self.channel.open(within)

    async def close(self, why: str) -> None:
        """End it, and all subscriptions that are not durable."""
        for one in self.subscriptions.values():
            one._send_ack()
        await self.channel.close()
        self._fail(Unreachable(str(self.address), why))

    # For subscriptions

    async def _begin(self, subscription: Subscription) -> None:
        await self.until_up()
        self.subscriptions[subscription._handle] = subscription
        request = self._request()
        try:
            said = await self._send(request, subscription._asking(request), again=False)
        except DriftlineError as problem:
            # One that is not in effect everywhere yet counts all the same.
            if not isinstance(problem, NotEffective):
                self.subscriptions.pop(subscription._handle, None)
                subscription._end(problem)
            raise
        subscription._accepted(said)

    async def _moved(self, subscription: Subscription, asked: Any) -> Any:
        return await self._send(asked.request, asked, again=False, of=subscription)

    async def _ended(self, subscription: Subscription, *, for_good: bool) -> None:
        if self.subscriptions.pop(subscription._handle, None) is None:
            return
        if self._ended_by is not None:
            return
        kind = asking.Cancel if for_good else asking.Detach
        if not self.channel.is_up:
            if not (for_good and subscription.durable):
                return  # It has ended with the connection.
            await self.until_up()
            request = self._request()
            await self._send(request, subscription._asking(request), again=False)
        request = self._request()
        await self._send(request, kind(request, subscription._handle), again=False)

    def _told_up_to(self, subscription: Subscription, number: int) -> None:
        if self.channel.is_up:
            asked = asking.Told(self._request(), subscription._handle, number)
            self.channel.send(frame(Kind.REQUEST, asking.encode(asked)))

    async def _explain(self, subscription: Subscription, event: Event) -> Explanation:
        request = self._request()
        raw = write_record(event, NO_FORM, Form(event.type, ()))
        asked = asking.Explain(request, subscription._handle, raw)
        return explanation_of(await self._send(request, asked))

    async def _counters(self, subscription: Subscription) -> dict[str, int]:
        said = await self.ask(asking.Status, True, subscription._handle)
        for one in said["mine"]:
            return {name: int(one[name]) for name in COUNTERS}
        raise SubscriptionEnded(subscription.durable or str(subscription.statement))

    # Requests

    def _request(self) -> int:
        return next(self._requests)

    async def ask(self, kind: type[Any], *said: object, again: bool = True, **named: object) -> Any:
        """Ask for something of a kind; the value of the reply."""
        request = self._request()
        return await self._send(request, kind(request, *said, **named), again=again)

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
        self.check_open()
        payload = asking.encode(asked)
        if len(payload) > self._payload_most:
            raise InvalidValue("request", f"at most {self._payload_most} bytes", f"{len(payload)}")
        try:
            asking.decode_request(payload)
        except FrameRefused as problem:
            # The broker would end the connection, and with it what others ask on it.
            raise InvalidValue(problem.where, problem.wanted, problem.came) from None
        done: asyncio.Future[Any] = self._loop.create_future()
        self._asked[request] = (payload if again else None, done)
        if of is not None:
            self._moves.setdefault(of._handle, []).append(done)
        self.channel.send(frame(Kind.REQUEST, payload))
        self.regulate()
        try:
            return await done
        finally:
            self._asked.pop(request, None)
            self.regulate()
            if of is not None and done in (moves := self._moves.get(of._handle, [])):
                moves.remove(done)

    async def until_up(self) -> None:
        """Wait until there is a connection; raises if there will be none."""
        self.check_open()
        while not self.channel.is_up:
            await self._up.wait()
            self.check_open()

    @property
    def is_over(self) -> bool:
        """Has it ended?"""
        return self._ended_by is not None

    def check_open(self) -> None:
        """Raise if it has ended."""
        if self._ended_by is not None:
            raise self._ended_by

    # For the channel

    def connected(self, welcome: Welcome) -> None:
        """See `Owner`."""
        self.broker = welcome.broker
        self._payload_most = welcome.frame_bytes - HEAD_BYTES
        self._up.set()
        self._forms.clear()
        self._connections += 1
        if self._connections > 1:
            for one in [*self.subscriptions.values()]:
                self._spawn(self._begin_anew(one))
            for ad in self.advertised.values():
                request = self._request()
                asked = asking.Advertise(request, ad.id, ad.text, True)
                self.channel.send(frame(Kind.REQUEST, asking.encode(asked)))
        for payload, _ in [*self._asked.values()]:
            if payload is not None:
                self.channel.send(frame(Kind.REQUEST, payload))
        self.publisher.connected(self._payload_most, welcome.attributes)
        if self._held:
            self.channel.hold(True)

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
                self.subscriptions.pop(one._handle, None)
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
        self.publisher.disconnected()
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
        self.publisher.ended(problem)
        for one in self.subscriptions.values():
            one._end(problem)
        for ad in self.advertised.values():
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
                one = self.subscriptions.get(handle)
                if one is not None:
                    one._notice(notice, epoch, len(raw))

    def _kept(self, handle: int, payload: bytes) -> None:
        one = self.subscriptions.get(handle)
        if one is None:
            return
        for raw in split_records(payload, "notices"):
            notice = read_notice(raw, self._forms)
            for _, epoch in notice.marks:
                one._notice(notice, epoch, len(raw))

    def _told(self, payload: bytes) -> None:
        said = asking.decode_said(payload)
        if isinstance(said, Interest):
            ad = self.advertised.get(said.id)
            if ad is not None:
                ad._put(said.interested)
            return
        one = self.subscriptions.get(said.handle)
        if one is None:
            return
        if isinstance(said, Detached):
            del self.subscriptions[said.handle]
            one._end(Unreachable(one.durable, said.why))
        elif isinstance(said, Moved):
            if said.epoch > one.epoch:
                one._moved_by_another(said.epoch, said.params)
        else:
            one._said(said, len(payload))

    def _reply(self, reply: asking.Reply) -> None:
        if self.publisher.answered(reply):
            self.regulate()
            return
        found = self._asked.get(reply.request)
        if found is None:
            return
        problem = problem_of(reply.error, reply.facts) if reply.error else None
        _settle(found[1], problem, reply.value)

    def _waits(self, count: int, size: int) -> None:
        """So many notifications wait more, or less, of so many bytes; held back while too many
        do.
        """
        self._waiting += count
        self._waiting_bytes += size
        self.regulate()

    def regulate(self) -> None:
        """Read on, or not: not while too much waits, but while a reply is waited for. It comes
        behind notifications, and who waits for it may be the one who is to look at these.
        """
        most, size_most, always = self._pending_most
        if self._held:
            most, size_most = most // 2, size_most // 2
        is_full = self._waiting > most or self._waiting_bytes > size_most
        held = is_full and (always or (not self._asked and self.publisher.is_idle))
        if held != self._held:
            self._held = held
            self.channel.hold(held)

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


def explanation_of(said: Any) -> Explanation:
    """What a broker has said of why something matches, or does not."""
    if not isinstance(said, list) or len(said) != 6:
        raise NotSupported("explanation", "the broker said something else")
    text, outcome, reason, seen, decided, parts = said
    return Explanation(
        text,
        outcome,
        reason,
        asking.unpack_all(seen, "seen"),
        decided,
        tuple(explanation_of(part) for part in parts),
    )
