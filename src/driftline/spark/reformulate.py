"""What is told of events that need memory: views, moved(…), crossed(…), patterns, live rows?

    pieces of events and changes  →  routed to shards  →  pieces of what was told

Spark's state store keeps the truth of each shard (`recorded.shard`): versions, and inputs since the
last snapshot. The structures themselves lie in a mapped file of the machine.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from driftline.errors import FileRefused
from driftline.language.columns import Layout
from driftline.recorded import inputs as packing
from driftline.recorded.changes import Change
from driftline.recorded.config import PipelineConfig
from driftline.recorded.inputs import ShardState, packed_changes
from driftline.recorded.places import Places, Share
from driftline.recorded.routing import routed
from driftline.recorded.shard import Files, Truth, advance
from driftline.spark.manifest import REFORMULATE, TOLD, pipeline_id
from driftline.spark.match import Transform
from driftline.spark.matched import versions_of
from driftline.spark.pieces import CHANGES, EVENTS, PIECES, Piece, carried, piece_of, pieces_in
from driftline.spark.private import private, user
from driftline.spark.slices import opened
from driftline.spark.tables import written

_TRUTH = StructType(
    [
        StructField("version", LongType()),
        StructField("chain", BinaryType()),
        StructField("snapshot", LongType()),
        StructField("snapshot_chain", BinaryType()),
        StructField("logged", LongType()),
    ]
)
_UNUSED_S = 30 * 86_400
_LOG = StructType([StructField("inputs", BinaryType())])


def reformulated(config: PipelineConfig, spark: SparkSession) -> Transform:
    """A transform of pieces, with state: events and changes become what was told of them."""
    checkpoint = str(config.checkpoint)
    route = Routing(
        checkpoint, config.places, config.events.default_type, _labels(spark, config.run.shards)
    )
    shards = Shards(config, checkpoint, route.labels)

    def transform(pieces: DataFrame) -> DataFrame:
        return (
            pieces.mapInArrow(route, PIECES)
            .groupBy("shard")
            .transformWithStateInPandas(shards, PIECES, outputMode="append", timeMode="none")
        )

    return transform


def _labels(spark: SparkSession, shards: int) -> tuple[int, ...]:
    """Numbers for the shards that Spark puts on as many partitions, one on each."""
    found: dict[int, int] = {}
    numbers = spark.range(shards * 64).select(
        F.col("id").cast("int"), F.expr(f"pmod(hash(cast(id AS int)), {shards})")
    )
    for label, partition in numbers.collect():
        found.setdefault(partition, label)
    return tuple(found[one] for one in range(shards))


@dataclass(frozen=True, slots=True)
class Routing:
    """Cuts pieces up, so that each shard gets what it must be shown."""

    checkpoint: str
    places: Places
    default_type: str | None
    labels: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        versions = versions_of(self.checkpoint)
        for piece in opened(pieces_in(batches), self.checkpoint):
            if piece.table == CHANGES:
                yield from carried(self._changes(piece))
            elif piece.table == EVENTS:
                wants = versions.at(piece.first).wants
                for batch in piece.batches():
                    yield from carried(self._events(batch, wants))

    def _changes(self, piece: Piece) -> Iterator[Piece]:
        shown: dict[int, list[tuple[int, int, Change]]] = {}
        for seq, at, shards, change in piece.things():
            for shard in shards:
                shown.setdefault(shard, []).append((seq, at, change))
        for shard, some in shown.items():
            yield Piece(self.labels[shard], some[0][0], CHANGES, len(some), packed_changes(some))

    def _events(self, batch: pa.RecordBatch, wants: Any) -> Iterator[Piece]:
        names = tuple(batch.schema.names[2:])
        layout = Layout(names, names == ("value",), self.default_type)
        events = pa.RecordBatch.from_arrays(batch.columns[2:], names=names)
        for shard, rows in enumerate(routed(self.places, wants, events, layout)):
            if len(rows):
                some = batch if len(rows) == len(batch) else batch.take(pa.array(rows))
                yield piece_of(EVENTS, some.column(0)[0].as_py(), some, self.labels[shard])


class Shards(StatefulProcessor):
    """One shard at a time: takes its pieces of a batch, and says what is told of them."""

    def __init__(self, config: PipelineConfig, checkpoint: str, labels: tuple[int, ...]) -> None:
        self._config = config
        self._checkpoint = checkpoint
        self._labels = labels

    def init(self, handle: StatefulProcessorHandle) -> None:
        """What Spark keeps for a shard."""
        self._truth = handle.getValueState("truth", _TRUTH)
        self._log = handle.getListState("log", _LOG)

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """All pieces of one shard in a batch."""
        pieces = [
            packing.Piece(first, table == CHANGES, count, content)
            for some in rows
            for first, table, count, content in zip(
                some["first"], some["table"], some["rows"], some["content"], strict=True
            )
        ]
        shard = self._labels.index(int(key[0]))
        told = advance(
            _SparkMemory(self._truth, self._log),
            self._files(shard),
            partial(self._begin, shard),
            packing.packed(pieces),
            self._config.run.replayed,
        )
        found = (piece_of(TOLD, _first(batch), batch, shard) for batch in told)
        files = written(found, self._config.out.path, REFORMULATE)
        yield pd.DataFrame(files, columns=list(PIECES.fieldNames()))

    def _begin(self, shard: int) -> ShardState:
        config, places = self._config, self._config.places
        tables = tuple(kept.declaration for kept in places.tables.values())
        return ShardState(tables, config.order, config.events.default_type, Share(places, shard))

    def _files(self, shard: int) -> Files:
        snapshots = Path(self._checkpoint, "snapshots", str(shard))
        whose = f"{pipeline_id(self._checkpoint)}-{self._config.fingerprint}-{shard}"
        try:
            return Files(snapshots, private(cache_directory()) / whose)
        except (OSError, FileRefused) as problem:
            logging.getLogger(__name__).warning("shards are made again each time: %s", problem)
            return Files(snapshots, None)

    def close(self) -> None:
        """Nothing is left open."""


class _SparkMemory:
    """Where Spark keeps a shard's truth."""

    def __init__(self, truth: Any, log: Any) -> None:
        self._truth = truth
        self._log = log

    def truth(self) -> Truth | None:
        if not self._truth.exists():
            return None
        version, chain, snapshot, snapshot_chain, logged = self._truth.get()
        return Truth(version, bytes(chain), snapshot, bytes(snapshot_chain), logged)

    def log(self) -> list[bytes]:
        return [bytes(row[0]) for row in self._log.get()] if self._log.exists() else []

    def keep(self, truth: Truth, inputs: bytes | None) -> None:
        self._truth.update(
            (truth.version, truth.chain, truth.snapshot, truth.snapshot_chain, truth.logged)
        )
        if inputs is None:
            self._log.clear()
        else:
            self._log.appendValue((inputs,))


def cache_directory() -> Path:
    """Where shards lie on this machine."""
    chosen = os.environ.get("DRIFTLINE_CACHE_DIR")
    if chosen:
        return Path(chosen, "driftline", "shards")
    return Path(tempfile.gettempdir(), f"driftline-shards-{user()}")


def remove_unused() -> None:
    """Remove shards of pipelines that have not run on this machine for a long time.

    One that runs again makes them again.
    """
    oldest = time.time() - _UNUSED_S
    with suppress(OSError):
        for file in cache_directory().iterdir():
            if file.stat().st_mtime < oldest:
                file.unlink()


def _first(batch: pa.RecordBatch) -> int:
    first: int = batch.column(0)[0].as_py()
    return first
