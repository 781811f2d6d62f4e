"""What does a broker do for one client that is connected to it?

A guest is a party of its own, of which nothing survives the connection: its subscriptions end with
it. A durable subscription is a party by itself, which goes on; while a guest is attached to it, it
is told there. What a guest asks for is done in `serving`; here is what it publishes and is told.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from driftline.broker.effects import Deliver, Reply, Run
from driftline.broker.identity import owner_of
from driftline.broker.requests import PublishMany
from driftline.errors import (
    DriftlineError,
    FrameRefused,
    InvalidValue,
    LimitReached,
    NotAllowed,
    NotAuthenticated,
)
from driftline.net.behind import Behind
from driftline.net.channel import Channel
from driftline.net.connection import Connection
from driftline.net.counting import Tally
from driftline.net.reading import READING
from driftline.net.sight import Seen
from driftline.net.slices import FEW, LIGHT, ROOM, Batch, Slices, Whole
from driftline.net.slices import SECONDS as SLICE
from driftline.net.telling import Told, framed, told
from driftline.net.tokens import Proven
from driftline.wire import asking
from driftline.wire.asking import Goodbye, encode, refusal
from driftline.wire.compact import split_records
from driftline.wire.forms import NO_FORM, Form, check_form
from driftline.wire.notices import marks_of
from driftline.wire.publishing import HEAD as BATCH_HEAD
from driftline.wire.publishing import split_apart
from driftline.wire.refusal import refused
from driftline.wire.stream import HEAD_BYTES, Kind, frame, head_of

if TYPE_CHECKING:
    from driftline.net.server import Server

UNKNOWN = -(1 << 40)
"""No form goes by this number on a connection."""
OWN_LETTERS_MAX = 1 << 24
"""So many letters may have the forms of a connection that nobody else is to know."""
ASKED_MOST = 1000
"""So many questions to all brokers may be open; who has more is not listened to meanwhile."""
RATE = "rate"
_DAY = 86_400.0
_DONE = object()


@dataclass(frozen=True, slots=True)
class _Sent:
    """A batch of events that was sent on: its request, and how many there are; or a part of one."""

    request: int
    count: int
    whole: Whole | None = None
    is_last: bool = True


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
        self._expire()
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
        self._forms_in: NDArray[np.int64] = np.full(16, UNKNOWN, np.int64)
        self._forms_out: set[int] = set()
        self._own: dict[int, Form] = {}
        self._own_letters = 0
        self._batches: dict[str, list[_Sent]] = {}
        self._slices = Slices()
        self._later: deque[Batch] = deque()
        """Events that wait for their turn; what came behind them waits, too."""
        self._work: Iterator[None] | None = None
        """A request that is being done in turns; so does what came behind it."""
        self._is_reading = False
        """A request of it has a long text; what came behind it waits."""
        self.asked: set[str] = set()
        """Questions to all brokers that are not answered."""
        self._tokens = float(server.limits.rate)
        self._filled = 0.0
        self._is_paced = False
        self.published = 0
        self.told = 0
        # How much had been heard when it was last looked after, and how often that was nothing new.
        self.heard = 0
        self.silent = 0

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
                    self._publish([*batches, one])
                    batches = []
            else:
                self._publish(batches)
                batches = []
                if self._is_busy():
                    break
                if kind is Kind.ONCE or kind is Kind.APART:
                    self._publish([_once(kind, data[at + HEAD_BYTES : end])])
                elif self.server.turns.is_over():
                    self.server.turns.wait(self)
                    break
                else:
                    began = time.perf_counter()
                    self._frame(kind, bytes(data[at + HEAD_BYTES : end]))
                    self.server.turns.spend(began)
            at = end
        self._publish(batches)
        return at

    def _frame(self, kind: Kind, payload: bytes) -> None:
        if kind is Kind.REQUEST:
            self.server.serving.serve(self, asking.decode_request(payload))
        elif kind is Kind.FORM:
            self._form(payload)
        elif kind is Kind.PING:
            self.connection.send(frame(Kind.PONG, payload))
        elif kind is Kind.GOODBYE:
            self.connection.close("the client said goodbye")
        elif kind is not Kind.PONG:
            raise refused("stream", "what a client may say", kind.name.lower())

    def _form(self, payload: bytes) -> None:
        """A form, and the number that the client gives it."""
        number, form = asking.decode_form(payload)
        limits = self.server.limits
        if number >= limits.forms or number >= NO_FORM:
            raise refused("form", f"a number below {limits.forms}", f"{number}")
        if len(form.fields) > limits.attributes:
            raise refused("form", f"at most {limits.attributes} attributes", f"{len(form.fields)}")
        while number >= len(self._forms_in):
            more = np.full(len(self._forms_in), UNKNOWN, np.int64)
            self._forms_in = np.concatenate([self._forms_in, more])
        try:
            check_form(form)
        except InvalidValue as problem:
            raise refused("form", "one that events can have", str(problem)) from None
        try:
            names = [name for name, _ in form.fields]
            self.server.broker.access.publish(self.name, form.type, names)
            owner = "" if self.sight is None else self.identity
            known = self.server.forms.number(form, owner)
        except NotAllowed:
            known = NO_FORM
        before = self._own.pop(number, None)
        if before is not None:
            self._own_letters -= before.letters
        if known == NO_FORM:
            # It is not allowed, or not for all to know: events are read one by one.
            self._own_letters += form.letters
            if self._own_letters > OWN_LETTERS_MAX:
                wanted = f"forms of at most {OWN_LETTERS_MAX} letters that only it knows"
                raise refused("form", wanted, f"{self._own_letters}")
            self._own[number] = form
            known = UNKNOWN
        self._forms_in[number] = known

    def _publish(self, batches: list[Batch]) -> None:
        """Publish batches, or let them wait for their turn if that may take long.

        What they lie in is gone when this is done.
        """
        if not batches:
            return
        events = sum(one.events for one in batches)
        is_few = events <= FEW and self._slices.is_quick
        is_turn = is_few or not self.server.turns.is_over()
        is_light = events == 1 or self.server.edge.given.all_weight < LIGHT
        if is_turn and is_light and self._slices.fits(events):
            began, worked = time.perf_counter(), time.thread_time()
            self._publish_all(batches)
            took = time.thread_time() - worked
            self._slices.took(events, took)
            if took > ROOM * SLICE or not self._slices.is_quick:
                self.server.turns.spend(began)
            return
        self._later.extend(one.kept() for one in batches)
        self._publish_later()

    def _publish_later(self) -> None:
        """Publish what waits for its turn, as much as that has room for."""
        turns = self.server.turns
        while self._later and self.connection.is_open:
            if turns.is_over():
                turns.wait(self)
                return
            one, rest = self._cut(self._later.popleft())
            if rest is not None:
                self._later.appendleft(rest)
            began, worked = time.perf_counter(), time.thread_time()
            self._publish_all([one])
            self._slices.took(one.events, time.thread_time() - worked)
            turns.spend(began)

    def _cut(self, one: Batch) -> tuple[Batch, Batch | None]:
        """As many events as a slice has room for, as far as can be told, and the rest."""
        most = self._slices.most
        part, rest = one.cut(most)
        server = self.server
        if part.events == 1 or server.edge.given.all_weight < LIGHT:
            return part, rest
        # What was quick until now need not be so: others may have asked for what is not.
        light = server.broker.publishing.light(part.records, self._forms_in, LIGHT)
        return (part, rest) if light >= part.events else one.cut(light)

    def _is_busy(self) -> bool:
        """Is something not done yet, so that what comes has to wait?"""
        return bool(self._later) or self._work is not None or self._is_reading

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
            self._publish_later()
        if not self._is_busy():
            self.connection.go_on()

    def _publish_all(self, batches: list[Batch]) -> None:
        """Publish batches, as many at a time as can be numbered together."""
        if len(batches) == 1:
            one = batches[0]
            sent_one = _Sent(one.request, one.events, one.whole, one.is_last)
            self._publish_some([sent_one], one.number, one.records, once=one.once, apart=one.apart)
            return
        sent: list[_Sent] = []
        parts: list[bytes | memoryview] = []
        first = following = 0
        for one in batches:
            if sent and one.number != following:
                self._publish_some(sent, first, b"".join(parts))
                sent, parts = [], []
            if not sent:
                first = one.number
            following = one.number + one.events if one.number else 0
            sent.append(_Sent(one.request, one.events))
            parts.append(one.records)
        if sent:
            self._publish_some(sent, first, b"".join(parts))

    def _publish_some(
        self,
        sent: list[_Sent],
        number: int,
        records: bytes | memoryview,
        *,
        once: bool = False,
        apart: str = "",
    ) -> None:
        # Never the name of an earlier one, not even of a connection of this client that is no
        # more: a reply to that may still wait for the journal.
        request = self.server.number("e")
        self._batches[request] = sent
        asked = PublishMany(
            request, records, self._forms_in, number, self.life, self._own, once, apart
        )
        self.server.driver.ask(self.name, asked)

    def answered(self, reply: Reply) -> None:
        """What became of batches of events."""
        batches = self._batches.pop(reply.request, None)
        if batches is None:
            return  # It was asked on an earlier connection of this client.
        self.published += reply.events
        self.server.counters.published += reply.events
        self.server.counters.refused += reply.denied
        if self.server.limits.rate:
            self._pace(reply.events)
        refused = reply.refused
        if refused is None and reply.came != sum(batch.count for batch in batches):
            refused = FrameRefused("events", "as many as the batch says", f"{reply.came}")
        if refused is not None:
            for batch in batches:
                number = batch.whole.request if batch.whole is not None else batch.request
                if number:
                    self._reply(refusal(number, refused))
            self.goodbye(str(refused), again=False)
            self.connection.close(str(refused))
            return
        at = 0
        problems = deque(reply.problems)
        for batch in batches:
            whole = batch.whole or Whole(batch.request)
            end = at + batch.count
            while problems and problems[0][0] < end:
                place, problem = problems.popleft()
                whole.refusals.add(whole.at + place - at, problem)
            whole.at += batch.count
            at = end
            if batch.is_last and whole.request:
                self.reply(whole.request, whole.refusals.said())

    def _pace(self, events: int) -> None:
        """Hold it back if it is faster than it may be, until it is not."""
        rate, now = self.server.limits.rate, self.server.loop.time()
        self._tokens = min(rate, self._tokens + (now - self._filled) * rate) - events
        self._filled = now
        if self._tokens >= 0:
            self.connection.release(RATE)
        elif not self._is_paced:
            self._is_paced = True
            self.connection.hold(RATE)
            self.server.loop.call_later(-self._tokens / rate, self._pace_again)

    def _pace_again(self) -> None:
        self._is_paced = False
        self._pace(0)

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

    def _reply(self, reply: asking.Reply) -> None:
        self.connection.send(frame(Kind.REPLY, encode(reply)))

    def reply(self, request: int, value: object = None) -> None:
        """A request was granted."""
        self._reply(asking.Reply(request, value))

    def refuse_request(self, request: int, problem: DriftlineError) -> None:
        """A request was refused."""
        self._reply(refusal(request, problem))

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

    def eased(self) -> None:
        """See `Service`."""
        for channel in self.channels.values():
            channel.catch_up()
        self.behind.pump()

    def ended(self, why: str) -> None:
        """See `Service`."""
        if self._expiry is not None:
            self._expiry.cancel()
        self._later.clear()
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
