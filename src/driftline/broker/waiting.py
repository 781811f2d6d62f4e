"""What waits for one subscription, what has it lost, and when may it be told something?

    offered = sent + dropped + conflated + waiting

Conflating keeps the latest of each key, and all that waits is told in the order it came; so a new
value goes to the end, and a key that changes fast enough would always be put off again. Hence: a
key begins to wait when its first value comes, and when something has been told that came later
than that, its turn is past. From then on its value stays where it is, and a new one waits besides.
Nobody waits longer than it takes to tell twice what is there, and of a key there are at most two.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import NamedTuple

from driftline.broker.items import Counts, Handle, Item, Losses, Told
from driftline.broker.policy import Overflow, Policy


class Copy:
    """An item in memory, for so many subscriptions of one kind: such as may lose it, or not."""

    __slots__ = ("holders", "item")

    def __init__(self, item: Item, holders: int) -> None:
        self.item = item
        self.holders = holders


class _Entry(NamedTuple):
    copy: Copy
    key: Hashable
    since: int
    """When its key began to wait, as a place in the order of arrival."""


class Waiting:
    """The queue of one subscription, by place in the order of arrival; every method is O(1).

    Methods that make something give way return the copies of it, for the connection to count.
    """

    __slots__ = (
        "_entries",
        "_last",
        "_latest",
        "_lost_at",
        "_passed",
        "_released",
        "_told_at",
        "blocks",
        "bytes",
        "conflated",
        "conflates",
        "dropped",
        "handle",
        "losses",
        "lost",
        "number",
        "offered",
        "plain",
        "policy",
        "repeated",
        "sent",
    )

    def __init__(
        self, handle: Handle, number: int, policy: Policy, losses: Losses | None = None
    ) -> None:
        self.handle = handle
        self.losses = Losses() if losses is None else losses
        self.number = number
        self._follow(policy)
        self.bytes = 0
        self.offered = self.sent = self.dropped = self.conflated = self.repeated = 0
        self.lost = 0
        self._lost_at = 0
        # Not a dict: looking for the first of one from which the first were taken is O(n).
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        self._latest: dict[Hashable, int] = {}
        self._passed = 0
        self._released = 0
        self._told_at: int | None = None
        self._last: Item | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def _follow(self, policy: Policy) -> None:
        self.policy = policy
        # Asked for with each notification.
        self.plain = policy.plain
        self.blocks = policy.overflow is Overflow.BLOCK
        self.conflates = policy.overflow is Overflow.CONFLATE

    @property
    def full(self) -> bool:
        """Must publishers wait until something of it was told?"""
        policy = self.policy
        return self.blocks and (
            len(self._entries) >= policy.limit or self.bytes >= policy.limit_bytes
        )

    @property
    def behind(self) -> bool:
        """Must what comes now be told after something else?"""
        return bool(self._entries or self.lost)

    @property
    def head(self) -> int | None:
        """The place of what is told next."""
        return next(iter(self._entries), None)

    @property
    def first(self) -> Item:
        """What is told next."""
        return next(iter(self._entries.values())).copy.item

    @property
    def last(self) -> Item:
        """What was told last, to be told again."""
        assert self._last is not None
        return self._last

    def put(self, place: int, copy: Copy, key: Hashable, now: int) -> list[Copy]:
        """Let it wait behind all others; what gave way."""
        self.offered += 1
        gone = self._enter(place, copy, key)
        return gone + self.shrink(now)

    def _enter(self, place: int, copy: Copy, key: Hashable) -> list[Copy]:
        since, gone = place, []
        if self.conflates:
            old = self._latest.get(key)
            if old is not None and self._entries[old].since > self._passed:
                since = self._entries[old].since
                gone.append(self._out(old).copy)
                self.conflated += 1
                self.losses.conflated += 1
            self._latest[key] = place
        self._entries[place] = _Entry(copy, key, since)
        self.bytes += copy.item.size
        return gone

    def shrink(self, now: int) -> list[Copy]:
        """Keep the limits, if something may be lost. One alone may be larger than they say."""
        gone: list[Copy] = []
        policy = self.policy
        if not self.blocks:
            while len(self._entries) > 1 and (
                len(self._entries) > policy.limit or self.bytes > policy.limit_bytes
            ):
                gone.append(self.drop(now))
        return gone

    def drop(self, now: int) -> Copy:
        """Lose the oldest; a gap, unless a later value of its key waits."""
        place = next(iter(self._entries))
        entry = self._out(place)
        if entry.key in self._latest:
            self.conflated += 1
            self.losses.conflated += 1
            return entry.copy
        if not self.lost:
            self._lost_at = now
        self.lost += 1
        self.dropped += 1
        self.losses.dropped += 1
        return entry.copy

    def _out(self, place: int) -> _Entry:
        entry = self._entries.pop(place)
        self.bytes -= entry.copy.item.size
        if self._latest.get(entry.key) == place:
            del self._latest[entry.key]
        return entry

    def tell(self, now: int) -> tuple[Copy, int]:
        """Take out the oldest, to be told; how many were lost before it."""
        place = next(iter(self._entries))
        copy = self._out(place).copy
        if place > self._released:
            # The others go with it, one of each key, though the interval begins anew.
            self._released = next(reversed(self._entries), place)
        self._passed = place
        self._told_at = now
        self.sent += 1
        if self.policy.max_interval_us:
            self._last = copy.item
        return copy, self.own_up()

    def repeat(self, now: int) -> Told:
        """Tell again what was told last."""
        self._told_at = now
        self.repeated += 1
        return Told((self.handle,), (self.own_up(),), self.last, repeat=True)

    def own_up(self) -> int:
        """How many were lost that the subscriber does not know of: from now on it does."""
        lost, self.lost = self.lost, 0
        return lost

    def change(self, policy: Policy, now: int) -> list[Copy]:
        """From now on another policy, also for what waits; what gave way."""
        self._follow(policy)
        if not policy.max_interval_us:
            self._last = None
        entries, self._entries = self._entries, OrderedDict()
        self._latest.clear()
        self._released = 0
        self.bytes = 0
        gone: list[Copy] = []
        for place, entry in entries.items():
            gone += self._enter(place, entry.copy, entry.key)
        return gone + self.shrink(now)

    def exchange(self, other: Callable[[Copy], Copy]) -> None:
        """Hold another copy instead of each."""
        for place, entry in self._entries.items():
            self._entries[place] = entry._replace(copy=other(entry.copy))

    def copies(self) -> list[Copy]:
        """All that waits."""
        return [entry.copy for entry in self._entries.values()]

    @property
    def is_open(self) -> bool:
        """May the oldest be told whenever the connection takes it?"""
        head = self.head
        if head is None:
            return False
        if not self.policy.min_interval_us or self._told_at is None:
            return True
        return self.conflates and head <= self._released

    @property
    def opens_at(self) -> int | None:
        """When the interval ends that the oldest waits for."""
        return self._interval_ends if self._entries and not self.is_open else None

    def mark_at(self, after_us: int) -> int | None:
        """When a gap is told alone, because nothing comes that could be told with it."""
        if self._entries or not self.lost:
            return None
        return max(self._lost_at + after_us, self._interval_ends)

    @property
    def repeat_at(self) -> int | None:
        """When the subscriber is told again what it was told last."""
        if self._entries or self._last is None or self._told_at is None:
            return None
        return self._told_at + self.policy.max_interval_us

    @property
    def _interval_ends(self) -> int:
        return 0 if self._told_at is None else self._told_at + self.policy.min_interval_us

    def counts(self) -> Counts:
        """What became of what was offered."""
        return Counts(
            self.offered,
            self.sent,
            self.dropped,
            self.conflated,
            self.repeated,
            len(self),
            self.bytes,
        )

    def _check(self) -> None:
        places = list(self._entries)
        assert places == sorted(places)
        assert not places or places[0] > self._passed
        assert self.bytes == sum(entry.copy.item.size for entry in self._entries.values())
        assert self.offered == self.sent + self.dropped + self.conflated + len(places)
        keys = [entry.key for entry in self._entries.values()]
        if self.conflates:
            assert self._latest == dict(zip(keys, places, strict=True))
            assert all(keys.count(key) <= 2 for key in keys)
        else:
            assert not self._latest
        if not self.blocks and len(places) > 1:
            assert len(places) <= self.policy.limit
            assert self.bytes <= self.policy.limit_bytes
