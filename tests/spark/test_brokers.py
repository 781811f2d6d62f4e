"""Does a pipeline between brokers take each event once and tell each notification once, whatever
is killed, and where?
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import DataFrame

import driftline as dl
from driftline.recorded.config import PipelineConfig
from driftline.spark.arriving import arrived
from driftline.spark.broker_source import BrokerSource
from driftline.spark.running import Run
from driftline.spark.status import status_of
from tests.net.processes import Brokers
from tests.processes import until
from tests.recorded.worlds import EVERYTHING
from tests.spark.broker_worlds import ASKED, BetweenBrokers, said, sent

pytestmark = pytest.mark.spark


@pytest.fixture
def world(tmp_path: Path) -> Iterator[BetweenBrokers]:
    with Brokers(tmp_path) as brokers:
        yield BetweenBrokers(tmp_path / "world", brokers, events_per_batch=60)


def check(world: BetweenBrokers, numbers: range) -> None:
    """Each event came once, and each notification that one engine tells was told once."""
    assert world.came() == Counter(sent(number).id for number in numbers)
    assert world.told() == world.wanted()
    alerts = world.alerts()
    names = Counter((one.source, one.id) for one in alerts)
    assert set(names.values()) == {1}, names.most_common(3)
    assert said(alerts) == by_one_engine(world)


def by_one_engine(world: BetweenBrokers) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for answer, count in world.wanted().items():
        found[answer[:3]] += count
    return found


KILLED = """
import os, signal, sys
import msgspec
from driftline.recorded.config import PipelineConfig
from driftline.spark import running
from driftline.spark.arriving import Arriving
from driftline.spark.out import ManifestWriter
from driftline.spark.source import DriftlineSource
from driftline.spark.telling import Telling

config = msgspec.json.decode(sys.argv[1], type=PipelineConfig)
driver = []

def die(*_, **__):
    for process in (*driver, os.getpid()):
        os.kill(process, signal.SIGKILL)

class DyingWriter(ManifestWriter):
    def commit(self, messages, batchId):
        if self._query == "match" and batchId >= 1:
            die()
        super().commit(messages, batchId)

class DyingSource(DriftlineSource):
    def streamWriter(self, schema, overwrite):
        writer = super().streamWriter(schema, overwrite)
        writer.__class__ = DyingWriter
        return writer

publish = Telling._publish

def half(self, some):
    publish(self, some[: len(some) // 2])
    die()

put = Arriving._put

def written(self, *said):
    put(self, *said)
    die()

def run(point):
    spark = None
    if point == "taken":
        Arriving._write = die
    elif point == "written":
        Arriving._put = written
    elif point == "noted":
        Arriving._acknowledge = die
    elif point == "batch":
        from driftline.spark.session import local_session

        spark = local_session("killed")
        # Spark's half of the driver first: it must not note anything after the death of ours.
        driver[:] = spark._jvm.java.lang.ProcessHandle.current().pid(), os.getpid()
        running.DriftlineSource = DyingSource
        Telling.deliver = lambda *_: 0  # So that something is left to those who die of telling it.
    elif point == "half":
        Telling._publish = half
    elif point == "published":
        Telling._noted = die
    running.Run(spark, config).once()

for line in sys.stdin:
    child = os.fork()
    if not child:
        run(line.strip())
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Drivers:
    """Runs a pipeline in processes that die at a point: each is a fork of one that has done no more
    than import what it needs, which takes longer than all the rest.
    """

    def __init__(self, config: PipelineConfig, errors: Path) -> None:
        self._errors = errors
        with open(errors, "wb") as stream:
            self._process = subprocess.Popen(
                [sys.executable, "-c", KILLED, msgspec.json.encode(config).decode()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Not a pipe: Spark's workers outlive a driver for a moment, and would keep it open.
                stderr=stream,
                text=True,
            )

    def kill_at(self, point: str) -> None:
        """Let one run, and die."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{point}\n")
        self._process.stdin.flush()
        code = self._process.stdout.readline().strip()
        assert code == str(-signal.SIGKILL), (point, code, self._errors.read_text()[-3000:])

    def end(self) -> None:
        """There are no more."""
        self._process.communicate(timeout=20)


@pytest.fixture
def drivers(world: BetweenBrokers, tmp_path: Path) -> Iterator[Drivers]:
    made = Drivers(world.config, tmp_path / "drivers")
    yield made
    made.end()


def test_drivers_and_brokers_that_are_killed_at_any_point_lose_and_double_nothing(
    spark, world, drivers
):
    """Before what was taken is written; before that is noted, and acknowledged; when a batch is to
    be committed; in the middle of what is published; and behind it, before that is noted. Most need
    no Spark to come so far: what is left to be published, and what comes, is done first.
    """
    world.changes(*EVERYTHING)
    world.publish(range(0, 60))
    drivers.kill_at("taken")
    assert not world.came()
    assert world.kept() == 60
    drivers.kill_at("written")
    assert (world.came().total(), arrived(world.config).number, world.kept()) == (60, 0, 60)
    world.come.kill()
    world.come.restart()
    world.publish(range(50, 70))  # Ten of them are published twice.
    drivers.kill_at("noted")
    assert (world.came().total(), world.kept()) == (70, 20), "60 were let go when it came again"

    drivers.kill_at("batch")
    drivers.kill_at("half")
    some = world.alerts()
    world.go.kill()
    world.go.restart()
    world.publish(range(70, 100))
    for _ in range(3):
        drivers.kill_at("published")
        drivers.kill_at("half")
    assert 0 < len(some) < len(world.alerts())
    assert status_of(world.config).published.notifications == 0

    Run(spark, world.config).once()
    check(world, range(100))
    found = status_of(world.config)
    assert found.arrived is not None
    assert (found.arrived.repeated, found.arrived.gaps) == (10, 0)
    assert found.published is not None
    assert (found.published.lag, world.kept()) == (0, 0)
    assert found.notifications == world.wanted().total()


def test_one_that_runs_on_outlives_its_brokers(spark, world):
    """Both are killed and come back while it runs; it is told what came meanwhile."""
    world.changes(EVERYTHING[0])
    over = threading.Event()
    problems: list[BaseException] = []

    def meanwhile() -> None:
        try:
            world.publish(range(0, 40))
            until(lambda: world.published() > 0)
            world.come.kill()
            world.go.kill()
            world.come.restart()
            world.publish(range(40, 60))
            world.go.restart()
            until(lambda: world.recorded() == 61 and world.is_told())
        except BaseException as problem:
            problems.append(problem)
        finally:
            over.set()

    thread = threading.Thread(target=meanwhile)
    thread.start()
    Run(spark, world.config).forever(over.is_set)
    thread.join()
    assert not problems
    check(world, range(60))
    assert world.kept() == 0


def test_any_spark_program_can_read_from_a_broker_and_a_batch_that_is_repeated_is_the_same(
    spark, world, tmp_path
):
    spark.dataSource.register(BrokerSource)
    options = {
        "address": world.come.address,
        "subscription": "pipeline",
        "text": ASKED,
        "params": '{"least": 10}',
        "limit": "25",
    }
    found: dict[int, list[tuple[int, str | None, bool]]] = {}

    def take(rows: DataFrame, batch: int) -> None:
        came = [(row.number, sent_id(row.value), row.gap) for row in rows.collect()]
        assert found.setdefault(batch, came) == came

    def run() -> None:
        read = spark.readStream.format("driftline-broker").options(**options).load()
        writer = read.writeStream.foreachBatch(take).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        assert query.awaitTermination(100)

    def forget(batch: int) -> None:
        """It was planned, and nobody knows whether it was done."""
        last = tmp_path / "checkpoint" / "commits" / str(batch)
        last.unlink()
        last.with_name(f".{batch}.crc").unlink(missing_ok=True)

    world.publish(range(0, 10))  # Of these it was told before it asked for less.
    world.publish(range(10, 40))
    run()
    assert sorted(found) == [0, 1]
    forget(1)
    world.publish(range(0, 50))
    run()
    came = [row for batch in sorted(found) for row in found[batch]]
    assert [id for _, id, _ in came] == [f"e{n}" for n in (*range(40), *range(10, 50))]
    numbers = [number for number, _, _ in came]
    assert numbers == sorted(set(numbers))
    assert not any(gap for _, _, gap in came)
    assert world.kept() < 50, "what was committed the broker has let go"

    with dl.connect(world.come.address) as client:
        client.durables.drop("pipeline")
    before = max(found)
    run()
    world.publish(range(60, 70))
    run()
    behind = [row for batch in sorted(found) if batch > before for row in found[batch]]
    assert behind[0] == (numbers[-1], None, True), "a gap, though nothing came"
    assert [(id, gap) for _, id, gap in behind[1:]] == [(f"e{n}", False) for n in range(60, 70)]

    world.publish(range(70, 80))
    with dl.connect(world.come.address) as client:
        client.durables.drop("pipeline")
        client.durables.keep("pipeline", ASKED, {"least": 10})
    world.publish(range(80, 90))
    before = max(found)
    run()
    forget(max(found))
    run()
    behind = [row for batch in sorted(found) if batch > before for row in found[batch]]
    assert [(id, gap) for _, id, gap in behind] == [
        (None, True),
        *((f"e{n}", False) for n in range(80, 90)),
    ]


def sent_id(text: str | None) -> str | None:
    return None if text is None else msgspec.json.decode(text)["id"]
