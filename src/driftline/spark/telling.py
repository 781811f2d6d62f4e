"""How does what was told reach a broker, exactly once?

Batch by batch, as they were committed to files. Each notification becomes an event whose source is
the pipeline and whose id says which one it is: both are the same whenever a batch is told again.
It is published *once*, so the broker passes over what it has had, and how far it is was noted
behind it. Nothing that a driver knew is needed by the next: what to publish is in files that do not
change, and whether it was published the broker knows. What a broker refuses for good is set aside
(see `letters`) and holds nothing up; what cannot be published just now is tried again.

    source                   urn:driftline:pipeline:<id of the pipeline>
    id                       <query>/<seq>/<nth>/<subscription>
    type                     as configured
    told_to, told_seq, …     who is told, of which number of the sequence, and how; see `_told`
    everything else          the attributes of the event, what was selected of it, or the values
                             that were told; one that is called told_… itself is called _told_…
"""

from __future__ import annotations

import heapq
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from driftline.client.waiting import WaitingClient
from driftline.errors import DriftlineError, JournalUnavailable, LimitReached, Unreachable
from driftline.language.cloudevents import value_from
from driftline.language.columns import Layout, events_of
from driftline.model.event import ENVELOPE, Event
from driftline.model.value import microseconds_of
from driftline.recorded.config import PipelineConfig
from driftline.recorded.sequence import replace_file
from driftline.spark.letters import FOR_GOOD, LETTERS, Letter, letter_of, write_letters
from driftline.spark.manifest import MATCHED, TOLD, Manifest
from driftline.spark.selected import Selected
from driftline.spark.taking import reach

log = logging.getLogger(__name__)

NOTE = "published.json"
PIECE = 5_000
"""So many are published before it is noted. Behind a crash as many come again at most: that must be
far less than brokers look back (`limits.once`)."""
_WITHIN = 20.0
_ROWS = 5_000
_OURS = re.compile("_*told_")

Place = tuple[int, int]
"""A number of the sequence, and the how manyth thing that is told of it."""


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far one query is published: all batches before this one, and so much of it."""

    batch: int = 0
    notifications: int = 0
    total: int = 0
    refused: int = 0
    """How many were set aside."""


def published(config: PipelineConfig) -> dict[str, Published]:
    """What is noted of each query."""
    try:
        raw = (config.checkpoint / NOTE).read_bytes()
    except FileNotFoundError:
        return {}
    return msgspec.json.decode(raw, type=dict[str, Published])


def pass_over(config: PipelineConfig, batches: Iterable[Manifest]) -> None:
    """Note that batches need not be published: whoever they are told to was told before."""
    done = {
        one.query: Published(one.batch + 1) for one in sorted(batches, key=lambda one: one.batch)
    }
    _note(config, done)


def _note(config: PipelineConfig, done: Mapping[str, Published]) -> None:
    content = msgspec.json.format(msgspec.json.encode(done))
    replace_file(config.checkpoint / NOTE, content + b"\n")


class Telling:
    """The output of a pipeline that is a broker, while it runs."""

    def __init__(self, config: PipelineConfig) -> None:
        said = config.out.broker
        assert said is not None
        self._said = said
        self._config = config
        self._done = published(config)
        self._client: WaitingClient | None = None
        self._selected = Selected(config.checkpoint)

    def deliver(self, batches: Iterable[Manifest]) -> int:
        """Publish all of these that is not published yet; how many notifications that was.

        `Unreachable` if nobody answers; it can be called again.
        """
        total = 0
        for one in sorted(batches, key=lambda one: (one.query, one.batch)):
            done = self._done.get(one.query, Published())
            if one.batch >= done.batch:
                total += self._put(one, done if one.batch == done.batch else None)
        return total

    def _put(self, one: Manifest, begun: Published | None) -> int:
        """Publish a batch, from where it was left."""
        known = self._done.get(one.query, Published())
        at = 0 if begun is None else begun.notifications
        total, refused = known.total, known.refused
        said = _events(self._config, one, self._said.type, self._selected)
        events = islice(said, at, None)
        first = at
        while some := list(islice(events, PIECE)):
            found = [each for each in some if isinstance(each, Letter)]
            found += self._publish([each for each in some if isinstance(each, Event)])
            if found:
                self._set_aside(found)
            at += len(some)
            total += len(some) - len(found)
            refused += len(found)
            self._noted(one.query, Published(one.batch, at, total, refused))
        self._noted(one.query, Published(one.batch + 1, 0, total, refused))
        return at - first

    def _publish(self, some: list[Event]) -> list[Letter]:
        """Publish some; those that were refused for good."""
        if self._client is None:
            self._client = reach(self._said.address, self._said.authority)
        try:
            problems = self._client.publish_each(some, once=True, within=_WITHIN)
        except TimeoutError:
            why = f"it has not acknowledged what was told within {_WITHIN:g} s"
            raise Unreachable(self._said.address, why) from None
        found: list[Letter] = []
        for event, problem in zip(some, problems, strict=True):
            if isinstance(problem, FOR_GOOD):
                found.append(letter_of(event, problem))
            elif isinstance(problem, JournalUnavailable | LimitReached):
                raise Unreachable(self._said.address, str(problem))
            elif problem is not None:
                raise problem
        return found

    def _set_aside(self, letters: list[Letter]) -> None:
        file = self._config.checkpoint / LETTERS
        write_letters(file, letters)
        log.warning(
            "%s takes %d of what was told not at all, the first because %s: see %s",
            self._said.address,
            len(letters),
            letters[0].why,
            file,
        )

    def _noted(self, query: str, done: Published) -> None:
        self._done[query] = done
        _note(self._config, self._done)

    def close(self) -> None:
        """Leave the broker."""
        if self._client is not None:
            self._client.__exit__(None, None, None)
            self._client = None


def _events(
    config: PipelineConfig, one: Manifest, type: str, selected: Selected
) -> Iterator[Event | Letter]:
    """The notifications of a batch as events, in the order of their numbers: always the same. One
    that cannot be an event is a letter in its place.
    """
    source = f"urn:driftline:pipeline:{one.pipeline}"
    files = [written for written in one.files if written.table in (MATCHED, TOLD)]
    is_any = any(written.table == MATCHED for written in files)
    is_any = is_any and selected.look(one.start, one.end)
    default_type = config.events.default_type
    rows = [
        _rows(
            Path(config.out.path, written.path),
            written.table,
            default_type,
            selected if is_any else None,
        )
        for written in files
    ]
    for (seq, nth), ids, attributes, time in heapq.merge(*rows, key=lambda row: row[0]):
        for id in ids:
            said = {**attributes, "told_to": id, "told_seq": seq}
            name = f"{one.query}/{seq}/{nth}/{id}"
            try:
                yield Event(type, said, source=source, id=name, time=time)
            except DriftlineError as problem:
                envelope = {"specversion": "1.0", "type": type, "source": source, "id": name}
                yield Letter(name, str(problem), {**envelope, "data": said})


Row = tuple[Place, list[str], dict[str, Any], int | None]


def _rows(
    file: Path, table: str, default_type: str | None, selected: Selected | None
) -> Iterator[Row]:
    """What stands in a file of one table; its rows are in the order of their numbers, or put so."""
    found = pq.read_table(file)
    order = [("seq", "ascending"), *([("nth", "ascending")] if table == TOLD else [])]
    for batch in found.sort_by(order).to_batches(max_chunksize=_ROWS):
        if table == MATCHED:
            yield from _matched(batch, default_type, selected)
        else:
            yield from _told(batch)


def _matched(
    batch: pa.RecordBatch, default_type: str | None, selected: Selected | None
) -> Iterator[Row]:
    """Events that satisfied filters, as they are, or what of them was selected."""
    names = tuple(name for name in batch.schema.names if name not in ("seq", "subscriptions"))
    layout = Layout(names, names == ("value",), default_type)
    events = events_of(batch.select(list(names)), layout)
    numbers, lists = (batch.column(name).to_pylist() for name in ("seq", "subscriptions"))
    for seq, ids, event in zip(numbers, lists, events, strict=True):
        assert isinstance(event, Event), "it was matched"
        envelope = {"kind": "event", "type": event.type, "id": event.id, "source": event.source}
        about = _about(envelope)
        whole = {**_named(event.attributes), **about}
        if selected is None:
            yield (seq, 0), ids, whole, event.time
            continue
        for id in ids:
            some = selected.of(seq, id, event)
            said = whole if some is None else {**_named(some), **about}
            yield (seq, 0), [id], said, event.time


def _told(batch: pa.RecordBatch) -> Iterator[Row]:
    """What views, followers and patterns were told: the values; and as JSON what is no value."""
    for row in batch.to_pylist():
        values: Mapping[str, object] = msgspec.json.decode(row["values"] or "{}")
        attributes = {
            name: value_from(value, name)
            for name, value in values.items()
            if value is not None and name not in ENVELOPE
        }
        about = {name: row[name] for name in ("kind", "old", "key", "events", "epoch", "last")}
        time = None if row["time"] is None else microseconds_of(row["time"])
        place = row["seq"], row["nth"]
        yield place, row["subscriptions"] or [], {**_named(attributes), **_about(about)}, time


def _named(said: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes of others: none of them is taken for what we say, or for another of them."""
    return {f"_{name}" if _OURS.match(name) else name: value for name, value in said.items()}


def _about(said: Mapping[str, object]) -> dict[str, object]:
    return {f"told_{name}": value for name, value in said.items() if value is not None}
