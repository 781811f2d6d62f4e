"""How are a great many followers of one row kept, who differ in their radius only?

Together, as a crowd of the engine: they are members by numbers in arrays, and what is told to many
is told once, with an array of whom. A member is told what it would be told alone, so who is
gathered is a matter of cost: those who are so many at once, or find a crowd there already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.crowd import Crowd
from driftline.crowd_told import Told, ToldMany
from driftline.engine import Engine
from driftline.errors import DriftlineError, NotSupported
from driftline.handle import OnChange
from driftline.model.covering import Statement
from driftline.model.notification import Notification
from driftline.model.subscription import Moved, Subscription
from driftline.model.table import TableDeclaration
from driftline.model.value import Value, comparable
from driftline.model.view import View
from driftline.recorded.changes import Subscribe
from driftline.recorded.columns import json_objects, json_texts
from driftline.recorded.told import TOLD, Row, key_text
from driftline.stateful.plan import MovedPlan, plan_of
from driftline.stateful.value_based.crowd import radius_name
from driftline.stateful.value_based.reformulate import pin_of

MANY = 32
"""So many of one text that come at once are worth a crowd."""

Heard = list[tuple[str, Notification]]


class Joining(NamedTuple):
    """Somebody who subscribes."""

    seq: int
    time: int
    asked: Subscribe


class Gathered:
    """A crowd whose members have ids."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self._ids: list[str] = []
        self._epochs = np.zeros(0, np.int64)
        self._names: pa.StringArray | None = None

    def join(self, some: Sequence[Joining]) -> tuple[list[int], list[Row]]:
        """Let them come: their numbers, and what each is told at once."""
        radii = [one.asked.params[self.crowd.parameter] for one in some]
        numbers: list[int] = self.crowd.add(**{self.crowd.parameter: radii}).tolist()
        by_number = dict(zip(numbers, some, strict=True))
        self._ids += [""] * (max(numbers) + 1 - len(self._ids))
        self._epochs = np.concatenate(
            (self._epochs, np.zeros(len(self._ids) - len(self._epochs), np.int64))
        )
        for number, one in by_number.items():
            self._ids[number] = one.asked.id
        self._epochs[numbers] = 0
        self._names = None
        rows = []
        for told in self.crowd.pending():
            for number in told.members.tolist():
                one = by_number[number]
                said = self._notification(told, number, one.time)
                rows.append(Row(one.seq, 0, (one.asked.id,), said))
        return numbers, rows

    def set(self, number: int, radius: object, time: int) -> Heard:
        """A member has another radius: what it is told at once."""
        self.crowd.set([number], **{self.crowd.parameter: [radius]})
        self._epochs[number] += 1
        return self.heard(time)

    def leave(self, number: int) -> None:
        """A member goes."""
        self.crowd.remove([number])

    def heard(self, time: int | None = None) -> Heard:
        """What was told since, one by one."""
        return [
            (self._ids[number], self._notification(told, number, time))
            for told in self.crowd.pending()
            for number in told.members.tolist()
        ]

    def _notification(self, told: Told, number: int, time: int | None) -> Notification:
        return Notification(
            told.kind,
            told.values,
            told.time if time is None else time,
            int(self._epochs[number]),
            key=self.crowd.item,
        )

    def rows(
        self, seqs: NDArray[np.int64], stamps: NDArray[np.int64], columns: pa.RecordBatch
    ) -> Iterator[pa.RecordBatch]:
        """What events of a batch told: they have these numbers, times and columns."""
        for told in self.crowd.pending_columns():
            assert isinstance(told, ToldMany)
            if self._epochs.any():
                yield from self._by_epochs(told, seqs, stamps, columns)
            else:
                yield self._told(told, told.members, told.offsets, 0, seqs, stamps, columns)

    def _by_epochs(
        self,
        told: ToldMany,
        seqs: NDArray[np.int64],
        stamps: NDArray[np.int64],
        columns: pa.RecordBatch,
    ) -> Iterator[pa.RecordBatch]:
        epochs = self._epochs[told.members]
        for epoch in np.unique(epochs).tolist():
            there = epochs == epoch
            offsets = np.concatenate(([0], np.cumsum(there)))[told.offsets]
            found = self._told(told, told.members[there], offsets, epoch, seqs, stamps, columns)
            yield found.filter(pa.array(np.diff(offsets) > 0))

    def _told(
        self,
        told: ToldMany,
        members: NDArray[np.int32],
        offsets: NDArray[np.int64],
        epoch: int,
        seqs: NDArray[np.int64],
        stamps: NDArray[np.int64],
        columns: pa.RecordBatch,
    ) -> pa.RecordBatch:
        count = len(told)
        if self._names is None:
            self._names = pa.array(self._ids, pa.string())
        lists = pa.ListArray.from_arrays(
            pa.array(offsets - offsets[0], pa.int32()),
            self._names.take(pa.array(members)),
            type=TOLD.field("subscriptions").type,
        )
        said = {
            "seq": pa.array(seqs[told.places]),
            "nth": pa.array(np.zeros(count, np.int32)),
            "subscriptions": lists,
            "kind": _same(str(told.kind), count),
            "values": self._values(told, columns),
            "key": _same(key_text(self.crowd.item), count),
            "epoch": pa.array(np.full(count, epoch)),
            "time": pa.array(stamps[told.places]).cast(TOLD.field("time").type),
            "last": pa.array(np.zeros(count, np.bool_)),
        }
        arrays = [
            said[field.name] if field.name in said else pa.nulls(count, field.type)
            for field in TOLD
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=TOLD)

    def _values(self, told: ToldMany, columns: pa.RecordBatch) -> pa.StringArray:
        """What is selected of each event, as JSON."""
        statement = self.crowd.statement
        assert isinstance(statement, Subscription)
        selected = json_objects(statement, columns, told.places)
        if selected is None:
            scope = self.crowd._select
            selected = json_texts(scope(event, told.env) for event, _ in told.each())
        return selected

    def _check(self) -> None:
        self.crowd._check()
        for number in self.crowd:
            assert self._ids[number]


def _same(text: str | None, count: int) -> pa.StringArray:
    return pa.repeat(pa.scalar(text, pa.string()), count)


class Gathering:
    """The crowds of an interpreter, by what their members ask for and by the row."""

    def __init__(self, engine: Engine, tables: Mapping[str, TableDeclaration]) -> None:
        self._engine = engine
        self._tables = tables
        self._crowds: dict[str, Gathered] = {}
        self._by_row: dict[tuple[str, object], list[Gathered]] = {}
        self._members: dict[str, tuple[Gathered, int]] = {}

    def __contains__(self, id: object) -> bool:
        return id in self._members

    def fits(self, asked: Subscribe) -> bool:
        """Can it be a member of a crowd?"""
        table = self._tables.get(getattr(asked.statement, "source", None) or "")
        plain = not asked.rows and asked.on_change is OnChange.SILENT and asked.start is None
        return table is not None and plain and radius_of(asked.statement, table.key) is not None

    def join(self, some: Sequence[Joining]) -> tuple[list[Row], list[Joining]]:
        """Gather those who are many: what they are told, and those who are to go alone."""
        by_text: dict[str, list[Joining]] = {}
        for one in some:
            by_text.setdefault(str(one.asked.statement), []).append(one)
        rows: list[Row] = []
        alone: list[Joining] = []
        for text, those in by_text.items():
            if text not in self._crowds and len(those) < MANY:
                alone += those
                continue
            told, refused = self._join(self._gathered(text, those[0].asked), those)
            rows += told
            alone += refused
        return rows, alone

    def _join(
        self, crowd: Gathered, those: Sequence[Joining]
    ) -> tuple[list[Row], Sequence[Joining]]:
        """Let those into a crowd: what they are told, and whose radius is none."""
        try:
            numbers, rows = crowd.join(those)
        except DriftlineError:
            if len(those) == 1:
                return [], those
            each = [self._join(crowd, [one]) for one in those]
            return [row for told, _ in each for row in told], [o for _, out in each for o in out]
        for one, number in zip(those, numbers, strict=True):
            self._members[one.asked.id] = crowd, number
        return rows, ()

    def _gathered(self, text: str, asked: Subscribe) -> Gathered:
        if text not in self._crowds:
            crowd = Gathered(self._engine.crowd(asked.statement))
            self._crowds[text] = crowd
            row = str(crowd.crowd.statement.source), comparable(crowd.crowd.item)
            self._by_row.setdefault(row, []).append(crowd)
        return self._crowds[text]

    def set(self, id: str, params: Mapping[str, object], time: int) -> Heard:
        """A member has another radius."""
        crowd, number = self._members[id]
        return crowd.set(number, params[crowd.crowd.parameter], time)

    def leave(self, id: str) -> None:
        """A member goes."""
        crowd, number = self._members.pop(id)
        crowd.leave(number)

    def heard(self, table: str, key: Value) -> Heard:
        """What was told of a row, one by one."""
        return [
            one for crowd in self._by_row.get((table, comparable(key)), ()) for one in crowd.heard()
        ]

    def rows(
        self,
        table: str,
        seqs: NDArray[np.int64],
        stamps: NDArray[np.int64],
        columns: pa.RecordBatch,
    ) -> Iterator[pa.RecordBatch]:
        """What rows of a table told that came at once."""
        for (name, _), crowds in self._by_row.items():
            if name == table:
                for crowd in crowds:
                    yield from crowd.rows(seqs, stamps, columns)

    def _check(self) -> None:
        for id, (crowd, number) in self._members.items():
            assert crowd._ids[number] == id
        for crowd in self._crowds.values():
            crowd._check()


@lru_cache(maxsize=65_536)
def radius_of(statement: Statement, key: str) -> str | None:
    """The parameter that tells members of a crowd apart; None: it is not for crowds."""
    if not isinstance(statement, Subscription) or not isinstance(statement.change, Moved):
        return None
    if statement.change.shared:
        return None  # Whom somebody shares its value with would depend on who is gathered.
    view = View.of_change(statement)
    try:
        name = radius_name(view, pin_of(view.where, key)[0])
        return name if isinstance(plan_of(view, {}), MovedPlan) else None
    except NotSupported:
        return None
