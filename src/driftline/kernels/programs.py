"""What does an entry ask, and is it true of an event?

A filter arrives as a *letter*: per constraint an operation, an axis and a raw operand. `decode`
turns operands into keys and merges the intervals on each axis. One equality (and the type) is left
to the cluster; the rest is written down as the entry's *program*, which `satisfied` runs.

    letter   type = 'quote', symbol = 'IBM', price >= 9, price < 10, name LIKE '%ltd'
    cluster  type = key('quote'), symbol = key('IBM')
    program  RANGE price key(9)..key(10)-1 · SUFFIX name 'ltd'
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.jit import bit_count, inlined, jit
from driftline.kernels.keys import (
    mix,
    number_key,
    prefix_keys,
    same_bytes,
    text_hash,
    text_key,
)
from driftline.kernels.layout import (
    A_KIND,
    A_SKETCH,
    A_SPAN,
    ANY,
    AXES,
    AXIS_WORDS,
    EQ,
    GE,
    GT,
    HASH,
    HIGHEST,
    IN,
    IS,
    LE,
    LETTER_FLAGS,
    LETTER_HEAD,
    LETTER_PART,
    LETTER_PARTS,
    LIKE_PREFIX,
    LIKE_SUBSTRING,
    LIKE_SUFFIX,
    LOWEST,
    LT,
    MEMBER,
    MISSING,
    NE,
    NOT,
    NUMBER,
    OTHER_TEXT,
    P_PARTS,
    PART_WORDS,
    PREFIX,
    RANGE,
    SAME_TEXT,
    SKETCH_BITS,
    SPAN,
    SUBSTRING,
    SUFFIX,
    TEXT,
    TYPE_HASH,
    TYPE_TEXT,
    WITHIN,
)
from driftline.kernels.types import Bytes, Words

# A constraint that nothing satisfies.
NEVER = -1
_SPAN_LENGTH = (1 << 32) - 1


@inlined
def axis_at(m: Words, axis: int) -> int:
    """The address of an axis."""
    return m[AXES] + axis * AXIS_WORDS


@jit
def decode(m: Words, letter: Words, texts: Bytes, scratch: Words) -> tuple[int, int]:
    """Write the intervals, ordered by axis, and the checks of a letter; how many of each.

    Intervals begin at scratch[0], checks after as many parts as the letter has. NEVER intervals
    mean that nothing satisfies the letter.
    """
    n = letter[LETTER_PARTS]
    ranges = 0
    checks = 0
    base = PART_WORDS * n
    for number in range(n):
        at = LETTER_HEAD + LETTER_PART * number
        op, axis, a, b = letter[at], letter[at + 1], letter[at + 2], letter[at + 3]
        kind = m[axis_at(m, axis) + A_KIND]
        if kind == SPAN or op == IS or op == NE or op >= IN:
            check = _check_of(op, kind)
            if op == NE and kind != SPAN:
                a = _key(texts, kind, a, b)
                if a == MISSING:
                    return NEVER, 0
            elif op == IS:
                b = a
            elif op == ANY:
                a, b = LOWEST, HIGHEST
            to = base + PART_WORDS * checks
            scratch[to] = (axis << 8) | check
            scratch[to + 1] = a
            scratch[to + 2] = b
            checks += 1
            continue
        low, high = _interval(texts, op, kind, a, b)
        if low > high:
            return NEVER, 0
        to = 0
        while to < ranges and (scratch[PART_WORDS * to] >> 8) < axis:
            to += 1
        at = PART_WORDS * to
        if to < ranges and (scratch[at] >> 8) == axis:
            low = max(low, scratch[at + 1])
            high = min(high, scratch[at + 2])
            if low > high:
                return NEVER, 0
        else:
            for word in range(PART_WORDS * ranges - 1, at - 1, -1):
                scratch[word + PART_WORDS] = scratch[word]
            ranges += 1
            scratch[at] = (axis << 8) | RANGE
        scratch[at + 1] = low
        scratch[at + 2] = high
    return ranges, checks


@jit
def _check_of(op: int, kind: int) -> int:
    if op == IS or op == ANY:
        return WITHIN
    if op == IN:
        return MEMBER
    if op == NE:
        return OTHER_TEXT if kind == SPAN else NOT
    if op == LIKE_PREFIX:
        return PREFIX
    if op == LIKE_SUFFIX:
        return SUFFIX
    if op == LIKE_SUBSTRING:
        return SUBSTRING
    return SAME_TEXT


@jit
def _key(texts: Bytes, kind: int, a: int, b: int) -> int:
    if kind == NUMBER:
        return number_key(a)
    if kind == TEXT:
        return text_key(texts, a, b)
    if kind == HASH:
        return text_hash(texts, a, b)
    return a


@jit
def _interval(texts: Bytes, op: int, kind: int, a: int, b: int) -> tuple[int, int]:
    if op == LIKE_PREFIX:
        return prefix_keys(texts, a, b)
    key = _key(texts, kind, a, b)
    if key == MISSING:  # NaN: no comparison with it is true
        return HIGHEST, LOWEST
    low = LOWEST
    high = HIGHEST
    if op == EQ or op == GE:
        low = key
    elif op == GT:
        low = key + 1
    if op == EQ or op == LE:
        high = key
    elif op == LT:
        high = key - 1
    return low, high


@jit
def type_part(scratch: Words, ranges: int) -> int:
    """Which of the intervals fixes the type; -1 if none does."""
    for part in range(ranges):
        at = PART_WORDS * part
        axis = scratch[at] >> 8
        if (axis == TYPE_TEXT or axis == TYPE_HASH) and scratch[at + 1] == scratch[at + 2]:
            return part
    return -1


@jit
def access_part(m: Words, scratch: Words, ranges: int) -> int:
    """Which equality to cluster by: on the axis that has the most constants; -1 if none is."""
    best = -1
    best_score = -1
    for part in range(ranges):
        at = PART_WORDS * part
        axis = scratch[at] >> 8
        if axis == TYPE_TEXT or axis == TYPE_HASH or scratch[at + 1] != scratch[at + 2]:
            continue
        record = axis_at(m, axis)
        bit = mix(scratch[at + 1]) & (SKETCH_BITS - 1)
        m[record + A_SKETCH + (bit >> 6)] |= 1 << (bit & 63)
        score = 0
        for word in range(SKETCH_BITS >> 6):
            score += bit_count(m[record + A_SKETCH + word])
        kind = m[record + A_KIND]
        score = 4 * score + (2 if kind == TEXT or kind == HASH else 1 if kind == NUMBER else 0)
        if score > best_score:
            best, best_score = part, score
    return best


@jit
def text_of(m: Words, scratch: Words, letter_parts: int, checks: int, part: int) -> int:
    """The check that holds the text behind an equality of hashes; -1 if it is none."""
    if part < 0:
        return -1
    record = axis_at(m, scratch[PART_WORDS * part] >> 8)
    if m[record + A_KIND] != HASH:
        return -1
    for check in range(checks):
        at = PART_WORDS * (letter_parts + check)
        if scratch[at] == (m[record + A_SPAN] << 8) | SAME_TEXT:
            return check
    return -1


@jit
def write_part(texts: Bytes, scratch: Words, at: int, program: int, part: int, end: int) -> int:
    """Copy a part from scratch[at] into the program in the making; the new end of its bytes."""
    to = program + P_PARTS + PART_WORDS * part
    scratch[to] = scratch[at]
    scratch[to + 1] = scratch[at + 1]
    scratch[to + 2] = scratch[at + 2]
    op = scratch[at] & 255
    if op == RANGE or op == NOT or op == WITHIN:
        return end
    start, length = scratch[at + 1], scratch[at + 2]
    words = (length + 7) >> 3
    word = program + end
    for number in range(words):
        packed = np.int64(0)
        for byte in range(8):
            place = 8 * number + byte
            if place < length:
                packed |= np.int64(texts[start + place]) << (8 * byte)
        scratch[word + number] = packed
    scratch[to + 1] = 8 * end
    return end + words


@jit
def finish(scratch: Words, program: int, parts: int, end: int, flags: int) -> None:
    """Write the header of a program in the making."""
    scratch[program] = (end << 32) | (flags << 16) | parts


@jit
def flags_of(letter: Words) -> int:
    """What the letter says about its entry as a whole."""
    return letter[LETTER_FLAGS]


@jit
def satisfied(
    m: Words, m8: Bytes, program: int, columns: Words, keys: Words, event: int, texts: Bytes
) -> bool:
    """Is every part of a program true of the event?"""
    at = np.uint64(program + P_PARTS)
    one, two = np.uint64(1), np.uint64(2)
    for _ in range(m[program] & 0xFFFF):
        op = m[at] & 255
        column = columns[np.uint64(m[at] >> 8)]
        x = MISSING if column < 0 else keys[np.uint64(column), np.uint64(event)]
        low, high = m[at + one], m[at + two]
        if op == RANGE or op == WITHIN:
            if x < low or x > high:
                return False
        elif x == MISSING or not _holds(m, m8, program, op, low, high, x, texts):
            return False
        at += np.uint64(PART_WORDS)
    return True


@jit
def _holds(
    m: Words, m8: Bytes, program: int, op: int, a: int, b: int, x: int, texts: Bytes
) -> bool:
    """Is a part that is no interval true of a key?"""
    if op == NOT:
        return x != a
    if op == MEMBER:
        return _is_member(m, program + (a >> 3), b >> 3, x)
    return _text_holds(m8, 8 * program + a, b, op, x, texts)


@jit
def _is_member(m: Words, keys: int, count: int, x: int) -> bool:
    low = 0
    high = count
    while low < high:
        middle = (low + high) >> 1
        if m[keys + middle] < x:
            low = middle + 1
        else:
            high = middle
    return low < count and m[keys + low] == x


@jit
def _text_holds(m8: Bytes, at: int, length: int, op: int, span: int, texts: Bytes) -> bool:
    start, size = span >> 32, span & _SPAN_LENGTH
    if op == SAME_TEXT:
        return size == length and same_bytes(m8, at, texts, start, length)
    if op == OTHER_TEXT:
        return size != length or not same_bytes(m8, at, texts, start, length)
    if size < length:
        return False
    if op == PREFIX:
        return same_bytes(m8, at, texts, start, length)
    if op == SUFFIX:
        return same_bytes(m8, at, texts, start + size - length, length)
    for place in range(size - length + 1):
        if same_bytes(m8, at, texts, start + place, length):
            return True
    return False
