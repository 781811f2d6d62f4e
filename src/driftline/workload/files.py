"""How are events and subscriptions written where a pipeline reads them?

Events go to Parquet, one column per attribute and the envelope in columns `ce_…`: the wide form
that `driftline.spark.schemas` describes. An attribute must have one type throughout; integers and
floats in one column would be a rounding in waiting. Subscriptions go to JSON lines.

Each file is written under a hidden name and renamed when it is whole, because a stream may already
be watching the directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from driftline.errors import InvalidValue
from driftline.language.cloudevents import event_to
from driftline.language.records import Record, record_to
from driftline.model.event import Event
from driftline.model.value import type_name

_TIME = pa.timestamp("us", tz="UTC")

_COLUMN_TYPES: dict[type, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    datetime: _TIME,
    bytes: pa.binary(),
}


def write_events(events: Sequence[Event], folder: str, files: int = 1) -> list[str]:
    """Write the events as so many Parquet files, in order and of about equal size."""
    if files < 1:
        raise InvalidValue("files", "at least 1", str(files))
    table = table_of(events)
    Path(folder).mkdir(parents=True, exist_ok=True)
    bounds = [len(events) * part // files for part in range(files + 1)]
    written = []
    for part in range(files):
        final = Path(folder, f"events-{part:05}.parquet")
        temporary = final.with_name(f".{final.name}.new")
        pq.write_table(table.slice(bounds[part], bounds[part + 1] - bounds[part]), temporary)
        os.replace(temporary, final)
        written.append(str(final))
    return written


def table_of(events: Sequence[Event]) -> pa.Table:
    """The events as columns; refuses an attribute that changes its type.

    >>> table_of([Event("quote", {"price": 9.5}, id="7")]).column_names
    ['ce_type', 'ce_id', 'ce_source', 'ce_time', 'ce_entered', 'price']
    """
    columns = {
        "ce_type": pa.array([event.type for event in events], pa.string()),
        "ce_id": pa.array([event.id for event in events], pa.string()),
        "ce_source": pa.array([event.source for event in events], pa.string()),
        "ce_time": pa.array([event.time for event in events], pa.int64()).cast(_TIME),
        "ce_entered": pa.array([event.entered for event in events], pa.int64()).cast(_TIME),
    }
    for name, column_type in _attribute_types(events).items():
        if name in columns:
            raise InvalidValue(f"attribute {name}", "a name that is no envelope column", repr(name))
        columns[name] = pa.array([event.attributes.get(name) for event in events], column_type)
    return pa.table(columns)


def _attribute_types(events: Iterable[Event]) -> dict[str, pa.DataType]:
    """The type of each attribute, in the order they first appear."""
    seen: dict[str, type] = {}
    for event in events:
        for name, value in event.attributes.items():
            known = seen.setdefault(name, type(value))
            if known is not type(value):
                wanted = f"one type in all events, {_COLUMN_TYPES[known]} as before"
                raise InvalidValue(f"attribute {name}", wanted, type_name(value))
    return {name: _COLUMN_TYPES[python_type] for name, python_type in seen.items()}


def write_json_events(events: Iterable[Event], path: str) -> None:
    """Write the events as CloudEvents, one JSON object per line: any types, any attributes."""
    write_lines((event_to(event) for event in events), path)


def write_records(records: Iterable[Record], path: str) -> None:
    """Write subscriptions, one JSON object per line."""
    write_lines((record_to(record) for record in records), path)


def write_lines(rows: Iterable[object], path: str) -> None:
    """Write JSON objects, one per line."""
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = final.with_name(f".{final.name}.new")
    encode = msgspec.json.Encoder().encode
    with open(temporary, "wb") as stream:
        stream.writelines(encode(row) + b"\n" for row in rows)
    os.replace(temporary, final)
