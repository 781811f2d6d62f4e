"""Is output exact on a cluster, of which a machine is lost in the middle?

A master and two workers, each a process of its own, started from the installed package.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyspark
import pytest

import driftline
from driftline.spark.manifest import committed
from tests.recorded.worlds import EVERYTHING, World

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOST = "127.0.0.1"
PATIENCE_S = 300
"""Starting all this takes half a minute on a machine with nothing else to do."""

SETTINGS = {
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.executor.memory": "1g",
    "spark.executor.cores": "1",
    # Executors have an environment of their own, in which our package need not be installed.
    "spark.executorEnv.PYTHONPATH": str(Path(driftline.__file__).parents[1]),
}

DRIVER = """
import sys
import msgspec
from driftline.recorded.config import PipelineConfig
from driftline.spark.running import Run
from driftline.spark.session import session_at

config = msgspec.json.decode(sys.argv[2], type=PipelineConfig)
spark = session_at("cluster", sys.argv[1])
Run(spark, config).once()
spark.stop()
"""


def wait_until(done: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.1)


class Cluster:
    """Processes that are ended when the test is, each with all that it has started."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._web = 0
        self.master = ""
        self._processes: list[subprocess.Popen[bytes]] = []
        self._environment = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": HOST,
            "PYSPARK_SUBMIT_ARGS": " ".join(
                [*(f"--conf {name}={value}" for name, value in SETTINGS.items()), "pyspark-shell"]
            ),
        }
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        deploy = "org.apache.spark.deploy"
        spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
        ports = ["--host", HOST, "--port", "0", "--webui-port", "0"]
        self._start("master", [spark_class, f"{deploy}.master.Master", *ports])
        # It takes ports that are free, and says which: a port found free before it starts may
        # have been taken by the time it does.
        self.master = f"spark://{HOST}:{self._port_of('sparkMaster')}"
        self._web = self._port_of("MasterUI")
        room = ["--host", HOST, "--cores", "1", "--memory", "1536m", "--webui-port", "0"]
        for name in ("first", "second"):
            place = ["--work-dir", str(self._root / name), self.master]
            command = [spark_class, f"{deploy}.worker.Worker", *room, *place]
            self.workers.append(self._start(name, command))
        wait_until(lambda: self._alive() == 2, "two workers")

    def _port_of(self, service: str) -> int:
        line = re.compile(rf"Successfully started service '{service}' on port (\d+)")
        wait_until(lambda: bool(line.search(self._written("master"))), service)
        found = line.search(self._written("master"))
        assert found is not None
        return int(found[1])

    def run(self, config: str) -> subprocess.Popen[bytes]:
        """A driver of its own."""
        return self._start("driver", [sys.executable, "-c", DRIVER, self.master, config])

    def said(self, name: str) -> str:
        """The last that a process has written."""
        return self._written(name)[-3000:]

    def _written(self, name: str) -> str:
        return (self._root / f"{name}.log").read_text(errors="replace")

    def _start(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with open(self._root / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                command,
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def _alive(self) -> int:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self._web}/json/", timeout=5) as answer:
                workers = msgspec.json.decode(answer.read())["workers"]
        except OSError:
            return 0
        return sum(worker["state"] == "ALIVE" for worker in workers)

    def stop(self) -> None:
        for process in reversed(self._processes):
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started, as a machine that loses its power."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def cluster(root: Path) -> Iterator[Cluster]:
    root.mkdir()
    # The bound on these tests is for one that has a session already.
    signal.alarm(2 * PATIENCE_S)
    made = Cluster(root)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def remembered(world: World) -> list[int]:
    """How far each batch went of what is remembered."""
    return [one.end for one in committed(world.out) if one.query == "reformulate"]


def test_a_worker_that_is_lost_in_the_middle_changes_nothing(tmp_path):
    world = World(tmp_path, events_per_batch=16)
    world.changes(*EVERYTHING[:3])
    world.quotes(0, 30)
    world.changes(
        {"op": "set", "id": "filter", "params": {"p": 104}},
        {"op": "set", "id": "moved", "params": {"r": 1}},
        {"op": "set", "id": "lowest", "params": {"s": 4}},
    )
    world.quotes(30, 60)
    with cluster(tmp_path / "cluster") as machines:
        driver = machines.run(msgspec.json.encode(world.config).decode())
        wait_until(lambda: bool(remembered(world)), "the first batch")
        assert len(remembered(world)) < 4, "there is something left to do"
        kill(machines.workers[0])
        assert driver.wait(PATIENCE_S) == 0, machines.said("driver")
    assert remembered(world) == [16, 32, 48, 64, 66]
    assert world.told() == world.wanted()
    assert {id for _, id, *_ in world.told()} == {"filter", "moved", "lowest"}
