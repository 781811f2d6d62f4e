"""Is this condition true, false, or unknown?

Predicates are expressions whose value is a boolean, joined by Kleene's logic: a conjunction is
false if any part is false, otherwise unknown if any part is; a disjunction the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass

from driftline.model.comparison import compared
from driftline.model.expression import (
    AND,
    ATOM,
    COMPARISON,
    NOT,
    OR,
    SUM,
    TRUE,
    Attribute,
    Expression,
)
from driftline.model.like import LikePattern
from driftline.model.scope import Scope
from driftline.model.text import literal
from driftline.model.truth import Outcome, Unknown
from driftline.model.value import type_name


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    """`left sign right` for = != < <= > >=."""

    sign: str
    left: Expression
    right: Expression
    binding = COMPARISON

    def evaluate(self, scope: Scope) -> Outcome:
        return compared(self.sign, self.left.evaluate(scope), self.right.evaluate(scope))

    def children(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def rebuilt(self, children: tuple[Expression, ...]) -> Comparison:
        return Comparison(self.sign, *children)

    def __str__(self) -> str:
        return f"{self.left.written(SUM)} {self.sign} {self.right.written(SUM)}"


@dataclass(frozen=True, slots=True)
class Between(Expression):
    """`operand BETWEEN low AND high`: at least low and at most high."""

    operand: Expression
    low: Expression
    high: Expression
    binding = COMPARISON

    def evaluate(self, scope: Scope) -> Outcome:
        value = self.operand.evaluate(scope)
        above = compared(">=", value, self.low.evaluate(scope))
        if above is False:
            return False
        below = compared("<=", value, self.high.evaluate(scope))
        return below if below is False or above is True else above

    def children(self) -> tuple[Expression, ...]:
        return (self.operand, self.low, self.high)

    def rebuilt(self, children: tuple[Expression, ...]) -> Between:
        return Between(*children)

    def __str__(self) -> str:
        operand, low, high = (child.written(SUM) for child in self.children())
        return f"{operand} BETWEEN {low} AND {high}"


@dataclass(frozen=True, slots=True)
class In(Expression):
    """`operand IN (a, b, …)`: equal to one of them; each is a literal or a variable."""

    operand: Expression
    items: tuple[Expression, ...]
    binding = COMPARISON

    def evaluate(self, scope: Scope) -> Outcome:
        value = self.operand.evaluate(scope)
        outcome: Outcome = False
        for item in self.items:
            equal = compared("=", value, item.evaluate(scope))
            if equal is True:
                return True
            if equal is not False and outcome is False:
                outcome = equal
        return outcome

    def children(self) -> tuple[Expression, ...]:
        return (self.operand, *self.items)

    def rebuilt(self, children: tuple[Expression, ...]) -> In:
        return In(children[0], children[1:])

    def __str__(self) -> str:
        return f"{self.operand.written(SUM)} IN ({', '.join(map(str, self.items))})"


@dataclass(frozen=True, slots=True)
class Like(Expression):
    """`operand LIKE 'pattern'`, for strings only."""

    operand: Expression
    pattern: LikePattern
    binding = COMPARISON

    def evaluate(self, scope: Scope) -> Outcome:
        value = self.operand.evaluate(scope)
        if type(value) is Unknown:
            return value
        if type(value) is not str:
            return Unknown(f"{type_name(value)} LIKE string", "does not compare")
        return self.pattern.matches(value)

    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def rebuilt(self, children: tuple[Expression, ...]) -> Like:
        return Like(children[0], self.pattern)

    def __str__(self) -> str:
        return f"{self.operand.written(SUM)} LIKE {literal(self.pattern.text)}"


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    """`attribute IS NULL`: is it missing? Never unknown; NaN is a value and not missing."""

    operand: Attribute
    binding = COMPARISON

    def evaluate(self, scope: Scope) -> Outcome:
        return type(self.operand.evaluate(scope)) is Unknown

    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def rebuilt(self, children: tuple[Expression, ...]) -> IsNull:
        assert isinstance(children[0], Attribute)
        return IsNull(children[0])

    def __str__(self) -> str:
        return f"{self.operand} IS NULL"


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """`NOT operand`: unknown stays unknown."""

    operand: Expression
    binding = NOT

    def evaluate(self, scope: Scope) -> Outcome:
        truth = truth_of(self.operand.evaluate(scope))
        return truth if type(truth) is Unknown else not truth

    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def rebuilt(self, children: tuple[Expression, ...]) -> Not:
        return Not(*children)

    def __str__(self) -> str:
        if isinstance(self.operand, IsNull):
            return f"{self.operand.operand} IS NOT NULL"
        # Parentheses around all but a name or call: `NOT x = 1` is right in SQL, and nobody is
        # sure of it.
        return f"NOT {self.operand.written(ATOM)}"


@dataclass(frozen=True, slots=True)
class And(Expression):
    """All of them; a conjunction inside a conjunction is spread into it."""

    items: tuple[Expression, ...]
    binding = AND

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", _spread(self.items, And))

    def evaluate(self, scope: Scope) -> Outcome:
        outcome: Outcome = True
        for item in self.items:
            truth = item.evaluate(scope)
            if truth is True:
                continue
            if truth is False:
                return False
            if outcome is True:
                outcome = truth_of(truth)
        return outcome

    def children(self) -> tuple[Expression, ...]:
        return self.items

    def rebuilt(self, children: tuple[Expression, ...]) -> And:
        return And(children)

    def __str__(self) -> str:
        return " AND ".join(item.written(NOT) for item in self.items)


@dataclass(frozen=True, slots=True)
class Or(Expression):
    """Any of them; a disjunction inside a disjunction is spread into it."""

    items: tuple[Expression, ...]
    binding = OR

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", _spread(self.items, Or))

    def evaluate(self, scope: Scope) -> Outcome:
        outcome: Outcome = False
        for item in self.items:
            truth = item.evaluate(scope)
            if truth is True:
                return True
            if truth is not False and outcome is False:
                outcome = truth_of(truth)
        return outcome

    def children(self) -> tuple[Expression, ...]:
        return self.items

    def rebuilt(self, children: tuple[Expression, ...]) -> Or:
        return Or(children)

    def __str__(self) -> str:
        return " OR ".join(item.written(AND) for item in self.items)


def truth_of(value: Outcome) -> bool | Unknown:
    """A value in the place of a condition: only booleans have a truth."""
    if type(value) is bool or type(value) is Unknown:
        return value
    return Unknown(f"a {type_name(value)}", "is neither true nor false")


def conjunction(items: tuple[Expression, ...]) -> Expression:
    """All of the items as one condition: TRUE for none, the item itself for one."""
    if not items:
        return TRUE
    return items[0] if len(items) == 1 else And(items)


def conjuncts(condition: Expression) -> tuple[Expression, ...]:
    """The parts that must all be true: the inverse of `conjunction`."""
    if condition == TRUE:
        return ()
    return condition.items if isinstance(condition, And) else (condition,)


def _spread(items: tuple[Expression, ...], node: type[And] | type[Or]) -> tuple[Expression, ...]:
    if len(items) < 2:
        raise ValueError(f"{node.__name__} joins two conditions or more, not {len(items)}")
    spread: list[Expression] = []
    for item in items:
        spread.extend(item.items if isinstance(item, node) else (item,))
    return tuple(spread)
