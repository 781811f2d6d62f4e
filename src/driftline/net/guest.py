"""What does a broker do for one client that is connected to it?

A guest is a party of its own, of which nothing survives the connection: its subscriptions end with
it. A durable subscription is a party by itself, which goes on; while a guest is attached to it, it
is told there. What a guest asks for is done in `serving`; here is what it publishes and is told.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from driftline.broker.effects import Deliver, Run
from driftline.broker.identity import owner_of
from driftline.errors import (
    DriftlineError,
    FrameRefused,
    LimitReached,
    NotAuthenticated,
)
from driftline.net.behind import Behind
from driftline.net.channel import Channel
from driftline.net.connection import Connection
from driftline.net.counting import Tally
from driftline.net.incoming import Incoming
from driftline.net.reading import READING
from driftline.net.sight import Seen
from driftline.net.slices import Batch
from driftline.net.telling import Told, framed, told
from driftline.net.tokens import Proven
from driftline.wire import asking
from driftline.wire.asking import Goodbye, encode, refusal
from driftline.wire.compact import split_records
from driftline.wire.forms import NO_FORM
from driftline.wire.notices import marks_of
from driftline.wire.publishing import HEAD as BATCH_HEAD
from driftline.wire.publishing import split_apart
from driftline.wire.refusal import refused
from driftline.wire.stream import HEAD_BYTES, Kind, frame, head_of

if TYPE_CHECKING:
    from driftline.net.server import Server

ASKED_MOST = 1000
"""So many questions to all brokers may be open; who has more is not listened to meanwhile."""
_DAY = 86_400.0
_DONE = object()


class Guest:
    """One client."""

    def __init__(
        self, server: Server, connection: Connection, proven: Proven, name: str, life: int
    ) -> None:
        self.server = server
        self.connection = connection
        connection.must_read = True
        self.identity = proven.identity
        """Whose it is."""
        self._until = proven.until
        self._expiry: asyncio.TimerHandle | None = None
        self.name = name
        """The party that it is."""
        self.owner = owner_of(name)
        """Who counts as one with this, however many they are."""
        self.life = life
        self.log = server.log.bind(party=name, peer=connection.peer)
        self.sight = server.sight_of(name)
        """What it may see; None: everything."""
        self.handles: dict[int, str] = {}
        """The ids of its subscriptions, durable ones included."""
        self.quiet: set[int] = set()
        """Of these a move is not told what it makes enter and leave."""
        self.channels: dict[str, Channel] = {}
        """By the parties that durable subscriptions are."""
        self.advertised: dict[str, bool] = {}
        self.behind = Behind(self)
        self.tallies: dict[int, Tally] = {}
        """By the handles of those that are told by messages; see `counting`."""
        self._forms_out: set[int] = set()
        self.incoming = Incoming(self)
        self._work: Iterator[None] | None = None
        """A request that is being done in turns; so does what came behind it."""
        self._is_reading = False
        """A request of it has a long text; what came behind it waits."""
        self.asked: set[str] = set()
        """Questions to all brokers that are not answered."""
        self.told = 0
        # How much had been heard when it was last looked after, and how often that was nothing new.
        self.heard = 0
        self.silent = 0
        self._expire()

    @property
    def waiting(self) -> int:
        """Bytes that wait for the connection to take them."""
        return self.behind.pending_bytes + self.connection.unsent

    # What comes

    def take(self, data: memoryview) -> int:
        """See `Service`."""
        at, limit = 0, self.server.limits.frame_bytes
        batches: list[Batch] = []
        while not self._is_busy() and len(data) - at >= HEAD_BYTES:
            kind, size = head_of(data, at, limit)
            end = at + HEAD_BYTES + size
            if end > len(data):
                break
            if kind is Kind.EVENTS:
                one = _batch(data[at + HEAD_BYTES : end])
                if one.request or one.number or len(data) - end < HEAD_BYTES:
                    batches.append(one)
                else:
                    # There may be thousands like it.
                    one, end = self.server.gathering.gather(data, at)
                    self.incoming.publish([*batches, one])
                    batches = []
            else:
                self.incoming.publish(batches)
                batches = []
                if self._is_busy():
                    break
                if kind is Kind.ONCE or kind is Kind.APART:
                    self.incoming.publish([_once(kind, data[at + HEAD_BYTES : end])])
                elif self.server.turns.is_over():
                    self.server.turns.wait(self)
                    break
                else:
                    began = time.perf_counter()
                    self._frame(kind, bytes(data[at + HEAD_BYTES : end]))
                    self.server.turns.spend(began)
            at = end
        self.incoming.publish(batches)
        return at

    def _frame(self, kind: Kind, payload: bytes) -> None:
        if kind is Kind.REQUEST:
            self.server.serving.serve(self, asking.decode_request(payload))
        elif kind is Kind.FORM:
            self.incoming.form(payload)
        elif kind is Kind.PING:
            self.connection.send(frame(Kind.PONG, payload))
        elif kind is Kind.GOODBYE:
            self.connection.close("the client said goodbye")
        elif kind is not Kind.PONG:
            raise refused("stream", "what a client may say", kind.name.lower())

    def _is_busy(self) -> bool:
        """Is something not done yet, so that what comes has to wait?"""
        return self.incoming.is_waiting or self._work is not None or self._is_reading

    def wait_for_reading(self) -> None:
        """Listen to it no more until its request was read, which is done aside."""
        self._is_reading = True
        self.connection.hold(READING)

    def has_read(self) -> None:
        """Its request was read, and served."""
        self._is_reading = False
        self.connection.release(READING)
        if not self._is_busy():
            self.connection.go_on()

    def work(self, steps: Iterator[None]) -> None:
        """Do something in short steps, as many in a turn as there is time for."""
        self._work = steps
        self._work_on(time.perf_counter())

    def _work_on(self, began: float) -> None:
        turns, steps = self.server.turns, self._work
        while steps is not None and self._work is steps:
            if next(steps, _DONE) is _DONE:
                self._work = None
            elif turns.is_over(began):
                turns.wait(self)
                return

    def go_on(self) -> None:
        """It is its turn again."""
        if self._work is not None:
            began = time.perf_counter()
            self._work_on(began)
            self.server.turns.spend(began)
        else:
            self.incoming.go_on()
        if not self._is_busy():
            self.connection.go_on()

    def asks_all(self, name: str) -> None:
        """A question of its is put to all brokers."""
        self.asked.add(name)
        if len(self.asked) > ASKED_MOST:
            self.connection.hold("asked")

    def answered_by_all(self, name: str) -> None:
        """A question of its was answered."""
        self.asked.discard(name)
        if len(self.asked) == ASKED_MOST:
            self.connection.release("asked")

    # What it is told

    def send_reply(self, reply: asking.Reply) -> None:
        """Say what became of a request."""
        self.connection.send(frame(Kind.REPLY, encode(reply)))

    def reply(self, request: int, value: object = None) -> None:
        """A request was granted."""
        self.send_reply(asking.Reply(request, value))

    def refuse_request(self, request: int, problem: DriftlineError) -> None:
        """A request was refused."""
        self.send_reply(refusal(request, problem))

    def know(self, low: int, high: int, notices: bytes | memoryview) -> None:
        """Say which forms are used in notices, if that was not said before."""
        if low == high:
            if low not in self._forms_out:
                self._tell_form(low)
            return
        for notice in split_records(notices):
            number = notice[4] | notice[5] << 8
            if number not in self._forms_out:
                self._tell_form(number)

    def _tell_form(self, number: int) -> None:
        self._forms_out.add(number)
        if number != NO_FORM:
            form = self.server.broker.publishing.forms.known[number]
            self.connection.send(frame(Kind.FORM, asking.encode_form(number, form)))

    def notices(self, run: Run, raw: memoryview, seen: Seen | None) -> None:
        """Tell notices that lie in a frame; those that are seen, if not all may be."""
        whole, low, high = seen or Seen(raw[run.start : run.end], run.low, run.high)
        notices = whole[HEAD_BYTES:]
        self.told += run.notices
        self.know(low, high, notices)
        if self._is_free():
            if len(whole) <= self.server.limits.frame_bytes:
                self.connection.send(whole, urgent=False)
            else:
                for one in framed(Kind.NOTICES, b"", notices):
                    self.connection.send(one, urgent=False)
            return
        self.behind.offer(
            Told(tuple(handle for handle, _ in marks_of(one)), bytes(one), is_notice=True)
            for one in split_records(notices)
        )

    def deliver(self, deliver: Deliver) -> None:
        """Tell what a delivery says."""
        self.told += 1
        edge, forms = self.server.edge, self.server.forms
        shown: Counter[int] = Counter()
        for one in told(deliver, edge, forms, self._handle_of, 0, self.sight):
            shown.update(one.handles)
            self._tell(one)
        if self.sight is not None and deliver.news:
            for id, news in deliver.news.items():
                handle = self._handle_of(id)
                if handle is not None:
                    self._tally(handle).hidden += max(0, len(news) - shown[handle])

    def _tally(self, handle: int) -> Tally:
        return self.tallies.setdefault(handle, Tally())

    def _handle_of(self, id: str) -> int | None:
        handle = int(id.rpartition("#")[2])
        return handle if self.handles.get(handle) == id else None

    def _tell(self, one: Told) -> None:
        if one.is_notice:
            self.know(one.form, one.form, b"")
        self.server.counters.gaps += one.is_gap
        if self._is_free():
            self.connection.send(frame(Kind.NOTICES, one.data) if one.is_notice else one.data)
            if not one.is_notice and not one.is_gap:
                self._tally(one.handles[0]).sent += 1
        else:
            if one.is_gap:
                self._tally(one.handles[0]).gaps += 1
            self.behind.offer((one,))

    def _is_free(self) -> bool:
        """Does everything go straight out just now?"""
        return self.behind.is_empty and not self.connection.stuffed

    # The connection

    def _expire(self) -> None:
        """End it when what proves whose it is does not count any more."""
        if self._until is None:
            return
        left = self._until - self.server.clock.now() / 1e6
        if left > 0:
            self._expiry = self.server.loop.call_later(min(left, _DAY), self._expire)
            return
        why = "the token has expired"
        said = Goodbye(why, again=True, error=NotAuthenticated.__name__)
        self.connection.send(frame(Kind.GOODBYE, encode(said)))
        self.connection.close(why)
        self.server.gone(self, why)

    def eased(self) -> None:
        """See `Service`."""
        for channel in self.channels.values():
            channel.catch_up()
        self.behind.pump()

    def ended(self, why: str) -> None:
        """See `Service`."""
        if self._expiry is not None:
            self._expiry.cancel()
        self.incoming.clear()
        self._work = None
        self.server.gone(self, why)

    def refuse(self, problem: FrameRefused) -> None:
        """See `Service`."""
        self.log.stranger("what a client says cannot be read", problem=problem)
        self.goodbye(str(problem), again=False)

    def goodbye(self, why: str, *, again: bool, after: int = 0) -> None:
        """Say that the connection ends."""
        self.connection.send(frame(Kind.GOODBYE, encode(Goodbye(why, again, after))))

    def check_room(self, what: str, used: int, limit: int) -> None:
        """Raise if there would be more of something than there may be."""
        if used >= limit:
            raise LimitReached(what, limit)


def _batch(payload: memoryview) -> Batch:
    if len(payload) < BATCH_HEAD.size:
        raise refused("events", f"a head of {BATCH_HEAD.size} bytes", f"{len(payload)}")
    request, count, number = BATCH_HEAD.unpack_from(payload)
    return Batch(request, count, number, payload[BATCH_HEAD.size :])


def _once(kind: Kind, payload: memoryview) -> Batch:
    apart = ""
    if kind is Kind.APART:
        apart, payload = split_apart(payload)
    return _batch(payload)._replace(once=True, apart=apart)
