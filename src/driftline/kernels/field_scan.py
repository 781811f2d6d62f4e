"""What does an event find in the fields of a cluster?

Its values are the sides of a rectangle, and the points in it are entries it satisfies, but for what
else they ask. An event that lacks a value for one of the sides finds nothing.
"""

from __future__ import annotations

from driftline.kernels.entries import program_in
from driftline.kernels.jit import inlined, jit
from driftline.kernels.layout import (
    C_FIELDS,
    CHECK,
    FIELD_AXES,
    FIELD_CLOSED,
    FIELD_NEXT,
    FIELD_POINTS,
    HIGHEST,
    MISSING,
    REF_BITS,
    S_SPECIAL,
)
from driftline.kernels.programs import satisfied
from driftline.kernels.slab_scan import collect, is_within, run_of, touched
from driftline.kernels.slabs import room_of, slab_at, ys_of
from driftline.kernels.types import Bytes, Numbers, Words

_REF = (1 << REF_BITS) - 1


@jit
def scan_fields(
    m: Words,
    m8: Bytes,
    cluster: int,
    columns: Words,
    keys: Words,
    event: int,
    texts: Bytes,
    refs: Numbers,
    k: int,
) -> int:
    """Write the refs of what an event finds in the fields of a cluster; how many there are then.

    There must be room for all entries of the cluster, and for one more.
    """
    field = m[cluster + C_FIELDS]
    while field != 0:
        axes = field + FIELD_AXES
        left, low = _below(m, axes, columns, keys, event), _below(m, axes + 2, columns, keys, event)
        right = _above(m, axes + 1, columns, keys, event)
        high = _above(m, axes + 3, columns, keys, event)
        if left < right and low < high:
            points = field + FIELD_POINTS
            first, last = touched(m, points, left, right)
            for place in range(first, last + 1):
                slab = slab_at(m, points, place)
                start, end = run_of(m, slab, low, high)
                if start == end:
                    continue
                within = is_within(m, points, place, left, right)
                if m[slab + S_SPECIAL] == 0:
                    k = collect(m, slab, start, end, within, left, right, 0, refs, k)
                else:
                    k = _verified(
                        m, m8, slab, start, end, left, right, columns, keys, event, texts, refs, k
                    )
        field = m[field + FIELD_NEXT]
    return k


@inlined
def _below(m: Words, axis: int, columns: Words, keys: Words, event: int) -> int:
    """Above what a coordinate must be: all keys where nothing is asked, none if it is missing."""
    if m[axis] < 0:
        return MISSING
    closed = m[axis] & FIELD_CLOSED
    column = columns[m[axis] ^ closed]
    key = MISSING if column < 0 else keys[column, event]
    return HIGHEST if key == MISSING else key - int(closed != 0)


@inlined
def _above(m: Words, axis: int, columns: Words, keys: Words, event: int) -> int:
    """Up to what it may be."""
    if m[axis] < 0:
        return HIGHEST
    column = columns[m[axis]]
    return MISSING if column < 0 else keys[column, event]


@jit
def _verified(
    m: Words,
    m8: Bytes,
    slab: int,
    start: int,
    end: int,
    left: int,
    right: int,
    columns: Words,
    keys: Words,
    event: int,
    texts: Bytes,
    refs: Numbers,
    k: int,
) -> int:
    """As `collect`, of a slab where some ask for more."""
    xs = ys_of(m, slab) + room_of(m, slab)
    for at in range(start, end):
        x = m[xs + at]
        if x <= left or x > right:
            continue
        ref = m[xs + room_of(m, slab) + at]
        if (ref & CHECK) == 0 or satisfied(m, m8, program_in(ref), columns, keys, event, texts):
            refs[k] = ref & _REF
            k += 1
    return k
