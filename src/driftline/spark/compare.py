"""Is what a pipeline has written what follows from its sequence?

Everything is taken again by one engine (`recorded.replay`) and compared with the tables, as far as
every query is. What an order holds back is told under its own number when something later has come,
so the engine goes as far as the query with memory did, and what is compared ends by its number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow.compute as pc

from driftline.recorded.config import PipelineConfig
from driftline.recorded.recorder import read_book, read_sequence
from driftline.recorded.replay import Answer, answers, answers_in, replayed
from driftline.recorded.told import Row
from driftline.spark.manifest import (
    MATCH,
    MATCHED,
    REFORMULATE,
    TOLD,
    committed,
    committed_tables,
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was compared, and what is in one and not in the other, by number."""

    until: int
    recorded: int
    notifications: int
    missing: tuple[Answer, ...]
    """What follows from the sequence and was not written."""
    unfounded: tuple[Answer, ...]
    """What was written and does not follow from it."""

    @property
    def is_same(self) -> bool:
        """Are there no differences?"""
        return not self.missing and not self.unfounded


def compare(
    config: PipelineConfig, until: int | None = None, seen: Callable[[int], None] | None = None
) -> Comparison:
    """Compare up to a number, or as far as it goes; `seen` is told how far that is."""
    recorded = read_sequence(config.checkpoint).end
    # A query that has committed nothing yet is at the beginning.
    remembers = read_book(config).remembers
    ends = {MATCH: 0, REFORMULATE: 0} if remembers else {MATCH: 0}
    for batch in committed(config.out.path):
        ends[batch.query] = max(batch.end, ends.get(batch.query, 0))
    last = min(ends.values(), default=0)
    last = last if until is None else min(last, until)
    rows = replayed(config, max([last, *ends.values()]))
    wanted = answers(_before(rows, last, seen))
    found: Counter[Answer] = Counter()
    for name in (MATCHED, TOLD):
        for table in committed_tables(config.out.path, name):
            found += answers_in([table.filter(pc.less(table["seq"], last))])
    return Comparison(
        last,
        recorded,
        wanted.total(),
        tuple(sorted((wanted - found).elements(), key=_by_number)),
        tuple(sorted((found - wanted).elements(), key=_by_number)),
    )


def _before(rows: Iterator[Row], last: int, seen: Callable[[int], None] | None) -> Iterator[Row]:
    for row in rows:
        if seen is not None:
            seen(row.seq)
        if row.seq < last:
            yield row


def _by_number(answer: Answer) -> tuple[str, ...]:
    return (f"{answer[0]:020}", *map(str, answer[1:]))
