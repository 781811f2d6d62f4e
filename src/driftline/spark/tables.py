"""How are the rows of a batch put into files?

By whoever makes them, where they are made: of what a worker has matched or was told nothing need
go through Spark but the names of its files. Those are written under names that no other attempt
has, and count only when a manifest names them (see `out`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from driftline.recorded.sequence import sync
from driftline.spark.manifest import REFUSED, TOLD, Written
from driftline.spark.pieces import REFUSED_ROWS, WRITTEN, Piece

_IDS = "subscriptions"


def written(pieces: Iterable[Piece], out: str, query: str) -> Iterator[Piece]:
    """Put all rows into files, and say which those are."""
    for one in write_tables(pieces, out, query):
        yield Piece(0, 0, WRITTEN, one.rows, msgspec.json.encode(one))


def write_tables(pieces: Iterable[Piece], out: str, query: str) -> list[Written]:
    """A file for each table that there are rows of; what is in files already stays there."""
    done: list[Written] = []
    writers: dict[tuple[str, pa.Schema], _TableFile] = {}
    for piece in pieces:
        if piece.table == WRITTEN:
            done.append(msgspec.json.decode(piece.content, type=Written))
            continue
        for batch in piece.batches():
            for table, rows in _apart(piece.table, batch):
                # Ids may be texts here and numbers of texts there, which are other columns.
                which = table, rows.schema
                if which not in writers:
                    writers[which] = _TableFile(out, table, query)
                writers[which].write(rows)
    return done + [one.close() for one in writers.values()]


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
            self._writer = _parquet(self._file, batch.schema)
        self._writer.write_batch(batch)
        self._rows += batch.num_rows
        if _IDS in batch.schema.names:
            self._told += len(batch.column(_IDS).flatten())

    def close(self) -> Written:
        assert self._writer is not None
        self._writer.close()
        sync(self._file)
        return Written(self._table, self._path, self._rows, self._told)


def _parquet(file: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer that looks for no least and greatest id, packs no ids, and gives them no numbers
    unless they have some: any of that takes longer than everything else, for next to nothing.
    """
    others = [name for name in schema.names if name != _IDS]
    ids = f"{_IDS}.list.element"
    numbered = _IDS in schema.names and pa.types.is_dictionary(schema.field(_IDS).type.value_type)
    return pq.ParquetWriter(
        file,
        schema,
        compression={**dict.fromkeys(others, "snappy"), ids: "none"},
        write_statistics=others,
        use_dictionary=[*others, ids] if numbered else others,
    )
