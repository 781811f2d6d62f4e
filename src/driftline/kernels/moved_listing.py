"""Who are those that rows are about, by id?

Those alone in an entry lie side by side in their blocks and are copied; those of a ring are linked,
and are fast to list where packing has laid them in their order.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.jit import inlined, jit, prefetch
from driftline.kernels.moved_events import DONE, NARROW, NO_ROOM, PLACES, SLOTS_TOLD, WIDE, end_in
from driftline.kernels.moved_layout import (
    B_COUNT,
    B_REF,
    B_RING,
    BLOCKS,
    C_FIRST,
    COUNT,
    NONE,
    R_FRONT,
    S_PREV,
    SLOTS_MAX,
    STOPPED,
    block,
    class_at,
    ring_at,
    slot_at,
)
from driftline.kernels.moved_rings import slots_between
from driftline.kernels.types import Numbers, Words


@jit
def list_ids(
    m: Words, n: Numbers, o: Words, row_ends: Words, ids: Numbers, ends: Words, start: int
) -> int:
    """Write the ids that rows are about, for the values from number `start` on.

    Nothing may have come or gone since. The ids of value i are those from ends[i] to ends[i + 1].
    Says DONE, or NO_ROOM: to be called again from m[STOPPED] on, with more room.
    """
    for i in range(start, len(row_ends) - 1):
        count = ends[i]
        if row_ends[i] < row_ends[i + 1] and count + m[COUNT] > len(ids):
            m[STOPPED] = i
            return NO_ROOM
        for row in range(row_ends[i], row_ends[i + 1]):
            slots = o[row, SLOTS_TOLD]
            if slots != NONE:
                count = slots_between(m, n, slots >> WIDE, slots & NARROW, ids, count)
            else:
                first, last = o[row, PLACES] >> WIDE, o[row, PLACES] & NARROW
                count = _list_places(m, n, first, last, ids, count)
        ends[i + 1] = count
    return DONE


@jit
def _list_places(m: Words, n: Numbers, first: int, last: int, ids: Numbers, count: int) -> int:
    end = min(last // SLOTS_MAX, m[BLOCKS] - 1)
    for p in range(first // SLOTS_MAX, end + 1):
        if p + 3 <= end:
            _fetch_ahead(m, block(m, n, p + 3))
        b = block(m, n, p)
        begin = first % SLOTS_MAX if p == first // SLOTS_MAX else 0
        size = end_in(m, b, p, last) - begin
        # Slices, because of an index into them it is known that it is not below 0.
        refs = n[2 * b + B_REF + begin : 2 * b + B_REF + begin + size]
        room = ids[count : count + size]
        several = np.int32(0)
        for s in range(size):
            room[s] = refs[s]
            several |= refs[s]
        if several >= 0:
            count += size
            continue
        for s in range(size):
            if refs[s] >= 0:
                ids[count] = refs[s]
                count += 1
            else:
                count = _list_ring(m, n, -(1 + refs[s]), ids, count)
    return count


@inlined
def _fetch_ahead(m: Words, b: int) -> None:
    """Let the count and the references of a block be fetched: a large table is in no cache."""
    prefetch(m, b + B_COUNT)
    for word in range(B_REF // 2, B_RING // 2, 8):
        prefetch(m, b + word)


@jit
def _list_ring(m: Words, n: Numbers, ring: int, ids: Numbers, count: int) -> int:
    first = n[2 * class_at(m, n[ring_at(m, ring) + R_FRONT]) + C_FIRST]
    return slots_between(m, n, first, n[2 * slot_at(m, first) + S_PREV], ids, count)
