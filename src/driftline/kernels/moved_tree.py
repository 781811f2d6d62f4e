"""How are those found whose end points a value has passed? [VALUE §3.2, without its drift factor]

A child of a group says the nearest and the farthest end point of all below it, on either side. A
value that has not reached the nearest concerns none of them, and nothing is written; one that has
passed the farthest concerns all, and only the child is written: its end points follow from the
value and the two extreme radii, and the value is left there, to be written further down when
somebody goes there. End points are absolute, so those who are not told need not know of the move.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.jit import inlined, jit
from driftline.kernels.moved_layout import (
    AT,
    B_COUNT,
    B_LEAST,
    B_MOST,
    B_RADIUS,
    BLOCKS,
    FANOUT,
    FAR_DOWN,
    FAR_UP,
    GROUP_WORDS,
    LEVELS,
    LOWS,
    MEASURE,
    NEAR_DOWN,
    NEAR_UP,
    POSITIONS,
    R_MAX,
    R_MIN,
    RESET,
    Floats,
    block,
    end_down,
    end_up,
    group,
)
from driftline.kernels.types import Numbers, Words


@inlined
def lesser(a: float, b: float) -> float:
    """The lesser of two numbers; neither is NaN, so this is one instruction."""
    return a if a < b else b


@inlined
def larger(a: float, b: float) -> float:
    return a if a > b else b


@inlined
def reset_child(f: Floats, a: int, j: int, measure: int, value: float) -> None:
    """All below a child were told at a value."""
    low, high = f[a + R_MIN + j], f[a + R_MAX + j]
    f[a + NEAR_UP + j] = end_up(measure, value, low)
    f[a + FAR_UP + j] = end_up(measure, value, high)
    f[a + NEAR_DOWN + j] = end_down(measure, value, low)
    f[a + FAR_DOWN + j] = end_down(measure, value, high)
    f[a + RESET + j] = value


@inlined
def clear_child(f: Floats, a: int, j: int) -> None:
    """Nothing is below a child."""
    f[a + NEAR_UP + j], f[a + FAR_UP + j] = np.inf, -np.inf
    f[a + NEAR_DOWN + j], f[a + FAR_DOWN + j] = -np.inf, np.inf
    f[a + R_MIN + j], f[a + R_MAX + j] = np.inf, -np.inf
    f[a + RESET + j] = np.nan


@inlined
def push_to_group(m: Words, f: Floats, a: int, j: int, below: int) -> None:
    """Write what waits at a child to the group below it."""
    value = f[a + RESET + j]
    if value == value:
        # A slice, because of an index into it it is known that it is not below 0.
        children = f[below : below + GROUP_WORDS]
        for k in range(FANOUT):
            if children[R_MIN + k] != np.inf:
                reset_child(children, 0, k, m[MEASURE], value)
        f[a + RESET + j] = np.nan


@inlined
def push_to_block(m: Words, f: Floats, a: int, j: int, b: int) -> None:
    """Write what waits at a child to the block below it."""
    value = f[a + RESET + j]
    if value == value:
        for s in range(m[b + B_COUNT]):
            f[b + B_LEAST + s] = value
            f[b + B_MOST + s] = value
        f[a + RESET + j] = np.nan


@jit
def push_path(m: Words, f: Floats, n: Numbers, p: int) -> None:
    """Write all that waits on the way to the block at a position."""
    for level in range(m[LEVELS] - 1, 0, -1):
        g = p >> (3 * level)
        push_to_group(m, f, group(m, level, g >> 3), g & 7, group(m, level - 1, g))
    push_to_block(m, f, group(m, 0, p >> 3), p & 7, block(m, n, p))


@jit
def push_groups(m: Words, f: Floats) -> None:
    """Write all that waits to the lowest groups."""
    for level in range(m[LEVELS] - 1, 0, -1):
        for g in range(((m[BLOCKS] - 1) >> (3 * level)) + 1):
            push_to_group(m, f, group(m, level, g >> 3), g & 7, group(m, level - 1, g))


@jit
def push_all(m: Words, f: Floats, n: Numbers) -> None:
    """Write all that waits."""
    push_groups(m, f)
    for p in range(m[BLOCKS]):
        push_to_block(m, f, group(m, 0, p >> 3), p & 7, block(m, n, p))


@inlined
def refresh_group(m: Words, f: Floats, level: int, g: int) -> None:
    """Say anew, one level above, what is below a group."""
    below, a, j = group(m, level, g), group(m, level + 1, g >> 3), g & 7
    children = f[below : below + GROUP_WORDS]
    near_up, far_up, near_down, far_down = np.inf, -np.inf, -np.inf, np.inf
    for k in range(FANOUT):
        near_up = lesser(near_up, children[NEAR_UP + k])
        far_up = larger(far_up, children[FAR_UP + k])
        near_down = larger(near_down, children[NEAR_DOWN + k])
        far_down = lesser(far_down, children[FAR_DOWN + k])
    f[a + NEAR_UP + j], f[a + FAR_UP + j] = near_up, far_up
    f[a + NEAR_DOWN + j], f[a + FAR_DOWN + j] = near_down, far_down


@inlined
def _refresh_radii(m: Words, f: Floats, level: int, g: int) -> None:
    below, a, j = group(m, level, g), group(m, level + 1, g >> 3), g & 7
    low, high = np.inf, -np.inf
    for k in range(FANOUT):
        low, high = min(low, f[below + R_MIN + k]), max(high, f[below + R_MAX + k])
    f[a + R_MIN + j], f[a + R_MAX + j] = low, high
    f[a + RESET + j] = np.nan


@jit
def refresh_block(m: Words, f: Floats, n: Numbers, p: int) -> None:
    """Say anew what is in the block at a position, where nothing waits."""
    b, a, j, measure = block(m, n, p), group(m, 0, p >> 3), p & 7, m[MEASURE]
    clear_child(f, a, j)
    count = m[b + B_COUNT]
    if count == 0:
        return
    radii = f[b + B_RADIUS : b + B_RADIUS + count]
    leasts, mosts = f[b + B_LEAST : b + B_LEAST + count], f[b + B_MOST : b + B_MOST + count]
    near_up, far_up, near_down, far_down = np.inf, -np.inf, -np.inf, np.inf
    for s in range(count):
        near_up = lesser(near_up, end_up(measure, leasts[s], radii[s]))
        far_up = larger(far_up, end_up(measure, mosts[s], radii[s]))
        near_down = larger(near_down, end_down(measure, mosts[s], radii[s]))
        far_down = lesser(far_down, end_down(measure, leasts[s], radii[s]))
    f[a + NEAR_UP + j], f[a + FAR_UP + j] = near_up, far_up
    f[a + NEAR_DOWN + j], f[a + FAR_DOWN + j] = near_down, far_down
    f[a + R_MIN + j], f[a + R_MAX + j] = radii[0], radii[count - 1]


@jit
def refresh_path(m: Words, f: Floats, n: Numbers, p: int) -> None:
    """Say anew what is in a block and above it, where nothing waits."""
    refresh_block(m, f, n, p)
    for level in range(m[LEVELS] - 1):
        g = p >> (3 * (level + 1))
        refresh_group(m, f, level, g)
        _refresh_radii(m, f, level, g)


@jit
def refresh_between(m: Words, f: Floats, first: int, last: int) -> None:
    """Say anew what is in all groups above the lowest, between two positions.

    Nothing waits there.
    """
    for level in range(m[LEVELS] - 1):
        for g in range(first >> (3 * (level + 1)), (last >> (3 * (level + 1))) + 1):
            refresh_group(m, f, level, g)
            _refresh_radii(m, f, level, g)


@inlined
def _move_child(f: Floats, to: int, j: int, a: int, k: int) -> None:
    for field in range(0, 56, 8):
        f[to + field + j] = f[a + field + k]


@jit
def open_position(m: Words, f: Floats, n: Numbers, p: int, number: int, low: float) -> None:
    """Give a new block a position: all from there on move one further."""
    push_groups(m, f)
    for q in range(m[BLOCKS], p, -1):
        _move_child(f, group(m, 0, q >> 3), q & 7, group(m, 0, (q - 1) >> 3), (q - 1) & 7)
        f[m[LOWS] + q] = f[m[LOWS] + q - 1]
        n[m[AT] + q] = n[m[AT] + q - 1]
        n[m[POSITIONS] + n[m[AT] + q]] = q
    f[m[LOWS] + p] = low
    n[m[AT] + p] = number
    n[m[POSITIONS] + number] = p
    m[BLOCKS] += 1


@jit
def close_position(m: Words, f: Floats, n: Numbers, p: int) -> None:
    """Take the position of an empty block away: all behind it move up."""
    push_groups(m, f)
    for q in range(p, m[BLOCKS] - 1):
        _move_child(f, group(m, 0, q >> 3), q & 7, group(m, 0, (q + 1) >> 3), (q + 1) & 7)
        f[m[LOWS] + q] = f[m[LOWS] + q + 1]
        n[m[AT] + q] = n[m[AT] + q + 1]
        n[m[POSITIONS] + n[m[AT] + q]] = q
    last = m[BLOCKS] - 1
    clear_child(f, group(m, 0, last >> 3), last & 7)
    f[m[LOWS]] = -np.inf
    m[BLOCKS] -= 1
    refresh_between(m, f, p, last)
