"""How is a client told of an event that its subscriptions asked for?

By the record that was published (see `compact`), with a few words put in behind its head.

    offset  bytes  field
         0      4  length    of the whole notice
         4      2  form
         6      1  flags     as in the record, but no 16; also 32 numbered, 64 behind a gap, 128
                             again, because nothing else was told for long
         7      1  marks     how many there are; 255: as many as the next 4 bytes say
         8         marks     8 bytes each: the handle of a subscription (4) and its epoch (4)
                   number    8 bytes, if numbered
                   entered   8 bytes: when the event came into the system
                   the rest  as in the record
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from driftline.model.event import Event
from driftline.wire.compact import (
    HAS_ENTERED,
    HAS_ID,
    HAS_SOURCE,
    HAS_TIME,
    HAS_TRACE,
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
from driftline.wire.values import FIXED_MAX

NUMBERED, GAP, REPEATED = 32, 64, 128
MARKS_FEW = 254
"""So many marks are counted in the head."""

_NUMBER = struct.Struct("<Q")
_MARK = struct.Struct("<II")


class Notice(NamedTuple):
    """An event that a client is told of: for which handles and under which epochs, its number (0:
    none), is it behind a gap, and is it told again?
    """

    marks: tuple[tuple[int, int], ...]
    number: int
    gap: bool
    event: Event
    repeated: bool = False


def write_notice(notice: Notice, number: int, form: Form) -> bytes:
    """The bytes of a notice, whose event has a form that goes by this number."""
    event = notice.event
    assert event.entered is not None
    flags, body = write_body(event, number, form, entered=False)
    marks = len(notice.marks)
    parts = [
        SIZE.pack(marks) if marks > MARKS_FEW else b"",
        struct.pack(f"<{2 * marks}I", *(part for mark in notice.marks for part in mark)),
        _NUMBER.pack(notice.number) if notice.number else b"",
        WORD.pack(event.entered),
        body,
    ]
    flags |= NUMBERED * (notice.number > 0) | GAP * notice.gap | REPEATED * notice.repeated
    length = HEAD_BYTES + sum(map(len, parts))
    return b"".join((HEAD.pack(length, number, flags, min(marks, MARKS_FEW + 1)), *parts))


def read_notice(raw: Bytes, forms: Mapping[int, Form], where: str = "notice") -> Notice:
    """One whole notice; `FrameRefused` for anything else."""
    whole = bytes(raw)
    number, flags, marks = read_head(whole, where)
    if flags & HAS_ENTERED:
        raise refused(where, "flags that are known", f"{flags:#x}")
    cursor = Cursor(whole, HEAD_BYTES, where)
    if marks > MARKS_FEW:
        marks = cursor.take(SIZE)
    found = tuple(_MARK.iter_unpack(cursor.bytes(_MARK.size * marks)))
    told = cursor.take(_NUMBER) if flags & NUMBERED else 0
    event = read_body(cursor, number, flags, forms, cursor.stamp())
    again = bool(flags & REPEATED)
    return Notice(found, told, bool(flags & GAP), event.entering(0), again)


def reduced(notice: bytes | memoryview, form: Form, seen: Sequence[bool], number: int) -> bytes:
    """A notice that was written here with only those values of its form that are to be seen; what
    is left has a form that goes by this number.
    """
    at, flags, marks = HEAD_BYTES, notice[6], notice[7]
    if marks > MARKS_FEW:
        (marks,) = SIZE.unpack_from(notice, at)
        at += SIZE.size
    at += _MARK.size * marks + (_NUMBER.size if flags & NUMBERED else 0) + WORD.size
    if flags & HAS_TIME:
        at += WORD.size
    for flag in (HAS_ID, HAS_SOURCE, HAS_TRACE):
        if flags & flag:
            at += 2 + int.from_bytes(notice[at : at + 2], "little")
    parts = [notice[HEAD_BYTES:at]]
    for (_, kind), is_seen in zip(form.fields, seen, strict=True):
        size = 8 if kind <= FIXED_MAX else SIZE.size + SIZE.unpack_from(notice, at)[0]
        if is_seen:
            parts.append(notice[at : at + size])
        at += size
    assert at == len(notice)
    length = HEAD_BYTES + sum(map(len, parts))
    return b"".join((HEAD.pack(length, number, flags, notice[7]), *parts))


def marks_of(notice: bytes | memoryview) -> list[tuple[int, int]]:
    """The handles and epochs of a notice that was written here."""
    at, marks = HEAD_BYTES, notice[7]
    if marks > MARKS_FEW:
        (marks,) = SIZE.unpack_from(notice, at)
        at += SIZE.size
    return list(_MARK.iter_unpack(notice[at : at + _MARK.size * marks]))


def remarked(
    notice: bytes | memoryview, marks: list[tuple[int, int]], *, repeated: bool = False
) -> bytes:
    """The same notice for some of those it is for."""
    at, count = HEAD_BYTES, notice[7]
    if count > MARKS_FEW:
        (count,) = SIZE.unpack_from(notice, at)
        at += SIZE.size
    rest = notice[at + _MARK.size * count :]
    many = SIZE.pack(len(marks)) if len(marks) > MARKS_FEW else b""
    packed = b"".join(_MARK.pack(*mark) for mark in marks)
    length = HEAD_BYTES + len(many) + len(packed) + len(rest)
    _, number, flags, _ = HEAD.unpack_from(notice)
    flags |= REPEATED * repeated
    head = HEAD.pack(length, number, flags, min(len(marks), MARKS_FEW + 1))
    return b"".join((head, many, packed, rest))
