"""Which rows of a table come at once, and what is asked of them before they are looked at singly?

Events of one type that enter at one instant, as Arrow columns where all columns are plain (numbers,
booleans and texts, as events hold them). Most of what is asked of many rows can be asked of their
columns: which are of one item, what numbers they have, whether the table takes them. An event is
made of a row when somebody wants one. Rows that are no plain columns are events from the beginning.

    >>> batch = pa.RecordBatch.from_pydict({"firm": ["IBM", "DIS", "IBM"], "price": [9.5, None, 8]})
    >>> rows = Rows.of_columns("quote", batch, stamp=0)
    >>> items = rows.items("firm")
    >>> items.places_of("IBM").tolist(), rows.numbers("price").known.tolist()
    ([0, 2], [True, False, True])
    >>> rows.take(np.array([1]))
    [Event('quote', {'firm': 'DIS'}, time=0, entered=0)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from driftline.errors import TableError
from driftline.model.event import ENVELOPE, Event
from driftline.model.table import TableDeclaration
from driftline.model.value import Value, comparable

Places = NDArray[np.int64]
"""Which rows, counted from 0."""


class Numbers(NamedTuple):
    """A number for each row, as far as it is known to have one: int64 or float64."""

    values: NDArray[Any]
    known: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Items:
    """Rows by what they are known by, in the order in which these first come.

    Those of item i are at order[ends[i]] to order[ends[i + 1]], as they come.
    """

    numbers: dict[object, int]
    order: Places
    ends: Places

    def places_of(self, key: Value) -> Places:
        """The rows of an item, which there may be none of."""
        number = self.numbers.get(comparable(key))
        return self.order[:0] if number is None else self.places(number)

    def places(self, number: int) -> Places:
        """The rows of an item by its number."""
        return self.order[self.ends[number] : self.ends[number + 1]]

    def of(self) -> Places:
        """Of each row the number of its item."""
        found = np.empty(len(self.order), np.int64)
        found[self.order] = np.repeat(np.arange(len(self.numbers)), np.diff(self.ends))
        return found

    def last(self) -> Places:
        """The last row of each."""
        return self.order[self.ends[1:] - 1]


class Rows:
    """Events of one type that enter at one instant, in order; or when their envelopes say."""

    __slots__ = ("_batch", "_envelope", "_events", "_numbers", "_stamp", "_type")

    def __init__(
        self, type: str, stamp: int, events: Sequence[Event], batch: Any, envelope: Any = None
    ) -> None:
        self._type = type
        self._stamp = stamp
        self._events = events
        self._batch = batch
        self._envelope = envelope
        self._numbers: dict[str, Numbers | None] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return Rows, (self._type, self._stamp, self._events, self._batch, self._envelope)

    @classmethod
    def of_columns(
        cls, type: str, batch: pa.RecordBatch, stamp: int, envelope: pa.RecordBatch | None = None
    ) -> Rows:
        """Columns whose values are what events hold, each under a name of its own.

        The envelope's are `id`, `source`, and in microseconds `time` and `entered`.
        """
        return cls(type, stamp, (), batch, envelope)

    @classmethod
    def of_events(cls, type: str, events: Sequence[Event], stamp: int) -> Rows:
        """Events that have entered."""
        return cls(type, stamp, events, None)

    def __len__(self) -> int:
        return len(self._events) if self._batch is None else int(self._batch.num_rows)

    def take(self, places: Places | None = None) -> list[Event]:
        """Some of them as events, or all."""
        if self._batch is None:
            return [*self._events] if places is None else [self._events[at] for at in places]
        batch = self._batch if places is None else self._batch.take(pa.array(places))
        names, columns = batch.schema.names, [column.to_pylist() for column in batch.columns]
        rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
        if any(column.null_count for column in batch.columns):
            rows = ({name: one for name, one in row.items() if one is not None} for row in rows)
        if self._envelope is None:
            return [Event.of_admitted(self._type, row, self._stamp) for row in rows]
        said = self._envelope if places is None else self._envelope.take(pa.array(places))
        return [
            Event.of_admitted(self._type, row, self._stamp, **envelope)
            for row, envelope in zip(rows, said.to_pylist(), strict=True)
        ]

    def numbers(self, name: str) -> Numbers | None:
        """The numbers of an attribute; None if rows must be asked for it one by one."""
        if self._batch is None or name in ENVELOPE:
            return None
        if name not in self._numbers:
            self._numbers[name] = self._read(name)
        return self._numbers[name]

    def _read(self, name: str) -> Numbers | None:
        column = self._column(name)
        if column is not None and not _is_number(column.type):
            return None
        if column is None:
            return Numbers(np.zeros(len(self)), np.zeros(len(self), np.bool_))
        known = column.is_valid().to_numpy(zero_copy_only=False)
        values = column.fill_null(0).to_numpy(zero_copy_only=False)
        floats = pa.types.is_floating(column.type)
        return Numbers(values.astype(np.float64 if floats else np.int64, copy=False), known)

    def _column(self, name: str) -> Any:
        return self._batch.column(name) if name in self._batch.schema.names else None

    def items(self, key: str) -> Items:
        """They by the attribute that they are known by, which all of them have."""
        if self._batch is None:
            keys = [event.attributes[key] for event in self._events]
            codes = np.arange(len(keys))
        else:
            encoded = self._batch.column(key).dictionary_encode()
            codes, keys = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
        numbers: dict[object, int] = {}
        # 1 and 1.0 name the same row.
        which = [numbers.setdefault(comparable(one), len(numbers)) for one in keys]
        found = np.array(which, np.int64)[codes]
        ends = np.concatenate(([0], np.cumsum(np.bincount(found, minlength=len(numbers)))))
        # Small numbers are sorted faster.
        short = found.astype(np.uint16) if len(numbers) < 1 << 16 else found
        return Items(numbers, np.argsort(short, kind="stable"), ends)

    def check(self, declaration: TableDeclaration) -> None:
        """Raise if a table would not take one of them."""
        if self._batch is None or not self._fit(declaration):
            for event in self.take():
                declaration.admit(event)

    def _fit(self, declaration: TableDeclaration) -> bool:
        """Is it plain that the table takes all of them?"""
        key = self._column(declaration.key)
        if key is None or key.null_count:
            return False
        for column in self._batch.columns:
            if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column)).as_py():
                return False
        try:
            for name in declaration.ticks.keys() & {*self._batch.schema.names}:
                for value in pc.unique(self._column(name).drop_null()).to_pylist():
                    declaration.check_tick(name, value)
        except TableError:
            return False  # Which row is the first that it does not take is found one by one.
        return True


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
