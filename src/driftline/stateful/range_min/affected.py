"""Which subscriptions does a message affect? [DBNET §2.4.1, §3.2]

For a home that tells each subscriber by itself, and for one that only wants to know whether a
message is worth sending: it need not know who asks, only which ranges somebody asks for. Ranges are
kept by number, as points (low, high), and a message is a rectangle (`kernels.slabs`): a microsecond
for a range that comes, moves or goes, a fraction of one for a message, and a nanosecond or two for
each range it affects. The answers are those of `Change.affects`.

    >>> asked = Affected()
    >>> asked.add(7, 30, 60)
    >>> asked.add(8, 20, 60)
    >>> asked.of(Change(4, 40, 40, 20, 100)).tolist()
    [7]
    >>> asked.wanted(Change(4, 70, 70, 60, 100))
    False
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftline.errors import InvalidValue
from driftline.kernels.entries import number_in
from driftline.kernels.keys import number_key
from driftline.kernels.layout import N_COUNT, TAIL
from driftline.kernels.range_min import MESSAGE
from driftline.kernels.range_slabs import affected, affects_any, begin_ranges, set_ranges
from driftline.kernels.types import Words
from driftline.matching.memory import Memory
from driftline.stateful.range_min.change import HIGHEST, LOWEST, Change
from driftline.stateful.range_min.structure import (
    EXACT_MAX,
    Ids,
    admit_id,
    admit_ids,
    admit_range,
)

_FIRST_WORDS = 1 << 19
_FIRST_NUMBERS = 64
_FIRST_FOUND = 1024
_NUMBER_MAX = 2**29 - 1  # as a ref has room for


class Affected:
    """Ranges by number; an end may be infinite, and the lower one above the upper."""

    def __init__(self) -> None:
        memory = Memory(_FIRST_WORDS)
        self._begin(memory, begin_ranges(memory.words), np.full((_FIRST_NUMBERS, 2), math.nan))

    def _begin(self, memory: Memory, points: int, held: NDArray[np.float64]) -> None:
        """All that it knows; what is only room to work in is made here."""
        self._memory, self._points = memory, points
        self._hold(held)
        self._out = np.zeros(_FIRST_FOUND, np.int32)
        # For one at a time: made once, as that costs as much as what is done with them. Of views of
        # memory reading and writing costs least.
        self._one, span = np.zeros(1, np.int64), np.zeros(2)
        self._span_bits = span.view(np.int64).reshape(1, 2)
        self._span: Any = span.data
        row = np.zeros(MESSAGE)
        self._row_bits = row.view(np.int64).reshape(1, MESSAGE)
        self._row: Any = row.data
        self._ends, self._is_wanted = np.zeros(2, np.int64), np.zeros(1, np.bool_)

    def _hold(self, held: NDArray[np.float64]) -> None:
        """By number the range; NaN where there is none."""
        self._held, self._held_bits = held, held.view(np.int64)
        self._lows: Any = held.ravel().data[::2]

    def __getstate__(self) -> tuple[Memory, int, NDArray[np.float64]]:
        # Without the views of arrays, which would become arrays of their own.
        return self._memory, self._points, self._held

    def __setstate__(self, state: tuple[Memory, int, NDArray[np.float64]]) -> None:
        self._begin(*state)

    # Changes

    def add(self, number: int, low: float, high: float) -> None:
        """Take in the range of a number, in the place of the one it had."""
        low, high = admit_range(low, high)
        # An open end is beyond every number that a message has, but for the infinite ones.
        self._set_one(admit_id(number), max(low, LOWEST), min(high, HIGHEST))

    def change(self, number: int, low: float, high: float) -> None:
        """Move the range of a number. KeyError if it has none."""
        if number not in self:
            raise KeyError(number)
        self.add(number, low, high)

    def discard(self, number: int) -> None:
        """Forget the range of a number; nothing happens if it has none."""
        if number in self:
            self._set_one(number, math.nan, math.nan)

    def add_many(self, numbers: Ids, lows: NDArray[Any], highs: NDArray[Any]) -> None:
        """As a loop over `add`, and much faster. InvalidValue changes nothing."""
        numbers = admit_ids(np.asarray(numbers))
        lows, highs = _admit_ends(lows, "lows"), _admit_ends(highs, "highs")
        if not len(numbers) == len(lows) == len(highs):
            came = f"{len(lows)} and {len(highs)}"
            raise InvalidValue("ends", f"two for each of {len(numbers)} numbers", came)
        ranges = np.column_stack((np.maximum(lows, LOWEST), np.minimum(highs, HIGHEST)))
        self._set(numbers, ranges)

    def discard_many(self, numbers: Ids) -> None:
        """As a loop over `discard`."""
        numbers = admit_ids(np.asarray(numbers))
        numbers = numbers[numbers < len(self._held)]
        self._set(numbers, np.full((len(numbers), 2), math.nan))

    def _set_one(self, number: int, low: float, high: float) -> None:
        self._make_room(number)
        self._one[0] = number
        self._span[0], self._span[1] = low, high
        self._apply(self._one, self._span_bits)

    def _set(self, numbers: Ids, ranges: NDArray[np.float64]) -> None:
        self._make_room(int(numbers.max(initial=0)))
        self._apply(numbers, ranges.view(np.int64))

    def _make_room(self, number: int) -> None:
        """Have a place for numbers up to this one."""
        if number > _NUMBER_MAX:
            raise InvalidValue("number", f"one up to {_NUMBER_MAX}", str(number))
        if number >= len(self._held):
            more = np.full((2 * number + 1 - len(self._held), 2), math.nan)
            self._hold(np.concatenate((self._held, more)))

    def _apply(self, numbers: Ids, bits: Words) -> None:
        """Call the kernel until all is done, giving it memory where it asks for it."""
        done = 0
        while True:
            words = self._memory.words
            done = set_ranges(words, self._points, self._held_bits, numbers, bits, done)
            if done == len(numbers):
                return
            self._memory.resize(len(words) + (len(words) >> 1))

    # Messages

    def of(self, change: Change) -> NDArray[np.int32]:
        """The numbers whose minimum a message changes, in no particular order."""
        self._write(change)
        return self._found(self._row_bits, self._ends)

    def of_many(self, rows: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The same for the rows of `Messages`: those of row i are from ends[i] to ends[i + 1]."""
        ends = np.zeros(len(rows) + 1, np.int64)
        return self._found(_admit_rows(rows), ends), ends

    def wanted(self, change: Change) -> bool:
        """Does a message change anybody's minimum? Without looking for all of them."""
        self._write(change)
        affects_any(self._memory.words, self._points, self._row_bits, self._is_wanted)
        return bool(self._is_wanted[0])

    def wanted_many(self, rows: NDArray[np.float64]) -> NDArray[np.bool_]:
        """The same for the rows of `Messages`."""
        wanted = np.zeros(len(rows), np.bool_)
        affects_any(self._memory.words, self._points, _admit_rows(rows), wanted)
        return wanted

    def _write(self, change: Change) -> None:
        row = self._row
        row[1], row[2] = change.inner_left, change.inner_right
        row[3], row[4] = change.outer_left, change.outer_right

    def _found(self, rows: Words, ends: NDArray[np.int64]) -> NDArray[np.int32]:
        # The array is used again, and stays as long as the longest answer so far.
        self._out = affected(self._memory.words, self._points, rows, ends, self._out)
        return self._out[: ends[-1]].copy()

    # The rest

    @property
    def nbytes(self) -> int:
        """How many bytes of memory are in use."""
        return 8 * int(self._memory.words[TAIL]) + self._held.nbytes

    def __len__(self) -> int:
        return int(self._memory.words[self._points + N_COUNT])

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int | np.integer) or not 0 <= number < len(self._held):
            return False
        low = self._lows[number]
        return bool(low == low)

    def _check(self) -> None:
        from driftline.matching.check import points_in

        words = self._memory.words
        m = words[: int(words[TAIL])].tolist()
        found = {number_in(ref): (x, y - 1) for x, y, ref in points_in(m, self._points, _block)}
        assert len(found) == len(self)
        (numbers,) = np.nonzero(~np.isnan(self._held[:, 0]))
        bits = self._held[numbers].view(np.int64)
        wanted = [tuple(map(number_key, row)) for row in bits]
        assert found == dict(zip(numbers.tolist(), wanted, strict=True))


def _block(address: int, words: int) -> int:
    return address


def _admit_ends(ends: NDArray[Any], where: str) -> NDArray[np.float64]:
    ends = np.asarray(ends)
    if ends.dtype.kind not in "fiu" or ends.ndim != 1:
        raise InvalidValue(where, "a column of numbers", f"{ends.dtype} {ends.shape}")
    if ends.dtype.kind != "f" and ((ends > EXACT_MAX).any() or (ends < -EXACT_MAX).any()):
        raise InvalidValue(where, "integers of at most 53 bits", "a larger one")
    if np.isnan(ends).any():
        raise InvalidValue(where, "numbers", "NaN")
    return ends.astype(np.float64)


def _admit_rows(rows: NDArray[np.float64]) -> Words:
    rows = np.ascontiguousarray(rows, np.float64)
    if rows.ndim != 2 or rows.shape[1] != MESSAGE:
        raise InvalidValue("rows", f"rows of {MESSAGE} numbers", str(rows.shape))
    return rows.view(np.int64)
