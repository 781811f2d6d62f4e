"""How long do events and changes take when both queue for one broker?

A broker does one thing at a time: whatever comes waits for all that came before. The wait of the
next is that of the one before and what that one takes, less the time between the two, and never
below nothing (Lindley's recursion):

    >>> list(sojourns(gaps=[1, 1, 5], services=[3, 3, 3]))
    [3, 5, 3]

What each thing takes has been measured; when it comes is drawn: both kinds at random, independently
of each other (two Poisson processes, merged). A queue to which comes more than it can do grows
without end: of that no time is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

ARRIVALS = 50_000
_WARMING = 0.1
"""The queue begins empty: of so large a share no time counts."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Things of one kind: how many come in a second, and what some of them took, in seconds."""

    per_second: float
    services: Sequence[float]

    @property
    def load(self) -> float:
        """The share of the server that they take."""
        return self.per_second * sum(self.services) / len(self.services)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Half take at most `p50`, all but one in a hundred at most `p99`; in microseconds."""

    p50: float
    p99: float

    def as_data(self) -> dict[str, float]:
        """As JSON."""
        return {"p50": self.p50, "p99": self.p99}


def queued(kinds: Sequence[Kind], seed: int) -> list[Percentiles | None] | None:
    """From arrival to completion, by kind (None: none came); None if the queue grows forever."""
    if sum(kind.load for kind in kinds) >= 1:
        return None
    draw = Random(seed)
    total = sum(kind.per_second for kind in kinds)
    which = draw.choices(range(len(kinds)), [kind.per_second for kind in kinds], k=ARRIVALS)
    gaps = (draw.expovariate(total) for _ in which)
    services = [draw.choice(kinds[one].services) for one in which]
    times: list[list[float]] = [[] for _ in kinds]
    for at, (one, time) in enumerate(zip(which, sojourns(gaps, services), strict=True)):
        if at >= _WARMING * ARRIVALS:
            times[one].append(time * 1e6)
    return [percentiles(some) if some else None for some in times]


def sojourns(gaps: Iterable[float], services: Iterable[float]) -> Iterator[float]:
    """The wait and the service of each; before each lies a gap since the one before."""
    left = 0.0
    for gap, service in zip(gaps, services, strict=True):
        left = max(left - gap, 0) + service
        yield left


def percentiles(values: Sequence[float]) -> Percentiles:
    """Of values in any order."""
    p50, p99 = np.percentile(values, (50, 99)).tolist()
    return Percentiles(p50, p99)
