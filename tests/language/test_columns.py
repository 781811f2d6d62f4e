"""Arrow batches become events exactly; these tests need no session."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from driftline.language.cloudevents import event_from, event_to
from driftline.language.columns import Layout, events_of
from driftline.model.event import Event
from driftline.testing.conditions import events
from driftline.workload.files import table_of
from tests.spark.worlds import drawn

TIME = pa.timestamp("us", tz="UTC")


def read(columns: dict[str, pa.Array], default_type: str | None = "t") -> list[Event | str]:
    batch = pa.RecordBatch.from_pydict(columns)
    return events_of(batch, Layout(tuple(batch.schema.names), False, default_type))


def read_text(*rows: str | bytes | None, default_type: str | None = None) -> list[Event | str]:
    raw = [row.encode() if isinstance(row, str) else row for row in rows]
    column = pa.Array.from_buffers(
        pa.string(), len(raw), pa.array(raw, pa.binary()).buffers()
    )  # as Spark sends it: not checked
    return events_of(
        pa.RecordBatch.from_arrays([column], ["value"]), Layout(("value",), True, default_type)
    )


def test_each_column_type_keeps_its_value_and_type():
    columns = {
        "s": pa.array(["", "naïve 日本 \U0001f600"]),
        "i": pa.array([2**63 - 1, -(2**63)], pa.int64()),
        "small": pa.array([-128, 127], pa.int8()),
        "f": pa.array([-0.0, math.inf]),
        "f32": pa.array([0.1, 1.5], pa.float32()),
        "b": pa.array([True, False]),
        "t": pa.array([-1, 253_402_300_799_999_999], pa.int64()).cast(TIME),
        "y": pa.array([b"", b"\x00\xff"]),
    }
    first, second = read(columns)
    assert first == Event(
        "t",
        {
            "s": "",
            "i": 2**63 - 1,
            "small": -128,
            "f": -0.0,
            "f32": 0.10000000149011612,
            "b": True,
            "t": datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            "y": b"",
        },
    )
    assert isinstance(second, Event)
    assert second.attributes["t"] == datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert second.attributes["i"] == -(2**63)


def test_integers_above_two_to_the_53_are_not_rounded_beside_nulls():
    odd = 2**53 + 1
    read_back = read({"i": pa.array([odd, None, -odd], pa.int64())})
    assert read_back == [Event("t", {"i": odd}), Event("t"), Event("t", {"i": -odd})]


def test_nan_is_a_value_and_null_is_a_missing_attribute():
    assert read({"f": pa.array([math.nan, None])}) == [Event("t", {"f": math.nan}), Event("t")]


def test_a_time_zone_of_the_session_does_not_move_a_time():
    stamps = pa.array([0, -1], pa.int64())
    utc = read({"t": stamps.cast(TIME)})
    assert read({"t": stamps.cast(pa.timestamp("us", tz="Asia/Tokyo"))}) == utc


def test_the_envelope_comes_from_its_columns():
    columns = {
        "ce_type": pa.array(["quote", None]),
        "ce_id": pa.array(["7", None]),
        "ce_source": pa.array(["x", None]),
        "ce_time": pa.array([-5, None], pa.int64()).cast(TIME),
        "ce_entered": pa.array([9, None], pa.int64()).cast(TIME),
        "ce_subject": pa.array(["an extension", None]),
    }
    subject = {"ce_subject": "an extension"}
    quote = Event("quote", subject, id="7", source="x", time=-5, entered=9)
    assert read(columns) == [quote, Event("t")]
    assert read(columns, None)[1] == "ce_type: wanted the event's type, came nothing"


def test_further_attributes_come_from_json():
    data = '{"x": 1.0, "at": {"@time": "1960-01-01T00:00:00Z"}, "deep": {"n": 9007199254740993}}'
    (event,) = read({"ce_data": pa.array([data]), "y": pa.array([2])})
    at = datetime(1960, 1, 1, tzinfo=UTC)
    assert event == Event("t", {"y": 2, "x": 1.0, "at": at, "deep.n": 2**53 + 1})


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("{", "JSON"),
        ("[1]", "a JSON object"),
        ('{"y": 1}', "a column and ce_data"),
        ('{"x": [1]}', "attribute x"),
        ('{"x": 9223372036854775808}', "attribute x"),
        ('{"ce_type": "other"}', "ce_type"),
        ('{"x": {"@time": "2026-01-01T00:00:00"}}', "zone"),
    ],
)
def test_bad_json_attributes_are_the_problem_of_their_row_only(data, problem):
    good, bad = read({"ce_data": pa.array(["{}", data]), "y": pa.array([2, 3])})
    assert good == Event("t", {"y": 2})
    assert isinstance(bad, str)
    assert problem in bad


def test_values_out_of_range_are_the_problem_of_their_row_only():
    far = pa.array([0, 2**62, None], pa.int64()).cast(TIME)
    good, bad, missing = read({"t": far})
    assert isinstance(good, Event)
    assert bad == (
        "attribute t: wanted a time between the years 1 and 9999, "
        "came 4611686018427387904 microseconds since 1970"
    )
    assert missing == Event("t")
    good, bad, missing = read({"ce_time": far})
    assert isinstance(good, Event)
    assert "years 1 and 9999" in bad
    assert missing == Event("t")
    empty, named = read({"ce_type": pa.array(["", "x"])})
    assert "not empty" in empty
    assert named == Event("x")


def test_bytes_that_are_no_text_are_the_problem_of_their_row_only():
    good, bad = read_text('{"type": "é"}', b'{"type": "\xff"}')
    assert good == Event("é")
    assert bad == "column value: wanted UTF-8, came byte 10: invalid start byte"


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "not json",
        "7",
        "[]",
        "{}",
        '{"type": 7}',
        '{"type": ""}',
        '{"type": "t", "time": "yesterday"}',
        '{"type": "t", "time": "2026-01-31T09:30:00"}',
        '{"type": "t", "specversion": "0.3"}',
        '{"type": "t", "data": {"x": 1e400}}',
        '{"type": "t", "data": {"x": NaN}}',
        '{"type": "t", "data": {"x": "\\ud800"}}',
        '{"type": "t", "data": {"x": 18446744073709551616}}',
        '{"type": "t"} {"type": "t"}',
        "[" * 100_000,
        '{"type": "t", "data": ' + '{"a":' * 50 + "1" + "}" * 51,
    ],
)
def test_text_that_is_no_event_says_why(text):
    (problem,) = read_text(text)
    assert isinstance(problem, str)
    assert 0 < len(problem) < 300


def test_a_default_type_stands_in_where_text_has_none():
    texts = ('{"data": {"x": 1}}', '{"type": "mine"}')
    assert read_text(*texts, default_type="t") == [Event("t", {"x": 1}), Event("mine")]


def test_any_event_survives_text(seed):
    found = drawn(events(), 200, seed)
    texts = [json.dumps(event_to(event)) for event in found]
    assert read_text(*texts) == [event_from(event_to(event)) for event in found]


def test_any_event_survives_columns(seed):
    for event in drawn(events(), 200, seed):
        (batch,) = table_of([event]).to_batches()
        assert events_of(batch, Layout(tuple(batch.schema.names), False)) == [event]
