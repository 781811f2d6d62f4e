"""How many updates a second does a pipeline take where views of a least value listen?

`SELECT MIN(per) FROM stock WHERE risk BETWEEN :low AND :high`: 1,000 of them with narrow ranges,
over 100,000 tuples that change as `workload.stocks` says. For some views every change is computed
again from the tuples themselves, and must be what was told.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from driftline.bench.pipeline_files import config_of, write_events, write_subscriptions
from driftline.bench.pipeline_match import Size
from driftline.bench.pipeline_runs import Ran, Spark, ran_once, rows_told
from driftline.recorded.config import PipelineConfig, TableConfig
from driftline.spark.manifest import REFORMULATE
from driftline.workload.stocks import DOMAIN, SEED, Stocks, stocks

TUPLES, VIEWS = 100_000, 1_000
WIDTH = DOMAIN / 1_000
"""Of a range: about a hundred tuples."""
CHECKED = 10
"""So many views are computed again."""

TEXT = "SELECT MIN(per) FROM stock WHERE risk BETWEEN :low AND :high"


@dataclass(frozen=True, slots=True)
class Viewed:
    """One run."""

    tuples: int
    views: int
    config: PipelineConfig
    ran: Ran

    def as_data(self) -> dict[str, float | None]:
        """The figures as JSON."""
        return {
            "tuples": self.tuples,
            "views": self.views,
            "batch": self.config.run.events_per_batch,
            "events_per_s": self.ran.events_per_s,
            "cpu_us": self.ran.cpu_us,
            "told_per_event": self.ran.told_per_event,
            "load_s": self.ran.first_s,
        }


def measured(spark: Spark, root: Path, tuples: int, views: int, size: Size) -> Viewed:
    """Run it over updates in batches, after a table that comes first."""
    drawn = stocks(tuples, size.events)
    low = np.random.default_rng(SEED).uniform(0, DOMAIN - WIDTH, views)
    config = config_of(root, size.per_batch, {"stock": TableConfig("id")})
    write_subscriptions(config, [(np.arange(views), TEXT, {"low": low, "high": low + WIDTH})])
    ids = np.concatenate((np.arange(tuples), drawn.updates.ids))
    points = np.concatenate((drawn.points, drawn.updates.points))
    columns = {"id": ids, "risk": points[:, 0].copy(), "per": points[:, 1].copy()}
    write_events(config, "stock", pa.record_batch(columns), size.per_batch)
    ran = ran_once(spark, config, REFORMULATE)
    _check(config, ran, drawn, low)
    return Viewed(tuples, views, config, ran)


def _check(config: PipelineConfig, ran: Ran, drawn: Stocks, low: np.ndarray) -> None:
    """Compare what some views were told in the first warm batch."""
    batch = ran.batches[0]
    first = ran.changes + len(drawn.points)
    start, end = batch.start - first, batch.end - first
    rows = rows_told(config, "told", batch.start, batch.end)
    ids = rows.column("subscriptions").to_pylist()
    told = zip(rows.column("seq").to_pylist(), ids, rows.column("values").to_pylist(), strict=True)
    ours: dict[str, list[tuple[int, float]]] = {}
    for seq, views, values in told:
        for view in views:
            ours.setdefault(view, []).append((seq - first, *json.loads(values).values()))
    for view in range(CHECKED):
        wanted = recomputed(drawn, low[view], low[view] + WIDTH, start, end)
        assert ours.get(str(view), []) == wanted, f"view {view} was not told what is so"


def recomputed(
    drawn: Stocks, low: float, high: float, start: int, end: int
) -> list[tuple[int, float]]:
    """The changes of a least value in [start, end) of the updates; x stays as it is."""
    updates = drawn.updates
    inside = (drawn.points[:, 0] >= low) & (drawn.points[:, 0] <= high)
    values = drawn.points[:, 1].copy()
    found = []
    least = values[inside].min()
    for at in np.flatnonzero(inside[updates.ids[:end]]).tolist():
        values[updates.ids[at]] = updates.points[at, 1]
        now = values[inside].min()
        if now != least and at >= start:
            found.append((at, float(now)))
        least = now
    return found
