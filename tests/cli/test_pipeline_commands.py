"""`driftline pipeline` where it needs no Spark: a beginning, how far, where, and again."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import tomllib
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftline.cli.pipeline import running
from driftline.cli.pipeline.begin import EXAMPLE
from driftline.errors import FileRefused
from driftline.recorded.config import (
    ChangesConfig,
    EventsConfig,
    OrderConfig,
    OutConfig,
    PipelineConfig,
    RunConfig,
    TableConfig,
    read_config,
)
from driftline.recorded.pages import Pages
from driftline.recorded.recorder import Recorder, copy_sequence, read_book
from driftline.recorded.replay import answers, replayed
from driftline.recorded.told import TOLD, table_of
from driftline.spark.manifest import Manifest, Written

WHEN = 1_770_000_000_000_000

TOLD_OF_THE_EXAMPLE = [
    (1, "least", "snapshot", {"MIN(price)": None}),
    (4, "cheap", "event", {"symbol": "IBM", "price": 9.5}),
    (4, "least", "change", {"MIN(price)": 9.5}),
    (6, "drift", "enter", {"isin": "XX01", "worth": 100}),
    (11, "cheap", "event", {"symbol": "ACME", "price": 12.0}),
    (12, "least", "change", {"MIN(price)": 12.0}),
    (14, "drift", "change", {"isin": "XX01", "worth": 94}),
    (15, "returned", "pattern", {"item": "lamp"}),
]


@pytest.fixture
def example(driftline, tmp_path) -> Path:
    """The example, as it is before it runs."""
    assert driftline("pipeline", "init", tmp_path / "mine").code == 0
    return tmp_path / "mine"


@pytest.fixture
def recorded(example) -> Path:
    """The example, all of it recorded."""
    recorder = Recorder(read_config(example / "pipeline.toml"))
    assert recorder.look(WHEN) == 16
    recorder.close()
    return example


def write_output(config: PipelineConfig, end: int, change=lambda rows: rows) -> None:
    """What a pipeline would have written up to a number, of one query, changed on purpose."""
    rows = [row for row in replayed(config, end) if row.told is not None]
    table = pa.Table.from_batches([table_of(change(rows))], schema=TOLD).drop(["problem"])
    out = Path(config.out.path)
    for folder in ("told", "_manifest"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    pq.write_table(table, out / "told" / "reformulate-a.parquet")
    written = Written("told", "told/reformulate-a.parquet", len(table), len(table))
    manifest = Manifest("reformulate", 0, "id", 0, end, (written,))
    (out / "_manifest" / "reformulate-0.json").write_bytes(msgspec.json.encode(manifest))
    other = Manifest("match", 0, "id", 0, end)
    (out / "_manifest" / "match-0.json").write_bytes(msgspec.json.encode(other))


def without(rows, seq, id):
    return [row for row in rows if (row.seq, *row.ids) != (seq, id)]


def test_the_file_of_the_example_teaches_every_option_and_its_default():
    text = (EXAMPLE / "pipeline.toml").read_text()
    # Every option that is shown in a comment, as if it were said.
    said = tomllib.loads(re.sub(r"^# (?=\w+ = |\[)", "", text, flags=re.MULTILINE))
    msgspec.convert(said, PipelineConfig)
    hidden = set(re.findall(r"^# (\w+) = ", text, re.MULTILINE))
    for struct, section in (
        (EventsConfig, said["events"]),
        (ChangesConfig, said["changes"]),
        (OutConfig, said["out"]),
        (TableConfig, said["tables"]["quote"]),
        (OrderConfig, said["order"]),
        (RunConfig, said["run"]),
        (PipelineConfig, said),
    ):
        fields = {field.name: field.default for field in msgspec.structs.fields(struct)}
        assert section.keys() == fields.keys(), struct.__name__
        for name in hidden & section.keys():
            if fields[name] is not None:
                assert section[name] == fields[name], f"{struct.__name__}.{name}"


def test_the_example_records_in_the_order_of_its_names(recorded):
    files = [
        Path(one.path).name for one in Recorder(read_config(recorded / "pipeline.toml")).sequence
    ]
    assert files == [
        "1-subscriptions.jsonl",
        "2-morning.jsonl",
        "3-moves.jsonl",
        "4-afternoon.jsonl",
    ]


def test_files_have_the_same_paths_wherever_one_stands(example, monkeypatch):
    found = read_config(example / "pipeline.toml")
    monkeypatch.chdir(example)
    assert read_config("pipeline.toml") == read_config("events/../pipeline.toml") == found
    assert found.events.path == str(example / "events")


def test_a_directory_with_something_in_it_is_refused_and_left_alone(driftline, tmp_path):
    (tmp_path / "mine").write_text("precious")
    for place in (tmp_path, tmp_path / "mine"):
        ran = driftline("pipeline", "init", place)
        assert (ran.code, ran.out) == (4, "")
        assert "an empty or new directory" in ran.err
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


def test_replay_tells_what_follows_line_by_line(driftline, recorded):
    lines = driftline("pipeline", "replay", recorded, "--json").out.splitlines()
    told = [json.loads(line) for line in lines]
    found = [(one["seq"], *one["subscriptions"], one["kind"], one["values"]) for one in told]
    # In which order different ones are told of one event is open.
    assert sorted(found, key=lambda one: one[:2]) == TOLD_OF_THE_EXAMPLE
    (change,) = [one for one in told if (one["seq"], one["kind"]) == (4, "change")]
    assert change["old"] == {"MIN(price)": None}
    assert change["time"] == {"@time": "2026-01-30T09:30:00Z"}
    assert [event["id"] for event in told[-1]["events"]] == ["m5", "a5"]
    until = driftline("pipeline", "replay", recorded / "pipeline.toml", "--until", 11, "--json")
    assert len(until.out.splitlines()) == 4
    table = driftline("pipeline", "replay", recorded).out
    assert "The last 8 of 8 rows, up to number 16" in table
    assert '{"item":"lamp"}' in table


def test_replay_checks_what_was_written_and_says_what_differs(driftline, recorded):
    config = read_config(recorded / "pipeline.toml")
    write_output(config, 16)
    ran = driftline("pipeline", "replay", recorded, "--check")
    assert (ran.code, ran.out) == (0, "")
    assert "The same: 8 notifications up to number 16 of 16." in ran.err
    write_output(config, 16, lambda rows: [*without(rows, 4, "least"), rows[-1]])
    ran = driftline("pipeline", "replay", recorded, "--check", "--json")
    assert ran.code == 1
    assert ran.data["same"] is False
    (missing,), (unfounded,) = ran.data["missing"], ran.data["unfounded"]
    assert (missing["seq"], missing["id"], missing["values"]) == (4, "least", {"MIN(price)": 9.5})
    assert (unfounded["seq"], unfounded["id"]) == (15, "returned")
    table = driftline("pipeline", "replay", recorded, "--check")
    assert table.code == 1
    assert "written, and" in table.out  # A narrow terminal breaks the cell.
    assert "Not the same" in table.err


def test_what_is_compared_ends_where_the_pipeline_is(driftline, recorded):
    config = read_config(recorded / "pipeline.toml")
    write_output(config, 12)
    data = driftline("pipeline", "replay", recorded, "--check", "--json").data
    assert (data["same"], data["until"], data["recorded"], data["notifications"]) == (
        True,
        12,
        16,
        5,
    )
    data = driftline("pipeline", "replay", recorded, "--check", "--until", 4, "--json").data
    assert (data["same"], data["until"], data["notifications"]) == (True, 4, 1)


def test_what_waited_for_its_order_is_compared_by_its_own_number(driftline, recorded):
    """It is told when something later has come: beyond the number where the comparison ends."""
    text = (recorded / "pipeline.toml").read_text()
    text = text.replace('# by = "recorded"', 'by = "time"').replace(
        "# lateness = 0.0", "lateness = 60.0"
    )
    (recorded / "pipeline.toml").write_text(text)
    write_output(read_config(recorded / "pipeline.toml"), 16)
    for until in range(17):
        data = driftline("pipeline", "replay", recorded, "--check", "--until", until, "--json").data
        assert data["same"], until


def test_status_says_how_far_it_is(driftline, recorded):
    config = read_config(recorded / "pipeline.toml")
    write_output(config, 12)
    (Path(config.out.path) / "told" / "reformulate-b.parquet").touch()
    snapshot = config.checkpoint / "snapshots" / "1" / "00000003-abc"
    snapshot.parent.mkdir(parents=True)
    snapshot.write_bytes(b"12345")
    data = driftline("pipeline", "status", recorded, "--json").data
    assert data["running"] is False
    assert data["recorded"] == 16
    assert data["files"] == {"events": 2, "changes": 2, "nothing": 0}
    assert data["rows"] == {"events": 10, "changes": 6, "nothing": 0}
    assert data["last_recorded"] == "2026-02-02T02:40:00Z"
    query = data["queries"]["reformulate"]
    assert (query["done"], query["lag"], query["batches"], query["notifications"]) == (12, 4, 1, 5)
    assert data["tables"] == {"matched": 0, "told": 5, "refused": 0}
    assert data["subscriptions"] == {"filter": 1, "moved": 1, "pattern": 1, "view": 1}
    assert (data["shards"], data["snapshots"], data["snapshot_bytes"]) == (2, 1, 5)
    assert data["remains"] == 1
    table = driftline("pipeline", "status", recorded).out
    assert "16 numbers: 2 files of events (10 rows), 2 files of changes (6 rows)" in table
    assert "1 filter, 1 moved, 1 pattern, 1 view" in table


def test_status_says_whether_a_process_runs_it_and_leaves_the_lock_alone(driftline, recorded):
    recorder = Recorder(read_config(recorded / "pipeline.toml"))
    assert driftline("pipeline", "status", recorded, "--json").data["running"] is True
    recorder.close()
    assert driftline("pipeline", "status", recorded, "--json").data["running"] is False
    handle = os.open(recorded / "out" / "checkpoint" / ".lock", os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(handle)


@pytest.mark.parametrize("command", ["status", "explain", "replay"])
def test_one_that_never_ran_is_told_of_in_one_line(driftline, example, command):
    ran = driftline("pipeline", command, example)
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.endswith("nothing is recorded there\n")
    assert not (example / "out").exists()


@pytest.mark.parametrize("command", ["run", "status", "explain", "replay"])
def test_a_file_that_says_no_pipeline_is_refused_by_name(driftline, tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = driftline("pipeline", command)
    assert (ran.code, ran.out) == (4, "")
    assert "pipeline.toml: No such file or directory" in ran.err
    (tmp_path / "pipeline.toml").write_text('[events]\npath = "e"\n[out]\npath = "o"\nspeed = 3\n')
    ran = driftline("pipeline", command, tmp_path)
    assert ran.code == 4
    assert "pipeline.toml: Object contains unknown field `speed`" in ran.err


def test_explain_says_where_everything_is(driftline, recorded):
    data = driftline("pipeline", "explain", recorded, "--json").data
    assert data["kinds"] == {"filter": 1, "moved": 1, "pattern": 1, "view": 1}
    assert {one["name"]: one["kept"] for one in data["tables"]} == {
        "quote": "whole",
        "fund": "spread by its key",
    }
    assert {one["kind"]: one["ids"] for one in data["remembered"]} == {
        "moved": ["drift"],
        "pattern": ["returned"],
        "view": ["least"],
    }
    table = driftline("pipeline", "explain", recorded).out
    assert "spread by its key" in table
    assert "driftline pipeline replay --into DIR" in table


def test_explain_says_how_a_subscription_stands(driftline, recorded, monkeypatch):
    monkeypatch.chdir(recorded)
    data = driftline("pipeline", "explain", "cheap", "--json").data
    assert (data["params"], data["epoch"], data["since"]) == ({"limit": 13}, 1, 9)
    said = driftline("pipeline", "explain", ".", "drift").out
    assert "from number 10 on" in said
    assert "fund is spread by its key: each shard follows its own rows" in said
    ran = driftline("pipeline", "explain", ".", "nobody")
    assert (ran.code, ran.out) == (4, "")
    assert "that of a subscription, came 'nobody'" in ran.err


@pytest.mark.parametrize(
    ("id", "event", "matches", "saw"),
    [
        ("cheap", {"type": "quote", "price": 12.5}, True, ":limit is 13"),
        ("cheap", {"type": "quote", "price": 13}, False, ":limit is 13"),
        # Of what was recorded it remembers the last that was told, 94.
        ("drift", {"type": "fund", "isin": "XX01", "worth": 98}, False, "last told is 94.0"),
        ("drift", {"type": "fund", "isin": "XX01", "worth": 99}, True, "last told is 94.0"),
        ("returned", {"type": "sale", "amount": 1001}, True, "amount is 1001"),
        ("returned", {"type": "return"}, False, "ce_type is 'return'"),
    ],
)
def test_explain_says_why_an_event_would_be_told(driftline, recorded, id, event, matches, saw):
    words = ("pipeline", "explain", recorded, id, "--event", json.dumps(event))
    assert driftline(*words, "--json").data["matches"] is matches
    assert saw in driftline(*words).out


def test_an_event_that_cannot_be_explained_is_refused(driftline, recorded):
    words = ("pipeline", "explain", recorded)
    assert driftline(*words, "--event", "{}").code == 2
    assert driftline(*words, "cheap", "--event", "[").code == 4
    view = driftline(*words, "least", "--event", '{"type": "quote", "symbol": "A"}')
    assert view.code == 3
    assert "single events do not match it" in view.err


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--subscriptions", "s.jsonl"],
        ["run", "--env", "{}"],
        ["run", "mine", "--subscriptions", "s.jsonl", "--events", "e", "--out", "o"],
        ["replay", "--into", "x", "--check"],
    ],
)
def test_options_that_do_not_go_together_are_a_wrong_command_line(
    driftline, recorded, words, monkeypatch
):
    monkeypatch.chdir(recorded)
    assert driftline("pipeline", *words).code == 2


def test_what_can_be_refused_is_refused_before_spark_starts(driftline, example):
    ran = driftline("pipeline", "run", example, "--metrics", "here")
    assert ran.code == 4
    assert "--metrics: wanted a port" in ran.err
    for file in (example / "events").iterdir():
        file.unlink()
    (example / "events").rmdir()
    assert "no such file or directory" in driftline("pipeline", "run", example).err


def test_events_that_are_no_files_yet_need_no_directory(driftline, example, monkeypatch):
    """Another source is written there first; it is Spark that would be asked next."""
    shutil.rmtree(example / "events")
    text = (example / "pipeline.toml").read_text().replace('# format = "kafka"', 'format = "kafka"')
    (example / "pipeline.toml").write_text(text)
    asked = []
    monkeypatch.setattr(running, "run_on_spark", lambda config, **_: asked.append(config))
    monkeypatch.setattr(running, "print_progress", lambda *_: None)
    assert driftline("pipeline", "run", example).code == 0
    assert [config.events.format for config in asked] == ["kafka"]


EVERYWHERE = tuple(range(7))


def test_a_sequence_that_was_copied_gets_a_book_of_its_own(recorded, tmp_path):
    old = read_config(recorded / "pipeline.toml")
    text = (recorded / "pipeline.toml").read_text()
    text = text.replace('path = "out"', 'path = "other"').replace("# shards = 2", "shards = 7")
    (recorded / "pipeline.toml").write_text(text)
    new = read_config(recorded / "pipeline.toml")
    copy_sequence(old.checkpoint, new.checkpoint)
    Recorder(new).close()
    assert answers(replayed(new)) == answers(replayed(old))
    page = next(Pages(new.checkpoint / "book").between(0, 99))
    assert [shards for _, _, shards, change in page.shown if change.id == "drift"] == [EVERYWHERE]
    assert read_book(new).remembered["drift"].place.shards == EVERYWHERE
    assert read_book(old).remembered["drift"].place.shards == (0, 1)
    with pytest.raises(FileRefused, match="empty or new"):
        copy_sequence(old.checkpoint, new.checkpoint)


def test_a_file_of_changes_that_was_edited_is_noticed(driftline, recorded):
    file = recorded / "changes" / "3-moves.jsonl"
    file.write_text(file.read_text() + "\n")
    ran = driftline("pipeline", "replay", recorded)
    assert ran.code == 4
    assert "3-moves.jsonl: it has changed since it was recorded" in ran.err
    file.unlink()
    assert "3-moves.jsonl: No such file" in driftline("pipeline", "replay", recorded).err
