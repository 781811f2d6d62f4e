"""How is everything put into fresh memory, and taken out of it?

In the order of (radius, ring), and within a ring in that of the circle, from its lowest centre on:
so those who are told together lie together.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.jit import inlined, jit
from driftline.kernels.moved_labels import label_of
from driftline.kernels.moved_layout import (
    AT,
    AT_ROW,
    B_COUNT,
    B_LEAST,
    B_MOST,
    B_RADIUS,
    B_REF,
    B_RING,
    BLOCK_WORDS,
    BLOCKS,
    BLOCKS_CAP,
    C_COUNT,
    C_FIRST,
    C_LAST,
    C_NEXT,
    C_PREV,
    COUNT,
    DATA,
    FANOUT,
    FILL,
    HOMES,
    LEVELS,
    LOWS,
    NONE,
    NUMBERS_USED,
    POSITIONS,
    R_BACK,
    R_COUNT,
    R_FINGER,
    R_FRONT,
    R_HOME,
    RANKED,
    RINGS_USED,
    S_CLASS,
    S_ID,
    S_NEXT,
    S_PREV,
    SLOTS_USED,
    VALUE,
    Floats,
    block,
    class_at,
    group,
    ring_at,
    slot_at,
)
from driftline.kernels.moved_rings import centre_of, new_class
from driftline.kernels.moved_tree import clear_child, push_all, refresh_between, refresh_block
from driftline.kernels.types import Numbers, Words


@inlined
def _same_entry(radii: Floats, rings: Words, i: int, j: int) -> bool:
    return radii[i] == radii[j] and rings[i] == rings[j]


@jit
def count_entries(radii: Floats, rings: Words, labels: Words, found: Words) -> None:
    """How many entries are there, how many rings, and how many subscriptions in them?"""
    i, count = 0, len(radii)
    found[:] = 0
    while i < count:
        end = i + 1
        while end < count and _same_entry(radii, rings, i, end):
            end += 1
        found[0] += 1
        if end > i + 1 or labels[i] != 0:
            found[1] += 1
            found[2] += end - i
        i = end


@jit
def pack(
    m: Words,
    f: Floats,
    n: Numbers,
    ids: Words,
    radii: Floats,
    rings: Words,
    labels: Words,
    centres: Floats,
    entries: int,
) -> None:
    """Put subscriptions, in the order said above, into fresh memory that has room for them."""
    groups = m[BLOCKS_CAP]
    for level in range(m[LEVELS]):
        groups = (groups + FANOUT - 1) // FANOUT
        for g in range(groups):
            for j in range(FANOUT):
                clear_child(f, group(m, level, g), j)
    blocks = max(1, (entries + FILL - 1) // FILL)
    m[BLOCKS], m[NUMBERS_USED], m[COUNT], m[AT_ROW] = blocks, blocks, len(ids), -1
    i = 0
    for p in range(blocks):
        b = m[DATA] + p * BLOCK_WORDS
        n[m[AT] + p], n[m[POSITIONS] + p] = p, p
        count = entries * (p + 1) // blocks - entries * p // blocks
        for s in range(count):
            i = _pack_entry(m, f, n, b, s, p, ids, radii, rings, labels, centres, i)
        m[b + B_COUNT] = count
        f[m[LOWS] + p] = f[b + B_RADIUS] if p > 0 else -np.inf
        refresh_block(m, f, n, p)
    refresh_between(m, f, 0, blocks - 1)


@jit
def _pack_entry(
    m: Words,
    f: Floats,
    n: Numbers,
    b: int,
    s: int,
    number: int,
    ids: Words,
    radii: Floats,
    rings: Words,
    labels: Words,
    centres: Floats,
    i: int,
) -> int:
    """Make an entry of the subscriptions from i on; the first that is not in it."""
    end = i + 1
    while end < len(ids) and _same_entry(radii, rings, i, end):
        end += 1
    f[b + B_RADIUS + s] = radii[i]
    f[b + B_LEAST + s] = centres[i]
    f[b + B_MOST + s] = centres[end - 1]
    n[2 * b + B_RING + s] = rings[i]
    m[RANKED] += 1 if rings[i] > 0 else 0
    if end == i + 1 and labels[i] == 0:
        n[2 * b + B_REF + s] = ids[i]
        n[m[HOMES] + ids[i]] = 1 + number
        return end
    ring = m[RINGS_USED]
    m[RINGS_USED] += 1
    n[2 * b + B_REF + s] = -(1 + ring)
    n[ring_at(m, ring) + R_HOME] = number
    _pack_ring(m, f, n, ring, ids, labels, centres, i, end)
    return end


@jit
def _pack_ring(
    m: Words,
    f: Floats,
    n: Numbers,
    ring: int,
    ids: Words,
    labels: Words,
    centres: Floats,
    begin: int,
    end: int,
) -> None:
    q, first = ring_at(m, ring), m[SLOTS_USED]
    last = first + end - begin - 1
    m[SLOTS_USED] = last + 1
    number, back = NONE, NONE
    for i in range(begin, end):
        slot = first + i - begin
        if number == NONE or centre_of(m, f, number) != centres[i]:
            number = new_class(m, f, n, ring, centres[i], slot)
            n[2 * class_at(m, number) + C_PREV] = back
            if back == NONE:
                n[q + R_FRONT], n[q + R_FINGER] = number, number
            else:
                n[2 * class_at(m, back) + C_NEXT] = number
            if centres[i] <= f[VALUE]:
                n[q + R_FINGER] = number
            back = number
        else:
            n[2 * class_at(m, number) + C_COUNT] += 1
        n[2 * class_at(m, number) + C_LAST] = slot
        a = slot_at(m, slot)
        m[a] = labels[i]
        n[2 * a + S_ID], n[2 * a + S_CLASS] = ids[i], number
        n[2 * a + S_PREV] = slot - 1 if slot > first else last
        n[2 * a + S_NEXT] = slot + 1 if slot < last else first
        n[m[HOMES] + ids[i]] = -(1 + slot)
    n[q + R_BACK], n[q + R_COUNT] = number, end - begin


@jit
def unpack(
    m: Words,
    f: Floats,
    n: Numbers,
    ids: Words,
    radii: Floats,
    rings: Words,
    labels: Words,
    centres: Floats,
) -> None:
    """Write all subscriptions, in the order said above."""
    push_all(m, f, n)
    i = 0
    for p in range(m[BLOCKS]):
        b = block(m, n, p)
        for s in range(m[b + B_COUNT]):
            ref = n[2 * b + B_REF + s]
            begin = i
            if ref >= 0:
                ids[i], labels[i], centres[i] = ref, 0, f[b + B_LEAST + s]
                i += 1
            else:
                i = _unpack_ring(m, f, n, -(1 + ref), ids, labels, centres, i)
            for k in range(begin, i):
                radii[k], rings[k] = f[b + B_RADIUS + s], n[2 * b + B_RING + s]
                if f[b + B_LEAST + s] == f[b + B_MOST + s]:
                    centres[k] = f[b + B_LEAST + s]


@inlined
def _unpack_ring(
    m: Words, f: Floats, n: Numbers, ring: int, ids: Words, labels: Words, centres: Floats, i: int
) -> int:
    """Write those of a ring, in the order of their centres."""
    number = n[ring_at(m, ring) + R_FRONT]
    while number != NONE:
        c = class_at(m, number)
        slot = n[2 * c + C_FIRST]
        while True:
            a = slot_at(m, slot)
            ids[i], labels[i], centres[i] = n[2 * a + S_ID], label_of(m, slot), f[c]
            i += 1
            if slot == n[2 * c + C_LAST]:
                break
            slot = n[2 * a + S_NEXT]
        number = n[2 * c + C_NEXT]
    return i
