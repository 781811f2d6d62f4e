"""How are notices written without what somebody may not see?

Notices (`driftline.wire.notices`) that were written here are copied, but for the values of fields
that are to be left out; what is left has a form of its own.

What becomes of a form is said by its number in `plans`: nothing is known of it, all of it is clear,
or where in `words` it is said: the number of the form that is left, how many fields there are, and
for each its kind, shifted, and whether it is seen.
"""

from __future__ import annotations

from driftline.kernels.intake import (
    FIXED_MAX,
    FRAME_HEAD,
    HAS_ID,
    HAS_SOURCE,
    HAS_TIME,
    HAS_TRACE,
    HEAD,
    MARKS_FEW,
    NUMBERED,
    put32,
    u16,
    u32,
)
from driftline.kernels.jit import copy_bytes, jit
from driftline.kernels.types import Bytes, Numbers, Words

UNKNOWN, CLEAR = -1, -2
FROM, TO, LOW, HIGH = range(4)
SPAN_WORDS = 4


@jit
def leave_out(
    raw: Bytes, runs: Words, frame: int, plans: Numbers, words: Words, out: Bytes, spans: Words
) -> int:
    """Copy runs of notices to `out`, which has room for them; how many bytes, -1 if a form is
    unknown.

    A run is from where to where; behind the head of a frame, whose first four bytes are `frame`,
    or behind nothing if that is 0. `spans` gets for each where it lies now, head and all, and the
    least and the greatest form of what is left.
    """
    to = 0
    for run in range(len(runs)):
        spans[run, FROM] = to
        if frame:
            to += FRAME_HEAD
        end = _leave_out(raw, runs[run, 0], runs[run, 1], plans, words, out, to, spans[run])
        if end < 0:
            return -1
        if frame:
            put32(out, to - FRAME_HEAD, frame)
            put32(out, to - FRAME_HEAD + 4, end - to)
        spans[run, TO] = to = end
    return to


@jit
def _leave_out(
    raw: Bytes,
    at: int,
    end: int,
    plans: Numbers,
    words: Words,
    out: Bytes,
    to: int,
    span: Words,
) -> int:
    """Copy the notices of one run; where they end, -1 if a form is unknown."""
    span[LOW], span[HIGH] = 1 << 32, -1
    while at < end:
        length = u32(raw, at)
        left = u16(raw, at + 4)
        if left >= len(plans) or plans[left] == UNKNOWN:
            return -1
        plan = plans[left]
        if plan == CLEAR:
            copy_bytes(out, to, raw, at, length)
            to += length
        else:
            left = words[plan]
            begun = to
            place = _values_of(raw, at)
            copy_bytes(out, to, raw, at, place - at)
            to += place - at
            for field in range(plan + 2, plan + 2 + words[plan + 1]):
                size = 8
                if words[field] >> 1 > FIXED_MAX:
                    size = 4 + u32(raw, place)
                if words[field] & 1:
                    copy_bytes(out, to, raw, place, size)
                    to += size
                place += size
            put32(out, begun, to - begun)
            out[begun + 4], out[begun + 5] = left & 255, left >> 8
        span[LOW], span[HIGH] = min(span[LOW], left), max(span[HIGH], left)
        at += length
    return to


@jit
def _values_of(raw: Bytes, at: int) -> int:
    """Where the values of a notice begin, behind its marks and its envelope."""
    flags = int(raw[at + 6])
    marks = int(raw[at + 7])
    at += HEAD
    if marks > MARKS_FEW:
        marks = u32(raw, at)
        at += 4
    at += 8 * marks + 8
    if flags & NUMBERED:
        at += 8
    if flags & HAS_TIME:
        at += 8
    for flag in (HAS_ID, HAS_SOURCE, HAS_TRACE):
        if flags & flag:
            at += 2 + u16(raw, at)
    return at
