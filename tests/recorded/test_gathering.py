"""Are those who are gathered, and rows that are taken at once, told as they are one by one?"""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest

from driftline.model.table import TableDeclaration
from driftline.recorded import gathering, inputs
from driftline.recorded.changes import change_from
from driftline.recorded.config import OrderConfig
from driftline.recorded.inputs import Piece, ShardState, events_in, packed, packed_changes
from driftline.recorded.packing import packed_events as packed_rows
from driftline.recorded.reading import wide_schema
from driftline.recorded.replay import answers, answers_in

TABLES = [TableDeclaration.of("t", "k"), TableDeclaration.of("u", "k")]
SCHEMA = wide_schema([pa.schema([("k", pa.string()), ("y", pa.float64()), ("z", pa.int64())])])
TEXTS = [
    "SELECT y FROM t WHERE k = 'a' AND moved(y, by => :r)",
    "SELECT k, y, z FROM t WHERE k = 'b' AND moved(y, by => :r)",
    "SELECT * FROM t WHERE k = 'a' AND z > 0 AND moved(y, by => :r, strict => TRUE)",
    "SELECT y + z AS sum FROM t WHERE k = 'c' AND moved(y, percent => :r)",
    "SELECT y FROM u WHERE k = 'a' AND moved(y, by => :r)",
]


VIEWS = [
    "SELECT MIN(y) FROM t WHERE z BETWEEN :lo AND :hi",
    "SELECT MAX(y) AS most FROM t WHERE z >= :lo",
]


class Drawn:
    """A random history: runs of changes and batches of rows, by turns."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.seq = 0
        self.ids: list[str] = []

    def changes(self) -> list[tuple[int, int, object]]:
        draw, found = self.draw, []
        for _ in range(draw.choice([0, 1, 5, 40, 90])):
            text = draw.choice(TEXTS[:2] if draw.random() < 0.8 else TEXTS)
            if self.ids and draw.random() < 0.2:
                row = self.moved()
            elif draw.random() < 0.1:
                text = draw.choice(VIEWS)
                lo = draw.randrange(3)
                params = {"lo": lo} | ({"hi": lo + draw.randrange(2)} if ":hi" in text else {})
                row = {"id": f"s{self.seq}", "text": text, "params": params}
            else:
                radius = draw.choice([0.5, 1, 2, 3.5, -1 if draw.random() < 0.05 else 1])
                row = {"id": f"s{self.seq}", "text": text, "params": {"r": radius}}
                self.ids.append(row["id"])
            found.append((self.seq, self.seq * 10, change_from(row, "")))
            self.seq += 1
        return found

    def moved(self) -> dict:
        id = self.draw.choice(self.ids)
        return self.draw.choice(
            [
                {"op": "set", "id": id, "params": {"r": self.draw.choice([0.5, 1, 4])}},
                {"op": "cancel", "id": id},
                {"op": "delete", "table": "t", "key": self.draw.choice("abc")},
                {"id": id, "text": TEXTS[0], "params": {"r": 1}},
            ]
        )

    def rows(self) -> pa.RecordBatch:
        draw, rows = self.draw, []
        for _ in range(draw.choice([1, 3, 60])):
            row = dict.fromkeys(SCHEMA.names)
            row |= {"seq": self.seq, "recorded": self.seq * 10, "ce_type": draw.choice("tttu")}
            row |= {"ce_entered": self.seq * 10, "ce_time": self.seq * 10 - 1}
            row |= {"k": draw.choice("abcd"), "y": draw.randrange(80) / 10, "z": draw.randrange(3)}
            row |= {"ce_id": f"e{self.seq}"} if draw.random() < 0.5 else {}
            if draw.random() < 0.02:
                row |= {"y": float("nan")}
            if draw.random() < 0.05:
                row |= {"z": None}
            rows.append(row)
            self.seq += 1
        columns = {name: [row[name] for row in rows] for name in SCHEMA.names}
        arrays = [pa.array(columns[field.name], field.type) for field in SCHEMA]
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


@pytest.mark.parametrize(("many", "together", "few"), [(1, 1 << 20, 8), (1, 25, 2), (6, 40, 8)])
def test_in_bulk_as_one_by_one(many, together, few, monkeypatch):
    """If all are gathered, rows are taken at once; else those are gathered who are many."""
    monkeypatch.setattr(gathering, "MANY", many)
    monkeypatch.setattr(inputs, "_TOGETHER", together)
    monkeypatch.setattr(inputs, "_FEW", few)
    taken = gathered = 0
    for seed in range(6):
        state = told_alike(seed)
        gathered += len(state.interpreter._gathering._crowds)
        taken += state.interpreter.takes_many("t")
    assert gathered >= 6
    assert many > 1 or taken > 3


def told_alike(seed: int) -> ShardState:
    drawn = Drawn(seed)
    bulk, singly = (ShardState(TABLES, OrderConfig()) for _ in range(2))
    found, wanted = [], []
    for _ in range(6):
        changes, rows = drawn.changes(), drawn.rows()
        cut = drawn.draw.randrange(len(rows) + 1)
        some = [one for one in (rows.slice(0, cut), rows.slice(cut)) if len(one)]
        pieces = [
            Piece(one.column(0)[0].as_py(), False, len(one), packed_rows(one)) for one in some
        ]
        if changes:
            pieces.append(Piece(changes[0][0], True, len(changes), packed_changes(changes)))
        found += bulk.take(packed(pieces))
        for change in changes:
            wanted += singly.interpreter.take(*change)
        for seq, event in events_in(rows, None):
            wanted += singly.take_event(seq, event)
        bulk.interpreter._check()
    told = [batch.filter(batch.column("problem").is_null()) for batch in found]
    assert answers_in(map(pa.Table.from_batches, ([one] for one in told))) == answers(wanted)
    return bulk


def test_one_row_that_is_refused_costs_those_about_it(monkeypatch):
    """The others are taken at once, in order: a row's last value is what came last."""
    state = ShardState(TABLES, OrderConfig())
    asked = {"id": "s", "text": VIEWS[0], "params": {"lo": 0, "hi": 9}}
    state.take(packed([Piece(0, True, 1, packed_changes([(0, 0, change_from(asked, ""))]))]))
    count, refused = 8_000, 5_001
    values = [float(-number) for number in range(count)]
    values[refused] = float("nan")
    columns = {
        "seq": range(1, count + 1),
        "recorded": range(count),
        "ce_type": ["t"] * count,
        "ce_entered": range(count),
        "k": ["a"] * count,
        "y": values,
        "z": [1] * count,
    }
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(count, field.type)
        for field in SCHEMA
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
    singly: list[int] = []
    take_event = ShardState.take_event
    monkeypatch.setattr(
        ShardState,
        "take_event",
        lambda self, seq, event: singly.append(seq) or take_event(self, seq, event),
    )
    told = state.take(packed([Piece(1, False, count, packed_rows(batch))]))
    least = {seq: row["MIN(y)"] for seq, row in values_told(told)}
    assert least == {number + 1: values[number] for number in range(count) if number != refused}
    assert refused + 1 in singly
    assert len(singly) <= 1_000


def values_told(told):
    for batch in told:
        for seq, values in zip(batch["seq"].to_pylist(), batch["values"].to_pylist(), strict=True):
            if values is not None:
                yield seq, json.loads(values)
