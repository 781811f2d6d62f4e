"""Is a subscription read back from its record as the same?"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline import parse
from driftline.errors import DriftlineError
from driftline.language.records import Record, record_from, record_to
from driftline.model.standing import Standing
from driftline.testing import strategies


@given(strategies.standings(), st.text(max_size=5), st.sampled_from(("", "alice")))
def test_a_record_comes_back_through_json_text(standing, id: str, party: str) -> None:
    try:
        admitted = Standing.of(standing.statement, standing.params, standing.start_us)
    except DriftlineError:
        return  # parameters of kinds that the text rules out
    record = Record(id, admitted, party)
    assert record_from(json.loads(json.dumps(record_to(record))), "default") == record


def test_what_is_left_out_has_its_default() -> None:
    record = record_from({"text": "SELECT *"}, "line 3")
    assert record == Record("line 3", Standing.of(parse("SELECT *")))


def test_a_start_may_be_text_a_tagged_time_or_microseconds() -> None:
    starts = ["1970-01-01T00:00:01Z", {"@time": "1970-01-01T00:00:01Z"}, 1_000_000]
    for start in starts:
        record = record_from({"text": "SELECT *", "start": start}, "1")
        assert record.standing.start_us == 1_000_000


def test_filters_are_taken_in_the_place_of_a_text() -> None:
    record = record_from({"filters": [{"exact": {"id": "7"}}]}, "1")
    assert str(record.standing.statement) == "SELECT * WHERE ce_id = '7'"


@pytest.mark.parametrize(
    "row",
    [
        None,
        [],
        {},
        {"text": "SELECT *", "filters": []},
        {"text": 7},
        {"text": "SELECT * FROM"},
        {"text": "SELECT MIN(x) FROM t"},
        {"text": "SELECT * WHERE moved(x, by => 1)"},
        {"text": "SELECT * THEN SELECT *"},
        {"text": "SELECT *", "colour": "red"},
        {"text": "SELECT *", "params": []},
        {"text": "SELECT *", "params": {"p": 1}},
        {"text": "SELECT * WHERE x < :p"},
        {"text": "SELECT * WHERE x < :p", "params": {"p": [1]}},
        {"text": "SELECT * WHERE x < :p", "params": {"p": {"@float": "NaN"}}},
        {"text": "SELECT * WHERE :p", "params": {"p": 1}},
        {"text": "SELECT *", "id": 7},
        {"text": "SELECT *", "party": 7},
        {"text": "SELECT *", "start": "soon"},
        {"text": "SELECT *", "start": True},
        {"text": "SELECT *", "start": 1.5},
        {"text": "SELECT *", "start": {"@bytes": "AQ=="}},
        {"text": "SELECT *", "start": 2**62},
        {"text": "SELECT *", "start": [1]},
        {"filters": 7},
    ],
    ids=lambda row: repr(row)[:60],
)
def test_a_malformed_record_is_refused(row) -> None:
    with pytest.raises(DriftlineError):
        record_from(row, "1")
