"""What lies where, when many want to be told that a value moved by so much?

All lies in one array of 64-bit words, which is passed three times: as integers `m`, as floats `f`,
and as 32-bit integers `n`, whose addresses are twice as large.

    header     the fields below
    tree       groups of eight children, level by level: of each child the nearest and the farthest
               end point on either side, the least and the largest radius, and a value at which all
               below it were told and which has not been written there yet (NaN: none)
    lows       by position: no radius of the block is less, none of the block before is more
    at         by position: the number of the block (n)
    positions  by number: the position of the block (n)
    homes      by id (n): 0: not there, 1 + block: alone in an entry, -(1 + slot): one of several
    blocks     each a head (its count), then up to 32 entries in the order of (radius, ring): their
               radii, least and largest centres, references and ring numbers
    rings      those of an entry with several subscriptions, see `moved_rings` (n)
    classes    those of them with one centre
    slots      the subscriptions themselves

A reference is the id of a subscription that is alone, or -(1 + ring). Who is told last has its
centre at the value: an entry, or all of a subtree, is then one centre, whatever lies below, and
`least == largest` says so. Slots, classes and rings are not used again: when there is no more room,
or when a block must be split and there is none, all is packed anew into other memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from driftline.kernels.jit import inlined
from driftline.kernels.types import Numbers, Words

Floats = NDArray[np.float64]

# Header.
COUNT = 0  # subscriptions
BLOCKS = 1  # blocks in use: positions below it
BLOCKS_CAP = 2
LEVELS = 3
MEASURE = 4  # how far is far: see below
JOINS = 5  # 1: subscriptions of one radius with different centres may share an entry
RANKED = 6  # entries whose ring number is not 0
VALUE = 7  # the current one; a float
LOWS, DATA, CLASSES, SLOTS = range(8, 12)  # where they begin
AT, POSITIONS, HOMES, RINGS = range(12, 16)  # where they begin in n
CLASSES_USED, CLASSES_CAP = 16, 17
SLOTS_USED, SLOTS_CAP = 18, 19
RINGS_USED, RINGS_CAP = 20, 21
NUMBERS_USED = 22  # block numbers ever used
STOPPED = 23  # where a kernel stopped that is to be called again
AT_LEVEL, AT_GROUP, AT_CHILD, AT_ROW = range(24, 28)  # … in the middle of an event
TOLD_FIRST, TOLD_LAST = 28, 29  # slots: what a ring says of those it told
SHIFT_FIRST, SHIFT_LAST, SHIFT_BY = 30, 31, 32  # which labels have moved, and how far; 0: none
UNIT_BITS = 33  # labels are multiples of 2 to this
LEVEL = 40  # where each level begins, from the lowest
HEADER = 56

# How far is far.
BY, PERCENT, FACTOR = range(3)

# A group: eight of each.
FANOUT = 8
NEAR_UP, FAR_UP, NEAR_DOWN, FAR_DOWN, R_MIN, R_MAX, RESET = range(0, 56, 8)
GROUP_WORDS = 64

# A block. With twice the slots an event takes a fifth longer, and a subscription a tenth to a
# quarter less memory.
SLOTS_MAX = 32
FILL = 24  # as many does packing put into a block
B_COUNT = 0
B_RADIUS = 8  # the head is a cache line
B_LEAST = B_RADIUS + SLOTS_MAX
B_MOST = B_LEAST + SLOTS_MAX
B_REF = 2 * (B_MOST + SLOTS_MAX)  # in n
B_RING = B_REF + SLOTS_MAX  # in n
BLOCK_WORDS = (B_RING + SLOTS_MAX) // 2

# A ring, in n.
R_FRONT, R_BACK, R_FINGER, R_COUNT, R_HOME = range(5)
RING_NUMBERS = 8

# A class: its centre, then in n:
C_PREV, C_NEXT, C_FIRST, C_LAST, C_COUNT, C_PARENT, C_RING = range(2, 9)
CLASS_WORDS = 5

# A slot: its label, then in n:
S_ID, S_NEXT, S_PREV, S_CLASS = range(2, 6)
SLOT_WORDS = 3

NONE = -1
SPARE = 16  # blocks, rings, classes and slots that few subscriptions may have besides


# End points.


@inlined
def end_up(measure: int, centre: float, radius: float) -> float:
    """From here on upwards one with this centre is told."""
    if measure == BY:
        return centre + radius
    if measure == PERCENT:
        return centre + abs(centre) * radius / 100.0
    return centre * radius


@inlined
def end_down(measure: int, centre: float, radius: float) -> float:
    """From here on downwards one with this centre is told."""
    if measure == BY:
        return centre - radius
    if measure == PERCENT:
        return centre - abs(centre) * radius / 100.0
    return centre / radius


# Places.


@inlined
def block(m: Words, n: Numbers, p: int) -> int:
    """The address of the block at a position."""
    return m[DATA] + n[m[AT] + p] * BLOCK_WORDS


@inlined
def group(m: Words, level: int, g: int) -> int:
    return m[LEVEL + level] + g * GROUP_WORDS


@inlined
def ring_at(m: Words, ring: int) -> int:
    """The address of a ring in n."""
    return m[RINGS] + ring * RING_NUMBERS


@inlined
def class_at(m: Words, number: int) -> int:
    """The address of a class in f; what is in n is at twice of it."""
    return m[CLASSES] + number * CLASS_WORDS


@inlined
def slot_at(m: Words, slot: int) -> int:
    """The address of a slot in m; what is in n is at twice of it."""
    return m[SLOTS] + slot * SLOT_WORDS


def make_room(entries: int, rings: int, members: int, ids: int) -> Words:
    """Fresh memory to pack so many into, and to grow to twice as many.

    `members` are those that are not alone in an entry. It begins at a cache line, and so does each
    section.
    """
    blocks = SPARE + 2 * (entries // FILL + 1)
    counts = [-(-blocks // FANOUT)]
    while counts[-1] > 1:
        counts.append(-(-counts[-1] // FANOUT))
    slots, many = SPARE + 2 * members, SPARE + 2 * rings
    begins, end = {}, HEADER
    words = {LEVEL + level: count * GROUP_WORDS for level, count in enumerate(counts)}
    words |= {LOWS: blocks, DATA: blocks * BLOCK_WORDS}
    words |= {CLASSES: slots * CLASS_WORDS, SLOTS: slots * SLOT_WORDS}
    halves = {AT: blocks, POSITIONS: blocks, HOMES: ids, RINGS: many * RING_NUMBERS}
    for section, size in (words | {key: -(-size // 2) for key, size in halves.items()}).items():
        begins[section] = 2 * end if section in halves else end
        end += size + -size % 8
    m = np.zeros(end + 8, np.int64)
    m = m[-m.ctypes.data % 64 // 8 :][:end]
    for section, begin in begins.items():
        m[section] = begin
    m[BLOCKS_CAP], m[LEVELS] = blocks, len(counts)
    m[CLASSES_CAP], m[SLOTS_CAP], m[RINGS_CAP] = slots, slots, many
    return m
