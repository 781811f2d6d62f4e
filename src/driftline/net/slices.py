"""How many events of one client are published before others have their turn?

Events are quick, unless very many are told of each, or those who are told read too slowly. That is
not known beforehand: it begins with one, and takes twice as many whenever that was quick. What
takes longer is cut into parts, each as much as a slice of time has room for, and the connection is
not listened to meanwhile. So whoever floods a broker lets others wait for a slice, and no longer.
Where much of what is asked for must be judged event by event, that is counted beforehand: what was
quick a moment ago need not be so any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from driftline.wire.publishing import Refusals

SECONDS = 0.002
"""Of one slice."""
LEAST, MOST = 1, 1 << 17
"""Events of the smallest slice, which is the first, and of the largest."""
QUICK = 4
"""From so many on in a slice they are as quick as nearly all are."""
ROOM = 8
"""What would take no more slices than this is not cut: that has a price of its own. Unless events
take long, or nothing is known of them.
"""
LIGHT = 4000
"""What may be judged in one slice, see `weight`: some two milliseconds."""
FEW = 64
"""So many need not wait for their turn, unless they are known to take long."""
_HEAD = 4


@dataclass(slots=True)
class Whole:
    """A batch that is published in parts: its request, how far it is, and what was refused."""

    request: int
    at: int = 0
    refusals: Refusals = field(default_factory=Refusals)


class Batch(NamedTuple):
    """A batch of events that came: its request, how many there are, the first one's number.

    Or a part of one, perhaps the last. Events that are published `once` are passed over if they
    came before; by an attribute too, if one tells them `apart`.
    """

    request: int
    events: int
    number: int
    records: bytes | memoryview
    whole: Whole | None = None
    is_last: bool = True
    once: bool = False
    apart: str = ""

    def kept(self) -> Batch:
        """The same, in memory of its own."""
        return self._replace(records=memoryview(bytes(self.records)))

    def cut(self, events: int) -> tuple[Batch, Batch | None]:
        """So many of its events, and the rest; all of them if there are no more, or if it cannot
        be told where they end: then it is refused as a whole.
        """
        if self.events <= events:
            return self, None
        end = 0
        for size in _sizes(self.records, events):
            if size < _HEAD or end + size > len(self.records):
                return self, None
            end += size
        whole = self.whole or Whole(self.request)
        number = self.number + events if self.number else 0
        return (
            self._replace(
                request=0, events=events, records=self.records[:end], whole=whole, is_last=False
            ),
            self._replace(
                request=0,
                events=self.events - events,
                number=number,
                records=self.records[end:],
                whole=whole,
            ),
        )


def _sizes(records: bytes | memoryview, count: int) -> Iterator[int]:
    """The sizes of the first records, as they say themselves."""
    at = 0
    for _ in range(count):
        size = int.from_bytes(records[at : at + _HEAD], "little")
        yield size
        at += size


class Slices:
    """How much of what one client publishes fits a slice."""

    __slots__ = ("most",)

    def __init__(self) -> None:
        self.most = LEAST

    @property
    def is_quick(self) -> bool:
        """Are its events as quick as nearly all are?"""
        return self.most >= QUICK

    def fits(self, events: int) -> bool:
        """May so many be published in one piece?"""
        return events <= (ROOM * self.most if self.is_quick else self.most)

    def took(self, events: int, seconds: float) -> None:
        """So many took so long, of this thread's processor: what others on the machine take says
        nothing of events, and to cut what is quick into small pieces only makes it slower.
        """
        if seconds > SECONDS:
            self.most = max(LEAST, min(self.most, int(events * SECONDS / seconds)))
        elif 2 * events >= self.most and seconds < SECONDS / 2:
            self.most = min(MOST, 2 * self.most)
