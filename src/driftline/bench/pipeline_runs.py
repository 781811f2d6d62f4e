"""How fast does a pipeline go once it is warm?

A pipeline is run over files that are there already, batch by batch. A batch has taken from the
manifest of the one before to its own: reading, matching, writing and committing, and whatever Spark
does between batches. The first ones start workers and load what they need, and are not counted.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from driftline.bench.pipeline_cpu import tree_cpu_s
from driftline.bulk import IDS, in_texts
from driftline.recorded.config import PipelineConfig
from driftline.recorded.sequence import RecordedSequence, What
from driftline.spark.manifest import MANIFESTS, Manifest, committed

if TYPE_CHECKING:
    from driftline.spark.running import Progress

Spark: TypeAlias = Any
"""A session. PySpark is imported under `spark` only."""

CORES = 2
WARM = 2
"""So many batches of events are not counted."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that counts: its numbers [start, end) and how long it took."""

    start: int
    end: int
    seconds: float
    notifications: int

    @property
    def events_per_s(self) -> float:
        """How many a second."""
        return (self.end - self.start) / self.seconds


@dataclass(frozen=True, slots=True)
class Ran:
    """What one query of a pipeline did."""

    changes: int
    """Numbers below this are subscriptions, the others events."""
    batches: list[Batch]
    """The warm ones."""
    first_s: float
    """From the start until events were first told."""
    told: list[dict[str, Any]]
    """What Spark says of its batches."""
    cpu_us: float | None = None
    """An event in the warm batches, of all processes together."""

    @property
    def events_per_s(self) -> float:
        """The median of the warm batches."""
        return median(batch.events_per_s for batch in self.batches)

    @property
    def us(self) -> float:
        """An event in the quickest batch: other processes can only add to it."""
        return 1e6 / max(batch.events_per_s for batch in self.batches)

    @property
    def told_per_event(self) -> float:
        """How many are told of an event."""
        rows = sum(batch.end - batch.start for batch in self.batches)
        return sum(batch.notifications for batch in self.batches) / rows


@contextmanager
def own_place() -> Iterator[Path]:
    """A directory that is removed in the end, and where all of our processes put what they keep.

    A pipeline that found the index of an earlier run would load faster than one can.
    """
    before = os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="driftline-bench-", ignore_cleanup_errors=True) as root:
        os.environ["TMPDIR"] = tempfile.tempdir = root
        try:
            yield Path(root)
        finally:
            tempfile.tempdir = None
            del os.environ["TMPDIR"]
            if before is not None:
                os.environ["TMPDIR"] = before


def ran_once(spark: Spark, config: PipelineConfig, query: str) -> Ran:
    """Run a pipeline over all there is, and look at one of its queries."""
    from driftline.spark.running import Run

    watched = Watched(query)
    run = Run(spark, config, watched)
    start = time.time()
    run.once()
    changes = changes_of(config)
    commits = commits_of(config, query)
    batches = batches_in(commits, changes, config.run.events_per_batch)[WARM:]
    first = next(when for one, when in commits if one.end > changes)
    cpu_us = watched.us_between(batches[0].start, batches[-1].end)
    return Ran(changes, batches, first / 1e9 - start, run.said(query), cpu_us)


class Watched:
    """Notes how much CPU time was taken when a query had come so far."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._noted: dict[int, float | None] = {}

    def __call__(self, progress: Progress) -> None:
        """Look at how far it is."""
        done = progress.done.get(self._query, 0)
        if done not in self._noted:
            self._noted[done] = tree_cpu_s()

    def us_between(self, start: int, end: int) -> float | None:
        """Of an event between two numbers, as far as somebody looked in time; None: unknown."""
        seen = [(at, spent) for at, spent in sorted(self._noted.items()) if start <= at <= end]
        if len(seen) < 2:
            return None
        (first, before), (last, after) = seen[0], seen[-1]
        # What a process took that has ended meanwhile may be lost.
        if before is None or after is None or after < before:
            return None
        return (after - before) / (last - first) * 1e6


def changes_of(config: PipelineConfig) -> int:
    """How many numbers of the sequence are subscriptions."""
    sequence = RecordedSequence(config.checkpoint / "sequence").refresh()
    return sum(one.rows for one in sequence if one.what is What.CHANGES)


def commits_of(config: PipelineConfig, query: str) -> list[tuple[Manifest, int]]:
    """The batches of a query, and when they were committed: nanoseconds since 1970."""
    folder = Path(config.out.path, MANIFESTS)
    return [
        (one, (folder / f"{query}-{one.batch}.json").stat().st_mtime_ns)
        for one in committed(config.out.path)
        if one.query == query
    ]


def batches_in(commits: Sequence[tuple[Manifest, int]], changes: int, full: int) -> list[Batch]:
    """The batches that are full of events, each from when the one before was committed."""
    return [
        Batch(one.start, one.end, (when - before) / 1e9, one.notifications)
        for (_, before), (one, when) in pairwise(commits)
        if one.start >= changes and one.end - one.start == full
    ]


def rows_told(config: PipelineConfig, table: str, start: int, end: int) -> pa.Table:
    """What was written of events with numbers in [start, end)."""
    found = [
        _in_texts(pq.read_table(Path(config.out.path, one.path)))
        for manifest in committed(config.out.path)
        if manifest.start < end and manifest.end > start
        for one in manifest.files
        if one.table == table
    ]
    rows = pa.concat_tables(found)
    seqs = rows.column("seq").to_numpy()
    return rows.filter(pa.array((seqs >= start) & (seqs < end))).sort_by("seq")


def _in_texts(rows: pa.Table) -> pa.Table:
    """Ids may be texts in one file and numbers of texts in another."""
    at = rows.schema.get_field_index("subscriptions")
    chunks = [in_texts(chunk) for chunk in rows.column(at).chunks]
    return rows.set_column(at, "subscriptions", pa.chunked_array(chunks, IDS))
