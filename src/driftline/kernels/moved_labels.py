"""How are the places in a circle numbered, so that one more finds room between any two?

A label is a number modulo 2^64: one is within an arc if `label - first <= last - first`. All are
multiples of a unit, for a network that has fewer bits for them. A new label divides the gap between
two as its centre lies between theirs, so that those who come while a value goes to and fro do not
halve the same gap over and over. Where a gap is used up, a run of labels beside it moves by half of
the gap at its other end. That is one short message to whoever knows the labels, however many move:

    units    4 5 | 6 7 9 16 ..   one between 5 and 6: 6 7 9 move by 3, half of 9 to 16
             4 5 | 9 10 12 16 ..   and it is at 7

Of the runs on both sides the one is taken that costs least for each time that the gap it makes can
be halved: a shift costs as much as its labels, and a number of labels for itself. We differ from
M. Bender and others (Two simplified algorithms for maintaining order in a list, 2002), who number a
range evenly: that takes a message for each label.
"""

from __future__ import annotations

from driftline.kernels.jit import inlined, jit
from driftline.kernels.moved_layout import (
    NONE,
    S_NEXT,
    S_PREV,
    SHIFT_BY,
    SHIFT_FIRST,
    SHIFT_LAST,
    UNIT_BITS,
    slot_at,
)
from driftline.kernels.types import Numbers, Words

_POSITIVE = (1 << 63) - 1
_MESSAGE = 100
"""A shift costs as much as moving so many labels: it is told to everybody who knows one.

In a random walk with somebody new at each step and one radius this makes three times fewer shifts
than 0 would, and no more labels move, as the gaps that are made last longer.
"""


@inlined
def label_of(m: Words, slot: int) -> int:
    return m[slot_at(m, slot)]


@inlined
def next_slot(m: Words, n: Numbers, slot: int) -> int:
    return n[2 * slot_at(m, slot) + S_NEXT]


@inlined
def prev_slot(m: Words, n: Numbers, slot: int) -> int:
    return n[2 * slot_at(m, slot) + S_PREV]


@inlined
def half_gap(m: Words, below: int, above: int) -> int:
    """How far is it to the middle between the labels of two slots? 0: there is none between them.

    Where both are one label, so are all of the circle, and the gap goes round.
    """
    gap = label_of(m, above) - label_of(m, below)
    half = _POSITIVE if gap == 0 else (gap >> 1) & _POSITIVE
    return half & -(1 << m[UNIT_BITS])


@jit
def new_label(m: Words, below: int, above: int, share: float) -> int:
    """A label between those of two neighbours in the circle, which have room.

    So much of the way from the one to the other, if labels are as fine as that.
    """
    unit, half = 1 << m[UNIT_BITS], half_gap(m, below, above)
    near = min(share, 1.0 - share)
    # Twice as much is at most the half, which is nearly 2^63.
    quarter = min(int(near * half), half >> 1)
    offset = max(2 * quarter & -unit, unit)
    return label_of(m, below) + offset if share < 0.5 else label_of(m, above) - offset


@jit
def widen_gap(m: Words, n: Numbers, below: int, above: int) -> bool:
    """Shift a run of labels, so that there is one between two slots; False: all are in use.

    Which and how far is left in the header. Runs begin at either slot and grow away from it.
    """
    high, low, cost = above, below, _MESSAGE
    best, best_up, best_by, best_cost, best_times = NONE, True, 0, 1, 0
    most_times = 64 - m[UNIT_BITS]
    # A gap can be halved so many times at most, so longer runs cannot win in the end.
    while (cost + 1) * best_times < best_cost * most_times:
        cost += 1
        high, low = _last_alike(m, n, high), _first_alike(m, n, low)
        behind, before = next_slot(m, n, high), prev_slot(m, n, low)
        by = half_gap(m, high, behind)
        times = _times(m, by, cost * best_times // best_cost)
        if times > 0:
            best, best_up, best_by, best_cost, best_times = high, True, by, cost, times
        by = half_gap(m, before, low)
        times = _times(m, by, cost * best_times // best_cost)
        if times > 0:
            best, best_up, best_by, best_cost, best_times = low, False, by, cost, times
        if label_of(m, behind) == label_of(m, below):
            break
        high, low = behind, before
    if best == NONE:
        return False
    if best_up:
        _shift(m, n, above, best, best_by)
    else:
        _shift(m, n, best, below, -best_by)
    return True


@inlined
def _times(m: Words, by: int, beaten: int) -> int:
    """How often can a gap be halved that was widened by this? 0: not more often than `beaten`."""
    units = by >> m[UNIT_BITS]
    if units >> beaten == 0:
        return 0
    times = beaten + 1
    while units >> times != 0:
        times += 1
    return times


@inlined
def _last_alike(m: Words, n: Numbers, slot: int) -> int:
    """The last slot from one on that has its label."""
    behind = next_slot(m, n, slot)
    while label_of(m, behind) == label_of(m, slot):
        slot, behind = behind, next_slot(m, n, behind)
    return slot


@inlined
def _first_alike(m: Words, n: Numbers, slot: int) -> int:
    before = prev_slot(m, n, slot)
    while label_of(m, before) == label_of(m, slot):
        slot, before = before, prev_slot(m, n, before)
    return slot


@jit
def _shift(m: Words, n: Numbers, first: int, last: int, by: int) -> None:
    m[SHIFT_FIRST], m[SHIFT_LAST], m[SHIFT_BY] = label_of(m, first), label_of(m, last), by
    slot = first
    while True:
        m[slot_at(m, slot)] += by
        if slot == last:
            return
        slot = next_slot(m, n, slot)
