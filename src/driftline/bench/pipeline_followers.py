"""How many events a second reach followers who each want to know when a value moved by so much?

`SELECT price FROM stock WHERE symbol = … AND moved(price, by => :r)`: 100,000 followers of 200
items, any radii (see `value_workloads`), each item a walk of its own. A compiled scan of the
followers of some items must tell the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from driftline.bench.pipeline_files import (
    config_of,
    numbers_in,
    write_events,
    write_subscriptions,
)
from driftline.bench.pipeline_match import Size
from driftline.bench.pipeline_runs import Ran, Spark, ran_once, rows_told
from driftline.bench.value_peers import scanned
from driftline.bench.value_workloads import SEED, radii_of, walk
from driftline.recorded.config import PipelineConfig, TableConfig
from driftline.spark.manifest import REFORMULATE

FOLLOWERS, ITEMS = 100_000, 200
STEP = 100.0
CHECKED = 3
"""So many items are scanned."""

_TEXT = "SELECT price FROM stock WHERE symbol = '{}' AND moved(price, by => :r)"


@dataclass(frozen=True, slots=True)
class Drawn:
    """Followers by number, each of an item, and events in their order."""

    items: np.ndarray
    radii: np.ndarray
    of_event: np.ndarray
    values: np.ndarray

    def columns(self, start: int, end: int) -> pa.RecordBatch:
        """Some of the events."""
        symbols = pa.DictionaryArray.from_arrays(self.of_event[start:end], pa.array(names()))
        return pa.record_batch({"symbol": symbols, "price": self.values[start:end]})


@dataclass(frozen=True, slots=True)
class Followed:
    """One run."""

    drawn: Drawn
    config: PipelineConfig
    ran: Ran

    def as_data(self) -> dict[str, float | None]:
        """The figures as JSON."""
        return {
            "subscriptions": len(self.drawn.items),
            "items": ITEMS,
            "batch": self.config.run.events_per_batch,
            "events_per_s": self.ran.events_per_s,
            "cpu_us": self.ran.cpu_us,
            "told_per_event": self.ran.told_per_event,
            "load_s": self.ran.first_s,
        }


def drawn(followers: int, events: int) -> Drawn:
    """So many followers and events; the same for the same numbers."""
    draw = np.random.default_rng(SEED)
    items = np.arange(followers) % ITEMS
    of_event = draw.integers(0, ITEMS, events).astype(np.int32)
    values = np.empty(events)
    for item in range(ITEMS):
        there = of_event == item
        values[there] = walk(draw, STEP, int(there.sum()))
    return Drawn(items, radii_of("any", followers, draw), of_event, values)


def measured(spark: Spark, root: Path, followers: int, size: Size) -> Followed:
    """Run it over events in batches."""
    some = drawn(followers, size.events)
    config = config_of(root, size.per_batch, {"stock": TableConfig("symbol", spread=True)})
    of_item = [np.flatnonzero(some.items == item) for item in range(ITEMS)]
    write_subscriptions(
        config,
        [
            (those, _TEXT.format(name), {"r": some.radii[those]})
            for name, those in zip(names(), of_item, strict=True)
        ],
    )
    write_events(config, "stock", some.columns(0, size.events), size.per_batch)
    found = Followed(some, config, ran_once(spark, config, REFORMULATE))
    for item in range(CHECKED):
        _check(found, item, of_item[item])
    return found


def _check(found: Followed, item: int, those: np.ndarray) -> None:
    """Compare with a scan: of its first value all are told, and then those for whom it moved."""
    ran, some = found.ran, found.drawn
    last = ran.batches[0]
    events = np.flatnonzero(some.of_event[: last.end - ran.changes] == item)
    values = some.values[events]
    expected, _ = scanned(some.radii[those], np.full(len(those), values[0]), values[1:])
    wanted = {
        (int(event), int(those[at]))
        for event, told in zip(events[1:], expected, strict=True)
        for at in told
        if event + ran.changes >= last.start
    }
    pairs = pairs_of(found, last.start - ran.changes, last.end - ran.changes)
    ours = {(event, id) for event, id in pairs if some.items[id] == item}
    assert ours == wanted, f"not whom a scan tells: {len(ours ^ wanted)} others"


def pairs_of(found: Followed, start: int, end: int) -> set[tuple[int, int]]:
    """Which event was told to which follower, of some of the events."""
    first = found.ran.changes
    rows = rows_told(found.config, "told", first + start, first + end)
    counts, ids = numbers_in(rows.column("subscriptions"))
    events = np.repeat(rows.column("seq").to_numpy() - first, counts)
    return set(zip(events.tolist(), ids.tolist(), strict=True))


def names() -> list[str]:
    """Of the items."""
    return [f"S{item:03}" for item in range(ITEMS)]
