"""How are intervals on one axis kept so that a key finds those it is in?

An interval of width below 2^L belongs to level L, and there to the cell `lo >> L`: a key x can only
be in intervals whose cell is that of x or the one before. So each level costs two looks, and what
is found there is about as narrow as the cells are. Cells are kept in *layers* of 64 in a row, each
cell a chain of *chunks* of (lo, hi, ref), contiguous, with holes filled from the end.

    level 4:   cells  …|16..31|32..47|…      [20, 29] and [30, 34] are in the cell of 16
    x = 33:    looks at the cell of 32 and at the cell of 16, and finds [30, 34]

A small cluster does without cells: one list per axis, at the level LIST.
"""

from __future__ import annotations

from driftline.kernels.arena import allocate, allocate_clear, enlarge, release
from driftline.kernels.entries import entry
from driftline.kernels.jit import bit_length, jit
from driftline.kernels.layout import (
    C_COUNT,
    C_LAYERS,
    C_LAYERS_CAP,
    C_LAYERS_N,
    CHUNK_HEAD,
    CHUNK_MAX,
    E_AT,
    E_HOME,
    HIGHEST,
    IS_CHUNK,
    K_CAP,
    K_CELL,
    K_CLUSTER,
    K_COUNT,
    K_KIND,
    K_NEXT,
    K_SPECIAL,
    L_BASE,
    L_COUNT,
    L_FROM,
    L_KIND,
    L_TABLE,
    L_TO,
    LAYER_WORDS,
    LAYERS_MAX,
    LIST,
    LOWEST,
    ONE_CELL,
    SEGMENT,
    SEGMENT_BITS,
    TAG,
)
from driftline.kernels.types import Words

# Cells are made so coarse that a cluster of n entries has about n / 8 of them in use.
_ROOMY_BITS = 8


@jit
def level_of(cluster_count: int, low: int, high: int) -> int:
    """The level at which a cluster of so many entries keeps an interval."""
    width = high - low
    if width < 0:  # more than fits a word
        return ONE_CELL
    extra = max(0, _ROOMY_BITS - bit_length(cluster_count))
    return min(bit_length(width) + extra, ONE_CELL)


@jit
def put_interval(
    m: Words, cluster: int, axis: int, level: int, low: int, high: int, ref: int
) -> None:
    """Add an interval, on an axis at a level at least."""
    while True:
        cell = 0 if level >= ONE_CELL else low >> level
        base = (cell >> SEGMENT_BITS) << SEGMENT_BITS
        kind = (axis << 8) | level
        layer = find_layer(m, cluster, kind, base)
        if layer != 0 or level >= ONE_CELL or m[cluster + C_LAYERS_N] < LAYERS_MAX:
            break
        level = min(level + SEGMENT_BITS, ONE_CELL)
    if layer == 0:
        layer = _new_layer(m, cluster, kind, base)
    m[layer + L_COUNT] += 1
    m[layer + L_FROM] = min(m[layer + L_FROM], low)
    m[layer + L_TO] = max(m[layer + L_TO], high)
    slot = _slot(m, layer, cell)
    chunk = _roomy(m, slot, cluster, kind, cell)
    at = m[chunk + K_COUNT]
    cap = m[chunk + K_CAP]
    m[chunk + CHUNK_HEAD + at] = low
    m[chunk + CHUNK_HEAD + cap + at] = high
    m[chunk + CHUNK_HEAD + 2 * cap + at] = ref
    m[chunk + K_COUNT] = at + 1
    m[chunk + K_SPECIAL] += (ref & 3) != 0
    e = entry(m, ref >> 2)
    m[e + E_HOME] = chunk
    m[e + E_AT] = at


@jit
def take_interval(m: Words, number: int) -> None:
    """Remove an entry that stands in a chunk."""
    e = entry(m, number)
    chunk, at = m[e + E_HOME], m[e + E_AT] & 0xFFFF
    cluster, cell = m[chunk + K_CLUSTER], m[chunk + K_CELL]
    base = (cell >> SEGMENT_BITS) << SEGMENT_BITS
    layer = find_layer(m, cluster, m[chunk + K_KIND], base)
    slot = _slot(m, layer, cell)
    head = m[slot]
    cap = m[chunk + K_CAP]
    m[chunk + K_SPECIAL] -= (m[chunk + CHUNK_HEAD + 2 * cap + at] & 3) != 0
    last = m[head + K_COUNT] - 1
    if head != chunk or last != at:
        _move(m, head, last, chunk, at)
    m[head + K_COUNT] = last
    m[e + E_HOME] = 0
    if last == 0:
        m[slot] = m[head + K_NEXT]
        release(m, head, CHUNK_HEAD + 3 * m[head + K_CAP])
    elif m[head + K_CAP] >= 8 and 4 * last <= m[head + K_CAP]:
        m[slot] = _resized(m, head, m[head + K_CAP] >> 1)
    m[layer + L_COUNT] -= 1
    if m[layer + L_COUNT] == 0:
        _drop_layer(m, cluster, layer)


@jit
def _move(m: Words, source: int, last: int, chunk: int, at: int) -> None:
    """Fill a hole with the last of the chain's first chunk."""
    cap = m[source + K_CAP]
    to = m[chunk + K_CAP]
    ref = m[source + CHUNK_HEAD + 2 * cap + last]
    m[chunk + CHUNK_HEAD + at] = m[source + CHUNK_HEAD + last]
    m[chunk + CHUNK_HEAD + to + at] = m[source + CHUNK_HEAD + cap + last]
    m[chunk + CHUNK_HEAD + 2 * to + at] = ref
    if source != chunk and (ref & 3) != 0:
        m[source + K_SPECIAL] -= 1
        m[chunk + K_SPECIAL] += 1
    moved = entry(m, ref >> 2)
    m[moved + E_HOME] = chunk
    m[moved + E_AT] = (m[moved + E_AT] & ~0xFFFF) | at


@jit
def find_layer(m: Words, cluster: int, kind: int, base: int) -> int:
    """The layer of this axis and level that begins at this cell; 0 if there is none."""
    at = m[cluster + C_LAYERS]
    for _ in range(m[cluster + C_LAYERS_N]):
        if m[at + L_KIND] == kind and m[at + L_BASE] == base:
            return at
        at += LAYER_WORDS
    return 0


@jit
def _slot(m: Words, layer: int, cell: int) -> int:
    """The address of the word that holds the address of a cell's first chunk."""
    if (m[layer + L_KIND] & 255) >= ONE_CELL:
        return layer + L_TABLE
    return m[layer + L_TABLE] + cell - m[layer + L_BASE]


@jit
def _new_layer(m: Words, cluster: int, kind: int, base: int) -> int:
    count, cap = m[cluster + C_LAYERS_N], m[cluster + C_LAYERS_CAP]
    if count == cap:
        wanted = max(1, 2 * cap)
        if cap == 0:
            m[cluster + C_LAYERS] = allocate(m, LAYER_WORDS * wanted)
        else:
            m[cluster + C_LAYERS] = enlarge(
                m,
                m[cluster + C_LAYERS],
                LAYER_WORDS * count,
                LAYER_WORDS * cap,
                LAYER_WORDS * wanted,
            )
        m[cluster + C_LAYERS_CAP] = wanted
    layer = m[cluster + C_LAYERS] + LAYER_WORDS * count
    m[cluster + C_LAYERS_N] = count + 1
    level = kind & 255
    m[layer + L_KIND] = kind
    m[layer + L_BASE] = base
    m[layer + L_COUNT] = 0
    m[layer + L_FROM] = HIGHEST
    m[layer + L_TO] = LOWEST
    m[layer + L_TABLE] = 0 if level >= ONE_CELL else allocate_clear(m, SEGMENT)
    return layer


@jit
def _drop_layer(m: Words, cluster: int, layer: int) -> None:
    if (m[layer + L_KIND] & 255) < ONE_CELL:
        release(m, m[layer + L_TABLE], SEGMENT)
    count, cap = m[cluster + C_LAYERS_N] - 1, m[cluster + C_LAYERS_CAP]
    m[cluster + C_LAYERS_N] = count
    last = m[cluster + C_LAYERS] + LAYER_WORDS * count
    for word in range(LAYER_WORDS):
        m[layer + word] = m[last + word]
    if count == 0:
        release(m, m[cluster + C_LAYERS], LAYER_WORDS * cap)
        m[cluster + C_LAYERS] = 0
        m[cluster + C_LAYERS_CAP] = 0


@jit
def _roomy(m: Words, slot: int, cluster: int, kind: int, cell: int) -> int:
    """The first chunk of a cell, with room for one more."""
    head = m[slot]
    cap = 1
    if head != 0:
        cap = m[head + K_CAP]
        if m[head + K_COUNT] < cap:
            return head
        if cap < CHUNK_MAX:
            m[slot] = _resized(m, head, 2 * cap)
            return m[slot]
        cap = 64
    chunk = allocate(m, CHUNK_HEAD + 3 * cap)
    m[chunk + TAG] = IS_CHUNK
    m[chunk + K_COUNT] = 0
    m[chunk + K_CAP] = cap
    m[chunk + K_NEXT] = head
    m[chunk + K_CLUSTER] = cluster
    m[chunk + K_KIND] = kind
    m[chunk + K_CELL] = cell
    m[chunk + K_SPECIAL] = 0
    m[slot] = chunk
    return chunk


@jit
def _resized(m: Words, chunk: int, wanted: int) -> int:
    """The chunk with another capacity: moved, and its entries told."""
    count, cap = m[chunk + K_COUNT], m[chunk + K_CAP]
    moved = allocate(m, CHUNK_HEAD + 3 * wanted)
    for word in range(CHUNK_HEAD):
        m[moved + word] = m[chunk + word]
    m[moved + K_CAP] = wanted
    for part in range(3):
        source = chunk + CHUNK_HEAD + part * cap
        to = moved + CHUNK_HEAD + part * wanted
        for at in range(count):
            m[to + at] = m[source + at]
    refs = moved + CHUNK_HEAD + 2 * wanted
    for at in range(count):
        m[entry(m, m[refs + at] >> 2) + E_HOME] = moved
    release(m, chunk, CHUNK_HEAD + 3 * cap)
    return moved


@jit
def listed(m: Words, cluster: int) -> int:
    """The last entry of a list that the cluster has outgrown; -1 if there is none."""
    at = m[cluster + C_LAYERS]
    for _ in range(m[cluster + C_LAYERS_N]):
        if (m[at + L_KIND] & 255) == LIST:
            chunk = m[at + L_TABLE]
            place = chunk + CHUNK_HEAD + 2 * m[chunk + K_CAP] + m[chunk + K_COUNT] - 1
            return m[place] >> 2
        at += LAYER_WORDS
    return -1


@jit
def move_interval(m: Words, number: int, cluster: int, low: int, high: int) -> bool:
    """Change an interval in place, if it stays in its cell; did it?"""
    e = entry(m, number)
    chunk, at = m[e + E_HOME], m[e + E_AT] & 0xFFFF
    level = m[chunk + K_KIND] & 255
    if level < ONE_CELL:
        width = high - low
        if (low >> level) != m[chunk + K_CELL] or width < 0 or bit_length(width) > level:
            return False
        # Much narrower than its cells, it would be found too often; let it be put anew.
        if level_of(m[cluster + C_COUNT], low, high) + 2 < level:
            return False
    cap = m[chunk + K_CAP]
    m[chunk + CHUNK_HEAD + at] = low
    m[chunk + CHUNK_HEAD + cap + at] = high
    cell = m[chunk + K_CELL]
    layer = find_layer(m, cluster, m[chunk + K_KIND], (cell >> SEGMENT_BITS) << SEGMENT_BITS)
    m[layer + L_FROM] = min(m[layer + L_FROM], low)
    m[layer + L_TO] = max(m[layer + L_TO], high)
    return True
