"""What has a client published that is not acknowledged yet?

Events that are published in one turn of the loop go out together. They are counted, and kept until
the broker has acknowledged them: when the connection was lost they are sent again under the same
numbers, and a broker that had them passes them over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from driftline.errors import DriftlineError, InvalidValue
from driftline.model.event import Event
from driftline.wire.asking import Reply, encode_form, problem_of
from driftline.wire.compact import write_record
from driftline.wire.forms import FORMS_SAID, NO_FORM, Form, form_of
from driftline.wire.limits import ATTRIBUTES_MAX
from driftline.wire.publishing import HEAD, apart_head, batch, refusals_of
from driftline.wire.stream import PAYLOAD_BYTES_MAX, Kind, frame

BATCH_BYTES = 1 << 17
UNANSWERED_BYTES = 1 << 23
"""So much may be on its way; who publishes more waits."""
FORM_BYTES_MAX = 1 << 15
"""Longer ones go with each event: no broker would remember them for all."""


@dataclass(slots=True)
class _Batch:
    """Events that go out together, from this number on, and who waits for what becomes of them."""

    number: int
    once: bool = False
    apart: str = ""
    records: list[bytes] = field(default_factory=list)
    waiting: list[asyncio.Future[None]] = field(default_factory=list)
    size: int = 0


def _payload(request: int, one: _Batch) -> bytes:
    return batch(request, len(one.records), one.number, b"".join(one.records))


class Publisher:
    """What goes out, in order. `send` puts a frame on the connection, `count` numbers requests."""

    def __init__(self, send: Callable[[bytes], None], count: Callable[[], int]) -> None:
        self._send = send
        self._count = count
        self._loop = asyncio.get_running_loop()
        self._next = 1
        self._open: _Batch | None = None
        self._unanswered: dict[int, _Batch] = {}
        self._bytes = 0
        self._room = asyncio.Event()
        self._room.set()
        self._forms: dict[Form, int] = {}
        self._up = False
        self._room_bytes = PAYLOAD_BYTES_MAX - HEAD.size
        self._attributes_most = ATTRIBUTES_MAX

    @property
    def is_idle(self) -> bool:
        """Is nothing waiting to be acknowledged?"""
        return self._open is None and not self._unanswered

    async def room(self) -> None:
        """Wait until more may be published."""
        await self._room.wait()

    def publish(self, event: Event, *, once: bool = False, apart: str = "") -> asyncio.Future[None]:
        """Publish an event; the future says what became of it."""
        if once and (event.source is None or event.id is None):
            wanted = "a source and an id, to be published once"
            raise InvalidValue("event", wanted, f"{event.source!r} and {event.id!r}")
        form = form_of(event)
        number = self._forms.get(form)
        if number is None:
            number = self._new_form(form)
        # What cannot be said is refused here.
        record = write_record(event, number, form)
        size = len(record)
        room = self._room_bytes - (len(apart_head(apart)) if apart else 0)
        if size > room:
            raise InvalidValue("event", f"at most {room} bytes", f"{size}")
        one = self._open
        if one is not None and ((one.once, one.apart) != (once, apart) or one.size + size > room):
            self._flush()
        if self._open is None:
            self._open = _Batch(self._next, once, apart)
            self._loop.call_soon(self._flush)
        one = self._open
        done: asyncio.Future[None] = self._loop.create_future()
        one.waiting.append(done)
        one.records.append(record)
        one.size += size
        self._next += 1
        self._bytes += size
        if self._bytes > UNANSWERED_BYTES:
            self._room.clear()
        if one.size >= BATCH_BYTES:
            self._flush()
        return done

    def _flush(self) -> None:
        one, self._open = self._open, None
        if one is None:
            return
        request = self._count()
        self._unanswered[request] = one
        if self._up:
            self._put(request, one)

    def _put(self, request: int, one: _Batch) -> None:
        if one.apart:
            self._send(frame(Kind.APART, apart_head(one.apart), _payload(request, one)))
            return
        kind = Kind.ONCE if one.once else Kind.EVENTS
        self._send(frame(kind, _payload(request, one)))

    def _new_form(self, form: Form) -> int:
        if len(self._forms) >= FORMS_SAID or len(form.fields) > self._attributes_most:
            return NO_FORM
        number = len(self._forms)
        said = encode_form(number, form)
        if len(said) > min(FORM_BYTES_MAX, self._room_bytes):
            return NO_FORM
        self._forms[form] = number
        if self._up:
            self._send(frame(Kind.FORM, said))
        return number

    def connected(self, payload_bytes: int, attributes: int) -> None:
        """There is a connection on which nothing has been said, to a broker that takes so much in
        one piece, and so many attributes in a form.
        """
        self._room_bytes = payload_bytes - HEAD.size
        self._attributes_most = attributes
        self._up = True
        for form, number in self._forms.items():
            self._send(frame(Kind.FORM, encode_form(number, form)))
        for request, one in self._unanswered.items():
            self._put(request, one)

    def disconnected(self) -> None:
        """The connection is lost."""
        self._up = False

    def answered(self, reply: Reply) -> bool:
        """A reply came; was it to something that was published?"""
        one = self._unanswered.pop(reply.request, None)
        if one is None:
            return False
        self._bytes -= one.size
        if self._bytes <= UNANSWERED_BYTES:
            self._room.set()
        refused = problem_of(reply.error, reply.facts) if reply.error else None
        problems = refusals_of(reply.value)
        for at, done in enumerate(one.waiting):
            problem = refused or problems.get(at)
            if done.done():
                continue
            if problem is None:
                done.set_result(None)
            else:
                done.set_exception(problem)
        return True

    def ended(self, problem: DriftlineError) -> None:
        """Nothing will be acknowledged any more."""
        waiting = [*self._unanswered.values(), *([self._open] if self._open else [])]
        self._unanswered.clear()
        self._open = None
        self._room.set()
        for one in waiting:
            for done in one.waiting:
                if not done.done():
                    done.set_exception(problem)
                    done.exception()  # Nobody may be waiting.
