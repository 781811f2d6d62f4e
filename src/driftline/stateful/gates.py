"""When is a view with HAVING told? `moved` and `crossed` over one of its aggregates.

A value that becomes NULL or is no number, or ceases to be, has moved, however little. Radii and
values are compared exactly, as fractions. A radius that has no value, or is not above 0, lets every
difference through rather than none.
"""

from __future__ import annotations

from fractions import Fraction

from driftline.errors import NotSupported
from driftline.model.expression import Expression
from driftline.model.scope import Scope
from driftline.model.standing import Standing
from driftline.model.subscription import Crossed, Measure, Moved
from driftline.model.value import Value
from driftline.model.view import View
from driftline.stateful.news import WHEN_DIFFERENT, Gate, Values, value_key


def check_gate(view: View) -> None:
    """Refuse what cannot be honoured: a radius that moves by itself, a centre that is shared."""
    having = view.having
    if having is None:
        return
    if having.variables().evolving:
        why = "a view follows changes of rows, so now(), elapsed() and env() have no place in it"
        raise NotSupported(str(having), why)
    if isinstance(having, Moved) and having.shared:
        raise NotSupported(str(having), "a view has its own last value, which nobody shares")


def gate_of(standing: Standing) -> Gate:
    """The gate of a view as it stands."""
    view = standing.statement
    assert isinstance(view, View)
    if view.having is None:
        return WHEN_DIFFERENT
    names = {str(column.expression): column.name for column in view.columns}
    name, scope = names[str(view.having.value)], Scope(params=standing.params)
    if isinstance(view.having, Moved):
        may = view.having.may
        radius = _number(view.having.radius if may is None else may, scope)
        return MovedGate(name, view.having.measure, radius, strict=view.having.strict)
    return CrossedGate(name, view.having, scope)


class MovedGate:
    """Told when a value is at least so far from the one last told.

    With may and must it is told at may, which both allow.
    """

    __slots__ = ("_measure", "_name", "_radius", "_strict")

    def __init__(
        self, name: str, measure: Measure, radius: Fraction | None, *, strict: bool
    ) -> None:
        self._name = name
        self._measure = measure
        self._radius = radius
        self._strict = strict

    def tells(self, told: Values, now: Values) -> bool:
        """Has it moved from the value that was told?"""
        if value_key(told[self._name]) == value_key(now[self._name]):
            return False
        before, after = _fraction(told[self._name]), _fraction(now[self._name])
        if before is None or after is None or self._radius is None:
            return True  # There is no distance between them.
        if self._measure is Measure.FACTOR:
            return self._by_factor(before, after, self._radius)
        far = self._radius
        if self._measure is Measure.PERCENT:
            far *= abs(before) / 100
        return self._beyond(abs(after - before), far)

    def succeed(self, before: Gate) -> None:
        """See `Gate`: what was told is all there is to know."""

    def _by_factor(self, before: Fraction, after: Fraction, factor: Fraction) -> bool:
        if before <= 0 or after <= 0:
            return True  # There is no factor between them.
        return self._beyond(max(after / before, before / after), factor)

    def _beyond(self, distance: Fraction, far: Fraction) -> bool:
        return distance > far if self._strict else distance >= far


class CrossedGate:
    """Told when a value has come to a threshold, and again only after it was clear of it."""

    __slots__ = ("_above", "_armed", "_clear", "_name", "_threshold")

    def __init__(self, name: str, having: Crossed, scope: Scope) -> None:
        self._name = name
        self._above = having.above
        self._threshold = _number(having.threshold, scope)
        self._clear = _number(having.clear, scope)
        self._armed: bool | None = None

    def tells(self, told: Values, now: Values) -> bool:
        """Has it crossed since it was last clear?"""
        if self._armed is None:
            # What the snapshot told stands on one side: from the far one it must come back first.
            self._armed = not self._reached(_fraction(told[self._name]), self._threshold)
        value = _fraction(now[self._name])
        if self._armed and self._reached(value, self._threshold):
            self._armed = False
            return True
        self._armed = self._armed or not self._reached(value, self._clear, strict=True)
        return False

    def succeed(self, before: Gate) -> None:
        """See `Gate`: whether it was clear since."""
        if isinstance(before, CrossedGate):
            self._armed = before._armed

    def _reached(
        self, value: Fraction | None, bound: Fraction | None, *, strict: bool = False
    ) -> bool:
        if value is None or bound is None:
            return False
        beyond = value > bound if self._above else value < bound
        return beyond or (value == bound and not strict)


def _number(bound: Expression, scope: Scope) -> Fraction | None:
    value = bound.evaluate(scope)
    return _fraction(value) if isinstance(value, int | float) else None


def _fraction(value: Value | None) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Fraction(value)
