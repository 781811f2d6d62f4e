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
    """What is corrupted is noticed by its checksum, and as good as lost."""
    reordering: bool = False
    """May what is sent later arrive earlier?"""

    def arrivals(self, now: int, last: int, draw: random.Random) -> list[int]:
        """When a frame that is sent now arrives: never, once, or twice."""
        if draw.random() < self.loss or draw.random() < self.corruption:
            return []
        copies = 2 if draw.random() < self.duplicates else 1
        times = [now + draw.randrange(self.fastest, self.slowest + 1) for _ in range(copies)]
        return times if self.reordering else [max(time, last) for time in times]


GOOD = LinkFaults()
"""A link that is only slow."""
