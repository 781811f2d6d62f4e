"""What does an event find in the grid of a cluster?

In three steps, each for several visits before the next: which layers reach over the event's key,
which chunks to read there, and what they hold. So chunks are on their way while others are read.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.entries import program_in
from driftline.kernels.jit import allocating, inlined, prefetch
from driftline.kernels.layout import (
    C_LAYERS,
    C_LAYERS_N,
    CHECK,
    CHUNK_HEAD,
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
    ONE_CELL,
    REF_BITS,
)
from driftline.kernels.programs import satisfied
from driftline.kernels.types import Bytes, Numbers, Words

# Unsigned offsets in the innermost loops: a signed one might be negative, which costs a look each.
u64 = np.uint64
_REF = (1 << REF_BITS) - 1
_LINES_AHEAD = 6  # of each chunk; what follows in a row the machine fetches by itself


@inlined
def near_layers(
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
def stage(m: Words, near: Words, start: int, end: int, staged: Words, count: int) -> int:
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
def scan_staged(
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


@allocating
def more_rows(rows: Words, count: int, more: int) -> Words:
    """The rows, with room for more."""
    larger = np.empty((2 * (count + more), 2), np.int64)
    larger[:count] = rows[:count]
    return larger
