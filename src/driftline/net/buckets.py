"""How often did something take how long? Counted in buckets, as Prometheus wants them.

>>> took = Buckets((0.1, 1.0))
>>> for seconds in (0.05, 0.1, 7.0):
...     took.observe(seconds)
>>> took.cumulative(), round(took.sum, 2)
([('0.1', 2), ('1.0', 2), ('+Inf', 3)], 7.15)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

FINE = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
"""Seconds, from what a loop takes to what somebody notices."""


class Buckets:
    """One writer; whoever reads meanwhile may miss the last."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[float] = FINE) -> None:
        self._bounds = tuple(map(float, bounds))
        self._counts = [0] * (len(self._bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """It took so long, once more."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.sum += seconds

    def cumulative(self) -> list[tuple[str, float]]:
        """How often it took no longer than each bound."""
        found: list[tuple[str, float]] = []
        total = 0
        for bound, count in zip((*self._bounds, None), self._counts, strict=True):
            total += count
            found.append(("+Inf" if bound is None else str(bound), total))
        return found
