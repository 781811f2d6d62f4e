"""Which events has Driftline told each connection of, for a load driver to count?

Frames of notices, as `driftline.wire.stream` and `driftline.wire.notices` lay them out; other
frames are passed over. A frame may be longer than there is room for, so notices are taken out of
the part of it that has come.
"""

from __future__ import annotations

from driftline.kernels.bench_tally import (
    REFUSED,
    Inbox,
    Tally,
    keep_rest,
    note_match,
    note_message,
)
from driftline.kernels.intake import FRAME_HEAD, HEAD, MARKS_FEW, i64, u32
from driftline.kernels.jit import jit
from driftline.kernels.types import Words

_NOTICES = 6
_MARK = 8
_ENTERED = 8
_LENGTH_AT = 4


@jit
def read_driftline(inbox: Inbox, count: int, left: Words, tally: Tally) -> None:
    """Read all whole notices of the first `count` connections that are ready.

    `left` has two words for each connection: the bytes of its frame that are still to come, and
    whether these are notices. The first value of an event is its number, and the handle of a
    subscription is one more than the subscription's.
    """
    for turn in range(count):
        connection = inbox.ready[turn]
        row, end = inbox.bytes[connection], inbox.filled[connection]
        at = 0
        while True:
            if left[connection, 0] == 0:
                if at + FRAME_HEAD > end:
                    break
                left[connection, 0] = u32(row, at + _LENGTH_AT)
                left[connection, 1] = row[at + 2] == _NOTICES
                at += FRAME_HEAD
                continue
            if not left[connection, 1]:
                some = min(left[connection, 0], end - at)
                at += some
                left[connection, 0] -= some
                if left[connection, 0] > 0:
                    break
                continue
            if at + HEAD > end:
                break
            size = u32(row, at)
            if at + size > end:
                break
            marks = row[at + 7]
            if size < HEAD or size > left[connection, 0] or marks > MARKS_FEW:
                tally.totals[REFUSED] = 1 + connection
                break
            number = i64(row, at + HEAD + _MARK * marks + _ENTERED)
            for mark in range(marks):
                handle = u32(row, at + HEAD + _MARK * mark)
                note_match(tally, connection, number, handle - 1)
            note_message(tally, connection, number, True, inbox.came_ns[turn])
            at += size
            left[connection, 0] -= size
        keep_rest(inbox, connection, at)
