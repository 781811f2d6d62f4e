"""What does a subscription weigh, beyond a plain filter that an index finds?

Parts of conditions that no index answers are judged one by one for each event of the type, columns
that are computed are so for each event that is told, and of very many alternatives, comparisons,
columns or values in lists each is kept by itself; so is each constraint of an advertisement. Who
asks for much of that lets all others wait, so there is a limit.

    >>> from driftline.language.sql import parse
    >>> def weight(text: str, **params: float) -> int:
    ...     return weight_of(Standing.of(parse(text), params))
    >>> weight("SELECT * FROM quote WHERE firm = 'IBM' AND price < :limit", limit=9.5)
    0
    >>> weight("SELECT * FROM quote WHERE moved(price, by => :radius)", radius=2)
    0
    >>> weight("SELECT * FROM quote WHERE price * volume > 10000")
    5

It is a measure, not a price: what is weighed as nothing may be judged too, once in a while.
"""

from __future__ import annotations

from collections.abc import Iterable

from driftline.model.advertisement import Advertisement
from driftline.model.constraint import ORDERINGS, Constraint, Operator
from driftline.model.covering import Statement
from driftline.model.expression import Expression, Literal, Parameter
from driftline.model.filter import Filter
from driftline.model.pattern import Pattern
from driftline.model.remember import remembered
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Value
from driftline.model.variables import walk
from driftline.model.view import Aggregate, View

JUDGED = 4
"""To have the definition decide at all weighs as much."""
_LIKE = 16
"""A pattern that is more than a beginning, an end or a part: it is searched for."""
_KEPT = 16
"""So many comparisons, columns, values of lists or constraints of an advertisement weigh as much as
one part that is judged."""
_TEXT, _NUMBER = 7, 1 << 53
"""Longer texts and greater numbers are found by an index, if compared by order, not exactly."""
_BY_ORDER = (*ORDERINGS, Operator.NE)


def weight_of(standing: Standing) -> int:
    """The parts that are judged one by one, and what takes as much."""
    ordered = (standing.params[name] for name in _ordered(standing.statement))
    return _weight_of(standing.statement) + sum(JUDGED for one in ordered if _is_long(one))


def weight_of_advertisement(says: Advertisement | None) -> int:
    """Its constraints, as many as they are, and those that take long to be judged."""
    options = () if says is None else [option for _, some in says.attributes for option in some]
    parts = [part for option in options for part in option]
    return len(parts) // _KEPT + sum(map(_of_constraint, parts))


def prepare_weight(statement: Statement) -> None:
    """Work out what is the same whatever its parameters are."""
    _weight_of(statement)
    _ordered(statement)


@remembered
def _weight_of(statement: Statement) -> int:
    if isinstance(statement, Pattern):
        return sum(map(_weight_of, statement.steps))
    if isinstance(statement, View):
        on = () if statement.join is None else (statement.join.on,)
        having = () if statement.having is None else statement.having.parts()
        return _weight_of(statement.condition()) + _computed((*on, *having))
    assert isinstance(statement, Subscription)
    filters = statement.filters()
    change = () if statement.change is None else statement.change.parts()
    columns = [column.expression for column in statement.columns]
    kept = sum(map(_kept, filters)) + len(columns)
    return kept // _KEPT + sum(map(_judged, filters)) + _computed((*columns, *change))


def _judged(one: Filter) -> int:
    return _nodes(one.conditions) + sum(map(_of_constraint, one.constraints))


def _of_constraint(one: Constraint) -> int:
    if one.operator in (Operator.LIKE, Operator.NOT_LIKE):
        return _LIKE
    is_long = isinstance(one.operand, Literal) and _is_long(one.operand.value)
    return JUDGED if is_long and one.operator in _BY_ORDER else 0


def _kept(one: Filter) -> int:
    values = (len(part.operand) for part in one.constraints if isinstance(part.operand, tuple))
    return max(1, len(one.constraints)) + sum(values)


@remembered
def _ordered(statement: Statement) -> frozenset[str]:
    """The parameters that something is compared with by order."""
    if isinstance(statement, Pattern):
        return frozenset().union(*map(_ordered, statement.steps))
    if isinstance(statement, View):
        return _ordered(statement.condition())
    assert isinstance(statement, Subscription)
    return frozenset(
        part.operand.name
        for one in statement.filters()
        for part in one.constraints
        if part.operator in _BY_ORDER and isinstance(part.operand, Parameter)
    )


def _is_long(value: Value | None) -> bool:
    if isinstance(value, str | bytes):
        return len(value) > _TEXT
    return isinstance(value, int | float) and abs(value) >= _NUMBER


def _computed(some: Iterable[Expression]) -> int:
    return _nodes(one for one in some if one.children() and not isinstance(one, Aggregate))


def _nodes(some: Iterable[Expression]) -> int:
    return sum(1 for one in some for _ in walk(one))
