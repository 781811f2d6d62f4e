"""How are the effects of a broker performed on sockets and a disk?

In their order, and those behind a `Store` only once it is committed: the journal takes all that
waits in one transaction, in a thread of its own, while the broker goes on. Everything that is to be
done meanwhile waits in a row behind it. Two things do not wait. What subscriptions are told that
are not durable: nobody can rely on it beyond the connection by which it comes. And timers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from driftline.broker.effects import (
    Deliver,
    DeliverMany,
    Effect,
    Reply,
    SendBytes,
    Store,
    WakeAt,
)
from driftline.broker.links import Role
from driftline.broker.requests import Request
from driftline.broker.station import Station
from driftline.net.clock import BrokerClock
from driftline.net.journal.group import GroupCommit

NEVER = 1 << 62


class World(Protocol):
    """Where the effects of a broker end: connections and links."""

    def send(self, link: str, data: bytes) -> None:
        """Put bytes on a link, if it is up."""

    def deliver(self, deliver: Deliver) -> None:
        """Tell a party."""

    def deliver_many(self, deliver: DeliverMany) -> None:
        """Tell parties."""

    def reply(self, reply: Reply) -> None:
        """Tell a party what became of its request."""

    def is_passing(self, party: str) -> bool:
        """Is it a party of which nothing survives its connection?"""


class Driver:
    """A station on a loop. Everything happens on the loop's thread but commits."""

    def __init__(
        self,
        station: Station,
        commits: GroupCommit | None,
        world: World,
        clock: BrokerClock,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.station = station
        self.clock = clock
        self._commits = commits
        self._world = world
        self._loop = loop
        self._submitted = 0
        self._committed = 0
        self._todo: deque[Effect] = deque()
        self._performing = False
        self._behind: deque[tuple[int, Effect]] = deque()
        self._wakes = NEVER
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    # What happens

    def begin(self) -> None:
        """The first thing to do."""
        self._do(self.station.begin)

    def ask(self, party: str, asked: Request) -> None:
        """A party asks for something."""
        self.perform(self.station.ask(party, asked, self.clock.now()))

    def receive(self, link: str, data: bytes) -> None:
        """Whole frames came on a link."""
        self.perform(self.station.receive(link, data, self.clock.now()))

    def connect(self, link: str, role: Role) -> None:
        """There is a link, up or not."""
        self.perform(self.station.connect(link, role, self.clock.now()))

    def disconnect(self, link: str) -> None:
        """There is no such link any more."""
        self.perform(self.station.disconnect(link, self.clock.now()))

    def retry(self, link: str) -> None:
        """A link is up again: what was lost on it is said anew without waiting."""
        self.perform(self.station.retry(link, self.clock.now()))

    def lost(self, ids: list[str]) -> None:
        """Something was not told to these subscriptions."""
        self.perform(self.station.lost(ids, self.clock.now()))

    def _do(self, what: Callable[[int], list[Effect]]) -> None:
        self.perform(what(self.clock.now()))

    # Effects

    def perform(self, effects: list[Effect]) -> None:
        """Do all this, in order, as far as it need not wait.

        What one effect leads to comes behind all that is to be done already: frames of a link, and
        what is stored, must not overtake one another.
        """
        self._todo.extend(effects)
        if not self._performing:
            self._go_on()

    def _go_on(self) -> None:
        self._performing = True
        try:
            while self._behind and self._behind[0][0] <= self._committed:
                self._one(self._behind.popleft()[1])
            while self._todo:
                effect = self._todo.popleft()
                if isinstance(effect, Store):
                    self._store(effect)
                elif self._submitted == self._committed or self._is_free(effect):
                    self._one(effect)
                else:
                    self._behind.append((self._submitted, effect))
        finally:
            self._performing = False

    def _is_free(self, effect: Effect) -> bool:
        """Need it not wait for what is being stored?"""
        if isinstance(effect, DeliverMany):
            return not effect.kept
        if isinstance(effect, Deliver):
            return self._world.is_passing(effect.party)
        return isinstance(effect, WakeAt)

    def _store(self, store: Store) -> None:
        if self._commits is None:
            return
        self._submitted += 1
        self._commits.submit([store.values], partial(self._hand_over, self._submitted))

    def _hand_over(self, number: int, problem: BaseException | None) -> None:
        """From the journal's thread: it is committed, or why not."""
        self._loop.call_soon_threadsafe(self._done, number, problem)

    def _done(self, number: int, problem: BaseException | None) -> None:
        if self._closed:
            return
        if problem is not None:
            return  # It is tried again; whoever opened the journal is told of the trouble.
        self._committed = number
        self._go_on()

    @property
    def waiting(self) -> int:
        """How many effects wait for a commit."""
        return len(self._behind)

    def _one(self, effect: Effect) -> None:
        if isinstance(effect, DeliverMany):
            self._world.deliver_many(effect)
        elif isinstance(effect, Reply):
            self._world.reply(effect)
        elif isinstance(effect, SendBytes):
            self._world.send(effect.peer, effect.data)
        elif isinstance(effect, Deliver):
            self._world.deliver(effect)
        elif isinstance(effect, WakeAt):
            self._wake_at(effect.time)
        # No `Poll` comes: clients say what the environment is, and are not asked for it.

    # Time

    def _wake_at(self, time: int) -> None:
        if time >= self._wakes or self._closed:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wakes = time
        delay = max(0, time - self.clock.now()) / 1e6
        self._timer = self._loop.call_later(delay, self._wake)

    def _wake(self) -> None:
        self._wakes, self._timer = NEVER, None
        self._do(self.station.wake)

    def close(self) -> None:
        """Nothing happens any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._behind.clear()
        self._todo.clear()
