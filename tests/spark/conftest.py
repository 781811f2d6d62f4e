"""A bound on each of these tests, which share one Spark."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

# A hung query must fail its own test and not the whole run. The first test of a run also pays for
# starting Java and the first workers, some twenty seconds on a busy machine.
BOUND_S = 180


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    def give_up(signum: int, frame: object) -> None:
        raise TimeoutError(f"the test took more than {BOUND_S} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(BOUND_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
