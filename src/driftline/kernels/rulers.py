"""Where is an axis cut into cells?

A ruler has 63 marks, so that each of its 64 cells holds about as many of the bounds seen on the
axis. Bounds move and so do their distributions: after enough new bounds another ruler is made from
a sample of them. Families keep the ruler they were made with and are emptied into newer ones.
"""

from __future__ import annotations

from driftline.kernels.arena import allocate, allocate_clear, enlarge, release
from driftline.kernels.jit import inlined, jit
from driftline.kernels.keys import mix
from driftline.kernels.layout import (
    A_LIVE,
    A_NEXT,
    A_RULER,
    A_SAMPLE,
    A_SEEN,
    CELLS,
    FREE_RULER,
    HIGHEST,
    LOWEST,
    R_AXIS,
    R_MARKS,
    R_NUMBER,
    R_REFS,
    R_SAMPLED,
    RULER_TOP,
    RULER_WORDS,
    RULERS,
    RULERS_CAP,
    SAMPLE,
)
from driftline.kernels.programs import axis_at
from driftline.kernels.types import Words

_FIRST = 64  # bounds before the first ruler
_GROWTH = 8  # times as many bounds as there are live ones before the next


@inlined
def cell_of(m: Words, ruler: int, key: int) -> int:
    """The cell a key is in: how many marks are at or below it."""
    at = ruler + R_MARKS
    cell = 0
    step = CELLS >> 1
    while step > 0:
        if m[at + cell + step - 1] <= key:
            cell += step
        step >>= 1
    return cell


@jit
def note(m: Words, axis: int, low: int, high: int) -> None:
    """Let the bounds of an interval count for the next ruler, and make it when it is due."""
    record = axis_at(m, axis)
    if m[record + A_SAMPLE] == 0:
        m[record + A_SAMPLE] = allocate(m, SAMPLE)
        m[record + A_NEXT] = _FIRST
    if low > LOWEST:
        _sample(m, record, low)
    if high < HIGHEST and high != low:
        _sample(m, record, high)
    if m[record + A_SEEN] >= m[record + A_NEXT]:
        make_ruler(m, axis)


@jit
def _sample(m: Words, record: int, bound: int) -> None:
    """A reservoir in which chance is a hash of the count, so that a run replays."""
    seen = m[record + A_SEEN]
    m[record + A_SEEN] = seen + 1
    at = seen if seen < SAMPLE else (mix(seen) & HIGHEST) % (seen + 1)
    if at < SAMPLE:
        m[m[record + A_SAMPLE] + at] = bound


@jit
def make_ruler(m: Words, axis: int) -> int:
    """A new ruler for the axis, from the bounds sampled since the last."""
    record = axis_at(m, axis)
    old = m[record + A_RULER]
    ruler = allocate_clear(m, RULER_WORDS)
    number = m[FREE_RULER]
    if number >= 0:
        m[FREE_RULER] = m[m[RULERS] + number]
    else:
        number = m[RULER_TOP]
        cap = m[RULERS_CAP]
        if number == cap:
            m[RULERS] = enlarge(m, m[RULERS], cap, cap, 2 * cap)
            m[RULERS_CAP] = 2 * cap
        m[RULER_TOP] = number + 1
    m[m[RULERS] + number] = ruler
    m[ruler + R_NUMBER] = number
    m[ruler + R_AXIS] = axis
    m[ruler + R_REFS] = 1  # the axis itself
    sampled = min(m[record + A_SEEN], SAMPLE)
    sample = m[record + A_SAMPLE]
    m[ruler + R_SAMPLED] = sampled
    _sort(m, sample, sampled)
    for mark in range(CELLS - 1):
        place = (mark + 1) * sampled // CELLS
        m[ruler + R_MARKS + mark] = m[sample + place] if sampled > 0 else 0
    m[record + A_RULER] = ruler
    m[record + A_SEEN] = 0
    m[record + A_NEXT] = _GROWTH * max(2 * m[record + A_LIVE], _FIRST)
    if old != 0:
        drop_ruler(m, old)
    return ruler


@jit
def drop_ruler(m: Words, ruler: int) -> None:
    """One user less; without any it is gone."""
    m[ruler + R_REFS] -= 1
    if m[ruler + R_REFS] == 0:
        number = m[ruler + R_NUMBER]
        m[m[RULERS] + number] = m[FREE_RULER]
        m[FREE_RULER] = number
        release(m, ruler, RULER_WORDS)


@jit
def forget_axis(m: Words, axis: int) -> None:
    """Nothing uses the axis any more: drop what was learnt about it."""
    record = axis_at(m, axis)
    if m[record + A_RULER] != 0:
        drop_ruler(m, m[record + A_RULER])
        m[record + A_RULER] = 0
    if m[record + A_SAMPLE] != 0:
        release(m, m[record + A_SAMPLE], SAMPLE)
        m[record + A_SAMPLE] = 0
    m[record + A_SEEN] = 0


@jit
def _sort(m: Words, start: int, count: int) -> None:
    """Shell's sort: short, in place, and fast enough for a sample."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for at in range(start + gap, start + count):
            word = m[at]
            to = at
            while to >= start + gap and m[to - gap] > word:
                m[to] = m[to - gap]
                to -= gap
            m[to] = word
        gap //= 3
