"""How does a pipeline run: at once or on and on, watched, and ended in order?

    recorder ──▶ sequence ──▶ match          plain filters       ──▶ matched, refused
                         └──▶ reformulate    what needs memory   ──▶ told, refused

Two queries read one sequence, each at its own pace, so what is quick does not wait for what is
thorough. The second is started when there is something to remember: it reads from the beginning
then, as all that was recorded counts. Events of other sources than files come through a query of
their own (`ingest`), those of a broker by themselves (`arriving`); a database and a broker get each
batch when it is committed (`jdbc`, `telling`).
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from driftline.errors import DriftlineError, PipelineFailed, Unreachable
from driftline.recorded.config import PipelineConfig
from driftline.recorded.recorder import Recorder
from driftline.recorded.sequence import remove_remains
from driftline.spark.arriving import Arriving
from driftline.spark.failure import reason
from driftline.spark.identity import claim
from driftline.spark.ingest import INGEST, ingest, is_wanted, started
from driftline.spark.interruption import interruptions
from driftline.spark.jdbc import Database
from driftline.spark.manifest import (
    MANIFESTS,
    MATCH,
    MATCHED,
    REFORMULATE,
    REFUSED,
    TOLD,
    Manifest,
    check_owner,
    committed,
    remains,
)
from driftline.spark.matched import matched
from driftline.spark.reformulate import reformulated, remove_unused
from driftline.spark.session import prepare
from driftline.spark.source import NAME, DriftlineSource
from driftline.spark.telling import Telling

log = logging.getLogger(__name__)

_LOOK_S = 0.1
"""How often we look for files, and at the queries."""


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """How far one query is; batches, rows and what was told are those of this run."""

    done: int
    batches: int
    rows: int
    notifications: int
    rows_per_s: float
    state_rows: int
    state_bytes: int
    """What Spark's state store holds, by its own account."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: what was recorded, and how far each query is with it."""

    recorded: int
    queries: dict[str, QueryProgress]
    matched: int
    told: int
    refused: int
    seconds: float

    @property
    def done(self) -> dict[str, int]:
        """Up to which number each query has taken everything."""
        return {name: one.done for name, one in self.queries.items()}

    @property
    def batches(self) -> int:
        """How many batches were committed."""
        return sum(one.batches for one in self.queries.values())

    @property
    def notifications(self) -> int:
        """How many times somebody was told."""
        return sum(one.notifications for one in self.queries.values())

    @property
    def lag(self) -> int:
        """How many rows the slower query has still to take."""
        return self.recorded - min(self.done.values(), default=0)


@dataclass(slots=True)
class Run:
    """A pipeline that runs, in a session."""

    spark: SparkSession
    config: PipelineConfig
    progress: Callable[[Progress], object] | None = None
    records: bool = True
    """Are files recorded that are not yet? If not, only the recorded sequence is taken."""
    _queries: dict[str, StreamingQuery] = field(default_factory=dict)
    _known: dict[tuple[str, int], Manifest] = field(default_factory=dict)
    _started: float = 0.0
    _database: Database | None = None
    _arriving: Arriving | None = None
    _telling: Telling | None = None
    _delivered: int = -1

    def once(self) -> Progress:
        """Take all there is now, and end."""
        return self._run(once=True, stop=None)

    def forever(self, stop: Callable[[], bool] | None = None) -> Progress:
        """Take what comes, until Ctrl-C or until told to stop."""
        return self._run(once=False, stop=stop)

    def said(self, query: str) -> list[dict[str, Any]]:
        """What Spark says of the last batches of a query: what took how long, and its state."""
        found = self._queries.get(query)
        return [] if found is None else [json.loads(one.json) for one in found.recentProgress]

    def _run(self, *, once: bool, stop: Callable[[], bool] | None) -> Progress:
        self._started = time.monotonic()
        recorder = Recorder(self.config.check())
        try:
            identity = claim(self.config)
            for name in (MATCH, REFORMULATE):
                check_owner(self.config.out.path, name, identity.id, self.config.checkpoint / name)
            # Not before: what is another's is not touched.
            for place in (self.config.checkpoint, Path(self.config.out.path, MANIFESTS)):
                remove_remains(place)
            remove_unused()
            for left in remains(self.config.out.path):
                left.unlink(missing_ok=True)
            self._count()
            before = set(self._known)
            # What is wrong with a broker is said before Spark is asked for anything; and what
            # somebody who died has left to be published need not wait for more.
            self._publish(once)
            self._arrive(once)
            prepare(self.spark, self.config.run.shards)
            self.spark.dataSource.register(DriftlineSource)
            with interruptions() as interrupted:
                try:
                    self._ingest(once, interrupted)
                    if self.records:
                        recorder.look(_now())
                    recorder.rebase_if_due(first=True)
                    self._start(recorder, once)
                    while not interrupted and not (stop is not None and stop()):
                        if self._arriving is not None:
                            self._arriving.take()
                        if not once and recorder.look(_now()):
                            self._start(recorder, once)
                        if self._is_done():
                            break
                        self._tell(recorder, before)
                        self._deliver(once)
                        time.sleep(_LOOK_S)
                finally:
                    for query in self._queries.values():
                        query.stop()
            if interrupted and once:
                raise KeyboardInterrupt
            self._count()
            self._deliver(once)
            return self._tell(recorder, before)
        finally:
            self._leave()
            recorder.close()

    def _arrive(self, once: bool) -> None:
        """Let events of a broker come; all that it keeps now, if it is for once."""
        if self.records and self.config.events.broker is not None:
            self._arriving = Arriving(self.config)
            if once:
                self._arriving.take_all()
                self._arriving.close()
                self._arriving = None

    def _leave(self) -> None:
        """Leave brokers; what comes is kept there."""
        for one in (self._arriving, self._telling):
            if one is not None:
                one.close()
        self._arriving = self._telling = None

    def _ingest(self, once: bool, interrupted: list[int]) -> None:
        """Let events of another source come; all that there are now, if it is for once."""
        if not self.records or not is_wanted(self.config):
            return
        self._queries[INGEST] = ingest(self.spark, self.config, once=once)
        while once and not interrupted and not self._is_done():
            time.sleep(_LOOK_S)

    def _deliver(self, once: bool) -> None:
        """Let the database and the broker have what was committed since."""
        out = self.config.out
        if len(self._known) == self._delivered:
            return
        if out.jdbc:
            if self._database is None:
                self._database = Database(self.spark, out.jdbc)
            self._database.deliver(out.path)
        if self._publish(once):
            self._delivered = len(self._known)

    def _publish(self, once: bool) -> bool:
        """Let the broker have what was committed since; False: it is to be tried again."""
        if self.config.out.broker is None:
            return True
        if self._telling is None:
            self._telling = Telling(self.config)
        try:
            self._telling.deliver(self._known.values())
        except Unreachable as problem:
            if once:
                raise
            # It is back later, and is told then: what was told stays in files.
            log.warning("what was told is not published yet: %s", problem)
            return False
        return True

    def _start(self, recorder: Recorder, once: bool) -> None:
        """Start the queries that there is work for."""
        if MATCH not in self._queries:
            self._queries[MATCH] = self._query(MATCH, once)
        if REFORMULATE not in self._queries and recorder.book.remembers:
            self._queries[REFORMULATE] = self._query(REFORMULATE, once)

    def _query(self, name: str, once: bool) -> StreamingQuery:
        config = self.config
        checkpoint = str(config.checkpoint)
        options = {
            "checkpoint": checkpoint,
            "changes": str(name == REFORMULATE).lower(),
            "limit": str(config.run.events_per_batch),
            "slices": str(self.spark.sparkContext.defaultParallelism),
            "later": "true",
        }
        pieces = self.spark.readStream.format(NAME).options(**options).load()
        if name == MATCH:
            tables = {table: kept.declaration for table, kept in config.places.tables.items()}
            stage = matched(checkpoint, tables, config.events.default_type, config.out.path)
            pieces = pieces.transform(stage)
        else:
            pieces = pieces.transform(reformulated(config, self.spark))
        writer = pieces.writeStream.format(NAME).queryName(name).outputMode("append")
        writer = writer.options(
            path=config.out.path,
            query=name,
            checkpoint=checkpoint,
            checkpointLocation=str(config.checkpoint / name),
        )
        return started(writer, config, once=once)

    def _is_done(self) -> bool:
        """Has every query ended? One that failed says why."""
        for name, query in self._queries.items():
            problem = None if query.isActive else query.exception()
            if problem is not None:
                raise _failure(name, problem)
        return not any(query.isActive for query in self._queries.values())

    def _count(self) -> None:
        for manifest in committed(self.config.out.path, besides=self._known):
            self._known[manifest.query, manifest.batch] = manifest

    def _tell(self, recorder: Recorder, before: set[tuple[str, int]]) -> Progress:
        self._count()
        ours = [one for key, one in self._known.items() if key not in before]
        seconds = time.monotonic() - self._started
        now = Progress(
            recorder.sequence.end,
            {name: self._of_query(name, ours, seconds) for name in self._queries if name != INGEST},
            matched=sum(one.rows(MATCHED) for one in ours),
            told=sum(one.rows(TOLD) for one in ours),
            refused=sum(one.rows(REFUSED) for one in ours),
            seconds=seconds,
        )
        if self.progress is not None:
            self.progress(now)
        return now

    def _of_query(self, name: str, ours: list[Manifest], seconds: float) -> QueryProgress:
        batches = [one for one in ours if one.query == name]
        rows = sum(one.end - one.start for one in batches)
        last = self._queries[name].lastProgress
        kept = [] if last is None else last.stateOperators
        return QueryProgress(
            max((one.end for one in self._known.values() if one.query == name), default=0),
            len(batches),
            rows,
            sum(one.notifications for one in batches),
            rows / seconds if seconds else 0.0,
            sum(one.numRowsTotal for one in kept),
            sum(one.memoryUsedBytes for one in kept),
        )


def _failure(name: str, error: BaseException) -> DriftlineError:
    return PipelineFailed(f"the query {name}", reason(error))


def _now() -> int:
    return time.time_ns() // 1000
