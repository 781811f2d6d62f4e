"""Is each connection written to once in a turn, many with a pause between, and who is in a hurry at
once?
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from driftline.net.flushing import FEW, PAUSE_MOST, Flushing


class Loop:
    """A loop whose time is told to it, and whose turns are asked for."""

    def __init__(self) -> None:
        self.now = 10.0
        self.soon: list[Callable[[], None]] = []
        self.later: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_soon(self, what: Callable[[], None]) -> object:
        self.soon.append(what)
        return what

    def call_at(self, when: float, what: Callable[[], None]) -> object:
        self.later.append((when, what))
        return what

    def turn(self) -> None:
        """What is due."""
        soon, self.soon = self.soon, []
        soon += [what for when, what in self.later if when <= self.now]
        self.later = [(when, what) for when, what in self.later if when > self.now]
        for what in soon:
            what()


class Line:
    """A connection that notes when it was written to; a write takes a while."""

    def __init__(self, loop: Loop, flushing: Flushing, takes: float = 0.0) -> None:
        self._loop = loop
        self._flushing = flushing
        self._takes = takes
        self.is_urgent = False
        self.is_dirty = False
        self.written: list[float] = []

    def send(self, *, urgent: bool = False) -> None:
        """As a connection does."""
        if not self.is_dirty:
            self.is_urgent, self.is_dirty = urgent, True
            self._flushing.dirty(self)  # type: ignore[arg-type]
        elif urgent and not self.is_urgent:
            self.is_urgent = True
            self._flushing.hurry()

    def flush(self) -> None:
        assert self.is_dirty
        self.is_dirty = False
        self.written.append(self._loop.now)
        self._loop.now += self._takes


def made(lines: int, takes: float) -> tuple[Loop, list[Line], list[float]]:
    loop, rounds = Loop(), []
    flushing = Flushing(loop, lambda: rounds.append(loop.now))  # type: ignore[arg-type]
    return loop, [Line(loop, flushing, takes) for _ in range(lines)], rounds


def test_once_in_a_turn_whatever_is_sent():
    loop, (line,), rounds = made(1, 0.001)
    for _ in range(5):
        line.send()
    assert not line.written
    loop.turn()
    assert len(line.written) == len(rounds) == 1
    loop.turn()
    assert len(line.written) == 1
    line.send()
    loop.turn()
    assert len(line.written) == 2


def test_few_are_never_paused():
    loop, lines, _ = made(FEW, 0.001)
    for _ in range(3):
        for line in lines:
            line.send()
        loop.turn()
    assert all(len(line.written) == 3 for line in lines)


def test_a_round_of_many_is_followed_by_a_pause_no_longer_than_it_was():
    loop, lines, _ = made(2 * FEW, 1e-6)
    for _ in range(2):
        for line in lines:
            line.send()
        loop.turn()
    assert all(len(line.written) == 1 for line in lines)
    (until, _) = loop.later[0]
    assert 0 < until - loop.now <= 2 * FEW * 1.01e-6
    loop.now = until
    loop.turn()
    assert all(len(line.written) == 2 for line in lines)
    # However long a round takes, nobody waits longer than is said.
    loop, lines, _ = made(2 * FEW, 0.01)
    for _ in range(2):
        for line in lines:
            line.send()
        loop.turn()
    assert loop.later[0][0] - loop.now <= PAUSE_MOST * 1.001


def test_who_waits_for_a_reply_is_not_paused():
    loop, lines, _ = made(2 * FEW, 1e-6)
    for line in lines:
        line.send()
    loop.turn()
    for line in lines:
        line.send()
    lines[0].send(urgent=True)
    loop.turn()
    assert len(lines[0].written) == 2
    assert all(len(line.written) == 1 for line in lines[1:])
    # Also who is in a hurry only after the pause has begun.
    lines[1].send(urgent=True)
    loop.turn()
    assert len(lines[1].written) == 2
    loop.now = loop.later[0][0]
    loop.turn()
    assert all(len(line.written) == 2 for line in lines)
    assert not any(line.is_dirty for line in lines)


def test_nothing_is_forgotten_on_a_real_loop():
    async def test() -> None:
        loop = asyncio.get_running_loop()
        flushing = Flushing(loop, lambda: None)

        class Real:
            is_urgent = False
            left = 0
            sent = 0

            def flush(self) -> None:
                self.sent += self.left
                self.left = 0

        lines = [Real() for _ in range(3 * FEW)]
        for _ in range(50):
            for line in lines:
                line.left += 1
                if line.left == 1:
                    flushing.dirty(line)  # type: ignore[arg-type]
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        assert all(line.sent == 50 and not line.left for line in lines)

    asyncio.run(test())
