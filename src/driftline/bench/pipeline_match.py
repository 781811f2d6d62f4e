"""How many events a second does a pipeline match, from file to file, and does that stay flat?

Events are read from Parquet, matched with all subscriptions, and written with the ids of those they
satisfy, one row each; a batch counts when its manifest is there. NumPy must find the same pairs for
some of the events.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from driftline.bench.peers import peer
from driftline.bench.peers.shape import Pairs
from driftline.bench.pipeline_files import config_of, numbers_in, write_events, write_groups
from driftline.bench.pipeline_runs import WARM, Ran, Spark, ran_once, rows_told
from driftline.recorded.config import PipelineConfig
from driftline.spark.manifest import MATCH
from driftline.workload.draws import band, quotes
from driftline.workload.matching import SEED, WORKLOADS
from driftline.workload.prepared import Group

CHECKED = 200
"""For so many events of the last batch all subscriptions are tried."""

# An event satisfies about so many where their number varies: of 500 symbols by popularity a range
# of width w matches 2e-4 · w / 5,600 of all.
_MATCHES = 5
_SHARE = 2e-4 / 5_600


@dataclass(frozen=True, slots=True)
class Size:
    """How many events there are in a batch, and how many batches are counted."""

    per_batch: int
    counted: int

    @property
    def events(self) -> int:
        """All of them."""
        return self.per_batch * (1 + WARM + self.counted)


@dataclass(frozen=True, slots=True)
class Matched:
    """One run."""

    groups: list[Group]
    events: pa.RecordBatch
    subscriptions: int
    config: PipelineConfig
    ran: Ran

    def as_data(self) -> dict[str, float | None]:
        """The figures as JSON."""
        return {
            "subscriptions": self.subscriptions,
            "batch": self.ran.batches[0].end - self.ran.batches[0].start,
            "batches": len(self.ran.batches),
            "events_per_s": self.ran.events_per_s,
            "cpu_us": self.ran.cpu_us,
            "us": self.ran.us,
            "matches_per_event": self.ran.told_per_event,
            "load_s": self.ran.first_s,
        }


def measured(spark: Spark, root: Path, name: str, count: int, size: Size) -> Matched:
    """So many subscriptions of a workload."""
    workload = WORKLOADS[name]
    groups = workload.groups(count)
    return _measured(spark, root, workload.type, groups, workload.events(size.events), size)


def measured_flat(spark: Spark, root: Path, count: int, size: Size) -> Matched:
    """So many subscriptions, of which an event satisfies as many however many there are."""
    draw = np.random.default_rng([SEED, count])
    width = max(1, round(_MATCHES / (_SHARE * count)))
    groups = [band(draw, np.arange(count, dtype=np.int32), width)]
    return _measured(spark, root, "quote", groups, quotes(draw, size.events), size)


def _measured(
    spark: Spark, root: Path, type: str, groups: list[Group], events: pa.RecordBatch, size: Size
) -> Matched:
    config = config_of(root, size.per_batch)
    count = write_groups(config, groups)
    write_events(config, type, events, size.per_batch)
    ran = ran_once(spark, config, MATCH)
    _check(config, ran, groups, events)
    return Matched(groups, events, count, config, ran)


def _check(config: PipelineConfig, ran: Ran, groups: list[Group], events: pa.RecordBatch) -> None:
    first = ran.batches[-1].start
    rows = rows_told(config, "matched", first, first + CHECKED)
    counts, numbers = numbers_in(rows.column("subscriptions"))
    ours = Pairs(np.repeat(rows.column("seq").to_numpy() - first, counts), numbers)
    scan = peer("numpy", groups)
    assert scan is not None
    scan.take(events.slice(first - ran.changes, CHECKED))
    (ask,) = scan.formulations().values()
    assert np.array_equal(ours.codes(), ask().codes()), "not the pairs that a scan finds"


def pairs_of(found: Matched, events: int) -> int:
    """How many pairs the first events have."""
    first = found.ran.changes
    rows = rows_told(found.config, "matched", first, first + events)
    return int(numbers_in(rows.column("subscriptions"))[0].sum())
