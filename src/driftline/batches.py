"""Which events are the rows of columns that somebody publishes?

Lists and arrays become Arrow columns, and `language.columns` says what a row means. Where all
columns are plain (numbers, booleans and texts, no envelope) their values are what events hold, and
need not be looked at one by one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from driftline.errors import InvalidValue
from driftline.language.columns import (
    DATA,
    ENTERED,
    ID,
    SOURCE,
    TIME,
    TYPE,
    Layout,
    events_of,
    layout_of,
)
from driftline.model.event import EARLIEST_US, LATEST_US, Event
from driftline.model.value import show
from driftline.stateful.entering import Rows
from driftline.stateful.rows.change import is_derived

_ENVELOPE = "ce_"
_NAMES = {ID: "id", SOURCE: "source"}
_STAMPS = {TIME: "time", ENTERED: "entered"}


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
    # A copy: what is told of it may be looked at when the array holds something else. NaN is a
    # value: what is missing is None.
    return pa.array(column.copy() if isinstance(column, np.ndarray) else column, from_pandas=False)


def events_from(type: str, batch: pa.RecordBatch) -> list[Event]:
    """The events, as they are before they enter; InvalidValue if a row is none."""
    found: list[Event] = []
    layout = Layout(tuple(batch.schema.names), False, type)
    for at, event in enumerate(events_of(batch, layout)):
        if isinstance(event, str):
            raise InvalidValue(f"row {at}", "an event", event)
        found.append(event)
    return found


def entering(type: str, batch: pa.RecordBatch, now: int) -> Rows:
    """The events, as they enter, at one instant or as they say; InvalidValue if a row is none."""
    plain, envelope = _apart(batch)
    if all(map(_is_plain, plain.schema)) and _is_sound(batch):
        return Rows.of_columns(type, plain, now, envelope)
    events = [event.entering(now) for event in events_from(type, batch)]
    return Rows.of_events(type, events, now)


def _apart(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """The columns of attributes, and of the envelope if there are any.

    A name that an event may not have, or a time that is not in microseconds of the calendar, is
    left among the former, for which rows are looked at one by one.
    """
    said: dict[str, pa.Array] = {}
    left = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in _NAMES and pa.types.is_string(column.type) and _is_named(column):
            said[_NAMES[name]] = column
        elif name in _STAMPS and (stamps := _stamps(column)) is not None:
            said[_STAMPS[name]] = stamps
        elif not (name == DATA and column.null_count == len(column)):
            left.append(name)
    if len(left) == batch.num_columns:
        return batch, None
    envelope = pa.RecordBatch.from_arrays(list(said.values()), names=list(said)) if said else None
    return batch.select(left), envelope


def _stamps(column: pa.Array) -> pa.Int64Array | None:
    """Microseconds since 1970; None if they are not all within the calendar."""
    if not pa.types.is_timestamp(column.type) or column.type.unit != "us":
        return None
    stamps = column.cast(pa.int64())
    ends = pc.min_max(stamps).as_py()
    if ends["min"] is not None and (ends["min"] < EARLIEST_US or ends["max"] > LATEST_US):
        return None
    return stamps


def _is_named(column: pa.StringArray) -> bool:
    least = pc.min(pc.binary_length(column)).as_py()
    return least is None or least > 0


def _is_plain(field: pa.Field) -> bool:
    kind = field.type
    # Integers without a sign may be too large.
    number = pa.types.is_signed_integer(kind) or pa.types.is_floating(kind)
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    plain = number or pa.types.is_boolean(kind) or text
    return bool(plain and field.name and not field.name.startswith(_ENVELOPE))


def _is_sound(batch: pa.RecordBatch) -> bool:
    """Are texts UTF-8? A producer need not have looked."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
