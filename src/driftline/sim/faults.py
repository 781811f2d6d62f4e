"""What can go wrong on a link?"""

from __future__ import annotations

import random
from dataclasses import dataclass

MILLISECOND = 1_000


@dataclass(frozen=True, slots=True)
class LinkFaults:
    """How a link treats what is put on it. Chances are per frame; times are microseconds."""

    fastest: int = 1 * MILLISECOND
    slowest: int = 10 * MILLISECOND
    loss: float = 0.0
    duplicates: float = 0.0
    corruption: float = 0.0
    """A byte is changed; whoever gets it notices by the checksum."""
    reordering: bool = False
    """May what is sent later arrive earlier?"""

    def arrivals(self, now: int, last: int, draw: random.Random) -> list[int]:
        """When a frame that is sent now arrives: never, once, or twice."""
        if draw.random() < self.loss:
            return []
        copies = 2 if draw.random() < self.duplicates else 1
        times = [now + draw.randrange(self.fastest, self.slowest + 1) for _ in range(copies)]
        return times if self.reordering else [max(time, last) for time in times]

    def harmed(self, data: bytes, draw: random.Random) -> bytes:
        """The bytes as they arrive."""
        if draw.random() >= self.corruption:
            return data
        at = draw.randrange(len(data))
        return data[:at] + bytes([data[at] ^ draw.randrange(1, 256)]) + data[at + 1 :]


GOOD = LinkFaults()
"""A link that is only slow."""
