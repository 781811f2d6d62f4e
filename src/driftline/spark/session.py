"""How is a local Spark started, quietly and the same way everywhere?

For the command line, benchmarks and tests. A program with a cluster makes its own session and
passes it in.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from driftline.errors import PipelineFailed

LOOPBACK = "127.0.0.1"
LOG4J2 = Path(__file__).with_name("log4j2.properties")

# A task may be tried this often. Spark's default for a local master is once, which would make a
# laptop less forgiving than a cluster.
ATTEMPTS = 4

# Java says the first on every start because Spark asks for the module, and Python's workers say
# that they begin and end, with empty lines between; nobody can act on it.
_BANNERS = (
    b"WARNING: Using incubator modules",
    b"Starting Streaming TransformWithState",
    b"Streaming TransformWithState",
)

_ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

# Driver and workers of one machine talk over the loopback only: no firewall prompt, no wrong
# interface.
_ONE_MACHINE = {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}

_SETTINGS = {
    # The console belongs to whoever called; they draw their own progress.
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOG4J2.as_uri()}",
    # A shuffle on a laptop gains nothing from Spark's two hundred partitions.
    "spark.sql.shuffle.partitions": "2",
    # Rows in one Arrow batch. Transport is no faster with more, and a batch of JSON text (a
    # kilobyte each, say) must fit in every worker's memory beside its matcher.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    # Times are shown as they are meant. Their values do not depend on this.
    "spark.sql.session.timeZone": "UTC",
    # A worker keeps the matcher it built for as long as it lives.
    "spark.python.worker.reuse": "true",
}


def local_session(app_name: str, cores: str = "2", *, ui: bool = False) -> SparkSession:
    """A session on this machine with so many cores (`"*"` for all); the running one if there is.

    A session that already runs is returned as it is: Java options cannot change any more.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    return _session(app_name, f"local[{cores},{ATTEMPTS}]", _ONE_MACHINE | _SETTINGS, ui)


def session_at(app_name: str, master: str, *, ui: bool = False) -> SparkSession:
    """A session at a master by its address, such as `spark://host:7077`; the running one if there
    is. The workers there need Python with our packages at the same path.
    """
    return _session(app_name, master, _SETTINGS, ui)


def _session(app_name: str, master: str, settings: dict[str, str], ui: bool) -> SparkSession:
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    # Otherwise workers start with the `python3` of the path, which need not have our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # It prints whatever fails in a callback, pages of it; the caller is told by an exception.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    builder = SparkSession.Builder().appName(app_name).master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    # The web interface takes a port and a second of start-up.
    builder = builder.config("spark.ui.enabled", str(ui).lower())
    try:
        with _without_banner():
            return builder.getOrCreate()
    except (PySparkException, OSError) as error:
        hint = "Spark needs Java 17 or later: is it installed, and does JAVA_HOME point to it?"
        raise PipelineFailed("starting Spark", f"{error}. {hint}") from error


def prepare(spark: SparkSession, shards: int) -> None:
    """Settings that a pipeline needs of a session, whoever made it."""
    for name, value in {
        # State that Spark keeps on disk, version by version.
        "spark.sql.streaming.stateStore.providerClass": _ROCKS_DB,
        # A small batch writes what it changed; otherwise all files of the store are packed anew,
        # which takes longer than everything else that a small batch does.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.shuffle.partitions": str(shards),
        # Otherwise each source of a pipeline runs batches without data for nobody.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }.items():
        spark.conf.set(name, value)


@contextmanager
def _without_banner() -> Iterator[None]:
    """Let what is started here write its errors through a filter that drops banners.

    The Java process keeps the pipe for its life, so the filter does too. Our own errors go through
    it only until the process has started.
    """
    incoming, outgoing = os.pipe()
    ours = os.dup(2)
    os.dup2(outgoing, 2)
    os.close(outgoing)
    threading.Thread(target=_pass_on, args=(incoming, ours), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(ours, 2)


def _pass_on(incoming: int, ours: int) -> None:
    with open(incoming, "rb", buffering=0) as stream:
        rest, dropped = b"", False
        while chunk := stream.read(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                dropped = line.startswith(_BANNERS) or (dropped and not line)
                if not dropped:
                    os.write(ours, line + b"\n")
        if rest:
            os.write(ours, rest)
    os.close(ours)
