"""Is what committed files tell published once, under names that stay? Without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import driftline as dl
from driftline.errors import Unreachable
from driftline.model.event import Event
from driftline.model.notification import Notification, NotificationKind
from driftline.recorded.config import EventsConfig, OutConfig, OutputConfig, PipelineConfig
from driftline.recorded.told import Row, table_of
from driftline.spark import telling
from driftline.spark.manifest import MATCHED, TOLD, Manifest
from driftline.spark.pieces import piece_of
from driftline.spark.status import _published
from driftline.spark.tables import write_tables
from driftline.spark.telling import Published, Telling, pass_over, published
from tests.net.processes import BrokerProcess, Brokers

TIME = 1_700_000_000_000_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory) -> Iterator[BrokerProcess]:
    with Brokers(tmp_path_factory.mktemp("broker")) as brokers:
        yield brokers.start("b")


def pipeline(root: Path, broker: BrokerProcess, type: str) -> PipelineConfig:
    out = OutConfig(str(root / "out"), broker=OutputConfig(broker.address, type))
    return PipelineConfig(EventsConfig(str(root / "events")), out)


def matched(config: PipelineConfig, batch: int, seqs: range, *, numbered: bool) -> Manifest:
    """Two files of events that satisfied filters; ids are texts, or numbers of texts.

    The type that is published is also the id of the pipeline: all are at one broker.
    """
    assert config.out.broker is not None
    files = []
    for part in (seqs[::2], seqs[1::2]):
        ids = pa.array([["a", f"s{seq}"] for seq in part], pa.list_(pa.string()))
        if numbered:
            texts = ids.flatten().dictionary_encode()
            ids = pa.ListArray.from_arrays(ids.offsets, texts)
        rows = pa.RecordBatch.from_pydict(
            {
                "seq": pa.array(part, pa.int64()),
                "ce_type": ["quote"] * len(part),
                "ce_id": [f"e{seq}" for seq in part],
                "ce_time": pa.array([TIME + seq for seq in part], pa.timestamp("us", "UTC")),
                "price": [seq / 2 for seq in part],
                "symbol": [None if seq % 3 else "IBM" for seq in part],
                "subscriptions": ids,
            }
        )
        files += write_tables([piece_of(MATCHED, part[0], rows)], config.out.path, "match")
    return Manifest("match", batch, config.out.broker.type, seqs[0], seqs[-1] + 1, tuple(files))


def told(config: PipelineConfig) -> Manifest:
    assert config.out.broker is not None
    changed = Notification(
        NotificationKind.CHANGE, {"price": 2.5, "at": datetime(2026, 1, 1, tzinfo=UTC)}, TIME, 3
    )
    gone = Notification(NotificationKind.LEAVE, {}, TIME, 0, old={"price": 2.5}, key="IBM")
    rows = table_of([Row(4, 0, ("v",), changed), Row(4, 1, ("v",), gone)])
    files = write_tables([piece_of(TOLD, 4, rows)], config.out.path, "reformulate")
    return Manifest("reformulate", 0, config.out.broker.type, 0, 9, tuple(files))


class Read:
    """What somebody is told who asks for all of a type."""

    def __init__(self, broker: BrokerProcess, type: str) -> None:
        self._client = dl.connect(broker.address)
        self._type = type
        self._there = self._client.__enter__()
        self._told = self._there.subscribe(f'SELECT * FROM "{type}"')

    def all(self) -> list[Event]:
        self._there.publish(Event(self._type, {"end": True}))
        found: list[Event] = []
        for one in self._told:
            assert one.event is not None
            if "end" in one.event.attributes:
                break
            found.append(one.event)
        self._client.__exit__(None, None, None)
        return found


@pytest.mark.parametrize("numbered", [True, False])
def test_events_are_published_whole_in_order_and_once_wherever_it_was_left(
    tmp_path, broker, numbered, monkeypatch
):
    type = f"matched{numbered}"
    config = pipeline(tmp_path, broker, type)
    read = Read(broker, type)
    batches = [matched(config, 0, range(20), numbered=numbered)]
    batches.append(matched(config, 1, range(20, 31), numbered=numbered))
    monkeypatch.setattr(telling, "PIECE", 7)
    publish = Telling._publish
    for last in (0, 2, 3, 100):
        # It comes a little further each time, and dies with a piece that is published by half.
        count = iter(range(1000))

        def dying(self, some, last=last, count=count):
            at = next(count)
            publish(self, some if at < last else some[: len(some) // 2])
            if at >= last:
                raise KeyboardInterrupt

        monkeypatch.setattr(Telling, "_publish", dying)
        one = Telling(config)
        try:
            one.deliver(batches)
        except KeyboardInterrupt:
            assert last < 100
        finally:
            one.close()
    assert published(config) == {"match": Published(2, 0, 62)}
    assert _published(config, batches).lag == 0
    found = read.all()
    wanted = [(f"match/{seq}/0/{id}", seq) for seq in range(31) for id in ("a", f"s{seq}")]
    assert [(event.id, event.attributes["told_seq"]) for event in found] == wanted
    assert {event.source for event in found} == {f"urn:driftline:pipeline:{type}"}
    assert found[13].attributes == {
        "price": 3.0,
        "symbol": "IBM",
        "told_kind": "event",
        "told_type": "quote",
        "told_id": "e6",
        "told_to": "s6",
        "told_seq": 6,
    }
    assert found[13].time == TIME + 6


def test_what_needed_memory_is_published_as_values(tmp_path, broker):
    config = pipeline(tmp_path, broker, "told")
    read = Read(broker, "told")
    one = Telling(config)
    assert one.deliver([told(config)]) == 2
    assert one.deliver([told(config)]) == 0
    one.close()
    first, second = read.all()
    assert (first.id, second.id) == ("reformulate/4/0/v", "reformulate/4/1/v")
    assert first.attributes == {
        "price": 2.5,
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "told_kind": "change",
        "told_epoch": 3,
        "told_last": False,
        "told_to": "v",
        "told_seq": 4,
    }
    assert second.attributes["told_old"] == '{"price":2.5}'
    assert second.attributes["told_key"] == '"IBM"'


def test_what_was_told_before_can_be_passed_over(tmp_path, broker):
    config = pipeline(tmp_path, broker, "passed")
    read = Read(broker, "passed")
    first = matched(config, 0, range(4), numbered=False)
    pass_over(config, [first])
    second = matched(config, 1, range(4, 6), numbered=False)
    one = Telling(config)
    assert one.deliver([second, first]) == 4
    one.close()
    assert [event.attributes["told_seq"] for event in read.all()] == [4, 4, 5, 5]


def test_a_broker_that_does_not_acknowledge_is_told_again_later(tmp_path, broker, monkeypatch):
    config = pipeline(tmp_path, broker, "late")
    read = Read(broker, "late")
    batch = matched(config, 0, range(4), numbered=False)
    one = Telling(config)
    one._publish([])
    monkeypatch.setattr(telling, "_WITHIN", 0.3)
    broker.pause()
    with pytest.raises(Unreachable, match="has not acknowledged"):
        one.deliver([batch])
    broker.resume()
    monkeypatch.setattr(telling, "_WITHIN", 20.0)
    assert one.deliver([batch]) == 8
    one.close()
    assert len(read.all()) == 8
