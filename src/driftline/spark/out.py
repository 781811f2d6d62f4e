"""How is each batch written exactly once?

Workers write files, under names that no other attempt has. A batch counts from the moment its
manifest has its name, which is the last step and cannot happen by half. Spark repeats a batch,
under the same number and with the same rows, when it cannot know that the last attempt was
finished: one whose manifest is there is passed over, and what the attempt wrote is removed.

The directory must be on a file system where renaming is atomic and which all workers see.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from driftline.errors import FileRefused
from driftline.recorded.sequence import replace_file, sync
from driftline.spark.manifest import MANIFESTS, Manifest, Written, committed_batch


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
        """In a worker: put what is in no file yet into one."""
        # Loaded when needed: the process that commits, and starts often, writes no tables.
        from driftline.spark.pieces import pieces_in
        from driftline.spark.tables import write_tables

        return Message(tuple(write_tables(pieces_in(iterator), self._out, self._query)))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver: let the batch count; pass over one that does already."""
        files = [
            one for message in messages if isinstance(message, Message) for one in message.files
        ]
        start, end = numbers_of(self._offsets, batchId)
        known = committed_batch(self._out, self._query, batchId)
        if known is not None:
            if known.pipeline != self._pipeline:
                raise FileRefused(self._out, None, f"batch {batchId} is of another pipeline")
            if (known.start, known.end) != (start, end):
                there = f"[{known.start}, {known.end}) there, and [{start}, {end}) by Spark"
                why = f"batch {batchId} has the numbers {there}: is its checkpoint an old copy?"
                raise FileRefused(self._out, None, why)
            self._remove(files, known)
            return
        manifest = Manifest(
            self._query, batchId, self._pipeline, start, end, tuple(sorted(files, key=_by_path))
        )
        for folder in {Path(self._out, one.path).parent for one in files}:
            sync(folder)
        final = Path(self._out, MANIFESTS, f"{self._query}-{batchId}.json")
        replace_file(final, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver: what was written counts for nothing, unless the batch does already.

        It may: what comes after the manifest has its name can fail too.
        """
        known = committed_batch(self._out, self._query, batchId)
        for message in messages:
            if isinstance(message, Message):
                self._remove(message.files, known)

    def _remove(self, files: Iterable[Written], known: Manifest | None) -> None:
        named = {one.path for one in known.files} if known is not None else set()
        for one in files:
            if one.path not in named:
                with suppress(OSError):
                    os.unlink(Path(self._out, one.path))


def _by_path(one: Written) -> str:
    return one.path


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
