"""How do Arrow columns become events, exactly?

Events come in one of two forms.

**Wide**: one row per event, one column per attribute, null where the attribute is missing.

    column type                    attribute type
    string                         string
    integers                       integer
    floats                         float (NaN and infinities included)
    boolean                        boolean
    timestamp with a zone          time (UTC, microseconds)
    binary                         bytes

Some names are not attributes but the envelope, each optional:

    ce_type     string      the event's type; may be left out if a default type is given
    ce_id       string      its id
    ce_source   string      where it came from
    ce_time     timestamp   when its publisher says it happened
    ce_entered  timestamp   the stamp it got on entering the system, which `now()` reads; without
                            it `now()` reads ce_time
    ce_data     string      a JSON object of further attributes, for those whose type varies from
                            event to event: values and tags (`{"@time": …}`) as in `cloudevents`.
                            An attribute may not be given both there and in a column of its row.

Any other column `ce_<name>` is an attribute of that name: a CloudEvents extension.

**Text**: a single string column `value`, one CloudEvents JSON object per row. A default type stands
in where the object has none.

Any other column type (decimal, date, list, struct, a timestamp without a zone …) is refused before
any row is read: guessing what it means would be a silent change of meaning. A row that cannot be an
event becomes the text of what is wrong with it, in its place; nothing here raises because of what a
row holds, and no value passes through a float or a pandas column on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from driftline.errors import DriftlineError, InvalidValue
from driftline.language.cloudevents import event_from
from driftline.model.event import Event
from driftline.model.value import WANTED, show, time_of

TYPE = "ce_type"
ID = "ce_id"
SOURCE = "ce_source"
TIME = "ce_time"
ENTERED = "ce_entered"
DATA = "ce_data"
TEXT = "value"

_TEXTS = (TYPE, ID, SOURCE, DATA)
_STAMPS = (TIME, ENTERED)
_US_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}

Problem: TypeAlias = str

# A cell that cannot be a value carries its error until its row is put together.
_Cell: TypeAlias = object

# What text from outside can cause: our refusals, JSON that is malformed, badly encoded (a
# ValueError), out of range, or nested until the parser gives up.
_REFUSALS = (DriftlineError, ValueError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True)
class Layout:
    """How to read the rows of one table: all that a worker needs to know of its schema."""

    names: tuple[str, ...]
    is_text: bool
    default_type: str | None = None


def layout_of(schema: pa.Schema, default_type: str | None = None) -> Layout:
    """Check the columns; refuse what cannot be read, naming it."""
    names = tuple(schema.names)
    for name in names:
        if names.count(name) > 1:
            raise InvalidValue(f"column {name}", "each name once", f"it {names.count(name)} times")
    if names == (TEXT,) and _is_string(schema.field(0).type):
        return Layout(names, True, default_type)
    for field in schema:
        _check(field.name, field.type)
    if TYPE not in names and default_type is None:
        raise InvalidValue(
            "events",
            f"a column {TYPE}, a default type, or a single string column {TEXT} of JSON",
            f"the columns {', '.join(names)}" if names else "no columns",
        )
    return Layout(names, False, default_type)


def _check(name: str, kind: pa.DataType) -> None:
    zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    if name in _TEXTS and not _is_string(kind):
        raise InvalidValue(f"column {name}", "string", str(kind))
    if name in _STAMPS and not zoned:
        raise InvalidValue(f"column {name}", "timestamp with a zone", str(kind))
    plain = (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_null(kind)
    )
    if not (plain or zoned or _is_string(kind)):
        came = f"{kind}, which has no zone" if pa.types.is_timestamp(kind) else str(kind)
        raise InvalidValue(f"column {name}", WANTED, came)


def _is_string(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def events_of(batch: pa.RecordBatch, layout: Layout) -> list[Event | Problem]:
    """For each row its event, or why it is none."""
    if layout.is_text:
        texts = _strings(batch.column(0), TEXT)
        return [_attempt(_event_from_text, layout, text) for text in texts]
    columns = [cells_of(batch.column(place), name) for place, name in enumerate(layout.names)]
    return [_attempt(_event_from_row, layout, row) for row in zip(*columns, strict=True)]


def events_of_texts(texts: Sequence[bytes], default_type: str | None) -> list[Event | Problem]:
    """For each CloudEvents JSON object its event, or why it is none."""
    layout = Layout((TEXT,), True, default_type)
    return [_attempt(_event_from_text, layout, text) for text in texts]


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


def cells_of(column: pa.Array, name: str) -> Sequence[_Cell]:
    """The values of a column; an InvalidValue in the place of one that no event may have."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type):
        stamps = _stamps(column, name)
        if name in _STAMPS:
            return stamps  # The envelope counts microseconds; Event checks the range.
        return [_time(stamp, name) if isinstance(stamp, int) else stamp for stamp in stamps]
    if _is_string(column.type):
        return _strings(column, name)
    cells: list[_Cell] = column.to_pylist()
    return cells


def _stamps(column: pa.Array, name: str) -> list[_Cell]:
    """Microseconds, without rounding: a nanosecond that would be lost is refused in its row."""
    counts: list[int | None] = column.cast(pa.int64()).to_pylist()
    factor = _US_PER_UNIT.get(column.type.unit)
    if factor is not None:
        return [None if count is None else count * factor for count in counts]
    return [None if count is None else _from_nanoseconds(count, name) for count in counts]


def _from_nanoseconds(count: int, name: str) -> _Cell:
    microseconds, rest = divmod(count, 1_000)
    if rest:
        return InvalidValue(f"column {name}", "whole microseconds", f"{count} nanoseconds")
    return microseconds


def _time(microseconds: int, name: str) -> _Cell:
    try:
        return time_of(microseconds)
    except OverflowError:
        came = f"{microseconds} microseconds since 1970"
        return InvalidValue(f"attribute {name}", "a time between the years 1 and 9999", came)


def _strings(column: pa.Array, name: str) -> Sequence[_Cell]:
    """The strings; an InvalidValue for bytes that are no UTF-8, which a producer may not check."""
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
