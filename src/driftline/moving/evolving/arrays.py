"""What is an expression worth for many rows at once, and how far may that be off?

The definition computes with integers that are exact and floats in one order; arrays compute with
floats in another. So every value comes with a bound on its error, carried along as it arises. Who
compares such a value knows when the comparison is sure, and asks the definition where it is not.

    >>> from driftline.language.sql import parse
    >>> (bound,) = parse("SELECT * WHERE x < :a * 2 + :b").filters()[0].constraints
    >>> values, errors = evaluate(bound.operand, {"a": exactly([1, 2]), "b": exactly([0.1, 0.2])})
    >>> values.tolist(), bool((errors < 1e-14).all())
    ([2.1, 4.2], True)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from driftline.model.expression import (
    Arithmetic,
    Attribute,
    Call,
    Elapsed,
    Expression,
    Literal,
    Negate,
    Parameter,
)
from driftline.model.variables import walk

Floats: TypeAlias = NDArray[np.float64]
Known: TypeAlias = tuple[Floats, Floats]
"""Values, and bounds on their errors; of one or of many."""

# Twice what one rounding may change, so that the errors' own roundings are paid for too.
_ROUNDING = 2.0**-51
# Beyond it an integer may overflow, which makes it unknown.
_INTEGERS = 2.0**62
_LEAVES_MAX = 16
_LEAST, _MOST = 1e-15, 1e15
_FUNCTIONS = ("abs", "sqrt", "min", "max")
ELAPSED = "\nelapsed"
ATTRIBUTE = "\n."
"""What elapsed time is known by, and what stands before an attribute; no parameter is so named."""


def supported(node: Expression) -> bool:
    """Can it be evaluated for many at once, without a step on the way that goes out of bounds?"""
    nodes = list(walk(node))
    return sum(not one.children() for one in nodes) <= _LEAVES_MAX and all(map(_supported, nodes))


def _supported(node: Expression) -> bool:
    if isinstance(node, Literal):
        return tame(node.value)
    if isinstance(node, Arithmetic) and node.operator == "/":
        return not node.right.children()
    if isinstance(node, Call):
        return node.function in _FUNCTIONS
    return isinstance(node, Parameter | Attribute | Elapsed | Arithmetic | Negate)


def tame(value: object) -> bool:
    """Is it a number that can be multiplied a few times without leaving what floats can hold?"""
    if type(value) is not int and type(value) is not float:
        return False
    return value == 0 or _LEAST <= abs(value) <= _MOST


def exactly(values: ArrayLike) -> Known:
    """Values as they are; an integer that no float is equal to is off by its rounding."""
    floats = np.asarray(values, np.float64)
    return floats, np.where(np.abs(floats) > 2.0**53, np.abs(floats) * _ROUNDING, 0.0)


def evaluate(node: Expression, known: Mapping[str, Known]) -> Known:
    """The values of a `supported` expression; an error that is not finite says nothing is known.

    Known are parameters by their names, and what `ELAPSED` and `ATTRIBUTE` say.
    """
    with np.errstate(all="ignore"):
        return _evaluate(node, known)


def _evaluate(node: Expression, known: Mapping[str, Known]) -> Known:
    if isinstance(node, Literal):
        return exactly(node.value)  # type: ignore[arg-type]  # a number, as `supported` says
    if isinstance(node, Parameter):
        return known[node.name]
    if isinstance(node, Attribute):
        return known[ATTRIBUTE + node.name]
    if isinstance(node, Elapsed):
        return known[ELAPSED]
    if isinstance(node, Negate):
        value, error = _evaluate(node.operand, known)
        return -value, error
    if isinstance(node, Arithmetic):
        left, right = _evaluate(node.left, known), _evaluate(node.right, known)
        return _settled(*_OPERATIONS[node.operator](*left, *right))
    assert isinstance(node, Call)
    arguments = [_evaluate(one, known) for one in node.arguments]
    if node.function == "abs":
        return np.abs(arguments[0][0]), arguments[0][1]
    if node.function == "sqrt":
        return _square_root(*arguments[0])
    chosen = np.minimum if node.function == "min" else np.maximum
    values, errors = arguments[0]
    for value, error in arguments[1:]:
        values, errors = chosen(values, value), np.maximum(errors, error)
    return values, errors


def _sum(a: Floats, ea: Floats, b: Floats, eb: Floats) -> Known:
    return a + b, ea + eb


def _difference(a: Floats, ea: Floats, b: Floats, eb: Floats) -> Known:
    return a - b, ea + eb


def _product(a: Floats, ea: Floats, b: Floats, eb: Floats) -> Known:
    return a * b, np.abs(a) * eb + np.abs(b) * ea + ea * eb


def _quotient(a: Floats, ea: Floats, b: Floats, eb: Floats) -> Known:
    value, least = a / b, np.abs(b) - eb
    # A divisor that may be zero leaves nothing known.
    return value, np.where(least > 0, (ea + np.abs(value) * eb) / least, np.inf)


_OPERATIONS = {"+": _sum, "-": _difference, "*": _product, "/": _quotient}


def _settled(value: Floats, error: Floats) -> Known:
    """With the rounding of the last operation; what may overflow is not known."""
    # The smallest float beside it: a product may vanish below what floats can hold.
    error = error + np.abs(value) * _ROUNDING + np.finfo(np.float64).tiny
    return value, np.where(np.abs(value) < _INTEGERS, error, np.inf)


def _square_root(value: Floats, error: Floats) -> Known:
    least = value - error
    root = np.sqrt(np.maximum(value, 0.0))
    return root, np.where(least > 0, error / np.sqrt(least) + root * _ROUNDING, np.inf)
