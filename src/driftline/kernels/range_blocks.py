"""What lies where in a table of points (x, y), and how is it searched and changed?

All lies in one array of 64-bit words, which is passed twice: as integers `m`, and as floats `f`.

    header     the fields below
    tree       the least y of all blocks: node k has the children 2k and 2k + 1, and the block at
               position p is node LEAVES + p; where there is no block stands +inf
    lows       by position: no x of the block is less, none of the block before is more
    blocks at  by position: the number of the block
    positions  by number: the position of the block
    homes      by id: 1 + the number of the block that has the tuple; 0 if there is none
    blocks     each a head (its count), then 64 x in order, their y, and their ids

Tuples with the same x stand in any order, and may be in several blocks. A place is a position and
a slot: position * SLOTS + slot. To change y moves nothing; a block that is full is split, one that
is empty stays until all is packed anew into other memory (`pack`), as it also is to grow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from driftline.kernels.jit import inlined, jit
from driftline.kernels.types import Words

Floats = NDArray[np.float64]

# Header.
COUNT = 0  # tuples
BLOCKS = 1  # blocks in use: numbers and positions below it
BLOCKS_CAP = 2
LEAVES = 3
TREE, LOWS, AT, POSITIONS, HOMES, DATA = range(4, 10)  # where they begin
STOPPED = 10  # the change at which `change_tuples` stopped
WRITTEN = 11  # how many messages stand then
PENDING = 12  # 1: that change is made, and it remains to say what it exposed
OLD_X, OLD_Y = 13, 14  # by what it took away; floats
HEADER = 16

SLOTS = 64
FILL = 48  # as many does packing put into a block
SPARSE = 16  # with fewer on average all is packed anew
SPARE = 8  # blocks that few tuples may have besides

B_COUNT = 0
B_X = 8  # the head is a cache line
B_Y = B_X + SLOTS
B_ID = B_Y + SLOTS
BLOCK_WORDS = B_ID + SLOTS


# Places.


@inlined
def block(m: Words, p: int) -> int:
    """The address of the block at a position."""
    return m[DATA] + m[m[AT] + p] * BLOCK_WORDS


@inlined
def seek(m: Words, f: Floats, x: float) -> int:
    """The last position whose low is at most x: the last block that may have x."""
    at, left = m[LOWS], m[BLOCKS]
    while left > 1:
        half = left >> 1
        if f[at + half] <= x:
            at += half
        left -= half
    return at - m[LOWS]


@inlined
def slot_behind(m: Words, f: Floats, b: int, x: float) -> int:
    """The first slot of a block with more than x, or one behind the last."""
    at, left = 0, m[b + B_COUNT]
    while left > 0:
        half = left >> 1
        if f[b + B_X + at + half] <= x:
            at += half + 1
            left -= half + 1
        else:
            left = half
    return at


@inlined
def slot_of(m: Words, b: int, id: int) -> int:
    s = 0
    while m[b + B_ID + s] != id:
        s += 1
    return s


@inlined
def x_at(m: Words, f: Floats, place: int) -> float:
    return f[block(m, place // SLOTS) + B_X + place % SLOTS]


# The tree.


@inlined
def _set_least(m: Words, f: Floats, p: int, least: float) -> None:
    """The least y of the block at a position is another."""
    tree, node = m[TREE], m[LEAVES] + p
    f[tree + node] = least
    while node > 1:
        least = min(least, f[tree + (node ^ 1)])
        node >>= 1
        if f[tree + node] == least:
            return
        f[tree + node] = least


@inlined
def _least_in(m: Words, f: Floats, b: int) -> float:
    """The least y of a block. By four, as one would wait for the other."""
    y, end = b + B_Y, b + B_Y + m[b + B_COUNT]
    one, two, three, four = np.inf, np.inf, np.inf, np.inf
    while y + 4 <= end:
        one, two = min(one, f[y]), min(two, f[y + 1])
        three, four = min(three, f[y + 2]), min(four, f[y + 3])
        y += 4
    while y < end:
        one = min(one, f[y])
        y += 1
    return min(min(one, two), min(three, four))


@jit
def _build_from(m: Words, f: Floats, p: int) -> None:
    """All leaves from a position on are others."""
    tree = m[TREE]
    first, last = m[LEAVES] + p, m[LEAVES] + m[BLOCKS] - 1
    while first > 1:
        first, last = first >> 1, last >> 1
        for node in range(first, last + 1):
            f[tree + node] = min(f[tree + 2 * node], f[tree + 2 * node + 1])


# Questions.


@inlined
def below(number: float) -> float:
    """The float before: at most that is less than the number."""
    return np.nextafter(number, -np.inf)


@jit
def find_left(m: Words, f: Floats, p: int, s: int, most: float) -> int:
    """The nearest place before another with y at most `most`; -1 if there is none."""
    tree, leaves = m[TREE], m[LEAVES]
    node = leaves + p
    if f[tree + node] <= most:
        y = block(m, p) + B_Y
        for slot in range(s - 1, -1, -1):
            if f[y + slot] <= most:
                return p * SLOTS + slot
    # Up to where something on the left is small enough; a power of two has nothing on its left.
    while (node & 1) == 0 or f[tree + node - 1] > most:
        if (node & (node - 1)) == 0:
            return -1
        node >>= 1
    node -= 1
    while node < leaves:
        node = 2 * node + 1
        if f[tree + node] > most:
            node -= 1
    p = node - leaves
    b = block(m, p)
    slot = m[b + B_COUNT] - 1
    while f[b + B_Y + slot] > most:
        slot -= 1
    return p * SLOTS + slot


@jit
def find_right(m: Words, f: Floats, p: int, s: int, most: float) -> int:
    """The nearest place from another on with y at most `most`; -1 if there is none."""
    tree, leaves = m[TREE], m[LEAVES]
    node = leaves + p
    if f[tree + node] <= most:
        b = block(m, p)
        for slot in range(s, m[b + B_COUNT]):
            if f[b + B_Y + slot] <= most:
                return p * SLOTS + slot
    while (node & 1) == 1 or f[tree + node + 1] > most:
        if (node & (node + 1)) == 0:
            return -1
        node >>= 1
    node += 1
    while node < leaves:
        node = 2 * node
        if f[tree + node] > most:
            node += 1
    p = node - leaves
    b, slot = block(m, p), 0
    while f[b + B_Y + slot] > most:
        slot += 1
    return p * SLOTS + slot


@jit
def least_within(m: Words, f: Floats, low: float, high: float) -> float:
    """The least y with x in [low, high]; +inf if there is none."""
    # What is not less than `low` begins in the last block that begins with less.
    first, last = seek(m, f, below(low)), seek(m, f, high)
    least = np.inf
    for p in (first, last):
        b = block(m, p)
        for s in range(m[b + B_COUNT]):
            if low <= f[b + B_X + s] and f[b + B_X + s] <= high:
                least = min(least, f[b + B_Y + s])
    # Whole blocks in between: from both ends up, until they are neighbours.
    tree = m[TREE]
    before, behind = m[LEAVES] + first, m[LEAVES] + last
    while before < behind and (before ^ behind) != 1:
        if (before & 1) == 0:
            least = min(least, f[tree + before + 1])
        if (behind & 1) == 1:
            least = min(least, f[tree + behind - 1])
        before, behind = before >> 1, behind >> 1
    return least


@inlined
def least_at(m: Words, f: Floats, p: int, s: int, x: float) -> float:
    """The least y at x; the tuples that have it stand on both sides of this place, if any do."""
    b = block(m, p)
    least = np.inf
    first = s - 1
    while first >= 0 and f[b + B_X + first] == x:
        least = min(least, f[b + B_Y + first])
        first -= 1
    last = s
    while last < m[b + B_COUNT] and f[b + B_X + last] == x:
        least = min(least, f[b + B_Y + last])
        last += 1
    lows = m[LOWS]
    if first < 0 and f[lows + p] == x:
        return least_within(m, f, x, x)
    if last == m[b + B_COUNT] and p + 1 < m[BLOCKS] and f[lows + p + 1] == x:
        return least_within(m, f, x, x)
    return least


# Changes.


@jit
def remove(m: Words, f: Floats, b: int, s: int) -> None:
    """Take the tuple out of a slot."""
    p, y = m[m[POSITIONS] + (b - m[DATA]) // BLOCK_WORDS], f[b + B_Y + s]
    m[m[HOMES] + m[b + B_ID + s]] = 0
    last = m[b + B_COUNT] - 1
    for slot in range(s, last):
        f[b + B_X + slot] = f[b + B_X + slot + 1]
        f[b + B_Y + slot] = f[b + B_Y + slot + 1]
        m[b + B_ID + slot] = m[b + B_ID + slot + 1]
    m[b + B_COUNT] = last
    m[COUNT] -= 1
    if y == f[m[TREE] + m[LEAVES] + p]:
        _set_least(m, f, p, _least_in(m, f, b))


@jit
def insert(m: Words, f: Floats, id: int, x: float, y: float) -> None:
    """Put a new tuple where it belongs; there is a free block."""
    p = seek(m, f, x)
    b = block(m, p)
    if m[b + B_COUNT] == SLOTS:
        _split(m, f, p)
        if f[m[LOWS] + p + 1] <= x:
            p += 1
            b = block(m, p)
    s = slot_behind(m, f, b, x)
    for slot in range(m[b + B_COUNT], s, -1):
        f[b + B_X + slot] = f[b + B_X + slot - 1]
        f[b + B_Y + slot] = f[b + B_Y + slot - 1]
        m[b + B_ID + slot] = m[b + B_ID + slot - 1]
    f[b + B_X + s] = x
    f[b + B_Y + s] = y
    m[b + B_ID + s] = id
    m[b + B_COUNT] += 1
    m[COUNT] += 1
    m[m[HOMES] + id] = 1 + m[m[AT] + p]
    if y < f[m[TREE] + m[LEAVES] + p]:
        _set_least(m, f, p, y)


@jit
def _split(m: Words, f: Floats, p: int) -> None:
    """Give the right half of a block to a new one, at the next position."""
    number = m[BLOCKS]
    old, new = block(m, p), m[DATA] + number * BLOCK_WORDS
    half = SLOTS // 2
    for s in range(half):
        f[new + B_X + s] = f[old + B_X + half + s]
        f[new + B_Y + s] = f[old + B_Y + half + s]
        m[new + B_ID + s] = m[old + B_ID + half + s]
        m[m[HOMES] + m[new + B_ID + s]] = 1 + number
    m[old + B_COUNT] = half
    m[new + B_COUNT] = half
    lows, at, leaf = m[LOWS], m[AT], m[TREE] + m[LEAVES]
    for q in range(number, p + 1, -1):
        f[lows + q] = f[lows + q - 1]
        f[leaf + q] = f[leaf + q - 1]
        m[at + q] = m[at + q - 1]
        m[m[POSITIONS] + m[at + q]] = q
    f[lows + p + 1] = f[new + B_X]
    f[leaf + p] = _least_in(m, f, old)
    f[leaf + p + 1] = _least_in(m, f, new)
    m[at + p + 1] = number
    m[m[POSITIONS] + number] = p + 1
    m[BLOCKS] += 1
    _build_from(m, f, p)


@jit
def set_y(m: Words, f: Floats, p: int, s: int, y: float) -> None:
    b, leaf = block(m, p), m[TREE] + m[LEAVES] + p
    old = f[b + B_Y + s]
    f[b + B_Y + s] = y
    if y < f[leaf]:
        _set_least(m, f, p, y)
    elif old == f[leaf]:
        _set_least(m, f, p, _least_in(m, f, b))


# All at once.


def make_room(tuples: int, ids: int) -> Words:
    """Fresh memory to `pack` so many tuples into, and to grow to twice as many.

    It begins at a cache line, and so does each section.
    """
    blocks = SPARE + 2 * (tuples // FILL + 1)
    leaves = 1 << (blocks - 1).bit_length()
    sizes = {TREE: 2 * leaves, LOWS: blocks, AT: blocks, POSITIONS: blocks, HOMES: ids}
    sizes[DATA] = blocks * BLOCK_WORDS
    begins, end = {}, HEADER
    for section, size in sizes.items():
        begins[section] = end
        end += size + -size % 8
    m = np.zeros(end + 8, np.int64)
    m = m[-m.ctypes.data % 64 // 8 :][:end]
    m[BLOCKS_CAP], m[LEAVES] = blocks, leaves
    for section, begin in begins.items():
        m[section] = begin
    return m


@jit
def pack(m: Words, f: Floats, ids: Words, points: Floats) -> None:
    """Put tuples, in the order of x, into fresh memory that has room for them."""
    leaf = m[TREE] + m[LEAVES]
    for node in range(m[TREE], leaf + m[LEAVES]):
        f[node] = np.inf
    count = len(ids)
    blocks = max(1, (count + FILL - 1) // FILL)
    for p in range(blocks):
        b = m[DATA] + p * BLOCK_WORDS
        first, last = count * p // blocks, count * (p + 1) // blocks
        for i in range(first, last):
            f[b + B_X + i - first] = points[i, 0]
            f[b + B_Y + i - first] = points[i, 1]
            m[b + B_ID + i - first] = ids[i]
            m[m[HOMES] + ids[i]] = 1 + p
        m[b + B_COUNT] = last - first
        m[m[AT] + p] = p
        m[m[POSITIONS] + p] = p
        f[m[LOWS] + p] = f[b + B_X] if p > 0 else -np.inf
        f[leaf + p] = _least_in(m, f, b)
    m[COUNT] = count
    m[BLOCKS] = blocks
    _build_from(m, f, 0)


@jit
def unpack(m: Words, f: Floats, ids: Words, points: Floats) -> None:
    """Write all tuples, in the order of x."""
    i = 0
    for p in range(m[BLOCKS]):
        b = block(m, p)
        for s in range(m[b + B_COUNT]):
            points[i, 0] = f[b + B_X + s]
            points[i, 1] = f[b + B_Y + s]
            ids[i] = m[b + B_ID + s]
            i += 1
