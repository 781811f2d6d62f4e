"""The queues of a connection do what the definition says, whatever is done to them.

Hypothesis looks for short programs that tell them apart; long ones, which get into the corners, are
drawn from a seed.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from driftline.broker.items import Item
from driftline.broker.policy import Policy
from driftline.broker.queue import Outgoing
from tests.broker.slow_queue import SlowOutgoing

LIMIT_BYTES = 24
MARK_AFTER_US = 5
HANDLES = "abcd"
KEYS = "xyz"
# Small limits and short intervals, so that a few steps get beyond them.
OVERFLOWS = ("drop_oldest", "conflate", "conflate", "block")
LIMITS = (1, 2, 3, 5, 8)
LIMITS_BYTES = (4, 12, 100)
LEAST = (0, 0, 0, 1, 4, 9)
MOST = (0, 0, 9, 12)
SIZES = (1, 1, 1, 2, 3, 4, 6, 0, 13, 30)
ROOMS = (0, 1, 1, 2, 4, 9, 1000)


class Pair:
    """Both, side by side."""

    def __init__(self) -> None:
        self.fast = Outgoing(LIMIT_BYTES, MARK_AFTER_US)
        self.slow = SlowOutgoing(LIMIT_BYTES, MARK_AFTER_US)
        self.now = 0
        self.number = 0

    def set(self, handle: str, policy: Policy) -> None:
        if handle in self.fast:
            self.fast.change(handle, policy, self.now)
            self.slow.change(handle, policy, self.now)
        else:
            self.fast.add(handle, policy)
            self.slow.add(handle, policy)

    def remove(self, handle: str) -> None:
        if handle in self.fast:
            self.fast.remove(handle)
            self.slow.remove(handle)

    def offer(self, handles: tuple[str, ...], size: int, keys: tuple[str, ...]) -> None:
        self.number += 1
        item = Item(handles, b"", self.number, size, keys)
        free = not self.fast.blocked
        taken = self.fast.offer(item, self.now)
        assert taken == self.slow.offer(item, self.now)
        assert taken or not free

    def bypass(self, handles: tuple[str, ...]) -> None:
        assert self.fast.bypass(handles) == self.slow.bypass(handles)

    def take(self, room: int) -> None:
        assert self.fast.take(room, self.now) == self.slow.take(room, self.now)

    def wake(self) -> None:
        """Just before it is time there is nothing, and then there is."""
        at = self.fast.wake_at()
        if self.now < at < self.now + 100:
            assert self.fast.take(1000, at - 1) == []
            self.now = at
            told = self.fast.take(1000, at)
            assert told
            assert told == self.slow.take(1000, at)

    def compare(self) -> None:
        self.fast._check()
        assert max(self.fast.wake_at(), self.now) == self.slow.wake_at(self.now)
        assert self.fast.blocked == self.slow.blocked
        assert self.fast.pending == self.slow.pending
        assert self.fast.pending_bytes == self.slow.pending_bytes
        for queue in self.slow.queues:
            assert self.fast.counts(queue.handle) == self.slow.counts(queue.handle)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    return Policy(
        draw(st.sampled_from(OVERFLOWS)),
        limit=draw(st.sampled_from(LIMITS)),
        limit_bytes=draw(st.sampled_from(LIMITS_BYTES)),
        min_interval_us=draw(st.sampled_from(LEAST)),
        max_interval_us=draw(st.sampled_from(MOST)),
    )


SOME = st.lists(st.sampled_from(HANDLES), min_size=1, max_size=3, unique=True).map(tuple)


class Program(RuleBasedStateMachine):
    """What may be done to both."""

    @initialize(given=st.lists(policies(), min_size=4, max_size=4))
    def begin(self, given: list[Policy]) -> None:
        self.pair = Pair()
        for handle, policy in zip(HANDLES, given, strict=True):
            self.pair.set(handle, policy)

    @rule(handle=st.sampled_from(HANDLES), policy=policies())
    def set(self, handle: str, policy: Policy) -> None:
        self.pair.set(handle, policy)

    @rule(handle=st.sampled_from(HANDLES))
    def remove(self, handle: str) -> None:
        self.pair.remove(handle)

    @rule(handles=SOME, size=st.sampled_from(SIZES), keys=st.text(KEYS, min_size=3, max_size=3))
    def offer(self, handles: tuple[str, ...], size: int, keys: str) -> None:
        self.pair.offer(handles, size, tuple(keys[: len(handles)]))

    @rule(handles=SOME, how_many=st.integers(1, 4))
    def offer_several(self, handles: tuple[str, ...], how_many: int) -> None:
        for _ in range(how_many):
            self.pair.offer(handles, 1, ())

    @rule(handles=SOME)
    def bypass(self, handles: tuple[str, ...]) -> None:
        self.pair.bypass(handles)

    @rule(room=st.sampled_from(ROOMS))
    def take(self, room: int) -> None:
        self.pair.take(room)

    @rule(by=st.integers(1, 6))
    def wait(self, by: int) -> None:
        self.pair.now += by

    @rule()
    def wake(self) -> None:
        self.pair.wake()

    @invariant()
    def is_the_same(self) -> None:
        self.pair.compare()


TestProgram = Program.TestCase
TestProgram.settings = settings(stateful_step_count=40)


@pytest.mark.parametrize("run", range(40))
def test_a_long_program_tells_no_difference(seed, run):
    draw = random.Random(f"{seed} {run}")
    pair = Pair()

    def some() -> tuple[str, ...]:
        return tuple(draw.sample(HANDLES, draw.choice((1, 1, 2, 3))))

    def anything() -> Policy:
        return Policy(
            draw.choice(OVERFLOWS),
            limit=draw.choice(LIMITS),
            limit_bytes=draw.choice(LIMITS_BYTES),
            min_interval_us=draw.choice(LEAST),
            max_interval_us=draw.choice(MOST),
        )

    for handle in HANDLES:
        pair.set(handle, anything())
    # In some runs little is told of what is offered, in some most; in some, policies often change.
    changes, offers, takes = draw.choice(((1, 30, 15), (3, 20, 20), (1, 10, 20)))
    acts = draw.choices(
        ("set", "remove", "offer", "bypass", "take", "wait", "wake"),
        (changes, changes / 4, offers, 2, takes, 8, 2),
        k=400,
    )
    for act in acts:
        if act == "set":
            pair.set(draw.choice(HANDLES), anything())
        elif act == "remove":
            pair.remove(draw.choice(HANDLES))
        elif act == "offer":
            handles = some()
            keys = tuple(draw.choice(KEYS) for _ in handles) if draw.random() < 0.8 else ()
            pair.offer(handles, draw.choice(SIZES), keys)
        elif act == "bypass":
            pair.bypass(some())
        elif act == "take":
            pair.take(draw.choice(ROOMS))
        elif act == "wait":
            pair.now += draw.randint(1, 6)
        else:
            pair.wake()
        pair.compare()
