"""How does an Arrow batch become events, exactly?

Integers stay 64-bit integers and times stay microseconds: no value passes through a float or a
pandas column on its way. A row that cannot be an event becomes the text of what is wrong with it,
in its place; nothing here raises because of what a row holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from driftline.errors import DriftlineError, InvalidValue
from driftline.language.cloudevents import event_from
from driftline.model.event import Event
from driftline.model.value import show, time_of
from driftline.spark.schemas import DATA, ENTERED, ID, SOURCE, TEXT, TIME, TYPE, Layout

Problem: TypeAlias = str

# A cell that cannot be a value carries its error until its row is put together.
_Cell: TypeAlias = object

# What text from outside can cause: our refusals, JSON that is malformed, badly encoded (a
# ValueError), out of range, or nested until the parser gives up.
_REFUSALS = (DriftlineError, ValueError, OverflowError, RecursionError)


def events_of(batch: pa.RecordBatch, layout: Layout) -> list[Event | Problem]:
    """For each row its event, or why it is none."""
    if layout.is_text:
        texts = _strings(batch.column(0), TEXT)
        return [_attempt(_event_from_text, layout, text) for text in texts]
    columns = [_cells(batch.column(place), name) for place, name in enumerate(layout.names)]
    return [_attempt(_event_from_row, layout, row) for row in zip(*columns, strict=True)]


def _attempt(read: Callable[[Layout, Any], Event], layout: Layout, row: object) -> Event | Problem:
    try:
        return read(layout, row)
    except _REFUSALS as error:
        return str(error)


def _event_from_text(layout: Layout, text: _Cell) -> Event:
    if isinstance(text, InvalidValue):
        raise text
    envelope = _json(text, "event")
    if layout.default_type is not None and envelope.get("type") is None:
        envelope = {**envelope, "type": layout.default_type}
    return event_from(envelope)


def _event_from_row(layout: Layout, row: Sequence[_Cell]) -> Event:
    present: dict[str, Any] = {}
    for name, cell in zip(layout.names, row, strict=True):
        if cell is None:
            continue
        if isinstance(cell, InvalidValue):
            raise cell
        present[name] = cell
    take = present.pop
    event_type = take(TYPE, layout.default_type)
    id, source = take(ID, None), take(SOURCE, None)
    time, entered = take(TIME, None), take(ENTERED, None)
    data = take(DATA, None)
    if event_type is None:
        raise InvalidValue(TYPE, "the event's type", "nothing")
    if data is not None:
        _add(present, _json(data, DATA))
    return Event(event_type, present, time=time, id=id, source=source, entered=entered)


def _add(attributes: dict[str, Any], data: Mapping[str, object]) -> None:
    for name, value in event_from({"type": DATA, "data": data}).attributes.items():
        if name in attributes:
            raise InvalidValue(f"attribute {name}", "it once", f"a column and {DATA}")
        attributes[name] = value


def _json(text: Any, where: str) -> Mapping[str, object]:
    if text is None:
        raise InvalidValue(where, "a JSON object", "nothing")
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidValue(where, "a JSON object", f"{show(text)}: {error}") from None
    if not isinstance(decoded, Mapping):
        raise InvalidValue(where, "a JSON object", show(decoded))
    return decoded


def _cells(column: pa.Array, name: str) -> Sequence[_Cell]:
    if pa.types.is_timestamp(column.type):
        microseconds = column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.int64())
        stamps: list[int | None] = microseconds.to_pylist()
        if name in (TIME, ENTERED):
            return stamps  # The envelope counts microseconds; Event checks the range.
        return [None if stamp is None else _time(stamp, name) for stamp in stamps]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _strings(column, name)
    cells: list[_Cell] = column.to_pylist()
    return cells


def _time(microseconds: int, name: str) -> _Cell:
    try:
        return time_of(microseconds)
    except OverflowError:
        came = f"{microseconds} microseconds since 1970"
        return InvalidValue(f"attribute {name}", "a time between the years 1 and 9999", came)


def _strings(column: pa.Array, name: str) -> Sequence[_Cell]:
    """The strings; an InvalidValue for bytes that are no UTF-8, which Spark does not check."""
    try:
        strings: list[_Cell] = column.to_pylist()
        return strings
    except UnicodeDecodeError:
        wide = pa.large_binary() if pa.types.is_large_string(column.type) else pa.binary()
        return [
            None if raw is None else _decoded(raw, name) for raw in column.cast(wide).to_pylist()
        ]


def _decoded(raw: bytes, name: str) -> _Cell:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        return InvalidValue(f"column {name}", "UTF-8", f"byte {error.start}: {error.reason}")
