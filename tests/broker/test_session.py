"""Does what is said on a link arrive once and in order, whatever the link does?"""

from __future__ import annotations

import random

import pytest

from driftline.broker.session import Session
from driftline.wire.framing import Frame, FrameKind


@pytest.mark.parametrize("seed", range(60))
def test_a_bad_link_delays_but_does_not_lose(seed: int) -> None:
    """Loss, duplicates, disorder, and ends that begin anew: each session says a prefix of its list.

    After the last fault everything said in the last session arrives.
    """
    draw = random.Random(seed)
    ends = [Session(1), Session(1)]
    said: list[dict[tuple[int, int], int]] = [{}, {}]
    heard: list[dict[tuple[int, int], list[int]]] = [{}, {}]
    wire: list[tuple[int, Frame]] = []
    now = 0

    def put(side: int, frames: list[Frame], bad: bool) -> None:
        for frame in frames:
            copies = draw.choice([0, 1, 1, 1, 2]) if bad else 1
            wire.extend([(1 - side, frame)] * copies)

    def step(bad: bool) -> None:
        nonlocal now
        chance = draw.random()
        if wire and chance < 0.6:
            side, frame = wire.pop(draw.randrange(len(wire)) if bad else 0)
            end = ends[side]
            got, frames = end.receive(frame, now)
            if got.said is not None:
                mine, theirs, number = map(int, got.said.payload.split())
                assert (mine, theirs) == (end.theirs, end.mine), "of another session"
                heard[side].setdefault((mine, theirs), []).append(number)
                ends[side].took()
            put(side, frames, bad)
            if got.answer:
                put(side, [end.acknowledge()], bad)
        elif chance < 0.8:
            now += draw.randrange(500_000)
            for side, end in enumerate(ends):
                put(side, end.wake(now), bad)
        else:
            side = draw.randrange(2)
            end = ends[side]
            if end.up:
                pair = (end.mine, end.theirs)
                said[side][pair] = said[side].get(pair, 0) + 1
                payload = f"{pair[0]} {pair[1]} {said[side][pair]}".encode()
                put(side, end.send(FrameKind.CONTROL, payload, now), bad)

    for turn in range(600):
        step(bad=True)
        if turn % 150 == 149 and turn < 590:
            side = draw.randrange(2)
            ends[side] = Session(ends[side].mine + 1)
    for _ in range(4000):
        step(bad=False)
    while wire or any(end.pending for end in ends):
        now += 5_000_000
        for side, end in enumerate(ends):
            put(side, end.wake(now), False)
        while wire:
            side, frame = wire.pop(0)
            got, frames = ends[side].receive(frame, now)
            if got.said is not None:
                mine, theirs, number = map(int, got.said.payload.split())
                heard[side].setdefault((mine, theirs), []).append(number)
                ends[side].took()
            put(side, frames, False)
            if got.answer:
                put(side, [ends[side].acknowledge()], False)
    for side in range(2):
        for pair, numbers in heard[1 - side].items():
            assert numbers == list(range(1, len(numbers) + 1)), "lost, twice or out of order"
            assert len(numbers) <= said[side][pair]
    a, b = ends
    assert (a.theirs, b.theirs) == (b.mine, a.mine)
    for side, end in enumerate(ends):
        pair = (end.mine, end.theirs)
        assert len(heard[1 - side].get(pair, [])) == said[side].get(pair, 0)
