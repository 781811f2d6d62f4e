"""Which subscriptions does each event of a DataFrame satisfy?

    matched = events.transform(match("subscriptions.jsonl", env={"visibility": 2}))

One row per event with the list of ids, never a row per match: ten thousand subscribers of one event
would otherwise carry its columns ten thousand times from Python to Java.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from driftline.bulk import in_texts, match_batch
from driftline.language.columns import Layout
from driftline.spark.schemas import PROBLEM, SUBSCRIPTIONS, layout_of, marked_schema
from driftline.spark.subscriptions import Packed, Subscriptions, matcher_for, pack

Transform: TypeAlias = Callable[[DataFrame], DataFrame]


def match(
    subscriptions: Subscriptions,
    env: Mapping[str, object] | None = None,
    default_type: str | None = None,
) -> Transform:
    """A transform that keeps the events with a match, and the rows that are no events.

    The former have their ids in `subscriptions`, the latter the reason in `problem`; see `schemas`.
    Subscriptions are read and refused here, columns when the transform is applied: both on the
    driver, before any job runs.
    """
    marked = mark(pack(subscriptions, env), default_type)
    return lambda events: events.transform(marked).where(
        F.col(SUBSCRIPTIONS).isNotNull() | F.col(PROBLEM).isNotNull()
    )


def mark(packed: Packed, default_type: str | None = None) -> Transform:
    """A transform that adds the two columns and keeps every row, also one without a match."""

    def marked(events: DataFrame) -> DataFrame:
        layout = layout_of(events.schema, default_type)
        # Spark resolves a name with a dot as a field of a struct, and names apart only in case as
        # one. By place there is nothing to resolve.
        places = events.toDF(*(f"c{place}" for place in range(len(layout.names))))
        return places.mapInArrow(_Mark(packed, layout), marked_schema(events.schema))

    return marked


@dataclass(frozen=True, slots=True)
class _Mark:
    """What runs in the workers. A class of an importable module travels by name, so that the
    matchers kept beside `matcher_for` are the process's own and not a pickled copy of them.
    """

    packed: Packed
    layout: Layout

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher, env = matcher_for(self.packed)
        names = [*self.layout.names, SUBSCRIPTIONS, PROBLEM]
        for batch in batches:
            told = match_batch(matcher, batch, self.layout, env)
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, in_texts(told.ids), told.problems], names=names
            )
