"""`driftline match`: file to file, JSON lines and Parquet, and what becomes of bad rows."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import driftline as dl
from driftline.matching.choice import MATCHERS
from driftline.workload.files import write_events, write_json_events

EVENTS = [
    dl.Event("quote", {"symbol": "IBM", "price": 9.5}, id="1", source="nyse"),
    dl.Event("quote", {"symbol": "IBM", "price": 12.0}, id="2", source="nyse"),
    dl.Event("quote", {"symbol": "DIS", "price": 3.0}),
]
SUBSCRIPTIONS = [
    {"id": "cheap", "text": "SELECT * FROM quote WHERE price < :p", "params": {"p": 10}},
    {"id": "ibm", "text": "SELECT * WHERE symbol = 'IBM' AND env('open')", "party": "alice"},
    {"id": "nyse", "filters": [{"exact": {"source": "nyse"}}, {"not": {"exact": {"id": "2"}}}]},
    {"text": "SELECT * WHERE symbol LIKE 'D%'"},
]
EXPECTED = [
    {"event": 1, "ce_id": "1", "ce_source": "nyse", "subscriptions": ["cheap", "ibm", "nyse"]},
    {"event": 2, "ce_id": "2", "ce_source": "nyse", "subscriptions": ["ibm"]},
    {"event": 3, "subscriptions": ["cheap", "line 4"]},
]


@pytest.fixture
def files(tmp_path):
    lines = "\n".join(json.dumps(row) for row in SUBSCRIPTIONS)
    (tmp_path / "subscriptions.jsonl").write_text(lines + "\n")
    write_json_events(EVENTS, str(tmp_path / "events.jsonl"))
    write_events(EVENTS, str(tmp_path))
    columns = {
        name: [
            json.dumps(row[name])
            if name in ("params", "filters") and name in row
            else row.get(name)
            for row in SUBSCRIPTIONS
        ]
        for name in ("id", "text", "params", "party", "filters")
    }
    pq.write_table(pa.table(columns), tmp_path / "subscriptions.parquet")
    return tmp_path


def words(files, subscriptions="subscriptions.jsonl", events="events.jsonl", out="out.jsonl"):
    return (
        "match",
        "--subscriptions",
        files / subscriptions,
        "--events",
        files / events,
        "--out",
        files / out,
        "--env",
        '{"open": true}',
    )


def written(path):
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
        return [{name: cell for name, cell in row.items() if cell is not None} for row in rows]
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("out", ["out.jsonl", "out.parquet"])
@pytest.mark.parametrize("events", ["events.jsonl", "events-00000.parquet"])
@pytest.mark.parametrize("subscriptions", ["subscriptions.jsonl", "subscriptions.parquet"])
def test_every_form_in_and_out_gives_the_same(driftline, files, subscriptions, events, out):
    ran = driftline(*words(files, subscriptions, events, out), "--json")
    assert ran.code == 0
    assert ran.data == {
        "subscriptions": 4,
        "events": 3,
        "matched": 3,
        "notifications": 6,
        "refused": 0,
        "out": str(files / out),
    }
    assert written(files / out) == EXPECTED


@pytest.mark.parametrize("matcher", MATCHERS)
def test_every_matcher_gives_the_same(driftline, files, matcher):
    assert driftline(*words(files), "--matcher", matcher).code == 0
    assert written(files / "out.jsonl") == EXPECTED


def test_a_row_that_is_no_event_is_carried_on_with_its_problem(driftline, files):
    good = (files / "events.jsonl").read_text().splitlines()
    bad = [
        "{",
        "[]",
        '{"type": 3}',
        '{"type": "q", "data": {"x": [1]}}',
        '{"type": "q", "id": "\\ud800"}',
    ]
    (files / "events.jsonl").write_text("\n".join([good[0], *bad, "", good[2]]) + "\n")
    ran = driftline(*words(files))
    assert ran.code == 0
    assert "5 rows are no events" in ran.err
    rows = written(files / "out.jsonl")
    assert [row["event"] for row in rows] == [1, 2, 3, 4, 5, 6, 8]
    assert [row.get("subscriptions") for row in rows[:1] + rows[-1:]] == [
        ["cheap", "ibm", "nyse"],
        ["cheap", "line 4"],
    ]
    assert all("wanted" in row["problem"] or "JSON" in row["problem"] for row in rows[1:6])


def test_a_refused_subscription_names_its_line_and_writes_nothing(driftline, files):
    with open(files / "subscriptions.jsonl", "a") as stream:
        stream.write('{"id": "bad", "text": "SELECT * WHERE"}\n')
    ran = driftline(*words(files))
    assert (ran.code, ran.out) == (4, "")
    assert "subscriptions.jsonl, line 5: wanted" in ran.err
    assert sorted(path.name for path in files.glob("*out*")) == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"id": "cheap", "text": "SELECT *"}', "again"),
        ('{"text": "SELECT * WHERE x < :p"}', "missing :p"),
        ('{"text": "SELECT MIN(x) FROM t"}', "stateless filter"),
        ('{"text": "SELECT *", "filters": []}', "either text or filters"),
        ('{"txt": "SELECT *"}', "txt"),
        ("nonsense", "JSON"),
    ],
)
def test_no_subscription_is_passed_over(driftline, files, line, problem):
    with open(files / "subscriptions.jsonl", "a") as stream:
        stream.write(line + "\n")
    ran = driftline(*words(files))
    assert ran.code == 4
    assert "line 5" in ran.err
    assert problem in ran.err


def test_files_must_exist_and_be_of_a_known_kind(driftline, files):
    for subscriptions, events, out in (
        ("no.jsonl", "events.jsonl", "out.jsonl"),
        ("subscriptions.jsonl", "no.jsonl", "out.jsonl"),
        ("subscriptions.jsonl", "no.parquet", "out.jsonl"),
        ("subscriptions.jsonl", "events.csv", "out.jsonl"),
        ("subscriptions.jsonl", "events.jsonl", "out.csv"),
        ("subscriptions.jsonl", "events.jsonl", "no/out.jsonl"),
    ):
        assert driftline(*words(files, subscriptions, events, out)).code == 4


def test_parquet_columns_that_mean_nothing_here_are_refused_by_name(driftline, files):
    pq.write_table(pa.table({"ce_type": ["q"], "tags": [["a"]]}), files / "events.parquet")
    ran = driftline(*words(files, events="events.parquet"))
    assert ran.code == 4
    assert "column tags" in ran.err


def test_nanoseconds_that_would_be_lost_are_refused_in_their_row(driftline, files):
    stamps = pa.array([1_000, 1_001, None], pa.timestamp("ns", tz="UTC"))
    table = pa.table({"symbol": ["IBM", "IBM", "DIS"], "at": stamps})
    pq.write_table(table, files / "events.parquet")
    ran = driftline(*words(files, events="events.parquet"), "--default-type", "quote")
    assert ran.code == 0
    rows = written(files / "out.jsonl")
    assert [row.get("subscriptions") for row in rows] == [["ibm"], None, ["line 4"]]
    assert "whole microseconds" in rows[1]["problem"]


def test_the_output_may_not_be_one_of_the_inputs(driftline, files):
    before = (files / "events.jsonl").read_text()
    assert driftline(*words(files, out="events.jsonl")).code == 4
    assert (files / "events.jsonl").read_text() == before


def test_nothing_is_left_behind_where_the_output_cannot_be_written(driftline, files):
    (files / "dir.jsonl").mkdir()
    ran = driftline(*words(files, out="dir.jsonl"))
    assert (ran.code, "Traceback" in ran.err) == (4, False)
    assert list(files.glob(".*")) == []


def test_parquet_subscriptions_may_have_maps_and_structs_of_parameters(driftline, files):
    texts = ["SELECT * WHERE price < :p", "SELECT * WHERE symbol = 'IBM'"]
    maps = pa.array([[("p", 5)], []], pa.map_(pa.string(), pa.int64()))
    structs = pa.array([{"p": 5}, {"p": None}])
    for params in (maps, structs):
        pq.write_table(pa.table({"text": texts, "params": params}), files / "s.parquet")
        assert driftline(*words(files, subscriptions="s.parquet")).code == 0
        assert [row["subscriptions"] for row in written(files / "out.jsonl")] == [
            ["line 2"],
            ["line 2"],
            ["line 1"],
        ]


@pytest.mark.parametrize("bad", [b"\xff\xfe", b"[" * 100_000])
def test_a_parquet_file_of_nonsense_is_refused(driftline, files, bad):
    texts = pa.array([b"SELECT *" if bad[:1] == b"[" else bad], pa.binary()).view(pa.string())
    params = pa.array([bad if bad[:1] == b"[" else None], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": texts, "params": params}), files / "s.parquet")
    ran = driftline(*words(files, subscriptions="s.parquet"))
    assert (ran.code, "Traceback" in ran.err) == (4, False)
