"""How is money compared exactly?

As whole numbers of ticks. 0.1 + 0.2 is not 0.3 in floats, so one who heard of 0.1 and waits for a
move by 0.2 is not told of 0.3; in ticks of 0.1 that is 1 + 2 = 3. Whole numbers up to 2^52 and
their sums are floats without rounding, so structures need not know of it. A radius between two
ticks becomes the next one that a value can reach, and so does a strict radius:

    a move of more than 2 cents is a move of at least 3

after which nothing is strict any more. A radius that no two values are apart may be any.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from driftline.errors import InvalidValue
from driftline.model.value import KIND_OF, Kind, Value, show

TICKS_MAX = 2**52
_APART = 2 * TICKS_MAX + 2
"""More than any two values are apart, and a float."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """A column whose values are whole numbers of a decimal step."""

    tick: Decimal

    def count(self, value: Value, where: str = "value") -> int:
        """How many ticks a value is. InvalidValue if it is between two, or too large.

        >>> Ticks(Decimal("0.01")).count(19.99)
        1999
        """
        ticks = self._ratio(value, where)
        if ticks.denominator != 1:
            raise InvalidValue(where, f"a multiple of {self.tick}", show(value))
        if abs(ticks) > TICKS_MAX:
            raise InvalidValue(where, f"at most 2^52 ticks of {self.tick}", show(value))
        return int(ticks)

    def radius(self, radius: Value, strict: bool = False) -> int:
        """The least whole number of ticks that is as far; one that is too far for any value is one.

        >>> cents = Ticks(Decimal("0.01"))
        >>> cents.radius(0.02), cents.radius(0.02, strict=True), cents.radius(0.015)
        (2, 3, 2)
        """
        ticks = self._ratio(radius, "radius")
        if ticks <= 0:
            raise InvalidValue("radius", "a number above 0", show(radius))
        return min(floor(ticks) + 1 if strict else ceil(ticks), _APART)

    def value(self, ticks: float) -> Decimal:
        """So many ticks as a number.

        >>> Ticks(Decimal("0.01")).value(1999)
        Decimal('19.99')
        """
        return int(ticks) * self.tick

    def _ratio(self, value: Value, where: str) -> Fraction:
        if KIND_OF.get(type(value)) is not Kind.NUMBER:
            raise InvalidValue(where, "a number", show(value))
        try:
            # The shortest decimal that reads back as this float is what the publisher wrote.
            return Fraction(repr(value)) / Fraction(self.tick)
        except ValueError:
            raise InvalidValue(where, "a finite number", show(value)) from None
