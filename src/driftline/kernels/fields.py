"""Which filters are points to an event, and where do they stand?

An ordinary filter is an interval and the event a point. It is the other way round where two
attributes are compared with one value:

    inner >= :l AND outer < :l        outer < l <= inner
    last >= :l AND first <= :l        first <= l <= last

As keys these are the half-lines `inner` from k on and `outer` up to k - 1, whichever of the two
comparisons is strict; or up to k, where none is: such a pair is *closed*. Each alone holds for
about half of all events, and both together for hardly any. So the filter stands at the point k; two
such pairs are a point (x, y), and the event's values a rectangle. With one pair, a half-line on
another axis serves as y: nothing bounds it on one side.

A *field* holds the entries of a cluster that are such points on the same axes, in slabs. Whether a
pair is closed is said with the axis below, for it is the event's value there that counts otherwise.
"""

from __future__ import annotations

from driftline.kernels.arena import allocate_clear, release
from driftline.kernels.entries import entry, number_in
from driftline.kernels.jit import inlined, jit
from driftline.kernels.keys import mix
from driftline.kernels.layout import (
    C_FIELDS,
    E_AT,
    E_HOME,
    E_PROGRAM,
    FIELD_AXES,
    FIELD_BEFORE,
    FIELD_CLOSED,
    FIELD_CLUSTER,
    FIELD_HASH,
    FIELD_NEXT,
    FIELD_POINTS,
    FIELD_WORDS,
    FIELDS,
    HIGHEST,
    IS_FIELD,
    LOWEST,
    N_COUNT,
    P_PARTS,
    PART_WORDS,
    TAG,
)
from driftline.kernels.slabs import begin_points, end_points, put_point, take_point
from driftline.kernels.table import first, following, put, remove
from driftline.kernels.tiles import dims_of
from driftline.kernels.types import Words

# Which intervals of a program make a point: those below x, above x, below y, above y, one byte
# each; 0 where there is none, else 1 + the number of the part. So 0 as a whole says "no point".
_BELOW_X, _ABOVE_X, _BELOW_Y, _ABOVE_Y = 0, 8, 16, 24
_BYTE = 255


@jit
def sides_of(m: Words, program: int) -> int:
    """Which intervals make a program a point; 0 if it is none."""
    dims = dims_of(m, program) if program != 0 else 0
    sides = 0
    used = 0
    for above in range(dims):
        below = _below(m, program, dims, above, used)
        if below < 0:
            continue
        pair = ((1 + below) << _BELOW_X) | ((1 + above) << _ABOVE_X)
        if sides != 0:
            return sides | (pair << _BELOW_Y)
        sides = pair
        used = (1 << below) | (1 << above)
    if sides == 0:
        return 0
    for dim in range(dims):
        if (used >> dim) & 1 == 0:
            if _is_upward(m, program, dim):
                return sides | ((1 + dim) << _ABOVE_Y)
            if _is_downward(m, program, dim):
                return sides | ((1 + dim) << _BELOW_Y)
    return sides


@inlined
def _part(program: int, dim: int) -> int:
    return program + P_PARTS + PART_WORDS * dim


@inlined
def _is_upward(m: Words, program: int, dim: int) -> bool:
    """Is an interval a half-line that has a beginning?"""
    part = _part(program, dim)
    return m[part + 1] > LOWEST and m[part + 2] == HIGHEST


@inlined
def _is_downward(m: Words, program: int, dim: int) -> bool:
    """Is it one that has an end?"""
    part = _part(program, dim)
    return m[part + 1] == LOWEST and m[part + 2] < HIGHEST


@jit
def _below(m: Words, program: int, dims: int, above: int, used: int) -> int:
    """The half-line that ends where one begins, if that one is free too; -1 if there is none."""
    if (used >> above) & 1 == 1 or not _is_upward(m, program, above):
        return -1
    begin = m[_part(program, above) + 1]
    closed = -1
    for below in range(dims):
        if (used >> below) & 1 == 0 and _is_downward(m, program, below):
            end = m[_part(program, below) + 2]
            if end == begin - 1:
                return below
            if end == begin and closed < 0:
                closed = below
    return closed


@inlined
def _dim(sides: int, side: int) -> int:
    """The number of the part on a side; -1 if there is none."""
    return ((sides >> side) & _BYTE) - 1


@jit
def _coordinate(m: Words, program: int, below: int, above: int) -> int:
    """Where the half-line above begins: behind the end of the one below."""
    if above >= 0:
        return m[_part(program, above) + 1]
    return m[_part(program, below) + 2] + 1 if below >= 0 else 0


@jit
def point_of(m: Words, program: int, sides: int) -> tuple[int, int]:
    """Where a program stands whose intervals on these sides make it a point."""
    x = _coordinate(m, program, _dim(sides, _BELOW_X), _dim(sides, _ABOVE_X))
    y = _coordinate(m, program, _dim(sides, _BELOW_Y), _dim(sides, _ABOVE_Y))
    return x, y


@jit
def parts_in(sides: int) -> int:
    """How many intervals make the point."""
    return 2 + int(_dim(sides, _BELOW_Y) >= 0) + int(_dim(sides, _ABOVE_Y) >= 0)


@jit
def enter_field(m: Words, cluster: int, sides: int, ref: int) -> None:
    """Let an entry stand in the field of its axes."""
    e = entry(m, number_in(ref))
    program = m[e + E_PROGRAM]
    field = _field_for(m, cluster, program, sides)
    x, y = point_of(m, program, sides)
    put_point(m, field + FIELD_POINTS, x, y, ref)
    m[e + E_HOME] = field
    m[e + E_AT] = 0


@jit
def leave_field(m: Words, number: int) -> None:
    """Remove an entry that stands in a field; its program must still be there."""
    e = entry(m, number)
    field, program = m[e + E_HOME], m[e + E_PROGRAM]
    x, y = point_of(m, program, sides_of(m, program))
    points = field + FIELD_POINTS
    take_point(m, points, x, y, number)
    m[e + E_HOME] = 0
    if m[points + N_COUNT] == 0:
        _drop_field(m, field)


@jit
def _axis(m: Words, program: int, sides: int, side: int) -> int:
    """The axis on a side, and whether it is below a closed pair; -1 if there is none."""
    dim = _dim(sides, 8 * side)
    if dim < 0:
        return -1
    axis = m[_part(program, dim)] >> 8
    above = _dim(sides, 8 * side + 8) if side == 0 or side == 2 else -1
    if above >= 0 and m[_part(program, dim) + 2] == m[_part(program, above) + 1]:
        axis |= FIELD_CLOSED
    return axis


@jit
def _field_for(m: Words, cluster: int, program: int, sides: int) -> int:
    """The field of a cluster for the axes of a point, made if there is none."""
    h = mix(cluster ^ IS_FIELD)
    for side in range(4):
        h = mix(h ^ _axis(m, program, sides, side))
    slot = first(m, h)
    while slot != 0:
        if _is_of(m, m[slot + 1], h, cluster, program, sides):
            return m[slot + 1]
        slot = following(m, h, slot)
    field = allocate_clear(m, FIELD_WORDS)
    m[field + TAG] = IS_FIELD
    m[field + FIELD_HASH] = h
    m[field + FIELD_CLUSTER] = cluster
    for side in range(4):
        m[field + FIELD_AXES + side] = _axis(m, program, sides, side)
    following_field = m[cluster + C_FIELDS]
    m[field + FIELD_NEXT] = following_field
    if following_field != 0:
        m[following_field + FIELD_BEFORE] = field
    m[cluster + C_FIELDS] = field
    begin_points(m, field + FIELD_POINTS)
    put(m, h, field)
    m[FIELDS] += 1
    return field


@jit
def _is_of(m: Words, field: int, h: int, cluster: int, program: int, sides: int) -> bool:
    if m[field + TAG] != IS_FIELD or m[field + FIELD_HASH] != h:
        return False
    if m[field + FIELD_CLUSTER] != cluster:
        return False
    for side in range(4):
        if m[field + FIELD_AXES + side] != _axis(m, program, sides, side):
            return False
    return True


@jit
def _drop_field(m: Words, field: int) -> None:
    before, after = m[field + FIELD_BEFORE], m[field + FIELD_NEXT]
    if before != 0:
        m[before + FIELD_NEXT] = after
    else:
        m[m[field + FIELD_CLUSTER] + C_FIELDS] = after
    if after != 0:
        m[after + FIELD_BEFORE] = before
    remove(m, m[field + FIELD_HASH], field)
    m[FIELDS] -= 1
    end_points(m, field + FIELD_POINTS)
    release(m, field, FIELD_WORDS)
