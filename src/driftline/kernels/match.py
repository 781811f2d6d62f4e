"""Which entries does an event satisfy?

An event finds its clusters (`visits`), and in each what the grid (`grid_scan`), the tiles
(`tile_scan`) and the fields (`field_scan`) hold for it. A batch goes block by block, so that what
is at hand stays in the caches.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.entries import entry, number_in
from driftline.kernels.field_scan import scan_fields
from driftline.kernels.grid_scan import more_rows, near_layers, scan_staged, stage
from driftline.kernels.jit import allocating, inlined, jit
from driftline.kernels.keys import number_key, text_hash, text_key
from driftline.kernels.layout import (
    A_CLUSTERS,
    A_KIND,
    BIG,
    BY_TEXT,
    C_COUNT,
    C_FAMILIES_N,
    C_FIELDS,
    C_LAYERS_N,
    CARE,
    DOUBT,
    E_OWNER,
    E_PROGRAM,
    E_SEQUENCE,
    FIELDS,
    HASH,
    MISSING,
    MULTI,
    NO_ENTRY,
    NUMBER,
    PRESENCE,
    REF_BITS,
    RULER_TOP,
    SEQUENCE,
    TAIL,
    TEXT,
    TYPE_HASH,
    TYPE_TEXT,
    UNKEYED,
    UNTYPED,
)
from driftline.kernels.programs import axis_at
from driftline.kernels.tile_scan import by_event, scan_families
from driftline.kernels.types import Bytes, Codes, Numbers, Words
from driftline.kernels.visits import (
    BLOCK,
    EVENT_BITS,
    VISIT,
    VISIT_BITS,
    cluster_at,
    combinations_of,
    in_order,
    visits_of,
)

u64 = np.uint64
_REF = (1 << REF_BITS) - 1
_TOGETHER = 16  # visits whose chunks are fetched together
_FEW = 32  # up to here insertion is the fastest way to sort
_SEQUENCE_MAX = 1 << (63 - VISIT_BITS)  # below, a place among what was found fits beside it


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
            cluster = cluster_at(m, m8, columns, keys, 0, texts, naming, type_key, axis, key)
            if cluster == 0:
                continue
            if m[cluster + C_FAMILIES_N] > 0:
                k = _match_tiles(m, m8, cluster, columns, keys, texts, stamps, tick, out, k)
            if m[cluster + C_LAYERS_N] >= len(near):
                near = np.empty((m[cluster + C_LAYERS_N] + 1, 2), np.int64)
                staged = np.empty((2 * len(near), 2), np.int64)
            layers = near_layers(m, cluster, columns, keys, 0, near, 0)
            chunks = stage(m, near, 0, layers, staged, 0)
            found = scan_staged(m, m8, staged, 0, chunks, columns, keys, 0, texts, refs, 0)
            if m[cluster + C_FIELDS] != 0:
                found = scan_fields(m, m8, cluster, columns, keys, 0, texts, refs, found)
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
    pairs, found = scan_families(
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
    combinations = combinations_of(m, columns, present, presents, combined)
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
    field_refs = np.empty(1 << 10, np.int32)
    field_runs = np.empty((len(visits) if m[FIELDS] > 0 else 0, 2), np.int64)
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
            count = visits_of(
                m, m8, columns, keys, block + e, texts, combined, combinations, visits, count
            )
            for visit in range(before, count):
                by_cluster[visit] = (visits[visit] << VISIT_BITS) | (
                    ((visit - before) << EVENT_BITS) | e
                )
            ends[e] = count
        # Cluster by cluster, so that what is looked at stays in the cache.
        order = in_order(by_cluster, count, m[TAIL], spare)
        pairs, found = _scan_tiled(
            m, m8, columns, keys, block, size, texts, order, count, members, codes, coded, pairs
        )
        if found > 0:
            if len(sorted_refs) < found:
                sorted_refs = np.empty(2 * found, np.int64)
            by_event(pairs, found, size, starts, sorted_refs)
        end = 0
        for first_at in range(0, count, _TOGETHER):
            last_at = min(first_at + _TOGETHER, count)
            layers, chunks = 0, 0
            for at in range(first_at, last_at):
                cluster, e = order[at] >> VISIT_BITS, order[at] & (BLOCK - 1)
                if layers + m[cluster + C_LAYERS_N] >= len(near):
                    near = more_rows(near, layers, m[cluster + C_LAYERS_N] + 1)
                    staged = np.empty((2 * len(near), 2), np.int64)
                layers = near_layers(m, cluster, columns, keys, block + e, near, layers)
                near_ends[at - first_at + 1] = layers
            for at in range(last_at - first_at):
                chunks = stage(m, near, near_ends[at], near_ends[at + 1], staged, chunks)
                staged_ends[at + 1] = chunks
            for at in range(first_at, last_at):
                cluster, e = order[at] >> VISIT_BITS, order[at] & (BLOCK - 1)
                visit = (order[at] & VISIT) >> EVENT_BITS
                visit += ends[e - 1] if e > 0 else 0
                # One more than can be kept: the scan of a chunk writes ahead. The look comes before
                # the call, because handing arrays back and forth counts references.
                if end + m[cluster + C_COUNT] + 1 >= len(refs):
                    refs = _more_numbers(refs, end, m[cluster + C_COUNT] + 1)
                run_starts[visit] = end
                end = scan_staged(
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
        # Apart from the grid, whose loop is the tightest.
        in_fields = 0
        if m[FIELDS] > 0:
            field_refs, in_fields = _scan_fielded(
                m, m8, columns, keys, block, texts, order, count, ends, field_runs, field_refs
            )
        if k + found + end + in_fields >= len(out):
            out = _more_numbers(out, k, found + end + in_fields)
        visit = 0
        for e in range(size):
            if found > 0:
                for at in range(starts[e], starts[e + 1]):
                    k = _emit(m, sorted_refs[at], stamps, tick + e, out, k)
            if in_fields > 0:
                k = _emit_runs(m, field_refs, field_runs, visit, ends[e], stamps, tick + e, out, k)
            while visit < ends[e]:
                for at in range(u64(run_starts[visit]), u64(run_ends[visit])):
                    k = _emit(m, np.int64(refs[at]), stamps, tick + e, out, k)
                visit += 1
            offsets[block + e + 1] = k
        tick += size
    for at in range(k):
        unsure += out[at] < 0
    return out[:k], unsure


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
        cluster = order[at] >> VISIT_BITS
        count = 0
        while at < visits and (order[at] >> VISIT_BITS) == cluster:
            members[count] = order[at] & (BLOCK - 1)
            count += 1
            at += 1
        if m[cluster + C_FAMILIES_N] > 0:
            pairs, found = scan_families(
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
def _scan_fielded(
    m: Words,
    m8: Bytes,
    columns: Words,
    keys: Words,
    block: int,
    texts: Bytes,
    order: Words,
    visits: int,
    ends: Words,
    runs: Words,
    refs: Numbers,
) -> tuple[Numbers, int]:
    """All fields of all clusters that the events of a block visit: for each visit a run of refs."""
    end = 0
    for at in range(visits):
        cluster, e = order[at] >> VISIT_BITS, order[at] & (BLOCK - 1)
        visit = (order[at] & VISIT) >> EVENT_BITS
        visit += ends[e - 1] if e > 0 else 0
        runs[visit, 0] = end
        if m[cluster + C_FIELDS] != 0:
            if end + m[cluster + C_COUNT] + 1 >= len(refs):
                refs = _more_numbers(refs, end, m[cluster + C_COUNT] + 1)
            end = scan_fields(m, m8, cluster, columns, keys, block + e, texts, refs, end)
        runs[visit, 1] = end
    return refs, end


@jit
def _emit_runs(
    m: Words,
    refs: Numbers,
    runs: Words,
    visit: int,
    last: int,
    stamps: Words,
    tick: int,
    out: Numbers,
    k: int,
) -> int:
    """Report what the visits of an event found in fields."""
    for run in range(visit, last):
        for at in range(u64(runs[run, 0]), u64(runs[run, 1])):
            k = _emit(m, np.int64(refs[at]), stamps, tick, out, k)
    return k


@allocating
def _more_numbers(out: Numbers, k: int, more: int) -> Numbers:
    larger = np.empty(2 * (k + more), np.int32)
    larger[:k] = out[:k]
    return larger


@allocating
def _order(m: Words, out: Numbers, count: int) -> None:
    """Bring the numbers into the order in which their subscriptions were added."""
    keyed = np.empty(count, np.int64)
    for at in range(count):
        keyed[at] = _sequence(m, out[at])
    if count > _FEW:
        numbers = out[:count].copy()
        if m[SEQUENCE] < _SEQUENCE_MAX:
            for at in range(count):
                keyed[at] = (keyed[at] << VISIT_BITS) | at
            keyed = in_order(keyed, count, m[SEQUENCE], np.empty(count, np.int64))
            for at in range(count):
                out[at] = numbers[keyed[at] & VISIT]
        else:
            out[:count] = numbers[np.argsort(keyed)]
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
