"""What is written can be read back, by any reader of the format."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from driftline.errors import InvalidValue
from driftline.language.cloudevents import event_from
from driftline.model.event import Event
from driftline.workload.files import table_of, write_events, write_json_events
from driftline.workload.prices import quotes

MIXED = [
    Event("a", {"x": 2**63 - 1, "s": "é"}, id="1", time=-1),
    Event("b", {"b": False, "y": b"\x00"}, source="here", entered=5),
]


def test_files_share_the_events_in_order(tmp_path):
    events = quotes()[:100]
    files = write_events(events, str(tmp_path), files=3)
    tables = [pq.read_table(file) for file in files]
    assert [table.num_rows for table in tables] == [33, 33, 34]
    ids = [id for table in tables for id in table["ce_id"].to_pylist()]
    assert ids == [event.id for event in events]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"events-0000{part}.parquet" for part in range(3)
    ]


def test_columns_are_typed_and_missing_attributes_are_null():
    table = table_of(MIXED)
    assert table["x"].to_pylist() == [2**63 - 1, None]
    assert table["b"].to_pylist() == [None, False]
    assert [str(table.schema.field(name).type) for name in ("x", "s", "b", "y", "ce_time")] == [
        *("int64", "string", "bool", "binary"),
        "timestamp[us, tz=UTC]",
    ]


def test_an_attribute_of_two_types_is_refused():
    with pytest.raises(InvalidValue, match="attribute x: wanted one type"):
        table_of([Event("t", {"x": 1}), Event("t", {"x": 1.0})])


def test_no_events_and_more_files_than_events_are_fine(tmp_path):
    assert table_of([]).num_rows == 0
    files = write_events(MIXED[:1], str(tmp_path), files=3)
    assert sum(pq.read_metadata(file).num_rows for file in files) == 1
    with pytest.raises(InvalidValue, match="at least 1"):
        write_events(MIXED, str(tmp_path), files=0)


def test_json_lines_hold_what_was_written(tmp_path):
    path = tmp_path / "events.jsonl"
    plain = [Event("t", {"x": 1, "y": b"\xff", "f": float("nan")}, id="1", time=-5)]
    write_json_events(plain, str(path))
    assert [event_from(json.loads(line)) for line in path.read_text().splitlines()] == plain
