"""By which polynomial does a bound move with the time since the start?

`(-3 + :dx * elapsed()) * env('visibility')` is the polynomial `-3 * v + (:dx * v) * t`. Its
coefficients are expressions of their own, in parameters and in what all subscriptions share: they
change when a variable does, not when time passes. So many bounds are evaluated at an instant by a
kernel, and the time when one of them reaches a value is a root.

    >>> from driftline.language.sql import parse
    >>> (bound,) = parse("SELECT * WHERE x > (-3 + :dx * elapsed()) * 0.5").filters()[0].constraints
    >>> [str(one) for one in motion_of(bound.operand)]
    ['-3 * 0.5', ':dx * 0.5']
"""

from __future__ import annotations

from driftline.model.expression import (
    Arithmetic,
    Call,
    Elapsed,
    Expression,
    Literal,
    Negate,
)
from driftline.model.variables import variables_of

DEGREE_MAX = 4
# What is not there. Known by identity: a zero that somebody wrote is multiplied like any number,
# because nothing times what is unknown is unknown.
_ZERO, _ONE = Literal(0), Literal(1)


def motion_of(node: Expression) -> tuple[Expression, ...] | None:
    """The coefficients, constant first; None if it is no polynomial of a small degree."""
    found = _motion(node)
    if found is None:
        return None
    while len(found) > 1 and found[-1] is _ZERO:
        found = found[:-1]
    return tuple(found) if len(found) <= DEGREE_MAX + 1 else None


def sizes_of(node: Expression) -> tuple[Expression, ...] | None:
    """Like `motion_of`, but nothing cancels out: no step on the way to the value is larger.

    The definition may add a large number first and take it away last. What it rounds off between
    is small beside these coefficients, not beside those of the motion.
    """
    return motion_of(_size(node))


def _size(node: Expression) -> Expression:
    if not variables_of(node).elapsed:
        return Call("abs", (node,))
    if isinstance(node, Negate):
        return _size(node.operand)
    if not isinstance(node, Arithmetic):
        return node
    sign = "+" if node.operator == "-" else node.operator
    return Arithmetic(sign, _size(node.left), _size(node.right))


def _motion(node: Expression) -> list[Expression] | None:
    if not variables_of(node).elapsed:
        return [node]
    if isinstance(node, Elapsed):
        return [_ZERO, _ONE]
    if isinstance(node, Negate):
        inner = _motion(node.operand)
        return None if inner is None else [_negated(one) for one in inner]
    if not isinstance(node, Arithmetic):
        return None
    left, right = _motion(node.left), _motion(node.right)
    if left is None or right is None:
        return None
    if node.operator in "+-":
        return _added(left, right, node.operator)
    if node.operator == "*":
        return _multiplied(left, right)
    # A division by something that moves is no polynomial.
    return [_divided(one, right[0]) for one in left] if len(right) == 1 else None


def _added(left: list[Expression], right: list[Expression], sign: str) -> list[Expression]:
    most = max(len(left), len(right))
    pairs = zip(_padded(left, most), _padded(right, most), strict=True)
    return [_sum(a, b, sign) for a, b in pairs]


def _multiplied(left: list[Expression], right: list[Expression]) -> list[Expression]:
    result: list[Expression] = [_ZERO] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            result[i + j] = _sum(result[i + j], _product(a, b), "+")
    return result


def _padded(some: list[Expression], length: int) -> list[Expression]:
    return some + [_ZERO] * (length - len(some))


def _sum(a: Expression, b: Expression, sign: str) -> Expression:
    if b is _ZERO:
        return a
    if a is _ZERO:
        return b if sign == "+" else _negated(b)
    return Arithmetic(sign, a, b)


def _product(a: Expression, b: Expression) -> Expression:
    if a is _ZERO or b is _ZERO:
        return _ZERO
    if a is _ONE:
        return b
    return a if b is _ONE else Arithmetic("*", a, b)


def _divided(a: Expression, b: Expression) -> Expression:
    return a if a is _ZERO else Arithmetic("/", a, b)


def _negated(a: Expression) -> Expression:
    return a if a is _ZERO else Negate(a)
