"""One Spark for all of these tests, and a bound on each."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from driftline.spark.session import local_session

# A hung query must fail its own test and not the whole run. The first test of a run also pays for
# starting Java and the first workers, some twenty seconds on a busy machine.
BOUND_S = 180


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # The session users get. Starting another costs ten seconds, so all tests share it: none may
    # change its settings or leave a query running.
    session = local_session("driftline tests")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    def give_up(signum: int, frame: object) -> None:
        raise TimeoutError(f"the test took more than {BOUND_S} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(BOUND_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
