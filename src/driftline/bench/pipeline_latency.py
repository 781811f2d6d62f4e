"""How long is it from when a file is there until what follows from it is committed?

A pipeline runs on and on. Small files are written under a hidden name and renamed, at times drawn
at random; the latency of a file is the time from its rename to the manifest of the batch that has
its last row. *Stateless* are plain filters; *stateful* is the second query, with followers of
values and views of a least value, while the first one runs beside it.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from driftline.bench.pipeline_files import (
    config_of,
    write_events,
    write_groups,
    write_subscriptions,
)
from driftline.bench.pipeline_runs import Spark, commits_of
from driftline.bench.pipeline_views import TEXT
from driftline.recorded.config import PipelineConfig, TableConfig
from driftline.recorded.sequence import RecordedSequence
from driftline.spark.manifest import MATCH, REFORMULATE
from driftline.workload.draws import band, quotes
from driftline.workload.matching import SEED

FILES, ROWS = 40, 100
WARM = 5
"""So many files come first, each when the one before was taken, and are not counted."""
SUBSCRIPTIONS = 10_000
_PAUSE_S = (0.3, 1.0)
_PATIENCE_S = 120.0
_ITEMS, _FOLLOWED = 1_000, 100
"""Rows of the table, and those of them that have followers; views are of ten rows."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds, and where the time of a batch goes by Spark's account, in milliseconds."""

    files: int
    p50_s: float
    p95_s: float
    max_s: float
    batch_ms: dict[str, float]


@dataclass(slots=True)
class _Dropping:
    """Drops files while a pipeline runs."""

    config: PipelineConfig
    tables: list[pa.Table]
    query: str
    dropped_ns: dict[str, int] = field(default_factory=dict)
    _is_over: bool = False
    _problem: Exception | None = None

    def drop(self) -> None:
        """All of them; slowly, as long as workers start."""
        try:
            draw = np.random.default_rng(SEED)
            for number, table in enumerate(self.tables):
                if number <= WARM:
                    self._wait()
                time.sleep(draw.uniform(*_PAUSE_S))
                self._drop(f"dropped-{number:03}.parquet", table)
            self._wait()
        except Exception as problem:
            self._problem = problem
        self._is_over = True

    def is_over(self) -> bool:
        """Is everything there and taken? AssertionError if it is not, after a long time."""
        if self._problem is not None:
            raise self._problem
        return self._is_over

    def _drop(self, name: str, table: pa.Table) -> None:
        hidden, final = (Path(self.config.events.path, one) for one in (f".{name}", name))
        pq.write_table(table, hidden)
        os.rename(hidden, final)
        self.dropped_ns[str(final)] = time.time_ns()

    def _wait(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not self._is_taken():
            assert time.monotonic() < deadline, "the pipeline does not go on"
            time.sleep(0.1)

    def _is_taken(self) -> bool:
        sequence = RecordedSequence(self.config.checkpoint / "sequence").refresh()
        known = {one.path for one in sequence}
        ends = [one.end for one, _ in commits_of(self.config, self.query)]
        return self.dropped_ns.keys() <= known and ends[-1:] == [sequence.end]


def stateless(spark: Spark, root: Path, files: int = FILES) -> Latency:
    """Plain filters."""
    config = config_of(root, 100_000)
    draw = np.random.default_rng(SEED)
    write_groups(config, [band(draw, np.arange(SUBSCRIPTIONS, dtype=np.int32))])
    write_events(config, "quote", quotes(draw, ROWS), ROWS)
    tables = [_table("quote", quotes(draw, ROWS)) for _ in range(WARM + files)]
    return _measured(spark, config, tables, MATCH)


def stateful(spark: Spark, root: Path, files: int = FILES) -> Latency:
    """Followers and views of one table."""
    config = config_of(root, 100_000, {"stock": TableConfig("id")})
    draw = np.random.default_rng(SEED)
    text = "SELECT per FROM stock WHERE id = '{}' AND moved(per, by => :r)"
    low = draw.uniform(0, _ITEMS - 10, SUBSCRIPTIONS // 10)
    each = SUBSCRIPTIONS // _FOLLOWED
    followers = [
        (np.arange(each) + item * each, text.format(name), {"r": draw.uniform(1, 50, each)})
        for item, name in enumerate(_items()[:_FOLLOWED])
    ]
    views = (np.arange(len(low)) + SUBSCRIPTIONS, TEXT, {"low": low, "high": low + 10})
    write_subscriptions(config, [*followers, views])
    write_events(config, "stock", _stocks(draw, np.arange(_ITEMS)), _ITEMS)
    drawn = (draw.choice(_ITEMS, ROWS, replace=False) for _ in range(WARM + files))
    tables = [_table("stock", _stocks(draw, some)) for some in drawn]
    return _measured(spark, config, tables, REFORMULATE)


def _measured(spark: Spark, config: PipelineConfig, tables: list[pa.Table], query: str) -> Latency:
    from driftline.spark.running import Run

    dropping = _Dropping(config, tables, query)
    thread = threading.Thread(target=dropping.drop, daemon=True)
    thread.start()
    run = Run(spark, config)
    run.forever(dropping.is_over)
    thread.join()
    times = latencies(config, query, dropping.dropped_ns)[WARM:]
    p50, p95, most = np.quantile(times, (0.5, 0.95, 1.0)).tolist()
    return Latency(len(times), p50, p95, most, _spent(run.said(query)[-len(times) :]))


def latencies(config: PipelineConfig, query: str, dropped_ns: dict[str, int]) -> list[float]:
    """Seconds from when each file was there until its last row was committed, in their order."""
    commits = commits_of(config, query)
    found = []
    for segment in RecordedSequence(config.checkpoint / "sequence").refresh():
        if segment.path in dropped_ns:
            when = next(when for one, when in commits if one.end >= segment.end)
            found.append((when - dropped_ns[segment.path]) / 1e9)
    return found


def _spent(said: list[dict[str, Any]]) -> dict[str, float]:
    """The median of what Spark spent on each step of a batch with rows."""
    steps = [one["durationMs"] for one in said if one["numInputRows"]]
    names = sorted({name for one in steps for name in one})
    return {name: float(np.median([one.get(name, 0) for one in steps])) for name in names}


def _table(type: str, events: pa.RecordBatch) -> pa.Table:
    arrays = [
        one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in events
    ]
    names = ["ce_type", *events.schema.names]
    return pa.table([pa.repeat(type, len(events)), *arrays], names=names)


def _stocks(draw: np.random.Generator, some: np.ndarray) -> pa.RecordBatch:
    """A new value for each of some rows; the x of a row stays."""
    values = draw.normal(1_000, 30, len(some)).round(2)
    ids = pa.array(_items()).take(pa.array(some))
    return pa.record_batch({"id": ids, "risk": some.astype(float), "per": values})


def _items() -> list[str]:
    return [f"S{item:03}" for item in range(_ITEMS)]
