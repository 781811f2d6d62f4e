"""In what form do rows travel between the stages of a pipeline?

In pieces: many rows of one table, in columns, as the bytes of Arrow. Spark moves and keeps them
without looking inside, which costs nothing by the row; whoever wants rows takes them out.

    shard     int      whom it is for, where that matters
    first     bigint   the number in the sequence it begins with
    table     string   what its rows are: events, changes, matched, told, refused; or where they
                       are: a slice of a file, or one that was written
    rows      bigint   how many
    content   binary   the rows
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import types as T

from driftline.recorded.packing import packed_events

EVENTS = "events"
CHANGES = "changes"
WRITTEN = "written"

PIECES = T.StructType(
    [
        T.StructField("shard", T.IntegerType()),
        T.StructField("first", T.LongType()),
        T.StructField("table", T.StringType()),
        T.StructField("rows", T.LongType()),
        T.StructField("content", T.BinaryType()),
    ]
)
_ARROW = pa.schema(
    [
        pa.field("shard", pa.int32()),
        pa.field("first", pa.int64()),
        pa.field("table", pa.string()),
        pa.field("rows", pa.int64()),
        pa.field("content", pa.binary()),
    ]
)

REFUSED_ROWS = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),
        # Where it stood, and what it was: the line, or the row as JSON.
        pa.field("file", pa.string()),
        pa.field("content", pa.string()),
        pa.field("problem", pa.string(), nullable=False),
    ]
)


class Piece(NamedTuple):
    """Some rows of a table."""

    shard: int
    first: int
    table: str
    rows: int
    content: bytes | pa.RecordBatch
    """Bytes, once it has come from somewhere or is to go there."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its rows."""
        if isinstance(self.content, pa.RecordBatch):
            yield self.content
        else:
            yield from pa.ipc.open_stream(self.content)

    def things(self) -> list[Any]:
        """What it holds that are no rows."""
        found: list[Any] = pickle.loads(self.content)
        return found

    def packed(self) -> Piece:
        """The same in bytes."""
        if isinstance(self.content, pa.RecordBatch):
            return self._replace(content=packed_events(self.content))
        return self


def piece_of(table: str, first: int, batch: pa.RecordBatch, shard: int = 0) -> Piece:
    """A piece of some rows."""
    return Piece(shard, first, table, batch.num_rows, batch)


def things_of(table: str, first: int, things: list[Any], shard: int = 0) -> Piece:
    """A piece of what are no rows."""
    return Piece(shard, first, table, len(things), pickle.dumps(things, protocol=5))


def carried(pieces: Iterable[Piece]) -> Iterator[pa.RecordBatch]:
    """Pieces as Spark is given them, a few megabytes at a time."""
    for piece in pieces:
        cells = zip(piece.packed(), _ARROW, strict=True)
        arrays = [pa.array([one], field.type) for one, field in cells]
        yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def pieces_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    """Pieces as Spark gives them."""
    for batch in batches:
        yield from map(Piece._make, zip(*(column.to_pylist() for column in batch), strict=True))
