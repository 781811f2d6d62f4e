"""Does what only refers to itself go, and not before there is reason to look for it?"""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from driftline.net import sweeping
from driftline.net.sweeping import Sweeping


class Ring:
    """Refers to itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def thresholds() -> Iterator[tuple[int, int, int]]:
    """What the interpreter looks for is decided for the whole process."""
    before = gc.get_threshold()
    gc.set_threshold(100, 2, 2)
    yield gc.get_threshold()
    gc.unfreeze()
    gc.set_threshold(*before)


def grown(objects: int = 2000) -> list[list[int]]:
    """So many objects that are needed, and become old."""
    return [[n] for n in range(objects)]


async def until(gone: weakref.ref[Ring], seconds: float) -> bool:
    async with asyncio.timeout(seconds):
        while gone() is not None:
            await asyncio.sleep(0.005)
    return True


def old_ring() -> weakref.ref[Ring]:
    """One that the interpreter finds only if it goes through everything."""
    ring = Ring()
    gc.collect(1)
    return weakref.ref(ring)


def test_the_process_looks_through_everything_when_enough_became_old(
    thresholds: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "_OFTEN", 0.02)

    async def test() -> None:
        one = Sweeping(asyncio.get_running_loop())
        one.begin()
        gone = old_ring()
        # The interpreter would have, many times.
        kept = grown()
        assert gone() is not None
        assert gc.get_count()[2] > thresholds[2]
        assert await until(gone, 5)
        # Not again without reason.
        gone = old_ring()
        assert gc.get_count()[2] <= thresholds[2]
        await asyncio.sleep(0.1)
        assert gone() is not None
        one.end()
        assert len(kept) == 2000

    asyncio.run(test())
    assert gc.get_threshold() == thresholds


def test_it_takes_a_small_part_of_the_time(
    thresholds: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much there is: after one that took long the next is long in coming."""
    times = iter([0.0, 2.0])
    monkeypatch.setattr(sweeping.time, "perf_counter", lambda: next(times))
    waits: list[float] = []

    class Loop:
        def call_later(self, seconds: float, what: object) -> None:
            waits.append(seconds)

    one = Sweeping(Loop())  # type: ignore[arg-type]
    kept = grown()
    one.begin()
    kept += grown()
    one._look()
    assert waits == [sweeping._OFTEN, sweeping._SELDOM]
    times = iter([5.0, 5.1])
    kept += grown()
    one._look()
    assert waits[2:] == [pytest.approx(0.1 / sweeping.SHARE)]
    assert len(kept) == 6000


def test_what_was_there_at_the_beginning_is_not_looked_at(
    thresholds: tuple[int, int, int],
) -> None:
    async def test() -> None:
        gone = old_ring()
        one = Sweeping(asyncio.get_running_loop())
        one.begin()
        gc.collect()
        assert gone() is not None
        one.end()
        gc.collect()
        assert gone() is None

    asyncio.run(test())
