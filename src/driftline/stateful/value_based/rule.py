"""When is one told that a value moved? [VALUE §2.1, §6.2]

One that was last told the value c, its centre, and wants to hear of moves by r, its radius, is told
of every value outside the open interval from `low` to `high`, and then that is its centre:

    by        c - r               c + r               r > 0
    percent   c - |c| r / 100     c + |c| r / 100     r > 0, of the value last told
    factor    c / r               c * r               r > 1, of positive values

or only of values beyond these ends, if the rule is strict. Nobody is told a value again: where an
interval is so small that a float lies at both of its ends, or where the centre is 0, of which every
move is more than any percentage, one is told of each value that is another. A percentage is of
the centre without its sign, so a value may change its sign, and those who heard of 10 and wait for
150 percent are told of 25 and of -5.

All arithmetic is that of 64-bit floats, in the order written above: the same everywhere, and for a
given centre an end never comes nearer when the radius grows. On integers as large as 2^52 `by` is
exact: see `ticks`. We differ: the paper turns a factor into a radius by logarithms, which round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftline.errors import InvalidValue
from driftline.model.subscription import Measure
from driftline.model.value import show

EXACT_MAX = 2**53
"""Up to here every integer is a float of its own."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rule:
    """How far is far, and is that far enough?

    >>> Rule().tells(100, 2, 102), Rule(strict=True).tells(100, 2, 102)
    (True, False)
    >>> Rule(Measure.PERCENT).tells(-10, 150, 5), Rule(Measure.FACTOR).tells(8, 2, 4)
    (True, True)
    """

    measure: Measure = Measure.BY
    strict: bool = False

    def high(self, centre: float, radius: float) -> float:
        """From here on upwards one is told."""
        match self.measure:
            case Measure.BY:
                return centre + radius
            case Measure.PERCENT:
                return centre + abs(centre) * radius / 100
            case Measure.FACTOR:
                return centre * radius

    def low(self, centre: float, radius: float) -> float:
        """From here on downwards one is told."""
        match self.measure:
            case Measure.BY:
                return centre - radius
            case Measure.PERCENT:
                return centre - abs(centre) * radius / 100
            case Measure.FACTOR:
                return centre / radius

    def tells(self, centre: float, radius: float, value: float) -> bool:
        """Is one told of a value? The definition."""
        low, high = self.low(centre, radius), self.high(centre, radius)
        if self.strict:
            return value < low or high < value
        return value != centre and (value <= low or high <= value)

    def ends(self, centres: Floats, radii: Floats) -> tuple[Floats, Floats]:
        """The lower and the upper ends of many."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            low = np.asarray(self.low(centres, radii))  # type: ignore[arg-type]  # as for one
            high = np.asarray(self.high(centres, radii))  # type: ignore[arg-type]
        return low, high

    def tells_many(self, centres: Floats, radii: Floats, value: float) -> NDArray[np.bool_]:
        """Who of many is told of a value?"""
        low, high = self.ends(centres, radii)
        if self.strict:
            return (value < low) | (high < value)
        return (value != centres) & ((value <= low) | (high <= value))

    @property
    def circular(self) -> bool:
        """Do all with one radius stand in a circle whose order no event changes?

        A percentage does not promise that, as an end depends on the centre [VALUE §6.2]; neither
        does a strict rule, by a rounded bit.
        """
        return self.measure is not Measure.PERCENT and not self.strict

    def fits(self, least: float, most: float, radius: float) -> bool:
        """Do those between two centres stay in the order of a circle? [VALUE, Lemma 1]

        Whoever is told first when the value rises must get the highest centre of all, and the
        lowest when it falls.
        """
        if least == most:
            return True
        within = most <= self.high(least, radius) and self.low(most, radius) <= least
        return self.circular and within

    def admit_value(self, value: object, where: str = "value") -> float:
        """A finite float, above 0 for a factor; or InvalidValue."""
        number = admit_number(value, where)
        if self.measure is Measure.FACTOR and number <= 0:
            raise InvalidValue(where, "a number above 0, as there is a factor", show(value))
        return number

    def admit_radius(self, radius: object, where: str = "radius") -> float:
        """A finite float above 0, or above 1 for a factor; or InvalidValue."""
        number, least = admit_number(radius, where), self.measure is Measure.FACTOR
        if number <= least:
            raise InvalidValue(where, f"a number above {int(least)}", show(radius))
        return number

    def admit_values(self, values: object, where: str = "values") -> Floats:
        """Many values at once: a copy, laid out as kernels want it."""
        floats = admit_numbers(values, where)
        if self.measure is Measure.FACTOR and (floats <= 0).any():
            raise InvalidValue(where, "numbers above 0, as there is a factor", "another")
        return floats

    def admit_radii(self, radii: object, where: str = "radii") -> Floats:
        """Many radii at once: a copy, laid out as kernels want it."""
        floats, least = admit_numbers(radii, where), self.measure is Measure.FACTOR
        if (floats <= least).any():
            raise InvalidValue(where, f"numbers above {int(least)}", "another")
        return floats


def admit_number(value: object, where: str) -> float:
    """A finite float, and there is only one zero. An integer as far as floats tell them apart."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        if not -EXACT_MAX <= value <= EXACT_MAX:
            raise InvalidValue(where, "an integer of at most 53 bits", show(value))
        return float(value)
    if isinstance(value, float | np.floating) and math.isfinite(value):
        return float(value) + 0.0  # -0.0 becomes 0.0
    raise InvalidValue(where, "a finite number", show(value))


def admit_numbers(values: object, where: str) -> Floats:
    """Many of them."""
    given: NDArray[Any] = np.asarray(values)
    if given.ndim != 1 or (len(given) and given.dtype.kind not in "fiu"):
        raise InvalidValue(where, "a column of numbers", f"{given.dtype} {given.shape}")
    if given.dtype.kind != "f" and ((given > EXACT_MAX) | (given < -EXACT_MAX)).any():
        raise InvalidValue(where, "integers of at most 53 bits", "a larger one")
    if not np.isfinite(given).all():
        raise InvalidValue(where, "finite numbers", "one that is not")
    floats: Floats = np.add(given, 0.0, dtype=np.float64, order="C")
    return floats
