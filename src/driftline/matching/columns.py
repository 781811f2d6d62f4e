"""How does a batch of events look as typed columns?

One column per attribute and kind of value, straight from NumPy or Arrow: numbers, times and
booleans as they lie in memory, strings and bytes as Arrow keeps them (one run of bytes, and where
each value begins). The envelope is columns too, under its own names (`ce_type`, `ce_time` …).

    >>> batch = Columns.of_arrays("quote", {"price": np.array([9.5, 11.0]), "firm": ["IBM", None]})
    >>> len(batch), [(column.attribute, column.kind.value) for column in batch]
    (2, [('ce_type', 'string'), ('price', 'number'), ('firm', 'string')])
    >>> batch.event(1)
    Event('quote', {'price': 11.0})
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.errors import InvalidValue
from driftline.model.event import ENVELOPE, Event
from driftline.model.value import KIND_OF, WANTED, Kind, Value, microseconds_of, time_of

TYPE = "ce_type"

_STAMPS = {"ce_time": "time", "ce_entered": "entered"}
_US_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True, slots=True)
class Texts:
    """Strings or bytes: value i is `data[starts[i] : starts[i] + lengths[i]]`."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def __getitem__(self, at: int) -> bytes:
        start = int(self.starts[at])
        return self.data[start : start + int(self.lengths[at])].tobytes()


Values: TypeAlias = NDArray[Any] | Texts


@dataclass(frozen=True, slots=True)
class Column:
    """The values of one attribute that are of one kind; `valid` is None where all are there.

    Numbers are int64 or float64, times int64 microseconds since 1970, booleans bool.
    """

    attribute: str
    kind: Kind
    values: Values
    valid: NDArray[np.bool_] | None = None

    def value(self, at: int) -> Value | None:
        """One value, None where it is missing."""
        if self.valid is not None and not self.valid[at]:
            return None
        if isinstance(self.values, Texts):
            raw = self.values[at]
            return raw.decode() if self.kind is Kind.STRING else raw
        plain = self.values[at].item()
        return time_of(plain) if self.kind is Kind.TIME else plain


class Columns:
    """A batch of events as columns. `event` makes one of them an object, when asked."""

    __slots__ = ("_columns", "_event", "_length")

    def __init__(
        self,
        length: int,
        columns: Sequence[Column],
        event: Callable[[int], Event] | None = None,
    ) -> None:
        self._length = length
        self._columns = tuple(columns)
        self._event = event

    @classmethod
    def of_events(cls, events: Sequence[Event]) -> Columns:
        """From events as objects, whose attributes may differ in kind from one to the next."""
        cells: dict[tuple[str, Kind], dict[int, Value]] = {}
        for at, event in enumerate(events):
            for name, value in _items(event):
                cells.setdefault((name, KIND_OF[type(value)]), {})[at] = value
        columns = [_column(name, kind, found, len(events)) for (name, kind), found in cells.items()]
        return cls(len(events), columns, events.__getitem__)

    @classmethod
    def of_arrays(cls, type: str, arrays: Mapping[str, object]) -> Columns:
        """From attributes as NumPy or Arrow arrays, or sequences; all events are of one type."""
        names = list(arrays)
        batch = pa.RecordBatch.from_arrays([_arrow(arrays[name]) for name in names], names=names)
        return cls.of_arrow(batch, type)

    @classmethod
    def of_numbers(
        cls,
        type: str,
        arrays: Mapping[str, NDArray[Any]],
        event: Callable[[int], Event] | None = None,
    ) -> Columns:
        """From arrays of int64 or float64, as they are, masked where a value is missing."""
        (length,) = {len(values) for values in arrays.values()}
        numbers = [_number(name, values) for name, values in arrays.items()]
        return cls(length, [_constant(TYPE, type, length), *numbers], event)

    @classmethod
    def of_arrow(cls, batch: pa.RecordBatch, type: str | None = None) -> Columns:
        """From a record batch, a column per attribute, nulls where one is missing.

        The columns of the envelope are `ce_type`, `ce_id` and so on; `type` stands for all where
        there is no `ce_type`. What the columns hold is trusted: see `bulk` for what is not.
        """
        columns = [
            _from_arrow(name, array)
            for name, array in zip(batch.schema.names, batch.columns, strict=True)
            if not pa.types.is_null(array.type)
        ]
        if TYPE not in batch.schema.names:
            if type is None:
                raise InvalidValue("events", f"a type, or a column {TYPE}", "neither")
            columns.insert(0, _constant(TYPE, type, batch.num_rows))
        return cls(batch.num_rows, columns)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Column]:
        return iter(self._columns)

    def event(self, at: int) -> Event:
        """One event as an object. O(columns), unless the batch was made of objects."""
        if self._event is not None:
            return self._event(at)
        envelope: dict[str, Any] = {}
        attributes: dict[str, Value] = {}
        for column in self._columns:
            value = column.value(at)
            if value is None:
                continue
            if column.attribute in ENVELOPE:
                envelope[column.attribute] = value
            else:
                attributes[column.attribute] = value
        return Event(
            envelope[TYPE],
            attributes,
            id=envelope.get("ce_id"),
            source=envelope.get("ce_source"),
            **{ours: envelope[name] for name, ours in _STAMPS.items() if name in envelope},
        )


def _number(name: str, values: NDArray[Any]) -> Column:
    valid = None
    if isinstance(values, np.ma.MaskedArray):
        valid, values = ~np.ma.getmaskarray(values), values.data
    return Column(name, Kind.NUMBER, np.ascontiguousarray(values), valid)


def _items(event: Event) -> Iterator[tuple[str, Value]]:
    yield from event.attributes.items()
    for name in ENVELOPE:
        value = event.envelope(name)
        if value is not None:
            yield name, value


def _column(name: str, kind: Kind, cells: Mapping[int, Value], length: int) -> Column:
    valid = None
    if len(cells) < length:
        valid = np.zeros(length, np.bool_)
        valid[list(cells)] = True
    if kind in (Kind.STRING, Kind.BYTES):
        return Column(name, kind, _texts(cells, length), valid)
    dtype = {Kind.NUMBER: np.float64, Kind.TIME: np.int64, Kind.BOOLEAN: np.bool_}[kind]
    values: NDArray[Any] = np.zeros(length, dtype)
    # Integers become floats: rounding keeps their order with every bound that is exact itself, and
    # the others are looked at again with the event's own value.
    values[list(cells)] = [
        microseconds_of(cell) if isinstance(cell, datetime) else cell for cell in cells.values()
    ]
    return Column(name, kind, values, valid)


def _texts(cells: Mapping[int, Value], length: int) -> Texts:
    raw = {
        at: cell.encode() if isinstance(cell, str) else bytes(cell)  # type: ignore[arg-type]
        for at, cell in cells.items()
    }
    data = np.frombuffer(b"".join(raw.values()) or b"\0", np.uint8)
    lengths = np.zeros(length, np.int64)
    starts = np.zeros(length, np.int64)
    sizes = np.array([len(one) for one in raw.values()], np.int64)
    lengths[list(raw)] = sizes
    starts[list(raw)] = np.cumsum(sizes) - sizes
    return Texts(data, starts, lengths)


def _constant(name: str, text: str, length: int) -> Column:
    raw = np.frombuffer(text.encode() or b"\0", np.uint8)
    starts, lengths = np.zeros(length, np.int64), np.full(length, len(text.encode()), np.int64)
    return Column(name, Kind.STRING, Texts(raw, starts, lengths))


def _arrow(values: object) -> pa.Array:
    array = values if isinstance(values, pa.Array) else pa.array(values)
    if pa.types.is_timestamp(array.type) and array.type.tz is None:
        raise InvalidValue("column", "times with a zone", str(array.type))
    return array


def _from_arrow(name: str, array: pa.Array) -> Column:
    kind = array.type
    valid = None
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_dictionary(kind):
        # Each text once, and a number into them per row: the numbers are all that is copied.
        inner = _from_arrow(name, array.dictionary)
        assert isinstance(inner.values, Texts)
        indices = array.indices
        taken = _plain(indices, indices.type.to_pandas_dtype()).astype(np.int64)
        if valid is not None:
            taken = np.where(valid, taken, 0)
        if not len(inner.values.starts):
            taken = np.zeros(0, np.int64) if not len(array) else taken
            zeros = np.zeros(len(array), np.int64)
            return Column(name, inner.kind, Texts(inner.values.data, zeros, zeros), valid)
        texts = Texts(inner.values.data, inner.values.starts[taken], inner.values.lengths[taken])
        return Column(name, inner.kind, texts, valid)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return Column(name, Kind.STRING, _arrow_texts(array), valid)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return Column(name, Kind.BYTES, _arrow_texts(array), valid)
    if pa.types.is_boolean(kind):
        bits = array.fill_null(False).to_numpy(zero_copy_only=False)
        return Column(name, Kind.BOOLEAN, bits, valid)
    if pa.types.is_timestamp(kind):
        counts = _plain(array, np.int64)
        factor = _US_PER_UNIT.get(kind.unit)
        stamps = counts // 1_000 if factor is None else counts * factor
        return Column(name, Kind.TIME, stamps, valid)
    if pa.types.is_integer(kind):
        values = _plain(array, kind.to_pandas_dtype())
        return Column(name, Kind.NUMBER, values.astype(np.int64, copy=False), valid)
    if pa.types.is_floating(kind):
        values = _plain(array, kind.to_pandas_dtype())
        return Column(name, Kind.NUMBER, values.astype(np.float64, copy=False), valid)
    raise InvalidValue(f"column {name}", WANTED, str(kind))


def _plain(array: pa.Array, dtype: Any) -> NDArray[Any]:
    """The values as they lie in memory; what stands in place of a null is not looked at."""
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype)[array.offset : array.offset + len(array)]


def _arrow_texts(array: pa.Array) -> Texts:
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, begins, data = array.buffers()
    if begins is None or not len(array):
        empty = np.zeros(len(array), np.int64)
        return Texts(np.zeros(1, np.uint8), empty, empty)
    held = np.frombuffer(begins, np.int64 if large else np.int32)
    offsets = held[array.offset : array.offset + len(array) + 1].astype(np.int64)
    raw = np.zeros(1, np.uint8) if data is None or not data.size else np.frombuffer(data, np.uint8)
    return Texts(raw, offsets[:-1], np.diff(offsets))
