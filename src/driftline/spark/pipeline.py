"""How does a directory of events become a directory of matches, once and without gaps?

`run_match` joins source, match and sink as a streaming query, so that Spark's checkpoint remembers
which files were read: run it again and it goes on with the new ones. `match_batch` does the same at
once, without memory.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from driftline.errors import DriftlineError, FileRefused, PipelineFailed
from driftline.spark.failure import SPARK_ERRORS, reason
from driftline.spark.manifest import Manifest, committed
from driftline.spark.match import mark
from driftline.spark.sinks import ManifestSink
from driftline.spark.sources import count_events, read_events, stream_events
from driftline.spark.subscriptions import Subscriptions, pack

# How often a running query is looked at: soon enough for a progress bar, too rarely to cost.
_LOOK_S = 0.2

_AT_ONCE = "at once"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. `total` is None where counting would mean reading everything."""

    events: int
    total: int | None
    matched: int
    notifications: int
    rejected: int
    batches: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What one run did. A notification is one event told to one subscription."""

    events: int
    matched: int
    notifications: int
    rejected: int
    batches: int
    seconds: float


def run_match(
    spark: SparkSession,
    events_dir: str,
    subscriptions: Subscriptions,
    out_dir: str,
    checkpoint_dir: str,
    *,
    once: bool = True,
    format: str | None = None,
    env: Mapping[str, object] | None = None,
    default_type: str | None = None,
    max_files_per_trigger: int | None = None,
    interval: str = "1 second",
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Summary:
    """Match what is in the directory and not done yet; with `once=False` go on as files arrive.

    Going on ends when `stop` says so or on Ctrl-C; the batch in hand is then left to the next run.
    With `once` Ctrl-C is an interruption like any other, and what was committed stands.
    `progress` is called on the caller's thread, at the start and after each batch.
    """
    _check_apart(events_dir, out_dir, checkpoint_dir)
    packed = pack(subscriptions, env)
    events = stream_events(spark, events_dir, format, max_files_per_trigger)
    marked = events.transform(mark(packed, default_type))
    before = _check_history(out_dir, checkpoint_dir)
    total = None if progress is None or not once else count_events(events_dir, format)
    done: list[Manifest] = []
    sink = ManifestSink(
        out_dir, lambda: query_id(checkpoint_dir) or "", packed.fingerprint, done.append
    )
    writer = marked.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint_dir)
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=interval)
    started = time.monotonic()

    def tell() -> None:
        if progress is not None:
            progress(Progress(total=None if total is None else total - before, **_sums(done)))

    try:
        interrupted = _follow(writer.start(), done, tell, stop)
    except SPARK_ERRORS as error:
        raise _failure(events_dir, sink.failure or error) from error
    if interrupted and once:
        raise KeyboardInterrupt
    return Summary(**_sums(done), seconds=time.monotonic() - started)


def match_batch(
    spark: SparkSession,
    events_dir: str,
    subscriptions: Subscriptions,
    out_dir: str,
    *,
    format: str | None = None,
    env: Mapping[str, object] | None = None,
    default_type: str | None = None,
) -> Summary:
    """Match all events of a directory as one batch into a directory that holds no output yet."""
    _check_apart(events_dir, out_dir)
    if committed(out_dir):
        raise FileRefused(out_dir, None, "wanted a directory without output, came one with some")
    packed = pack(subscriptions, env)
    marked = read_events(spark, events_dir, format).transform(mark(packed, default_type))
    done: list[Manifest] = []
    started = time.monotonic()
    try:
        ManifestSink(out_dir, lambda: _AT_ONCE, packed.fingerprint, done.append).write(marked, 0)
    except SPARK_ERRORS as error:
        raise _failure(events_dir, error) from error
    return Summary(**_sums(done), seconds=time.monotonic() - started)


def query_id(checkpoint_dir: str) -> str | None:
    """The id Spark gave the query that owns a checkpoint; None before its first start."""
    file = Path(checkpoint_dir, "metadata")
    if not file.exists():
        return None
    try:
        return str(msgspec.json.decode(file.read_bytes())["id"])
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise FileRefused(str(file), None, f"no checkpoint of Spark: {error}") from error


def _follow(
    query: StreamingQuery,
    done: list[Manifest],
    tell: Callable[[], None],
    stop: Callable[[], bool] | None,
) -> bool:
    """Watch the query until it ends, or until we are told to end it; was it by Ctrl-C?"""
    told = -1
    with _interruptions() as interruptions:
        try:
            while True:
                if len(done) != told:
                    told = len(done)
                    tell()
                if query.awaitTermination(_LOOK_S):  # type: ignore[arg-type]  # parts of seconds work
                    break
                if interruptions or (stop is not None and stop()):
                    break
        finally:
            query.stop()
        if len(done) != told:
            tell()
        return bool(interruptions)


@contextmanager
def _interruptions() -> Iterator[list[int]]:
    """Note Ctrl-C instead of raising it.

    PySpark's own handler calls Java to cancel all jobs, from within whatever call to Java was
    going on: the connection breaks, and the query could no longer be stopped in order.
    """
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted  # Signals are the main thread's business.
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


def _failure(events_dir: str, error: BaseException) -> DriftlineError:
    if isinstance(error, DriftlineError):
        return error
    return PipelineFailed(f"matching {events_dir}", reason(error))


def _sums(done: list[Manifest]) -> dict[str, int]:
    # A copy, because Spark's callback thread may add a batch meanwhile.
    manifests = list(done)
    sums = {
        name: sum(getattr(manifest, name) for manifest in manifests)
        for name in ("events", "matched", "notifications", "rejected")
    }
    return {**sums, "batches": len(manifests)}


def _check_apart(events_dir: str, *others: str) -> None:
    """Output below the events would be read as events."""
    events = Path(events_dir).resolve()
    for other in others:
        if Path(other).resolve().is_relative_to(events):
            raise FileRefused(other, None, f"wanted a place outside {events_dir}, came one in it")


def _check_history(out_dir: str, checkpoint_dir: str) -> int:
    """How many events are done already; refuse an output and a checkpoint of different queries.

    A new checkpoint numbers its batches from 0 again, so its first would be taken for done; an old
    one remembers files whose matches a new output would never see.
    """
    manifests = committed(out_dir)
    query = query_id(checkpoint_dir)
    for manifest in manifests:
        if manifest.query != query:
            problem = f"holds the output of a query that {checkpoint_dir} knows nothing of"
            raise FileRefused(out_dir, None, f"{problem}; give its checkpoint or a new directory")
    written = {manifest.batch for manifest in manifests}
    for file in Path(checkpoint_dir, "commits").glob("[0-9]*"):
        if int(file.name) not in written:
            problem = f"has done batch {file.name}, of which {out_dir} holds nothing"
            remedy = "give its output or a new checkpoint"
            raise FileRefused(checkpoint_dir, None, f"{problem}; {remedy}")
    return sum(manifest.events for manifest in manifests)
