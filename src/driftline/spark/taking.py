"""How is what a broker keeps for us taken in order, and let go only when it is safe?

It is told with numbers, and kept until it is said up to which number it was dealt with: so what was
taken and lost by a crash is told again. Whoever takes says first up to which number it has stored
what came before.

What may be missing is said: the broker had no room for it, or has lost the subscription. One that
is lost is not made again before whoever takes has noted that: nobody else would ever know. One that
is there and tells us no longer is somebody else's by now, and that is an error.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from driftline.client.durables import Durable
from driftline.client.proof import authority_context, token
from driftline.client.waiting import WaitingClient, WaitingSubscription
from driftline.connecting import connect
from driftline.errors import DriftlineError, InvalidValue, PipelineFailed, Unreachable
from driftline.model.event import ENVELOPE, Event
from driftline.model.notification import Notification, NotificationKind
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription

log = logging.getLogger(__name__)

WITHIN = 10.0
"""So many seconds a broker has to answer for the first time."""
LOOK_EVERY = 30.0
"""So many seconds nothing comes before it is asked whether anything is to be expected."""
ANSWER = 5.0


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
        self._address = address
        self._client = reach(address, authority)
        self.broker = self._client.broker
        """What the broker is called: numbers are its own, wherever it is."""
        self.kept_up_to = 0
        """The number of the last that was kept when it was attached to; 0: nothing was."""
        self.is_lost = False
        """Does the broker not know the subscription any more? Then nothing comes until `renew`."""
        self.reached = 0
        """The number of the last that was told."""
        self._come: deque[Taken] = deque()
        self._gap = False
        self._whole = True
        self._told: WaitingSubscription | None = None
        self._behind = 0
        self._look_at = 0.0
        self._is_suspended = False

    @property
    def mark(self) -> str:
        """By what the subscription is known that no other ever was; empty: it is lost."""
        return "" if self._told is None else self._told.mark

    def attach(self, name: str, standing: Standing, after: int = 0, *, known: bool = False) -> None:
        """Be told from behind a number on; all up to it is stored.

        One that is `known` was there before: if it is no more, it is lost.
        """
        assert isinstance(standing.statement, Subscription)
        self._name, self._standing = name, standing
        self._whole = not standing.statement.columns
        try:
            is_there = not known or self._found() is not None
        except TimeoutError:
            raise Unreachable(self._address, f"no answer within {ANSWER:g} s") from None
        if is_there:
            self._subscribe(after)
        else:
            self._lost()

    def renew(self, behind: int) -> None:
        """Make one again that was lost; what comes is behind this number.

        That something is missing before it was to be noted before, so it is not said again.
        """
        self.is_lost = False
        self.expect(behind)
        self._subscribe(0)

    def expect(self, behind: int) -> None:
        """It is another than the one whose number this is: what comes is behind it."""
        self._behind = behind

    def _subscribe(self, after: int) -> None:
        text, params = str(self._standing.statement), dict(self._standing.params)
        self._told = self._client.subscribe(
            text, params, durable=self._name, after=after, ack="manual", renew=False
        )
        self.kept_up_to = self._told.kept_up_to
        self._look_at = time.monotonic() + LOOK_EVERY

    def _found(self) -> Durable | None:
        """What the broker says of the subscription; None: there is none.

        `TimeoutError` if it does not say.
        """
        try:
            return self._client.durables.get(self._name, ANSWER)
        except InvalidValue:
            return None

    def _lost(self) -> None:
        self._told = None
        self.kept_up_to = 0
        self.is_lost = True

    def take(self, most: int) -> list[Taken]:
        """What has come, up to so many."""
        self._look()
        if not self._come and self._told is not None:
            # Who is busy, or has just gone, is asked again.
            with suppress(TimeoutError):
                if not self._told.active:
                    self._ended()
                elif time.monotonic() >= self._look_at:
                    self._look_after()
        return [self._come.popleft() for _ in range(min(most, len(self._come)))]

    def take_up_to(self, number: int, most: int, within: float = 30.0) -> list[Taken]:
        """The next that are told, up to a number and so many, when they are there; what there is if
        it is lost.

        `TimeoutError` if the one of this number, or one behind it, does not come in time.
        """
        while True:
            self._look()
            there = sum(one.number <= number for one in self._come)
            # Numbers have holes: that nothing more comes up to it is known by what is behind it.
            if there >= most or self.reached >= number or self._told is None:
                return [self._come.popleft() for _ in range(min(most, there))]
            if self._told.active:
                try:
                    self._put(self._told.next(within))
                    continue
                except (DriftlineError, StopAsyncIteration):
                    if self._told.active:
                        raise
            self._ended()

    def _ended(self) -> None:
        """It is lost, or else this raises why nothing comes any more."""
        assert self._told is not None
        problem = self._told.problem
        is_gone = isinstance(problem, InvalidValue) and problem.where == "durable"
        # By the broker: it was ended, or another has it. Who it may be is to be asked for.
        if is_gone or (isinstance(problem, Unreachable) and self._found() is None):
            self._lost()
            return
        if isinstance(problem, Unreachable):
            why = f"{self._name} is told to us no longer: {problem.why}"
            raise PipelineFailed(f"reading from {self._address}", why)
        raise problem or PipelineFailed(f"reading from {self._address}", f"{self._name} has ended")

    def _look_after(self) -> None:
        """Nothing has come for long: say so if nothing can."""
        self._look_at = time.monotonic() + LOOK_EVERY
        if not self._client.is_connected:
            return
        found = self._found()
        if found is None:
            self._lost()
            return
        if found.suspended and not self._is_suspended:
            said = "%s is suspended at %s: nothing comes until it is resumed"
            log.warning(said, self._name, self._address)
        self._is_suspended = found.suspended

    def acknowledge(self, number: int) -> None:
        """All up to here is stored: the broker need not keep it."""
        # What another had that was called the same is no number of this one.
        if self._told is not None and number > self._behind:
            self._told.ack(Notification(NotificationKind.EVENT, number=number))

    def _look(self) -> None:
        if self._told is not None:
            for told in self._told.pending():
                self._put(told)

    def _put(self, told: Notification) -> None:
        self._gap = self._gap or told.kind is NotificationKind.GAP
        if not told.number or told.more:
            return  # It is said of what comes next, which has its number if it has one.
        if told.number <= self._behind:
            why = f"number {told.number} came behind {self._behind}: it has lost its journal, and"
            why += " its clock was set back; take another name for the subscription"
            raise PipelineFailed(f"reading from {self._address}", why)
        self._look_at = time.monotonic() + LOOK_EVERY
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
