"""Where does the time of a batch go?

The stages of a batch are run again in this process, one after the other and without Spark, and
their CPU times are put beside what the batch took on all cores: what is left is Spark's, and
waiting. What the state store took, Spark says itself.

    kernel    matching; or the shard, from events to what is told
    arrow     Parquet and Arrow: reading, packing for the way between processes, writing
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

from driftline.bench.pipeline_runs import CORES, Batch, Ran
from driftline.bulk import clean_columns
from driftline.language.columns import Layout
from driftline.recorded import inputs as packing
from driftline.recorded.config import PipelineConfig
from driftline.recorded.inputs import ShardState
from driftline.recorded.places import Share


def match_shares(config: PipelineConfig, ran: Ran) -> dict[str, float]:
    """Of the last batch of a run, in which nothing is remembered."""
    from driftline.spark.matched import Matching, versions_of
    from driftline.spark.out import ManifestWriter
    from driftline.spark.pieces import pieces_in

    batch = ran.batches[-1]
    checkpoint = str(config.checkpoint)
    tables = {name: kept.declaration for name, kept in config.places.tables.items()}
    matching = Matching(checkpoint, tables, config.events.default_type)
    versions = versions_of(checkpoint)
    _read(config, batch, changes=False)  # The files come from the disk once.
    with _Timed() as read:
        source = _read(config, batch, changes=False)
    _find(versions, pieces_in(source[:1]))
    with _Timed() as kernel:
        _find(versions, pieces_in(source))
    with _Timed() as stage:
        matched = list(matching(iter(source)))
    writer = ManifestWriter(str(Path(config.out.path, "again")), "match", "", "")
    with _Timed() as write:
        writer.write(iter(matched))
    arrow_s = read.s + stage.s - kernel.s + write.s
    return _shares(batch, {"kernel": kernel.s, "arrow": arrow_s})


def shard_shares(config: PipelineConfig, ran: Ran) -> dict[str, float]:
    """Of the first warm batch of a run that remembers; what came before is taken first."""
    from driftline.spark.manifest import TOLD
    from driftline.spark.out import ManifestWriter
    from driftline.spark.pieces import carried, piece_of, pieces_in
    from driftline.spark.reformulate import Routing

    batch = ran.batches[0]
    shards = config.run.shards
    route = Routing(
        str(config.checkpoint), config.places, config.events.default_type, tuple(range(shards))
    )
    states = [_begun(config, shard) for shard in range(shards)]
    before = Batch(0, batch.start, 1.0, 0)
    for one in (before, batch):
        with _Timed() as arrow:
            pieces = list(pieces_in(route(iter(_read(config, one, changes=True)))))
        with _Timed() as kernel:
            told = [*map(_taken, states, _by_shard(pieces, shards))]
    writer = ManifestWriter(str(Path(config.out.path, "again")), "reformulate", "", "")
    with _Timed() as write:
        writer.write(carried(piece_of(TOLD, 0, rows) for some in told for rows in some))
    spent = {"kernel": kernel.s, "arrow": arrow.s + write.s, "state store": _store_s(ran)}
    return _shares(batch, spent)


def _begun(config: PipelineConfig, shard: int) -> ShardState:
    tables = tuple(kept.declaration for kept in config.places.tables.values())
    share = Share(config.places, shard)
    return ShardState(tables, config.order, config.events.default_type, share)


def _by_shard(pieces: Iterable[Any], shards: int) -> list[bytes]:
    found: list[list[packing.Piece]] = [[] for _ in range(shards)]
    for one in pieces:
        piece = packing.Piece(one.first, one.table == "changes", one.rows, one.content)
        found[one.shard].append(piece)
    return [packing.packed(some) for some in found]


def _taken(state: ShardState, inputs: bytes) -> list[pa.RecordBatch]:
    return state.take(inputs)


def _read(config: PipelineConfig, batch: Batch, *, changes: bool) -> list[pa.RecordBatch]:
    from driftline.spark.source import SequenceReader

    options = {"checkpoint": str(config.checkpoint), "changes": str(changes).lower()}
    reader = SequenceReader({**options, "slices": str(CORES)})
    parts = reader.partitions({"seq": batch.start}, {"seq": batch.end})
    return [piece for part in parts for piece in reader.read(part)]


def _find(versions: Any, pieces: Iterable[Any]) -> None:
    """Match, and make nothing of it."""
    for piece in pieces:
        for rows in piece.batches():
            names = tuple(rows.schema.names[2:])
            events = pa.RecordBatch.from_arrays(rows.columns[2:], names=names)
            columns = clean_columns(events, Layout(names, False, None))
            assert columns is not None
            at = versions.at(piece.first)
            at.find_batch(columns, at.env)


def _store_s(ran: Ran) -> float:
    """What the state store took to commit a batch, the median of its partitions together."""
    took = [
        sum(one["commitTimeMs"] for one in said["stateOperators"])
        for said in ran.told
        if said["numInputRows"] and said["stateOperators"]
    ]
    return float(median(took)) / 1e3


class _Timed:
    """How much CPU time is spent within, by this process."""

    def __enter__(self) -> _Timed:
        self.s = -time.process_time()
        return self

    def __exit__(self, *problem: object) -> None:
        self.s += time.process_time()


def _shares(batch: Batch, spent: dict[str, float]) -> dict[str, float]:
    """Shares of what the batch took on all cores."""
    whole = batch.seconds * CORES
    shares = {name: seconds / whole for name, seconds in spent.items()}
    return {**shares, "rest": 1 - sum(shares.values())}
