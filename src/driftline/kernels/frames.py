"""How do very many small frames of events become one batch?

Publishers that send an event a frame send thousands of frames at a time. Those that ask for no
reply and count nothing are put together here, as they lie: their records one behind the other.
"""

from __future__ import annotations

from driftline.kernels.intake import FRAME_HEAD, u32
from driftline.kernels.jit import copy_bytes, jit
from driftline.kernels.types import Bytes, Words

BATCH_HEAD = 16
_LENGTH_AT = 4
_COUNT_AT = 4
_NUMBER_AT = 8

# What is found: up to where, how many bytes of records, how many events.
UP_TO, BYTES, EVENTS = range(3)


@jit
def gather(raw: Bytes, at: int, events_word: int, limit: int, out: Bytes, found: Words) -> None:
    """Copy the records of whole frames that begin with this word, from `at` on.

    It ends at a frame that is another, not whole or too long, or wants a reply, or is counted.
    """
    end = len(raw)
    size = 0
    events = 0
    while at + FRAME_HEAD + BATCH_HEAD <= end:
        length = u32(raw, at + _LENGTH_AT)
        stop = at + FRAME_HEAD + length
        head = at + FRAME_HEAD
        if u32(raw, at) != events_word or length < BATCH_HEAD or stop > end or length > limit:
            break
        counted = u32(raw, head + _NUMBER_AT) | u32(raw, head + _NUMBER_AT + 4)
        if u32(raw, head) != 0 or counted != 0 or size + length > len(out):
            break
        copy_bytes(out, size, raw, head + BATCH_HEAD, length - BATCH_HEAD)
        size += length - BATCH_HEAD
        events += u32(raw, head + _COUNT_AT)
        at = stop
    found[UP_TO], found[BYTES], found[EVENTS] = at, size, events
