"""Which of many moving bounds does an event satisfy at an instant?

A row is one subscription: a start, and `tests` polynomials of the time since then. Test j asks if
the attribute `x[j]` is on the right side of its polynomial: at or above it (side 1), or at or below
(side -1). What is nearer to it than `margin[j]`, where rounding may decide, or is no number, is in
doubt; whoever asks looks at those by the definition.

    coefficients   row after row, test after test, constant first: one or two cache lines a row
    at             the instant, in microseconds, as `starts` are
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from driftline.kernels.jit import inlined, jit

YES, DOUBT = 1, 2

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Marks = NDArray[np.int8]


@inlined
def _seconds(at: int, start: int) -> float:
    """The time since the start, never below 0."""
    return (at - start) * 1e-6 if at > start else 0.0


@inlined
def _value(c: Floats, i: int, first: int, degree: int, t: float) -> float:
    if degree == 1:  # as nearly all
        return c[i, first + 1] * t + c[i, first]
    value = c[i, first + degree]
    for k in range(degree - 1, -1, -1):
        value = value * t + c[i, first + k]
    return value


@inlined
def _row(c: Floats, i: int, degree: int, x: Floats, sides: Floats, margin: Floats, t: float) -> int:
    """Are all bounds of a row kept? It is left after an even number of bounds, if one has failed.

    Which of two fails first is up to chance, and a branch that is guessed wrongly costs more than
    looking at both. That an attribute is not between two bounds is nearly always so.
    """
    failed, doubted = False, False
    for j in range(len(x)):
        above = (x[j] - _value(c, i, j * (degree + 1), degree, t)) * sides[j]
        failed |= above < -margin[j]
        doubted |= not (above > margin[j])
        if failed and j & 1:
            return 0
    if failed:
        return 0
    return 2 if doubted else 1


@jit
def look(
    c: Floats,
    starts: Ints,
    rows: int,
    degree: int,
    at: int,
    x: Floats,
    sides: Floats,
    margin: Floats,
    first: int,
    found: Ints,
    marks: Marks,
) -> int:
    """Write the rows that are satisfied or in doubt, with their marks; how many there are.

    With `first`, stop at one that is satisfied.
    """
    count = 0
    for i in range(rows):
        state = _row(c, i, degree, x, sides, margin, _seconds(at, starts[i]))
        if state != 0:
            found[count] = i
            marks[count] = state
            count += 1
            if first != 0 and state == 1:
                return count
    return count


@jit
def look_some(
    c: Floats,
    starts: Ints,
    some: Ints,
    degree: int,
    at: int,
    x: Floats,
    sides: Floats,
    margin: Floats,
    found: Ints,
    marks: Marks,
) -> int:
    """Like `look`, for these rows only."""
    count = 0
    for i in some:
        state = _row(c, i, degree, x, sides, margin, _seconds(at, starts[i]))
        if state != 0:
            found[count] = i
            marks[count] = state
            count += 1
    return count


@inlined
def _extreme(c: Floats, i: int, first: int, degree: int, side: float, t: float, u: float) -> float:
    """The least (side 1) or most a polynomial can be from t to u, both at least 0; or beyond."""
    value = 0.0
    early, late = 1.0, 1.0
    for k in range(degree + 1):
        a = c[i, first + k]
        value += a * (early if a * side >= 0 else late)
        early *= t
        late *= u
    return value


@inlined
def _widen(
    c: Floats,
    i: int,
    degree: int,
    sides: Floats,
    margin: Floats,
    t: float,
    u: float,
    bounds: Floats,
) -> None:
    """Write the bounds of a row that are wide enough from t to u."""
    for j in range(len(sides)):
        extreme = _extreme(c, i, j * (degree + 1), degree, sides[j], t, u)
        bounds[i, j] = extreme - sides[j] * 2.0 * margin[j]


@jit
def widen(
    c: Floats,
    starts: Ints,
    some: Ints,
    degree: int,
    since: int,
    until: int,
    sides: Floats,
    margin: Floats,
    bounds: Floats,
) -> None:
    """Write for these rows the bounds that are wide enough from one instant to another."""
    for i in some:
        t, u = _seconds(since, starts[i]), _seconds(until, starts[i])
        _widen(c, i, degree, sides, margin, t, u, bounds)


@jit
def look_cached(
    c: Floats,
    starts: Ints,
    rows: int,
    degree: int,
    at: int,
    x: Floats,
    sides: Floats,
    margin: Floats,
    length: int,
    bounds: Floats,
    since: Ints,
    found: Ints,
    marks: Marks,
) -> int:
    """Like `look`, but only at rows whose wide bounds hold; those are kept for so long."""
    count = 0
    for i in range(rows):
        if at < since[i] or at >= since[i] + length:
            since[i] = at
            t, u = _seconds(at, starts[i]), _seconds(at + length, starts[i])
            _widen(c, i, degree, sides, margin, t, u, bounds)
        far = False
        for j in range(len(sides)):
            # Written so that what is no number is near.
            far |= (x[j] - bounds[i, j]) * sides[j] < 0.0
            if far and j & 1:
                break
        if not far:
            state = _row(c, i, degree, x, sides, margin, _seconds(at, starts[i]))
            if state != 0:
                found[count] = i
                marks[count] = state
                count += 1
    return count
