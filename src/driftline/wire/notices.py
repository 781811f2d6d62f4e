"""How is a client told of an event that its subscriptions asked for?

By the record that was published (see `compact`), with a few words put in behind its head.

    offset  bytes  field
         0      4  length    of the whole notice
         4      2  form
         6      1  flags     as in the record, but no 16; also 32 numbered, 64 behind a gap
         7      1  marks     how many there are; 255: as many as the next 4 bytes say
         8         marks     4 bytes each: the handles of subscriptions; if numbered, each is
                             followed by its epoch
                   number    8 bytes, if numbered
                   entered   8 bytes: when the event came into the system
                   the rest  as in the record
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

from driftline.model.event import Event
from driftline.wire.compact import (
    ENVELOPE_FLAGS,
    HAS_ENTERED,
    HEAD,
    HEAD_BYTES,
    SIZE,
    WORD,
    Bytes,
    Cursor,
    read_body,
    read_head,
    write_body,
)
from driftline.wire.forms import Form
from driftline.wire.refusal import refused

NUMBERED, GAP = 32, 64
MARKS_FEW = 254
"""So many marks are counted in the head."""

_NUMBER = struct.Struct("<Q")


class Notice(NamedTuple):
    """An event that a client is told of: for whom, its number (0: none), and is it after a gap?"""

    marks: tuple[int, ...]
    number: int
    gap: bool
    event: Event
    trace: str = ""


def write_notice(notice: Notice, number: int, form: Form) -> bytes:
    """The bytes of a notice, whose event has a form that goes by this number."""
    event = notice.event
    assert event.entered is not None
    flags, body = write_body(event, number, form, notice.trace, entered=False)
    marks = len(notice.marks)
    parts = [
        SIZE.pack(marks) if marks > MARKS_FEW else b"",
        struct.pack(f"<{marks}I", *notice.marks),
        _NUMBER.pack(notice.number) if notice.number else b"",
        WORD.pack(event.entered),
        body,
    ]
    flags |= NUMBERED * (notice.number > 0) | GAP * notice.gap
    length = HEAD_BYTES + sum(map(len, parts))
    return b"".join((HEAD.pack(length, number, flags, min(marks, MARKS_FEW + 1)), *parts))


def read_notice(raw: Bytes, forms: Mapping[int, Form], where: str = "notice") -> Notice:
    """One whole notice; `FrameRefused` for anything else."""
    whole = bytes(raw)
    number, flags, marks = read_head(whole, where)
    if flags & ~(ENVELOPE_FLAGS | NUMBERED | GAP) or flags & HAS_ENTERED:
        raise refused(where, "flags that are known", f"{flags:#x}")
    cursor = Cursor(whole, HEAD_BYTES, where)
    if marks > MARKS_FEW:
        marks = cursor.take(SIZE)
    found = struct.unpack(f"<{marks}I", cursor.bytes(4 * marks))
    told = cursor.take(_NUMBER) if flags & NUMBERED else 0
    event, trace = read_body(cursor, number, flags, forms, cursor.stamp())
    return Notice(found, told, bool(flags & GAP), event.entering(0), trace)
