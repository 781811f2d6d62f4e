"""Is an event what was published, unchanged and well formed?"""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pytest
from hypothesis import given

from driftline import Event
from driftline.errors import InvalidValue
from driftline.testing import strategies


@given(strategies.events())
def test_an_event_survives_pickling(event: Event) -> None:
    again = pickle.loads(pickle.dumps(event))
    assert again == event
    assert hash(again) == hash(event)
    assert repr(again) == repr(event)


@given(strategies.events(stamped=False))
def test_stamping_sets_the_entry_and_only_a_missing_time(event: Event) -> None:
    stamped = event.stamped(5)
    assert (stamped.time, stamped.entered) == (5, 5)
    assert stamped.stamped(9).time == 5
    assert stamped.attributes == event.attributes


def test_events_differ_where_their_values_are_not_the_very_same() -> None:
    assert Event("q", {"x": 1}) != Event("q", {"x": 1.0})
    assert Event("q", {"x": 1}) != Event("q", {"x": True})
    assert Event("q", {"x": 0.0}) != Event("q", {"x": -0.0})
    assert Event("q", {"x": float("nan")}) == Event("q", {"x": float("nan")})
    assert Event("q", {"x": 1, "y": 2}) == Event("q", {"y": 2, "x": 1})
    assert Event("q", {"x": None}) == Event("q")


def test_an_event_does_not_change() -> None:
    event = Event("q", {"x": 1})
    with pytest.raises(AttributeError, match="does not change"):
        event.type = "r"
    with pytest.raises(TypeError):
        event.attributes["x"] = 2


def test_the_mapping_given_may_change_without_changing_the_event() -> None:
    given_ = {"x": 1}
    event = Event("q", given_)
    given_["x"] = 2
    assert event.attributes["x"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((("",), {}), "event type"),
        (((7,), {}), "event type"),
        ((("\ud800",), {}), "event type"),
        ((("q", {"": 1}), {}), "attribute name"),
        ((("q", {7: 1}), {}), "attribute name"),
        ((("q", {"\ud800": 1}), {}), "attribute name"),
        ((("q", {"ce_type": "r"}), {}), "attribute ce_type"),
        ((("q", {"x": [1]}), {}), "attribute x"),
        ((("q",), {"time": 1.5}), "event time"),
        ((("q",), {"time": True}), "event time"),
        ((("q",), {"time": 2**62}), "event time"),
        ((("q",), {"time": datetime(2026, 1, 1)}), "event time"),
        ((("q",), {"entered": "now"}), "event entry stamp"),
        ((("q",), {"id": ""}), "event id"),
        ((("q",), {"id": 7}), "event id"),
        ((("q",), {"source": b"x"}), "event source"),
    ],
)
def test_a_malformed_event_is_refused_naming_the_part(arguments, said: str) -> None:
    positional, named = arguments
    with pytest.raises(InvalidValue, match=said):
        Event(*positional, **named)


def test_times_are_microseconds_or_aware_datetimes() -> None:
    assert Event("q", time=datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)).time == 1_000_000
    assert Event("q", time=-1).time == -1
