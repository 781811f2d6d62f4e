"""What becomes of the events that one client publishes?

They are published at once, or in slices in turn with others', and its batches are answered. Each
names its form by a number that the client has given it; forms that not all may know are its own.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from driftline.broker.effects import Reply
from driftline.broker.requests import PublishMany
from driftline.errors import FrameRefused, InvalidValue, NotAllowed
from driftline.net.slices import FEW, LIGHT, ROOM, Batch, Slices, Whole
from driftline.net.slices import SECONDS as SLICE
from driftline.wire import asking
from driftline.wire.asking import refusal
from driftline.wire.forms import NO_FORM, Form, check_form
from driftline.wire.refusal import refused

if TYPE_CHECKING:
    from driftline.net.guest import Guest

UNKNOWN = -(1 << 40)
"""No form goes by this number on a connection."""
OWN_LETTERS_MAX = 1 << 24
"""So many letters may have the forms of a connection that nobody else is to know."""
RATE = "rate"


@dataclass(frozen=True, slots=True)
class _Sent:
    """A batch of events that was sent on: its request, and how many there are; or a part of one."""

    request: int
    count: int
    whole: Whole | None = None
    is_last: bool = True


class Incoming:
    """The events of one client."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._server = guest.server
        self._forms: NDArray[np.int64] = np.full(16, UNKNOWN, np.int64)
        self._own: dict[int, Form] = {}
        self._own_letters = 0
        self._batches: dict[str, list[_Sent]] = {}
        self._slices = Slices()
        self._later: deque[Batch] = deque()
        """Events that wait for their turn; what came behind them waits, too."""
        self._tokens = float(self._server.limits.rate)
        self._filled = 0.0
        self._is_paced = False
        self.published = 0
        """How many there were."""

    @property
    def is_waiting(self) -> bool:
        """Do some wait for their turn?"""
        return bool(self._later)

    def form(self, payload: bytes) -> None:
        """A form, and the number that the client gives it."""
        guest, server = self._guest, self._server
        number, form = asking.decode_form(payload)
        limits = server.limits
        if number >= limits.forms or number >= NO_FORM:
            raise refused("form", f"a number below {limits.forms}", f"{number}")
        if len(form.fields) > limits.attributes:
            raise refused("form", f"at most {limits.attributes} attributes", f"{len(form.fields)}")
        while number >= len(self._forms):
            more = np.full(len(self._forms), UNKNOWN, np.int64)
            self._forms = np.concatenate([self._forms, more])
        try:
            check_form(form)
        except InvalidValue as problem:
            raise refused("form", "one that events can have", str(problem)) from None
        try:
            names = [name for name, _ in form.fields]
            server.broker.access.publish(guest.name, form.type, names)
            owner = "" if guest.sight is None else guest.identity
            known = server.forms.number(form, owner)
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
        self._forms[number] = known

    # When

    def publish(self, batches: list[Batch]) -> None:
        """Publish batches, or let them wait for their turn if that may take long.

        What they lie in is gone when this is done.
        """
        if not batches:
            return
        server = self._server
        events = sum(one.events for one in batches)
        is_few = events <= FEW and self._slices.is_quick
        is_turn = is_few or not server.turns.is_over()
        is_light = events == 1 or server.edge.given.all_weight < LIGHT
        if is_turn and is_light and self._slices.fits(events):
            began, worked = time.perf_counter(), time.thread_time()
            self._publish_all(batches)
            took = time.thread_time() - worked
            self._slices.took(events, took)
            if took > ROOM * SLICE or not self._slices.is_quick:
                server.turns.spend(began)
            return
        self._later.extend(one.kept() for one in batches)
        self.go_on()

    def go_on(self) -> None:
        """Publish what waits for its turn, as much as that has room for."""
        turns = self._server.turns
        while self._later and self._guest.connection.is_open:
            if turns.is_over():
                turns.wait(self._guest)
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
        server = self._server
        part, rest = one.cut(self._slices.most)
        if part.events == 1 or server.edge.given.all_weight < LIGHT:
            return part, rest
        # What was quick until now need not be so: others may have asked for what is not.
        light = server.broker.publishing.light(part.records, self._forms, LIGHT)
        return (part, rest) if light >= part.events else one.cut(light)

    def clear(self) -> None:
        """Publish nothing any more of what waits."""
        self._later.clear()

    # How

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
        guest, server = self._guest, self._server
        # Never the name of an earlier one, not even of a connection of this client that is no
        # more: a reply to that may still wait for the journal.
        request = server.number("e")
        self._batches[request] = sent
        asked = PublishMany(
            request, records, self._forms, number, guest.life, self._own, once, apart
        )
        server.driver.ask(guest.name, asked)

    # What became of them

    def answered(self, reply: Reply) -> None:
        """What became of batches of events."""
        guest, server = self._guest, self._server
        batches = self._batches.pop(reply.request, None)
        if batches is None:
            return  # It was asked on an earlier connection of this client.
        self.published += reply.events
        server.counters.published += reply.events
        server.counters.refused += reply.denied
        if server.limits.rate:
            self._pace(reply.events)
        refused = reply.refused
        if refused is None and reply.came != sum(batch.count for batch in batches):
            refused = FrameRefused("events", "as many as the batch says", f"{reply.came}")
        if refused is not None:
            for batch in batches:
                number = batch.whole.request if batch.whole is not None else batch.request
                if number:
                    guest.send_reply(refusal(number, refused))
            guest.goodbye(str(refused), again=False)
            guest.connection.close(str(refused))
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
                guest.reply(whole.request, whole.refusals.said())

    def _pace(self, events: int) -> None:
        """Hold it back if it is faster than it may be, until it is not."""
        connection, loop = self._guest.connection, self._server.loop
        rate, now = self._server.limits.rate, loop.time()
        self._tokens = min(rate, self._tokens + (now - self._filled) * rate) - events
        self._filled = now
        if self._tokens >= 0:
            connection.release(RATE)
        elif not self._is_paced:
            self._is_paced = True
            connection.hold(RATE)
            loop.call_later(-self._tokens / rate, self._pace_again)

    def _pace_again(self) -> None:
        self._is_paced = False
        self._pace(0)
