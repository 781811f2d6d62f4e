"""What is asked of one attribute? [SIENA §3.2]

A constraint names an attribute, an operator and what to compare it with: a constant, or an
expression without attributes (a bound that moves).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from driftline.model.comparison import COMPARISONS
from driftline.model.expression import Attribute, Expression, Literal
from driftline.model.like import LikePattern
from driftline.model.predicate import Comparison, In, IsNull, Like, Not
from driftline.model.scope import Scope
from driftline.model.value import KIND_OF, Value, comparable
from driftline.model.variables import Variables, bind, fold, variables_of


class Operator(enum.Enum):
    """Every operator of the language on one attribute."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    IN = "IN"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    SUBSTRING = "substring"
    LIKE = "LIKE"
    NOT_LIKE = "NOT LIKE"
    EXISTS = "IS NOT NULL"
    ABSENT = "IS NULL"


ORDERINGS = (Operator.LT, Operator.LE, Operator.GT, Operator.GE)
PATTERNS = (Operator.PREFIX, Operator.SUFFIX, Operator.SUBSTRING, Operator.LIKE)

Operand: TypeAlias = Expression | tuple[Expression, ...] | LikePattern | None


@dataclass(frozen=True, slots=True)
class Constraint:
    """`attribute operator operand`.

    The operand is an expression for the comparisons, a tuple of them for IN, a pattern for the
    string operators, and nothing for IS NULL and IS NOT NULL.
    """

    attribute: str
    operator: Operator
    operand: Operand = None
    # Worked out once: an IN may have thousands of values, and be asked of as many.
    constant: bool = field(init=False, compare=False, repr=False)
    values: tuple[Value, ...] = field(init=False, compare=False, repr=False)
    _members: frozenset[object] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        items = self.operand if isinstance(self.operand, tuple) else (self.operand,)
        fixed = all(isinstance(item, Literal | LikePattern) or item is None for item in items)
        values = tuple(
            item.value for item in items if isinstance(item, Literal) and item.value is not None
        )
        put = object.__setattr__
        # Is the operand fixed, so that `satisfied_by` can answer?
        put(self, "constant", fixed)
        # The constants of the operand; none for the operators that compare with nothing.
        put(self, "values", values)
        put(self, "_members", frozenset(map(comparable, values)))

    def satisfied_by(self, value: Value | None) -> bool:
        """Is the constraint true of an attribute with this value (None: of a missing one)?"""
        if self.operator is Operator.ABSENT:
            return value is None
        if value is None:
            return False
        if self.operator is Operator.EXISTS:
            return True
        if isinstance(self.operand, LikePattern):
            if not isinstance(value, str):
                return False
            return self.operand.matches(value) is not (self.operator is Operator.NOT_LIKE)
        if self.operator in (Operator.EQ, Operator.IN):
            return value == value and comparable(value) in self._members
        return any(_holds(self.operator.value, value, operand) for operand in self.values)

    def condition(self) -> Expression:
        """The constraint as a predicate: what it means."""
        attribute = Attribute(self.attribute)
        if self.operator is Operator.ABSENT:
            return IsNull(attribute)
        if self.operator is Operator.EXISTS:
            return Not(IsNull(attribute))
        if isinstance(self.operand, LikePattern):
            like = Like(attribute, self.operand)
            return Not(like) if self.operator is Operator.NOT_LIKE else like
        if isinstance(self.operand, tuple):
            return In(attribute, self.operand)
        assert self.operand is not None
        return Comparison(self.operator.value, attribute, self.operand)

    def bound(self, params: Mapping[str, Value]) -> Constraint:
        """The constraint with these parameters replaced by their values."""
        if self.constant or not params:
            return self
        if isinstance(self.operand, tuple):
            return replace(self, operand=tuple(fold(bind(item, params)) for item in self.operand))
        assert isinstance(self.operand, Expression)
        return replace(self, operand=fold(bind(self.operand, params)))

    def variables(self) -> Variables:
        """What the operand depends on."""
        return variables_of(self.condition())

    def holds(self, scope: Scope) -> bool:
        """Is it true of the scope's event, with the scope's variables?"""
        if self.constant:
            return self.satisfied_by(scope.attribute(self.attribute))
        return self.condition().evaluate(scope) is True

    def __str__(self) -> str:
        return str(self.condition())


def _holds(sign: str, value: Value, operand: Value) -> bool:
    if KIND_OF[type(value)] is not KIND_OF[type(operand)] or value != value or operand != operand:
        return False
    return COMPARISONS[sign](value, operand)


def string_constraint(attribute: str, pattern: LikePattern, negated: bool = False) -> Constraint:
    """LIKE under the most telling of its names: equality, prefix, suffix or substring."""
    if negated:
        return Constraint(attribute, Operator.NOT_LIKE, pattern)
    if pattern.literal is not None:
        return Constraint(attribute, Operator.EQ, Literal(pattern.literal))
    if pattern.is_prefix:
        return Constraint(attribute, Operator.PREFIX, pattern)
    if pattern.is_suffix:
        return Constraint(attribute, Operator.SUFFIX, pattern)
    if pattern.is_substring:
        return Constraint(attribute, Operator.SUBSTRING, pattern)
    return Constraint(attribute, Operator.LIKE, pattern)
