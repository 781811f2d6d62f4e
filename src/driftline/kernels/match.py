"""Which entries does an event satisfy?

An event finds its clusters: those without an equality, and one per equality that it has a value
for. In each it looks at the layers of the grid, and at the tiles. For a batch, tiles are the outer
loop and events the inner one, block by block: the bits of a tile are read from the nearest cache.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.clusters import cluster_hash, is_cluster
from driftline.kernels.entries import entry, number_in, program_in
from driftline.kernels.jit import allocating, inlined, jit, prefetch, trailing_zeros
from driftline.kernels.keys import number_key, text_hash, text_key
from driftline.kernels.layout import (
    A_CLUSTERS,
    A_KIND,
    BIG,
    BIG_WORDS,
    BY_HASH,
    BY_TEXT,
    C_COUNT,
    C_FAMILIES,
    C_FAMILIES_N,
    C_GUARD,
    C_LAYERS,
    C_LAYERS_N,
    CARE,
    CELLS,
    CHECK,
    CHUNK_HEAD,
    DIMS_MAX,
    DOUBT,
    E_OWNER,
    E_PROGRAM,
    E_SEQUENCE,
    F_AXES,
    F_BIGS,
    F_COUNT,
    F_DIMS,
    F_FROM,
    F_RULERS,
    F_TILES,
    F_TO,
    HASH,
    ITEM_HIGH,
    ITEM_REF,
    ITEM_WORDS,
    K_COUNT,
    K_NEXT,
    K_SPECIAL,
    L_BASE,
    L_FROM,
    L_KIND,
    L_TABLE,
    L_TO,
    LAYER_WORDS,
    MISSING,
    MULTI,
    NO_ENTRY,
    NUMBER,
    ONE_CELL,
    PRESENCE,
    R_AXIS,
    R_NUMBER,
    RULER_TOP,
    SMALL,
    TAIL,
    TEXT,
    TYPE_HASH,
    TYPE_TEXT,
    UNKEYED,
    UNTYPED,
)
from driftline.kernels.programs import axis_at, satisfied
from driftline.kernels.rulers import cell_of
from driftline.kernels.table import first, following
from driftline.kernels.tiles import rows_at
from driftline.kernels.types import Bytes, Codes, Numbers, Words

BLOCK = 4096

# Unsigned offsets in the innermost loops: a signed one might be negative, which costs a look each.
u64 = np.uint64
# A visit of a block: cluster << 28 | how many visits of the event came before << 12 | event.
_EVENT_BITS = 12
_VISIT_BITS = 28
_VISIT = (1 << _VISIT_BITS) - 1
_REF = (1 << 32) - 1
_TOGETHER = 16  # visits whose chunks are fetched together
_LINES_AHEAD = 6  # of each chunk; what follows in a row the machine fetches by itself
_DIGIT_BITS = 11
_DIGIT = 1 << _DIGIT_BITS
NO_CELL = 255
_FEW = 32  # up to here insertion is the fastest way to sort

# Of which events of a block is the cell on a ruler known? Later ones outweigh earlier ones.
_ALL, _SOME, _NONE = 1, 2, 3


@allocating
def match_event(
    m: Words,
    letter: Words,
    count: int,
    columns: Words,
    keys: Words,
    texts: Bytes,
    stamps: Words,
    tick: int,
    refs: Numbers,
    out: Numbers,
) -> int:
    """Write the numbers of what one event satisfies, in the order added; how many.

    The event is given as `count` pairs of an axis and a raw value. `columns` must name no axis but
    those that every event has; it does so again afterwards. A number of which the index is not sure
    is written as its complement. `refs` and `out` must hold one more than there are entries.
    """
    m8 = m.view(np.uint8)
    for at in range(count):
        axis, raw = letter[2 * at], letter[2 * at + 1]
        kind = m[axis_at(m, axis) + A_KIND]
        if kind == NUMBER:
            raw = number_key(raw)
        elif kind == TEXT:
            raw = text_key(texts, raw >> 32, raw & _REF)
        elif kind == HASH:
            raw = text_hash(texts, raw >> 32, raw & _REF)
        columns[axis] = at + 1
        keys[at + 1, 0] = raw
    near = np.empty((16, 2), np.int64)
    staged = np.empty((2 * len(near), 2), np.int64)
    k = 0
    for naming in range(3):
        type_key = 0
        if naming != UNTYPED:
            column = columns[TYPE_TEXT if naming == BY_TEXT else TYPE_HASH]
            if column < 0:
                continue
            type_key = keys[column, 0]
        for at in range(-1, count):
            axis = np.int64(-1)
            key = np.int64(0)
            if at < 0:
                clusters = m[UNKEYED + naming]
            else:
                axis, key = letter[2 * at], keys[at + 1, 0]
                clusters = m[axis_at(m, axis) + A_CLUSTERS + naming]
            if clusters == 0 or key == MISSING:
                continue
            cluster = _cluster(m, m8, columns, keys, 0, texts, naming, type_key, axis, key)
            if cluster == 0:
                continue
            if m[cluster + C_FAMILIES_N] > 0:
                k = _match_tiles(m, m8, cluster, columns, keys, texts, stamps, tick, out, k)
            if m[cluster + C_LAYERS_N] >= len(near):
                near = np.empty((m[cluster + C_LAYERS_N] + 1, 2), np.int64)
                staged = np.empty((2 * len(near), 2), np.int64)
            layers = _near(m, cluster, columns, keys, 0, near, 0)
            chunks = _stage(m, near, 0, layers, staged, 0)
            found = _scan_staged(m, m8, staged, 0, chunks, columns, keys, 0, texts, refs, 0)
            for place in range(found):
                k = _emit(m, np.int64(refs[place]), stamps, tick, out, k)
    for at in range(count):
        # "Is it there?" is an axis on which an event without the attribute has a key too.
        axis = letter[2 * at]
        columns[axis] = 0 if m[axis_at(m, axis) + A_KIND] == PRESENCE else -1
    _order(m, out, k)
    return k


@allocating
def _match_tiles(
    m: Words,
    m8: Bytes,
    cluster: int,
    columns: Words,
    keys: Words,
    texts: Bytes,
    stamps: Words,
    tick: int,
    out: Numbers,
    k: int,
) -> int:
    """What one event finds in the tiles of a cluster."""
    rulers = m[RULER_TOP]
    codes = np.empty((rulers, 1), np.uint8)
    coded = np.zeros(rulers, np.uint8)
    members = np.zeros(1, np.int64)
    pairs, found = _scan_families(
        m,
        m8,
        cluster,
        columns,
        keys,
        0,
        1,
        texts,
        members,
        1,
        codes,
        coded,
        np.empty(BIG, np.int64),
        0,
    )
    for at in range(found):
        k = _emit(m, pairs[at] & _REF, stamps, tick, out, k)
    return k


@allocating
def match_many(
    m: Words,
    columns: Words,
    keys: Words,
    texts: Bytes,
    present: Words,
    stamps: Words,
    tick: int,
    offsets: Words,
) -> tuple[Numbers, int]:
    """The numbers of what each event of a batch satisfies, and of how many one is not sure.

    Those of event i are at offsets[i] .. offsets[i + 1], which is written here.
    """
    m8 = m.view(np.uint8)
    n = len(offsets) - 1
    presents = len(present)
    rulers = m[RULER_TOP]
    codes = np.empty((rulers, BLOCK), np.uint8)
    coded = np.zeros(rulers, np.uint8)
    pairs = np.empty(1 << 14, np.int64)
    sorted_refs = np.empty(1 << 14, np.int64)
    combined = np.empty((3 * (presents + 1), 2), np.int64)
    combinations = _combinations(m, columns, present, presents, combined)
    visits = np.empty(combinations * BLOCK, np.int64)
    ends = np.zeros(BLOCK + 1, np.int64)
    by_cluster = np.empty(combinations * BLOCK, np.int64)
    spare = np.empty(combinations * BLOCK, np.int64)
    run_starts = np.empty(combinations * BLOCK, np.int64)
    run_ends = np.empty(combinations * BLOCK, np.int64)
    near = np.empty((4 * _TOGETHER, 2), np.int64)
    near_ends = np.zeros(_TOGETHER + 1, np.int64)
    staged = np.empty((2 * len(near), 2), np.int64)
    staged_ends = np.zeros(_TOGETHER + 1, np.int64)
    starts = np.zeros(BLOCK + 1, np.int64)
    members = np.empty(BLOCK, np.int64)
    refs = np.empty(1 << 14, np.int32)
    out = np.empty(max(1024, 16 * n), np.int32)
    k = 0
    unsure = 0
    offsets[0] = 0
    for block in range(0, n, BLOCK):
        size = min(BLOCK, n - block)
        coded[:] = 0
        count = 0
        for e in range(size):
            before = count
            count = _visits(
                m, m8, columns, keys, block + e, texts, combined, combinations, visits, count
            )
            for visit in range(before, count):
                by_cluster[visit] = (visits[visit] << _VISIT_BITS) | (
                    ((visit - before) << _EVENT_BITS) | e
                )
            ends[e] = count
        # Cluster by cluster, so that what is looked at stays in the cache.
        order = _in_order(by_cluster, count, m[TAIL], spare)
        pairs, found = _scan_tiled(
            m, m8, columns, keys, block, size, texts, order, count, members, codes, coded, pairs
        )
        if found > 0:
            if len(sorted_refs) < found:
                sorted_refs = np.empty(2 * found, np.int64)
            _by_event(pairs, found, size, starts, sorted_refs)
        end = 0
        for first_at in range(0, count, _TOGETHER):
            last_at = min(first_at + _TOGETHER, count)
            layers, chunks = 0, 0
            for at in range(first_at, last_at):
                cluster, e = order[at] >> _VISIT_BITS, order[at] & (BLOCK - 1)
                if layers + m[cluster + C_LAYERS_N] >= len(near):
                    near = _more_rows(near, layers, m[cluster + C_LAYERS_N] + 1)
                    staged = np.empty((2 * len(near), 2), np.int64)
                layers = _near(m, cluster, columns, keys, block + e, near, layers)
                near_ends[at - first_at + 1] = layers
            for at in range(last_at - first_at):
                chunks = _stage(m, near, near_ends[at], near_ends[at + 1], staged, chunks)
                staged_ends[at + 1] = chunks
            for at in range(first_at, last_at):
                cluster, e = order[at] >> _VISIT_BITS, order[at] & (BLOCK - 1)
                visit = (order[at] & _VISIT) >> _EVENT_BITS
                visit += ends[e - 1] if e > 0 else 0
                # One more than can be kept: the scan of a chunk writes ahead. The look comes before
                # the call, because handing arrays back and forth counts references.
                if end + m[cluster + C_COUNT] + 1 >= len(refs):
                    refs = _more_numbers(refs, end, m[cluster + C_COUNT] + 1)
                run_starts[visit] = end
                end = _scan_staged(
                    m,
                    m8,
                    staged,
                    staged_ends[at - first_at],
                    staged_ends[at - first_at + 1],
                    columns,
                    keys,
                    block + e,
                    texts,
                    refs,
                    end,
                )
                run_ends[visit] = end
        if k + found + end >= len(out):
            out = _more_numbers(out, k, found + end)
        visit = 0
        for e in range(size):
            if found > 0:
                for at in range(starts[e], starts[e + 1]):
                    k = _emit(m, sorted_refs[at], stamps, tick + e, out, k)
            while visit < ends[e]:
                for at in range(u64(run_starts[visit]), u64(run_ends[visit])):
                    k = _emit(m, np.int64(refs[at]), stamps, tick + e, out, k)
                visit += 1
            offsets[block + e + 1] = k
        tick += size
    for at in range(k):
        unsure += out[at] < 0
    return out[:k], unsure


@jit
def _combinations(m: Words, columns: Words, present: Words, presents: int, combined: Words) -> int:
    """Which ways of naming the type and which axes have clusters, among those that events have?

    Each is a row (naming, axis); no axis, -1, is that of clusters without an equality.
    """
    count = 0
    for naming in range(3):
        if naming == BY_TEXT and columns[TYPE_TEXT] < 0:
            continue
        if naming == BY_HASH and columns[TYPE_HASH] < 0:
            continue
        if m[UNKEYED + naming] > 0:
            combined[count, 0], combined[count, 1] = naming, -1
            count += 1
        for at in range(presents):
            if m[axis_at(m, present[at]) + A_CLUSTERS + naming] > 0:
                combined[count, 0], combined[count, 1] = naming, present[at]
                count += 1
    return count


@allocating
def _in_order(visits: Words, count: int, highest: int, spare: Words) -> Words:
    """The visits of a block by cluster: sorted by one digit of the address after the other."""
    if count < _DIGIT:  # not worth the counting
        return np.sort(visits[:count])
    counts = np.empty(_DIGIT, np.int64)
    shift = _VISIT_BITS
    while (highest >> (shift - _VISIT_BITS)) > 0:
        counts[:] = 0
        for at in range(count):
            counts[(visits[at] >> shift) & (_DIGIT - 1)] += 1
        total = 0
        for digit in range(_DIGIT):
            counts[digit], total = total, total + counts[digit]
        for at in range(count):
            digit = (visits[at] >> shift) & (_DIGIT - 1)
            spare[counts[digit]] = visits[at]
            counts[digit] += 1
        visits, spare = spare, visits
        shift += _DIGIT_BITS
    return visits


@inlined
def _visits(
    m: Words,
    m8: Bytes,
    columns: Words,
    keys: Words,
    event: int,
    texts: Bytes,
    combined: Words,
    combinations: int,
    visits: Words,
    count: int,
) -> int:
    """Write the clusters that hold what an event may satisfy; their number after that."""
    for at in range(combinations):
        naming, axis = combined[at, 0], combined[at, 1]
        type_key = 0
        if naming != UNTYPED:
            type_key = keys[columns[TYPE_TEXT if naming == BY_TEXT else TYPE_HASH], event]
        key = 0
        if axis >= 0:
            key = keys[columns[axis], event]
            if key == MISSING:
                continue
        cluster = _cluster(m, m8, columns, keys, event, texts, naming, type_key, axis, key)
        if cluster != 0:
            visits[count] = cluster
            count += 1
    return count


@inlined
def _cluster(
    m: Words,
    m8: Bytes,
    columns: Words,
    keys: Words,
    event: int,
    texts: Bytes,
    naming: int,
    type_key: int,
    axis: int,
    key: int,
) -> int:
    h = cluster_hash(naming, type_key, axis, key)
    slot = first(m, h)
    while slot != 0:
        cluster = m[slot + 1]
        if is_cluster(m, cluster, h, naming, type_key, axis, key):
            guard = m[cluster + C_GUARD]
            if guard == 0 or satisfied(m, m8, guard, columns, keys, event, texts):
                return cluster
        slot = following(m, h, slot)
    return 0


@inlined
def _near(
    m: Words, cluster: int, columns: Words, keys: Words, event: int, near: Words, count: int
) -> int:
    """Write which layers of a cluster reach over an event's key, and the key; their number.

    Without a branch: most do not, and which ones do nobody can guess.
    """
    layer = m[cluster + C_LAYERS]
    for _ in range(m[cluster + C_LAYERS_N]):
        column = columns[m[layer + L_KIND] >> 8]
        x = keys[max(column, 0), event]
        near[count, 0], near[count, 1] = layer, x
        reaches = u64(m[layer + L_FROM] <= x) & u64(x <= m[layer + L_TO]) & u64(column >= 0)
        count += np.int64(reaches)
        layer += LAYER_WORDS
    return count


@inlined
def _stage(m: Words, near: Words, start: int, end: int, staged: Words, count: int) -> int:
    """Write which chunks an event must look at in the layers near it; their number.

    They are far apart and seldom in a cache: while one is on its way the next are asked for.
    """
    for at in range(start, end):
        layer, x = near[at, 0], near[at, 1]
        level = m[layer + L_KIND] & 255
        slot = layer + L_TABLE
        if level < ONE_CELL:
            slot = m[slot] + (x >> level) - m[layer + L_BASE]
        # The cell of the key and the one before; both are there, see TABLE_WORDS and L_BASE.
        for chunk in (m[slot], m[slot - 1]):
            if chunk != 0:
                staged[count, 0], staged[count, 1] = chunk, x
                count += 1
                for line in range(_LINES_AHEAD):
                    prefetch(m, chunk + 8 * line)
    return count


@inlined
def _scan_staged(
    m: Words,
    m8: Bytes,
    staged: Words,
    start: int,
    end: int,
    columns: Words,
    keys: Words,
    event: int,
    texts: Bytes,
    refs: Numbers,
    k: int,
) -> int:
    """Write what an event finds in the chunks staged for it."""
    for at in range(start, end):
        chunk, x = staged[at, 0], staged[at, 1]
        k = _scan_chain(m, m8, chunk, x, columns, keys, event, texts, refs, k)
    return k


@inlined
def _scan_chain(
    m: Words,
    m8: Bytes,
    chunk: int,
    x: int,
    columns: Words,
    keys: Words,
    event: int,
    texts: Bytes,
    refs: Numbers,
    k: int,
) -> int:
    while chunk != 0:
        count = u64(m[chunk + K_COUNT])
        item = u64(chunk + CHUNK_HEAD)
        to = u64(k)
        # Without a branch: each is written, and stays if the next one does not overwrite it.
        if m[chunk + K_SPECIAL] == 0:
            for _ in range(count):
                refs[to] = m[item + u64(ITEM_REF)] & _REF
                to += u64(m[item] <= x) & u64(x <= m[item + u64(ITEM_HIGH)])
                item += u64(ITEM_WORDS)
            k = np.int64(to)
        else:
            first_item = item
            for at in range(count):
                refs[to] = at
                to += u64(m[item] <= x) & u64(x <= m[item + u64(ITEM_HIGH)])
                item += u64(ITEM_WORDS)
            for place in range(u64(k), to):
                ref = m[first_item + u64(ITEM_WORDS) * u64(refs[place]) + u64(ITEM_REF)]
                if (ref & CHECK) != 0 and not satisfied(
                    m, m8, program_in(ref), columns, keys, event, texts
                ):
                    continue
                refs[k] = ref & _REF
                k += 1
        chunk = m[chunk + K_NEXT]
    return k


@inlined
def _emit(m: Words, ref: int, stamps: Words, tick: int, out: Numbers, k: int) -> int:
    """Report an entry: by its subscription's number, once, and doubtfully if it is in doubt."""
    number = number_in(ref)
    if (ref & CARE) == 0:
        out[k] = number
        return k + 1
    e = entry(m, number)
    flags = m[m[e + E_PROGRAM]] >> 16
    if (flags & MULTI) != 0:
        number = m[e + E_OWNER] & NO_ENTRY
        if stamps[number] == tick:
            return k
        stamps[number] = tick
    out[k] = ~number if (flags & DOUBT) != 0 else number
    return k + 1


@allocating
def _scan_tiled(
    m: Words,
    m8: Bytes,
    columns: Words,
    keys: Words,
    block: int,
    size: int,
    texts: Bytes,
    order: Words,
    visits: int,
    members: Words,
    codes: Codes,
    coded: Codes,
    pairs: Words,
) -> tuple[Words, int]:
    """All tiles of all clusters that the events of a block visit, cluster by cluster."""
    found = 0
    at = 0
    while at < visits:
        cluster = order[at] >> _VISIT_BITS
        count = 0
        while at < visits and (order[at] >> _VISIT_BITS) == cluster:
            members[count] = order[at] & (BLOCK - 1)
            count += 1
            at += 1
        if m[cluster + C_FAMILIES_N] > 0:
            pairs, found = _scan_families(
                m,
                m8,
                cluster,
                columns,
                keys,
                block,
                size,
                texts,
                members,
                count,
                codes,
                coded,
                pairs,
                found,
            )
    return pairs, found


@allocating
def _scan_families(
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


@allocating
def _more_rows(rows: Words, count: int, more: int) -> Words:
    larger = np.empty((2 * (count + more), 2), np.int64)
    larger[:count] = rows[:count]
    return larger


@allocating
def _more_numbers(out: Numbers, k: int, more: int) -> Numbers:
    larger = np.empty(2 * (k + more), np.int32)
    larger[:k] = out[:k]
    return larger


@jit
def _by_event(pairs: Words, found: int, size: int, starts: Words, refs: Words) -> None:
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


@allocating
def _order(m: Words, out: Numbers, count: int) -> None:
    """Bring the numbers into the order in which their subscriptions were added."""
    keyed = np.empty(count, np.int64)
    for at in range(count):
        keyed[at] = _sequence(m, out[at])
    if count > _FEW:
        out[:count] = out[:count][np.argsort(keyed)]
        return
    for at in range(1, count):
        number, sequence = out[at], keyed[at]
        to = at
        while to > 0 and keyed[to - 1] > sequence:
            out[to], keyed[to] = out[to - 1], keyed[to - 1]
            to -= 1
        out[to], keyed[to] = number, sequence


@inlined
def _sequence(m: Words, number: int) -> int:
    whole = np.int64(number)
    return m[entry(m, whole if whole >= 0 else ~whole) + E_SEQUENCE]
