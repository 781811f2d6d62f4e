"""How do subscriptions come and go?

A new one with a radius that nobody has is an entry of its own, alone in it. One with the radius of
others joins the last entry of that radius, if all of an entry stay in the order of a circle, see
`fits`; if not, or where entries must have one centre and it has another, or where the circle has no
label left, it begins another entry of that radius, with the next ring number.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.jit import inlined, jit
from driftline.kernels.moved_events import AGAIN, DONE, PACK
from driftline.kernels.moved_labels import label_of
from driftline.kernels.moved_layout import (
    B_COUNT,
    B_LEAST,
    B_MOST,
    B_RADIUS,
    B_REF,
    B_RING,
    BLOCK_WORDS,
    BLOCKS,
    BLOCKS_CAP,
    C_NEXT,
    C_RING,
    CLASSES_CAP,
    CLASSES_USED,
    COUNT,
    DATA,
    HOMES,
    JOINS,
    LOWS,
    MEASURE,
    NONE,
    NUMBERS_USED,
    POSITIONS,
    R_COUNT,
    R_HOME,
    RANKED,
    RINGS_CAP,
    RINGS_USED,
    S_CLASS,
    SHIFT_BY,
    SLOTS_CAP,
    SLOTS_MAX,
    SLOTS_USED,
    STOPPED,
    VALUE,
    Floats,
    block,
    class_at,
    end_down,
    end_up,
    ring_at,
    slot_at,
)
from driftline.kernels.moved_rings import (
    begin_ring,
    centre_of,
    collapse,
    find_class,
    find_place,
    least_centre,
    most_centre,
    ring_delete,
    ring_insert,
)
from driftline.kernels.moved_tree import (
    close_position,
    open_position,
    push_path,
    refresh_between,
    refresh_block,
    refresh_path,
)
from driftline.kernels.types import Numbers, Words

# Entries.


@jit
def seek(m: Words, f: Floats, radius: float) -> int:
    """The last position whose low is at most this radius."""
    at, left = m[LOWS], m[BLOCKS]
    while left > 1:
        half = left >> 1
        if f[at + half] <= radius:
            at += half
        left -= half
    return at - m[LOWS]


@inlined
def _slot_behind(m: Words, f: Floats, b: int, radius: float) -> int:
    """The first entry of a block with a larger radius, or one behind the last."""
    at, left = 0, m[b + B_COUNT]
    while left > 0:
        half = left >> 1
        if f[b + B_RADIUS + at + half] <= radius:
            at += half + 1
            left -= half + 1
        else:
            left = half
    return at


@inlined
def _move_entry(f: Floats, n: Numbers, to: int, t: int, b: int, s: int) -> None:
    f[to + B_RADIUS + t] = f[b + B_RADIUS + s]
    f[to + B_LEAST + t] = f[b + B_LEAST + s]
    f[to + B_MOST + t] = f[b + B_MOST + s]
    n[2 * to + B_REF + t] = n[2 * b + B_REF + s]
    n[2 * to + B_RING + t] = n[2 * b + B_RING + s]


@inlined
def _settle(m: Words, n: Numbers, ref: int, number: int) -> None:
    """An entry is in the block with this number."""
    if ref >= 0:
        n[m[HOMES] + ref] = 1 + number
    else:
        n[ring_at(m, -(1 + ref)) + R_HOME] = number


@jit
def _split(m: Words, f: Floats, n: Numbers, p: int) -> None:
    """Give the upper half of a block, to which nothing waits, to a new one behind it."""
    number = m[NUMBERS_USED]
    m[NUMBERS_USED] += 1
    old, new = block(m, n, p), m[DATA] + number * BLOCK_WORDS
    half = SLOTS_MAX // 2
    for s in range(half):
        _move_entry(f, n, new, s, old, half + s)
        _settle(m, n, n[2 * new + B_REF + s], number)
    m[old + B_COUNT] = half
    m[new + B_COUNT] = half
    open_position(m, f, n, p + 1, number, f[new + B_RADIUS])
    refresh_block(m, f, n, p)
    refresh_block(m, f, n, p + 1)
    refresh_between(m, f, p, m[BLOCKS] - 1)


@jit
def _add_entry(
    m: Words,
    f: Floats,
    n: Numbers,
    p: int,
    s: int,
    id: int,
    radius: float,
    centre: float,
    ring: int,
) -> None:
    """A new entry at a slot of the block at a position, to which nothing waits."""
    b = block(m, n, p)
    if m[b + B_COUNT] == SLOTS_MAX:
        _split(m, f, n, p)
        if s > SLOTS_MAX // 2:
            p, s = p + 1, s - SLOTS_MAX // 2
            b = block(m, n, p)
    for slot in range(m[b + B_COUNT], s, -1):
        _move_entry(f, n, b, slot, b, slot - 1)
    f[b + B_RADIUS + s] = radius
    f[b + B_LEAST + s] = centre
    f[b + B_MOST + s] = centre
    n[2 * b + B_REF + s] = id
    n[2 * b + B_RING + s] = ring
    m[RANKED] += 1 if ring > 0 else 0
    m[b + B_COUNT] += 1
    _settle(m, n, id, (b - m[DATA]) // BLOCK_WORDS)
    if s == 0 and p > 0:
        f[m[LOWS] + p] = radius
    refresh_path(m, f, n, p)


@jit
def _remove_entry(m: Words, f: Floats, n: Numbers, p: int, s: int) -> None:
    """Take an entry out of a block, to which nothing waits."""
    b = block(m, n, p)
    last = m[b + B_COUNT] - 1
    m[RANKED] -= 1 if n[2 * b + B_RING + s] > 0 else 0
    for slot in range(s, last):
        _move_entry(f, n, b, slot, b, slot + 1)
    m[b + B_COUNT] = last
    if last == 0 and m[BLOCKS] > 1:
        close_position(m, f, n, p)
        return
    if s == 0 and p > 0:
        f[m[LOWS] + p] = f[b + B_RADIUS]
    refresh_path(m, f, n, p)


# Subscriptions.


@inlined
def fits(measure: int, least: float, most: float, centre: float, radius: float) -> bool:
    """May one with this centre join those between two centres, and all stay in a circle?

    Whoever is told first on the way up must come behind all others, and on the way down before
    them [VALUE, Lemma 1].
    """
    low, high = min(least, centre), max(most, centre)
    return high <= end_up(measure, low, radius) and end_down(measure, high, radius) <= low


@inlined
def _joins(m: Words, f: Floats, b: int, s: int, centre: float) -> bool:
    least, most = f[b + B_LEAST + s], f[b + B_MOST + s]
    if least == centre and most == centre:
        return True
    return m[JOINS] == 1 and fits(m[MEASURE], least, most, centre, f[b + B_RADIUS + s])


@jit
def _join(m: Words, f: Floats, n: Numbers, p: int, s: int, id: int, centre: float) -> bool:
    """One more subscription for an entry of a block, to which nothing waits; False: it is full."""
    b = block(m, n, p)
    ref = n[2 * b + B_REF + s]
    if ref >= 0:
        ring = m[RINGS_USED]
        m[RINGS_USED] += 1
        slot = begin_ring(m, f, n, ring, ref, f[b + B_LEAST + s], 0)
        n[2 * b + B_REF + s] = -(1 + ring)
        n[m[HOMES] + ref] = -(1 + slot)
        _settle(m, n, -(1 + ring), (b - m[DATA]) // BLOCK_WORDS)
    else:
        ring = -(1 + ref)
        if f[b + B_LEAST + s] == f[b + B_MOST + s]:
            collapse(m, f, n, ring, f[b + B_LEAST + s])
    slot = ring_insert(m, f, n, ring, id, centre, f[b + B_RADIUS + s])
    if slot == NONE:
        return False
    n[m[HOMES] + id] = -(1 + slot)
    if centre < f[b + B_LEAST + s] or centre > f[b + B_MOST + s]:
        f[b + B_LEAST + s] = least_centre(m, f, n, ring)
        f[b + B_MOST + s] = most_centre(m, f, n, ring)
        refresh_path(m, f, n, p)
    return True


@jit
def _shared_centre(m: Words, f: Floats, n: Numbers, radius: float) -> float:
    """The centre nearest to the value of those with this radius, the lower of two; NaN: none."""
    value, below, above = f[VALUE], -np.inf, np.inf
    p = seek(m, f, radius)
    s = _slot_behind(m, f, block(m, n, p), radius) - 1
    while True:
        if s < 0:
            p -= 1
            if p < 0:
                break
            s = m[block(m, n, p) + B_COUNT] - 1
            if s < 0:
                break
        b = block(m, n, p)
        if f[b + B_RADIUS + s] != radius:
            break
        push_path(m, f, n, p)
        below, above = _nearest(m, f, n, b, s, value, below, above)
        s -= 1
    if below == -np.inf:
        return above if above < np.inf else np.nan
    return below if value - below <= above - value else above


@inlined
def _nearest(
    m: Words, f: Floats, n: Numbers, b: int, s: int, value: float, below: float, above: float
) -> tuple[float, float]:
    """The nearest centres at or below and above a value, those of an entry included."""
    least, most, ref = f[b + B_LEAST + s], f[b + B_MOST + s], n[2 * b + B_REF + s]
    if most <= value:
        return max(below, most), above
    if least > value:
        return below, min(above, least)
    number = find_place(m, f, n, -(1 + ref), value)
    behind = n[2 * class_at(m, number) + C_NEXT]
    return max(below, centre_of(m, f, number)), min(above, centre_of(m, f, behind))


@jit
def _insert(m: Words, f: Floats, n: Numbers, id: int, radius: float, centre: float) -> None:
    p = seek(m, f, radius)
    b = block(m, n, p)
    s = _slot_behind(m, f, b, radius)
    push_path(m, f, n, p)
    m[COUNT] += 1
    if s == 0 or f[b + B_RADIUS + s - 1] != radius:
        _add_entry(m, f, n, p, s, id, radius, centre, 0)
    elif not _joins(m, f, b, s - 1, centre) or not _join(m, f, n, p, s - 1, id, centre):
        _add_entry(m, f, n, p, s, id, radius, centre, n[2 * b + B_RING + s - 1] + 1)


@jit
def insert_many(
    m: Words,
    f: Floats,
    n: Numbers,
    ids: Words,
    radii: Floats,
    centres: Floats,
    shared: bool,
    start: int,
) -> int:
    """Put subscriptions in, from number `start` on.

    A centre that is NaN is the value, or, if shared, one that somebody with this radius has: it is
    written there. Says DONE, or PACK or AGAIN: to be called again from m[STOPPED] on, when all is
    packed anew, or when it has been noted which labels have been shifted.
    """
    for i in range(start, len(ids)):
        m[STOPPED] = i
        if (
            m[NUMBERS_USED] == m[BLOCKS_CAP]
            or m[SLOTS_USED] + 2 > m[SLOTS_CAP]
            or m[CLASSES_USED] + 2 > m[CLASSES_CAP]
            or m[RINGS_USED] == m[RINGS_CAP]
        ):
            return PACK
        if shared and centres[i] != centres[i]:
            centres[i] = _shared_centre(m, f, n, radii[i])
        if centres[i] != centres[i]:
            centres[i] = f[VALUE]
        _insert(m, f, n, ids[i], radii[i], centres[i])
        if m[SHIFT_BY] != 0:
            m[STOPPED] = i + 1
            return AGAIN
    return DONE


@inlined
def _entry_of(m: Words, n: Numbers, id: int) -> int:
    """The place of the entry that a subscription is in."""
    home = n[m[HOMES] + id]
    if home > 0:
        ref, number = id, home - 1
    else:
        first = n[2 * slot_at(m, -(1 + home)) + S_CLASS]
        ring = n[2 * class_at(m, first) + C_RING]
        ref, number = -(1 + ring), n[ring_at(m, ring) + R_HOME]
    b, s = m[DATA] + number * BLOCK_WORDS, 0
    while n[2 * b + B_REF + s] != ref:
        s += 1
    return n[m[POSITIONS] + number] * SLOTS_MAX + s


@jit
def delete_many(m: Words, f: Floats, n: Numbers, ids: Words) -> None:
    """Take subscriptions out, which are there."""
    for i in range(len(ids)):
        id = ids[i]
        place, home = _entry_of(m, n, id), n[m[HOMES] + id]
        p, s = place // SLOTS_MAX, place % SLOTS_MAX
        b = block(m, n, p)
        push_path(m, f, n, p)
        m[COUNT] -= 1
        n[m[HOMES] + id] = 0
        if home > 0:
            _remove_entry(m, f, n, p, s)
            continue
        ring, least, most = -(1 + n[2 * b + B_REF + s]), f[b + B_LEAST + s], f[b + B_MOST + s]
        if least == most:
            collapse(m, f, n, ring, least)
        ring_delete(m, f, n, ring, -(1 + home))
        if n[ring_at(m, ring) + R_COUNT] == 0:
            _remove_entry(m, f, n, p, s)
            continue
        f[b + B_LEAST + s] = least_centre(m, f, n, ring)
        f[b + B_MOST + s] = most_centre(m, f, n, ring)
        if f[b + B_LEAST + s] != least or f[b + B_MOST + s] != most:
            refresh_path(m, f, n, p)


@jit
def read_many(
    m: Words,
    f: Floats,
    n: Numbers,
    ids: Words,
    radii: Floats,
    centres: Floats,
    rings: Words,
    labels: Words,
) -> None:
    """Write the radii, centres, ring numbers and labels of subscriptions, which are there."""
    for i in range(len(ids)):
        place, home = _entry_of(m, n, ids[i]), n[m[HOMES] + ids[i]]
        p, s = place // SLOTS_MAX, place % SLOTS_MAX
        b = block(m, n, p)
        push_path(m, f, n, p)
        radii[i] = f[b + B_RADIUS + s]
        centres[i] = f[b + B_LEAST + s]
        rings[i] = n[2 * b + B_RING + s]
        labels[i] = 0
        if home < 0:
            slot = -(1 + home)
            labels[i] = label_of(m, slot)
            if f[b + B_LEAST + s] != f[b + B_MOST + s]:
                centres[i] = centre_of(m, f, find_class(m, n, slot))
