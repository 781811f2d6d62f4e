"""Does the memory of a structure say the same everywhere? For `_check`.

Nothing must wait to be written down (`push_all`), so that every part can be compared with what it
is said to be.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from driftline.kernels import moved_layout as at
from driftline.kernels.moved_rings import find_class
from driftline.kernels.moved_tree import push_all
from driftline.stateful.value_based.rule import Floats, Rule

Words = NDArray[np.int64]
Numbers = NDArray[np.int32]
_ENDS = (at.NEAR_UP, at.FAR_UP, at.NEAR_DOWN, at.FAR_DOWN)


def check_memory(m: Words, f: Floats, n: Numbers, rule: Rule, ids_cap: int) -> None:
    """Assert that the tree is right, and all blocks and rings."""
    push_all(m, f, n)
    blocks = int(m[at.BLOCKS])
    assert 1 <= blocks <= m[at.NUMBERS_USED] <= m[at.BLOCKS_CAP]
    assert m[at.AT_ROW] == -1
    count, ranked, last = 0, 0, (-math.inf, 0)
    for p in range(blocks):
        count += _check_block(m, f, n, rule, p)
        b = at.block(m, n, p)
        keys = [
            (float(f[b + at.B_RADIUS + s]), int(n[2 * b + at.B_RING + s]))
            for s in range(m[b + at.B_COUNT])
        ]
        assert all(one < two for one, two in zip([last, *keys], keys, strict=False))
        ranked += sum(ring > 0 for _, ring in keys)
        assert f[m[at.LOWS] + p] == (keys[0][0] if p else -math.inf)
        last = keys[-1] if keys else last
    assert count == m[at.COUNT]
    assert ranked == m[at.RANKED]
    assert m[at.SHIFT_BY] == 0
    assert np.count_nonzero(n[m[at.HOMES] :][:ids_cap]) == count
    nothing = [math.inf, -math.inf, -math.inf, math.inf, math.inf, -math.inf]
    for level in range(m[at.LEVELS]):
        children = -(-blocks // 8**level)
        for child in range(children, -(-int(m[at.BLOCKS_CAP]) // 8 ** (level + 1)) * 8):
            assert _child(f, at.group(m, level, child >> 3), child & 7) == nothing
        for g in range(-(-children // 8) if level + 1 < m[at.LEVELS] else 0):
            _check_group(m, f, level, g)


def _child(f: Floats, a: int, j: int) -> list[float]:
    return [float(f[a + field + j]) for field in (*_ENDS, at.R_MIN, at.R_MAX)]


def _check_group(m: Words, f: Floats, level: int, g: int) -> None:
    below = at.group(m, level, g)
    said = _child(f, at.group(m, level + 1, g >> 3), g & 7)
    near_up, far_up, near_down, far_down, low, high = (
        f[below + field : below + field + 8] for field in (*_ENDS, at.R_MIN, at.R_MAX)
    )
    there = [near_up.min(), far_up.max(), near_down.max(), far_down.min(), low.min(), high.max()]
    assert said == there


def _check_block(m: Words, f: Floats, n: Numbers, rule: Rule, p: int) -> int:
    """Check a block and what is said of it; how many subscriptions it has."""
    b = at.block(m, n, p)
    number, count, total = int(n[m[at.AT] + p]), int(m[b + at.B_COUNT]), 0
    assert n[m[at.POSITIONS] + number] == p
    assert count > 0 or m[at.BLOCKS] == 1
    assert count <= at.SLOTS_MAX
    said = [math.inf, -math.inf, -math.inf, math.inf, math.inf, -math.inf]
    for s in range(count):
        radius, least, most, value = (
            float(f[at_])
            for at_ in (b + at.B_RADIUS + s, b + at.B_LEAST + s, b + at.B_MOST + s, at.VALUE)
        )
        assert not rule.tells(least, radius, value)
        assert not rule.tells(most, radius, value)
        assert rule.fits(least, most, radius)
        ends = (
            min(said[0], rule.high(least, radius)),
            max(said[1], rule.high(most, radius)),
            max(said[2], rule.low(most, radius)),
            min(said[3], rule.low(least, radius)),
        )
        said = [*ends, min(said[4], radius), max(said[5], radius)]
        ref = int(n[2 * b + at.B_REF + s])
        if ref >= 0:
            assert n[m[at.HOMES] + ref] == 1 + number
            assert least == most
            total += 1
        else:
            assert n[at.ring_at(m, -(1 + ref)) + at.R_HOME] == number
            total += _check_ring(m, f, n, -(1 + ref), least, most)
    assert _child(f, at.group(m, 0, p >> 3), p & 7) == said
    return total


def _check_ring(m: Words, f: Floats, n: Numbers, ring: int, least: float, most: float) -> int:
    """Check a ring; how many subscriptions it has. Going round, labels go round once."""
    q = at.ring_at(m, ring)
    number, before, count, numbers = int(n[q + at.R_FRONT]), at.NONE, 0, []
    slots: list[int] = []
    while number != at.NONE:
        c = at.class_at(m, number)
        assert n[2 * c + at.C_PARENT] == at.NONE
        assert n[2 * c + at.C_PREV] == before
        assert n[2 * c + at.C_RING] == ring
        slot, members = int(n[2 * c + at.C_FIRST]), 1
        # Those with one label are in one class, so they are told together.
        assert not slots or m[at.slot_at(m, slot)] != m[at.slot_at(m, slots[-1])]
        slots.append(slot)
        while slot != n[2 * c + at.C_LAST]:
            slot = int(n[2 * at.slot_at(m, slot) + at.S_NEXT])
            slots.append(slot)
            members += 1
        assert members == n[2 * c + at.C_COUNT]
        assert all(find_class(m, n, one) == number for one in slots[-members:])
        numbers.append(number)
        count += members
        before, number = number, int(n[2 * c + at.C_NEXT])
    assert before == n[q + at.R_BACK]
    assert n[q + at.R_FINGER] in numbers
    assert count == n[q + at.R_COUNT]
    _check_circle(m, n, slots)
    centres = [float(f[at.class_at(m, one)]) for one in numbers]
    assert centres == sorted(set(centres))
    # Where all were told at once, the ring has not heard of it.
    assert least == most or (least, most) == (centres[0], centres[-1])
    return count


def _check_circle(m: Words, n: Numbers, slots: list[int]) -> None:
    labels = [int(m[at.slot_at(m, slot)]) % 2**64 for slot in slots]
    steps = [(two - one) % 2**64 for one, two in zip(labels, labels[1:] + labels[:1], strict=True)]
    assert sum(steps) in (0, 2**64)
    assert not any(label % (1 << int(m[at.UNIT_BITS])) for label in labels)
    for slot, behind in zip(slots, slots[1:] + slots[:1], strict=True):
        a = 2 * at.slot_at(m, slot)
        assert n[a + at.S_NEXT] == behind
        assert n[2 * at.slot_at(m, behind) + at.S_PREV] == slot
        assert n[m[at.HOMES] + n[a + at.S_ID]] == -(1 + slot)
