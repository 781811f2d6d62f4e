"""How does a subscription's start travel with it?

`elapsed()` counts from the start of one subscription, which only its own broker knows. What goes to
another broker says the same in terms of what all share, the stamp of the event: `max(now() - start,
0.0)`. There it is read back, so that whoever has many of them finds one shape and many starts.

    >>> from driftline.language.sql import parse
    >>> (one,) = parse("SELECT * WHERE x < 3 + elapsed()").filters()
    >>> said = told(one, 1_000_000)
    >>> print(said)
    x < 3 + max(now() - TIMESTAMP '1970-01-01T00:00:01Z', 0.0)
    >>> heard(said) == (one, 1_000_000)
    True
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from driftline.model.constraint import Constraint
from driftline.model.expression import Arithmetic, Call, Elapsed, Expression, Literal, Now
from driftline.model.filter import Filter
from driftline.model.remember import remembered
from driftline.model.value import microseconds_of, time_of
from driftline.model.variables import variables_of, walk


def told(one: Filter, start_us: int) -> Filter:
    """The filter with its start written out: the same to every broker."""
    if not one.conditions and all(part.constant for part in one.constraints):
        return one  # as nearly all, and a broker that begins anew tells all that it knows
    if not any(variables_of(part).elapsed for part in parts_of(one)):
        return one
    since = _since(time_of(start_us))
    return mapped(one, lambda node: since if isinstance(node, Elapsed) else node)


@remembered
def heard(one: Filter) -> tuple[Filter, int | None]:
    """The filter with `elapsed()` for what was written out, and the start; None if it has none.

    One that says `elapsed()` itself has a start of its own: what it writes out stays as it is.
    """
    parts = parts_of(one)
    starts = {start for part in parts for node in walk(part) if (start := start_of(node))}
    if len(starts) != 1 or any(variables_of(part).elapsed for part in parts):
        return one, None
    (start,) = starts
    read = mapped(one, lambda node: Elapsed() if start_of(node) else node)
    return read, microseconds_of(start)


def start_of(node: Expression) -> datetime | None:
    """The start that is written out in this node, if it is such a one."""
    if not isinstance(node, Call) or node.function != "max" or len(node.arguments) != 2:
        return None
    since, least = node.arguments
    if least != Literal(0.0) or not isinstance(since, Arithmetic) or since.operator != "-":
        return None
    start = since.right
    if since.left != Now() or not isinstance(start, Literal):
        return None
    return start.value if isinstance(start.value, datetime) else None


def _since(start: datetime) -> Expression:
    return Call("max", (Arithmetic("-", Now(), Literal(start)), Literal(0.0)))


def parts_of(one: Filter) -> tuple[Expression, ...]:
    """All that a filter asks, as conditions."""
    return (*(part.condition() for part in one.constraints), *one.conditions)


def mapped(one: Filter, change: Callable[[Expression], Expression]) -> Filter:
    """The filter with every node changed, outermost first; what was changed is left as it is."""
    return Filter(
        one.type,
        tuple(_constraint(part, change) for part in one.constraints),
        tuple(replaced(part, change) for part in one.conditions),
    )


def _constraint(part: Constraint, change: Callable[[Expression], Expression]) -> Constraint:
    operand = part.operand
    if isinstance(operand, tuple):
        items = tuple(replaced(item, change) for item in operand)
        return Constraint(part.attribute, part.operator, items)
    if isinstance(operand, Expression):
        return Constraint(part.attribute, part.operator, replaced(operand, change))
    return part


def replaced(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with every node changed, outermost first."""
    other = change(node)
    if other is not node:
        return other
    children = node.children()
    below = tuple(replaced(child, change) for child in children)
    same = all(new is old for new, old in zip(below, children, strict=True))
    return node if same else node.rebuilt(below)
