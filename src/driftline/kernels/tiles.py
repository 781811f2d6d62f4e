"""How are many overlapping intervals on several axes looked at together?

A family holds the entries of a cluster that constrain the same axes. It keeps them in tiles of 64
or 512: per axis and cell of its ruler a row of bits, one per entry, set where the entry's interval
touches the cell. The rows of the event's cells, ANDed, leave few candidates, which are verified by
the intervals themselves; the tile has a copy of them, near the bits. Entries are dense: a hole is
filled from the end, and every tile but the last is full. Sixteen small tiles make half of them a
big one, whose rows are a cache line each.

A family of few is not worth its bits: until it has more than four entries it is a mere list of
members, and they stand in chunks. When an axis got a new ruler, a new family of the same axes takes
over, entry by entry, as changes come.

A family of many is divided by where its intervals lie on one axis, into eight parts that are
families too, and may be divided again by another axis. A family remembers from where to where its
intervals reach: most events pass by most parts.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.arena import allocate, allocate_clear, enlarge, release
from driftline.kernels.entries import entry, number_in, program_in
from driftline.kernels.jit import jit
from driftline.kernels.keys import mix
from driftline.kernels.layout import (
    A_LIVE,
    A_RULER,
    BIG,
    BIG_WORDS,
    BORN,
    C_FAMILIES,
    C_FAMILIES_CAP,
    C_FAMILIES_N,
    CELLS,
    DIMS_MAX,
    DIVIDED_AT,
    E_AT,
    E_HOME,
    E_PROGRAM,
    F_AXES,
    F_BIGS,
    F_BORN,
    F_BY,
    F_CLUSTER,
    F_COUNT,
    F_DIMS,
    F_FROM,
    F_HASH,
    F_NEWER,
    F_OLD,
    F_PARTS,
    F_PATH,
    F_PLACE,
    F_RULERS,
    F_TILES,
    F_TILES_CAP,
    F_TO,
    F_WHOLE,
    FAMILY_WORDS,
    HIGHEST,
    IS_FAMILY,
    LOWEST,
    P_PARTS,
    PART_BITS,
    PART_WORDS,
    R_REFS,
    RANGE,
    SMALL,
    SMALLS_MAX,
    TAG,
)
from driftline.kernels.programs import axis_at
from driftline.kernels.rulers import cell_of, drop_ruler, make_ruler
from driftline.kernels.table import first, following, put, remove
from driftline.kernels.types import Words

_SAMPLED = 128  # entries that are asked how a family should be divided


@jit
def dims_of(m: Words, program: int) -> int:
    """How many intervals a program begins with, up to as many as a family has axes."""
    parts = m[program] & 0xFFFF
    dims = 0
    while dims < parts and dims < DIMS_MAX:
        if (m[program + P_PARTS + PART_WORDS * dims] & 255) != RANGE:
            break
        dims += 1
    return dims


@jit
def family_for(m: Words, cluster: int, program: int, dims: int) -> int:
    """The family of a cluster for the axes of a program, made if there is none."""
    axes = mix(cluster)
    for dim in range(dims):
        axes = mix(axes ^ (m[program + P_PARTS + PART_WORDS * dim] >> 8))
    whole = 0
    path = 1
    while True:
        h = mix(axes ^ path)
        family = _find(m, h, cluster, program, dims, path)
        if family == 0:
            return _new_family(m, h, cluster, program, dims, whole, path)
        if m[family + F_BY] == 0:
            break
        whole = family
        path = (path << PART_BITS) | part_of(m, family, program)
    if m[family + F_BORN] == 1 and is_stale(m, family):
        return _successor(m, family)
    return family


@jit
def _find(m: Words, h: int, cluster: int, program: int, dims: int, path: int) -> int:
    slot = first(m, h)
    while slot != 0:
        family = m[slot + 1]
        if _is_of(m, family, h, cluster, program, dims, path):
            return family
        slot = following(m, h, slot)
    return 0


@jit
def _is_of(m: Words, family: int, h: int, cluster: int, program: int, dims: int, path: int) -> bool:
    if m[family + TAG] != IS_FAMILY or m[family + F_HASH] != h or m[family + F_PATH] != path:
        return False
    if m[family + F_CLUSTER] != cluster or m[family + F_DIMS] != dims:
        return False
    for dim in range(dims):
        if m[family + F_AXES + dim] != m[program + P_PARTS + PART_WORDS * dim] >> 8:
            return False
    return True


@jit
def _new_family(
    m: Words, h: int, cluster: int, program: int, dims: int, whole: int, path: int
) -> int:
    family = allocate_clear(m, FAMILY_WORDS)
    m[family + TAG] = IS_FAMILY
    m[family + F_HASH] = h
    m[family + F_CLUSTER] = cluster
    m[family + F_DIMS] = dims
    m[family + F_WHOLE] = whole
    m[family + F_PATH] = path
    for dim in range(dims):
        m[family + F_AXES + dim] = m[program + P_PARTS + PART_WORDS * dim] >> 8
    put(m, h, family)
    if whole != 0:
        m[whole + F_PARTS] += 1
        bear(m, family)
    return family


@jit
def part_of(m: Words, family: int, program: int) -> int:
    """Which part of a divided family an entry belongs to."""
    return _eighth(m, family, m[family + F_BY] - 1, program)


@jit
def _eighth(m: Words, family: int, dim: int, program: int) -> int:
    """In which eighth of an axis, by the family's ruler, an entry's interval begins."""
    part = program + P_PARTS + PART_WORDS * dim
    # A half-line without a beginning is where it ends.
    bound = m[part + 1] if m[part + 1] > LOWEST else m[part + 2]
    return (cell_of(m, m[family + F_RULERS + dim], bound) << PART_BITS) // CELLS


@jit
def belongs(m: Words, family: int, program: int) -> bool:
    """Would an entry that says this come to stand in this family?"""
    path = m[family + F_PATH]
    whole = m[family + F_WHOLE]
    while whole != 0:
        if part_of(m, whole, program) != path & ((1 << PART_BITS) - 1):
            return False
        path >>= PART_BITS
        whole = m[whole + F_WHOLE]
    return m[family + F_BY] == 0


@jit
def _divide(m: Words, family: int) -> None:
    """Divide a family by the axis that tells its entries apart best, if one does.

    What it holds goes to its parts as changes come.
    """
    best = 0
    fewest = _SAMPLED >> 1
    for dim in range(m[family + F_DIMS]):
        most = _most_in_a_part(m, family, dim)
        if most < fewest:
            best, fewest = dim + 1, most
    m[family + F_BY] = best


@jit
def _most_in_a_part(m: Words, family: int, dim: int) -> int:
    """Of a sample, how many entries would come into the largest part?"""
    most = 0
    for part in range(1 << PART_BITS):
        count = 0
        for number in range(_SAMPLED):
            place = number * m[family + F_COUNT] // _SAMPLED
            tile, slot, _ = tile_at(m, family, place)
            count += _eighth(m, family, dim, program_in(m[tile + slot])) == part
        most = max(most, count)
    return most


@jit
def is_stale(m: Words, family: int) -> bool:
    """Has an axis of a born family got a newer ruler?"""
    for dim in range(m[family + F_DIMS]):
        axis = axis_at(m, m[family + F_AXES + dim])
        if m[family + F_RULERS + dim] != m[axis + A_RULER]:
            return True
    return False


@jit
def _successor(m: Words, old: int) -> int:
    """A family of the same axes by their present rulers, which will empty the old one."""
    family = allocate_clear(m, FAMILY_WORDS)
    for word in range(FAMILY_WORDS):
        m[family + word] = m[old + word]
    m[family + F_COUNT] = 0  # and so it reaches nowhere
    m[family + F_TILES] = 0
    m[family + F_TILES_CAP] = 0
    m[family + F_BIGS] = 0
    m[family + F_OLD] = old
    m[old + F_NEWER] = family
    h = m[old + F_HASH]
    remove(m, h, old)
    put(m, h, family)
    bear(m, family)
    return family


@jit
def bear(m: Words, family: int) -> None:
    """Give a family its rulers and its place in the cluster."""
    m[family + F_BORN] = 1
    m[BORN] += 1
    for dim in range(m[family + F_DIMS]):
        axis = m[family + F_AXES + dim]
        ruler = m[axis_at(m, axis) + A_RULER]
        if ruler == 0:
            ruler = make_ruler(m, axis)
        m[ruler + R_REFS] += 1
        m[family + F_RULERS + dim] = ruler
    cluster = m[family + F_CLUSTER]
    count, cap = m[cluster + C_FAMILIES_N], m[cluster + C_FAMILIES_CAP]
    if count == cap:
        wanted = max(2, 2 * cap)
        if cap == 0:
            m[cluster + C_FAMILIES] = allocate(m, wanted)
        else:
            m[cluster + C_FAMILIES] = enlarge(m, m[cluster + C_FAMILIES], count, cap, wanted)
        m[cluster + C_FAMILIES_CAP] = wanted
    m[m[cluster + C_FAMILIES] + count] = family
    m[family + F_PLACE] = count
    m[cluster + C_FAMILIES_N] = count + 1


@jit
def leave_empty(m: Words, family: int) -> None:
    """A family lost its last entry: let go of it, and of those that are there only for it."""
    while family != 0 and m[family + F_COUNT] == 0 and m[family + F_PARTS] == 0:
        newer, old, whole = m[family + F_NEWER], m[family + F_OLD], m[family + F_WHOLE]
        if newer == 0:
            if old != 0:
                return  # It stays, to empty the older one.
            remove(m, m[family + F_HASH], family)
            if whole != 0:
                m[whole + F_PARTS] -= 1
        else:
            m[newer + F_OLD] = old
            if old != 0:
                m[old + F_NEWER] = newer
        bury(m, family)
        family = newer if newer != 0 else whole


@jit
def bury(m: Words, family: int) -> None:
    """Free a family that has no entries, born or not, that nothing else names."""
    if m[family + F_BORN] == 1:
        m[BORN] -= 1
        for dim in range(m[family + F_DIMS]):
            drop_ruler(m, m[family + F_RULERS + dim])
        cluster = m[family + F_CLUSTER]
        count = m[cluster + C_FAMILIES_N] - 1
        last = m[m[cluster + C_FAMILIES] + count]
        m[m[cluster + C_FAMILIES] + m[family + F_PLACE]] = last
        m[last + F_PLACE] = m[family + F_PLACE]
        m[cluster + C_FAMILIES_N] = count
        if count == 0:
            release(m, m[cluster + C_FAMILIES], m[cluster + C_FAMILIES_CAP])
            m[cluster + C_FAMILIES] = 0
            m[cluster + C_FAMILIES_CAP] = 0
        if m[family + F_TILES_CAP] > 0:
            release(m, m[family + F_TILES], m[family + F_TILES_CAP])
    release(m, family, FAMILY_WORDS)


@jit
def tile_words(dims: int, size: int) -> int:
    """How many words a tile of 64 or 512 entries has."""
    return rows_at(dims, size) + dims * CELLS * (size >> 6)


@jit
def rows_at(dims: int, size: int) -> int:
    """Where in a tile its rows of bits begin: behind the refs and the intervals."""
    return size * (1 + 2 * dims)


@jit
def append(m: Words, family: int, ref: int) -> None:
    """Add an entry at the end of a born family."""
    at = m[family + F_COUNT]
    if at == 0:
        m[family + F_FROM : family + F_FROM + DIMS_MAX] = HIGHEST
        m[family + F_TO : family + F_TO + DIMS_MAX] = LOWEST
    widen(m, family, program_in(ref))
    bigs = m[family + F_BIGS]
    if at - bigs * BIG == SMALLS_MAX * SMALL:
        _merge(m, family)
        bigs += 1
    if (at & (SMALL - 1)) == 0:
        tiles = bigs + ((at - bigs * BIG) >> 6)
        cap = m[family + F_TILES_CAP]
        if tiles == cap:
            wanted = max(2, 2 * cap)
            if cap == 0:
                m[family + F_TILES] = allocate(m, wanted)
            else:
                m[family + F_TILES] = enlarge(m, m[family + F_TILES], tiles, cap, wanted)
            m[family + F_TILES_CAP] = wanted
        m[m[family + F_TILES] + tiles] = allocate_clear(m, tile_words(m[family + F_DIMS], SMALL))
    m[family + F_COUNT] = at + 1
    for dim in range(m[family + F_DIMS]):
        m[axis_at(m, m[family + F_AXES + dim]) + A_LIVE] += 1
    _stand(m, family, at, ref)
    if (at + 1) % DIVIDED_AT == 0 and m[family + F_OLD] == 0 and m[family + F_BY] == 0:
        _divide(m, family)


@jit
def widen(m: Words, family: int, program: int) -> None:
    """Let a family reach over the intervals of a program."""
    for dim in range(m[family + F_DIMS]):
        part = program + P_PARTS + PART_WORDS * dim
        m[family + F_FROM + dim] = min(m[family + F_FROM + dim], m[part + 1])
        m[family + F_TO + dim] = max(m[family + F_TO + dim], m[part + 2])


@jit
def _stand(m: Words, family: int, at: int, ref: int) -> None:
    """Let an entry stand at a place that is free."""
    e = entry(m, number_in(ref))
    m[e + E_HOME] = family
    m[e + E_AT] = at
    tile, slot, _ = tile_at(m, family, at)
    m[tile + slot] = ref
    set_bits(m, family, at, m[e + E_PROGRAM], True)


@jit
def tile_at(m: Words, family: int, at: int) -> tuple[int, int, int]:
    """The tile a place is in, the place in the tile, and how many words a row has."""
    bigs = m[family + F_BIGS]
    if at < bigs * BIG:
        return m[m[family + F_TILES] + (at >> 9)], at & (BIG - 1), BIG_WORDS
    rest = at - bigs * BIG
    return m[m[family + F_TILES] + bigs + (rest >> 6)], rest & (SMALL - 1), 1


@jit
def set_bits(m: Words, family: int, at: int, program: int, on: bool) -> None:
    """Set, or clear, the bits of the cells that the intervals of a program touch; copy these."""
    tile, slot, words = tile_at(m, family, at)
    bit = np.int64(1) << (slot & 63)
    dims, size = m[family + F_DIMS], words * 64
    rows = tile + rows_at(dims, size) + (slot >> 6)
    for dim in range(dims):
        ruler = m[family + F_RULERS + dim]
        part = program + P_PARTS + PART_WORDS * dim
        if on:
            m[tile + (1 + 2 * dim) * size + slot] = m[part + 1]
            m[tile + (2 + 2 * dim) * size + slot] = m[part + 2]
        low, high = cell_of(m, ruler, m[part + 1]), cell_of(m, ruler, m[part + 2])
        for cell in range(low, high + 1):
            word = rows + (dim * CELLS + cell) * words
            if on:
                m[word] |= bit
            else:
                m[word] &= ~bit


@jit
def last_of(m: Words, family: int) -> int:
    """The ref of the last entry of a born family."""
    tile, slot, _ = tile_at(m, family, m[family + F_COUNT] - 1)
    return m[tile + slot]


@jit
def withdraw(m: Words, number: int) -> None:
    """Remove an entry that stands in a tile; its program must still be there."""
    e = entry(m, number)
    family, at = m[e + E_HOME], m[e + E_AT]
    if m[family + F_COUNT] == m[family + F_BIGS] * BIG:
        _split(m, family)
    last = m[family + F_COUNT] - 1
    set_bits(m, family, at, m[e + E_PROGRAM], False)
    m[e + E_HOME] = 0
    tile, slot, _ = tile_at(m, family, last)
    if last != at:
        moved = m[tile + slot]
        set_bits(m, family, last, m[entry(m, number_in(moved)) + E_PROGRAM], False)
        _stand(m, family, at, moved)
    m[family + F_COUNT] = last
    for dim in range(m[family + F_DIMS]):
        m[axis_at(m, m[family + F_AXES + dim]) + A_LIVE] -= 1
    if (last & (SMALL - 1)) == 0:
        release(m, tile, tile_words(m[family + F_DIMS], SMALL))


@jit
def _merge(m: Words, family: int) -> None:
    """Make the first eight small tiles one big one."""
    dims, bigs, tiles = m[family + F_DIMS], m[family + F_BIGS], m[family + F_TILES]
    big = allocate(m, tile_words(dims, BIG))
    for part in range(BIG_WORDS):
        small = m[tiles + bigs + part]
        for column in range(1 + 2 * dims):
            for slot in range(SMALL):
                m[big + column * BIG + part * SMALL + slot] = m[small + column * SMALL + slot]
        big_rows, small_rows = big + rows_at(dims, BIG) + part, small + rows_at(dims, SMALL)
        for row in range(dims * CELLS):
            m[big_rows + row * BIG_WORDS] = m[small_rows + row]
        release(m, small, tile_words(dims, SMALL))
    m[tiles + bigs] = big
    for part in range(SMALLS_MAX - BIG_WORDS):
        m[tiles + bigs + 1 + part] = m[tiles + bigs + BIG_WORDS + part]
    m[family + F_BIGS] = bigs + 1


@jit
def _split(m: Words, family: int) -> None:
    """Make the last big tile eight small ones; there are no others behind it."""
    dims, bigs = m[family + F_DIMS], m[family + F_BIGS] - 1
    big = m[m[family + F_TILES] + bigs]
    cap = m[family + F_TILES_CAP]
    if bigs + BIG_WORDS > cap:
        m[family + F_TILES] = enlarge(m, m[family + F_TILES], bigs, cap, bigs + BIG_WORDS)
        m[family + F_TILES_CAP] = bigs + BIG_WORDS
    tiles = m[family + F_TILES]
    for part in range(BIG_WORDS):
        small = allocate(m, tile_words(dims, SMALL))
        for column in range(1 + 2 * dims):
            for slot in range(SMALL):
                m[small + column * SMALL + slot] = m[big + column * BIG + part * SMALL + slot]
        big_rows, small_rows = big + rows_at(dims, BIG) + part, small + rows_at(dims, SMALL)
        for row in range(dims * CELLS):
            m[small_rows + row] = m[big_rows + row * BIG_WORDS]
        m[tiles + bigs + part] = small
    release(m, big, tile_words(dims, BIG))
    m[family + F_BIGS] = bigs
