"""When will a row that stands still enter or leave an area that moves?

If nothing but time changes, the truth of a condition can change only where one of its comparisons
does: at a root of a polynomial. So the next change is computed, not waited for by looking again and
again. Roots are floats; the exact microsecond is then found by asking the definition around them.

    >>> from driftline.language.sql import parse
    >>> from driftline.model.event import Event
    >>> near = Standing.of(parse("SELECT * WHERE x BETWEEN elapsed() - 3 AND elapsed() + 3"))
    >>> apple = Event("seen", {"x": 4})
    >>> next_change(near, apple, {}, 0), next_change(near, apple, {}, 1_000_000)
    (1000000, 7000001)
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from driftline.model.constraint import ORDERINGS, Operator
from driftline.model.event import LATEST_US, Event
from driftline.model.expression import (
    Arithmetic,
    Attribute,
    Environment,
    Expression,
    Literal,
    Parameter,
)
from driftline.model.filter import Filter
from driftline.model.predicate import Comparison
from driftline.model.scope import NO_EVENT, Scope
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.model.variables import variables_of
from driftline.moving.evolving.motion import motion_of
from driftline.moving.evolving.started import replaced

_COMPARED = (*ORDERINGS, Operator.EQ, Operator.NE)
# A root may be off by a little: so many microseconds around it are looked at one by one.
_AROUND = 3
# Beyond the last root, farther than it can be off.
_AFTER = 2e6
# The real part of two roots that nearly meet is where the polynomial comes nearest to zero.
_NEARLY_REAL = 1e-4
# The end of time, in seconds, and what is nothing beside 1.
_END = LATEST_US / 1e6
_NOTHING = 1e-30


def followed(statement: Subscription) -> str | None:
    """Why it cannot be said when time changes its truth; None if it can."""
    for one in statement.filters():
        for part in _timed(one):
            if _difference(part) is None:
                return f"{part} does not move by a polynomial of elapsed()"
    return None


def next_change(standing: Standing, row: Event, env: Mapping[str, Value], now: int) -> int | None:
    """The first microsecond after `now` at which a row begins or ceases to satisfy it."""
    assert isinstance(standing.statement, Subscription)
    statement = standing.statement

    def holds(at: int) -> bool:
        return statement.truth(standing.scope(row, env, at)) is True

    scope = standing.scope(row, env, now)
    roots = sorted(
        standing.start_us + root * 1e6
        for one in statement.filters()
        for part in _timed(one)
        for root in _roots(part, scope)
    )
    times = sorted({at for at in _looked_at(roots) if now < at <= LATEST_US})
    truth = holds(now)
    before = now
    for at in times:
        if holds(at) is not truth:
            since = range(before + 1, at + 1)
            return since[bisect_left(since, True, key=lambda time: holds(time) is not truth)]
        before = at
    return None


def _timed(one: Filter) -> Iterator[Expression]:
    """What a filter asks that changes as time passes."""
    for constraint in one.constraints:
        variables = constraint.variables()
        if variables.elapsed or variables.now:
            yield constraint.condition()
    for condition in one.conditions:
        variables = variables_of(condition)
        if variables.elapsed or variables.now:
            yield condition


def _difference(part: Expression) -> tuple[Expression, ...] | None:
    """The polynomial that is zero where a comparison may change; None if there is none."""
    if not isinstance(part, Comparison) or variables_of(part).now:
        return None
    return motion_of(Arithmetic("-", part.left, part.right))


def _roots(part: Expression, scope: Scope) -> list[float]:
    """The seconds since the start at which a comparison may change, for one row."""
    motion = _difference(part)
    if motion is None:
        return []

    def known(node: Expression) -> Expression:
        if isinstance(node, Attribute | Parameter | Environment):
            value = node.evaluate(scope)
            # As a float: the difference of two integers may be none of 64 bits.
            number = type(value) is int or type(value) is float
            return Literal(float(value) if number else None)  # type: ignore[arg-type]  # a number
        return node

    values = [replaced(one, known).evaluate(NO_EVENT) for one in motion]
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        return []
    found = _roots_of([float(value) for value in values])  # type: ignore[arg-type]  # numbers
    near = np.abs(found.imag) <= _NEARLY_REAL * (1 + np.abs(found.real))
    # One that is near the start may come out before it.
    return [max(0.0, float(root)) for root in found.real[near] if -1 <= root <= _END]


def _roots_of(coefficients: list[float]) -> NDArray[np.complex128]:
    """The roots of a polynomial, constant first, as far as time goes, and of its derivatives.

    Where several roots meet they come out far off, but one of a derivative does not.
    A term that is nothing beside another one at the end of time never is anything, and is left out:
    dividing by it would lead beyond what floats can hold.
    """
    most = max(map(abs, coefficients)) or 1.0
    parts = [value / most for value in coefficients]
    late = [abs(part) * _END**power for power, part in enumerate(parts)]
    while parts and late[len(parts) - 1] <= max(late) * _NOTHING:
        parts.pop()
    found: list[NDArray[np.complex128]] = [np.zeros(0, np.complex128)]
    while len(parts) > 1:
        found.append(np.roots(parts[::-1]).astype(np.complex128))
        parts = [power * part for power, part in enumerate(parts)][1:]
    return np.concatenate(found)


def _looked_at(roots: list[float]) -> Iterator[int]:
    """The instants at which the truth is asked for: around roots, between them, and after all."""
    for root in roots:
        middle = math.floor(root)
        yield from range(middle - _AROUND, middle + _AROUND + 1)
    for root, after in pairwise([*roots, *(root + _AFTER for root in roots[-1:])]):
        yield math.floor((root + after) / 2)
