"""Who of those with one radius is told, when they were told last at different values?

Those with the same centre form a class. Two in one class are told together for ever, so classes
merge and never part, and a new one begins only with a new subscription. In the order of their
centres classes form a queue with two ends. When the value rises, some are taken from its front,
the lowest centres, become one and stand at its back, as theirs is the highest centre now; when it
falls, the other way round. So the subscriptions stand in a circle that never changes [VALUE,
Theorem 1], of which each class is an arc, and so is whatever is told.

A class is one of a doubly linked list; subscriptions (slots) are linked in a circle; which class a
slot is in is found from the class it began in (union-find). Its place in the circle has a label,
see `moved_labels`; who joins a class gets the label of one in it.
"""

from __future__ import annotations

from driftline.kernels.jit import inlined, jit
from driftline.kernels.moved_labels import half_gap, label_of, new_label, next_slot, widen_gap
from driftline.kernels.moved_layout import (
    C_COUNT,
    C_FIRST,
    C_LAST,
    C_NEXT,
    C_PARENT,
    C_PREV,
    C_RING,
    CLASSES_USED,
    MEASURE,
    NONE,
    R_BACK,
    R_COUNT,
    R_FINGER,
    R_FRONT,
    S_CLASS,
    S_ID,
    S_NEXT,
    S_PREV,
    SLOTS_USED,
    TOLD_FIRST,
    TOLD_LAST,
    Floats,
    class_at,
    end_down,
    end_up,
    ring_at,
    slot_at,
)
from driftline.kernels.types import Numbers, Words

# Classes.


@inlined
def centre_of(m: Words, f: Floats, number: int) -> float:
    return f[class_at(m, number)]


@jit
def find_class(m: Words, n: Numbers, slot: int) -> int:
    """The class that a slot is in now; the way there gets shorter."""
    at = 2 * slot_at(m, slot) + S_CLASS
    number = n[at]
    while True:
        parent = n[2 * class_at(m, number) + C_PARENT]
        if parent == NONE:
            n[at] = number
            return number
        above = n[2 * class_at(m, parent) + C_PARENT]
        if above != NONE:
            n[2 * class_at(m, number) + C_PARENT] = above
        number = parent


@inlined
def _merge(m: Words, n: Numbers, one: int, two: int) -> int:
    """Make one class of two, where the second follows in the circle; its number."""
    a, b = 2 * class_at(m, one), 2 * class_at(m, two)
    first, last = n[a + C_FIRST], n[b + C_LAST]
    count = n[a + C_COUNT] + n[b + C_COUNT]
    root, other = one, a
    if n[a + C_COUNT] >= n[b + C_COUNT]:
        other = b
    else:
        root = two
    n[other + C_PARENT] = root
    top = 2 * class_at(m, root)
    n[top + C_FIRST], n[top + C_LAST], n[top + C_COUNT] = first, last, count
    return root


@inlined
def _link(m: Words, n: Numbers, q: int, before: int, number: int, behind: int) -> None:
    """Put a class between two, which may be none: then it is the front or the back."""
    c = 2 * class_at(m, number)
    n[c + C_PREV], n[c + C_NEXT] = before, behind
    if before == NONE:
        n[q + R_FRONT] = number
    else:
        n[2 * class_at(m, before) + C_NEXT] = number
    if behind == NONE:
        n[q + R_BACK] = number
    else:
        n[2 * class_at(m, behind) + C_PREV] = number


@inlined
def _unlink(m: Words, n: Numbers, q: int, number: int) -> None:
    c = 2 * class_at(m, number)
    before, behind = n[c + C_PREV], n[c + C_NEXT]
    if before == NONE:
        n[q + R_FRONT] = behind
    else:
        n[2 * class_at(m, before) + C_NEXT] = behind
    if behind == NONE:
        n[q + R_BACK] = before
    else:
        n[2 * class_at(m, behind) + C_PREV] = before
    if n[q + R_FINGER] == number:
        n[q + R_FINGER] = behind if before == NONE else before


@jit
def collapse(m: Words, f: Floats, n: Numbers, ring: int, centre: float) -> None:
    """All of a ring were told at once, at this value: there is one class."""
    q = ring_at(m, ring)
    number = n[q + R_FRONT]
    behind = n[2 * class_at(m, number) + C_NEXT]
    while behind != NONE:
        following = n[2 * class_at(m, behind) + C_NEXT]
        number = _merge(m, n, number, behind)
        behind = following
    _link(m, n, q, NONE, number, NONE)
    n[q + R_FINGER] = number
    f[class_at(m, number)] = centre


# Events.


@jit
def ring_rises(
    m: Words, f: Floats, n: Numbers, ring: int, radius: float, value: float, probe: float
) -> None:
    """The value rose, and the front is told: which slots are, from where to where in the circle."""
    q, measure = ring_at(m, ring), m[MEASURE]
    number = n[q + R_FRONT]
    m[TOLD_FIRST] = n[2 * class_at(m, number) + C_FIRST]
    behind = n[2 * class_at(m, number) + C_NEXT]
    while behind != NONE and end_up(measure, centre_of(m, f, behind), radius) <= probe:
        following = n[2 * class_at(m, behind) + C_NEXT]
        number = _merge(m, n, number, behind)
        behind = following
    m[TOLD_LAST] = n[2 * class_at(m, number) + C_LAST]
    n[q + R_FRONT] = behind
    back = NONE
    if behind != NONE:
        n[2 * class_at(m, behind) + C_PREV] = NONE
        back = n[q + R_BACK]
        if centre_of(m, f, back) == value:
            before = n[2 * class_at(m, back) + C_PREV]
            number = _merge(m, n, back, number)
            back = before
    _link(m, n, q, back, number, NONE)
    n[q + R_FINGER] = number
    f[class_at(m, number)] = value


@jit
def ring_falls(
    m: Words, f: Floats, n: Numbers, ring: int, radius: float, value: float, probe: float
) -> None:
    """The mirror image: the value fell, and the back is told."""
    q, measure = ring_at(m, ring), m[MEASURE]
    number = n[q + R_BACK]
    m[TOLD_LAST] = n[2 * class_at(m, number) + C_LAST]
    before = n[2 * class_at(m, number) + C_PREV]
    while before != NONE and end_down(measure, centre_of(m, f, before), radius) >= probe:
        following = n[2 * class_at(m, before) + C_PREV]
        number = _merge(m, n, before, number)
        before = following
    m[TOLD_FIRST] = n[2 * class_at(m, number) + C_FIRST]
    n[q + R_BACK] = before
    front = NONE
    if before != NONE:
        n[2 * class_at(m, before) + C_NEXT] = NONE
        front = n[q + R_FRONT]
        if centre_of(m, f, front) == value:
            behind = n[2 * class_at(m, front) + C_NEXT]
            number = _merge(m, n, number, front)
            front = behind
    _link(m, n, q, NONE, number, front)
    n[q + R_FINGER] = number
    f[class_at(m, number)] = value


# Changes.


@jit
def find_place(m: Words, f: Floats, n: Numbers, ring: int, centre: float) -> int:
    """The last class whose centre is at most this one; none if it is below all.

    From the class that changed last, whose centre is a value of late.
    """
    q = ring_at(m, ring)
    number = n[q + R_FINGER]
    if centre_of(m, f, number) <= centre:
        behind = n[2 * class_at(m, number) + C_NEXT]
        while behind != NONE and centre_of(m, f, behind) <= centre:
            number = behind
            behind = n[2 * class_at(m, number) + C_NEXT]
        return number
    while number != NONE and centre_of(m, f, number) > centre:
        number = n[2 * class_at(m, number) + C_PREV]
    return number


@inlined
def _new_slot(
    m: Words, n: Numbers, id: int, label: int, before: int, behind: int, number: int
) -> int:
    slot = m[SLOTS_USED]
    m[SLOTS_USED] += 1
    a = slot_at(m, slot)
    m[a] = label
    n[2 * a + S_ID], n[2 * a + S_CLASS] = id, number
    n[2 * a + S_PREV], n[2 * a + S_NEXT] = before, behind
    n[2 * slot_at(m, before) + S_NEXT] = slot
    n[2 * slot_at(m, behind) + S_PREV] = slot
    return slot


@inlined
def new_class(m: Words, f: Floats, n: Numbers, ring: int, centre: float, slot: int) -> int:
    """A class of one slot, not yet linked."""
    number = m[CLASSES_USED]
    m[CLASSES_USED] += 1
    c = class_at(m, number)
    f[c] = centre
    n[2 * c + C_PREV], n[2 * c + C_NEXT] = NONE, NONE
    n[2 * c + C_FIRST], n[2 * c + C_LAST] = slot, slot
    n[2 * c + C_COUNT], n[2 * c + C_PARENT], n[2 * c + C_RING] = 1, NONE, ring
    return number


@jit
def begin_ring(
    m: Words, f: Floats, n: Numbers, ring: int, id: int, centre: float, label: int
) -> int:
    """A ring of one subscription; its slot."""
    slot = m[SLOTS_USED]
    number = new_class(m, f, n, ring, centre, slot)
    q = ring_at(m, ring)
    n[q + R_FRONT], n[q + R_BACK], n[q + R_FINGER] = number, number, number
    n[q + R_COUNT] = 1
    return _new_slot(m, n, id, label, slot, slot, number)


@inlined
def _share(
    m: Words,
    f: Floats,
    n: Numbers,
    q: int,
    before: int,
    behind: int,
    centre: float,
    radius: float,
) -> float:
    """How much of the way from one class to the next is a centre, from 0 to 1?

    From the back the way goes to where the front is told, as it comes there then; and so it does
    from the front. So round the circle the way is about a radius, and labels go round with it.
    """
    if behind == NONE:
        low = centre_of(m, f, before)
        high = end_up(m[MEASURE], centre_of(m, f, n[q + R_FRONT]), radius)
    elif before == NONE:
        low = end_down(m[MEASURE], centre_of(m, f, n[q + R_BACK]), radius)
        high = centre_of(m, f, behind)
    else:
        low, high = centre_of(m, f, before), centre_of(m, f, behind)
    share = (centre - low) / (high - low)
    # Not so where it is no number, or infinite.
    return share if 0.0 <= share <= 1.0 else 0.5


@jit
def ring_insert(
    m: Words, f: Floats, n: Numbers, ring: int, id: int, centre: float, radius: float
) -> int:
    """Put a subscription where its centre belongs; its slot, or NONE if the ring is full.

    The ring is no pending collapse.
    """
    q = ring_at(m, ring)
    number = find_place(m, f, n, ring, centre)
    if number != NONE and centre_of(m, f, number) == centre:
        c = 2 * class_at(m, number)
        last = n[c + C_LAST]
        slot = _new_slot(m, n, id, label_of(m, last), last, next_slot(m, n, last), number)
        n[c + C_LAST] = slot
        n[c + C_COUNT] += 1
        n[q + R_COUNT] += 1
        n[q + R_FINGER] = number
        return slot
    before = n[q + R_BACK] if number == NONE else number
    below = n[2 * class_at(m, before) + C_LAST]
    above = next_slot(m, n, below)
    if half_gap(m, below, above) == 0 and not widen_gap(m, n, below, above):
        return NONE
    behind = n[q + R_FRONT] if number == NONE else n[2 * class_at(m, number) + C_NEXT]
    label = new_label(m, below, above, _share(m, f, n, q, number, behind, centre, radius))
    fresh = new_class(m, f, n, ring, centre, m[SLOTS_USED])
    _link(m, n, q, number, fresh, behind)
    n[q + R_FINGER] = fresh
    n[q + R_COUNT] += 1
    return _new_slot(m, n, id, label, below, above, fresh)


@jit
def ring_delete(m: Words, f: Floats, n: Numbers, ring: int, slot: int) -> None:
    """Take a subscription out. The ring is no pending collapse."""
    q, a = ring_at(m, ring), 2 * slot_at(m, slot)
    number = find_class(m, n, slot)
    c = 2 * class_at(m, number)
    before, behind = n[a + S_PREV], n[a + S_NEXT]
    n[2 * slot_at(m, before) + S_NEXT] = behind
    n[2 * slot_at(m, behind) + S_PREV] = before
    n[c + C_COUNT] -= 1
    n[q + R_COUNT] -= 1
    if n[c + C_COUNT] == 0:
        _unlink(m, n, q, number)
        return
    if n[c + C_FIRST] == slot:
        n[c + C_FIRST] = behind
    if n[c + C_LAST] == slot:
        n[c + C_LAST] = before


@inlined
def least_centre(m: Words, f: Floats, n: Numbers, ring: int) -> float:
    return centre_of(m, f, n[ring_at(m, ring) + R_FRONT])


@inlined
def most_centre(m: Words, f: Floats, n: Numbers, ring: int) -> float:
    return centre_of(m, f, n[ring_at(m, ring) + R_BACK])


@jit
def slots_between(m: Words, n: Numbers, first: int, last: int, out: Numbers, count: int) -> int:
    """Write the ids from one slot to another; how many there are."""
    slot = first
    while True:
        a = 2 * slot_at(m, slot)
        out[count] = n[a + S_ID]
        count += 1
        if slot == last:
            return count
        slot = n[a + S_NEXT]
