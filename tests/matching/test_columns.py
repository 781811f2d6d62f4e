"""A batch of events as columns says the same as the events do one by one."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import InvalidValue
from driftline.matching.columns import Columns
from driftline.matching.matcher import Matches
from driftline.model.event import ENVELOPE, Event
from driftline.model.value import KIND_OF, Kind, Value, same
from driftline.testing.filters import published

TIME = pa.timestamp("us", tz="UTC")


@given(st.lists(published(), max_size=6))
def test_the_columns_of_events_hold_each_value_once_where_it_belongs(events) -> None:
    columns = Columns.of_events(events)
    assert len(columns) == len(events)
    found: list[dict[str, Value]] = [{} for _ in events]
    for column in columns:
        for at in range(len(events)):
            value = column.value(at)
            if value is not None:
                assert column.attribute not in found[at], "in two columns"
                assert KIND_OF[type(value)] is column.kind
                found[at][column.attribute] = value
    for at, event in enumerate(events):
        assert columns.event(at) is event
        wanted = dict(event.attributes)
        for name in ENVELOPE:
            value = event.envelope(name)
            if value is not None:
                wanted[name] = value
        assert found[at].keys() == wanted.keys()
        for name, value in wanted.items():
            # Integers may be rounded: matchers look at the event again where that matters.
            rounded = float(value) if type(value) is int else value
            assert same(found[at][name], rounded), name


def batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def test_each_arrow_type_keeps_its_values() -> None:
    stamps = [-1, 253_402_300_799_999_999]
    columns = Columns.of_arrow(
        batch(
            s=pa.array(["", "naïve \U0001f600"]),
            large=pa.array(["a\x00b", "c"], pa.large_string()),
            i=pa.array([2**63 - 1, -(2**63)]),
            small=pa.array([-128, 127], pa.int8()),
            unsigned=pa.array([0, 2**32 - 1], pa.uint32()),
            f=pa.array([-0.0, float("inf")]),
            half=pa.array(np.array([0.5, 1.5], np.float16)),
            f32=pa.array([0.1, 1.5], pa.float32()),
            b=pa.array([True, False]),
            t=pa.array(stamps, pa.int64()).cast(TIME),
            seconds=pa.array([5, 6], pa.int64()).cast(pa.timestamp("s", tz="Asia/Tokyo")),
            nano=pa.array([5_000, -6_000], pa.int64()).cast(pa.timestamp("ns", tz="UTC")),
            y=pa.array([b"", b"\x00\xff"]),
        ),
        "t",
    )
    assert columns.event(0) == Event(
        "t",
        {
            **{"s": "", "large": "a\x00b", "i": 2**63 - 1, "small": -128, "unsigned": 0},
            **{"f": -0.0, "half": 0.5, "f32": 0.10000000149011612, "b": True, "y": b""},
            "t": datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            "seconds": datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC),
            "nano": datetime(1970, 1, 1, 0, 0, 0, 5, tzinfo=UTC),
        },
    )
    assert columns.event(1).attributes["i"] == -(2**63)
    assert columns.event(1).attributes["y"] == b"\x00\xff"
    assert columns.event(1).attributes["s"] == "naïve \U0001f600"


def test_nulls_are_missing_and_what_lies_beneath_them_is_not_looked_at() -> None:
    columns = Columns.of_arrow(
        batch(
            x=pa.array([1, None, 3]),
            s=pa.array([None, "b", None]),
            b=pa.array([None, None, True]),
            none=pa.nulls(3),
            nulls=pa.nulls(3, pa.float64()),
        ),
        "t",
    )
    events = [columns.event(at) for at in range(3)]
    assert events == [Event("t", {"x": 1}), Event("t", {"s": "b"}), Event("t", {"x": 3, "b": True})]


def test_slices_and_dictionaries_are_read_where_they_begin() -> None:
    whole = batch(
        x=pa.array([9, 1, None, 3, 9]),
        s=pa.array(["no", "a", None, "ccc", "no"]),
        d=pa.array(["no", "u", "v", None, "no"]).dictionary_encode(),
        b=pa.array([True, True, None, False, True]),
        ce_type=pa.array(["no", "p", "q", "r", "no"]),
        ce_time=pa.array([9, 1, 2, None, 9], pa.int64()).cast(TIME),
    )
    columns = Columns.of_arrow(whole.slice(1, 3))
    assert [columns.event(at) for at in range(len(columns))] == [
        Event("p", {"x": 1, "s": "a", "d": "u", "b": True}, time=1),
        Event("q", {"d": "v"}, time=2),
        Event("r", {"x": 3, "s": "ccc", "b": False}),
    ]


def test_an_empty_batch_has_columns_and_no_events() -> None:
    columns = Columns.of_arrow(batch(x=pa.array([], pa.int64()), s=pa.array([], pa.string())), "t")
    assert len(columns) == 0
    assert [column.kind for column in columns] == [Kind.STRING, Kind.NUMBER, Kind.STRING]
    empty = pa.array([], pa.string()).dictionary_encode()
    assert len(Columns.of_arrow(batch(d=empty), "t")) == 0


def test_a_type_must_come_from_somewhere() -> None:
    with pytest.raises(InvalidValue, match="ce_type"):
        Columns.of_arrow(batch(x=pa.array([1])))


def test_arrays_are_taken_as_they_are() -> None:
    columns = Columns.of_arrays("t", {"x": np.array([1.5, 2.5]), "s": ["a", None]})
    assert columns.event(1) == Event("t", {"x": 2.5})
    with pytest.raises(InvalidValue, match="zone"):
        Columns.of_arrays("t", {"at": pa.array([1], pa.int64()).cast(pa.timestamp("us"))})
    with pytest.raises(InvalidValue, match="column x"):
        Columns.of_arrays("t", {"x": [[1]]})


def test_matches_can_be_read_by_event_and_as_pairs() -> None:
    found = Matches.of([["b"], [], ["a", "b"]], ["a", "b"])
    assert len(found) == 3
    assert [found.ids(at) for at in range(3)] == [["b"], [], ["a", "b"]]
    assert list(found) == [(0, "b"), (2, "a"), (2, "b")]
    assert found.events.tolist() == [0, 2, 2]
