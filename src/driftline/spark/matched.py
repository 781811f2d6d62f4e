"""Which plain filters does each recorded event satisfy, by the versions that hold at its number?

    pieces of events  →  pieces of events with their subscriptions, and of rows that are no events

Nothing is remembered from event to event. What holds is read from the book (`recorded.versions`),
so it makes no difference how events come in batches, or whether they come again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from driftline.bulk import IDS, Told, in_texts, match_batch, match_events
from driftline.errors import InvalidValue, TableError
from driftline.language.columns import DATA, TYPE, Layout, Problem, events_of
from driftline.matching.matcher import StandingMatcher
from driftline.model.event import RESERVED, Event
from driftline.model.table import TableDeclaration
from driftline.model.value import microseconds_of
from driftline.recorded.inputs import entered
from driftline.recorded.pages import Base, Pages
from driftline.recorded.reading import RECORDED, SEQ
from driftline.recorded.versions import At, Versions
from driftline.spark.manifest import MATCH, MATCHED, REFUSED, pipeline_id
from driftline.spark.match import Transform
from driftline.spark.pieces import EVENTS, PIECES, REFUSED_ROWS, Piece, carried, piece_of, pieces_in
from driftline.spark.slices import opened
from driftline.spark.subscriptions import Packed, matcher_for
from driftline.spark.tables import written
from driftline.stateful.rows.change import check_published


def matched(
    checkpoint: str,
    tables: Mapping[str, TableDeclaration],
    default_type: str | None = None,
    out: str | None = None,
) -> Transform:
    """A transform of pieces: events become those that are told, and those that are refused.

    With `out` they are written there, and the pieces say which files they are in.
    """
    stage = Matching(checkpoint, dict(tables), default_type, out)

    def transform(pieces: DataFrame) -> DataFrame:
        return pieces.mapInArrow(stage, PIECES)

    return transform


@dataclass(frozen=True, slots=True)
class Matching:
    """What runs in the workers."""

    checkpoint: str
    tables: dict[str, TableDeclaration]
    default_type: str | None
    out: str | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        told = self._matched(opened(pieces_in(batches), self.checkpoint))
        return carried(told if self.out is None else written(told, self.out, MATCH))

    def _matched(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        versions = versions_of(self.checkpoint)
        for piece in pieces:
            if piece.table != EVENTS:
                yield piece
                continue
            for batch in piece.batches():
                yield from self._told(batch, versions.at(piece.first))

    def _told(self, batch: pa.RecordBatch, at: At) -> Iterator[Piece]:
        names = tuple(batch.schema.names[2:])
        layout = Layout(names, names == ("value",), self.default_type)
        events = pa.RecordBatch.from_arrays(batch.columns[2:], names=names)
        told = self._match(batch, events, layout, at)
        first = batch.column(0)[0].as_py()
        there = told.ids.is_valid()
        if told.ids.null_count < len(told.ids):
            arrays = [batch.column(0), *events.columns, told.ids]
            if told.ids.null_count:
                arrays = [array.filter(there) for array in arrays]
            schema = pa.schema([*(batch.schema.field(n) for n in (SEQ, *names))]).append(
                pa.field("subscriptions", told.ids.type)
            )
            yield piece_of(MATCHED, first, pa.RecordBatch.from_arrays(arrays, schema=schema))
        if told.problems.null_count < len(told.problems):
            yield piece_of(REFUSED, first, _refused(batch.column(0), events, told.problems))

    def _match(self, batch: pa.RecordBatch, events: pa.RecordBatch, layout: Layout, at: At) -> Told:
        if layout.is_text:
            recorded = batch.column(RECORDED)
            rows = [
                self._admitted(row, microseconds_of(when.as_py()))
                for row, when in zip(events_of(events, layout), recorded, strict=True)
            ]
            return match_events(at, rows, at.env)
        told = match_batch(at, events, layout, at.env)
        suspects = _suspects(events, layout, self.tables)
        return told if suspects is None else self._without(told, events, layout, suspects)

    def _admitted(self, row: Event | Problem, recorded: int) -> Event | Problem:
        if isinstance(row, str):
            return row
        problem = self._problem(row)
        return entered(row, recorded) if problem is None else problem

    def _problem(self, event: Event) -> str | None:
        """Why an engine or its table would refuse it: then it is told to nobody."""
        table = self.tables.get(event.type)
        try:
            check_published(event)
            if table is not None:
                table.admit(event)
        except (InvalidValue, TableError) as refused:
            return str(refused)
        return None

    def _without(
        self, told: Told, events: pa.RecordBatch, layout: Layout, suspects: NDArray[np.intp]
    ) -> Told:
        """What is told but for rows that their table refuses."""
        problems = told.problems.to_pylist()
        for at, row in zip(
            suspects.tolist(), events_of(events.take(pa.array(suspects)), layout), strict=True
        ):
            if isinstance(row, Event):
                problems[at] = self._problem(row)
        refused = pa.array(problems, pa.string())
        ids = pc.if_else(refused.is_valid(), pa.scalar(None, IDS), in_texts(told.ids))
        return Told(ids, refused)


def _suspects(
    events: pa.RecordBatch, layout: Layout, tables: Mapping[str, TableDeclaration]
) -> NDArray[np.intp] | None:
    """The rows that may be refused, few of them in vain; None: there are none."""
    types = events.column(TYPE) if TYPE in layout.names else pa.nulls(len(events), pa.string())
    if layout.default_type:
        types = types.fill_null(layout.default_type)
    suspects = np.asarray(pc.fill_null(pc.starts_with(types, RESERVED), False)).copy()
    doubtful = _odd(events) if tables else suspects
    for name, table in tables.items():
        of_table = np.asarray(pc.fill_null(pc.equal(types, name), False))
        if table.ticks:
            suspects |= of_table
        elif table.key in layout.names:
            suspects |= of_table & (doubtful | np.asarray(events.column(table.key).is_null()))
        else:
            suspects |= of_table
    return np.flatnonzero(suspects) if suspects.any() else None


def _odd(events: pa.RecordBatch) -> NDArray[np.bool_]:
    """Rows with a number that is none, or with attributes that are in no column."""
    odd = np.zeros(len(events), np.bool_)
    for name, column in zip(events.schema.names, events.columns, strict=True):
        if pa.types.is_floating(column.type):
            odd |= ~np.asarray(pc.fill_null(pc.is_finite(column), True))
        elif name == DATA:
            odd |= np.asarray(column.is_valid())
    return odd


def _refused(seqs: pa.Array, events: pa.RecordBatch, problems: pa.StringArray) -> pa.RecordBatch:
    """The rows that were refused, as they came."""
    where = problems.is_valid()
    rows = events.filter(where)
    if rows.schema.names == ["value"]:
        contents = rows.column(0).cast(pa.binary()).to_pylist()
        texts = [None if raw is None else raw.decode(errors="replace") for raw in contents]
    else:
        texts = [_json(row) for row in rows.to_pylist()]
    arrays = [
        seqs.filter(where),
        pa.nulls(len(rows), pa.string()),
        pa.array(texts, pa.string()),
        problems.filter(where),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=REFUSED_ROWS)


def _json(row: dict[str, object]) -> str:
    there = {name: value for name, value in row.items() if value is not None}
    return msgspec.json.encode(there, enc_hook=repr).decode()


_KEPT_MAX = 4
_kept: OrderedDict[str, Versions] = OrderedDict()


def versions_of(checkpoint: str) -> Versions:
    """What holds in a pipeline, as this process knows it; a process serves several by turns."""
    identity = pipeline_id(checkpoint)
    if identity not in _kept:
        _kept[identity] = Versions(Pages(Path(checkpoint, "book")), _open_base)
        while len(_kept) > _KEPT_MAX:
            _kept.popitem(last=False)
    _kept.move_to_end(identity)
    return _kept[identity]


def _open_base(base: Base) -> StandingMatcher:
    matcher, _ = matcher_for(Packed(base.fingerprint, base.roster, base.count, {}))
    return matcher
