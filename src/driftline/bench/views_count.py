"""How many subscriptions does each message concern? Counted without listing them.

A subscription is a point (low, high), a message a rectangle of points [DBNET Figure 2]. The points
lie in order of `low`; the ranks of their `high` are told apart bit by bit, from the highest, zeros
before ones (a wavelet matrix). To count the ranks below a limit between two places, one follows
both places through the bits: 20 steps at a million points, made for all rectangles at once.

It shares nothing with the index or with what lists those affected, so their answers are checked by
it. And it is how the server knows that nobody wants a message [§2.4.1]: that count is 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class Rectangles:
    """Subscriptions as points, and how many of them lie in each rectangle."""

    def __init__(self, low: Floats, high: Floats) -> None:
        order = np.argsort(low, kind="stable")
        self._low, self._high = low[order], np.sort(high)
        rank = np.empty(len(low), np.int64)
        rank[np.argsort(high[order], kind="stable")] = np.arange(len(low))
        # For each bit: of the first so many places, how many have a zero there.
        self._zeros: list[NDArray[np.int32]] = []
        for bit in reversed(range(len(low).bit_length())):
            ones = (rank >> bit & 1).astype(np.bool_)
            self._zeros.append(np.concatenate(([0], np.cumsum(~ones))).astype(np.int32))
            rank = np.concatenate((rank[~ones], rank[ones]))

    def of(self, rows: Floats) -> Counts:
        """For each message the subscriptions it affects; rows as `Messages` has them."""
        _, inner_left, inner_right, outer_left, outer_right = rows.T
        first = np.searchsorted(self._low, outer_left, side="right")
        last = np.searchsorted(self._low, inner_left, side="right")
        above = self._below(first, last, np.searchsorted(self._high, inner_right))
        return self._below(first, last, np.searchsorted(self._high, outer_right)) - above

    def _below(self, first: Counts, last: Counts, limit: Counts) -> Counts:
        """How many ranks between two places are less than the limit."""
        found = np.zeros(len(first), np.int64)
        for level, zeros in enumerate(self._zeros):
            one = (limit >> (len(self._zeros) - 1 - level) & 1).astype(np.bool_)
            zero_first, zero_last = zeros[first], zeros[last]
            # A rank with a zero where the limit has a one is less, whatever follows.
            found += np.where(one, zero_last - zero_first, 0)
            first = np.where(one, zeros[-1] + first - zero_first, zero_first)
            last = np.where(one, zeros[-1] + last - zero_last, zero_last)
        return found


def look(low: Floats, high: Floats, row: Floats) -> Counts:
    """The numbers of those that one message affects: a look at all of them."""
    _, inner_left, inner_right, outer_left, outer_right = row
    within = (outer_left < low) & (low <= inner_left)
    return np.flatnonzero(within & (inner_right <= high) & (high < outer_right))
