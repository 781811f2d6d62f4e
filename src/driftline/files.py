"""How are events and subscriptions read from files, and matches written?

JSON lines or Parquet, told by the file's name. A subscription that cannot be honoured refuses its
file, naming the line: nobody should find out later that a part of it was passed over. A row that
is no event is carried on as the text of its problem: one bad row must not lose a million good ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from driftline.errors import DriftlineError, FileRefused, InvalidValue
from driftline.language.columns import Problem, events_of, events_of_texts, layout_of
from driftline.language.records import Record, record_from
from driftline.model.event import Event

BATCH = 5_000
"""Events read, matched and written at a time: memory stays flat, and a bar moves often enough."""

_JSON_LINES = (".jsonl", ".ndjson", ".json")
_PARQUET = ".parquet"

_RESULT = pa.schema(
    [
        pa.field("event", pa.int64(), nullable=False),
        pa.field("ce_id", pa.string()),
        pa.field("ce_source", pa.string()),
        pa.field("subscriptions", pa.list_(pa.string())),
        pa.field("problem", pa.string()),
    ]
)


def read_subscriptions(path: Path) -> tuple[Record, ...]:
    """All subscriptions of a file; one without an id is called by its line or row: `line 7`."""
    records = []
    seen: set[str] = set()
    for number, row in rows_of(path):
        try:
            if isinstance(row, FileRefused):
                raise row
            record = record_from(row, f"line {number}")
            if record.id in seen:
                raise InvalidValue("id", "each id once", f"{record.id!r} again")
        except FileRefused:
            raise
        except DriftlineError as error:
            raise FileRefused(str(path), number, str(error)) from error
        seen.add(record.id)
        records.append(record)
    return tuple(records)


def rows_of(path: Path) -> Iterator[tuple[int, object]]:
    """The rows of a file by their numbers, as JSON objects; for a line that is none, the error."""
    if _is_parquet(path):
        try:
            rows = pq.read_table(path).to_pylist()
        except (OSError, pa.ArrowException, ValueError, OverflowError, KeyError) as error:
            # Also a time that Python has none for, or a zone that nobody knows.
            raise FileRefused(str(path), None, str(error)) from error
        for number, row in enumerate(rows, 1):
            yield number, {name: _nested(name, value) for name, value in row.items()}
        return
    for number, line in _lines(path):
        try:
            yield number, msgspec.json.decode(line)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            yield number, FileRefused(str(path), number, f"wanted a JSON object: {error}")


def _nested(name: str, value: object) -> object:
    """In a Parquet file of subscriptions, `params` and `filters` are JSON texts or structs."""
    if name not in ("params", "filters"):
        return value
    if isinstance(value, str):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return value
    if name == "params" and isinstance(value, list) and all(map(_is_pair, value)):
        return dict(value)  # a map column
    if isinstance(value, dict):
        return {key: inner for key, inner in value.items() if inner is not None}
    return value


def _is_pair(one: object) -> bool:
    return isinstance(one, tuple) and len(one) == 2


def count_events(path: Path) -> int:
    """How many rows a file has, as far as a progress bar needs to know."""
    if _is_parquet(path):
        try:
            return int(pq.read_metadata(path).num_rows)
        except (OSError, pa.ArrowException) as error:
            raise FileRefused(str(path), None, str(error)) from error
    return sum(1 for _ in _lines(path))


def read_events(
    path: Path, default_type: str | None = None
) -> Iterator[list[tuple[int, Event | Problem]]]:
    """The events of a file in batches, each with its place (from 1: the line, or the row)."""
    if _is_parquet(path):
        yield from _parquet_events(path, default_type)
        return
    lines = _lines(path)
    while batch := list(islice(lines, BATCH)):
        numbers, texts = zip(*batch, strict=True)
        yield list(zip(numbers, events_of_texts(texts, default_type), strict=True))


def _parquet_events(
    path: Path, default_type: str | None
) -> Iterator[list[tuple[int, Event | Problem]]]:
    number = 1
    try:
        with pq.ParquetFile(path) as file:
            layout = layout_of(file.schema_arrow, default_type)
            for batch in file.iter_batches(BATCH):
                events = events_of(batch, layout)
                yield list(enumerate(events, number))
                number += len(events)
    except InvalidValue as error:
        raise FileRefused(str(path), None, str(error)) from error
    except (OSError, pa.ArrowException) as error:
        raise FileRefused(str(path), None, str(error)) from error


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with open(path, "rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield number, line
    except OSError as error:
        raise FileRefused(str(path), None, error.strerror or str(error)) from error


def _is_parquet(path: Path) -> bool:
    if path.suffix not in (*_JSON_LINES, _PARQUET):
        wanted = f"a name ending in {', '.join(_JSON_LINES)} or {_PARQUET}"
        raise FileRefused(str(path), None, f"wanted {wanted}")
    return path.suffix == _PARQUET


class MatchWriter:
    """Writes one row per event that matched or was refused; whole, or not at all.

    Rows go to a hidden file beside the target, which takes its name when the `with` block ends
    without an error: nobody reads half a result.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._parquet = _is_parquet(path)
        self._temporary = path.with_name(f".{path.name}.new")
        self._stream: IO[bytes] | None = None
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> MatchWriter:
        try:
            self._stream = open(self._temporary, "wb")
            if self._parquet:
                self._writer = pq.ParquetWriter(self._stream, _RESULT)
        except OSError as error:
            raise FileRefused(str(self._path), None, error.strerror or str(error)) from error
        return self

    def write(self, rows: Sequence[dict[str, object]]) -> None:
        """Write a batch of rows (see `match_row`)."""
        assert self._stream is not None
        if self._writer is not None:
            self._writer.write_table(pa.Table.from_pylist(list(rows), _RESULT))
        else:
            self._stream.writelines(msgspec.json.encode(row) + b"\n" for row in rows)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._stream is not None
        try:
            if self._writer is not None:
                self._writer.close()
            self._stream.close()
            if kind is None:
                self._temporary.replace(self._path)
        except OSError as failure:
            raise FileRefused(str(self._path), None, failure.strerror or str(failure)) from failure
        finally:
            self._temporary.unlink(missing_ok=True)


def match_row(number: int, event: Event | Problem, ids: Sequence[str]) -> dict[str, object]:
    """One row of a result: the event's place, id and source, and whom it is told to."""
    if isinstance(event, str):
        return {"event": number, "problem": event}
    row: dict[str, object] = {"event": number, "subscriptions": list(ids)}
    if event.id is not None:
        row["ce_id"] = event.id
    if event.source is not None:
        row["ce_source"] = event.source
    return row
