"""How is a record found by its hash?

Open addressing with linear probing, in shards: each shard grows by itself, so growing never moves
more than a thousandth of the table at once. A slot is (hash, address). Equal hashes are for the
caller to tell apart: `first` and `following` walk the slots that have the hash.
"""

from __future__ import annotations

from driftline.kernels.arena import allocate_clear, release
from driftline.kernels.jit import inlined, jit
from driftline.kernels.layout import SHARDS, SHARDS_AT
from driftline.kernels.types import Words

_SHARD_BITS = 10
_COUNT = (1 << 32) - 1


@inlined
def first(m: Words, h: int) -> int:
    """The address of the first slot with this hash; 0 if there is none."""
    shard = SHARDS_AT + ((h & (SHARDS - 1)) << 1)
    table = m[shard]
    if table == 0:
        return 0
    mask = (m[shard + 1] >> 32) - 1
    at = (h >> _SHARD_BITS) & mask
    while m[table + 2 * at + 1] != 0:
        if m[table + 2 * at] == h:
            return table + 2 * at
        at = (at + 1) & mask
    return 0


@inlined
def following(m: Words, h: int, slot: int) -> int:
    """The next slot with this hash; 0 if there is none."""
    shard = SHARDS_AT + ((h & (SHARDS - 1)) << 1)
    table = m[shard]
    mask = (m[shard + 1] >> 32) - 1
    at = (((slot - table) >> 1) + 1) & mask
    while m[table + 2 * at + 1] != 0:
        if m[table + 2 * at] == h:
            return table + 2 * at
        at = (at + 1) & mask
    return 0


@jit
def put(m: Words, h: int, address: int) -> None:
    """Make a record findable."""
    shard = SHARDS_AT + ((h & (SHARDS - 1)) << 1)
    cap = m[shard + 1] >> 32
    count = m[shard + 1] & _COUNT
    if 3 * (count + 1) > 2 * cap:
        _resize(m, shard, max(4, 2 * cap))
    _place(m, m[shard], (m[shard + 1] >> 32) - 1, h, address)
    m[shard + 1] += 1


@jit
def remove(m: Words, h: int, address: int) -> None:
    """Make it unfindable again; it must be there."""
    slot = first(m, h)
    while m[slot + 1] != address:
        slot = following(m, h, slot)
    shard = SHARDS_AT + ((h & (SHARDS - 1)) << 1)
    table = m[shard]
    mask = (m[shard + 1] >> 32) - 1
    hole = (slot - table) >> 1
    # Close the hole: whatever a probe reaches only across it moves up.
    at = hole
    while True:
        at = (at + 1) & mask
        if m[table + 2 * at + 1] == 0:
            break
        home = (m[table + 2 * at] >> _SHARD_BITS) & mask
        if ((at - home) & mask) >= ((at - hole) & mask):
            m[table + 2 * hole] = m[table + 2 * at]
            m[table + 2 * hole + 1] = m[table + 2 * at + 1]
            hole = at
    m[table + 2 * hole + 1] = 0
    m[shard + 1] -= 1
    count = m[shard + 1] & _COUNT
    cap = mask + 1
    if count == 0:
        release(m, table, 2 * cap)
        m[shard] = 0
        m[shard + 1] = 0
    elif cap > 4 and 6 * count < cap:
        _resize(m, shard, cap >> 1)


@jit
def _place(m: Words, table: int, mask: int, h: int, address: int) -> None:
    at = (h >> _SHARD_BITS) & mask
    while m[table + 2 * at + 1] != 0:
        at = (at + 1) & mask
    m[table + 2 * at] = h
    m[table + 2 * at + 1] = address


@jit
def _resize(m: Words, shard: int, cap: int) -> None:
    old, old_cap = m[shard], m[shard + 1] >> 32
    table = allocate_clear(m, 2 * cap)
    for at in range(old_cap):
        if m[old + 2 * at + 1] != 0:
            _place(m, table, cap - 1, m[old + 2 * at], m[old + 2 * at + 1])
    if old_cap > 0:
        release(m, old, 2 * old_cap)
    m[shard] = table
    m[shard + 1] = (cap << 32) | (m[shard + 1] & _COUNT)
