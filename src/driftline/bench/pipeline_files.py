"""How do subscriptions and events become the files that a pipeline takes?

<root>/changes/…    subscriptions: an id, a text, and parameters as JSON
<root>/events/…     events in columns, so many in a file
<root>/out          what the pipeline makes of them
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from driftline.recorded.config import (
    ChangesConfig,
    EventsConfig,
    OutConfig,
    PipelineConfig,
    RunConfig,
    TableConfig,
)
from driftline.workload.prepared import Group

SHARDS = 2


def config_of(
    root: Path, per_batch: int, tables: Mapping[str, TableConfig] | None = None
) -> PipelineConfig:
    """A pipeline in a directory, with directories for what it takes."""
    for name in ("events", "changes"):
        (root / name).mkdir(parents=True, exist_ok=True)
    return PipelineConfig(
        EventsConfig(str(root / "events")),
        OutConfig(str(root / "out")),
        ChangesConfig(str(root / "changes")),
        dict(tables or {}),
        run=RunConfig(shards=SHARDS, events_per_batch=per_batch),
    )


def write_groups(config: PipelineConfig, groups: Iterable[Group]) -> int:
    """Prepared statements as subscriptions whose ids are their numbers: how many there are."""
    return write_subscriptions(
        config,
        [(group.numbers, str(group.subscription({})), group.operands) for group in groups],
    )


def write_subscriptions(
    config: PipelineConfig, some: Iterable[tuple[Any, str, Mapping[str, Any]]]
) -> int:
    """Ids, a text, and a column for each of its parameters: how many there are."""
    tables = []
    for ids, text, params in some:
        columns = {
            "id": pa.array(ids).cast(pa.string()),
            "text": pa.repeat(text, len(ids)),
            "params": json_rows(params),
        }
        tables.append(pa.table(columns))
    assert config.changes.path is not None
    file = Path(config.changes.path, "subscriptions.parquet")
    found = pa.concat_tables(tables)
    pq.write_table(found, file)
    # Files are recorded by their dates, and these come before all events.
    os.utime(file, (0, 0))
    return int(found.num_rows)


def json_rows(columns: Mapping[str, Any]) -> pa.StringArray:
    """Columns as JSON objects.

    >>> json_rows({"s": pa.array(["a", "b"]), "low": np.array([1, 2])}).to_pylist()
    ['{"s":"a","low":1}', '{"s":"b","low":2}']
    """
    parts: list[Any] = []
    for name, column in columns.items():
        array = pa.array(column)
        quote = '"' if pa.types.is_string(array.type) else ""
        parts += [f'{"," if parts else "{"}"{name}":{quote}', array.cast(pa.string()), quote]
    return pc.binary_join_element_wise(*parts, "}", "")


def write_events(
    config: PipelineConfig, type: str, events: pa.RecordBatch, per_file: int, first: int = 0
) -> None:
    """Events of one type, so many in a file; `first` is the number of the first file."""
    names, columns = list(events.schema.names), [_plain(column) for column in events.columns]
    table = pa.table([pa.repeat(type, len(events)), *columns], names=["ce_type", *names])
    for number, start in enumerate(range(0, len(events), per_file), first):
        file = Path(config.events.path, f"{number:06}.parquet")
        pq.write_table(table.slice(start, per_file), file)
        # In this order, however coarse the clock.
        os.utime(file, (number + 1, number + 1))


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def numbers_in(lists: pa.ChunkedArray) -> tuple[Any, Any]:
    """How many ids each row has, and all of them, as numbers again."""
    counts = np.asarray(pc.list_value_length(lists).fill_null(0))
    return counts, np.asarray(pc.list_flatten(lists).cast(pa.string()).cast(pa.int64()))
