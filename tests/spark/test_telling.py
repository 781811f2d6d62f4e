"""Is what committed files tell published once, under names that stay? Without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

import driftline as dl
from driftline.errors import Unreachable
from driftline.language.cloudevents import event_from
from driftline.model.event import Event
from driftline.model.notification import Notification, NotificationKind
from driftline.recorded.config import (
    ChangesConfig,
    EventsConfig,
    OutConfig,
    OutputConfig,
    PipelineConfig,
)
from driftline.recorded.pages import Pages
from driftline.recorded.recorder import Recorder
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
            refused = publish(self, some if at < last else some[: len(some) // 2])
            if at >= last:
                raise KeyboardInterrupt
            return refused

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


def test_what_the_broker_refuses_for_good_is_set_aside_and_holds_nothing_up(tmp_path, caplog):
    """What is too large for it, and what can be no event at all."""
    with Brokers(tmp_path) as brokers:
        small = brokers.start("small", limits={"frame_bytes": 1 << 16})
        config = pipeline(tmp_path, small, "refused")
        read = Read(small, "refused")
        rows = [
            Row(seq, 0, ("v",), Notification(NotificationKind.CHANGE, {"text": text}, TIME))
            for seq, text in enumerate(["before", "large" * 20_000, "between", "behind"])
        ]
        nameless = Notification(NotificationKind.CHANGE, {"": 1}, TIME)
        rows.insert(3, Row(2, 1, ("v",), nameless))
        files = write_tables([piece_of(TOLD, 0, table_of(rows))], config.out.path, "reformulate")
        batch = Manifest("reformulate", 0, "refused", 0, 4, tuple(files))
        config.checkpoint.mkdir(parents=True, exist_ok=True)
        for _ in range(2):
            one = Telling(config)
            one.deliver([batch])
            one.close()
        found = [event.attributes["text"] for event in read.all()]
    assert found == ["before", "between", "behind"]
    status = _published(config, [batch])
    assert (status.notifications, status.refused, status.lag) == (3, 2, 0)
    lines = (config.checkpoint / "unpublished.jsonl").read_bytes().splitlines()
    letters = {one["id"]: one for one in map(msgspec.json.decode, lines)}
    assert len(lines) == len(letters) == 2
    large = letters["reformulate/1/0/v"]
    assert "at most" in large["why"]
    assert event_from(large["event"]).attributes["told_to"] == "v"
    assert letters["reformulate/2/1/v"]["event"]["data"]["told_seq"] == 2
    assert "unpublished.jsonl" in caplog.text


def test_attributes_of_others_are_not_taken_for_what_the_pipeline_says(tmp_path, broker):
    config = pipeline(tmp_path, broker, "forged")
    read = Read(broker, "forged")
    rows = pa.RecordBatch.from_pydict(
        {
            "seq": pa.array([0], pa.int64()),
            "ce_type": ["quote"],
            "told_id": ["of another"],
            "told_old": ['{"price": 1}'],
            "told_to": ["another"],
            "_told_to": ["a third"],
            "_price": [1.5],
            "subscriptions": pa.array([["a"]], pa.list_(pa.string())),
        }
    )
    files = write_tables([piece_of(MATCHED, 0, rows)], config.out.path, "match")
    changed = Notification(NotificationKind.CHANGE, {"told_key": "forged"}, TIME)
    table = table_of([Row(1, 0, ("v",), changed)])
    files += write_tables([piece_of(TOLD, 1, table)], config.out.path, "match")
    one = Telling(config)
    one.deliver([Manifest("match", 0, "forged", 0, 2, tuple(files))])
    one.close()
    first, second = read.all()
    assert first.attributes == {
        "_told_id": "of another",
        "_told_old": '{"price": 1}',
        "_told_to": "another",
        "__told_to": "a third",
        "_price": 1.5,
        "told_kind": "event",
        "told_type": "quote",
        "told_to": "a",
        "told_seq": 0,
    }
    assert second.attributes["_told_key"] == "forged"
    assert "told_key" not in second.attributes


def test_who_selects_columns_is_told_these_by_the_text_of_the_time(tmp_path, broker):
    config = pipeline(tmp_path, broker, "columns")
    read = Read(broker, "columns")
    events = Path(config.events.path)
    changes = tmp_path / "changes"
    config = msgspec.structs.replace(config, changes=ChangesConfig(str(changes)))
    for folder in (events, changes):
        folder.mkdir()
    some = "SELECT symbol, price * :by AS dear, env('mood') AS mood, ce_id FROM quote"
    said = [
        {"id": "a", "text": some, "params": {"by": 2}},
        {"id": "b", "text": "SELECT * FROM quote"},
    ]
    later = [
        {"id": "b", "text": "SELECT price FROM quote", "op": "restate"},
        {"op": "set", "id": "a", "params": {"by": 4}},
        {"op": "env", "name": "mood", "value": "bright"},
    ]
    quotes = [{"symbol": "IBM", "price": 9.5}, {"symbol": "SUN", "price": 3.0}]
    with closing(Recorder(config)) as recorder:
        for at, (asked, quote) in enumerate(zip([said, later], quotes, strict=True)):
            write_lines(changes / f"{at}.jsonl", asked)
            recorder.look(TIME)
            event = {"specversion": "1.0", "type": "quote", "id": f"e{at}", "source": "s"}
            write_lines(events / f"{at}.jsonl", [{**event, "data": quote}])
            recorder.look(TIME)
            if not at:
                recorder.rebase_if_due(first=True)
        assert [one.problem for one in recorder.sequence] == [None] * 4
        end = recorder.sequence.end
    assert [*Pages(config.checkpoint / "book").refused(0, end)] == []
    whole = [{"symbol": "IBM", "price": 9.5}, {"symbol": "SUN", "price": 3.0}]
    batches = []
    for batch, seq in enumerate((2, 6)):
        rows = pa.RecordBatch.from_pydict(
            {
                "seq": pa.array([seq], pa.int64()),
                "ce_type": ["quote"],
                **{name: [value] for name, value in whole[batch].items()},
                "subscriptions": pa.array([["a", "b"]], pa.list_(pa.string())),
            }
        )
        files = write_tables([piece_of(MATCHED, seq, rows)], config.out.path, "match")
        first, end = ((0, 3), (3, 7))[batch]
        batches.append(Manifest("match", batch, "columns", first, end, tuple(files)))
    for some in (batches[:1], batches):
        one = Telling(config)
        one.deliver(some)
        one.close()
    found = [
        {name: value for name, value in one.attributes.items() if not name.startswith("told_")}
        for one in read.all()
    ]
    assert found == [
        {"symbol": "IBM", "dear": 19.0},
        {"symbol": "IBM", "price": 9.5},
        {"symbol": "SUN", "dear": 12.0, "mood": "bright"},
        {"price": 3.0},
    ]


def write_lines(file: Path, lines: list[dict[str, object]]) -> None:
    file.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in lines))


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
