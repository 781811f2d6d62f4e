"""What is a variable to a neighbour? [PARAM §5, broker variables]

Every constant of a filter is: the neighbour knows it by its place, its *slot*, and by nothing that
the subscriber calls it. A filter is then a shape and the values in its slots, and one that differs
in values alone is told by them alone. An expression over the subscriber's variables is one value
here, folded where the subscriber is [PARAM §7.3].

    >>> from driftline.language.sql import parse
    >>> (one,) = parse("SELECT * FROM q WHERE firm = 'IBM' AND price < 10 AND x + 1 < y").filters()
    >>> shape, values = opened(one)
    >>> print(shape, values)
    q: firm = :0 AND price < :1 AND x + :2 < y ('IBM', 10, 1)
    >>> print(closed(shape, ("IBM", 9, 1)))
    q: firm = 'IBM' AND price < 9 AND x + 1 < y
"""

from __future__ import annotations

from typing import TypeAlias

from driftline.model.constraint import Constraint
from driftline.model.expression import Call, Expression, Literal, Parameter
from driftline.model.filter import Filter
from driftline.model.remember import remembered
from driftline.model.value import Value

Values: TypeAlias = tuple[Value, ...]


@remembered
def opened(one: Filter) -> tuple[Filter, Values]:
    """The shape of a filter, with a parameter for each constant, and the constants."""
    values: list[Value] = []
    shape = Filter(
        one.type,
        tuple(_constraint(part, values) for part in one.constraints),
        tuple(_expression(part, values) for part in one.conditions),
    )
    found = tuple(values)
    # Where a constant means more than its value (a condition that folds away), it is no slot.
    return (shape, found) if values and closed(shape, found) == one else (one, ())


def closed(shape: Filter, values: Values) -> Filter:
    """The filter of a shape with these values: the inverse of `opened`."""
    return shape.bound(bounds(values))


def bounds(values: Values) -> dict[str, Value]:
    """The values by the names that the shape has for them."""
    return {str(slot): value for slot, value in enumerate(values)}


def _constraint(part: Constraint, values: list[Value]) -> Constraint:
    operand = part.operand
    if isinstance(operand, tuple):
        return Constraint(
            part.attribute, part.operator, tuple(_expression(item, values) for item in operand)
        )
    if isinstance(operand, Expression):
        return Constraint(part.attribute, part.operator, _expression(operand, values))
    return part


def _names(node: Expression, child: Expression) -> bool:
    return isinstance(node, Call) and isinstance(child, Literal) and isinstance(child.value, str)


def _expression(node: Expression, values: list[Value]) -> Expression:
    if isinstance(node, Literal):
        if node.value is None or node.value != node.value:
            return node
        values.append(node.value)
        return Parameter(str(len(values) - 1))
    children = node.children()
    if not children:
        return node
    # A text that a function is given (a time zone) says what it does, and stays.
    inner = tuple(
        child if _names(node, child) else _expression(child, values) for child in children
    )
    changed = any(new is not old for new, old in zip(inner, children, strict=True))
    return node.rebuilt(inner) if changed else node
