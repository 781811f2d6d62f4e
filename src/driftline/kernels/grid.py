"""How are intervals on one axis kept so that a key finds those it is in?

An interval of width below 2^L belongs to level L, and there to the cell `lo >> L`: a key x can only
be in intervals whose cell is that of x or the one before. So each level costs two looks, and what
is found there is about as narrow as the cells are. Cells are kept in *layers* of 62 in a row, each
cell a chain of *chunks* of (lo, hi, ref), contiguous, with holes filled from the end.

    level 4:   cells  …|16..31|32..47|…      [20, 29] and [30, 34] are in the cell of 16
    x = 33:    looks at the cell of 32 and at the cell of 16, and finds [30, 34]

A small cluster does without cells: one list per axis, at the level LIST.
"""

from __future__ import annotations

from driftline.kernels.arena import allocate, allocate_clear, enlarge, release
from driftline.kernels.entries import entry, number_in
from driftline.kernels.jit import bit_length, inlined, jit
from driftline.kernels.layout import (
    C_COUNT,
    C_LAYERS,
    C_LAYERS_CAP,
    C_LAYERS_N,
    CHUNK_HEAD,
    CHUNK_MAX,
    COARSER,
    E_AT,
    E_HOME,
    HIGHEST,
    IS_CHUNK,
    ITEM_HIGH,
    ITEM_LOW,
    ITEM_REF,
    ITEM_WORDS,
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
    TABLE_WORDS,
    TAG,
)
from driftline.kernels.types import Words

# Cells are made so coarse that a cluster of n entries has about n / 8 of them in use.
_ROOMY_BITS = 8


@inlined
def _item(chunk: int, at: int) -> int:
    """Where in a chunk the entry at a place is."""
    return chunk + CHUNK_HEAD + ITEM_WORDS * at


@inlined
def chunk_words(count: int) -> int:
    """How many words a chunk of so many entries has."""
    return CHUNK_HEAD + ITEM_WORDS * count


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
    # The finest cells may take half of the layers a cluster can have, the next half of the rest.
    left = LAYERS_MAX >> 1
    while True:
        cell = 0 if level >= ONE_CELL else low >> level
        base = 0 if level >= ONE_CELL else _base(cell)
        kind = (axis << 8) | level
        layer = find_layer(m, cluster, kind, base)
        if layer != 0 or level >= ONE_CELL or m[cluster + C_LAYERS_N] < LAYERS_MAX - left:
            break
        left >>= 1
        level = min(level + COARSER, ONE_CELL)
    if layer == 0:
        layer = _new_layer(m, cluster, kind, base)
    m[layer + L_COUNT] += 1
    m[layer + L_FROM] = min(m[layer + L_FROM], low)
    m[layer + L_TO] = max(m[layer + L_TO], high)
    slot = _slot(m, layer, cell)
    chunk = _roomy(m, slot, cluster, kind, cell)
    at = m[chunk + K_COUNT]
    item = _item(chunk, at)
    m[item + ITEM_LOW] = low
    m[item + ITEM_HIGH] = high
    m[item + ITEM_REF] = ref
    m[chunk + K_COUNT] = at + 1
    m[chunk + K_SPECIAL] += (ref & 3) != 0
    e = entry(m, number_in(ref))
    m[e + E_HOME] = chunk
    m[e + E_AT] = at


@jit
def take_interval(m: Words, number: int) -> None:
    """Remove an entry that stands in a chunk."""
    e = entry(m, number)
    chunk, at = m[e + E_HOME], m[e + E_AT] & 0xFFFF
    cluster, cell = m[chunk + K_CLUSTER], m[chunk + K_CELL]
    layer = _layer_of(m, cluster, chunk)
    slot = _slot(m, layer, cell)
    head = m[slot]
    m[chunk + K_SPECIAL] -= (m[_item(chunk, at) + ITEM_REF] & 3) != 0
    last = m[head + K_COUNT] - 1
    if head != chunk or last != at:
        _move(m, head, last, chunk, at)
    m[head + K_COUNT] = last
    m[e + E_HOME] = 0
    if last == 0:
        m[slot] = m[head + K_NEXT]
        release(m, head, chunk_words(m[head + K_CAP]))
    elif m[head + K_CAP] >= 8 and 4 * last <= m[head + K_CAP]:
        m[slot] = _resized(m, head, m[head + K_CAP] >> 1)
    m[layer + L_COUNT] -= 1
    if m[layer + L_COUNT] == 0:
        _drop_layer(m, cluster, layer)


@jit
def _move(m: Words, source: int, last: int, chunk: int, at: int) -> None:
    """Fill a hole with the last of the chain's first chunk."""
    item = _item(source, last)
    for word in range(ITEM_WORDS):
        m[_item(chunk, at) + word] = m[item + word]
    ref = m[item + ITEM_REF]
    if source != chunk and (ref & 3) != 0:
        m[source + K_SPECIAL] -= 1
        m[chunk + K_SPECIAL] += 1
    moved = entry(m, number_in(ref))
    m[moved + E_HOME] = chunk
    m[moved + E_AT] = (m[moved + E_AT] & ~0xFFFF) | at


@inlined
def _base(cell: int) -> int:
    """The cell before the first one of a cell's layer."""
    return cell - cell % SEGMENT - 1


@jit
def _layer_of(m: Words, cluster: int, chunk: int) -> int:
    kind = m[chunk + K_KIND]
    base = 0 if (kind & 255) >= ONE_CELL else _base(m[chunk + K_CELL])
    return find_layer(m, cluster, kind, base)


@jit
def find_layer(m: Words, cluster: int, kind: int, base: int) -> int:
    """The layer of this axis and level that begins behind this cell; 0 if there is none."""
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
    m[layer + L_TABLE] = 0 if level >= ONE_CELL else allocate_clear(m, TABLE_WORDS)
    return layer


@jit
def _drop_layer(m: Words, cluster: int, layer: int) -> None:
    if (m[layer + L_KIND] & 255) < ONE_CELL:
        release(m, m[layer + L_TABLE], TABLE_WORDS)
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
    chunk = allocate(m, chunk_words(cap))
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
    moved = allocate(m, chunk_words(wanted))
    for word in range(chunk_words(count)):
        m[moved + word] = m[chunk + word]
    m[moved + K_CAP] = wanted
    for at in range(count):
        m[entry(m, number_in(m[_item(moved, at) + ITEM_REF])) + E_HOME] = moved
    release(m, chunk, chunk_words(cap))
    return moved


@jit
def listed(m: Words, cluster: int) -> int:
    """The last entry of a list that the cluster has outgrown; -1 if there is none."""
    at = m[cluster + C_LAYERS]
    for _ in range(m[cluster + C_LAYERS_N]):
        if (m[at + L_KIND] & 255) == LIST:
            chunk = m[at + L_TABLE]
            return number_in(m[_item(chunk, m[chunk + K_COUNT] - 1) + ITEM_REF])
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
    item = _item(chunk, at)
    m[item + ITEM_LOW] = low
    m[item + ITEM_HIGH] = high
    layer = _layer_of(m, cluster, chunk)
    m[layer + L_FROM] = min(m[layer + L_FROM], low)
    m[layer + L_TO] = max(m[layer + L_TO], high)
    return True
