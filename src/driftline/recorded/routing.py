"""Which events must which shard be shown?

Rows of tables go where their table is, the others to whoever asked for their type (see `places`).
Decided for many events at once, by their types and keys, each of which is looked at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.language.columns import DATA, TYPE, Layout, events_of
from driftline.model.event import Event
from driftline.recorded.places import Kept, Places

Wants = Iterable[tuple[frozenset[str] | None, int]]


def routed(
    places: Places, wants: Wants, events: pa.RecordBatch, layout: Layout
) -> list[NDArray[np.intp]]:
    """For each shard the places of the rows that it must be shown."""
    wants = [*wants, *places.shown]
    shown = np.zeros((places.shards, len(events)), np.bool_)
    if layout.is_text:
        _by_event(places, wants, events_of(events, layout), np.arange(len(events)), shown)
        return [np.flatnonzero(one) for one in shown]
    types = _types(events, layout)
    for name in types.dictionary.to_pylist():
        of_type = np.asarray(types.indices.fill_null(-1)) == types.dictionary.index(name).as_py()
        for shard in _wanting(wants, name):
            shown[shard] |= of_type
        if name in places.tables:
            _by_table(places, places.tables[name], events, layout, of_type, shown)
    return [np.flatnonzero(one) for one in shown]


def _types(events: pa.RecordBatch, layout: Layout) -> pa.DictionaryArray:
    if TYPE in layout.names:
        types = events.column(TYPE)
    else:
        types = pa.nulls(len(events), pa.string())
    return (
        types.fill_null(layout.default_type) if layout.default_type else types
    ).dictionary_encode()


def _wanting(wants: Wants, type: str) -> set[int]:
    return {shard for types, shard in wants if types is None or type in types}


def _by_table(
    places: Places,
    kept: Kept,
    events: pa.RecordBatch,
    layout: Layout,
    of_type: NDArray[np.bool_],
    shown: NDArray[np.bool_],
) -> None:
    """Rows of one table."""
    if not kept.spread:
        shown[places.of_group(kept.group)] |= of_type
        return
    key = kept.declaration.key
    left = of_type.copy()
    if key in layout.names:
        keys = events.column(key).dictionary_encode()
        shard_of = np.array([places.of_key(one) for one in keys.dictionary.to_pylist()], np.intp)
        there = np.asarray(keys.indices.fill_null(-1))
        found = of_type & (there >= 0)
        shards = shard_of[there[found]]
        shown[shards, np.flatnonzero(found)] = True
        left &= there < 0
    # The key may be among the attributes that have no column.
    if left.any() and DATA in layout.names:
        rows = np.flatnonzero(left)
        _by_event(places, (), events_of(events.take(pa.array(rows)), layout), rows, shown)


def _by_event(
    places: Places,
    wants: Wants,
    events: Sequence[Event | str],
    rows: NDArray[np.intp],
    shown: NDArray[np.bool_],
) -> None:
    for row, event in zip(rows.tolist(), events, strict=True):
        if isinstance(event, str):
            continue
        for shard in _wanting(wants, event.type):
            shown[shard, row] = True
        kept = places.tables.get(event.type)
        key = None if kept is None else event.attributes.get(kept.declaration.key)
        if key is not None:
            shown[places.of_row(event.type, key), row] = True
