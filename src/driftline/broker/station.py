"""A broker on links that lose, repeat, delay and garble what is sent on them.

Each link has a session (see `session`). When one begins, the broker says everything on it anew; an
acknowledgement goes out behind the store of what is acknowledged, so that nothing a neighbour has
forgotten can be lost here by a crash.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from driftline.broker.broker import COUNTED_BITS, MOMENT_SHIFT, Broker
from driftline.broker.effects import Effect, Key, Reopen, Send, SendBytes, SendParcels, WakeAt
from driftline.broker.joining import Joinable, groups, joined, subject_of
from driftline.broker.links import Role
from driftline.broker.requests import Request
from driftline.broker.session import NEVER, Heard, Session
from driftline.broker.settings import Settings
from driftline.errors import FrameRefused, InvalidValue, NotSupported
from driftline.model.message import Control, Home, Interest, Offer, Parcel
from driftline.wire.bundles import Bundle
from driftline.wire.codec import decode_control, encode_control
from driftline.wire.events import join
from driftline.wire.framing import PAYLOAD_BYTES_MAX, Decoder, Frame, FrameKind, encode_frame
from driftline.wire.records import encode_parcel

_BATCH_BYTES = 1 << 18


class _Link:
    """A session, which of its payloads carry events up to which position, and what waits.

    `told` is the last payload that told something of interest. While it is on its way, what more is
    to be told waits, by its subject.
    """

    __slots__ = ("_waiting", "parcels", "role", "said", "session", "told")

    def __init__(self, role: Role, number: int) -> None:
        self.role = role
        self.session = Session(number)
        self.begin()

    def reopen(self, number: int) -> None:
        """Begin another session; what this one was to carry is given up."""
        self.session = Session(number)
        self.begin()

    def begin(self) -> None:
        """A session has begun; all that waited will be said anew."""
        self.said = 0
        self.told = 0
        self.parcels: deque[tuple[int, int]] = deque()
        self._waiting: dict[str, list[Joinable]] = {}

    def wait(self, subject: str, message: Joinable) -> None:
        """Let a message wait with those on its subject."""
        self._waiting.setdefault(subject, []).append(message)

    def rest(self) -> list[list[Joinable]]:
        """What waited until now, put together as far as it may be."""
        waited = [group for messages in self._waiting.values() for group in groups(messages)]
        self._waiting.clear()
        return waited


class Station:
    """What a driver holds: frames, requests and time in, effects out."""

    def __init__(
        self,
        name: str,
        incarnation: int = 1,
        settings: Settings | None = None,
        stored: Mapping[Key, object] | None = None,
        moment: int = 0,
    ) -> None:
        self.broker = Broker(name, incarnation, settings, stored, moment)
        self._links: dict[str, _Link] = {}
        self._number = incarnation << COUNTED_BITS | moment << MOMENT_SHIFT
        self.refused = 0

    def begin(self, now: int) -> list[Effect]:
        """The first thing to do; after a crash the links are opened again."""
        effects = self.broker.begin(now)
        for link, role in self.broker.roles().items():
            effects += self.connect(link, role, now)
        return effects

    def connect(self, link: str, role: Role, now: int) -> list[Effect]:
        """There is a link; call out on it until somebody answers."""
        self._number += 1
        self.broker.expect(link, role)
        opened = self._links[link] = _Link(role, self._number)
        return self._and_wake(_sent(link, opened.session.wake(now)), now)

    def disconnect(self, link: str, now: int) -> list[Effect]:
        """There is no such link any more."""
        self._links.pop(link, None)
        self.broker.expect(link, None)
        effects = self.broker.disconnect(link, now) if link in self.broker.roles() else []
        return self._and_wake(self._carried(effects, now), now)

    def retry(self, link: str, now: int) -> list[Effect]:
        """A link carries something again: what may be lost on it need not wait for its time."""
        on = self._links.get(link)
        return [] if on is None else self._and_wake(_sent(link, on.session.retry(now)), now)

    def receive(self, link: str, data: bytes, now: int) -> list[Effect]:
        """Whole frames came on a link. What cannot be read is as good as lost: it will come again.

        A driver that gets a stream cuts it into frames with a decoder of its own, and closes the
        connection when that refuses.
        """
        on = self._links.get(link)
        if on is None:
            return []
        effects: list[Effect] = []
        try:
            frames = Decoder().feed(data)
        except FrameRefused:
            self.refused += 1
            frames = []
        for frame in frames:
            effects += self._frame(link, on, frame, now)
        return self._and_wake(effects, now)

    def _frame(self, link: str, on: _Link, frame: Frame, now: int) -> list[Effect]:
        session = on.session
        heard, frames = session.receive(frame, now)
        effects = _sent(link, frames)
        if heard.began:
            on.begin()
            effects += self._carried(self.broker.connect(link, on.role, now), now)
        effects += self._acknowledged(link, on, heard, now)
        if heard.said is not None:
            try:
                effects += self._carried(self._said(link, heard.said, now), now)
            except (FrameRefused, NotSupported):
                # It came unharmed and says nothing we know: there is no use in hearing it again.
                self.refused += 1
            session.took()
        # What it led to may have ended the session.
        if heard.answer and on.session is session:
            effects += _sent(link, [session.acknowledge()])
        return effects

    def _said(self, link: str, frame: Frame, now: int) -> list[Effect]:
        if frame.kind is FrameKind.EVENTS:
            return self.broker.handle_batch(frame.payload, link, now)
        if frame.kind is FrameKind.BUNDLE:
            return self.broker.handle_bundle(frame.payload, link, now)
        return self.broker.handle(decode_control(frame.payload), link, now)

    def _acknowledged(self, link: str, on: _Link, heard: Heard, now: int) -> list[Effect]:
        arrived = 0
        while on.parcels and on.parcels[0][0] <= heard.acknowledged:
            arrived = on.parcels.popleft()[1]
        effects = self.broker.delivered(link, arrived) if arrived else []
        if on.told <= heard.acknowledged:
            effects += self._flush(link, on, now)
        return effects

    def ask(self, party: str, asked: Request, now: int) -> list[Effect]:
        """A party asks for something."""
        return self._and_wake(self._carried(self.broker.handle(asked, party, now), now), now)

    def lost(self, ids: list[str], now: int) -> list[Effect]:
        """Somebody could not be told all that these subscriptions had to tell."""
        return self._and_wake(self._carried(self.broker.missed(ids, now), now), now)

    def wake(self, now: int) -> list[Effect]:
        """Time has passed."""
        effects = self._carried(self.broker.wake(now), now)
        for link, on in self._links.items():
            effects += _sent(link, on.session.wake(now))
        return self._and_wake(effects, now)

    def _carried(self, effects: list[Effect], now: int) -> list[Effect]:
        """The effects, with what is sent put into frames."""
        carried: list[Effect] = []
        for effect in effects:
            if not isinstance(effect, Send | SendParcels | Reopen):
                carried.append(effect)
                continue
            on = self._links.get(effect.peer)
            if on is None or not on.session.up:
                continue  # All of it will be said when a session begins.
            if isinstance(effect, Reopen):
                self._number += 1
                on.reopen(self._number)
                carried += _sent(effect.peer, on.session.wake(now))
                continue
            if isinstance(effect, Send):
                carried += self._tell(effect.peer, on, effect.message, now)
                continue
            refuse = partial(self._refuse, effect.peer)
            for last, kind, payload in _batches(effect.parcels, refuse):
                on.said += 1
                on.parcels.append((on.said, last))
                carried += _sent(effect.peer, on.session.send(kind, payload, now))
        return carried

    def _refuse(self, link: str, position: int) -> None:
        """What should have been refused where it entered must not be tried for ever."""
        self.refused += 1
        self.broker.outbox.refuse(link, position)

    def _tell(self, link: str, on: _Link, message: Control, now: int) -> list[Effect]:
        """Say something on a link, now or together with what follows."""
        subject = subject_of(message)
        if subject is None:
            # It may be about what waits, so it stays behind that.
            return [*self._flush(link, on, now), *self._put(link, on, message, now)]
        if on.told > on.session.acknowledged:
            assert isinstance(message, Interest | Home)
            on.wait(subject, message)
            return []
        return self._put(link, on, message, now)

    def _flush(self, link: str, on: _Link, now: int) -> list[Effect]:
        """Say all that waited."""
        effects: list[Effect] = []
        for group in on.rest():
            effects += self._put(link, on, joined(group), now)
        return effects

    def _put(self, link: str, on: _Link, message: Control, now: int) -> list[Effect]:
        effects: list[Effect] = []
        for payload in _payloads(message):
            on.said += 1
            if subject_of(message) is not None:
                on.told = on.said
            effects += _sent(link, on.session.send(FrameKind.CONTROL, payload, now))
        return effects

    def _and_wake(self, effects: list[Effect], now: int) -> list[Effect]:
        sent = sum(len(one.data) for one in effects if isinstance(one, SendBytes))
        if sent:
            self.broker.environment.sent(sent, now)
        times = (on.session.wake_at() for on in self._links.values())
        soonest = min((self.broker.wake_at(), *times))
        if soonest < NEVER:
            effects.append(WakeAt(soonest))
        return effects


def _payloads(message: Control) -> Iterator[bytes]:
    """A message as bytes; what is too long for a frame is said in several messages.

    First what is added and at last what is removed, so that nothing is missed in between.
    """
    try:
        yield encode_control(message)
        return
    except InvalidValue:
        if not isinstance(message, Interest | Offer):
            raise
        halves = _halves(message)
        if halves is None:
            raise
    first, last = halves
    yield from _payloads(first)
    yield from _payloads(last)


def _halves(message: Interest | Offer) -> tuple[Control, Control] | None:
    for name in ("added", "sequences", "updates", "removed"):
        entries: Any = getattr(message, name, ())
        if len(entries) < 2:
            continue
        half = len(entries) // 2
        if name == "removed":
            last = type(message)(removed=entries[half:], reset=message.reset)
            return replace(message, removed=entries[:half], reset=False), last
        items = list(entries.items())
        first: dict[str, Any] = {name: dict(items[:half])}
        rest: dict[str, Any] = {name: dict(items[half:])}
        return type(message)(**first), replace(message, **rest)
    return None


def _batches(
    parcels: Iterable[tuple[int, Parcel | Bundle]], refuse: Callable[[int], None]
) -> Iterator[tuple[int, FrameKind, bytes]]:
    """The events in batches of a moderate size, each with the position of its last.

    What fits no frame is refused, by its position.
    """
    records: list[bytes] = []
    size, last = 0, 0
    for position, parcel in parcels:
        if isinstance(parcel, Bundle):
            if records:
                yield last, FrameKind.EVENTS, join(records)
                records, size = [], 0
            if len(parcel.payload) > PAYLOAD_BYTES_MAX:
                refuse(position)
            else:
                yield position, FrameKind.BUNDLE, parcel.payload
            continue
        try:
            record = encode_parcel(parcel)
        except InvalidValue:
            refuse(position)
            continue
        if records and size + len(record) > _BATCH_BYTES:
            yield last, FrameKind.EVENTS, join(records)
            records, size = [], 0
        records.append(record)
        size, last = size + len(record), position
    if records:
        yield last, FrameKind.EVENTS, join(records)


def _sent(link: str, frames: list[Frame]) -> list[Effect]:
    return [SendBytes(link, encode_frame(frame)) for frame in frames]
