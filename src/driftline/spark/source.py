"""How does Spark read a recorded sequence, and write what follows from it?

As the source `driftline`, whose offsets are numbers of the sequence: what a batch holds is said by
two numbers, and the same two give the same rows whenever they are asked for. It reads only what is
recorded; a `Recorder` does that.

    checkpoint    the directory of the pipeline (required)
    changes       "true": with the changes; else events, and what was refused when it was recorded
    limit         so many rows in a batch
    slices        so many tasks for a large batch
    later         "true": not rows, but where they are, for a stage that reads them itself

As a sink, `driftline` writes pieces to the tables of a directory (see `out`).

    path          the directory (required)
    query         what the batches are called
    checkpoint    the directory of the pipeline, and `checkpointLocation`, that of the query
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from driftline.errors import FileRefused, InvalidValue
from driftline.recorded.sequence import RecordedSequence, Segment
from driftline.spark.manifest import pipeline_id
from driftline.spark.out import ManifestWriter
from driftline.spark.pieces import PIECES, carried
from driftline.spark.slices import opened, slice_of

NAME = "driftline"
_LEAST = 20_000
"""So many rows are worth a task of their own."""


class DriftlineSource(DataSource):
    """The source and sink, for `spark.dataSource.register`."""

    @classmethod
    def name(cls) -> str:
        """What it is called."""
        return NAME

    def schema(self) -> StructType:
        """Pieces."""
        return PIECES

    def streamWriter(self, schema: StructType, overwrite: bool) -> ManifestWriter:
        """Who writes it batch by batch."""
        options = self.options
        return ManifestWriter(
            options["path"],
            options["query"],
            pipeline_id(options["checkpoint"]),
            str(Path(options["checkpointLocation"], "offsets")),
        )

    def streamReader(self, schema: StructType) -> SequenceReader:
        """Who reads it batch by batch."""
        return SequenceReader(self.options)


@dataclass
class Slices(InputPartition):
    """Parts of files, for one task."""

    parts: list[tuple[Segment, int, int]]


class SequenceReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads numbers [start, end) of a sequence."""

    def __init__(self, options: Mapping[str, str]) -> None:
        if "checkpoint" not in options:
            raise InvalidValue("options", "checkpoint, the directory of a pipeline", "none")
        self._root = Path(options["checkpoint"])
        self._changes = options.get("changes", "false") == "true"
        self._limit = int(options.get("limit", 1_000_000))
        self._slices = int(options.get("slices", 2))
        self._later = options.get("later", "false") == "true"
        self._sequence = RecordedSequence(self._root / "sequence")
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:
        """The beginning."""
        return {"seq": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        """What is recorded now is all there is."""
        self._target = self._sequence.refresh().end

    def getDefaultReadLimit(self) -> ReadLimit:
        """So many rows."""
        return ReadMaxRows(self._limit)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """How far the next batch goes."""
        end = self._sequence.refresh().end if self._target is None else self._target
        if end < start["seq"]:
            why = f"it ends at {end}, and batches have gone to {start['seq']}: recordings are lost"
            raise FileRefused(str(self._root / "sequence"), None, why)
        if isinstance(limit, ReadAllAvailable):
            return {"seq": end}
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self._limit
        return {"seq": min(end, start["seq"] + rows)}

    def reportLatestOffset(self) -> dict[str, int]:
        """How far it could go."""
        return {"seq": self._sequence.refresh().end}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Slices]:
        """The parts of files, in about as many equal shares as were asked for."""
        first, last = start["seq"], end["seq"]
        share = max(-(-(last - first) // self._slices), _LEAST)
        slices: list[Slices] = []
        room = 0
        for segment, low, high in self._sequence.refresh().between(first, last):
            while low < high:
                if room == 0:
                    slices.append(Slices([]))
                    room = share
                cut = min(high, low + room)
                slices[-1].parts.append((segment, low, cut))
                room = max(room - (cut - low), 0)
                low = cut
        return slices

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The parts of one share; what is in them, or where that is."""
        assert isinstance(partition, Slices)
        for segment, low, high in partition.parts:
            part = slice_of(segment, low, high, changes=self._changes)
            yield from carried([part] if self._later else opened([part], str(self._root)))
