"""How are the rows of an Arrow batch matched at once?

A batch that is *clean*, as almost all are, goes to the matcher as the columns it is made of, and no
row becomes an object. Whatever could make a row no event, or give it attributes that are in no
column (JSON in `ce_data`, a time between two microseconds, bytes that are no text …), sends its
batch the other way: row by row through `language.columns`. So one place says what a row means and
what is wrong with it; the short cut only has to know when it applies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from driftline.language.columns import DATA, ID, SOURCE, TYPE, Layout, Problem, events_of
from driftline.matching.columns import Columns
from driftline.matching.matcher import Matches, StandingMatcher
from driftline.model.event import EARLIEST_US, LATEST_US, Event
from driftline.model.value import INTEGER_MAX, Value

IDS = pa.list_(pa.field("element", pa.string(), nullable=False))

_NAMES = (TYPE, ID, SOURCE)
"""The columns of the envelope that hold names, which are never empty."""

_TEXT_BYTES_MAX = 1 << 30
"""A column of texts can have twice as many; beyond this each text is there once."""

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True, slots=True)
class Told:
    """For each row of a batch the ids it is told to, null for none, and why it is no event.

    Ids are texts, or numbers of texts (Arrow's dictionaries): see `in_texts`.
    """

    ids: pa.ListArray
    problems: pa.StringArray


def match_batch(
    matcher: StandingMatcher, batch: pa.RecordBatch, layout: Layout, env: Mapping[str, Value]
) -> Told:
    """Which subscriptions does each row satisfy? Ids are in the order they were added."""
    columns = clean_columns(batch, layout)
    if columns is None:
        return match_events(matcher, events_of(batch, layout), env)
    found = matcher.match_batch(columns, env)
    return Told(_lists(found, found.offsets), pa.nulls(len(columns), pa.string()))


def match_events(
    matcher: StandingMatcher, rows: Sequence[Event | Problem], env: Mapping[str, Value]
) -> Told:
    """The same for rows that are events already, or the problems of those that are none."""
    events = [row for row in rows if not isinstance(row, str)]
    found = matcher.match_batch(Columns.of_events(events), env)
    problems = [row if isinstance(row, str) else None for row in rows]
    counts = np.zeros(len(rows), np.int64)
    counts[[problem is None for problem in problems]] = np.diff(found.offsets)
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return Told(_lists(found, offsets), pa.array(problems, pa.string()))


def _lists(found: Matches, offsets: NDArray[np.int64]) -> pa.ListArray:
    """The ids of each row. A batch should not cost what is held, only what is found."""
    names, numbers = found.names, found.numbers
    if len(numbers) >= len(names) and hasattr(names, "column"):
        ids = pa.DictionaryArray.from_arrays(pa.array(numbers), names.column())
    else:
        ids = _named(names, numbers)
    none = pa.array(np.diff(offsets) == 0)
    kind = pa.list_(pa.field("element", ids.type, nullable=False))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), ids, kind, mask=none)


def _named(names: Sequence[str], numbers: NDArray[np.int32]) -> pa.Array:
    if hasattr(names, "column"):
        return names.column().take(pa.array(numbers)).cast(pa.string())
    if len(numbers) < len(names):
        used, inverse = np.unique(numbers, return_inverse=True)
        names, numbers = [names[number] for number in used.tolist()], inverse.astype(np.int32)
    texts, where = pa.array(names, pa.string()), pa.array(numbers)
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest * len(numbers) > _TEXT_BYTES_MAX:
        return pa.DictionaryArray.from_arrays(where, texts)
    return texts.take(where)


def in_texts(lists: pa.ListArray) -> pa.ListArray:
    """Lists of ids, as texts."""
    if lists.type == IDS:
        return lists
    ids = lists.values.dictionary_decode().cast(pa.string())
    return pa.ListArray.from_arrays(lists.offsets, ids, type=IDS, mask=lists.is_null())


def clean_columns(batch: pa.RecordBatch, layout: Layout) -> Columns | None:
    """The batch as it is, where every row is an event and its columns are all it has; else None."""
    if layout.is_text or "" in layout.names:
        return None
    kept: dict[str, pa.Array] = {}
    for name, array in zip(layout.names, batch.columns, strict=True):
        if array.null_count == len(array):
            continue  # Nobody has it: also how a column of the type null looks.
        if name == DATA or not _is_clean(name, array):
            return None
        kept[name] = array
    if TYPE not in kept or kept[TYPE].null_count:
        if not layout.default_type:
            return None
        kept[TYPE] = _filled(kept.get(TYPE), layout.default_type, batch.num_rows)
    return Columns.of_arrow(pa.RecordBatch.from_arrays(list(kept.values()), names=list(kept)))


def _is_clean(name: str, array: pa.Array) -> bool:
    """Is every value there one that an event may have, in Arrow as in Python?"""
    if pa.types.is_dictionary(array.type):
        # Its texts once, and a null among them would be one that no bitmap tells of.
        return not array.dictionary.null_count and _is_clean(name, array.dictionary)
    if pa.types.is_timestamp(array.type):
        return _is_calendar(array)
    if pa.types.is_uint64(array.type):
        return bool(pc.max(array).as_py() <= INTEGER_MAX)
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        if name in _NAMES and pc.min(pc.binary_length(array)).as_py() == 0:
            return False
        return _is_utf8(array)
    return True


def _is_calendar(array: pa.Array) -> bool:
    """Are all times within the years 1 to 9999, and none between two microseconds?"""
    counts = array.cast(pa.int64())
    ends = pc.min_max(counts).as_py()
    per_second = _PER_SECOND[array.type.unit]
    # In Python's integers, which do not overflow.
    if ends["min"] * 10**6 < EARLIEST_US * per_second:
        return False
    if ends["max"] * 10**6 > LATEST_US * per_second:
        return False
    if per_second <= 10**6:
        return True
    whole = pc.multiply(pc.divide(counts, 1_000), 1_000)
    return bool(pc.all(pc.equal(whole, counts)).as_py())


def _is_utf8(array: pa.Array) -> bool:
    """Are these texts? Whoever sends a column of strings may not have looked."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _filled(types: pa.Array | None, default: str, length: int) -> pa.Array:
    if types is None:
        zeros = pa.array(np.zeros(length, np.int32))
        return pa.DictionaryArray.from_arrays(zeros, pa.array([default], pa.string()))
    if pa.types.is_dictionary(types.type):
        types = types.dictionary_decode()
    return types.fill_null(default)
