"""What do the events of a block find in the tiles of a cluster?

Tiles are the outer loop and events the inner one: the bits of a tile are read from the nearest
cache. First which events find anything, without a branch; then what, verified by the intervals.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.entries import program_in
from driftline.kernels.jit import allocating, inlined, jit, trailing_zeros
from driftline.kernels.layout import (
    BIG,
    BIG_WORDS,
    C_FAMILIES,
    C_FAMILIES_N,
    CELLS,
    CHECK,
    DIMS_MAX,
    F_AXES,
    F_BIGS,
    F_COUNT,
    F_DIMS,
    F_FROM,
    F_RULERS,
    F_TILES,
    F_TO,
    MISSING,
    R_AXIS,
    R_NUMBER,
    REF_BITS,
    SMALL,
)
from driftline.kernels.programs import satisfied
from driftline.kernels.rulers import cell_of
from driftline.kernels.tiles import rows_at
from driftline.kernels.types import Bytes, Codes, Words

# Unsigned offsets in the innermost loops: a signed one might be negative, which costs a look each.
u64 = np.uint64
_REF = (1 << REF_BITS) - 1
NO_CELL = 255

# Of which events of a block is the cell on a ruler known? Later ones outweigh earlier ones.
_ALL, _SOME, _NONE = 1, 2, 3


@allocating
def scan_families(
    m: Words,
    m8: Bytes,
    cluster: int,
    columns: Words,
    keys: Words,
    block: int,
    size: int,
    texts: Bytes,
    members: Words,
    count: int,
    codes: Codes,
    coded: Codes,
    pairs: Words,
    found: int,
) -> tuple[Words, int]:
    """Write event << 32 | ref for what the events among `members` find in the cluster's tiles."""
    rows = np.empty(DIMS_MAX, np.int64)
    fitting = np.empty(count, np.int64)
    hits = np.empty(count, np.int64)
    words = np.empty((count + 1) * BIG_WORDS, np.int64)
    for place in range(m[cluster + C_FAMILIES_N]):
        family = m[m[cluster + C_FAMILIES] + place]
        if m[family + F_COUNT] == 0:
            continue
        dims = m[family + F_DIMS]
        state = _ALL
        for dim in range(dims):
            ruler = m[family + F_RULERS + dim]
            number = m[ruler + R_NUMBER]
            if coded[number] == 0:
                _code(m, ruler, columns, keys, block, size, codes, coded)
            state = max(state, coded[number])
            rows[dim] = number
        if state == _NONE:
            continue
        # Which events does it reach? A missing key is reached by nothing.
        fits = count
        reached = members
        if state == _SOME or m[family + F_BIGS] > 0:
            fits = _reached(m, family, dims, columns, keys, block, members, count, fitting)
            reached = fitting
        pairs, found = _scan_family(
            m,
            m8,
            family,
            dims,
            rows,
            columns,
            keys,
            block,
            texts,
            reached,
            fits,
            codes,
            hits,
            words,
            pairs,
            found,
        )
    return pairs, found


@jit
def _reached(
    m: Words,
    family: int,
    dims: int,
    columns: Words,
    keys: Words,
    block: int,
    members: Words,
    count: int,
    fitting: Words,
) -> int:
    """Write the events among `members` that a family reaches on all its axes; their number."""
    for at in range(count):
        fitting[at] = members[at]
    for dim in range(dims):
        column = u64(columns[m[family + F_AXES + dim]])
        start, end = m[family + F_FROM + dim], m[family + F_TO + dim]
        fits = u64(0)
        for at in range(u64(count)):
            e = fitting[at]
            x = keys[column, u64(block) + u64(e)]
            fitting[fits] = e
            fits += u64(start <= x) & u64(x <= end)
        count = np.int64(fits)
    return count


@jit
def _code(
    m: Words,
    ruler: int,
    columns: Words,
    keys: Words,
    block: int,
    size: int,
    codes: Codes,
    coded: Codes,
) -> None:
    """The cells of a block of events on a ruler; NO_CELL where an event has no value there."""
    number = m[ruler + R_NUMBER]
    column = columns[m[ruler + R_AXIS]]
    if column < 0:
        coded[number] = _NONE
        return
    state = _ALL
    for e in range(size):
        key = keys[column, block + e]
        if key == MISSING:
            codes[number, e] = NO_CELL
            state = _SOME
        else:
            codes[number, e] = cell_of(m, ruler, key)
    coded[number] = state


@allocating
def _scan_family(
    m: Words,
    m8: Bytes,
    family: int,
    dims: int,
    rows: Words,
    columns: Words,
    keys: Words,
    block: int,
    texts: Bytes,
    members: Words,
    count: int,
    codes: Codes,
    hits: Words,
    words: Words,
    pairs: Words,
    found: int,
) -> tuple[Words, int]:
    bigs = m[family + F_BIGS]
    smalls = (m[family + F_COUNT] - bigs * BIG + SMALL - 1) >> 6
    # Three or four axes at a time; a family of fewer looks twice at one, which changes nothing.
    d1, d2, d3 = min(1, dims - 1), min(2, dims - 1), min(3, dims - 1)
    r0, r1, r2, r3 = codes[rows[0]], codes[rows[d1]], codes[rows[d2]], codes[rows[d3]]
    c0 = _column(m, family, columns, 0)
    c1, c2 = _column(m, family, columns, d1), _column(m, family, columns, d2)
    for number in range(bigs + smalls):
        tile = m[m[family + F_TILES] + number]
        if len(pairs) < found + BIG * count:
            pairs = _more_pairs(pairs, found, BIG * count)
        # First which events find anything, without a branch; then what.
        hit = u64(0)
        if number < bigs:
            b0 = u64(tile + rows_at(dims, BIG))
            b1, b2 = b0 + u64(d1 * CELLS * BIG_WORDS), b0 + u64(d2 * CELLS * BIG_WORDS)
            b3 = b0 + u64(d3 * CELLS * BIG_WORDS)
            for at in range(u64(count)):
                e = u64(members[at])
                a0, a1 = b0 + (u64(r0[e]) << u64(3)), b1 + (u64(r1[e]) << u64(3))
                a2, a3 = b2 + (u64(r2[e]) << u64(3)), b3 + (u64(r3[e]) << u64(3))
                any_bit = np.int64(0)
                first_word = hit << u64(3)
                for word in range(u64(BIG_WORDS)):
                    bits = m[a0 + word] & m[a1 + word] & m[a2 + word] & m[a3 + word]
                    words[first_word + word] = bits
                    any_bit |= bits
                hits[hit] = np.int64(e)
                hit += u64(any_bit != 0)
            for at in range(hit):
                e = u64(hits[at])
                event = u64(block) + e
                x0, x1, x2 = keys[c0, event], keys[c1, event], keys[c2, event]
                for word in range(u64(BIG_WORDS)):
                    bits = words[(at << u64(3)) + word]
                    for dim in range(4, dims):
                        cell = codes[rows[dim], e]
                        bits &= m[b0 + u64((dim * CELLS + cell) * BIG_WORDS) + word]
                    if bits != 0:
                        found = _verify(
                            m,
                            m8,
                            family,
                            u64(tile) + u64(64) * word,
                            u64(BIG),
                            bits,
                            dims,
                            d1,
                            d2,
                            x0,
                            x1,
                            x2,
                            columns,
                            keys,
                            event,
                            e,
                            texts,
                            pairs,
                            found,
                        )
        else:
            b0 = u64(tile + rows_at(dims, SMALL))
            b1, b2 = b0 + u64(d1 * CELLS), b0 + u64(d2 * CELLS)
            for at in range(u64(count)):
                e = u64(members[at])
                bits = m[b0 + u64(r0[e])] & m[b1 + u64(r1[e])] & m[b2 + u64(r2[e])]
                for dim in range(3, dims):
                    bits &= m[b0 + u64(dim * CELLS + codes[rows[dim], e])]
                hits[hit] = np.int64(e)
                words[hit] = bits
                hit += u64(bits != 0)
            for at in range(hit):
                e, bits = u64(hits[at]), words[at]
                event = u64(block) + e
                x0, x1, x2 = keys[c0, event], keys[c1, event], keys[c2, event]
                found = _verify(
                    m,
                    m8,
                    family,
                    u64(tile),
                    u64(SMALL),
                    bits,
                    dims,
                    d1,
                    d2,
                    x0,
                    x1,
                    x2,
                    columns,
                    keys,
                    event,
                    e,
                    texts,
                    pairs,
                    found,
                )
    return pairs, found


@inlined
def _column(m: Words, family: int, columns: Words, dim: int) -> int:
    return u64(columns[m[family + F_AXES + dim]])


@inlined
def _verify(
    m: Words,
    m8: Bytes,
    family: int,
    slots: int,
    size: int,
    bits: int,
    dims: int,
    d1: int,
    d2: int,
    x0: int,
    x1: int,
    x2: int,
    columns: Words,
    keys: Words,
    event: int,
    e: int,
    texts: Bytes,
    pairs: Words,
    found: int,
) -> int:
    """Of the candidates among 64 slots, write those that the event satisfies."""
    low0 = slots + size
    low1, low2 = low0 + u64(2 * d1) * size, low0 + u64(2 * d2) * size
    to = u64(found)
    while bits != 0:
        slot = u64(trailing_zeros(bits))
        bits &= bits - 1
        inside = u64(m[low0 + slot] <= x0) & u64(x0 <= m[low0 + size + slot])
        inside &= u64(m[low1 + slot] <= x1) & u64(x1 <= m[low1 + size + slot])
        inside &= u64(m[low2 + slot] <= x2) & u64(x2 <= m[low2 + size + slot])
        for dim in range(3, dims):
            x = keys[_column(m, family, columns, dim), event]
            low = low0 + u64(2 * dim) * size + slot
            inside &= u64(m[low] <= x) & u64(x <= m[low + size])
        ref = m[slots + slot]
        if (ref & CHECK) != 0 and inside != 0:
            inside = u64(satisfied(m, m8, program_in(ref), columns, keys, np.int64(event), texts))
        pairs[to] = (np.int64(e) << 32) | (ref & _REF)
        to += inside
    return np.int64(to)


@allocating
def _more_pairs(pairs: Words, found: int, more: int) -> Words:
    larger = np.empty(2 * (found + more), np.int64)
    larger[:found] = pairs[:found]
    return larger


@jit
def by_event(pairs: Words, found: int, size: int, starts: Words, refs: Words) -> None:
    """Group the pairs by event: those of event e are refs[starts[e]:starts[e + 1]]."""
    starts[: size + 1] = 0
    for at in range(found):
        starts[pairs[at] >> 32] += 1
    total = 0
    for e in range(size):
        total += starts[e]
        starts[e] = total
    starts[size] = total
    for at in range(found - 1, -1, -1):
        e = pairs[at] >> 32
        starts[e] -= 1
        refs[starts[e]] = pairs[at] & _REF
