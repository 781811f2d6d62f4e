"""What is said when minima change? [DBNET §2.4.1]

One message stands for all ranges that have the same new minimum. They are those that contain the
inner range and lie inside the outer one, whose ends do not belong to it:

    outer_left      inner_left   inner_right      outer_right
        (---------------[------------]----------------)
             l in here                   r in here

`<4, 40, 40, 20, 100>` says: whoever contains 40, but neither 20 nor 100, has the minimum 4 now.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

LOWEST = -sys.float_info.max
HIGHEST = sys.float_info.max


@dataclass(frozen=True, slots=True)
class Change:
    """A new minimum, and for whom; None where the range has become empty.

    An outer end is infinite where nothing stands in the way.
    """

    minimum: float | None
    inner_left: float
    inner_right: float
    outer_left: float
    outer_right: float

    def affects(self, low: float, high: float) -> bool:
        """Does the minimum over [low, high] change to this one?

        >>> Change(4, 40, 40, 20, 100).affects(30, 60), Change(4, 40, 40, 20, 100).affects(20, 60)
        (True, False)

        A range may be open: no outer end is beyond every number, so as a filter, where infinity is
        not less than itself, it must say LOWEST or HIGHEST.

        >>> Change(None, 1, 1, float("-inf"), 7).affects(float("-inf"), 3)
        True
        """
        low, high = max(low, LOWEST), min(high, HIGHEST)
        return (
            self.outer_left < low <= self.inner_left and self.inner_right <= high < self.outer_right
        )
