"""Do the stages that run in workers take whatever rows there are? Called here without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftline.model.event import Event
from driftline.recorded import book
from driftline.recorded.config import OrderConfig
from driftline.recorded.inputs import Piece as Given
from driftline.recorded.inputs import ShardState, packed
from driftline.recorded.places import Share
from driftline.recorded.replay import Answer, answers_in
from driftline.spark.identity import claim
from driftline.spark.manifest import MATCHED, REFUSED
from driftline.spark.matched import Matching
from driftline.spark.pieces import CHANGES, Piece, pieces_in
from driftline.spark.reformulate import Routing
from driftline.spark.source import SequenceReader
from tests.recorded.worlds import EVERYTHING, World, made_event


class Stages:
    """What the queries of a pipeline do, in batches of so many rows."""

    def __init__(self, world: World, batch: int = 1_000_000) -> None:
        world.record()
        claim(world.config)
        self.config, self.batch = world.config, batch
        self.checkpoint = str(world.config.checkpoint)
        self.matched: list[pa.Table] = []
        self.told: list[pa.Table] = []
        self.refused: list[dict[str, object]] = []

    def run(self) -> Stages:
        self._match()
        self._reformulate()
        return self

    @property
    def answers(self) -> Counter[Answer]:
        return answers_in([*self.matched, *self.told])

    @property
    def problems(self) -> list[tuple[object, object]]:
        return sorted((row["seq"], row["problem"]) for row in self.refused)

    def _pieces(self, changes: str) -> Iterator[Iterator[pa.RecordBatch]]:
        reader = SequenceReader({"checkpoint": self.checkpoint, "changes": changes})
        end = reader.reportLatestOffset()["seq"]
        for start in range(0, end, self.batch):
            last = min(start + self.batch, end)
            slices = reader.partitions({"seq": start}, {"seq": last})
            yield (batch for one in slices for batch in reader.read(one))

    def _match(self) -> None:
        places = self.config.places
        tables = {name: kept.declaration for name, kept in places.tables.items()}
        stage = Matching(self.checkpoint, tables, None)
        for batches in self._pieces("false"):
            for piece in pieces_in(stage(batches)):
                table = pa.Table.from_batches(piece.batches())
                if piece.table == MATCHED:
                    self.matched.append(table)
                elif piece.table == REFUSED:
                    self.refused += table.to_pylist()

    def _reformulate(self) -> None:
        places, order = self.config.places, self.config.order
        tables = [kept.declaration for kept in places.tables.values()]
        states = [ShardState(tables, order, None, Share(places, n)) for n in places.everywhere]
        route = Routing(self.checkpoint, places, None, places.everywhere)
        for batches in self._pieces("true"):
            shown: dict[int, list[Piece]] = {}
            for piece in pieces_in(route(batches)):
                shown.setdefault(piece.shard, []).append(piece)
            for shard, pieces in shown.items():
                given = packed(
                    [Given(p.first, p.table == CHANGES, p.rows, p.content) for p in pieces]
                )
                for batch in states[shard].take(given):
                    table = pa.Table.from_batches([batch])
                    self.told.append(table)
                    self.refused += (row for row in table.to_pylist() if row["problem"])


@pytest.fixture
def world(tmp_path) -> World:
    world = World(tmp_path, shards=3)
    world.changes(*EVERYTHING)
    world.quotes(0, 30)
    return world


def wide(world: World, **columns: pa.Array) -> None:
    """A Parquet file of quotes, in which these columns are as they are."""
    rows = len(next(iter(columns.values())))
    given = {
        "ce_type": pa.array(["quote"] * rows),
        "symbol": pa.array(["IBM"] * rows),
        "price": pa.array(range(0, 10 * rows, 10)),
        **columns,
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(given), sink)
    world.arrive("events", ".parquet", bytes(sink.getvalue()))


def broken(*texts: bytes) -> pa.Array:
    """Texts of which nobody has looked whether they are any."""
    return pa.array(texts, pa.binary()).view(pa.string())


MILLISECOND = pa.timestamp("ms", tz="UTC")
NANOSECOND = pa.timestamp("ns", tz="UTC")

ROWS = {
    "no type": ({"ce_type": pa.array(["quote", None, "quote"])}, "ce_type: wanted"),
    "an empty type": ({"ce_type": pa.array(["quote", "", "quote"])}, "event type: wanted"),
    "a type that is no text": ({"ce_type": broken(b"quote", b"\xff", b"quote")}, "UTF-8"),
    "a key that is no text": ({"symbol": broken(b"IBM", b"\xff\xfe", b"SAP")}, "UTF-8"),
    "another text that is none": ({"note": broken(b"IBM", b"\xff\xfe", b"SAP")}, "UTF-8"),
    "an id that is no text": ({"ce_id": broken(b"IBM", b"\xff\xfe", b"SAP")}, "UTF-8"),
    "data that is no JSON": ({"ce_data": pa.array([None, "{", "{}"])}, "ce_data: wanted"),
    "data that is no object": ({"ce_data": pa.array([None, "[1]", "{}"])}, "ce_data: wanted"),
    "data that is no text": ({"ce_data": broken(b"{}", b"\xff", b"{}")}, "UTF-8"),
    "data said twice": ({"ce_data": pa.array([None, '{"price": 1}', None])}, "it once"),
    "data said twice with a new column": (
        {"ce_data": pa.array([None, '{"more": 1}', '{"other": 1}']), "more": pa.array([1, 2, 3])},
        "it once",
    ),
    "data that is no JSON with a new column": (
        {"ce_data": pa.array([None, "{", '{"other": 1}']), "more": pa.array([1, 2, 3])},
        "ce_data: wanted",
    ),
    "no key": ({"symbol": pa.array(["IBM", None, "SAP"])}, "symbol"),
    "no time that is": (
        {"ce_time": pa.array([1, 2**61, 3]).cast(pa.timestamp("us", tz="UTC"))},
        "year",
    ),
    "a time beyond all": ({"ce_time": pa.array([1, 2**61, 3]).cast(MILLISECOND)}, "64 bits"),
    "an empty id": ({"ce_id": pa.array(["a", "", "c"])}, "event id: wanted"),
    "a part of a microsecond": ({"ce_time": pa.array([0, 1001, 2000]).cast(NANOSECOND)}, "whole"),
}
"""Three rows each, of which the second is none."""


@pytest.mark.parametrize("case", ROWS)
@pytest.mark.parametrize("first", [False, True], ids=["later", "first"])
def test_a_row_that_is_no_event_is_refused_and_the_others_are_not(tmp_path, case, first):
    """Whether its columns are those of the pipeline, or came later."""
    columns, problem = ROWS[case]
    world = World(tmp_path, shards=3)
    if not first:
        world.quotes(0, 10)
        world.record()
    world.changes(*EVERYTHING)
    wide(world, **columns)
    stages = Stages(world).run()
    ((seq, said),) = stages.problems
    assert seq == (4 if first else 14) + 1
    assert problem in said
    assert stages.answers == world.wanted()
    assert {(seq - 1, "moved"), (seq + 1, "moved")} <= {(at, id) for at, id, *_ in stages.answers}


def test_attributes_that_came_later_or_under_another_type_are_kept(tmp_path):
    world = World(tmp_path, shards=3)
    world.changes({"id": "f", "text": "SELECT * FROM quote WHERE late > 5 OR price = 'much'"})
    world.quotes(0, 3)
    world.record()
    wide(world, late=pa.array([1, 7, None]), price=pa.array(["much", "little", "much"]))
    wide(world, late=pa.array([2**63, 9, 3], pa.uint64()))
    wide(world, at=pa.array([0, 1001, 2000]).cast(NANOSECOND), late=pa.array([9, 9, 9]))
    stages = Stages(world).run()
    assert stages.answers == world.wanted()
    assert sorted(seq for seq, *_ in stages.answers) == [4, 5, 6, 8, 10, 12]
    assert [seq for seq, _ in stages.problems] == [7, 11]


LINES = [
    (b'{"type": "quote", "data": {"symbol": "IBM", "price": 200}}', None),
    (b"nonsense", "JSON"),
    (b"", None),
    (b"[1, 2]", "object"),
    (b'{"type": "quote"}', "symbol"),
    (b'{"type": "\xff"}', "utf"),
    (b'{"type": "quote", "data": {"symbol": "IBM", "price": 1e999}}', ""),
    (b'{"type": 7}', "type"),
    (b'{"type": "quote", "time": "never"}', "time"),
    (b"[" * 100_000, ""),
    (b'{"type": "quote", "data": {"symbol": "IBM", "price": 300}}', None),
]


def test_lines_that_are_no_events_are_refused_with_what_they_were(tmp_path):
    world = World(tmp_path, shards=2)
    world.changes(*EVERYTHING)
    world.arrive("events", ".jsonl", b"\n".join(line for line, _ in LINES))
    stages = Stages(world).run()
    found = {row["seq"]: row for row in stages.refused}
    assert len(found) == len(stages.refused)
    for seq, (line, problem) in enumerate(LINES, 4):
        assert (seq in found) == (problem is not None), line
        if problem is not None:
            assert problem.lower() in found[seq]["problem"].lower()
            assert found[seq]["content"] == line.decode(errors="replace")
    assert stages.answers == world.wanted()
    assert {seq for seq, id, *_ in stages.answers if id == "filter"} == {4, 14}


@pytest.mark.parametrize("page", [1, 2, book.PAGE])
def test_changes_that_are_refused_change_nothing_and_are_told_once(world, monkeypatch, page):
    monkeypatch.setattr(book, "PAGE", page)
    world.changes(
        {"op": "set", "id": "nobody", "params": {}},
        {"op": "set", "id": "filter", "params": {"q": 1}},
        {"id": "filter", "text": "SELECT * FROM quote"},
        {"id": "x", "text": "SELECT nonsense from"},
        {"op": "explode"},
        {"op": "delete", "table": "nothing", "key": 1},
        {"id": "y", "text": "SELECT MIN(price) FROM quote WHERE price > 1"},
    )
    world.arrive("changes", ".jsonl", b'nonsense\n\n{"op": "set", "id": "\xff"}\n[]\n')
    world.arrive("changes", ".parquet", b"PAR1 but not really")
    world.quotes(30, 40)
    stages = Stages(world).run()
    assert [seq for seq, _ in stages.problems] == [*range(34, 41), 41, 42, 43, 44]
    assert stages.answers == world.wanted()
    files = Counter(str(row["file"])[-12:] for row in stages.refused)
    assert files == {"s/0003.jsonl": 7, "s/0004.jsonl": 3, "0005.parquet": 1}


@pytest.mark.parametrize("late", ["refuse", "accept"])
@pytest.mark.parametrize("by", ["time", "n"])
@pytest.mark.parametrize("batch", [7, 1_000_000])
@pytest.mark.parametrize("asked", [EVERYTHING, EVERYTHING[:3]], ids=["all", "no pattern"])
def test_in_any_order_and_any_batches_the_same_is_told(tmp_path, by, late, batch, asked):
    world = World(tmp_path, OrderConfig(by, 6, late), shards=3)
    world.quotes(0, 10)
    world.events(Event("quote", {"price": 99}))
    world.changes(*asked)
    shuffled = [(number * 37) % 60 for number in range(60)]
    for begin in range(0, 60, 20):
        world.events(*(made_event(number) for number in shuffled[begin : begin + 20]))
        world.changes({"op": "set", "id": "moved", "params": {"r": 1 + begin % 3}})
    stages = Stages(world, batch).run()
    wanted = world.wanted()
    assert stages.answers == wanted
    assert {id for _, id, *_ in wanted} == {one["id"] for one in asked}
    refused = Counter(seq for seq, _ in stages.problems)
    assert refused.pop(10) == 1, "it has no key"
    assert bool(refused) == (late == "refuse")
    assert refused.total() == len(refused)


def test_rows_with_keys_of_any_kind_are_found_again(tmp_path):
    """By the column they came in, by their event, and by a change that deletes them."""
    world = World(tmp_path, shards=5)
    world.changes(
        {"id": "moved", "text": "SELECT price FROM quote WHERE moved(price, by => 1)"},
        {"id": "pattern", "text": "SELECT * FROM quote THEN SELECT * FROM quote"},
    )
    times = pa.array(range(12), pa.timestamp("us", tz="UTC"))
    for keys in (times, pa.array([float(n) for n in range(12)]), pa.array(range(12))):
        wide(world, symbol=keys)
    world.changes(
        *({"op": "delete", "table": "quote", "key": number} for number in range(12)),
        *(
            {"op": "delete", "table": "quote", "key": {"@time": f"1970-01-01T00:00:00.00000{n}Z"}}
            for n in range(10)
        ),
    )
    stages = Stages(world).run()
    assert stages.problems == []
    assert stages.answers == world.wanted()
    gone = {seq for seq, id, kind, *_ in stages.answers if (id, kind) == ("moved", "leave")}
    assert len(gone) == 22


def test_a_row_is_shown_as_it_came(world):
    wide(world, note=pa.array([None, "why", None]), symbol=pa.array(["IBM", None, "SAP"]))
    stages = Stages(world).run()
    (row,) = stages.refused
    shown = msgspec.json.decode(row["content"])
    assert (shown["price"], shown["ce_type"]) == (10, "quote")
    assert "why" in row["content"]
