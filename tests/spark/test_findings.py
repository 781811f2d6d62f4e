"""What once went wrong in the stages of a pipeline, each as a case of its own; without Spark."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftline import Event, bulk, parse
from driftline.errors import FileRefused
from driftline.language.columns import layout_of
from driftline.matching.lazy import Lazy
from driftline.matching.scan import Scan
from driftline.model.standing import Standing
from driftline.recorded import book, reading, sequence
from driftline.recorded.config import TableConfig
from driftline.recorded.pages import Pages
from driftline.recorded.recorder import copy_sequence, read_book
from driftline.recorded.replay import answers_in
from driftline.spark.compare import compare
from driftline.spark.manifest import Manifest
from driftline.spark.matched import versions_of
from driftline.spark.out import ManifestWriter
from driftline.spark.pieces import REFUSED_ROWS, carried, piece_of
from tests.recorded.worlds import EVERYTHING, World, made_event
from tests.spark.test_stages import Stages, wide

pytestmark = pytest.mark.spark

BEGIN = 1_700_000_000_000_000


def with_tables(world: World, tables: dict[str, TableConfig]) -> World:
    world.config = msgspec.structs.replace(world.config, tables=tables)
    return world


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path)


def test_rows_of_joined_tables_are_taken_in_their_order(tmp_path):
    world = with_tables(World(tmp_path, shards=1), dict.fromkeys("ab", TableConfig("k")))
    world.changes({"id": "j", "text": "SELECT a.k, b.k FROM a JOIN b ON a.x = b.x"})
    world.events(
        *(
            Event("ab"[number % 2], {"k": number % 5, "x": number % 3}, time=BEGIN + number)
            for number in range(40)
        )
    )
    stages = Stages(world).run()
    assert stages.answers == world.wanted()
    assert world.wanted().total() > 100


def test_a_file_whose_pages_are_damaged_is_refused_and_stops_nobody(world):
    world.changes(*EVERYTHING)
    world.quotes(0, 30)
    damaged = world.events(*map(made_event, range(30, 230)))
    content = bytearray(damaged.read_bytes())
    content[4:400] = bytes(396)
    damaged.write_bytes(content)
    os.utime(damaged, (1_000_000_003,) * 2)
    world.quotes(230, 240)
    stages = Stages(world, batch=100).run()
    assert [seq for seq, _ in stages.problems] == [*range(34, 234)]
    assert all("row group 0 cannot be read" in str(problem) for _, problem in stages.problems)
    assert stages.answers == world.wanted()
    assert any(seq >= 234 for seq, *_ in stages.answers)


def test_one_of_many_followers_whose_start_is_set_anew(world):
    text = "SELECT price FROM quote WHERE symbol = 'IBM' AND moved(price, by => :r)"
    world.changes(*({"id": f"m{n}", "text": text, "params": {"r": n + 1}} for n in range(40)))
    world.quotes(0, 10)
    world.changes({"op": "set", "id": "m3", "rebase": True})
    world.quotes(10, 30)
    assert Stages(world).run().answers == world.wanted()


NO_CHANGES = {
    "a list for an op": (".jsonl", b'{"op": []}\n{"op": {"a": 1}}\n'),
    "lists for parameters": (
        ".parquet",
        {"id": ["x"], "text": ["SELECT * FROM quote"], "params": [[1, 2]]},
    ),
    "a time that is none": (
        ".parquet",
        {"id": ["x"], "text": ["SELECT * FROM q"], "time": pa.array([2**61], pa.timestamp("us"))},
    ),
    "a zone that nobody knows": (
        ".parquet",
        {"id": ["x"], "time": pa.array([1], pa.timestamp("us", tz="Nowhere/At_all"))},
    ),
}


@pytest.mark.parametrize("case", NO_CHANGES)
def test_changes_that_say_nothing_stop_nobody(world, case):
    suffix, content = NO_CHANGES[case]
    if isinstance(content, dict):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(content), sink)
        content = bytes(sink.getvalue())
    world.arrive("changes", suffix, content)
    world.changes(*EVERYTHING)
    world.quotes(0, 30)
    stages = Stages(world).run()
    assert stages.problems
    assert stages.answers == world.wanted()
    assert stages.answers


@pytest.mark.parametrize("name", ["seq", "recorded", "subscriptions", "kind", "time", "epoch"])
def test_attributes_may_be_called_as_our_columns_are(world, name):
    text = f"SELECT * FROM quote WHERE {name} > 1"
    world.changes({"id": "filter", "text": text}, *EVERYTHING[1:])
    wide(world, **{name: pa.array([1, 2, 3])})
    stages = Stages(world).run()
    assert stages.answers == world.wanted()
    assert {answer[0] for answer in stages.answers if answer[1] == "filter"} == {5, 6}
    assert {answer[1:] for answer in stages.answers if answer[1] == "filter"} == {
        ("filter", "event")
    }


def test_long_lines_are_read_few_at_a_time(world, monkeypatch):
    monkeypatch.setattr(reading, "TEXT_BYTES", 200)
    world.changes(*EVERYTHING)
    line = b'{"type": "quote", "symbol": "IBM", "price": %d}\n\n'
    world.arrive("events", ".jsonl", b"".join(line % price for price in range(90, 130)))
    stages = Stages(world, batch=50)
    batches = [batch for some in stages._pieces("false") for batch in some]
    assert max(len(batch["content"][0].as_py()) for batch in batches) < 2_000
    assert len(batches) > 8
    assert stages.run().answers == world.wanted()


def test_a_text_that_is_missing_is_refused(world):
    lines = ['{"type": "quote", "symbol": "IBM", "price": 120}', None]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"value": lines}), sink)
    world.changes(*EVERYTHING)
    world.arrive("events", ".parquet", bytes(sink.getvalue()))
    stages = Stages(world).run()
    assert [seq for seq, _ in stages.problems] == [5]
    assert stages.answers == world.wanted()


@pytest.mark.parametrize("asked", [EVERYTHING, EVERYTHING[:1]], ids=["all", "a filter"])
def test_a_type_that_only_we_may_use_is_refused_once(world, asked):
    world.changes({"id": "any", "text": "SELECT * WHERE price > 1"}, *asked)
    wide(world, ce_type=pa.array(["quote", "$quote", "quote"]))
    stages = Stages(world).run()
    first = 1 + len(asked)
    assert [seq for seq, _ in stages.problems] == [first + 1]
    assert "does not begin with $" in str(stages.problems[0][1])
    assert stages.answers == world.wanted()


# What was refused, and pages


def test_events_are_shown_as_long_as_somebody_wants_them(tmp_path):
    world = World(tmp_path, shards=3)
    pattern = EVERYTHING[3]
    world.changes(*({**pattern, "id": f"p{number}"} for number in range(20)))
    world.quotes(0, 20)
    world.changes(*({"op": "cancel", "id": f"p{number}"} for number in range(19)))
    world.quotes(20, 40)
    world.changes({"op": "cancel", "id": "p19"})
    world.quotes(40, 60)
    world.changes({**pattern, "id": "again"})
    world.quotes(60, 80)
    for batch in (1_000, 7):
        assert Stages(world, batch).run().answers == world.wanted()
    versions = versions_of(str(world.config.checkpoint))
    assert [len(versions.at(number).wants) for number in (30, 65, 90, 110)] == [3, 1, 0, 1]
    held = read_book(world.config)
    held._check()
    assert len(held.wants) == 1


def test_another_configuration_refuses_other_changes(tmp_path):
    old = with_tables(World(tmp_path / "old"), {"quote": TableConfig("symbol")})
    view = "SELECT MIN(price) FROM quote WHERE volume > :p"
    old.changes({"id": "v", "text": view, "params": {"p": 1}})
    old.quotes(0, 10)
    assert Stages(old).run().problems == []
    new = with_tables(World(tmp_path / "new"), {"quote": TableConfig("symbol", spread=True)})
    copy_sequence(old.config.checkpoint, new.config.checkpoint)
    stages = Stages(new).run()
    assert [seq for seq, _ in stages.problems] == [0]


def test_pages_of_another_size_are_pages_all_the_same(world, monkeypatch):
    world.changes(*EVERYTHING, {"op": "cancel", "id": "nobody"})
    world.quotes(0, 30)
    world.record()
    monkeypatch.setattr(book, "PAGE", 2)
    world.changes({"op": "set", "id": "moved", "params": {"r": 2}})
    world.quotes(30, 60)
    stages = Stages(world).run()
    assert sorted(Pages(world.config.checkpoint / "book").numbers()) == [(0, 5), (35, 36)]
    assert [seq for seq, _ in stages.problems] == [4]
    assert stages.answers == world.wanted()


def test_what_a_page_that_was_never_recorded_refused_is_forgotten(world):
    world.quotes(0, 3)
    world.record()
    pages = Pages(world.config.checkpoint / "book")
    page = book.Page(3, 4, refused=[(3, "no")])
    pages.write(page)
    next(world.config.checkpoint.glob("book/page-3-*")).unlink()
    world.changes(*EVERYTHING)
    world.record()
    assert [*pages.refused(0, 100)] == []


# Output


@pytest.fixture
def writer(tmp_path):
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    (offsets / "0").write_text('v1\n{}\n{"seq": 5}')
    return ManifestWriter(str(tmp_path / "out"), "match", "id", str(offsets))


def message(writer: ManifestWriter, seq: int):
    row = {"seq": [seq], "file": ["f"], "content": ["c"], "problem": ["p"]}
    batch = pa.RecordBatch.from_pydict(row, schema=REFUSED_ROWS)
    return writer.write(carried([piece_of("refused", seq, batch)]))


def files(out) -> list[str]:
    return sorted(file.name for file in (out / "refused").iterdir())


def test_what_counts_stays_though_the_commit_failed_after_all(writer, tmp_path, monkeypatch):
    made = message(writer, 1)

    def full(path):
        raise OSError(5, "input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(sequence, "sync", full)
        with pytest.raises(OSError, match="input/output"):
            writer.commit([made], 0)
    before = files(tmp_path / "out")
    writer.abort([made, message(writer, 1)], 0)
    assert files(tmp_path / "out") == before, "those of the other attempt are gone"


def test_a_batch_of_other_numbers_is_not_passed_over(writer, tmp_path):
    writer.commit([message(writer, 1)], 0)
    (tmp_path / "offsets" / "0").write_text('v1\n{}\n{"seq": 9}')
    with pytest.raises(FileRefused, match=r"batch 0 has the numbers \[0, 5\) there, and \[0, 9\)"):
        writer.commit([message(writer, 7)], 0)


def test_a_query_that_has_committed_nothing_is_not_compared(world):
    world.changes(*EVERYTHING)
    world.quotes(0, 30)
    world.record()
    done = Manifest("match", 0, "id", 0, 34)
    sequence.replace_file(Path(world.out, "_manifest", "match-0.json"), msgspec.json.encode(done))
    assert compare(world.config).until == 0
    assert compare(world.config).is_same


def test_remains_of_writers_are_removed(tmp_path):
    (tmp_path / "book").mkdir()
    final = tmp_path / "book" / "page-1-2"
    sequence.replace_file(final, b"x")
    left = sequence.temporary_of(final)
    left.touch()
    assert left != sequence.temporary_of(final)
    sequence.remove_remains(tmp_path)
    assert [*(tmp_path / "book").iterdir()] == [final]


@pytest.mark.parametrize("most", [10, 1 << 30])
def test_ids_longer_than_a_column_can_be_are_numbers_of_texts(monkeypatch, most):
    monkeypatch.setattr(bulk, "_TEXT_BYTES_MAX", most)
    lazy = Lazy(Scan())
    for id in ("one", "two"):
        lazy.add(id, Standing.of(parse("SELECT * WHERE x > 1"), {}))
    batch = pa.record_batch({"ce_type": ["q"] * 3, "x": [2, 1, 3]})
    told = bulk.match_batch(lazy, batch, layout_of(batch.schema, "batch"), {})
    assert pa.types.is_dictionary(told.ids.type.value_type) == (most == 10)
    table = pa.table({"seq": range(3), "ce_type": batch["ce_type"], "subscriptions": told.ids})
    assert {answer[:2] for answer in answers_in([table])} == {
        (seq, id) for seq in (0, 2) for id in ("one", "two")
    }
