"""What leaves the broker for one notification, and by what is it known when it comes again?

A durable subscription is told things under numbers. Mostly one thing under one number; a gap, a
snapshot or a set of rows may be several, of which only the last says that the number is done with.
Each leaves by itself, as a CloudEvent, under an id that is the same however often it is sent.

    >>> from driftline.model.notification import NotificationKind
    >>> incoming = Incoming("alerts", "/b/alice")
    >>> [one.id for one in incoming.feed(Notification(NotificationKind.EVENT, number=7))]
    ['7']
    >>> incoming.feed(Notification(NotificationKind.GAP))  # It belongs to what comes next.
    []
    >>> [one.id for one in incoming.feed(Notification(NotificationKind.EVENT, number=9))]
    ['9-gap', '9']
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from driftline.language.notified import notification_event
from driftline.model.notification import Notification, NotificationKind
from driftline.model.trace import headers_of, trace_of


class Outgoing(NamedTuple):
    """One thing to be handed over."""

    id: str
    """The number that it was told under; of several things under one, all but the last have a part
    behind it."""
    number: int
    """0: it is a dead letter that is delivered again."""
    body: bytes
    """A CloudEvent, as JSON."""

    @property
    def is_last(self) -> bool:
        """Is the number done with, when this was taken?"""
        return self.id == str(self.number)

    def event(self) -> dict[str, Any]:
        """The CloudEvent."""
        found: dict[str, Any] = msgspec.json.decode(self.body)
        return found

    def trace(self) -> dict[str, str]:
        """The headers that say its trace, if it has one, for who does not read the body."""
        said = msgspec.json.decode(self.body, type=_Traced)
        # A letter may have been written long ago: what is no trace becomes no header.
        return headers_of(trace_of(said.traceparent, said.tracestate))


class _Traced(msgspec.Struct):
    """What a CloudEvent says of its trace; the rest of it is passed over."""

    traceparent: str | None = None
    tracestate: str | None = None


class Incoming:
    """Makes what leaves of what one durable subscription is told, in order."""

    def __init__(self, name: str, source: str) -> None:
        self._name = name
        self._source = source
        self._gap: Notification | None = None
        self._number = 0
        self._parts = 0

    def begin_again(self) -> None:
        """Of a number that is not done with, all parts come again, from the first on."""
        self._number = self._parts = 0

    def feed(self, told: Notification) -> list[Outgoing]:
        """What leaves for a notification; for a gap that has no number, nothing before the next."""
        if not told.number:
            self._gap = told
            return []
        if told.number != self._number:
            self._number, self._parts = told.number, 0
        found = []
        if self._gap is not None:
            found.append(self._outgoing(replace(self._gap, number=told.number), "-gap"))
            self._gap = None
        if told.more and told.kind is NotificationKind.GAP:
            # It is not counted: it may be there when it is told again, or only then.
            found.append(self._outgoing(told, "-gap"))
        elif told.more:
            self._parts += 1
            found.append(self._outgoing(told, f"-{self._parts}"))
        else:
            found.append(self._outgoing(told, ""))
        return found

    def _outgoing(self, told: Notification, part: str) -> Outgoing:
        id = f"{told.number}{part}"
        event = notification_event(told, self._name, self._source) | {"id": f"{self._name}-{id}"}
        return Outgoing(id, told.number, msgspec.json.encode(event))
