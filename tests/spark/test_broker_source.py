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
from driftline.spark.taking import Taken
from tests.net.cutting import Cutting
from tests.net.processes import Brokers
from tests.processes import until

TEXT = "SELECT * FROM quote"
Offset = dict[str, Any]


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


def begun(one: BrokerReader) -> Offset:
    """Where it begins, once it is there: nothing was published before."""
    return json.loads(json.dumps(one.latestOffset(one.initialOffset(), one.getDefaultReadLimit())))


def drop(address: str, name: str) -> None:
    with dl.connect(address) as client:
        client.durables.drop(name)


def test_one_that_was_ended_while_it_was_read_is_a_gap_and_goes_on(address):
    one = reader(address, "ended")
    begin = begun(one)
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
    assert rows(one, gap, last) == [(2, False)], "its gap was told"
    one.commit(last)
    one.stop()


def test_a_gap_is_told_by_whoever_comes_next_if_who_planned_it_dies(address):
    one = reader(address, "dies")
    begin = begun(one)
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


def make_again(address: str, name: str) -> None:
    """What is kept for it goes, and it is there under its name."""
    with dl.connect(address) as client:
        client.durables.drop(name)
        client.durables.keep(name, TEXT)


def test_one_that_was_ended_and_made_again_while_nobody_read_is_a_gap_and_is_told_once(address):
    one = reader(address, "again")
    begin = begun(one)
    publish(address, 1)
    first = next_offset(one, begin)
    one.commit(first)
    one.stop()
    publish(address, 2)
    make_again(address, "again")
    publish(address, 3)
    gaps = []
    for _ in range(2):
        # It dies before the log has it.
        one = reader(address, "again")
        gaps.append(next_offset(one, first))
        one.stop()
    gap = gaps[0]
    assert gaps[1] == gap
    assert gap["number"] == first["number"]
    one = reader(address, "again")
    assert rows(one, first, gap) == [(None, True)], "also by one that has done nothing else"
    one.stop()
    one = reader(address, "again")
    last = next_offset(one, gap)
    assert rows(one, first, gap) == [(None, True)]
    assert rows(one, gap, last) == [(3, False)]
    one.stop()
    one = reader(address, "again")
    assert rows(one, gap, last) == [(3, False)], "the same by whoever repeats it"
    one.commit(last)
    publish(address, 4)
    assert rows(one, last, next_offset(one, last)) == [(4, False)]
    one.stop()


def test_one_to_which_nothing_had_come_is_known_too(address):
    one = reader(address, "quiet")
    begin = begun(one)
    one.stop()
    publish(address, 1)
    make_again(address, "quiet")
    one = reader(address, "quiet")
    gap = next_offset(one, begin)
    assert rows(one, begin, gap) == [(None, True)]
    publish(address, 2)
    last = next_offset(one, gap)
    assert rows(one, gap, last) == [(2, False)]
    drop(address, "quiet")
    lost = next_offset(one, last)
    one.stop()
    one = reader(address, "quiet")
    assert one.latestOffset(dict(lost), one.getDefaultReadLimit()) == lost, "it is told already"
    publish(address, 3)
    assert rows(one, lost, next_offset(one, lost)) == [(3, False)], "behind its gap, that is all"
    one.stop()


@pytest.mark.parametrize("in_the_middle", [False, True])
def test_one_that_was_made_again_while_the_connection_was_lost_is_the_same_when_repeated(
    address, in_the_middle, monkeypatch
):
    name = f"cut-{in_the_middle}"
    with Cutting(int(address.rpartition(":")[2])) as line:
        one = reader(f"driftline://127.0.0.1:{line.port}", name)
        begin = begun(one)
        publish(address, 1)
        first = next_offset(one, begin)
        line.is_open = False
        line.cut_after(1)
        publish(address, 2)
        assert line.cut.wait(30)
        make_again(address, name)
        publish(address, 3)
        taking = one._taking
        assert taking is not None
        take = taking.take

        def take_when_it_is_another(most: int) -> list[Taken]:
            line.is_open = True
            until(lambda: taking.mark != first["mark"])
            return take(most)

        if in_the_middle:
            monkeypatch.setattr(taking, "take", take_when_it_is_another)
        line.is_open = not in_the_middle
        gap = next_offset(one, first)
        last = next_offset(one, gap)
        told = rows(one, first, gap), rows(one, gap, last)
        with pytest.raises(PipelineFailed, match="has nothing up to number"):
            one.partitions(begin, first)
        one.stop()
    one = reader(address, name)
    assert told == (rows(one, first, gap), rows(one, gap, last)) == ([(None, True)], [(3, False)])
    one.stop()


def test_a_broker_that_begins_again_with_its_journal_has_lost_nothing(tmp_path):
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b")
        one = reader(broker.address, "same")
        begin = begun(one)
        publish(broker.address, 1)
        first = next_offset(one, begin)
        one.stop()
        broker.kill()
        broker.restart()
        one = reader(broker.address, "same")
        publish(broker.address, 2)
        assert rows(one, first, next_offset(one, first)) == [(2, False)]
        one.stop()


def test_offsets_that_have_no_mark_are_read_and_are_no_gap(address):
    one = reader(address, "old")
    begin = begun(one)
    publish(address, 1)
    first = {"number": next_offset(one, begin)["number"]}
    assert rows(one, {"number": 0}, first) == [(1, False)]
    one.stop()
    make_again(address, "old")
    one = reader(address, "old")
    marked = next_offset(one, first)
    assert marked == {**first, "mark": marked["mark"]}
    assert rows(one, first, marked) == [], "nobody knows which it was"
    publish(address, 2)
    assert rows(one, marked, next_offset(one, marked)) == [(2, False)]
    one.stop()
    make_again(address, "old")
    one = reader(address, "old")
    assert rows(one, marked, next_offset(one, marked)) == [(None, True)], "from then on it is known"
    one.stop()


def test_numbers_of_one_that_was_made_again_are_behind_all_others_or_it_is_an_error(address):
    one = reader(address, "clock")
    begin = {"number": 1 << 62, "mark": "another"}
    begun(one)
    gap = next_offset(one, begin)
    one.commit(gap)
    publish(address, 1)
    with pytest.raises(PipelineFailed, match="its clock was set back"):
        next_offset(one, gap)
    one.stop()


@pytest.mark.parametrize("numbers", [(), (2,)])
def test_a_batch_that_was_planned_and_whose_subscription_is_another_by_now_is_an_error_at_once(
    address, numbers
):
    name = f"other-{len(numbers)}"
    one = reader(address, name)
    begin = begun(one)
    publish(address, 1)
    first = next_offset(one, begin)
    one.stop()
    make_again(address, name)
    publish(address, *numbers)
    one = reader(address, name)
    with pytest.raises(PipelineFailed, match="was it ended and made again"):
        one.partitions(begin, first)
    one.stop()


def test_a_batch_that_was_planned_and_is_lost_is_an_error_at_once(address):
    one = reader(address, "planned")
    begin = begun(one)
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
    begin = begun(one)
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
