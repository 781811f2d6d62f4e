"""Whose minimum over a range of x changes when a tuple does, and to what?

The rule of `driftline.stateful.range_min.rule`, compiled, over the blocks of `range_blocks`.
A message is a row: the minimum (+inf: none), inner left and right, outer left and right.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.jit import inlined, jit, prefetch
from driftline.kernels.range_blocks import (
    B_X,
    B_Y,
    BLOCK_WORDS,
    BLOCKS,
    BLOCKS_CAP,
    COUNT,
    DATA,
    HOMES,
    OLD_X,
    OLD_Y,
    PENDING,
    POSITIONS,
    SLOTS,
    SPARE,
    SPARSE,
    STOPPED,
    WRITTEN,
    Floats,
    below,
    block,
    find_left,
    find_right,
    insert,
    least_at,
    remove,
    seek,
    set_y,
    slot_behind,
    slot_of,
    x_at,
)
from driftline.kernels.types import Words

# A message.
MINIMUM, INNER_LEFT, INNER_RIGHT, OUTER_LEFT, OUTER_RIGHT = range(5)
MESSAGE = 5

# What `change_tuples` says.
DONE, NO_ROOM, PACK = range(3)


@jit
def _falls(m: Words, f: Floats, p: int, s: int, x: float, y: float, out: Floats, count: int) -> int:
    """Write the message to those who had more than y before; how many messages there are."""
    if least_at(m, f, p, s, x) <= y:
        return count
    # What stands at x has more than y, so it is not found.
    left, right = find_left(m, f, p, s, y), find_right(m, f, p, s, y)
    out[count, MINIMUM] = y
    out[count, INNER_LEFT] = x
    out[count, INNER_RIGHT] = x
    out[count, OUTER_LEFT] = -np.inf if left < 0 else x_at(m, f, left)
    out[count, OUTER_RIGHT] = np.inf if right < 0 else x_at(m, f, right)
    return count + 1


@jit
def _rises(m: Words, f: Floats, p: int, s: int, x: float, y: float, out: Floats, count: int) -> int:
    """Write the messages to those who have more than y now; how many there are, -1: no room.

    First the peak, then the hull on the left and on the right; each row gets its outer end when the
    next one is found.
    """
    peak = least_at(m, f, p, s, x)
    if peak <= y:
        return count
    if count == len(out):
        return -1
    out[count, MINIMUM] = peak
    out[count, INNER_LEFT] = x
    out[count, INNER_RIGHT] = x
    lefts = count + 1
    rights = _hull_left(m, f, p, s, x, y, out, count)
    if rights < 0:
        return -1
    end = _hull_right(m, f, p, s, x, y, out, count, rights)
    if end < 0:
        return -1
    _join(out, count, lefts, rights, end)
    return end


@inlined
def _hull_left(
    m: Words, f: Floats, p: int, s: int, x: float, y: float, out: Floats, peak: int
) -> int:
    row, least = peak, out[peak, MINIMUM]
    while True:
        place = find_left(m, f, p, s, below(least))
        if place < 0:
            out[row, OUTER_LEFT] = -np.inf
            return row + 1
        p, s = place // SLOTS, place % SLOTS
        at = x_at(m, f, place)
        out[row, OUTER_LEFT] = at
        least = least_at(m, f, p, s, at)
        row += 1
        if least <= y:
            return row
        if row == len(out):
            return -1
        out[row, MINIMUM] = least
        out[row, INNER_LEFT] = at
        out[row, INNER_RIGHT] = x


@inlined
def _hull_right(
    m: Words, f: Floats, p: int, s: int, x: float, y: float, out: Floats, peak: int, rights: int
) -> int:
    # The first row is the peak's, the next ones follow the left ones.
    row, following, least = peak, rights, out[peak, MINIMUM]
    while True:
        place = find_right(m, f, p, s, below(least))
        if place < 0:
            out[row, OUTER_RIGHT] = np.inf
            return following
        p, s = place // SLOTS, place % SLOTS
        at = x_at(m, f, place)
        out[row, OUTER_RIGHT] = at
        least = least_at(m, f, p, s, at)
        if least <= y:
            return following
        if following == len(out):
            return -1
        row = following
        following += 1
        out[row, MINIMUM] = least
        out[row, INNER_LEFT] = x
        out[row, INNER_RIGHT] = at


@inlined
def _join(out: Floats, peak: int, lefts: int, rights: int, end: int) -> None:
    """How far does each message of one side reach on the other? Both fall from row to row.

    Where both sides have the same least y, the left one tells those that contain both.
    """
    far_left = out[rights - 1, OUTER_LEFT]
    far_right = out[end - 1 if end > rights else peak, OUTER_RIGHT]
    j = rights
    for i in range(lefts, rights):
        while j < end and out[j, MINIMUM] >= out[i, MINIMUM]:
            j += 1
        out[i, OUTER_RIGHT] = out[j, INNER_RIGHT] if j < end else far_right
    i = lefts
    for j in range(rights, end):
        while i < rights and out[i, MINIMUM] > out[j, MINIMUM]:
            i += 1
        out[j, OUTER_LEFT] = out[i, INNER_LEFT] if i < rights else far_left


# Changes.


@jit
def _change_y(m: Words, f: Floats, b: int, s: int, y: float, out: Floats, count: int) -> int:
    """Move a tuple up or down; how many messages there are, -1: no room, but it is moved."""
    p = m[m[POSITIONS] + (b - m[DATA]) // BLOCK_WORDS]
    x, old = f[b + B_X + s], f[b + B_Y + s]
    if y < old:
        count = _falls(m, f, p, s, x, y, out, count)
        set_y(m, f, p, s, y)
        return count
    set_y(m, f, p, s, y)
    f[OLD_X], f[OLD_Y] = x, old
    m[WRITTEN] = count
    return _rises(m, f, p, s, x, old, out, count)


@jit
def _expose(m: Words, f: Floats, out: Floats) -> int:
    """Say what has come to light where a tuple was, after the messages that stand already."""
    x = f[OLD_X]
    p = seek(m, f, x)
    return _rises(m, f, p, slot_behind(m, f, block(m, p), x), x, f[OLD_Y], out, m[WRITTEN])


@jit
def _change_one(m: Words, f: Floats, id: int, x: float, y: float, out: Floats, count: int) -> int:
    """Insert, move or (y = +inf) delete; how many messages there are, -1: no room, but it is done.

    There is a free block, and room for a message.
    """
    home = m[m[HOMES] + id]
    b = m[DATA] + (home - 1) * BLOCK_WORDS
    s = slot_of(m, b, id) if home != 0 else 0
    if home != 0 and f[b + B_X + s] == x and y != np.inf:
        return _change_y(m, f, b, s, y, out, count)
    if y != np.inf:
        p = seek(m, f, x)
        count = _falls(m, f, p, slot_behind(m, f, block(m, p), x), x, y, out, count)
    if home != 0:
        f[OLD_X], f[OLD_Y] = f[b + B_X + s], f[b + B_Y + s]
        remove(m, f, b, s)
    if y != np.inf:
        insert(m, f, id, x, y)
    if home == 0:
        return count
    m[WRITTEN] = count
    return _expose(m, f, out)


@jit
def change_tuples(
    m: Words, f: Floats, ids: Words, points: Floats, out: Floats, ends: Words, start: int
) -> int:
    """Make changes one after the other, from number `start` on: rows of x and y, y = +inf: delete.

    The messages of change i are the rows of `out` from ends[i] to ends[i + 1]. Says DONE, or why it
    stopped at change m[STOPPED], to be called again from there: NO_ROOM for its messages in `out`,
    or all must be packed first.
    """
    count = ends[start]
    for i in range(start, len(ids)):
        _fetch_ahead(m, ids, i)
        if m[PENDING] == 1:
            count = _expose(m, f, out)
        else:
            m[STOPPED] = i
            if m[BLOCKS] == m[BLOCKS_CAP] or m[BLOCKS] > SPARE + m[COUNT] // SPARSE:
                return PACK
            if count == len(out):
                return NO_ROOM
            count = _change_one(m, f, ids[i], points[i, 0], points[i, 1], out, count)
        m[PENDING] = 1 if count < 0 else 0
        if count < 0:
            m[STOPPED] = i
            return NO_ROOM
        ends[i + 1] = count
    return DONE


@inlined
def _fetch_ahead(m: Words, ids: Words, i: int) -> None:
    """Let the homes and blocks of changes to come be fetched: a large table is in no cache."""
    if i + 8 < len(ids):
        prefetch(m, m[HOMES] + ids[i + 8])
    if i + 4 < len(ids):
        home = m[m[HOMES] + ids[i + 4]]
        if home != 0:
            b = m[DATA] + (home - 1) * BLOCK_WORDS
            for word in range(0, BLOCK_WORDS, 8):
                prefetch(m, b + word)
