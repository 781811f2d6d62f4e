"""What does a `moved` or `crossed` of the language ask for, with its variables at hand?

Radii and thresholds are expressions over parameters; here they become numbers, or are refused. Of a
column with ticks, values and radii are whole numbers of them from here on. A value that is missing,
NULL, NaN, infinite or no number is none: nothing is told of it where events are concerned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftline.errors import InvalidValue
from driftline.model.expression import Expression
from driftline.model.scope import Scope
from driftline.model.subscription import Crossed, Measure, Moved
from driftline.model.value import KIND_OF, Kind, Value, show
from driftline.stateful.value_based.rule import EXACT_MAX, Floats, Rule
from driftline.stateful.value_based.ticks import Ticks


@dataclass(frozen=True, slots=True)
class Move:
    """`moved(…)` with numbers: told when the value is as far as the radius from the last one told.

    `may` is the radius from which on one may be told, if somebody else must be; see `may_must`.
    """

    rule: Rule
    radius: float
    may: float | None = None
    shared: bool = False
    ticks: Ticks | None = None

    def number(self, value: Value | None) -> float | None:
        """A value as structures take it; None if it is none. InvalidValue if it is between ticks.

        Of a factor only what is above 0 is a value.
        """
        found = number_of(value)
        if found is None or (self.rule.measure is Measure.FACTOR and found <= 0):
            return None
        if self.ticks is not None:
            assert value is not None
            return float(self.ticks.count(value))
        return self.rule.admit_value(value)

    def number_or_none(self, value: Value | None) -> float | None:
        """The same; None also where such numbers cannot be compared exactly."""
        try:
            return self.number(value)
        except InvalidValue:
            return None

    def numbers(self, values: NDArray[Any]) -> Floats:
        """Many finite numbers as structures take them, NaN where one is none."""
        if self.ticks is not None:
            # The same few numbers, mostly: each is counted once.
            some, which = np.unique(values, return_inverse=True)
            found = [self.number_or_none(value) for value in some.tolist()]
            return np.array(found, np.float64)[which]
        floats = values.astype(np.float64)
        if values.dtype.kind != "f":
            floats[(values > EXACT_MAX) | (values < -EXACT_MAX)] = math.nan
        if self.rule.measure is Measure.FACTOR:
            floats[floats <= 0] = math.nan
        return floats


@dataclass(frozen=True, slots=True)
class Hysteresis:
    """`crossed(…)` with numbers: told when a value reaches `threshold`, then not until it cleared.

    Values compare exactly, as in the language.
    """

    threshold: int | float
    clear: int | float
    above: bool = True

    def reached(self, value: int | float) -> bool:
        """Is it at the threshold or beyond?"""
        return value >= self.threshold if self.above else value <= self.threshold

    def cleared(self, value: int | float) -> bool:
        """Is it back at `clear`? Not while it is at the threshold, where both are one."""
        back = value <= self.clear if self.above else value >= self.clear
        return back and not self.reached(value)


def number_of(value: Value | None) -> int | float | None:
    """A finite number, or None."""
    if value is None or KIND_OF.get(type(value)) is not Kind.NUMBER:
        return None
    assert isinstance(value, int | float)
    return value if math.isfinite(value) else None


def move_of(moved: Moved, scope: Scope, tick: Decimal | None = None) -> Move:
    """What `moved` asks for, with these variables; InvalidValue if a radius is none.

    A tick is for values that are whole numbers of it: a column, its MIN, MAX or SUM, not its AVG.
    """
    rule = Rule(moved.measure, moved.strict)
    radius = _number(moved.radius, scope, moved.measure.value)
    may = None if moved.may is None else _number(moved.may, scope, "may")
    ticks = None if tick is None else Ticks(tick)
    if ticks is not None and moved.measure is Measure.BY:
        # A strict radius is a larger one, of whole ticks.
        radius = float(ticks.radius(radius, moved.strict))
        may = None if may is None else float(ticks.radius(may, moved.strict))
        rule = Rule()
    radius = rule.admit_radius(radius)
    may = None if may is None else rule.admit_radius(may, "may")
    if may is not None and may > radius:
        raise InvalidValue("may", f"at most must, {radius!r}", show(may))
    return Move(rule, radius, may, moved.shared, ticks)


def hysteresis_of(crossed: Crossed, scope: Scope) -> Hysteresis:
    """What `crossed` asks for, with these variables; InvalidValue if a threshold is none."""
    threshold = _number(crossed.threshold, scope, "above" if crossed.above else "below")
    clear = _number(crossed.clear, scope, "clear")
    if clear > threshold if crossed.above else clear < threshold:
        raise InvalidValue("clear", f"on the near side of {threshold!r}", show(clear))
    return Hysteresis(threshold, clear, crossed.above)


def _number(expression: Expression, scope: Scope, where: str) -> int | float:
    found = expression.evaluate(scope)
    value = found if isinstance(found, int | float) else None
    number = number_of(value)
    if number is None:
        raise InvalidValue(where, "a finite number", f"{expression} = {show(found)}")
    return number
