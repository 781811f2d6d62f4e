"""What becomes of notifications that a connection does not take at once?

They wait, each subscription's in a queue of its own (`waiting`) and by its own policy. All of a
connection wait in one order, that of arrival; a subscription in its interval is passed over until
the interval ends. An item for several subscriptions is one copy in memory while it waits, and is
told in one go to those who may be told it then.

Memory is bounded by the limits of the subscriptions, and over all of them by that of the connection
(`budget`), plus one item: who blocks takes an item as long as it is not full, and an item that is
larger than a limit waits alone. Each subscription with a longest interval keeps what it was told
last besides.

Nothing here reads a clock: times are microseconds and never go back.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

from driftline.broker.budget import Budget
from driftline.broker.items import Counts, Handle, Item, Losses, Told
from driftline.broker.least import Least
from driftline.broker.policy import Policy
from driftline.broker.session import NEVER
from driftline.broker.waiting import Waiting
from driftline.errors import InvalidValue
from driftline.model.value import show

MARK_AFTER_US = 1_000_000
"""So long a gap waits for a notification to be told with."""


def _no_keys(item: Item) -> Iterator[None]:
    return repeat(None, len(item.handles))


class Outgoing:
    """The subscriptions of one connection, and what waits for them.

    A driver offers what does not `bypass`, and takes what there is when the connection accepts
    something, and when it is `wake_at()`. While it is `blocked` the driver does not read from those
    who publish.

    >>> out = Outgoing(limit_bytes=1000)
    >>> out.add("s1", Policy(limit=2))
    >>> [out.offer(Item(("s1",), b"%d" % n, n, 1), now=0) for n in (1, 2, 3)]
    [True, True, True]
    >>> [(told.item.number, told.lost) for told in out.take(room_bytes=100, now=0)]
    [(2, (1,)), (3, (0,))]
    """

    __slots__ = (
        "_added",
        "_behind",
        "_budget",
        "_by_handle",
        "_by_number",
        "_full",
        "_losses",
        "_mark_after",
        "_marks",
        "_opening",
        "_place",
        "_ready",
        "_repeats",
    )

    def __init__(
        self,
        limit_bytes: int,
        mark_after_us: int = MARK_AFTER_US,
        losses: Losses | None = None,
    ) -> None:
        if type(limit_bytes) is not int or limit_bytes < 1:
            raise InvalidValue("limit_bytes", "an integer, 1 or more", show(limit_bytes))
        self._budget = Budget(limit_bytes)
        self._mark_after = mark_after_us
        self._losses = Losses() if losses is None else losses
        self._added = 0
        self._place = 0
        self._by_handle: dict[Handle, Waiting] = {}
        # In the order they were added, which decides between equals.
        self._by_number: dict[int, Waiting] = {}
        # Whose oldest is to be told, by its place; and whose when an interval ends.
        self._ready = Least()
        self._opening = Least()
        self._marks = Least()
        self._repeats = Least()
        self._full: set[int] = set()
        self._behind: set[int] = set()

    def __contains__(self, handle: Handle) -> bool:
        return handle in self._by_handle

    def add(self, handle: Handle, policy: Policy) -> None:
        """Take in a subscription."""
        if handle in self._by_handle:
            raise InvalidValue("handle", "one that is not taken", show(handle))
        self._added += 1
        one = Waiting(handle, self._added, policy, self._losses)
        self._by_handle[handle] = self._by_number[one.number] = one

    def remove(self, handle: Handle) -> None:
        """Forget a subscription and all that waits for it; KeyError if it is unknown."""
        one = self._by_handle.pop(handle)
        del self._by_number[one.number]
        self._budget.forget(one)
        self._displace(one.number)

    def change(self, handle: Handle, policy: Policy, now: int) -> None:
        """Another policy, also for what waits: what is too much now, gives way now.

        What it was told, and when, is remembered: an interval counts from then. Who blocks from now
        on no longer shares what waits with those who do not, so it may count twice. KeyError if the
        subscription is unknown.
        """
        one = self._by_handle[handle]
        blocked = one.blocks
        for copy in one.change(policy, now):
            self._budget.release(copy)
        if one.blocks != blocked:
            one.exchange(self._budget.part)
        self._displace(one.number)
        self._settle(one)
        self._give_way(now)

    def bypass(self, handles: tuple[Handle, ...]) -> bool:
        """May something go straight out to these? Then it is counted as sent.

        Only if nothing that was to be told earlier still waits, and nobody has an interval.
        """
        if self._behind:
            return False
        found = [self._by_handle.get(handle) for handle in handles]
        if not all(one is not None and one.plain for one in found):
            return False
        for one in found:
            assert one is not None
            one.offered += 1
            one.sent += 1
        return True

    def offer(self, item: Item, now: int) -> bool:
        """Let it wait for those of its handles that are there; was it taken?

        If not, nothing has changed: somebody who blocks is full, and it is to be offered again when
        something was told. It is taken whenever not `blocked`. O(log n) for each handle, amortised.
        """
        found, blocks = [], 0
        for handle, key in zip(item.handles, item.keys or _no_keys(item), strict=True):
            one = self._by_handle.get(handle)
            if one is None:
                continue
            if one.blocks:
                if one.full:
                    return False
                blocks += 1
            found.append((one, key))
        if blocks and self._budget.jammed:
            return False
        drops = len(found) - blocks
        blocking = self._budget.hold(item, blocks) if blocks else None
        dropping = self._budget.hold(item, drops) if drops else None
        self._place += 1
        for one, key in found:
            copy = blocking if one.blocks else dropping
            assert copy is not None
            for gone in one.put(self._place, copy, key, now):
                self._budget.release(gone)
            self._settle(one)
        self._give_way(now)
        return True

    def take(self, room_bytes: int, now: int) -> list[Told]:
        """What to send now, in order, and no longer waits.

        It fits into the room; only the first of all may be larger, so that it gets through at all.
        Gaps that are told alone take no room. Repeats come last, and only if nothing else waits
        that could go. O(log n) for each handle told, amortised.
        """
        if room_bytes <= 0:
            return []
        told = []
        for one in self._due(self._marks, now):
            told.append(Told((one.handle,), (one.own_up(),)))
            self._settle(one)
        for one in self._due(self._opening, now):
            self._opening.set(one.number, None)
            self._ready.set(one.number, one.head)
        room, began = room_bytes, False
        while (first := self._ready.first()) is not None:
            item = self._by_number[first[1]].first
            if began and item.size > room:
                return told
            room, began = room - item.size, True
            told.append(self._tell(first[0], item, now))
        for one in self._due(self._repeats, now):
            size = one.last.size
            if began and size > room:
                return told
            room, began = room - size, True
            told.append(one.repeat(now))
            self._settle(one)
        return told

    def _tell(self, place: int, item: Item, now: int) -> Told:
        """Tell an item to all who may be told it now."""
        handles, lost = [], []
        while (first := self._ready.first()) is not None and first[0] == place:
            one = self._by_number[first[1]]
            copy, gap = one.tell(now)
            self._budget.release(copy)
            self._settle(one)
            handles.append(one.handle)
            lost.append(gap)
        return Told(tuple(handles), tuple(lost), item)

    def _due(self, ranks: Least, now: int) -> Iterator[Waiting]:
        """Whose time has come; each must be given another, or none."""
        while (first := ranks.first()) is not None and first[0] <= now:
            yield self._by_number[first[1]]

    @property
    def blocked(self) -> bool:
        """Must publishers wait? What they say might not be taken."""
        return bool(self._full) or self._budget.jammed

    @property
    def pending(self) -> int:
        """How many notifications wait, counted for each subscription."""
        return self._budget.entries

    @property
    def pending_bytes(self) -> int:
        """How many bytes wait; of what waits for several subscriptions, once."""
        return self._budget.bytes

    def wake_at(self) -> int:
        """From when on there is something to take; 0: now, if the connection accepts it."""
        if self._ready.first() is not None:
            return 0
        firsts = (ranks.first() for ranks in (self._opening, self._marks, self._repeats))
        return min((first[0] for first in firsts if first is not None), default=NEVER)

    def counts(self, handle: Handle) -> Counts:
        """What became of what was offered to a subscription; KeyError if it is unknown."""
        return self._by_handle[handle].counts()

    def _give_way(self, now: int) -> None:
        """Keep the bound of the connection, as far as there is something that may be lost."""
        while (number := self._budget.who_gives_way()) is not None:
            one = self._by_number[number]
            self._budget.release(one.drop(now))
            self._settle(one)

    def _settle(self, one: Waiting) -> None:
        """Put a queue that has changed where it belongs."""
        number = one.number
        self._budget.weigh(one)
        self._ready.set(number, one.head if one.is_open else None)
        if one.blocks:
            (self._full.add if one.full else self._full.discard)(number)
        if one.plain:
            (self._behind.add if one.behind else self._behind.discard)(number)
        else:
            self._opening.set(number, one.opens_at)
            self._repeats.set(number, one.repeat_at)
        if one.lost or number in self._marks:
            self._marks.set(number, one.mark_at(self._mark_after))

    def _displace(self, number: int) -> None:
        """Let a queue be in no place, which it may not belong to any more."""
        for ranks in (self._ready, self._opening, self._marks, self._repeats):
            ranks.set(number, None)
        self._full.discard(number)
        self._behind.discard(number)

    def _check(self) -> None:
        queues = list(self._by_number.values())
        assert {one.handle: one for one in queues} == self._by_handle
        for one in queues:
            one._check()
        self._budget._check(queues)
        assert self._full == {one.number for one in queues if one.full}
        assert self._behind == {one.number for one in queues if one.plain and one.behind}
        # One whose interval is over may have been found ready already.
        ready = {one.number: one.head for one in queues if one.number in self._ready}
        waits = {one.number: one.opens_at for one in queues if one.number not in ready}
        marks = {one.number: one.mark_at(self._mark_after) for one in queues}
        repeats = {one.number: one.repeat_at for one in queues}
        assert all(one.number in ready for one in queues if one.is_open)
        for ranks, wanted in (
            (self._ready, ready),
            (self._opening, waits),
            (self._marks, marks),
            (self._repeats, repeats),
        ):
            ranks._check({number: rank for number, rank in wanted.items() if rank is not None})
        assert None not in ready.values()
