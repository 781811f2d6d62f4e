"""What does a program hold that has subscribed at a broker elsewhere?

It iterates over what it is told, moves its parameters, and ends it. What it asks for by now is
known here: after a connection was lost it is said anew, and the program is told of a gap.

A durable subscription is told everything, also what came while nobody was connected, at least once.
Asking for the next notification says that the one before was dealt with, unless `ack="manual"`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Protocol

from driftline.errors import DriftlineError, NotEffective, SubscriptionEnded, Unreachable
from driftline.language.sql import parse
from driftline.model.covering import Statement
from driftline.model.event import Event
from driftline.model.explanation import Explanation
from driftline.model.notification import Notification, NotificationKind
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription as Plain
from driftline.model.trace import is_trace
from driftline.model.value import Value
from driftline.moving.parametric.structure import added, removed, replaced
from driftline.wire import asking
from driftline.wire.asking import unpack, unpack_all
from driftline.wire.compact import read_record
from driftline.wire.notices import Notice

_EPOCHS = 64
"""So many earlier parameters are remembered: what was matched under them may still be coming."""
ACK_EVERY = 64
ACK_AFTER = 0.05


class Keeper(Protocol):
    """The client that a subscription belongs to."""

    async def _begin(self, subscription: Subscription) -> None: ...

    async def _moved(self, subscription: Subscription, asked: Any) -> Any: ...

    async def _ended(self, subscription: Subscription, *, for_good: bool) -> None: ...

    async def _explain(self, subscription: Subscription, event: Event) -> Explanation: ...

    async def _counters(self, subscription: Subscription) -> dict[str, int]: ...

    def _told_up_to(self, subscription: Subscription, number: int) -> None: ...

    def _waits(self, count: int, size: int) -> None: ...

    def _request(self) -> int: ...


class Subscription:
    """One subscription: `async with`, `async for`, `set`, `cancel`."""

    def __init__(
        self,
        keeper: Keeper,
        handle: int,
        text: str,
        standing: Standing,
        *,
        rows: bool = False,
        quietly: bool = False,
        durable: str = "",
        manual: bool = False,
        policy: Mapping[str, object] | None = None,
        within: float = 10.0,
        after: int = 0,
        as_it_is: bool = False,
        renew: bool = True,
    ) -> None:
        self._keeper = keeper
        self._handle = handle
        self._text = text
        self._standing = standing
        self._standings = {standing.epoch: standing}
        self._rows = rows
        self._quietly = quietly
        self._manual = manual
        self._policy = dict(policy or {})
        self.within = within
        """So many seconds everybody has to say that a change is in effect."""
        self._pending: deque[tuple[Notification, int]] = deque()
        """What came and was not looked at, and how many bytes it came in."""
        self._pending_size = 0
        self._news = asyncio.Event()
        self._problem: DriftlineError | None = None
        self._begun = False
        self._came = 0
        """How many things it was told."""
        self._known = False
        # The numbers of what was handed out, what was dealt with, and what the broker knows of.
        self._had = after
        self._dealt = after
        self._acked = after
        self._unacked = 0
        self._as_it_is = as_it_is
        """Is what it asks for what the broker says it does?"""
        self._renew = renew
        """Is a durable one made again that the broker has lost?"""
        self._early: list[Callable[[], None]] = []
        """What came before it was known what it asks for, to be put in then."""
        self._acking: asyncio.TimerHandle | None = None
        self.durable = durable
        self.active = True
        self.begun_again = 0
        """How often a durable one has begun again after its connection was lost: a number of which
        some parts were had by then is told from its first part on."""
        self.resumed = False
        """Did it go on with a durable subscription that was there before?"""
        self.kept_up_to = 0
        """Of a durable one: the number of the last that was kept when it was attached to."""
        self.suspended = False
        """Of a durable one: when it was attached to, was it to be told nothing until resumed?"""
        self.mark = ""
        """Of a durable one: by what it is known that no other ever was."""

    # What it asks for

    @property
    def statement(self) -> Statement:
        """What was asked for."""
        return self._standing.statement

    @property
    def params(self) -> dict[str, Value]:
        """The parameters now."""
        return dict(self._standing.params)

    @property
    def epoch(self) -> int:
        """How many changes there were."""
        return self._standing.epoch

    @property
    def problem(self) -> DriftlineError | None:
        """Why it has ended, if that was not asked for here; None: it has not."""
        return self._problem

    async def set(self, /, **params: object) -> int:
        """Set all parameters at once; the new epoch, when it is in effect everywhere.

        `ParameterError` if one does not fit, and nothing has changed. `NotEffective` names the
        brokers that did not answer in time: there it takes effect when they are reached.
        """
        return await self._set(params, rebase=False)

    async def rebase(self, /, **params: object) -> int:
        """Like `set`, and let `elapsed()` count from now; without parameters they stay."""
        return await self._set(params or self.params, rebase=True)

    async def _set(self, params: Mapping[str, object], *, rebase: bool) -> int:
        self._check_active()
        before = self._standing, self._text
        self._move_to(self._standing.moved_to(params))
        asked = asking.Set(
            self._keeper._request(),
            self._handle,
            asking.pack_all(self.params),
            self._within_us,
            rebase,
        )
        return await self._ask_to_move(asked, *before)

    async def add(self, condition: str, /, **params: object) -> int:
        """Ask for one more condition, with values for parameters that are new; the new epoch."""
        return await self._restate(added(self.statement, condition), params)

    async def remove(self, condition: str, /) -> int:
        """Ask no longer for one of its conditions; the new epoch."""
        return await self._restate(removed(self.statement, condition), {})

    async def replace(self, condition: str, other: str, /, **params: object) -> int:
        """Ask for another condition in the place of one it has; the new epoch."""
        return await self._restate(replaced(self.statement, condition, other), params)

    async def _restate(self, statement: Statement, params: Mapping[str, object]) -> int:
        self._check_active()
        before = self._standing, self._text
        self._move_to(self._standing.restated(statement, params))
        self._text = str(statement)
        asked = asking.Restate(
            self._keeper._request(),
            self._handle,
            self._text,
            asking.pack_all(self.params),
            self._within_us,
        )
        return await self._ask_to_move(asked, *before)

    async def _ask_to_move(self, asked: Any, before: Standing, text: str) -> int:
        """The new epoch; one that another has moved meanwhile has a higher one than we thought.

        What is refused leaves all as it was, also when it is said anew on another connection.
        """
        to = self._standing
        try:
            said = await self._keeper._moved(self, asked)
        except (NotEffective, Unreachable):
            raise  # It counts, or will when there is a connection.
        except DriftlineError:
            if self._standing is to:
                self._standings.pop(to.epoch, None)
                self._standing, self._text = before, text
            raise
        if said is not None and said["epoch"] != to.epoch:
            to = replace(to, epoch=said["epoch"])
            if to.epoch > self.epoch:
                self._move_to(to)
        return to.epoch

    def _move_to(self, standing: Standing) -> None:
        self._standing = self._standings[standing.epoch] = standing
        while len(self._standings) > _EPOCHS:
            del self._standings[next(iter(self._standings))]

    @property
    def _within_us(self) -> int:
        return round(self.within * 1e6)

    async def explain(self, event: Event) -> Explanation:
        """Why this event does or does not match now: each condition and the values it saw."""
        self._check_active()
        return await self._keeper._explain(self, event)

    async def counters(self) -> dict[str, int]:
        """What became of the events that it was matched with: evaluated, matched, suppressed, sent,
        waiting, dropped, conflated, repeated; counted by the broker that it is connected to.
        """
        self._check_active()
        return await self._keeper._counters(self)

    async def cancel(self) -> None:
        """End it, a durable one for good. What came can still be read."""
        if self.active:
            self._end(None)
            await self._keeper._ended(self, for_good=True)

    # What it is told

    def __aiter__(self) -> AsyncIterator[Notification]:
        return self

    async def __anext__(self) -> Notification:
        """The next thing it is told; ends when it is cancelled."""
        while True:
            self._ack()
            if not await self._come():
                raise StopAsyncIteration
            told = self._pop()
            if not _is_nothing(told):
                return told

    async def _come(self) -> bool:
        """Wait until something is there; False if it is over."""
        await self._start()
        while not self._pending:
            if self._problem is not None:
                raise self._problem
            if not self.active:
                return False
            self._news.clear()
            await self._news.wait()
        return True

    async def until_told(self) -> bool:
        """Wait until there is something that `pending` gives; False: it is over."""
        return await self._come()

    async def next(self, within: float | None = None) -> Notification:
        """The next thing it is told; `TimeoutError` if nothing is told in so many seconds."""
        # Not `wait_for`: up to Python 3.11 that may swallow that it was cancelled.
        async with asyncio.timeout(within):
            return await self.__anext__()

    async def snapshot(self, within: float | None = None) -> list[Notification]:
        """What a view, or a set of rows, begins with: all of it, which may be nothing.

        `TimeoutError` if it is not all there in so many seconds: what came is read later.
        """
        self._ack()
        parts: list[Notification] = []
        gap = False
        begun_again = self.begun_again
        try:
            async with asyncio.timeout(within):
                while not (parts and parts[-1].last):
                    if not await self._come():
                        self._check_active()
                    if self.begun_again != begun_again:
                        begun_again = self.begun_again
                        parts.clear()  # All of them come again.
                    kind = self._pending[0][0].kind
                    if kind is NotificationKind.GAP and not parts:
                        self._pop()
                        gap = True
                    elif kind is NotificationKind.SNAPSHOT:
                        parts.append(self._pop())
                    elif kind is NotificationKind.GAP:
                        parts.clear()  # It begins anew.
                    else:
                        break  # It is nothing that begins with a snapshot.
        except BaseException:
            self._put_back(parts, gap)
            raise
        if not parts:
            self._put_back(parts, gap)
        return [told for told in parts if not _is_nothing(told)]

    def _put_back(self, parts: list[Notification], gap: bool) -> None:
        """Let be read what was read; nothing of it was complete, or counted."""
        if gap:
            lost = Notification(NotificationKind.GAP, {}, 0, self.epoch)
            parts = [lost, *parts]
        self._pending.extendleft((told, 0) for told in reversed(parts))
        if self.active:
            self._keeper._waits(len(parts), 0)

    def pending(self) -> list[Notification]:
        """All that has come and was not looked at. Whether more will come, `active` says."""
        self._ack()
        found = [self._pop() for _ in range(len(self._pending))]
        return [told for told in found if not _is_nothing(told)]

    def _pop(self) -> Notification:
        told, size = self._pending.popleft()
        self._pending_size -= size
        if self.active:
            self._keeper._waits(-1, -size)
        if told.number and not told.more:
            self._had = told.number
            self._unacked += 1
        return told

    def _ack(self) -> None:
        """What was handed out has been dealt with: more is asked for."""
        if self._manual or self._had <= self._acked:
            return
        self._dealt = self._had
        if self._unacked >= ACK_EVERY:
            self._send_ack()
        elif self._acking is None:
            loop = asyncio.get_running_loop()
            self._acking = loop.call_later(ACK_AFTER, self._send_ack)

    def _send_ack(self) -> None:
        if self._acking is not None:
            self._acking.cancel()
            self._acking = None
        if self._dealt > self._acked:
            self._acked = self._dealt
            self._unacked = 0
            self._keeper._told_up_to(self, self._acked)

    async def ack(self, told: Notification) -> None:
        """Of a durable subscription: this, and all before it, has been dealt with.

        What has a number in common with more to come counts with the last of them.
        """
        if told.number:
            # A broker knows numbers: it would let go of parts that nobody has had.
            number = told.number - 1 if told.more else told.number
            self._had = max(self._had, number)
            self._dealt = max(self._dealt, number)
            self._send_ack()

    # For the client

    def _notice(self, notice: Notice, epoch: int, size: int) -> None:
        if self._is_early:
            self._early.append(partial(self._notice, notice, epoch, size))
            return
        standing = self._standings.get(epoch, self._standing)
        statement = standing.statement
        event = notice.event
        values: dict[str, Value | None] = {}
        if isinstance(statement, Plain):
            values = statement.select(standing.scope(event, {}))
        if notice.gap:
            self._put(Notification(NotificationKind.GAP, {}, event.stamp or 0, epoch))
        self._put(
            Notification(
                NotificationKind.EVENT,
                values,
                event.stamp or 0,
                epoch,
                event,
                repeated=notice.repeated,
                number=notice.number,
            ),
            size,
        )

    @property
    def _is_early(self) -> bool:
        return self._as_it_is and not self._known

    def _said(self, said: asking.Notification, size: int) -> None:
        if self._is_early:
            self._early.append(partial(self._said, said, size))
            return
        key = said.key
        if isinstance(key, list) and not (len(key) == 2 and key[0] == "@"):
            found: Any = tuple(unpack(one, "key") for one in key)
        else:
            found = unpack(key, "key")
        self._put(
            Notification(
                NotificationKind(said.kind),
                unpack_all(said.values, "value"),
                said.time,
                said.epoch,
                _event(said.event) if said.event else None,
                tuple(_event(one) for one in said.events),
                None if said.old is None else unpack_all(said.old, "value"),
                found,
                said.last,
                said.lost,
                number=said.number,
                more=said.more,
                trace=said.trace if is_trace(said.trace) else None,
            ),
            size,
        )

    def _put(self, told: Notification, size: int = 0) -> None:
        # After a crash it may come again.
        if told.number and told.number <= max(self._had, self._acked):
            return
        self._pending.append((told, size))
        self._pending_size += size
        if self.active:
            self._keeper._waits(1, size)
        self._came += 1
        self._news.set()

    def _lost(self) -> None:
        """The connection was lost: something may not have been told, or will be told again."""
        if not self.durable:
            self._gap()
            return
        self.begun_again += 1
        self._keeper._waits(-len(self._pending), -self._pending_size)
        self._pending.clear()
        self._pending_size = 0
        self._early.clear()

    def _gap(self) -> None:
        self._put(Notification(NotificationKind.GAP, {}, 0, self.epoch))

    def _end(self, problem: DriftlineError | None) -> None:
        if self.active:
            # Who ends it may never look at what is left.
            self._keeper._waits(-len(self._pending), -self._pending_size)
        self.active = False
        self._problem = problem
        if self._acking is not None:
            self._acking.cancel()
            self._acking = None
        self._news.set()

    def _accepted(self, said: Any) -> None:
        """It has begun; one that was there before may have come further."""
        self.resumed = bool(said.get("resumed"))
        self.kept_up_to = said.get("last", 0)
        before, self.mark = self.mark, said.get("mark", "")
        self.suspended = bool(said.get("suspended"))
        is_another = bool(before) and before != self.mark
        if self.durable and (self._known or self._acked) and (is_another or not self.resumed):
            # The broker has lost it, and numbers anew; or somebody has ended it, and made one that
            # is called the same.
            self._had = self._dealt = self._acked = 0
            self._gap()
            self._pending.rotate(1)  # What is kept for it may have come already.
        self._known = True
        self._moved_by_another(said["epoch"], said.get("params"), said.get("text"))
        early, self._early = self._early, []
        for one in early:
            one()

    def _moved_by_another(
        self, epoch: int, said: dict[str, Any] | None, text: str | None = None
    ) -> None:
        """It has come further than we thought, perhaps with other parameters or another text."""
        if epoch == self.epoch:
            return
        if text is not None and text != str(self.statement):
            self._text = text
            self._standing = replace(self._standing, statement=parse(text), params={})
        params = self.params
        if said is not None:
            given = unpack_all(said, "parameter")
            params = {name: value for name, value in given.items() if value is not None}
        self._move_to(replace(self._standing, params=params, epoch=epoch))

    def _asking(self, request: int, *, again: bool = False) -> asking.Subscribe:
        """The request that begins it, or begins it anew."""
        return asking.Subscribe(
            request,
            self._handle,
            self._text,
            asking.pack_all(self.params),
            self._within_us,
            self._rows,
            self._quietly,
            self.durable,
            self._acked,
            self._policy,
            self.epoch,
            again,
            # What is to be as it stands must be there.
            self._as_it_is or (again and bool(self.durable) and not self._renew),
        )

    # Beginning and ending

    async def _start(self) -> None:
        if not self._begun:
            self._begun = True
            await self._keeper._begin(self)

    def __await__(self) -> Generator[Any, None, Subscription]:
        return self._started().__await__()

    async def _started(self) -> Subscription:
        await self._start()
        return self

    async def __aenter__(self) -> Subscription:
        await self._start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # A durable one goes on without us.
        if self.durable:
            if error is None:
                self._ack()
            await self.detach()
        else:
            await self.cancel()

    async def detach(self) -> None:
        """Of a durable subscription: be told no longer; it goes on, and can be taken up again."""
        if self.active:
            self._send_ack()
            self._end(None)
            await self._keeper._ended(self, for_good=False)

    def _check_active(self) -> None:
        if self._problem is not None:
            raise self._problem
        if not self.active:
            raise SubscriptionEnded(self.durable or self._text)

    def __repr__(self) -> str:
        state = "" if self.active else ", ended"
        return f"<Subscription {self._text!r}{state}>"


def _is_nothing(told: Notification) -> bool:
    """Does it only mark the end of a snapshot that has nothing in it?"""
    return told.kind is NotificationKind.SNAPSHOT and not told.values and told.key is None


def _event(raw: bytes) -> Event:
    return read_record(raw, {})
