"""Do CloudEvents come in and go out whole, and do their filters mean what the standard says?"""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from driftline import Event, parse
from driftline.errors import DriftlineError, InvalidValue, LanguageError, LimitExceeded
from driftline.language.cloudevents import (
    condition_from,
    event_from,
    event_to,
    value_from,
    value_to,
)
from driftline.model.event import ENVELOPE
from driftline.model.subscription import Subscription
from driftline.model.value import same
from driftline.testing import strategies

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
odd_names = names | st.sampled_from(
    ("a.b", ".", "@time", "@bytes", "data", "type", "ce_", "ce_data", "ce_subject", "ce_ce_type")
)


@given(strategies.events())
def test_an_event_comes_back_from_its_envelope(event: Event) -> None:
    assert event_from(event_to(event)) == event


@given(st.dictionaries(odd_names, strategies.values(), max_size=4))
@example({"@time": 5})
@example({"@float": "NaN"})
@example({"ce_specversion": "2"})
def test_an_event_comes_back_through_json_text_whatever_its_names(attributes) -> None:
    if set(ENVELOPE) & attributes.keys():
        return  # the envelope's own names are refused by the event itself
    event = Event("quote", attributes)
    text = json.dumps(event_to(event), allow_nan=False)
    assert event_from(json.loads(text)) == event


@given(strategies.values())
def test_a_value_comes_back_through_json_text(value) -> None:
    assert same(value_from(json.loads(json.dumps(value_to(value), allow_nan=False)), "x"), value)


def test_nested_data_is_flattened_with_dots() -> None:
    event = event_from({"type": "q", "data": {"a": {"b": {"c": 1}, "d": None}, "e": 2}})
    assert event == Event("q", {"a.b.c": 1, "e": 2})


def test_extension_attributes_are_kept_under_a_prefix() -> None:
    event = event_from({"type": "q", "subject": "s", "partition": 7, "data": {"x": 1}})
    assert event == Event("q", {"ce_subject": "s", "ce_partition": 7, "x": 1})
    assert event_to(event)["subject"] == "s"


def test_a_trace_belongs_to_the_envelope_and_comes_back() -> None:
    said = {"traceparent": TRACE, "tracestate": "vendor=7"}
    event = event_from({"type": "q", **said, "data": {"x": 1}})
    assert event == Event("q", {"x": 1}, trace=f"{TRACE} vendor=7")
    assert said.items() <= event_to(event).items()
    assert event_from(event_to(event)) == event
    assert event_from({"type": "q", "x": 1, "traceparent": TRACE}).trace == TRACE


@pytest.mark.parametrize("said", ["00", 7, None, TRACE.upper(), TRACE + "0", "ff" + TRACE[2:]])
def test_what_is_no_trace_is_left_out(said: object) -> None:
    event = event_from({"type": "q", "traceparent": said, "tracestate": "a=1", "data": {"x": 1}})
    assert event == Event("q", {"x": 1})


def test_binary_and_plain_data_become_the_attribute_data() -> None:
    assert event_from({"type": "q", "data_base64": "AQI="}).attributes == {"data": b"\x01\x02"}
    assert event_from({"type": "q", "data": "text"}).attributes == {"data": "text"}


MALFORMED = [
    None,
    7,
    "text",
    [],
    {},
    {"type": ""},
    {"type": 7},
    {"type": None},
    {"type": "q", "specversion": "0.3"},
    {"type": "q", "specversion": 1.0},
    {"type": "q", "id": 7},
    {"type": "q", "id": ""},
    {"type": "q", "source": []},
    {"type": "q", "time": "yesterday"},
    {"type": "q", "time": 5},
    {"type": "q", "time": "2026-01-01T00:00:00"},
    {"type": "q", "time": "0001-01-01T00:00:00+02:00"},
    {"type": "q", "data": [1]},
    {"type": "q", "data": {"x": [1]}},
    {"type": "q", "data": {"x": 2**63}},
    {"type": "q", "data": {"x": {"@time": 5}}},
    {"type": "q", "data": {"x": {"@time": None}}},
    {"type": "q", "data": {"x": {"@bytes": "é"}}},
    {"type": "q", "data": {"x": {"@bytes": "A"}}},
    {"type": "q", "data": {"x": {"@float": "nan"}}},
    {"type": "q", "data": {"x": {"@float": [1]}}},
    {"type": "q", "data": {"x": {"@what": 1}}},
    {"type": "q", "data": {"x": {1: 2, 3: [4]}}},
    {"type": "q", "data": {"x": {1: [2]}}},
    {"type": "q", "data": {"": 1}},
    {"type": "q", "data": {"\ud800": 1}},
    {"type": "q", "data": {"x": "\ud800"}},
    {"type": "q", "data": {"ce_type": "r"}},
    {"type": "q", "data": {"a": {"b": 1}, "a.b": 2}},
    {"type": "q", "data": {"ce_subject": 1}, "subject": 2},
    {"type": "q", "data_base64": 7},
    {"type": "q", "data_base64": "?"},
    {"type": "q", "extension": [1]},
    {"type": "q", "data": {}, "extension": {"a": 1}},
]


@pytest.mark.parametrize("envelope", MALFORMED, ids=lambda envelope: repr(envelope)[:60])
def test_a_malformed_envelope_is_refused(envelope) -> None:
    with pytest.raises(InvalidValue):
        event_from(envelope)


def test_names_that_are_longer_than_what_says_them_are_refused() -> None:
    """An object's name is one more time in that of everything that is in it."""
    with pytest.raises(InvalidValue, match="names of at most"):
        event_from({"type": "x", "data": {"a" * 10_000: dict.fromkeys(map(str, range(1_000)), 1)}})
    with pytest.raises(InvalidValue, match="at most 65535 attributes"):
        event_from({"type": "x", "data": dict.fromkeys(map(str, range(65_536)), 1)})


def test_data_nested_too_deep_is_refused() -> None:
    data: dict[str, object] = {"x": 1}
    for _ in range(10_000):
        data = {"x": data}
    with pytest.raises(InvalidValue, match="deep"):
        event_from({"type": "q", "data": data})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=5)
            | st.sampled_from(("type", "data", "time", "@time", "@bytes", "id")),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(json_values)
def test_any_json_is_an_event_or_refused(value) -> None:
    try:
        event = event_from(value)
    except DriftlineError:
        return
    assert event_from(event_to(event)) == event


@given(json_values | st.lists(json_values))
def test_any_json_is_a_list_of_filters_or_refused(value) -> None:
    try:
        condition = condition_from(value)
    except DriftlineError:
        return
    wanted = Subscription(where=condition)
    assert parse(str(wanted)) == wanted


EVENT = Event("com.example.quote", {"ce_subject": "a%b", "x": 1}, id="7")
FILTERS = [
    ([], True),
    ([{"exact": {"type": "com.example.quote"}}], True),
    ([{"exact": {"type": "com.example.quote", "id": "8"}}], False),
    ([{"prefix": {"type": "com."}}, {"suffix": {"type": "quote"}}], True),
    ([{"prefix": {"subject": "a%"}}], True),
    ([{"prefix": {"subject": "a_"}}], False),
    ([{"exact": {"source": "x"}}], False),
    ([{"not": {"exact": {"source": "x"}}}], True),
    ([{"not": {"not": {"exact": {"source": "x"}}}}], False),
    ([{"not": {"any": [{"exact": {"source": "x"}}, {"exact": {"id": "7"}}]}}], False),
    ([{"not": {"all": [{"exact": {"source": "x"}}, {"exact": {"id": "7"}}]}}], True),
    ([{"not": {"all": [{"prefix": {"id": "7"}}, {"suffix": {"id": "7"}}]}}], False),
    ([{"any": [{"exact": {"source": "x"}}, {"exact": {"id": "7"}}]}], True),
    ([{"all": [{"exact": {"id": "7"}}]}], True),
    ([{"sql": "type LIKE 'com.%' AND id = '7'"}], True),
    ([{"sql": "source = 'x'"}], False),
    ([{"not": {"sql": "source = 'x'"}}], True),
    ([{"not": {"sql": "NOT source = 'x'"}}], True),
    ([{"sql": "source IS NULL"}], True),
    ([{"sql": "CASE WHEN subject IS NULL THEN FALSE ELSE id IN ('7', '8') END"}], True),
]


@pytest.mark.parametrize(("filters", "answer"), FILTERS, ids=lambda value: repr(value)[:60])
def test_filters_mean_what_the_standard_says(filters, answer: bool) -> None:
    assert Subscription(where=condition_from(filters)).matches(EVENT) is answer


@pytest.mark.parametrize(
    "filters",
    [
        None,
        {},
        "sql",
        [7],
        [{}],
        [{"exact": {}, "prefix": {}}],
        [{"exact": {}}],
        [{"exact": {"id": 7}}],
        [{"exact": {"id": ""}}],
        [{"exact": {"": "x"}}],
        [{"exact": []}],
        [{"all": []}],
        [{"any": {}}],
        [{"not": []}],
        [{"not": [{"exact": {"id": "7"}}]}],
        [{"sql": 7}],
        [{"sql": ""}],
        [{"sql": "id = '7' LIMIT 1"}],
        [{"sql": "id = '7'; DROP TABLE x"}],
        [{"sql": "moved(x, by => 1)"}],
        [{"sql": "x = 1 THEN SELECT *"}],
        [{"cesql": "id = '7'"}],
        [{7: {}}],
    ],
    ids=repr,
)
def test_malformed_filters_are_refused(filters) -> None:
    with pytest.raises(LanguageError):
        condition_from(filters)


def test_filters_nested_too_deep_are_refused() -> None:
    one: dict[str, object] = {"exact": {"id": "7"}}
    for _ in range(10_000):
        one = {"not": one}
    with pytest.raises(LanguageError, match="deep"):
        condition_from([one])


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ([{"exact": {"type": "a"}}] * 4_097, "4096 filters"),
        ([{"any": [{"not": {"sql": "a"}}] * 4_097}], "4096 filters"),
        ([{"exact": dict.fromkeys(map(str, range(4_097)), "a")}], "4096 filters"),
        ([{"sql": "a = 1 OR " * 100 + "a"}] * 100, "65536 characters"),
    ],
)
def test_more_filters_than_a_text_can_say_are_refused(filters, wanted) -> None:
    with pytest.raises(LimitExceeded, match=wanted):
        condition_from(filters)


def test_what_json_cannot_say_is_tagged() -> None:
    assert value_to(math.nan) == {"@float": "NaN"}
    assert value_to(b"\x01") == {"@bytes": "AQ=="}
    assert same(value_from({"@float": "-Infinity"}, "x"), -math.inf)


def test_below_not_a_value_that_is_no_boolean_is_an_error_and_so_false() -> None:
    condition = condition_from([{"not": {"sql": "type"}}])
    assert Subscription(where=condition).matches(Event("quote"))
    assert parse(str(Subscription(where=condition))) == Subscription(where=condition)


def test_a_publication_time_is_kept_to_the_microsecond_and_an_attribute_must_fit() -> None:
    assert event_from({"type": "q", "time": "1970-01-01T00:00:00.0000019Z"}).time == 1
    with pytest.raises(InvalidValue, match="a time with a zone"):
        event_from({"type": "q", "data": {"x": {"@time": "1970-01-01T00:00:00.0000019Z"}}})


@pytest.mark.parametrize(
    "written",
    [
        {"type": "quote", "firm": "IBM", "price": 9.5, "time": "1970-01-01T00:00:01Z"},
        {
            "type": "quote",
            "attributes": {"firm": "IBM", "price": 9.5},
            "time": "1970-01-01T00:00:01Z",
        },
        {"type": "quote", "data": {"firm": "IBM", "price": 9.5}, "time": "1970-01-01T00:00:01Z"},
    ],
)
def test_an_event_may_be_written_by_hand(written) -> None:
    assert event_from(written) == Event("quote", {"firm": "IBM", "price": 9.5}, time=1_000_000)


def test_beside_data_or_specversion_other_names_are_extensions() -> None:
    assert event_from({"type": "q", "data": {}, "hue": 3}) == Event("q", {"ce_hue": 3})
    assert event_from({"specversion": "1.0", "type": "q", "hue": 3}) == Event("q", {"ce_hue": 3})
    by_hand = event_from({"type": "q", "attributes": {"a": 1}, "b": 2})
    assert by_hand == Event("q", {"attributes.a": 1, "b": 2})


def test_nothing_of_an_envelope_is_lost() -> None:
    for envelope in (
        {"type": "q", "data": {"x": {}}},
        {"type": "q", "data": {"x": 1}, "data_base64": "QQ=="},
    ):
        with pytest.raises(InvalidValue):
            event_from(envelope)
    told = event_from({"type": "q", "data": {}, "datacontenttype": "text/plain"})
    assert told.attributes == {"ce_datacontenttype": "text/plain"}
    assert event_from(event_to(told)) == told
    assert event_from({"type": "q", "data": {}, "datacontenttype": "application/json"}) == Event(
        "q"
    )


def test_a_refused_sql_filter_is_placed_in_its_own_text() -> None:
    with pytest.raises(LanguageError) as refusal:
        condition_from([{"sql": "x = foo(1)"}])
    assert (refusal.value.line, refusal.value.column) == (1, 5)


def test_only_what_has_an_id_and_a_source_says_that_it_is_a_cloud_event() -> None:
    assert event_to(Event("q", {"x": 1}, id="7", source="/s"))["specversion"] == "1.0"
    for event in (Event("q", {"x": 1}), Event("q", {"x": 1}, id="7"), Event("q", source="/s")):
        said = event_to(event)
        assert "specversion" not in said
        assert event_from(said) == event


@pytest.mark.parametrize("media", ["application/json", "application/json; charset=utf-8"])
def test_that_data_is_json_need_not_be_said(media: str) -> None:
    said = {"specversion": "1.0", "type": "q", "datacontenttype": media, "data": {"x": 1}}
    assert event_from(said) == Event("q", {"x": 1})
