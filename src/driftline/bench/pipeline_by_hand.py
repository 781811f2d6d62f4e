"""What would one write with Spark alone, to tell followers that a value moved?

`applyInPandasWithState`, grouped by the item: the followers of an item in a Python dictionary, or
in NumPy's arrays, and what they were told last in the state. On the first of the events of
`pipeline_followers`, with the same pairs of event and follower.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from driftline.bench.pipeline_followers import Followed, names, pairs_of
from driftline.bench.pipeline_runs import CORES, WARM, Spark

BATCHES = 2
"""That are counted, after as many that are not."""

_STATE = "state BINARY"
_TOLD = "seq BIGINT, id BIGINT"


def by_hand(spark: Spark, root: Path, found: Followed, events: int) -> dict[str, float]:
    """Events a second of the first events, in batches of so many; the same are told."""
    some, batches = found.drawn, WARM + BATCHES
    files = root / "peer-events"
    files.mkdir(parents=True)
    for number in range(batches):
        columns = some.columns(number * events, (number + 1) * events)
        seqs = pa.array(np.arange(number * events, (number + 1) * events))
        table = pa.Table.from_batches([columns]).append_column("seq", seqs)
        at = table.schema.get_field_index("symbol")
        table = table.set_column(at, "symbol", table.column(at).cast(pa.string()))
        pq.write_table(table, files / f"{number}.parquet")
    followers = str(root / "followers.parquet")
    symbols = pa.array(names()).take(pa.array(some.items))
    pq.write_table(pa.table({"symbol": symbols, "radius": some.radii}), followers)
    expected = pairs_of(found, 0, batches * events)
    rates = {}
    for name, tell in (("dictionary", _told_by_dictionary), ("numpy", _told_by_numpy)):
        out = root / f"peer-{name}"
        seconds = _streamed(spark, files, out, _stage(followers, tell))
        told = pq.read_table(out, columns=["seq", "id"])
        columns = (told.column(one).to_pylist() for one in ("seq", "id"))
        assert set(zip(*columns, strict=True)) == expected, f"{name}: others are told"
        rates[name] = events / seconds
    return rates


def _streamed(spark: Spark, files: Path, out: Path, stage: Callable[..., Any]) -> float:
    """The median of the warm batches' seconds, by Spark's own account."""
    spark.conf.set("spark.sql.shuffle.partitions", str(CORES))
    rows = (
        spark.readStream.schema("symbol STRING, price DOUBLE, seq BIGINT")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(files))
    )
    query = (
        rows.groupBy("symbol")
        .applyInPandasWithState(stage, _TOLD, _STATE, "append", "NoTimeout")
        .writeStream.trigger(availableNow=True)
        .option("checkpointLocation", f"{out}-checkpoint")
        .format("parquet")
        .start(str(out))
    )
    query.awaitTermination()
    took = [one.durationMs["triggerExecution"] / 1e3 for one in query.recentProgress]
    return float(median(took[WARM:]))


Tell = Callable[[pd.DataFrame, dict[int, float], Any], tuple[list[int], list[int], Any]]


def _stage(followers: str, tell: Tell) -> Callable[..., Any]:
    def told(key: tuple[str], frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        events = pd.concat(list(frames)).sort_values("seq")
        last = pickle.loads(state.get[0]) if state.exists else None
        seqs, ids, last = tell(events, _followers(followers)[key[0]], last)
        state.update((pickle.dumps(last),))
        yield pd.DataFrame({"seq": seqs, "id": ids}, dtype="int64")

    return told


@lru_cache(maxsize=1)
def _followers(path: str) -> dict[str, dict[int, float]]:
    """The radii of the followers of each item, as long as a worker lives."""
    found: dict[str, dict[int, float]] = {}
    table = pq.read_table(path)
    columns = (table.column(name).to_pylist() for name in ("symbol", "radius"))
    for number, (symbol, radius) in enumerate(zip(*columns, strict=True)):
        found.setdefault(symbol, {})[number] = radius
    return found


def _told_by_dictionary(
    events: pd.DataFrame, radii: dict[int, float], last: dict[int, float] | None
) -> tuple[list[int], list[int], dict[int, float]]:
    known = {} if last is None else last
    seqs, ids = [], []
    for seq, price in zip(events["seq"].tolist(), events["price"].tolist(), strict=True):
        for id, radius in radii.items():
            if id not in known or abs(price - known[id]) >= radius:
                known[id] = price
                seqs.append(seq)
                ids.append(id)
    return seqs, ids, known


def _told_by_numpy(
    events: pd.DataFrame, radii: dict[int, float], last: np.ndarray | None
) -> tuple[list[int], list[int], np.ndarray]:
    numbers, reach = np.array(list(radii)), np.array(list(radii.values()))
    known = np.full(len(reach), np.inf) if last is None else last
    seqs, ids = [], []
    for seq, price in zip(events["seq"].tolist(), events["price"].tolist(), strict=True):
        told = np.flatnonzero(np.abs(price - known) >= reach)
        if len(told):
            known[told] = price
            seqs += [seq] * len(told)
            ids += numbers[told].tolist()
    return seqs, ids, known
