"""How are all kernels made ready?

By using them: a small index goes through every kind of change and match, which compiles each kernel
for the types it is used with, or loads it from the cache.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.axes import begin, is_unused, set_axis
from driftline.kernels.changes import add_many, change_many, discard_many, has_room
from driftline.kernels.keys import (
    hash_keys,
    number_key,
    number_keys,
    plain_keys,
    text_key,
    text_keys,
)
from driftline.kernels.layout import EQ, GE, NUMBER, SPARE_WORDS, TYPE_SPAN
from driftline.kernels.match import match_event, match_many
from driftline.kernels.moved_changes import delete_many, insert_many, read_many
from driftline.kernels.moved_events import ROW, tell_many, tell_ring
from driftline.kernels.moved_layout import make_room as make_moved_room
from driftline.kernels.moved_listing import list_ids
from driftline.kernels.moved_packing import count_entries
from driftline.kernels.moved_packing import pack as pack_moved
from driftline.kernels.moved_packing import unpack as unpack_moved
from driftline.kernels.range_blocks import least_within, make_room, pack, unpack
from driftline.kernels.range_min import MESSAGE, change_tuples
from driftline.kernels.range_slabs import affected, affects_any, begin_ranges, set_ranges


def warm_up() -> None:
    """Compile every kernel, or load it from the cache."""
    m = np.zeros(2 * SPARE_WORDS, np.int64)
    begin(m)
    axis = TYPE_SPAN + 1
    set_axis(m, axis, NUMBER, 0)
    is_unused(m, axis)
    has_room(m, 0)
    texts, scratch = np.zeros(64, np.uint8), np.zeros(256, np.int64)
    letters = np.zeros((1, 16), np.int64)
    one = np.zeros(1, np.int32)
    letters[0, :10] = (0, 2, EQ, axis, 0, 0, GE, axis, 0, 0)
    add_many(m, letters, 1, texts, scratch, one, 0)
    change_many(m, letters, 1, texts, scratch, one, 0)
    columns, keys = np.full(64, -1, np.int64), np.zeros((2, 1), np.int64)
    room = np.zeros(64, np.int64)
    found, out = np.zeros(64, np.int32), np.zeros(64, np.int32)
    match_event(m, room, 0, columns, keys, texts, room, 1, found, out)
    match_many(m, columns, keys, texts, np.zeros(0, np.int64), room, 1, np.zeros(2, np.int64))
    discard_many(m, one, 0)
    valid = np.zeros(0, np.bool_)
    number_keys(room, valid, room)
    plain_keys(room, valid, room)
    text_keys(texts, room, room, valid, room)
    hash_keys(texts, room, room, valid, room)
    number_key(np.int64(0))
    text_key(texts, 0, 0)
    _warm_range_min()
    _warm_range_slabs()
    _warm_moved()


def _warm_range_min() -> None:
    m = make_room(1, 1)
    f, ids, points = m.view(np.float64), np.zeros(1, np.int64), np.zeros((1, 2))
    pack(m, f, ids, points)
    change_tuples(m, f, ids, points, np.zeros((1, MESSAGE)), np.zeros(2, np.int64), 0)
    least_within(m, f, 0.0, 0.0)
    unpack(m, f, ids, points)


def _warm_range_slabs() -> None:
    m = np.zeros(2 * SPARE_WORDS, np.int64)
    points = begin_ranges(m)
    held, rows = np.zeros((1, 2), np.int64), np.zeros((1, MESSAGE), np.int64)
    held[0] = np.full(2, np.nan).view(np.int64)
    set_ranges(m, points, held, np.zeros(1, np.int64), np.zeros((1, 2), np.int64), 0)
    affected(m, points, rows, np.zeros(2, np.int64), np.zeros(1, np.int32))
    affects_any(m, points, rows, np.zeros(1, np.bool_))


def _warm_moved() -> None:
    m = make_moved_room(1, 1, 2, 2)
    f, n = m.view(np.float64), m.view(np.int32)
    ids, whole, floats, ones = np.arange(2), np.zeros(2, np.int64), np.zeros(2), np.ones(2)
    count_entries(ones, whole, whole, np.zeros(3, np.int64))
    pack_moved(m, f, n, ids, ones, whole, whole, floats, 1)
    rows, ends = np.zeros((256, ROW), np.int64), np.zeros(3, np.int64)
    for tell in (tell_many, tell_ring):
        tell(m, f, n, ones, np.ones((2, 2)), rows, rows.view(np.float64), ends, 0)
    list_ids(m, n, rows, ends, np.zeros(8, np.int32), np.zeros(3, np.int64), 0)
    read_many(m, f, n, ids, floats, floats, whole, whole)
    delete_many(m, f, n, ids)
    insert_many(m, f, n, ids, ones, floats, False, 0)
    unpack_moved(m, f, n, ids, ones, whole, whole, floats)
