"""Which subscriptions are told of a value?

What is told is said in rows: all entries from one place to another, or an arc of one ring. Rows are
as long as can be: between two of an event there is always somebody who is not told. A place is a
position and a slot of the block there, position * 64 + slot; a last slot of 63 means the end of the
block, however many it has.

Values are compared with end points, both of which round the same way for all, so that what is said
is what the definition says, to the last bit. Where only more than the radius is enough, the
neighbour of a value is compared: `value > end` is `the float below the value >= end`.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.jit import inlined, jit
from driftline.kernels.moved_labels import label_of
from driftline.kernels.moved_layout import (
    AT_CHILD,
    AT_GROUP,
    AT_LEVEL,
    AT_ROW,
    B_COUNT,
    B_LEAST,
    B_MOST,
    B_RADIUS,
    B_REF,
    B_RING,
    BLOCKS,
    COUNT,
    FANOUT,
    FAR_DOWN,
    FAR_UP,
    LEVELS,
    MEASURE,
    NEAR_DOWN,
    NEAR_UP,
    NONE,
    R_MAX,
    R_MIN,
    RANKED,
    SLOTS_MAX,
    STOPPED,
    TOLD_FIRST,
    TOLD_LAST,
    VALUE,
    Floats,
    block,
    end_down,
    end_up,
    group,
)
from driftline.kernels.moved_rings import (
    collapse,
    least_centre,
    most_centre,
    ring_falls,
    ring_rises,
)
from driftline.kernels.moved_tree import (
    larger,
    lesser,
    push_path,
    push_to_block,
    push_to_group,
    refresh_group,
    refresh_path,
    reset_child,
)
from driftline.kernels.types import Numbers, Words

# A row.
LOW, HIGH = 0, 1  # radii; floats
FIRST_RING, LAST_RING = 2, 3  # of the lowest and of the highest radius
FIRST_LABEL, LAST_LABEL = 4, 5  # of an arc
SLOTS_TOLD = 6  # of an arc: the first and the last slot; NONE: all of the entries
PLACES = 7  # the first and the last, each of 32 bits
ROW = 8

# What kernels say.
DONE, NO_ROOM, PACK, AGAIN = range(4)

WIDE = 32
NARROW = (1 << 32) - 1
_ROOM = 2 * SLOTS_MAX  # more rows than one block can make


@inlined
def _extend(o: Words, of: Floats, row: int, low: float, high: float, first: int, last: int) -> int:
    """All from one place to another are told: a new row, or more of the last one.

    A row's number is doubled, and odd while it may be extended.
    """
    at = row >> 1
    if (row & 1) == 0:
        of[at, LOW] = low
        o[at, FIRST_RING] = 0
        o[at, LAST_RING] = 0
        o[at, SLOTS_TOLD] = NONE
        o[at, PLACES] = first << WIDE
    of[at, HIGH] = high
    o[at, PLACES] = (o[at, PLACES] >> WIDE << WIDE) | last
    return row | 1


@inlined
def _close(row: int) -> int:
    """Somebody is not told: a row ends."""
    return (row + 1) >> 1 << 1


@inlined
def _write_arc(
    m: Words, o: Words, of: Floats, row: int, radius: float, number: int, place: int
) -> int:
    """Some of a ring are told."""
    at = _close(row) >> 1
    first, last = m[TOLD_FIRST], m[TOLD_LAST]
    of[at, LOW] = radius
    of[at, HIGH] = radius
    o[at, FIRST_RING] = number
    o[at, LAST_RING] = number
    o[at, FIRST_LABEL] = label_of(m, first)
    o[at, LAST_LABEL] = label_of(m, last)
    o[at, SLOTS_TOLD] = (first << WIDE) | last
    o[at, PLACES] = (place << WIDE) | place
    return (at + 1) << 1


@jit
def _tell_block(
    m: Words,
    f: Floats,
    n: Numbers,
    a: int,
    j: int,
    p: int,
    value: float,
    probe: float,
    up: bool,
    o: Words,
    of: Floats,
    row: int,
) -> int:
    """Tell those of a block who are concerned, and say anew what is in it."""
    b, measure = block(m, n, p), m[MEASURE]
    push_to_block(m, f, a, j, b)
    count = m[b + B_COUNT]
    # Slices, because of an index into them it is known that it is not below 0.
    radii = f[b + B_RADIUS : b + B_RADIUS + count]
    leasts, mosts = f[b + B_LEAST : b + B_LEAST + count], f[b + B_MOST : b + B_MOST + count]
    near_up, far_up, near_down, far_down = np.inf, -np.inf, -np.inf, np.inf
    for s in range(count):
        radius, least, most = radii[s], leasts[s], mosts[s]
        if up:
            told = end_up(measure, least, radius) <= probe
        else:
            told = end_down(measure, most, radius) >= probe
        if not told:
            row = _close(row)
        else:
            if up:
                whole = least == most or end_up(measure, most, radius) <= probe
            else:
                whole = least == most or end_down(measure, least, radius) >= probe
            if whole:
                place = p * SLOTS_MAX + s
                row = _extend(o, of, row, radius, radius, place, place)
                least, most = value, value
            else:
                row = _tell_part(m, f, n, b, s, p, value, probe, up, o, of, row)
                ring = -(1 + n[2 * b + B_REF + s])
                least, most = least_centre(m, f, n, ring), most_centre(m, f, n, ring)
            leasts[s] = least
            mosts[s] = most
        near_up = lesser(near_up, end_up(measure, least, radius))
        far_up = larger(far_up, end_up(measure, most, radius))
        near_down = larger(near_down, end_down(measure, most, radius))
        far_down = lesser(far_down, end_down(measure, least, radius))
    f[a + NEAR_UP + j], f[a + FAR_UP + j] = near_up, far_up
    f[a + NEAR_DOWN + j], f[a + FAR_DOWN + j] = near_down, far_down
    return row


@jit
def _tell_part(
    m: Words,
    f: Floats,
    n: Numbers,
    b: int,
    s: int,
    p: int,
    value: float,
    probe: float,
    up: bool,
    o: Words,
    of: Floats,
    row: int,
) -> int:
    """Tell some of an entry."""
    ring, radius = -(1 + n[2 * b + B_REF + s]), f[b + B_RADIUS + s]
    if up:
        ring_rises(m, f, n, ring, radius, value, probe)
    else:
        ring_falls(m, f, n, ring, radius, value, probe)
    return _write_arc(m, o, of, row, radius, n[2 * b + B_RING + s], p * SLOTS_MAX + s)


@jit
def _tell_tree(
    m: Words,
    f: Floats,
    n: Numbers,
    value: float,
    probe: float,
    up: bool,
    o: Words,
    of: Floats,
) -> int:
    """Tell all who are concerned; the number of rows, or -1: no room, to be called again.

    In the order of the entries: down into a child that is told in part, up when its group is done.
    """
    top = m[LEVELS] - 1
    level, g, j, row = m[AT_LEVEL], m[AT_GROUP], m[AT_CHILD], m[AT_ROW]
    while True:
        if (row >> 1) + _ROOM > len(o):
            m[AT_LEVEL], m[AT_GROUP], m[AT_CHILD], m[AT_ROW] = level, g, j, row
            return -1
        if j == FANOUT:
            if level == top:
                break
            refresh_group(m, f, level, g)
            j = (g & 7) + 1
            g >>= 3
            level += 1
            continue
        a = group(m, level, g)
        if up:
            skipped = probe < f[a + NEAR_UP + j]
            whole = probe >= f[a + FAR_UP + j]
        else:
            skipped = probe > f[a + NEAR_DOWN + j]
            whole = probe <= f[a + FAR_DOWN + j]
        child = 8 * g + j
        if skipped:
            row = _close(row)
            j += 1
        elif whole:
            first = child << (3 * level)
            last = (child + 1) << (3 * level)
            row = _extend(
                o,
                of,
                row,
                f[a + R_MIN + j],
                f[a + R_MAX + j],
                first * SLOTS_MAX,
                last * SLOTS_MAX - 1,
            )
            reset_child(f, a, j, m[MEASURE], value)
            j += 1
        elif level == 0:
            row = _tell_block(m, f, n, a, j, child, value, probe, up, o, of, row)
            j += 1
        else:
            push_to_group(m, f, a, j, group(m, level - 1, child))
            level -= 1
            g, j = child, 0
    return _close(row) >> 1


@inlined
def _begin(m: Words, count: int) -> None:
    m[AT_LEVEL], m[AT_GROUP], m[AT_CHILD], m[AT_ROW] = m[LEVELS] - 1, 0, 0, 2 * count


@jit
def tell_many(
    m: Words,
    f: Floats,
    n: Numbers,
    values: Floats,
    probes: Floats,
    o: Words,
    of: Floats,
    ends: Words,
    start: int,
) -> int:
    """Tell of one value after the other, from number `start` on.

    Of each what it is compared with is given too, see above: itself, or its neighbours below and
    above. The rows of value i are those from ends[i] to ends[i + 1]. Says DONE, or NO_ROOM: to be
    called again from m[STOPPED] on, with more room for rows.
    """
    for i in range(start, len(values)):
        value = values[i]
        up = value > f[VALUE]
        count = ends[i]
        if value != f[VALUE] and m[COUNT] > 0:
            if m[AT_ROW] < 0:
                _begin(m, count)
            count = _tell_tree(m, f, n, value, probes[i, 0 if up else 1], up, o, of)
            if count < 0:
                m[STOPPED] = i
                return NO_ROOM
            m[AT_ROW] = -1
            if m[RANKED] > 0:
                _write_rings(m, n, o, ends[i], count)
        f[VALUE] = value
        ends[i + 1] = count
    return DONE


@jit
def _write_rings(m: Words, n: Numbers, o: Words, start: int, end: int) -> None:
    """Say which of the rings of its lowest and of its highest radius are in a row."""
    for row in range(start, end):
        if o[row, SLOTS_TOLD] == NONE:
            first, last = o[row, PLACES] >> WIDE, o[row, PLACES] & NARROW
            b = block(m, n, first // SLOTS_MAX)
            o[row, FIRST_RING] = n[2 * b + B_RING + first % SLOTS_MAX]
            p = min(last // SLOTS_MAX, m[BLOCKS] - 1)
            b = block(m, n, p)
            o[row, LAST_RING] = n[2 * b + B_RING + end_in(m, b, p, last) - 1]


@inlined
def end_in(m: Words, b: int, p: int, last: int) -> int:
    """How many entries of a block are not behind the last place?"""
    count = m[b + B_COUNT]
    return min(count, last % SLOTS_MAX + 1) if p == last // SLOTS_MAX else count


# One ring alone.


@jit
def tell_ring(
    m: Words,
    f: Floats,
    n: Numbers,
    values: Floats,
    probes: Floats,
    o: Words,
    of: Floats,
    ends: Words,
    start: int,
) -> int:
    """The same where there is one entry, a ring: without the tree, which is put right at last."""
    b, measure = block(m, n, 0), m[MEASURE]
    radius, ring, number = f[b + B_RADIUS], -(1 + n[2 * b + B_REF]), n[2 * b + B_RING]
    push_path(m, f, n, 0)
    if f[b + B_LEAST] == f[b + B_MOST]:
        collapse(m, f, n, ring, f[b + B_LEAST])
    said = DONE
    for i in range(start, len(values)):
        value, was, count = values[i], f[VALUE], ends[i]
        if count == len(o):
            m[STOPPED] = i
            said = NO_ROOM
            break
        least, most = least_centre(m, f, n, ring), most_centre(m, f, n, ring)
        told, whole = False, False
        if value > was:
            probe = probes[i, 0]
            told = end_up(measure, least, radius) <= probe
            if told:
                whole = end_up(measure, most, radius) <= probe
                ring_rises(m, f, n, ring, radius, value, probe)
        elif value < was:
            probe = probes[i, 1]
            told = end_down(measure, most, radius) >= probe
            if told:
                whole = end_down(measure, least, radius) >= probe
                ring_falls(m, f, n, ring, radius, value, probe)
        if told:
            _write_arc(m, o, of, 2 * count, radius, number, 0)
            if whole:
                o[count, SLOTS_TOLD] = NONE
            count += 1
        f[VALUE] = value
        ends[i + 1] = count
    f[b + B_LEAST] = least_centre(m, f, n, ring)
    f[b + B_MOST] = most_centre(m, f, n, ring)
    refresh_path(m, f, n, 0)
    return said
