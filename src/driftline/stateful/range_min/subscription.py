"""Which messages tell a MIN or MAX view that it changed? [DBNET §2.4.1]

    SELECT MIN(per) FROM stock WHERE sector = 'tech' AND risk BETWEEN :low AND :high

    FROM "$min:stock.per/risk/sector" WHERE EQUAL_sector = 'tech'
        AND INNER_L >= :low AND OUTER_L < :low AND INNER_R <= :high AND OUTER_R > :high

A range may lack either end or both, an end may not belong to it, and equalities may stand beside
it: the home keeps a structure for each combination of their values. Parameters stay parameters.
What is no such view (two ranges, a disjunction, several columns) is `None` here, and
`stateful.range_sum` takes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from driftline.model.constraint import ORDERINGS, Constraint, Operator
from driftline.model.expression import Attribute, Expression, Literal
from driftline.model.filter import filters_of
from driftline.model.predicate import Comparison, conjunction
from driftline.model.remember import remembered
from driftline.model.scope import Scope
from driftline.model.subscription import Subscription
from driftline.model.text import identifier
from driftline.model.value import KIND_OF, Kind, Value
from driftline.model.variables import variables_of
from driftline.model.view import Aggregate, AggregateFunction, View
from driftline.stateful.range_min.change import HIGHEST, LOWEST

NEW_MIN = "NEW_MIN"
INNER_L, INNER_R, OUTER_L, OUTER_R = ENDS = ("INNER_L", "INNER_R", "OUTER_L", "OUTER_R")
EQUAL = "EQUAL_"
AGAIN = "AGAIN"
"""There is a new value, which the message cannot say: it is to be asked for."""

_TYPES = {AggregateFunction.MIN: "$min:", AggregateFunction.MAX: "$max:"}


@dataclass(frozen=True, slots=True)
class Shape:
    """What views have in common that share their messages."""

    table: str
    function: AggregateFunction
    y: str
    x: str | None
    equal: tuple[str, ...]

    @property
    def type(self) -> str:
        """The type of the messages.

        >>> Shape("stock", AggregateFunction.MIN, "per", "risk", ("sector",)).type
        '$min:stock.per/risk/sector'
        """
        over = "" if self.x is None else identifier(self.x)
        parts = (str(Attribute(self.y, self.table)), over, *map(identifier, self.equal))
        return _TYPES[self.function] + "/".join(parts)


@dataclass(frozen=True, slots=True)
class RangeView:
    """A MIN or MAX view, taken apart."""

    shape: Shape
    name: str
    """The column's, as it is told."""
    lower: Constraint | None
    upper: Constraint | None
    equal: tuple[Constraint, ...]
    """One for each of the shape's, in that order."""
    interest: Subscription = field(init=False, compare=False, repr=False)
    """The subscription to the messages that change it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "interest", self._interest())

    def _interest(self) -> Subscription:
        parts = [_on(EQUAL + one.attribute, "=", one.operand) for one in self.equal]
        if self.shape.x is not None:
            parts += _end(self.lower, INNER_L, OUTER_L, ">", "<", LOWEST)
            parts += _end(self.upper, INNER_R, OUTER_R, "<", ">", HIGHEST)
        return Subscription(source=self.shape.type, where=conjunction(tuple(parts)))

    def range(self, params: Mapping[str, Value]) -> tuple[float, float]:
        """The closed range of floats that it asks for; the lower end may be above the upper."""
        return (
            _closed(self.lower, params, Operator.GT, math.inf, -math.inf),
            _closed(self.upper, params, Operator.LT, -math.inf, math.inf),
        )


def range_view(view: View, params: Mapping[str, Value]) -> RangeView | None:
    """Take a view apart, with parameters that its bounds are numbers by; None if it is no such."""
    parts = _apart(view)
    if parts is None:
        return None
    bounds = (bound for bound in (parts.lower, parts.upper) if bound is not None)
    return parts if all(_number(bound, params) for bound in bounds) else None


@remembered
def _apart(view: View) -> RangeView | None:
    if view.distinct or view.join is not None or len(view.columns) != 1:
        return None
    (column,) = view.columns
    aggregate = column.expression
    if not isinstance(aggregate, Aggregate) or aggregate.function not in _TYPES:
        return None
    filters = filters_of(None, view.where)
    if aggregate.argument is None or len(filters) != 1 or filters[0].conditions:
        return None
    equal: dict[str, Constraint] = {}
    ends: dict[Operator, Constraint] = {}
    over: set[str] = set()
    for one in filters[0].constraints:
        if one.operator is Operator.EQ and one.attribute not in equal and _still(one):
            equal[one.attribute] = one
        elif one.operator in ORDERINGS and _still(one):
            side = Operator.GE if one.operator in (Operator.GE, Operator.GT) else Operator.LE
            if side in ends:
                return None
            ends[side] = one
            over.add(one.attribute)
        else:
            return None
    if len(over) > 1 or over & equal.keys():
        return None
    names = tuple(sorted(equal))
    shape = Shape(
        view.source, aggregate.function, aggregate.argument.name, next(iter(over), None), names
    )
    return RangeView(
        shape,
        column.name,
        ends.get(Operator.GE),
        ends.get(Operator.LE),
        tuple(equal[name] for name in names),
    )


def _still(one: Constraint) -> bool:
    """Does it move with parameters alone?"""
    return isinstance(one.operand, Expression) and not variables_of(one.operand).evolving


def _number(one: Constraint, params: Mapping[str, Value]) -> bool:
    """Is the bound a number? An infinite one would be no less than an outer end."""
    assert isinstance(one.operand, Expression)
    value = one.operand.evaluate(Scope(params=params))
    return KIND_OF.get(type(value)) is Kind.NUMBER and math.isfinite(value)  # type: ignore[arg-type]


def _on(attribute: str, sign: str, operand: object) -> Expression:
    assert isinstance(operand, Expression)
    return Comparison(sign, Attribute(attribute), operand)


def _end(
    bound: Constraint | None, inner: str, outer: str, within: str, beyond: str, farthest: float
) -> list[Expression]:
    """The inner end must lie within the bound, the outer one beyond it."""
    if bound is None:
        return [_on(outer, beyond, Literal(farthest))]
    if bound.operator.value == within:
        return [_on(inner, within, bound.operand), _on(outer, beyond + "=", bound.operand)]
    return [_on(inner, within + "=", bound.operand), _on(outer, beyond, bound.operand)]


def _closed(
    bound: Constraint | None,
    params: Mapping[str, Value],
    strict: Operator,
    inwards: float,
    farthest: float,
) -> float:
    """A bound as the first float that belongs to the range."""
    if bound is None:
        return farthest
    assert isinstance(bound.operand, Expression)
    exact = bound.operand.evaluate(Scope(params=params))
    assert isinstance(exact, int | float)
    near = float(exact)
    outside = near < exact if inwards > 0 else near > exact
    if outside or (near == exact and bound.operator is strict):
        return math.nextafter(near, inwards)
    return near
