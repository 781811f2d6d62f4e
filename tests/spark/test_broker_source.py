"""Are offsets of the source for any Spark program all that is to be known of it? Without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import driftline as dl
from driftline.errors import InvalidValue, PipelineFailed
from driftline.model.event import Event
from driftline.spark.broker_source import BrokerReader
from tests.net.processes import Brokers
from tests.processes import until

TEXT = "SELECT * FROM quote"
Offset = dict[str, int]


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    with Brokers(tmp_path_factory.mktemp("broker")) as brokers:
        yield brokers.start("b").address


def reader(address: str, name: str, **more: str) -> BrokerReader:
    return BrokerReader({"address": address, "subscription": name, "text": TEXT, **more})


def publish(address: str, *numbers: int) -> None:
    with dl.connect(address) as client:
        client.publish_many(Event("quote", {"n": n}) for n in numbers)


def next_offset(one: BrokerReader, start: Offset) -> Offset:
    """Where the next batch ends, when there is one; as Spark's log has it."""
    found: list[Offset] = []

    def is_there() -> bool:
        found[:] = [one.latestOffset(dict(start), one.getDefaultReadLimit())]
        return found[0] != start

    until(is_there)
    return json.loads(json.dumps(found[0]))


def rows(one: BrokerReader, start: Offset, end: Offset) -> list[tuple[Any, bool]]:
    """The `n` of each row, and whether it is a gap."""
    found = []
    for share in one.partitions(dict(start), dict(end)):
        for batch in one.read(share):
            for row in batch.to_pylist():
                value = row["value"] and json.loads(row["value"])["data"]["n"]
                found.append((value, row["gap"]))
    return found


def drop(address: str, name: str) -> None:
    with dl.connect(address) as client:
        client.durables.drop(name)


def test_one_that_was_ended_while_it_was_read_is_a_gap_and_goes_on(address):
    one = reader(address, "ended")
    begin = one.initialOffset()
    one.latestOffset(begin, one.getDefaultReadLimit())
    publish(address, 1)
    first = next_offset(one, begin)
    assert rows(one, begin, first) == [(1, False)]
    drop(address, "ended")
    gap = next_offset(one, first)
    assert gap["number"] == first["number"]
    assert rows(one, first, gap) == rows(one, first, gap) == [(None, True)]

    def is_there() -> bool:
        one.latestOffset(gap, one.getDefaultReadLimit())
        with dl.connect(address) as client:
            return "ended" in [each.name for each in client.durables.all()]

    until(is_there)
    publish(address, 2)
    last = next_offset(one, gap)
    assert [n for n, _ in rows(one, gap, last)] == [2]
    one.commit(last)
    one.stop()


def test_a_gap_is_told_by_whoever_comes_next_if_who_planned_it_dies(address):
    one = reader(address, "dies")
    begin = one.initialOffset()
    one.latestOffset(begin, one.getDefaultReadLimit())
    publish(address, 1)
    first = next_offset(one, begin)
    one.stop()
    drop(address, "dies")
    for _ in range(2):
        # It dies before the log has it; so it is not made again either.
        one = reader(address, "dies")
        gap = next_offset(one, first)
        one.stop()
    one = reader(address, "dies")
    assert rows(one, first, gap) == [(None, True)], "also by one that has done nothing else"
    one.stop()


def test_a_batch_that_was_planned_and_is_lost_is_an_error_at_once(address):
    one = reader(address, "planned")
    begin = one.initialOffset()
    one.latestOffset(begin, one.getDefaultReadLimit())
    publish(address, 1)
    first = next_offset(one, begin)
    one.stop()
    drop(address, "planned")
    one = reader(address, "planned")
    with pytest.raises(PipelineFailed, match="has nothing up to number"):
        one.partitions(begin, first)
    one.stop()


def test_one_that_another_has_taken_over_is_an_error(address):
    one = reader(address, "taken")
    begin = one.initialOffset()
    one.latestOffset(begin, one.getDefaultReadLimit())
    with dl.connect(address) as other:
        other.subscribe(TEXT, durable="taken")
        with pytest.raises(PipelineFailed, match="another connection has it"):
            next_offset(one, begin)
    one.stop()


@pytest.mark.parametrize("limit", ["0", "-1", "many", "", "1.5", "1_000", " 5", "9" * 30])
def test_a_limit_that_is_none_is_refused(limit):
    with pytest.raises(InvalidValue, match="limit: wanted a whole number, 1 or more"):
        reader("driftline://127.0.0.1:1", "limit", limit=limit)


@pytest.mark.parametrize(
    "wrong", [{"address": "http://b"}, {"subscription": "a#b"}, {"subscription": ""}]
)
def test_what_cannot_be_reached_or_named_is_refused_when_it_is_said(wrong):
    said = {"address": "driftline://127.0.0.1:1", "subscription": "s", "text": TEXT, **wrong}
    with pytest.raises(InvalidValue):
        BrokerReader(said)


def test_the_limit_is_read_however_its_name_is_written(address):
    assert reader(address, "limit", LIMIT="7").getDefaultReadLimit().max_rows == 7
