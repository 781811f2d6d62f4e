"""How is each batch written exactly once?

Workers write files, under names that no other attempt has. A batch counts from the moment its
manifest has its name, which is the last step and cannot happen by half. Spark repeats a batch,
under the same number and with the same rows, when it cannot know that the last attempt was
finished: one whose manifest is there is passed over, and what the attempt wrote is removed.

The directory must be on a file system where renaming is atomic and which all workers see.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from driftline.errors import FileRefused
from driftline.recorded.sequence import replace_file, sync
from driftline.spark.manifest import MANIFESTS, REFUSED, TOLD, Manifest, Written, committed_batch
from driftline.spark.pieces import REFUSED_ROWS, pieces_in


@dataclass
class Message(WriterCommitMessage):
    """What one task has written."""

    files: tuple[Written, ...]


class ManifestWriter(DataSourceStreamArrowWriter):
    """The sink of one query: writes pieces, and commits batches."""

    def __init__(self, out: str, query: str, pipeline: str, offsets: str) -> None:
        self._out = out
        self._query = query
        self._pipeline = pipeline
        self._offsets = offsets

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        """In a worker: a file for each table that there are rows of."""
        writers: dict[tuple[str, pa.Schema], _TableFile] = {}
        for piece in pieces_in(iterator):
            for batch in piece.batches():
                for table, rows in _apart(piece.table, batch):
                    # Ids may be texts here and numbers of texts there, which are other columns.
                    which = table, rows.schema
                    if which not in writers:
                        writers[which] = _TableFile(self._out, table, self._query)
                    writers[which].write(rows)
        return Message(tuple(one.close() for one in writers.values()))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver: let the batch count; pass over one that does already."""
        files = [
            one for message in messages if isinstance(message, Message) for one in message.files
        ]
        known = committed_batch(self._out, self._query, batchId)
        if known is not None:
            if known.pipeline != self._pipeline:
                raise FileRefused(self._out, None, f"batch {batchId} is of another pipeline")
            _remove(self._out, files)
            return
        start, end = numbers_of(self._offsets, batchId)
        manifest = Manifest(
            self._query, batchId, self._pipeline, start, end, tuple(sorted(files, key=_by_path))
        )
        for folder in {Path(self._out, one.path).parent for one in files}:
            sync(folder)
        final = Path(self._out, MANIFESTS, f"{self._query}-{batchId}.json")
        replace_file(final, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver: what was written counts for nothing."""
        for message in messages:
            if isinstance(message, Message):
                _remove(self._out, list(message.files))


def _apart(table: str, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """What was told, and what a shard refused."""
    if table != TOLD or batch.column("problem").null_count == len(batch):
        yield table, batch.drop_columns(["problem"]) if table == TOLD else batch
        return
    refused = batch.column("problem").is_valid()
    told = batch.filter(batch.column("problem").is_null()).drop_columns(["problem"])
    if told.num_rows:
        yield TOLD, told
    rows = batch.filter(refused)
    nothing = pa.nulls(len(rows), pa.string())
    arrays = [rows.column("seq"), nothing, nothing, rows.column("problem")]
    yield REFUSED, pa.RecordBatch.from_arrays(arrays, schema=REFUSED_ROWS)


class _TableFile:
    """A Parquet file that is being written."""

    def __init__(self, out: str, table: str, query: str) -> None:
        self._out = out
        self._table = table
        self._path = f"{table}/{query}-{uuid.uuid4().hex}.parquet"
        self._file = Path(out, self._path)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._writer: pq.ParquetWriter | None = None
        self._rows = self._told = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, batch.schema)
        self._writer.write_batch(batch)
        self._rows += batch.num_rows
        if "subscriptions" in batch.schema.names:
            ids = batch.column("subscriptions")
            self._told += len(ids.flatten())

    def close(self) -> Written:
        assert self._writer is not None
        self._writer.close()
        sync(self._file)
        return Written(self._table, self._path, self._rows, self._told)


def _by_path(one: Written) -> str:
    return one.path


def _remove(out: str, files: list[Written]) -> None:
    for one in files:
        with suppress(OSError):
            os.unlink(Path(out, one.path))


def numbers_of(offsets: str, batch: int) -> tuple[int, int]:
    """Which numbers of the sequence a batch has, by Spark's own notes of offsets."""
    start = _offset(offsets, batch - 1) if batch else 0
    return start, _offset(offsets, batch)


def _offset(offsets: str, batch: int) -> int:
    file = Path(offsets, str(batch))
    try:
        last = file.read_text(encoding="utf-8").strip().split("\n")[-1]
        return int(msgspec.json.decode(last)["seq"])
    except (OSError, msgspec.DecodeError, KeyError, TypeError) as problem:
        raise FileRefused(str(file), None, f"no offsets of Spark: {problem}") from problem
