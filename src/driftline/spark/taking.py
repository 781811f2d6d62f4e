"""How is what a broker keeps for us taken in order, and let go only when it is safe?

It is told with numbers, and kept until it is said up to which number it was dealt with: so what was
taken and lost by a crash is told again. Whoever takes says first up to which number it has stored
what came before.

What may be missing is said: the broker had no room for it, or has lost the subscription.
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType

from driftline.client.proof import authority_context, token
from driftline.client.waiting import WaitingClient
from driftline.connecting import connect
from driftline.model.event import ENVELOPE, Event
from driftline.model.notification import Notification, NotificationKind
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription

WITHIN = 10.0
"""So many seconds a broker has to answer for the first time."""


def reach(address: str, authority: str | None) -> WaitingClient:
    """A connection to a broker that lasts until it is left; it is made again when it is lost."""
    context: ssl.SSLContext | None = authority_context(authority)
    # Asked for anew when the last has expired: a pipeline runs for longer than tokens do.
    made = connect(address, token=token, tls=context, within=WITHIN)
    return WaitingClient(made.open, made.close).__enter__()


@dataclass(frozen=True, slots=True)
class Taken:
    """A number, and the event that it has, if it has one; is something missing before it?"""

    number: int
    event: Event | None
    gap: bool = False


class Taking:
    """A connection to a broker, and the durable subscription there that it is attached to."""

    def __init__(self, address: str, authority: str | None = None) -> None:
        self._client = reach(address, authority)
        self.broker = self._client.broker
        """What the broker is called: numbers are its own, wherever it is."""
        self.kept_up_to = 0
        """The number of the last that was kept when it was attached to; 0: nothing was."""
        self._come: deque[Taken] = deque()
        self.reached = 0
        """The number of the last that was told."""
        self._gap = False
        self._whole = True

    def attach(self, name: str, standing: Standing, after: int = 0) -> None:
        """Be told from behind a number on; all up to it is stored."""
        assert isinstance(standing.statement, Subscription)
        self._whole = not standing.statement.columns
        text, params = str(standing.statement), dict(standing.params)
        self._told = self._client.subscribe(text, params, durable=name, after=after, ack="manual")
        self.kept_up_to = self._told.kept_up_to

    def take(self, most: int, within: float = 0.0) -> list[Taken]:
        """What has come, up to so many; waits for it if nothing has."""
        self._look()
        if not self._come and within > 0:
            try:
                self._put(self._told.next(within))
            except TimeoutError:
                return []
            self._look()
        return [self._come.popleft() for _ in range(min(most, len(self._come)))]

    def take_up_to(self, number: int, most: int, within: float = 30.0) -> list[Taken]:
        """The next that are told, up to a number and so many, when they are there.

        `TimeoutError` if the one of this number, or one behind it, does not come in time.
        """
        while True:
            self._look()
            there = sum(one.number <= number for one in self._come)
            # Numbers have holes: that nothing more comes up to it is known by what is behind it.
            if there >= most or self.reached >= number:
                return [self._come.popleft() for _ in range(min(most, there))]
            self._put(self._told.next(within))

    def acknowledge(self, number: int) -> None:
        """All up to here is stored: the broker need not keep it."""
        self._told.ack(Notification(NotificationKind.EVENT, number=number))

    def _look(self) -> None:
        for told in self._told.pending():
            self._put(told)

    def _put(self, told: Notification) -> None:
        self._gap = self._gap or told.kind is NotificationKind.GAP
        if not told.number:
            return  # It is said of what comes next.
        event = told.event
        if event is not None and not self._whole:
            event = _selected(event, told.values)
        self._come.append(Taken(told.number, event, self._gap))
        self.reached = told.number
        self._gap = False

    def close(self) -> None:
        """Leave; the subscription goes on."""
        self._client.__exit__(None, None, None)

    def __enter__(self) -> Taking:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _selected(event: Event, values: Mapping[str, object]) -> Event:
    """An event of what was selected; its envelope is its own."""
    attributes = {name: value for name, value in values.items() if name not in ENVELOPE}
    rest = {"time": event.time, "id": event.id, "source": event.source, "entered": event.entered}
    return Event(event.type, attributes, **rest)  # type: ignore[arg-type]
