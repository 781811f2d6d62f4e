"""The real prices are all there, in order."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from driftline.errors import PipelineFailed
from driftline.model.value import microseconds_of
from driftline.workload import prices
from driftline.workload.prices import SYMBOLS, quotes


def test_every_row_is_an_event_of_its_own():
    found = quotes()
    assert len(found) == len({event.id for event in found}) == 12_154
    counts = Counter(event.attributes["symbol"] for event in found)
    assert counts == {"AAPL": 3270, "FB": 196, "GOOG": 2148, "IBM": 3270, "MSFT": 3270}
    assert sorted(counts) == sorted(SYMBOLS)
    assert {event.type for event in found} == {"quote"}


def test_events_are_in_order_of_time_and_then_of_symbol():
    keys = [(event.time, event.attributes["symbol"]) for event in quotes()]
    assert keys == sorted(keys)


def test_a_quote_says_what_its_row_says():
    (event,) = (event for event in quotes() if event.id == "AAPL/2010-01-04")
    assert event.attributes["day"] == datetime(2010, 1, 4, tzinfo=UTC)
    assert event.attributes["price"] == event.attributes["close"]
    assert event.attributes["low"] <= event.attributes["open"] <= event.attributes["high"]
    assert type(event.attributes["volume"]) is int
    assert event.source == "bokeh_sampledata"
    # New York closes at 21 o'clock UTC in winter, at 20 in summer.
    assert event.time == microseconds_of(datetime(2010, 1, 4, 21, tzinfo=UTC))


def test_a_missing_package_is_named_with_what_to_do(monkeypatch):
    monkeypatch.setattr(prices, "find_spec", lambda name: None)
    with pytest.raises(PipelineFailed, match=r"pip install 'driftline\[data\]'"):
        quotes()
