"""How are points kept so that those in a rectangle lie together, while they come and go?

By x in slabs of up to 1,022, and in each slab by y. A rectangle covers some slabs from edge to
edge, and in each of these what it holds is a run, found by two searches; only in the first and the
last must x be looked at too. A slab that is full is split at its middle point, one that is nearly
empty joins its neighbour, and a point that comes or goes moves those above or below it in its slab
by one place, whichever are fewer.

    slabs                x below 3             x from 3 on
    in each, by y        (1,2) (2,5) (0,9)     (7,1) (3,4) (5,8)
    0 < x <= 3, y > 3:         (2,5) (0,9) and       (3,4) (5,8), of which x tells (2,5) and (3,4)

The order is that of (x, y, number) among slabs and of (y, number) within one: so each point has one
place, and points that are equal stay as easy to find as others. `layout` has the records.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.arena import allocate, release
from driftline.kernels.entries import number_in
from driftline.kernels.jit import inlined, jit
from driftline.kernels.layout import (
    MISSING,
    N_BOUNDS,
    N_CAP,
    N_COUNT,
    N_SLABS,
    S_COUNT,
    S_SPECIAL,
    S_START,
    S_WORDS,
    SLAB_FIRST,
    SLAB_HEAD,
    SLAB_WORDS,
)
from driftline.kernels.types import Words

# Unsigned offsets in the innermost loops: a signed one might be negative, which costs a look each.
u64 = np.uint64
_BOUNDS_FIRST = 1
_SPECIAL = 3  # the flags of a ref


@inlined
def room_of(m: Words, slab: int) -> int:
    """How many points a slab has room for."""
    return (m[slab + S_WORDS] - SLAB_HEAD) // 3


@inlined
def ys_of(m: Words, slab: int) -> int:
    """Where the y of a slab begin."""
    return slab + SLAB_HEAD + m[slab + S_START]


@inlined
def slab_at(m: Words, points: int, place: int) -> int:
    """The address of the slab at a place."""
    return m[m[points + N_BOUNDS] + 3 * m[points + N_CAP] + place]


@inlined
def _set_slab(m: Words, points: int, place: int, slab: int) -> None:
    m[m[points + N_BOUNDS] + 3 * m[points + N_CAP] + place] = slab


@jit
def begin_points(m: Words, points: int) -> None:
    """Write the record of no points."""
    m[points + N_COUNT] = 0
    m[points + N_SLABS] = 0
    m[points + N_CAP] = _BOUNDS_FIRST
    m[points + N_BOUNDS] = allocate(m, 4 * _BOUNDS_FIRST)
    _insert_slab(m, points, 0, MISSING, MISSING, 0, _new_slab(m, SLAB_FIRST, 0))


@jit
def end_points(m: Words, points: int) -> None:
    """Free what belongs to the record; there must be no points."""
    slab = slab_at(m, points, 0)
    release(m, slab, m[slab + S_WORDS])
    release(m, m[points + N_BOUNDS], 4 * m[points + N_CAP])


@jit
def put_point(m: Words, points: int, x: int, y: int, ref: int) -> None:
    """Add a point, whose number has none yet."""
    number = number_in(ref)
    place = _slab_of(m, points, x, y, number)
    slab = slab_at(m, points, place)
    if m[slab + S_COUNT] == room_of(m, slab):
        if m[slab + S_WORDS] < SLAB_WORDS:
            slab = _resize(m, points, place, min(2 * m[slab + S_WORDS], SLAB_WORDS))
        else:
            _split(m, points, place)
            slab = slab_at(m, points, _slab_of(m, points, x, y, number))
    at, count, room = _place_in(m, slab, y, number), m[slab + S_COUNT], room_of(m, slab)
    start = m[slab + S_START]
    first = ys_of(m, slab)
    is_down = start + count == room or (start > 0 and 2 * at < count)
    for word in (y, x, ref):
        if is_down:
            _close(m, first - 1, at)
            m[first - 1 + at] = word
        else:
            _open(m, first + at, count - at)
            m[first + at] = word
        first += room
    m[slab + S_START] = start - int(is_down)
    m[slab + S_COUNT] = count + 1
    m[slab + S_SPECIAL] += (ref & _SPECIAL) != 0
    m[points + N_COUNT] += 1


@jit
def take_point(m: Words, points: int, x: int, y: int, number: int) -> None:
    """Remove a point, which must be there."""
    place = _slab_of(m, points, x, y, number)
    slab = slab_at(m, points, place)
    at, count, room = _place_in(m, slab, y, number), m[slab + S_COUNT], room_of(m, slab)
    first = ys_of(m, slab)
    m[slab + S_SPECIAL] -= (m[first + 2 * room + at] & _SPECIAL) != 0
    is_up = 2 * at < count
    for _ in range(3):
        if is_up:
            _open(m, first, at)
        else:
            _close(m, first + at, count - 1 - at)
        first += room
    m[slab + S_START] += int(is_up)
    m[slab + S_COUNT] = count - 1
    m[points + N_COUNT] -= 1
    if 4 * count < room:
        _shrink(m, points, place)


@jit
def _shrink(m: Words, points: int, place: int) -> None:
    """Let a slab that has become nearly empty join a neighbour, or be smaller if it has none."""
    slabs = m[points + N_SLABS]
    slab = slab_at(m, points, place)
    if slabs == 1:
        if m[slab + S_WORDS] > SLAB_FIRST:
            _resize(m, points, place, max(m[slab + S_WORDS] >> 1, SLAB_FIRST))
        return
    left = min(place, slabs - 2)
    together = m[slab_at(m, points, left) + S_COUNT] + m[slab_at(m, points, left + 1) + S_COUNT]
    # A quarter of the room is left, so that the next few points do not split it again.
    if m[slab + S_COUNT] == 0 or 4 * together <= SLAB_WORDS - SLAB_HEAD:
        _join(m, points, left)


@jit
def _slab_of(m: Words, points: int, x: int, y: int, number: int) -> int:
    """The place of the slab that a point belongs to: the last one whose bound is not above it."""
    xs, cap = m[points + N_BOUNDS], m[points + N_CAP]
    low = 0
    high = m[points + N_SLABS] - 1
    while low < high:
        middle = (low + high + 1) >> 1
        bound = xs + middle
        if _is_below(x, y, number, m[bound], m[bound + cap], m[bound + 2 * cap]):
            high = middle - 1
        else:
            low = middle
    return low


@inlined
def _is_below(x: int, y: int, number: int, x1: int, y1: int, number1: int) -> bool:
    if x != x1:
        return x < x1
    return y < y1 or (y == y1 and number < number1)


@jit
def _place_in(m: Words, slab: int, y: int, number: int) -> int:
    """How many points of a slab come before one."""
    ys = ys_of(m, slab)
    refs = ys + 2 * room_of(m, slab)
    low = 0
    high = m[slab + S_COUNT]
    while low < high:
        middle = (low + high) >> 1
        y1 = m[ys + middle]
        if y1 < y or (y1 == y and number_in(m[refs + middle]) < number):
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _open(m: Words, start: int, count: int) -> None:
    """Move some words one place up."""
    to = u64(start + count)
    for _ in range(count):
        m[to] = m[to - u64(1)]
        to -= u64(1)


@inlined
def _close(m: Words, start: int, count: int) -> None:
    """Move as many words behind one a place down, over it."""
    to = u64(start)
    for _ in range(count):
        m[to] = m[to + u64(1)]
        to += u64(1)


@jit
def _new_slab(m: Words, words: int, count: int) -> int:
    """A slab for so many points, which will stand in its middle."""
    slab = allocate(m, words)
    m[slab + S_COUNT] = 0
    m[slab + S_WORDS] = words
    m[slab + S_SPECIAL] = 0
    m[slab + S_START] = (room_of(m, slab) - count) >> 1
    return slab


@jit
def _resize(m: Words, points: int, place: int, words: int) -> int:
    """Give a slab other room, which must be enough."""
    old = slab_at(m, points, place)
    slab = _new_slab(m, words, m[old + S_COUNT])
    for at in range(m[old + S_COUNT]):
        _append(m, slab, old, at)
    _set_slab(m, points, place, slab)
    release(m, old, m[old + S_WORDS])
    return slab


@inlined
def _append(m: Words, slab: int, source: int, at: int) -> None:
    """Let the last point of a slab be one of another."""
    to = ys_of(m, slab) + m[slab + S_COUNT]
    room = room_of(m, slab)
    word = ys_of(m, source) + at
    room_there = room_of(m, source)
    m[to] = m[word]
    m[to + room] = m[word + room_there]
    ref = m[word + 2 * room_there]
    m[to + 2 * room] = ref
    m[slab + S_COUNT] += 1
    m[slab + S_SPECIAL] += (ref & _SPECIAL) != 0


@jit
def _split(m: Words, points: int, place: int) -> None:
    """Let the points of a slab from the middle one on have a slab of their own."""
    old = slab_at(m, points, place)
    count, room = m[old + S_COUNT], room_of(m, old)
    ys = ys_of(m, old)
    order = allocate(m, count)
    middle = ys + _middle(m, old, order, count)
    release(m, order, count)
    y, x, number = m[middle], m[middle + room], number_in(m[middle + 2 * room])
    below = count >> 1
    left, right = _new_slab(m, SLAB_WORDS, below), _new_slab(m, SLAB_WORDS, count - below)
    for at in range(count):
        word = ys + at
        is_left = _is_below(m[word + room], m[word], number_in(m[word + 2 * room]), x, y, number)
        _append(m, left if is_left else right, old, at)
    release(m, old, m[old + S_WORDS])
    _set_slab(m, points, place, left)
    _insert_slab(m, points, place + 1, x, y, number, right)


@jit
def _middle(m: Words, slab: int, order: int, count: int) -> int:
    """Which point of a slab has as many before it as behind, by (x, y, number)? Hoare's FIND."""
    for at in range(count):
        m[order + at] = at
    wanted = count >> 1
    low = 0
    high = count - 1
    while low < high:
        pivot = m[order + ((low + high) >> 1)]
        i, j = low, high
        while i <= j:
            while _comes_before(m, slab, m[order + i], pivot):
                i += 1
            while _comes_before(m, slab, pivot, m[order + j]):
                j -= 1
            if i <= j:
                m[order + i], m[order + j] = m[order + j], m[order + i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break
    return m[order + wanted]


@inlined
def _comes_before(m: Words, slab: int, a: int, b: int) -> bool:
    """Within a slab (y, number) is the order already, and tells who is first of one x."""
    xs = ys_of(m, slab) + room_of(m, slab)
    xa, xb = m[xs + a], m[xs + b]
    return xa < xb or (xa == xb and a < b)


@jit
def _join(m: Words, points: int, place: int) -> None:
    """Make a slab and the next one a single slab."""
    left, right = slab_at(m, points, place), slab_at(m, points, place + 1)
    slab = _new_slab(m, SLAB_WORDS, m[left + S_COUNT] + m[right + S_COUNT])
    i = 0
    j = 0
    while i < m[left + S_COUNT] or j < m[right + S_COUNT]:
        if j == m[right + S_COUNT] or (i < m[left + S_COUNT] and _is_first(m, left, i, right, j)):
            _append(m, slab, left, i)
            i += 1
        else:
            _append(m, slab, right, j)
            j += 1
    release(m, left, m[left + S_WORDS])
    release(m, right, m[right + S_WORDS])
    _set_slab(m, points, place, slab)
    _remove_slab(m, points, place + 1)


@inlined
def _is_first(m: Words, left: int, i: int, right: int, j: int) -> bool:
    y1, y2 = m[ys_of(m, left) + i], m[ys_of(m, right) + j]
    if y1 != y2:
        return y1 < y2
    ref1 = m[ys_of(m, left) + 2 * room_of(m, left) + i]
    return number_in(ref1) < number_in(m[ys_of(m, right) + 2 * room_of(m, right) + j])


@jit
def _insert_slab(m: Words, points: int, place: int, x: int, y: int, number: int, slab: int) -> None:
    slabs, cap = m[points + N_SLABS], m[points + N_CAP]
    if slabs == cap:
        bounds = allocate(m, 8 * cap)
        for row in range(4):
            for at in range(slabs):
                m[bounds + 2 * row * cap + at] = m[m[points + N_BOUNDS] + row * cap + at]
        release(m, m[points + N_BOUNDS], 4 * cap)
        m[points + N_BOUNDS] = bounds
        cap *= 2
        m[points + N_CAP] = cap
    at = m[points + N_BOUNDS] + place
    for word in (x, y, number, slab):
        _open(m, at, slabs - place)
        m[at] = word
        at += cap
    m[points + N_SLABS] = slabs + 1


@jit
def _remove_slab(m: Words, points: int, place: int) -> None:
    slabs = m[points + N_SLABS] - 1
    at = m[points + N_BOUNDS] + place
    for _ in range(4):
        _close(m, at, slabs - place)
        at += m[points + N_CAP]
    m[points + N_SLABS] = slabs
