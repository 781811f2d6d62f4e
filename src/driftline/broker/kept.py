"""What waits for a party that was taken many events at a time?

Notices that lie one behind the other, as they were written: they are stored, sent and sent again as
they are. They begin and end with numbers, by which the party says how far it has come.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from driftline.broker.effects import DeliverMany, Run, Waiting
from driftline.broker.sizes import THING_BYTES
from driftline.wire.compact import HEAD_BYTES, split_records
from driftline.wire.notices import GAP, MARKS_FEW

_NUMBER = struct.Struct("<Q")
_SIZE = struct.Struct("<I")
_SHORT = struct.Struct("<H")


@dataclass(frozen=True, slots=True)
class Kept:
    """Notices with the numbers `number` to `last`, how many there are, and their forms."""

    number: int
    last: int
    notices: int
    raw: bytes
    low: int
    high: int

    stored_as: ClassVar[str] = "kept"

    @classmethod
    def of(cls, raw: bytes) -> Kept:
        """As they were kept."""
        forms = [_SHORT.unpack_from(one, 4)[0] for one in split_records(raw)]
        return cls.of_run(raw, len(forms), min(forms), max(forms))

    @classmethod
    def of_run(cls, raw: bytes, notices: int, low: int, high: int) -> Kept:
        """As they were written; the lengths lead from the first to the last."""
        at = last = 0
        for _ in range(notices):
            last = at
            at += _SIZE.unpack_from(raw, at)[0]
        view = memoryview(raw)
        return cls(_number(view), _number(view[last:]), notices, raw, low, high)

    @property
    def stored(self) -> bytes:
        """As they are kept."""
        return self.raw

    @property
    def size(self) -> int:
        """About how many bytes they take."""
        return THING_BYTES + len(self.raw)

    def behind(self, lost: Waiting) -> Kept:
        """These, behind some that were forgotten: the first of them says so."""
        raw = bytearray(self.raw)
        raw[6] |= GAP
        return Kept(self.number, self.last, self.notices, bytes(raw), self.low, self.high)

    def after(self, number: int) -> bytes | memoryview:
        """Those behind a number."""
        if number < self.number:
            return self.raw
        at = 0
        for notice in split_records(self.raw):
            if _number(notice) > number:
                break
            at += len(notice)
        return memoryview(self.raw)[at:]

    def numbers(self, after: int) -> Iterator[int]:
        """The numbers of those behind one."""
        return (_number(one) for one in split_records(self.after(after)))

    def delivery(self, party: str) -> DeliverMany:
        """Tell them to a party."""
        run = Run(party, 0, len(self.raw), self.low, self.high, self.notices)
        return DeliverMany(self.raw, (run,), kept=True)


def _number(notice: memoryview) -> int:
    at = HEAD_BYTES
    marks = notice[7]
    if marks > MARKS_FEW:
        (marks,) = _SIZE.unpack_from(notice, at)
        at += _SIZE.size
    number: int = _NUMBER.unpack_from(notice, at + 8 * marks)[0]
    return number
