"""Which filters share a type and an equality?

A cluster is found by a hash of (how the type is named, its key, the axis of the equality, its key).
Where a key is itself a hash of a long text, the cluster's *guard* holds the text, and two texts
with one hash have a cluster each.
"""

from __future__ import annotations

from driftline.kernels.arena import allocate, allocate_clear, release
from driftline.kernels.jit import inlined, jit
from driftline.kernels.keys import mix
from driftline.kernels.layout import (
    A_CLUSTERS,
    A_PARTS,
    C_AXIS,
    C_GUARD,
    C_HASH,
    C_KEY,
    C_TYPE_KEY,
    C_TYPED,
    CLUSTER_WORDS,
    CLUSTERS,
    IS_CLUSTER,
    TAG,
    UNKEYED,
)
from driftline.kernels.programs import axis_at
from driftline.kernels.table import first, following, put, remove
from driftline.kernels.types import Words


@inlined
def cluster_hash(typed: int, type_key: int, axis: int, key: int) -> int:
    """The hash a cluster is found by."""
    return mix(mix(type_key ^ (typed << 1)) ^ mix(axis) ^ key)


@inlined
def is_cluster(
    m: Words, cluster: int, h: int, typed: int, type_key: int, axis: int, key: int
) -> bool:
    """Is this record the cluster of these keys, as far as keys tell?"""
    return (
        m[cluster + TAG] == IS_CLUSTER
        and m[cluster + C_HASH] == h
        and m[cluster + C_AXIS] == axis
        and m[cluster + C_KEY] == key
        and m[cluster + C_TYPED] == typed
        and m[cluster + C_TYPE_KEY] == type_key
    )


@jit
def cluster_for(
    m: Words, typed: int, type_key: int, axis: int, key: int, scratch: Words, guard: int
) -> int:
    """The cluster of these keys and this guard (a program at scratch[guard]), made if needed."""
    h = cluster_hash(typed, type_key, axis, key)
    words = scratch[guard] >> 32 if guard >= 0 else 0
    slot = first(m, h)
    while slot != 0:
        cluster = m[slot + 1]
        if is_cluster(m, cluster, h, typed, type_key, axis, key):
            if words == 0 or _same_guard(m, m[cluster + C_GUARD], scratch, guard, words):
                return cluster
        slot = following(m, h, slot)
    cluster = allocate_clear(m, CLUSTER_WORDS)
    m[cluster + TAG] = IS_CLUSTER
    m[cluster + C_HASH] = h
    m[cluster + C_TYPED] = typed
    m[cluster + C_TYPE_KEY] = type_key
    m[cluster + C_AXIS] = axis
    m[cluster + C_KEY] = key
    if words > 0:
        m[cluster + C_GUARD] = allocate(m, words)
        for word in range(words):
            m[m[cluster + C_GUARD] + word] = scratch[guard + word]
    put(m, h, cluster)
    m[CLUSTERS] += 1
    if axis < 0:
        m[UNKEYED + typed] += 1
    else:
        m[axis_at(m, axis) + A_CLUSTERS + typed] += 1
        m[axis_at(m, axis) + A_PARTS] += 1
    return cluster


@jit
def _same_guard(m: Words, held: int, scratch: Words, guard: int, words: int) -> bool:
    for word in range(words):
        if m[held + word] != scratch[guard + word]:
            return False
    return True


@jit
def drop_cluster(m: Words, cluster: int) -> None:
    """Free a cluster that has no entries."""
    remove(m, m[cluster + C_HASH], cluster)
    m[CLUSTERS] -= 1
    axis = m[cluster + C_AXIS]
    if axis < 0:
        m[UNKEYED + m[cluster + C_TYPED]] -= 1
    else:
        m[axis_at(m, axis) + A_CLUSTERS + m[cluster + C_TYPED]] -= 1
        m[axis_at(m, axis) + A_PARTS] -= 1
    if m[cluster + C_GUARD] != 0:
        release(m, m[cluster + C_GUARD], m[m[cluster + C_GUARD]] >> 32)
    release(m, cluster, CLUSTER_WORDS)
