"""What follows from a recorded sequence, taken from its beginning by one engine in one process?

The slow and obvious way: every file in its order, every row one by one, no index by versions, no
shards, no batches. What a pipeline has told must be the same, and here it can be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pyarrow as pa

from driftline.errors import DriftlineError
from driftline.language.columns import TEXT, TYPE
from driftline.model.event import Event
from driftline.recorded.changes import Cancel, Change, Delete, Env, Subscribe
from driftline.recorded.config import OrderConfig, PipelineConfig
from driftline.recorded.inputs import ShardState, events_in
from driftline.recorded.interpreter import Interpreter
from driftline.recorded.pages import Pages
from driftline.recorded.reading import read, read_columns
from driftline.recorded.recorder import changes_of, read_sequence
from driftline.recorded.sequence import Segment, What
from driftline.recorded.told import TOLD, Row, table_of

Answer = tuple[object, ...]
"""What was told to one: the number, its id, and all that was said but the how manyth it was."""

_SAID = [name for name in TOLD.names if name not in ("seq", "nth", "subscriptions", "problem")]
ANSWERED = ("seq", "id", *_SAID)
"""What the members of an answer are."""


def replayed(
    config: PipelineConfig, end: int | None = None, states: States | None = None
) -> Iterator[Row]:
    """All that is told, in order, up to a number of the sequence; to states, if some are given."""
    root = config.checkpoint
    sequence = read_sequence(root)
    last = sequence.end if end is None else min(end, sequence.end)
    states = states or States(config)
    for segment, low, high in sequence.between(0, last):
        if segment.what is What.EVENTS:
            for batch in read(segment, low, high, read_columns(root)):
                for seq, event in events_in(batch, config.events.default_type):
                    yield from states.take_event(seq, event)
        elif segment.what is What.CHANGES:
            segment.check_unchanged()
            for seq, time, change in _accepted(root, segment, high):
                yield from states.take_change(seq, time, change)


class States:
    """Plain filters, which are told events as they come, and what has memory, in their order."""

    def __init__(self, config: PipelineConfig) -> None:
        tables = [kept.declaration for kept in config.places.tables.values()]
        self._plain = ShardState(tables, OrderConfig(), config.events.default_type)
        self._memory = ShardState(tables, config.order, config.events.default_type)
        self._filters: set[str] = set()

    @property
    def remembering(self) -> Interpreter:
        """What has memory."""
        return self._memory.interpreter

    def take_event(self, seq: int, event: Event) -> Iterator[Row]:
        """What is told of an event."""
        yield from self._plain.take_event(seq, event)
        yield from self._memory.take_event(seq, event)

    def take_change(self, seq: int, time: int, change: Change) -> Iterator[Row]:
        """What is told of a change."""
        if isinstance(change, Subscribe) and change.is_plain:
            self._filters.add(change.id)
        if isinstance(change, Env):
            yield from self._plain.interpreter.take(seq, time, change)
        is_plain = not isinstance(change, Env | Delete) and change.id in self._filters
        state = self._plain if is_plain else self._memory
        yield from state.interpreter.take(seq, time, change)
        if isinstance(change, Cancel):
            self._filters.discard(change.id)


def _accepted(root: Path, segment: Segment, high: int) -> Iterator[tuple[int, int, Change]]:
    """The changes of a file that were honoured."""
    refused = {seq for seq, _ in Pages(root / "book").refused(segment.first, segment.end)}
    for seq, change in enumerate(changes_of(segment)[:high], segment.first):
        if seq not in refused and not isinstance(change, DriftlineError):
            yield seq, segment.recorded if change.time is None else change.time, change


def answers(rows: Iterable[Row]) -> Counter[Answer]:
    """What was told, to compare it by; the order in which different ones are told is open."""
    found: Counter[Answer] = Counter()
    for row in rows:
        if row.told is not None:
            found.update(_answers(table_of([row])))
    return found


def answers_in(tables: Iterable[pa.Table]) -> Counter[Answer]:
    """The same of tables that a pipeline has written."""
    found: Counter[Answer] = Counter()
    for table in tables:
        for batch in table.to_batches():
            found.update(_answers(batch))
    return found


def _answers(batch: pa.RecordBatch) -> Iterator[Answer]:
    """Events that were matched say who was told, and nothing else: the event says the rest."""
    # Those have all columns of events, which may be called as ours are.
    is_matched = TYPE in batch.schema.names or TEXT in batch.schema.names
    columns = [] if is_matched else [batch.column(name).to_pylist() for name in _SAID]
    said = zip(*columns, strict=True) if columns else None
    numbers, lists = (batch.column(name).to_pylist() for name in ("seq", "subscriptions"))
    for seq, ids in zip(numbers, lists, strict=True):
        what = next(said) if said is not None else ("event",)
        if what[0] == "event":
            what = ("event",)
        for id in ids or ():
            yield (seq, id, *map(_sorted, what))


def _sorted(said: object) -> object:
    """Attributes have no order: a JSON object whose names are in one."""
    if isinstance(said, str) and said[:1] in ("{", "["):
        return msgspec.json.encode(msgspec.json.decode(said), order="sorted")
    return said
