"""What becomes of what a client is not told at once?

Its connection does not take it just now, or a subscription wants it less often. It waits in queues
(`broker.queue`), each subscription's by its own policy, and goes out when it can, a round in each
turn of the loop: who reads again after long does not let others wait. A view that has missed
something is told anew what it is about.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from driftline.broker.items import Counts, Item
from driftline.broker.items import Told as Due
from driftline.broker.policy import Overflow, Policy
from driftline.broker.queue import Outgoing
from driftline.broker.session import NEVER
from driftline.net.telling import Told, framed, gap
from driftline.wire.notices import marks_of, read_notice, remarked
from driftline.wire.stream import Kind, frame

if TYPE_CHECKING:
    from driftline.net.guest import Guest

_NOTICE, _TOLD = b"N", b"T"
_ROUND = 1 << 16
"""So many bytes of what waited go out in one turn."""
_ANEW_FIRST, _ANEW_LAST, _ANEW_CALM = 0.5, 60.0, 10.0
"""Seconds from one time that a view is told anew to the next, if it keeps missing something."""
_USUAL = Policy()


class Behind:
    """What waits for one client."""

    __slots__ = (
        "_anew",
        "_armed",
        "_guest",
        "_intervals",
        "_keyed",
        "_missed",
        "_out",
        "_over",
        "_policies",
        "_waking",
    )

    def __init__(self, guest: Guest) -> None:
        server = guest.server
        self._guest = guest
        self._out = Outgoing(server.limits.queue_bytes, losses=server.counters.losses)
        self._over: deque[Item] = deque()
        """What came for somebody who blocks when there was no room left."""
        self._policies: dict[int, Policy] = {}
        """Of those who want it otherwise than usual, by their handles."""
        self._intervals = self._keyed = 0
        """How many of these have an interval, and how many tell apart by an attribute."""
        self._missed: set[int] = set()
        self._anew: dict[int, tuple[float, float]] = {}
        """Views that were told anew: when, and how long to wait with it the next time."""
        self._waking = NEVER
        self._armed = False

    def add(self, handle: int, policy: Policy) -> None:
        """A subscription is told by a policy from now on."""
        self._out.add(handle, policy)
        if policy != _USUAL:
            self._policies[handle] = policy
            self._intervals += not policy.plain
            self._keyed += policy.key is not None

    def forget(self, handle: int) -> None:
        """A subscription is no more, and what waits for it is forgotten. A durable one was never
        here.
        """
        self._anew.pop(handle, None)
        if handle in self._out:
            self._out.remove(handle)
        policy = self._policies.pop(handle, None)
        if policy is not None:
            self._intervals -= not policy.plain
            self._keyed -= policy.key is not None

    @property
    def is_empty(self) -> bool:
        """Does nothing wait, and need nothing wait, unless the connection is stuffed?"""
        return not (self._intervals or self._out.pending or self._over)

    @property
    def is_full(self) -> bool:
        """Must publishers be held back?"""
        return self._out.blocked or bool(self._over)

    @property
    def pending(self) -> int:
        """How many notifications wait, counted for each subscription."""
        return self._out.pending

    @property
    def pending_bytes(self) -> int:
        """How many bytes wait."""
        return self._out.pending_bytes

    def blocks(self, handle: int) -> bool:
        """Does a subscription let publishers wait rather than lose something?"""
        policy = self._policies.get(handle)
        return policy is not None and policy.overflow is Overflow.BLOCK

    @property
    def policies(self) -> int:
        """How many subscriptions want to be told otherwise than usual."""
        return len(self._policies)

    def counts(self, handle: int) -> tuple[Counts, int]:
        """What became of what was offered to a subscription, and how much more came than may wait;
        KeyError if it is unknown.
        """
        return self._out.counts(handle), sum(handle in item.handles for item in self._over)

    # What comes

    def offer(self, some: Iterable[Told]) -> None:
        """Let them wait, by the policies of their subscriptions."""
        out, connection, now = self._out, self._guest.connection, self._guest.server.clock.now()
        for one in some:
            if not connection.stuffed and out.bypass(one.handles):
                connection.send(frame(Kind.NOTICES, one.data) if one.is_notice else one.data)
                continue
            keys: tuple[object, ...] = ()
            if self._keyed or one.key is not None:
                keys = tuple(self._key(handle, one) for handle in one.handles)
            data = (_NOTICE if one.is_notice else _TOLD) + one.data
            item = Item(one.handles, data, 0, len(one.data), keys)
            if self._over or not out.offer(item, now):
                # Somebody who blocks is full, and publishers are held back: this they had sent
                # before.
                self._over.append(item)
            if not connection.stuffed:
                # What the connection takes is not to give way to what follows.
                self.pump()
        self.pump()

    def _key(self, handle: int, one: Told) -> object:
        """What a conflating subscription tells this apart by."""
        policy = self._policies.get(handle)
        if policy is None or policy.key is None:
            return one.key
        event = one.event
        if event is None and one.is_notice:
            event = read_notice(one.data, self._guest.server.forms.known).event
        return None if event is None else event.attributes.get(policy.key)

    # What goes

    def pump(self) -> None:
        """Send what waits, as far as the connection takes it; a round now, and more in turns."""
        server, connection = self._guest.server, self._guest.connection
        if not connection.stuffed and connection.is_open:
            now = server.clock.now()
            while self._over and self._out.offer(self._over[0], now):
                self._over.popleft()
            some = self._out.take(_ROUND, now)
            if some:
                self._send(some)
                # What was handed over may have stuffed it.
                connection.flush()
                if not connection.stuffed:
                    self._arm()
        server.holding.check_blocked(self._guest)
        self._wake_at(self._out.wake_at())
        if self._missed:
            self._rejoin()

    def _send(self, some: list[Due]) -> None:
        """Notices that follow one another go in one frame."""
        connection = self._guest.connection
        notices: list[bytes] = []

        def send_notices() -> None:
            for whole in framed(Kind.NOTICES, b"", b"".join(notices)) if notices else ():
                connection.send(whole)
            notices.clear()

        for one in some:
            for handle, lost in zip(one.handles, one.lost, strict=True):
                if lost:
                    assert isinstance(handle, int)
                    send_notices()
                    connection.send(gap(handle, lost))
                    self._guest.server.counters.gaps += 1
                    self._missed.add(handle)
            if one.item is None:
                continue
            data = one.item.data[1:]
            if one.item.data[:1] == _TOLD:
                send_notices()
                connection.send(data)
                continue
            if one.handles != one.item.handles or one.repeat:
                marks = [mark for mark in marks_of(data) if mark[0] in one.handles]
                data = remarked(data, marks, repeated=one.repeat)
            notices.append(data)
        send_notices()

    def _arm(self) -> None:
        """Go on in the next turn."""
        if not self._armed:
            self._armed = True
            self._guest.server.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._armed = False
        if self._guest.connection.is_open:
            self.pump()

    def _wake_at(self, time: int) -> None:
        if self._guest.connection.stuffed or time in (0, NEVER) or time >= self._waking:
            return
        self._waking = time
        delay = max(0, time - self._guest.server.clock.now()) / 1e6
        self._guest.server.loop.call_later(delay, self._woken)

    def _woken(self) -> None:
        self._waking = NEVER
        if self._guest.connection.is_open:
            self.pump()

    # What was missed

    def _rejoin(self) -> None:
        """Let views that have missed something be told anew what they are about.

        Not before all that waits was told: who is slow would miss some of that too. And less and
        less often: what a view is told anew may be more than its queue ever takes.
        """
        out, loop = self._out, self._guest.server.loop
        done = [one for one in self._missed if one not in out or not out.counts(one).waiting]
        self._missed.difference_update(done)
        for handle in done:
            before, delay = self._anew.get(handle, (0.0, 0.0))
            now = loop.time()
            if not delay or now - before > 2 * delay + _ANEW_CALM:
                delay = 0.0
            self._anew[handle] = now + delay, min(max(2 * delay, _ANEW_FIRST), _ANEW_LAST)
            # Behind what is being done just now.
            loop.call_later(delay, self._tell_anew, handle)

    def _tell_anew(self, handle: int) -> None:
        guest = self._guest
        if handle in guest.handles and guest.connection.is_open:
            guest.server.driver.lost([guest.handles[handle]])
