"""How do the events of a bundle become records again, and when was the newest of them?

A bundle carries notices to a neighbour (`driftline.wire.bundles`): records, with the number of each
event and when it entered put in behind the head.
"""

from __future__ import annotations

import numpy as np

from driftline.kernels.intake import (
    EARLIEST,
    HAS_TIME,
    HEAD,
    LATEST,
    NUMBERED,
    i64,
    put32,
    u32,
)
from driftline.kernels.jit import copy_bytes, jit
from driftline.kernels.types import Bytes, Words

TAKEN_OUT = 16
NOTICE_LEAST = HEAD + TAKEN_OUT


@jit
def unbundle(
    raw: Bytes, after: int, out: Bytes, numbers: Words, entered: Words, state: Words
) -> int:
    """Write the records of those notices whose numbers are higher than `after`; how many.

    There must be room for all. Numbers rise. `state` gets how many bytes were written. -1 if this
    is no bundle of notices; what is in the records is not looked at.
    """
    at, to, count = 0, 0, 0
    last = np.int64(0)
    while at < len(raw):
        if at + NOTICE_LEAST > len(raw):
            return -1
        length = u32(raw, at)
        flags = np.int64(raw[at + 6])
        if length < NOTICE_LEAST or at + length > len(raw):
            return -1
        if (flags & NUMBERED) == 0 or raw[at + 7] != 0:
            return -1
        number = i64(raw, at + HEAD)
        stamp = i64(raw, at + HEAD + 8)
        if number <= last or stamp < EARLIEST or stamp > LATEST:
            return -1
        last = number
        if number > after:
            numbers[count], entered[count] = number, stamp
            count += 1
            put32(out, to, length - TAKEN_OUT)
            out[to + 4], out[to + 5] = raw[at + 4], raw[at + 5]
            out[to + 6], out[to + 7] = np.uint8(flags & ~NUMBERED), 0
            rest = length - NOTICE_LEAST
            copy_bytes(out, to + HEAD, raw, at + NOTICE_LEAST, rest)
            to += HEAD + rest
        at += length
    state[0] = to
    return count


@jit
def latest(raw: Bytes, starts: Words, entered: Words, count: int) -> int:
    """When the newest of some records was generated: by its own time, or when it entered."""
    newest = EARLIEST
    for event in range(count):
        time = entered[event]
        if raw[starts[event] + 6] & HAS_TIME:
            time = i64(raw, starts[event] + HEAD)
        newest = max(newest, time)
    return newest
