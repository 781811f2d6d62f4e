"""How random are the tests, and how is a failure replayed?

Hypothesis prints the example it found and how to replay it. A test that draws from `random`
takes the fixture `seed`, which prints its seed: `pytest --hypothesis-seed=N` replays it.
DRIFTLINE_PROFILE=thorough tries forty times as many examples.
"""

from __future__ import annotations

import logging
import os
import random
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.command_line import Ran

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = "spark"
SPARK_FILES = (
    "tests/spark/",
    "tests/cli/test_spark_commands.py",
    "tests/conformance/test_in_bulk.py",
    "tests/oracle/test_agreement.py",
)

# These start processes of their own, and do not need the session of the others.
SPARK_APART = ("tests/spark/test_cluster.py", "tests/cli/test_spark_commands.py")

# Whole statements are large data by hypothesis's standards; the checks on them are quick.
_SLOW_DATA = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "default", max_examples=100, deadline=None, print_blob=True, suppress_health_check=_SLOW_DATA
)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=4000)
settings.load_profile(os.environ.get("DRIFTLINE_PROFILE", "default"))


def _scope(nodeid: str) -> str:
    """What must run in one process: tests of one file, and all that need a session of Spark, of
    which a second would take as long to start as many tests.
    """
    if nodeid.startswith(SPARK_FILES) and not nodeid.startswith(SPARK_APART):
        return SPARK
    return nodeid.partition("::")[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that need Spark begin first, so that in the end nobody waits for them alone."""
    items.sort(key=lambda item: not item.nodeid.startswith(SPARK_FILES))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _scope(nodeid)

    return ByFile(config, log)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session users get; a test that takes it is marked `spark`.

    Starting another costs ten seconds, so all tests share it: none may change its settings or
    leave a query running.
    """
    # Imported here, so that a run without such tests does without Spark.
    from driftline.spark.session import local_session

    session = local_session("driftline tests")
    yield session
    session.stop()


@pytest.fixture
def seed(request: pytest.FixtureRequest, record_property) -> int:
    given = request.config.getoption("--hypothesis-seed")
    number = int(given) if given is not None else random.SystemRandom().randrange(2**32)
    record_property("seed", number)
    print(f"seed {number}: replay with --hypothesis-seed={number}")
    return number


@pytest.fixture
def driftline(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Call it with the words of a command line."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")

    # Imported here, so that a run without such tests does without typer.
    from driftline.cli.main import main
    from driftline.cli.output import stdout

    # It may have been made before, when there was no such variable.
    monkeypatch.setattr(stdout, "_width", 200)

    def run(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["driftline", *map(str, words)])
        code: object = 0
        root = logging.getLogger()
        handlers, level = [*root.handlers], root.level
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        finally:
            # A broker logs to what is standard error now, and will not be there any more.
            root.handlers[:] = handlers
            root.setLevel(level)
        printed = capsys.readouterr()
        return Ran(int(str(code or 0)), printed.out, printed.err)

    return run
