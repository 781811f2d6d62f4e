"""Which filter lets everything pass that a moving one might, wherever its variables are by then?

Each variable lies in a range. A bound then lies between two numbers, of which the wider is taken;
what cannot be said of all of the range is left out. So a filter is widened, never narrowed: the
network may bring too much, and whoever knows the variables looks again.

    >>> from driftline.language.sql import parse
    >>> (one,) = parse("SELECT * WHERE price < :p * 2 AND size = :s").filters()
    >>> str(widened(one, {"p": (4, 5), "s": (1, 1)}))
    'price < 10.000000000000002 AND size = 1'
    >>> str(widened(one, {"p": (4, 4), "s": (1, 3)}))
    'price < 8 AND size >= 0.9999999999999999 AND size <= 3.0000000000000004'
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from driftline.model.constraint import Constraint, Operator
from driftline.model.expression import Arithmetic, Expression, Literal, Negate, Parameter
from driftline.model.filter import Filter
from driftline.model.scope import NO_EVENT
from driftline.model.value import Value, identity
from driftline.model.variables import variables_of

Number: TypeAlias = int | float
Range: TypeAlias = tuple[Value, Value]
"""From the smallest to the largest value of a variable; of what is no number both are the same."""

_FROM = {Operator.GT: Operator.GT, Operator.GE: Operator.GE, Operator.EQ: Operator.GE}
_TO = {Operator.LT: Operator.LT, Operator.LE: Operator.LE, Operator.EQ: Operator.LE}


def widened(one: Filter, ranges: Mapping[str, Range]) -> Filter:
    """A filter that takes in the given one for all values of its parameters within the ranges."""
    fixed = {name: low for name, (low, high) in ranges.items() if identity(low) == identity(high)}
    moving = {name: range for name, range in ranges.items() if name not in fixed}
    bound = one.bound(fixed)
    if not moving:
        return bound
    return Filter(
        bound.type,
        tuple(part for given in bound.constraints for part in _widened(given, moving)),
        tuple(part for part in bound.conditions if not variables_of(part).parameters & set(moving)),
    )


def _widened(given: Constraint, ranges: Mapping[str, Range]) -> Iterator[Constraint]:
    if not given.variables().parameters & set(ranges):
        yield given
        return
    if not isinstance(given.operand, Expression):
        return
    span = span_of(given.operand, ranges)
    if span is None:
        return
    low, high = span
    for operators, end in ((_FROM, low), (_TO, high)):
        if given.operator in operators:
            yield Constraint(given.attribute, operators[given.operator], Literal(end))


def span_of(expression: Expression, ranges: Mapping[str, Range]) -> tuple[Number, Number] | None:
    """Between which numbers an expression lies; None: nobody can say."""
    span = _span(expression, ranges)
    if span is None or not all(map(math.isfinite, span)):
        return None
    # Outwards: integers and floats are rounded differently on the way.
    return math.nextafter(span[0], -math.inf), math.nextafter(span[1], math.inf)


def _span(expression: Expression, ranges: Mapping[str, Range]) -> tuple[Number, Number] | None:
    if isinstance(expression, Literal):
        return _numbers(expression.value, expression.value)
    if isinstance(expression, Parameter):
        return _numbers(*ranges[expression.name]) if expression.name in ranges else None
    if isinstance(expression, Negate):
        inner = _span(expression.operand, ranges)
        return None if inner is None else (-inner[1], -inner[0])
    if isinstance(expression, Arithmetic):
        left, right = _span(expression.left, ranges), _span(expression.right, ranges)
        if left is None or right is None:
            return None
        if expression.operator == "/" and right[0] <= 0 <= right[1]:
            return None
        # Each operation is monotone in either operand, so its extremes are at the corners.
        corners = [
            Arithmetic(expression.operator, Literal(a), Literal(b)).evaluate(NO_EVENT)
            for a in left
            for b in right
        ]
        numbers = [one for one in corners if isinstance(one, int | float)]
        return (min(numbers), max(numbers)) if len(numbers) == len(corners) else None
    return None


def _numbers(low: Value | None, high: Value | None) -> tuple[Number, Number] | None:
    if isinstance(low, bool) or isinstance(high, bool):
        return None
    if isinstance(low, int | float) and isinstance(high, int | float):
        return low, high
    return None
