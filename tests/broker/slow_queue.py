"""What becomes of notifications that wait, from the definition: lists, read from start to end."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from driftline.broker.items import Counts, Handle, Item, Told
from driftline.broker.policy import Policy

NEVER = 1 << 62


@dataclass
class Note:
    """An item that waits for one subscription."""

    place: int
    since: int
    item: Item
    key: Hashable
    copy: object
    """Notes of the same copy are in memory once."""


@dataclass
class Queue:
    handle: Handle
    policy: Policy
    notes: list[Note] = field(default_factory=list)
    lost: int = 0
    lost_at: int = 0
    told_at: int | None = None
    told_place: int = 0
    batch_ends: int = 0
    last: Item | None = None
    offered: int = 0
    sent: int = 0
    dropped: int = 0
    conflated: int = 0
    repeated: int = 0

    @property
    def blocks(self) -> bool:
        return self.policy.overflow == "block"

    @property
    def size(self) -> int:
        return sum(note.item.size for note in self.notes)

    @property
    def full(self) -> bool:
        too_many = len(self.notes) >= self.policy.limit
        return self.blocks and (too_many or self.size >= self.policy.limit_bytes)

    def interval_over(self, now: int) -> bool:
        return self.told_at is None or now >= self.told_at + self.policy.min_interval_us

    def may_go(self, now: int) -> bool:
        """May the first that waits be told now?"""
        if not self.notes:
            return False
        of_batch = self.policy.overflow == "conflate" and self.notes[0].place <= self.batch_ends
        return self.interval_over(now) or of_batch

    def conflate(self, note: Note) -> None:
        """The last that waits of the same key makes room, unless its turn is past."""
        same = [one for one in self.notes if one.key == note.key]
        if same and same[-1].since > self.told_place:
            self.notes.remove(same[-1])
            note.since = same[-1].since
            self.conflated += 1

    def put(self, note: Note) -> None:
        if self.policy.overflow == "conflate":
            self.conflate(note)
        self.notes.append(note)

    def drop(self, now: int) -> None:
        gone = self.notes.pop(0)
        later = [one for one in self.notes if one.key == gone.key]
        if self.policy.overflow == "conflate" and later:
            self.conflated += 1
            return
        if self.lost == 0:
            self.lost_at = now
        self.lost += 1
        self.dropped += 1

    def keep_limits(self, now: int) -> None:
        while (
            not self.blocks
            and len(self.notes) > 1
            and (len(self.notes) > self.policy.limit or self.size > self.policy.limit_bytes)
        ):
            self.drop(now)

    def gap(self) -> int:
        lost, self.lost = self.lost, 0
        return lost


class SlowOutgoing:
    """The reference for `Outgoing`: the same methods, without any structure."""

    def __init__(self, limit_bytes: int, mark_after_us: int) -> None:
        self.limit_bytes = limit_bytes
        self.mark_after_us = mark_after_us
        self.queues: list[Queue] = []
        self.place = 0

    def find(self, handle: Handle) -> Queue | None:
        return next((one for one in self.queues if one.handle == handle), None)

    def add(self, handle: Handle, policy: Policy) -> None:
        self.queues.append(Queue(handle, policy))

    def remove(self, handle: Handle) -> None:
        self.queues = [one for one in self.queues if one.handle != handle]

    def change(self, handle: Handle, policy: Policy, now: int) -> None:
        one = self.find(handle)
        assert one is not None
        blocked = one.blocks
        one.policy = policy
        one.batch_ends = 0
        if not policy.max_interval_us:
            one.last = None
        notes, one.notes = one.notes, []
        for note in notes:
            note.since = note.place
            if one.blocks != blocked:
                note.copy = object()
            one.put(note)
        one.keep_limits(now)
        self.give_way(now)

    def bypass(self, handles: tuple[Handle, ...]) -> bool:
        found = [self.find(handle) for handle in handles]
        if any(one is None or not one.policy.plain for one in found):
            return False
        if any(one.policy.plain and (one.notes or one.lost) for one in self.queues):
            return False
        for one in found:
            one.offered += 1
            one.sent += 1
        return True

    def offer(self, item: Item, now: int) -> bool:
        found = [self.find(handle) for handle in item.handles]
        if any(one is not None and one.full for one in found):
            return False
        if self.jammed and any(one is not None and one.blocks for one in found):
            return False
        self.place += 1
        for one, key in zip(found, item.keys or [None] * len(found), strict=True):
            if one is not None:
                one.offered += 1
                one.put(Note(self.place, self.place, item, key, (self.place, one.blocks)))
                one.keep_limits(now)
        self.give_way(now)
        return True

    def take(self, room_bytes: int, now: int) -> list[Told]:
        if room_bytes <= 0:
            return []
        told = []
        for one in sorted(self.queues, key=self.mark_at):
            if self.mark_at(one) <= now:
                told.append(Told((one.handle,), (one.gap(),)))
        used, began = 0, False
        while True:
            open_ = [one for one in self.queues if one.may_go(now)]
            if not open_:
                break
            place = min(one.notes[0].place for one in open_)
            whose = [one for one in open_ if one.notes[0].place == place]
            item = whose[0].notes[0].item
            if began and used + item.size > room_bytes:
                return told
            used, began = used + item.size, True
            for one in whose:
                self.told(one, now)
            told.append(Told(tuple(q.handle for q in whose), tuple(q.gap() for q in whose), item))
        for one in sorted(self.queues, key=self.repeat_at):
            if self.repeat_at(one) <= now:
                assert one.last is not None
                if began and used + one.last.size > room_bytes:
                    return told
                used, began = used + one.last.size, True
                one.told_at = now
                one.repeated += 1
                told.append(Told((one.handle,), (one.gap(),), one.last, repeat=True))
        return told

    def told(self, one: Queue, now: int) -> None:
        note = one.notes[0]
        if note.place > one.batch_ends:
            one.batch_ends = one.notes[-1].place
        one.notes.pop(0)
        one.told_place = note.place
        one.told_at = now
        one.sent += 1
        if one.policy.max_interval_us:
            one.last = note.item

    def mark_at(self, one: Queue) -> int:
        if one.notes or not one.lost:
            return NEVER
        at = one.lost_at + self.mark_after_us
        return at if one.told_at is None else max(at, one.told_at + one.policy.min_interval_us)

    def repeat_at(self, one: Queue) -> int:
        if one.notes or one.last is None or one.told_at is None:
            return NEVER
        return one.told_at + one.policy.max_interval_us

    def wake_at(self, now: int) -> int:
        """From now on."""
        if any(one.may_go(now) for one in self.queues):
            return now
        opens = [one.told_at + one.policy.min_interval_us for one in self.queues if one.notes]
        alone = [self.mark_at(one) for one in self.queues]
        again = [self.repeat_at(one) for one in self.queues]
        return max(now, min((*opens, *alone, *again), default=NEVER))

    def give_way(self, now: int) -> None:
        while self.pending_bytes > self.limit_bytes and len(self.copies) > 1:
            largest = max((one.size for one in self.queues if not one.blocks), default=0)
            if not largest:
                return
            next(q for q in self.queues if not q.blocks and q.size == largest).drop(now)

    @property
    def jammed(self) -> bool:
        blocking = max((one.size for one in self.queues if one.blocks), default=0)
        dropping = max((one.size for one in self.queues if not one.blocks), default=0)
        return self.pending_bytes >= self.limit_bytes and blocking > dropping

    @property
    def blocked(self) -> bool:
        return self.jammed or any(one.full for one in self.queues)

    @property
    def copies(self) -> dict[object, int]:
        return {note.copy: note.item.size for one in self.queues for note in one.notes}

    @property
    def pending(self) -> int:
        return sum(len(one.notes) for one in self.queues)

    @property
    def pending_bytes(self) -> int:
        return sum(self.copies.values())

    def counts(self, handle: Handle) -> Counts:
        one = self.find(handle)
        assert one is not None
        became = one.offered, one.sent, one.dropped, one.conflated, one.repeated
        return Counts(*became, len(one.notes), one.size)
