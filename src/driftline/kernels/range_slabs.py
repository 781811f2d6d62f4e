"""Which ranges does a message about minima affect? [DBNET §3.2]

A range [low, high] is a point in slabs; a message is a rectangle: outer left < low <= inner left,
and inner right <= high < outer right. As keys (see `keys`) high stands one up, so that both sides
are open below and closed above, as `slab_scan` wants it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from driftline.kernels.arena import allocate
from driftline.kernels.axes import begin
from driftline.kernels.changes import has_room
from driftline.kernels.entries import ref_to
from driftline.kernels.jit import allocating, inlined, jit
from driftline.kernels.keys import number_key
from driftline.kernels.layout import MISSING, POINTS_WORDS
from driftline.kernels.slab_scan import collect, has_any, is_within, run_of, touched
from driftline.kernels.slabs import begin_points, put_point, slab_at, take_point
from driftline.kernels.types import Numbers, Words

_INNER_LEFT, _INNER_RIGHT, _OUTER_LEFT, _OUTER_RIGHT = 1, 2, 3, 4


@jit
def begin_ranges(m: Words) -> int:
    """Make memory hold no ranges; the address of their record."""
    begin(m)
    points = allocate(m, POINTS_WORDS)
    begin_points(m, points)
    return points


@jit
def set_ranges(m: Words, points: int, held: Words, numbers: Words, ranges: Words, done: int) -> int:
    """Let numbers have these ranges, from `done` on; how many are done by now.

    Fewer than there are means that the memory must grow first. A range is the bits of two floats,
    of which NaN says that there is none; `held` has them by number.
    """
    while done < len(numbers) and has_room(m, 1):
        number = numbers[done]
        if number_key(held[number, 0]) != MISSING:
            x, y = _point(held[number, 0], held[number, 1])
            take_point(m, points, x, y, number)
        low, high = ranges[done, 0], ranges[done, 1]
        held[number, 0], held[number, 1] = low, high
        if number_key(low) != MISSING:
            x, y = _point(low, high)
            put_point(m, points, x, y, ref_to(number, 0, 0))
        done += 1
    return done


@inlined
def _point(low: int, high: int) -> tuple[int, int]:
    return number_key(low), number_key(high) + 1


@allocating
def affected(m: Words, points: int, rows: Words, ends: Words, out: Numbers) -> Numbers:
    """The numbers whose ranges messages affect: those of row i are at ends[i] .. ends[i + 1].

    Messages are rows of the bits of floats. `out` is written, or a longer array if it is too short.
    """
    k = 0
    ends[0] = 0
    for row in range(len(rows)):
        left, right = number_key(rows[row, _OUTER_LEFT]), number_key(rows[row, _INNER_LEFT])
        low, high = number_key(rows[row, _INNER_RIGHT]), number_key(rows[row, _OUTER_RIGHT])
        if left < right and low < high:
            first, last = touched(m, points, left, right)
            for place in range(first, last + 1):
                slab = slab_at(m, points, place)
                start, end = run_of(m, slab, low, high)
                if start < end:
                    if k + end - start >= len(out):
                        out = _longer(out, k, end - start)
                    within = is_within(m, points, place, left, right)
                    k = collect(m, slab, start, end, within, left, right, 2, out, k)
        ends[row + 1] = k
    return out


@allocating
def _longer(out: Numbers, k: int, more: int) -> Numbers:
    longer = np.empty(2 * (k + more) + 1, np.int32)
    longer[:k] = out[:k]
    return longer


@jit
def affects_any(m: Words, points: int, rows: Words, wanted: NDArray[np.bool_]) -> None:
    """Write for each message whether it affects anybody: the first that is found decides."""
    for row in range(len(rows)):
        left, right = number_key(rows[row, _OUTER_LEFT]), number_key(rows[row, _INNER_LEFT])
        low, high = number_key(rows[row, _INNER_RIGHT]), number_key(rows[row, _OUTER_RIGHT])
        found = False
        if left < right and low < high:
            first, last = touched(m, points, left, right)
            for place in range(first, last + 1):
                slab = slab_at(m, points, place)
                start, end = run_of(m, slab, low, high)
                if start < end and (
                    is_within(m, points, place, left, right)
                    or has_any(m, slab, start, end, left, right)
                ):
                    found = True
                    break
        wanted[row] = found
