"""Which points lie in a rectangle: left < x <= right and low < y <= high?

The slabs it touches are a run, found among their bounds; in each the points between `low` and
`high` are a run too. Messages about minima ask for little rectangles just above the diagonal, which
is where the y of a slab begin: so the search starts there and takes ever larger steps.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.jit import inlined
from driftline.kernels.layout import (
    N_BOUNDS,
    N_SLABS,
    REF_BITS,
    S_COUNT,
)
from driftline.kernels.slabs import room_of, ys_of
from driftline.kernels.types import Numbers, Words

u64 = np.uint64
_REF = (1 << REF_BITS) - 1


@inlined
def rank(m: Words, start: int, count: int, key: int) -> int:
    """How many of some words in order, at least one, are not above a key. Without a branch."""
    at = u64(start)
    left = u64(count)
    while left > u64(1):
        half = left >> u64(1)
        at += half * u64(m[at + half - u64(1)] <= key)
        left -= half
    return np.int64(at + u64(m[at] <= key)) - start


@inlined
def touched(m: Words, points: int, left: int, right: int) -> tuple[int, int]:
    """The first slab that may have a point with left < x <= right, and the last."""
    bounds, slabs = m[points + N_BOUNDS], m[points + N_SLABS]
    # The first bound is below all, so there is one not above `left`.
    first = rank(m, bounds, slabs, left) - 1
    last = first
    if first + 1 < slabs and m[bounds + first + 1] <= right:
        last = first + rank(m, bounds + first + 1, slabs - first - 1, right)
    return first, last


@inlined
def is_within(m: Words, points: int, place: int, left: int, right: int) -> bool:
    """Has every point of a slab an x in the rectangle, as far as the bounds tell?"""
    bound = m[points + N_BOUNDS] + place
    return place + 1 < m[points + N_SLABS] and left < m[bound] and m[bound + 1] <= right


@inlined
def run_of(m: Words, slab: int, low: int, high: int) -> tuple[int, int]:
    """Where the points of a slab with low < y <= high begin and end."""
    count = m[slab + S_COUNT]
    start = above(m, ys_of(m, slab), count, low)
    return start, start + above(m, ys_of(m, slab) + start, count - start, high)


@inlined
def above(m: Words, words: int, count: int, key: int) -> int:
    """How many of some words in order are not above a key; quick where few are."""
    at = 0
    step = 4
    while at + step <= count and m[words + at + step - 1] <= key:
        at += step
        step <<= 2
    left = min(step - 1, count - at)
    return at + rank(m, words + at, left, key) if left > 0 else at


@inlined
def collect(
    m: Words,
    slab: int,
    start: int,
    end: int,
    within: bool,
    left: int,
    right: int,
    shift: int,
    out: Numbers,
    k: int,
) -> int:
    """Write the refs of a run's points with left < x <= right; there must be room for one more.

    Shifted down by 2 they are numbers. Without a branch: each is written, and stays if the next one
    does not overwrite it.
    """
    to = u64(k)
    xs = u64(ys_of(m, slab) + room_of(m, slab) + start)
    refs = xs + u64(room_of(m, slab))
    if within:
        for at in range(u64(end - start)):
            out[to + at] = (m[refs + at] & _REF) >> shift
        return k + end - start
    for at in range(u64(end - start)):
        out[to] = (m[refs + at] & _REF) >> shift
        x = m[xs + at]
        to += u64(left < x) & u64(x <= right)
    return np.int64(to)


@inlined
def has_any(m: Words, slab: int, start: int, end: int, left: int, right: int) -> bool:
    """Has a run a point with left < x <= right?"""
    xs = u64(ys_of(m, slab) + room_of(m, slab) + start)
    for at in range(u64(end - start)):
        x = m[xs + at]
        if left < x and x <= right:
            return True
    return False
