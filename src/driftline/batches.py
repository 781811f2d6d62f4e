"""Which events are the rows of columns that somebody publishes?

Lists and arrays become Arrow columns, and `language.columns` says what a row means. Where all
columns are plain (numbers, booleans and texts, no envelope) their values are what events hold, and
need not be looked at one by one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from driftline.errors import InvalidValue
from driftline.language.columns import TYPE, Layout, events_of, layout_of
from driftline.model.event import Event
from driftline.model.value import Value, show
from driftline.stateful.rows.change import is_derived

_ENVELOPE = "ce_"


def batch_of(type: object, columns: object) -> pa.RecordBatch:
    """Columns of events of a type; InvalidValue if they cannot be."""
    if not isinstance(type, str) or not type or is_derived(type):
        raise InvalidValue("event type", "a name that does not begin with $", show(type))
    batch = columns if isinstance(columns, pa.RecordBatch) else _made(columns)
    if TYPE in batch.schema.names:
        raise InvalidValue(f"column {TYPE}", "none, as the type is given", "one")
    layout_of(batch.schema, type)
    return batch


def _made(columns: object) -> pa.RecordBatch:
    if not isinstance(columns, Mapping):
        came = show(columns)
        raise InvalidValue("columns", "columns by name, or an Arrow record batch", came)
    try:
        arrays = [_array(str(name), column) for name, column in columns.items()]
        return pa.RecordBatch.from_arrays(arrays, names=[str(name) for name in columns])
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as problem:
        raise InvalidValue("columns", "columns of one length", str(problem)) from None


def _array(name: str, column: object) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise InvalidValue(f"column {name}", "one dimension", str(column.shape))
    # NaN is a value: what is missing is None.
    return pa.array(column, from_pandas=False)


def events_from(type: str, batch: pa.RecordBatch) -> list[Event]:
    """The events, as they are before they enter; InvalidValue if a row is none."""
    found: list[Event] = []
    layout = Layout(tuple(batch.schema.names), False, type)
    for at, event in enumerate(events_of(batch, layout)):
        if isinstance(event, str):
            raise InvalidValue(f"row {at}", "an event", event)
        found.append(event)
    return found


def entering(type: str, batch: pa.RecordBatch, now: int) -> list[Event]:
    """The events, as they enter at one instant; InvalidValue if a row is none."""
    names, columns = batch.schema.names, _plain(batch)
    if columns is None:
        return [event.entering(now) for event in events_from(type, batch)]
    rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
    if any(column.null_count for column in batch.columns):
        rows = ({name: one for name, one in row.items() if one is not None} for row in rows)
    return [Event.of_admitted(type, row, now) for row in rows]


def _plain(batch: pa.RecordBatch) -> list[list[Value | None]] | None:
    """The values of columns that events may hold as they are; None if there are others."""
    if not all(map(_is_plain, batch.schema)):
        return None
    try:
        return [column.to_pylist() for column in batch.columns]
    except UnicodeDecodeError:
        return None  # A producer need not have looked whether its texts are UTF-8.


def _is_plain(field: pa.Field) -> bool:
    kind = field.type
    # Integers without a sign may be too large.
    number = pa.types.is_signed_integer(kind) or pa.types.is_floating(kind)
    plain = number or pa.types.is_boolean(kind) or pa.types.is_string(kind)
    return bool(plain and field.name and not field.name.startswith(_ENVELOPE))
