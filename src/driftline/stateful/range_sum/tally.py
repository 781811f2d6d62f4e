"""How many values are there, and what is their sum, when values may be taken off again?

Every float is a whole number of some power of two, so a sum of them is an integer and how small
that power had to be. Integers of any length are Python's, and adding is exact.

>>> tally = Tally()
>>> for value in (0.1, 1e300, 0.2):
...     tally.add(value, 1)
>>> tally.add(1e300, -1)
>>> tally.sum(), 0.1 + 1e300 + 0.2 - 1e300
(0.30000000000000004, 0.0)
>>> money = Tally(Fraction("0.1"))
>>> money.add(0.1, 1); money.add(0.2, 1)
>>> money.sum()
0.3
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from driftline.model.truth import Unknown
from driftline.model.value import INTEGER_MAX, INTEGER_MIN, KIND_OF, Kind, Value


@dataclass(slots=True)
class Tally:
    """The values of one column. The sum is `total` times the tick, or over 2 to the `scale`."""

    tick: Fraction | None = None
    count: int = 0
    floats: int = 0
    """How many of them are floats: with none, the sum is an integer."""
    others: int = 0
    """How many are no numbers: with any, there is no sum."""
    total: int = 0
    scale: int = 0

    def add(self, value: Value, times: int) -> None:
        """Add the value so many times; -1 takes it off. O(1)."""
        self.count += times
        if KIND_OF[type(value)] is not Kind.NUMBER:
            self.others += times
            return
        assert isinstance(value, int | float)
        if type(value) is float:
            self.floats += times
        if self.tick is None:
            self._add_exactly(*value.as_integer_ratio(), times)
        else:
            self.total += times * whole_ticks(value, self.tick)

    def _add_exactly(self, numerator: int, denominator: int, times: int) -> None:
        scale = denominator.bit_length() - 1  # it is a power of two
        if scale > self.scale:
            self.total <<= scale - self.scale
            self.scale = scale
        self.total += times * numerator << self.scale - scale

    def sum(self) -> int | float | Unknown:
        """The sum, rounded once; unknown where there is none."""
        numerator, denominator = self._ratio()
        if self.count == 0:
            return Unknown("a sum", "has nothing to add")
        if self.others:
            return Unknown("a sum", "adds what is no number")
        # Sums in ticks are integers underneath, also where they are told as floats.
        counted = self.total if self.tick is not None else numerator // denominator
        integers = self.tick is not None or not self.floats
        if integers and not INTEGER_MIN <= counted <= INTEGER_MAX:
            return Unknown("a sum", "overflows 64 bits")
        if not self.floats:
            return numerator // denominator
        try:
            return numerator / denominator  # of integers: Python rounds it right
        except OverflowError:
            return Unknown("a sum", "overflows")

    def average(self) -> float | Unknown:
        """The sum over the count, rounded once; unknown where there is no sum."""
        total = self.sum()
        if isinstance(total, Unknown):
            return total
        numerator, denominator = self._ratio()
        return numerator / (denominator * self.count)

    def _ratio(self) -> tuple[int, int]:
        if self.tick is None:
            return self.total, 1 << self.scale
        return self.total * self.tick.numerator, self.tick.denominator

    def merge(self, other: Tally) -> None:
        """Add all that another has counted, of other rows of the same column."""
        self.count += other.count
        self.floats += other.floats
        self.others += other.others
        if self.tick is None:
            self._add_exactly(other.total, 1 << other.scale, 1)
        else:
            self.total += other.total

    def _check(self) -> None:
        assert 0 <= self.floats <= self.count - self.others <= self.count
        assert self.scale == 0 or self.tick is None
        assert self.total == 0 or self.count > self.others, "a sum of nothing"


def whole_ticks(value: int | float, tick: Fraction) -> int:
    """How many ticks it is. Its shortest decimal is what the publisher wrote; the table saw to it
    that it lies on the grid.
    """
    ticks = Fraction(repr(value)) / tick
    assert ticks.denominator == 1, f"{value!r} is no multiple of {tick}"
    return ticks.numerator
