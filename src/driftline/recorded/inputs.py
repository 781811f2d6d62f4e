"""What does a shard get in a batch, and what does it make of it?

Events as columns and changes as they are, in pieces that are packed where they are read and put in
order of their numbers where they are taken. What follows is a table of what was told.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import astuple, dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from driftline.errors import DriftlineError, InvalidValue, TableError
from driftline.language.columns import ENTERED, TEXT, TYPE, Layout, events_of
from driftline.model.event import Event
from driftline.model.table import TableDeclaration
from driftline.model.value import microseconds_of
from driftline.recorded.changes import Change
from driftline.recorded.config import OrderConfig
from driftline.recorded.interpreter import Interpreter
from driftline.recorded.order import Ordering
from driftline.recorded.places import Share
from driftline.recorded.reading import RECORDED, SEQ
from driftline.recorded.told import Row, table_of


def packed_changes(changes: list[tuple[int, int, Change]]) -> bytes:
    """Changes with their numbers and times, as bytes."""
    return pickle.dumps(changes, protocol=5)


@dataclass(frozen=True, slots=True)
class Piece:
    """Events in a row, or changes; `first` is the number it begins with."""

    first: int
    is_change: bool
    rows: int
    content: bytes


def packed(pieces: list[Piece]) -> bytes:
    """The pieces of a batch in order, as bytes."""
    ordered = sorted(pieces, key=lambda piece: piece.first)
    return pickle.dumps([astuple(piece) for piece in ordered], protocol=5)


def unpacked(inputs: bytes) -> Iterator[Piece]:
    """The pieces again."""
    for one in pickle.loads(inputs):
        yield Piece(*one)


_TOGETHER = 1 << 20
"""So many rows are taken at once: what is kept of an item is its last row, once."""
_FEW = 1_000
"""So many are taken one by one when one of them is refused."""


def _in_order(pieces: Iterable[Piece]) -> Iterator[pa.RecordBatch | bytes]:
    """Events that follow one another, many in one batch, and changes between them."""
    waiting: list[pa.RecordBatch] = []
    for piece in pieces:
        batches = [] if piece.is_change else [*pa.ipc.open_stream(piece.content)]
        for batch in batches:
            rows = sum(map(len, waiting), len(batch))
            if waiting and (waiting[0].schema != batch.schema or rows > _TOGETHER):
                yield from _combined(waiting)
                waiting = []
            waiting.append(batch)
        if piece.is_change:
            yield from _combined(waiting)
            waiting = []
            yield piece.content
    yield from _combined(waiting)


def _combined(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if batches:
        yield from pa.Table.from_batches(batches).combine_chunks().to_batches()


class ShardState:
    """An interpreter that is given pieces, events in their order."""

    def __init__(
        self,
        tables: Iterable[TableDeclaration],
        order: OrderConfig,
        default_type: str | None = None,
        share: Share | None = None,
    ) -> None:
        self.interpreter = Interpreter(tables, share)
        self._share = share
        self._order = Ordering(order, {one.name: one for one in tables})
        self._default_type = default_type

    def take(self, inputs: bytes) -> list[pa.RecordBatch]:
        """What is told of the pieces."""
        told: list[pa.RecordBatch] = []
        rows: list[Row] = []
        for some in _in_order(unpacked(inputs)):
            if isinstance(some, pa.RecordBatch):
                self._take_events(some, told, rows)
            else:
                rows += self.interpreter.take_changes(pickle.loads(some))
        return [*told, table_of(rows)] if rows else told

    def _take_events(
        self, batch: pa.RecordBatch, told: list[pa.RecordBatch], rows: list[Row]
    ) -> None:
        left = np.ones(len(batch), np.bool_)
        if self._order.is_recorded and TYPE in batch.schema.names:
            types = batch.column(TYPE)
            types = types.fill_null(self._default_type) if self._default_type else types
            for type in types.unique().to_pylist():
                # Whom such rows concern, no rows of another type do.
                if type is not None and self.interpreter.takes_many(type):
                    these = np.asarray(pc.fill_null(pc.equal(types, type), False))
                    some = batch if these.all() else batch.filter(pa.array(these))
                    self._take_many(type, some, told, rows)
                    left &= ~these
        if left.any():
            rows += self._one_by_one(batch if left.all() else batch.filter(pa.array(left)))

    def _take_many(
        self, type: str, batch: pa.RecordBatch, told: list[pa.RecordBatch], rows: list[Row]
    ) -> None:
        """Rows of a table at once, but for those about one that is refused or is no event."""
        found = None
        with suppress(TableError, InvalidValue):
            found = self._take_type(type, batch)
        if found is not None:
            told += found
        elif len(batch) <= _FEW:
            rows += self._one_by_one(batch)
        else:
            half = len(batch) // 2
            self._take_many(type, batch.slice(0, half), told, rows)
            self._take_many(type, batch.slice(half), told, rows)

    def _one_by_one(self, batch: pa.RecordBatch) -> Iterator[Row]:
        for seq, event in events_in(batch, self._default_type):
            yield from self.take_event(seq, event)

    def _take_type(self, type: str, batch: pa.RecordBatch) -> list[pa.RecordBatch] | None:
        seqs = batch.column(SEQ).to_numpy()
        stamps = batch.column(ENTERED).cast(pa.int64()).to_numpy()
        empty = [
            name
            for name, c in zip(batch.schema.names, batch.columns, strict=True)
            if c.null_count == len(c)
        ]
        columns = batch.drop_columns([SEQ, RECORDED, *{*empty, TYPE}])
        return self.interpreter.take_many(type, seqs, stamps, columns)

    def take_event(self, seq: int, event: Event) -> list[Row]:
        """What is told now that an event has come."""
        rows: list[Row] = []
        if not self._order.is_recorded and self.interpreter.refuses(event):
            return rows  # It has no place.
        try:
            for number, one in self._order.take(seq, event):
                rows += self.interpreter.take(number, one.entered or 0, one)
        except DriftlineError as problem:
            if self._share is None or self._share.answers_for(event):
                rows.append(Row(seq, 0, (), problem=str(problem)))
        return rows

    def count(self, inputs: bytes) -> int:
        """How many entries there are."""
        return sum(piece.rows for piece in unpacked(inputs))


def events_in(batch: pa.RecordBatch, default_type: str | None) -> Iterator[tuple[int, Event]]:
    """The events of rows with their numbers; rows that are none are told apart by matching."""
    numbers = batch.column(SEQ).to_pylist()
    recorded = batch.column(RECORDED).to_pylist()
    columns = batch.drop_columns([SEQ, RECORDED])
    names = tuple(columns.schema.names)
    layout = Layout(names, names == (TEXT,), default_type)
    for seq, at, event in zip(numbers, recorded, events_of(columns, layout), strict=True):
        if isinstance(event, Event):
            yield seq, entered(event, microseconds_of(at))


def entered(event: Event, recorded: int) -> Event:
    """An event that says nothing of when it entered did so at its time, or when recorded."""
    return event.entering(recorded if event.stamp is None else event.stamp)
