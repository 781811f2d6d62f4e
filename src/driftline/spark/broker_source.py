"""How does any Spark program read from a broker?

As the source `driftline-broker`, a durable subscription whose numbers are the offsets of batches.
The broker keeps what is not committed, so a batch that Spark repeats has the same rows.

    from driftline.spark.broker_source import BrokerSource

    spark.dataSource.register(BrokerSource)
    spark.readStream.format("driftline-broker").options(
        address="driftline://127.0.0.1:7400", subscription="mine", text="SELECT * FROM quote"
    ).load()

    address         of the broker; `authority` is a file, for driftlines://
    subscription    the name of the durable subscription
    text, params    what it asks for; parameters as a JSON object
    limit           so many rows in a batch, at most (100,000)

    number   long      of the durable subscription
    value    string    the event, a CloudEvent as JSON; null where there is but a gap
    gap      boolean   is something missing before it? Where there is but a gap: behind this number

A subscription that the broker has lost is made again; one that was ended and made again under its
name is known by its mark, which no other has. Both are a gap, in a batch of its own, that nothing
but its offsets says: whoever repeats the batch tells it again, and nobody tells it twice.

    number   all up to here was told
    mark     of the subscription that told it; null: it was lost, and that is told
    gaps     how often it was lost, or was another: a batch that ends with more of them is a gap

Only the driver speaks with the broker, as whoever $DRIFTLINE_TOKEN says. Spark commits a batch when
it plans the next: until then the broker keeps it. A pipeline does not wait for that (`arriving`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from driftline.errors import InvalidValue, PipelineFailed
from driftline.language.cloudevents import event_to
from driftline.recorded.config import InputConfig
from driftline.spark.taking import Taken, Taking

NAME = "driftline-broker"
SCHEMA = pa.schema([("number", pa.int64()), ("value", pa.string()), ("gap", pa.bool_())])
_OPTIONS = ("address", "subscription", "text", "params", "authority", "limit")
_AT_ONCE = 100_000

Offset = dict[str, Any]
"""As Spark's log has it. One that is older has no mark: whose number it is, nobody knows."""


class BrokerSource(DataSource):
    """The source, for `spark.dataSource.register`."""

    @classmethod
    def name(cls) -> str:
        """What it is called."""
        return NAME

    def schema(self) -> str:
        """Events with their numbers."""
        return "number BIGINT, value STRING, gap BOOLEAN"

    def streamReader(self, schema: Any) -> BrokerReader:
        """Who reads it batch by batch."""
        return BrokerReader(self.options)


@dataclass
class Rows(InputPartition):
    """A batch itself: only the driver speaks with the broker."""

    content: bytes


class BrokerReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what has numbers in (start, end]."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._said, self._limit = _input(options)
        self._taking: Taking | None = None
        self._held: list[Taken] = []
        """What was taken, and is not committed."""
        self._is_all_now = False
        self._target: int | None = None
        self._mark = ""
        """Of the subscription that it was attached to: what is held is its own."""

    def _attached(self, known: Offset) -> Taking:
        """Whoever takes; offsets that are known say whether there was something to be taken."""
        if self._taking is None:
            taking = Taking(self._said.address, self._said.authority)
            try:
                # Spark says later what is committed; what comes again is known by its number.
                taking.attach(
                    self._said.subscription, self._said.standing, known=any(known.values())
                )
            except BaseException:
                taking.close()
                raise
            self._taking, self._mark = taking, taking.mark
        return self._taking

    def initialOffset(self) -> Offset:
        """Whatever the broker has kept."""
        return {"number": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        """What is kept now is all there is."""
        self._is_all_now = True

    def getDefaultReadLimit(self) -> ReadLimit:
        """So many rows."""
        return ReadMaxRows(self._limit)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """How far the next batch goes."""
        rows = self._limit
        if isinstance(limit, ReadMaxRows):
            rows = limit.max_rows
        elif isinstance(limit, ReadAllAvailable):
            rows = 1 << 40
        if self._is_another():
            self._begin_again()
        taking, first = self._attached(start), start["number"]
        before = start.get("mark", "")
        if taking.is_lost and before is None:
            taking.renew(first)
            self._mark = taking.mark
            self._target = None
        elif before and self._mark not in ("", before):
            taking.expect(first)
            return _behind_gap(start, self._mark)
        if self._is_all_now and self._target is None:
            self._target = taking.kept_up_to
        while len(self._between(first, None)) < rows:
            if self._target is None:
                some = taking.take(_AT_ONCE)
            else:
                some = self._taken_up_to(taking, self._target)
            if self._is_another():
                return self.latestOffset(start, limit)
            self._held += some
            if not some:
                break
        found = self._between(first, self._target)[:rows]
        if found:
            return {**start, "number": found[-1].number, "mark": self._mark}
        if taking.is_lost:
            return _behind_gap(start, None)
        # Before anything has come, too, it is to be known that it was there.
        return start if "mark" in start else {**start, "mark": self._mark}

    def _is_another(self) -> bool:
        """Has it been ended and made again, while the connection was lost?"""
        return self._taking is not None and self._taking.mark not in ("", self._mark)

    def _begin_again(self) -> None:
        """Attach to the other as whoever comes next would, who is told no more than what it has.

        What came from the one before and is in no batch yet is given up, as part of the gap: a
        batch of it could not be repeated.
        """
        self.stop()
        self._held.clear()
        self._target = None

    def partitions(self, start: Offset, end: Offset) -> Sequence[Rows]:
        """The rows, in one share."""
        first, last = start["number"], end["number"]
        rows: list[Taken] = []
        if first < last:
            self._take_planned(end)
            rows = self._between(first, last)
        if end.get("gaps", 0) > start.get("gaps", 0):
            rows.append(Taken(last, None, True))
        return [Rows(_bytes_of(rows))] if rows else []

    def _take_planned(self, end: Offset) -> None:
        """Hold all up to here, also if it was planned by whoever came before."""
        taking, last = self._attached(end), end["number"]
        if end.get("mark", "") not in ("", self._mark):
            raise self._nothing_up_to(last)
        while taking.reached < last:
            if taking.is_lost:
                raise self._nothing_up_to(last)
            some = self._taken_up_to(taking, last)
            if self._is_another():
                raise self._nothing_up_to(last)
            self._held += some

    def _taken_up_to(self, taking: Taking, number: int) -> list[Taken]:
        try:
            return taking.take_up_to(number, _AT_ONCE)
        except TimeoutError:
            if self._is_another():
                return []
            raise self._nothing_up_to(number) from None

    def _nothing_up_to(self, number: int) -> PipelineFailed:
        why = f"{self._said.subscription} has nothing up to number {number}, which was there"
        why += " before: has it lost its journal, was it ended and made again, or does another"
        why += " take it too?"
        return PipelineFailed(f"reading from {self._said.address}", why)

    def _between(self, first: int, last: int | None) -> list[Taken]:
        return [
            one for one in self._held if one.number > first and (last is None or one.number <= last)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a batch."""
        assert isinstance(partition, Rows)
        with pa.ipc.open_stream(partition.content) as stream:
            yield from stream

    def commit(self, end: Offset) -> None:
        """All up to here is done with: the broker need not keep it."""
        self._held = self._between(end["number"], None)
        self._attached(end).acknowledge(end["number"])

    def stop(self) -> None:
        """Leave the broker."""
        if self._taking is not None:
            self._taking.close()
            self._taking = None


def _behind_gap(start: Offset, mark: str | None) -> Offset:
    """No further, but behind a gap; the subscription of this mark goes on there."""
    return {**start, "mark": mark, "gaps": start.get("gaps", 0) + 1}


def _input(options: Mapping[str, str]) -> tuple[InputConfig, int]:
    """What the options say, and the limit; InvalidValue for what they cannot."""
    # Spark hands on all names as they were written, and knows no difference of case.
    said = {name.lower(): value for name, value in options.items()}
    for name in ("address", "subscription", "text"):
        if name not in said:
            raise InvalidValue("options", f"{', '.join(_OPTIONS)}", f"no {name}")
    unknown = [name for name in said if name not in _OPTIONS]
    if unknown:
        raise InvalidValue("options", f"{', '.join(_OPTIONS)}", unknown[0])
    try:
        params = msgspec.json.decode(said.get("params", "{}"), type=dict[str, Any])
    except msgspec.DecodeError as problem:
        raise InvalidValue("params", "a JSON object", str(problem)) from None
    made = InputConfig(
        said["address"], said["subscription"], said["text"], params, said.get("authority")
    )
    made.check()
    return made, _limit(said.get("limit", f"{_AT_ONCE}"))


def _limit(text: str) -> int:
    # No more than digits: int() takes " 1_000" too.
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 19 and int(text) > 0):
        raise InvalidValue("limit", "a whole number, 1 or more", repr(text))
    return int(text)


def _bytes_of(rows: list[Taken]) -> bytes:
    values = [
        None if one.event is None else msgspec.json.encode(event_to(one.event)).decode()
        for one in rows
    ]
    arrays = [
        pa.array([one.number for one in rows], pa.int64()),
        pa.array(values, pa.string()),
        pa.array([one.gap for one in rows], pa.bool_()),
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        stream.write_batch(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
    content: bytes = sink.getvalue().to_pybytes()
    return content
