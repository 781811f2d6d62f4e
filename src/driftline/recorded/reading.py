"""How are the rows of a recorded file read, from any number to any other, in one set of columns?

    seq         int64       the row's number in the sequence
    recorded    timestamp   when its file was recorded
    …                       the events' columns, as `language.columns` has them

Wide files may differ in columns. What a pipeline's columns do not have, a column that came later or
under another type, goes into `ce_data`, attribute by attribute: no event loses anything. An event
that says nothing of when it entered did so at its own time, or when it was recorded.

A cell that no event may have (bytes that are no text, a part of a microsecond) is not carried: its
row has the problem in the place of `ce_data`, and is refused for it like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from driftline.errors import FileRefused, InvalidValue
from driftline.language.cloudevents import value_to
from driftline.language.columns import (
    DATA,
    ENTERED,
    ID,
    SOURCE,
    TEXT,
    TIME,
    TYPE,
    cells_of,
    layout_of,
)
from driftline.model.event import EARLIEST_US, LATEST_US, stamp_of
from driftline.model.value import admit, show
from driftline.recorded.sequence import Segment

SEQ = "seq"
RECORDED = "recorded"

_STAMP = pa.timestamp("us", tz="UTC")
LEADING = (
    pa.field(SEQ, pa.int64(), nullable=False),
    pa.field(RECORDED, _STAMP, nullable=False),
)
TEXT_SCHEMA = pa.schema([*LEADING, pa.field(TEXT, pa.string())])

_ENVELOPE = (
    pa.field(TYPE, pa.string()),
    pa.field(ID, pa.string()),
    pa.field(SOURCE, pa.string()),
    pa.field(TIME, _STAMP),
    pa.field(ENTERED, _STAMP),
    pa.field(DATA, pa.string()),
)
_OURS = frozenset({SEQ, RECORDED, "subscriptions"})
"""Columns that what is carried and written has beside the events' own: an attribute of such a name
is carried in `ce_data`.
"""
_ENVELOPE_NAMES = frozenset(field.name for field in _ENVELOPE)

COLUMNS = "columns.arrow"
"""Where a pipeline keeps what columns its events have."""

ROWS = 100_000
"""Rows read at a time."""
TEXT_BYTES = 1 << 26
"""But no more text than this, or a line's: a column of texts has a limit."""


def wide_schema(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """The columns for files of these: of each name the type it has first."""
    found: dict[str, pa.DataType] = {}
    for schema in schemas:
        for field in schema:
            taken = field.name in _ENVELOPE_NAMES or field.name in _OURS
            if not taken and not pa.types.is_null(field.type):
                found.setdefault(field.name, _plain(field.type))
    return pa.schema([*LEADING, *_ENVELOPE, *(pa.field(name, t) for name, t in found.items())])


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type a column is carried in: Spark has no unsigned numbers, nor texts by number."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return _STAMP
    if pa.types.is_unsigned_integer(kind) or pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    return kind


def read_columns(root: Path) -> pa.Schema:
    """The columns of a pipeline's events."""
    return pa.ipc.read_schema(pa.py_buffer((root / COLUMNS).read_bytes()))


def event_columns(schema: pa.Schema) -> pa.Schema:
    """The columns that are the events'."""
    return pa.schema(list(schema)[len(LEADING) :])


def count_rows(path: str) -> tuple[int, pa.Schema | None]:
    """How many rows a file has, and its columns if it is a wide one; FileRefused if it is neither.

    Of JSON lines every line counts, also an empty one, which is passed over when it is read.
    """
    try:
        if path.endswith(".parquet"):
            metadata = pq.read_metadata(path)
            schema = metadata.schema.to_arrow_schema()
            return metadata.num_rows, None if layout_of(schema, "any").is_text else schema
        with open(path, "rb") as stream:
            return sum(1 for _ in stream), None
    except (OSError, pa.ArrowException, InvalidValue) as problem:
        raise FileRefused(path, None, str(problem)) from problem


def read(segment: Segment, low: int, high: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows [low, high) of a file of events."""
    path = segment.path
    segment.check_unchanged()
    try:
        rows = _wide(path, low, high) if path.endswith(".parquet") else _texts(path, low, high)
        for numbers, batch in rows:
            leading = [
                pa.array(numbers + segment.first, pa.int64()),
                pa.array(np.full(len(batch), segment.recorded), _STAMP),
            ]
            fitted = _fitted(batch, event_columns(schema), segment.recorded)
            yield pa.RecordBatch.from_arrays([*leading, *fitted], schema=schema)
    except (OSError, pa.ArrowException) as problem:
        raise FileRefused(path, None, str(problem)) from problem


_Numbered: TypeAlias = tuple[NDArray[np.int64], pa.RecordBatch]
"""Rows with their places in the file."""


def _wide(path: str, low: int, high: int) -> Iterator[_Numbered]:
    with pq.ParquetFile(path) as file:
        first = 0
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if first < high and first + rows > low:
                at = first
                for batch in _in_group(file, group, rows):
                    begin, end = max(low - at, 0), min(high - at, len(batch))
                    if begin < end:
                        yield np.arange(at + begin, at + end), batch.slice(begin, end - begin)
                    at += len(batch)
            first += rows


def _in_group(file: pq.ParquetFile, group: int, rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of a group; from where it cannot be read on, what is wrong with it instead."""
    read = 0
    try:
        for batch in file.iter_batches(ROWS, row_groups=[group]):
            yield batch
            read += len(batch)
    except (OSError, pa.ArrowException) as problem:
        if getattr(problem, "errno", None) is not None:
            raise  # It is not the file: somebody may mend it.
        said = msgspec.json.encode(f"row group {group} cannot be read: {problem}").decode()
        columns = {TYPE: "unreadable", DATA: said, TEXT: said}
        arrays = [pa.repeat(text, rows - read) for text in columns.values()]
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _texts(path: str, low: int, high: int) -> Iterator[_Numbered]:
    with open(path, "rb") as stream:
        some: list[tuple[int, bytes]] = []
        size = 0
        for number, line in enumerate(islice(stream, low, high), low):
            if line.strip():
                some.append((number, line.rstrip(b"\r\n")))
                size += len(line)
            if len(some) == ROWS or size > TEXT_BYTES:
                yield _lines(some)
                some, size = [], 0
        yield _lines(some)


def _lines(some: list[tuple[int, bytes]]) -> _Numbered:
    # Bytes that are no text are told apart where rows become events.
    texts = pa.array([line for _, line in some], pa.binary()).view(pa.string())
    numbers = np.array([number for number, _ in some], np.int64)
    return numbers, pa.RecordBatch.from_arrays([texts], names=[TEXT])


def _fitted(batch: pa.RecordBatch, schema: pa.Schema, recorded: int) -> list[pa.Array]:
    """The columns of a file as a pipeline has them; a row that is no event has `ce_data` that is
    none, so that what comes after needs to know only that.
    """
    if schema.names == [TEXT]:
        return [batch.column(TEXT).cast(pa.string())]
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = {name: one for name, one in columns.items() if not pa.types.is_null(one.type)}
    problems: dict[int, InvalidValue] = {}
    fitted: dict[str, pa.Array] = {}
    for field in schema:
        if field.name in columns and _plain(columns[field.name].type) == field.type:
            fitted[field.name] = _carried(columns.pop(field.name), field, problems)
        else:
            fitted[field.name] = pa.nulls(len(batch), field.type)
    if columns or problems:
        fitted[DATA] = _with_data(fitted[DATA], columns, problems)
    entered = pc.coalesce(fitted[ENTERED], fitted[TIME], pa.scalar(recorded, _STAMP))
    fitted[ENTERED] = entered
    fitted[TIME] = pc.coalesce(fitted[TIME], entered)
    return [fitted[name] for name in schema.names]


def _carried(column: pa.Array, field: pa.Field, problems: dict[int, InvalidValue]) -> pa.Array:
    """The column in the type it is carried in, without what no event may have; that is noted."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    with suppress(pa.ArrowInvalid):  # Numbers and times that do not fit, texts that are none.
        carried = column if column.type == field.type else column.cast(field.type)
        carried.validate(full=True)
        if field.type != _STAMP or _is_calendar(carried):
            return carried
    is_stamp = field.name in (TIME, ENTERED)
    kept: list[object] = []
    for row, cell in enumerate(cells_of(column, field.name)):
        try:
            kept.append(_admitted(cell, field.name))
        except InvalidValue as problem:
            problems.setdefault(row, problem)
            # A row without a type would be refused for that.
            kept.append("?" if field.name == TYPE else None)
    return pa.array(kept, pa.int64()).cast(_STAMP) if is_stamp else pa.array(kept, field.type)


def _is_calendar(stamps: pa.Array) -> bool:
    ends = pc.min_max(stamps.cast(pa.int64())).as_py()
    return ends["min"] is None or (ends["min"] >= EARLIEST_US and ends["max"] <= LATEST_US)


def _admitted(cell: object, name: str) -> object:
    if isinstance(cell, InvalidValue):
        raise cell
    if cell is None:
        return None
    return stamp_of(cell, name) if name in (TIME, ENTERED) else admit(cell, name)


def _with_data(
    data: pa.Array, others: dict[str, pa.Array], problems: dict[int, InvalidValue]
) -> pa.Array:
    """What no column holds, as JSON."""
    cells = [cells_of(one, name) for name, one in others.items()]
    texts: list[str | None] = []
    for row, text in enumerate(data.to_pylist()):
        try:
            if row in problems:
                raise problems[row]
            more = {name: column[row] for name, column in zip(others, cells, strict=True)}
            texts.append(_joined(text, more))
        except InvalidValue as problem:
            texts.append(msgspec.json.encode(str(problem)).decode())
    return pa.array(texts, pa.string())


def _joined(text: str | None, more: dict[str, object]) -> str | None:
    there = {name: _admitted(cell, name) for name, cell in more.items() if cell is not None}
    if not there:
        return text
    known = {} if text is None else _object(text)
    for name, value in there.items():
        if name in known:
            raise InvalidValue(f"attribute {name}", "it once", f"a column and {DATA}")
        known[name] = value_to(value)  # type: ignore[arg-type]
    return msgspec.json.encode(known).decode()


def _object(text: str) -> dict[str, object]:
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError) as problem:
        raise InvalidValue(DATA, "a JSON object", f"{show(text)}: {problem}") from None
