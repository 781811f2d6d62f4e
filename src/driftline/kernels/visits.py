"""Which clusters does an event visit?

Those without an equality, and one per equality that it has a value for. The visits of a block of
events are put in order by cluster, so that what is looked at stays in the cache.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.clusters import cluster_hash, is_cluster
from driftline.kernels.jit import allocating, inlined, jit
from driftline.kernels.layout import (
    A_CLUSTERS,
    BY_HASH,
    BY_TEXT,
    C_GUARD,
    MISSING,
    TYPE_HASH,
    TYPE_TEXT,
    UNKEYED,
    UNTYPED,
)
from driftline.kernels.programs import axis_at, satisfied
from driftline.kernels.table import first, following
from driftline.kernels.types import Bytes, Words

BLOCK = 4096
# A visit of a block: cluster << 28 | how many visits of the event came before << 12 | event.
EVENT_BITS = 12
VISIT_BITS = 28
VISIT = (1 << VISIT_BITS) - 1
_DIGIT_BITS = 11
_DIGIT = 1 << _DIGIT_BITS


@jit
def combinations_of(
    m: Words, columns: Words, present: Words, presents: int, combined: Words
) -> int:
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


@inlined
def visits_of(
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
        cluster = cluster_at(m, m8, columns, keys, event, texts, naming, type_key, axis, key)
        if cluster != 0:
            visits[count] = cluster
            count += 1
    return count


@inlined
def cluster_at(
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
    """The cluster of these keys, if the event has the texts behind them too; else 0."""
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


@allocating
def in_order(visits: Words, count: int, highest: int, spare: Words) -> Words:
    """The visits of a block by cluster: sorted by one digit of the address after the other.

    Or whatever else is to be ordered by what stands above VISIT_BITS, none of it above `highest`.
    """
    if count < _DIGIT:  # not worth the counting
        return np.sort(visits[:count])
    counts = np.empty(_DIGIT, np.int64)
    shift = VISIT_BITS
    while (highest >> (shift - VISIT_BITS)) > 0:
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
