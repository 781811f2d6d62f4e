"""What is the value of this expression?

Expressions are immutable trees with structural equality. Each node knows how to `evaluate` itself
in a `Scope`, giving a value or an `Unknown`; this file and `predicate.py` together are the
definition of what the language means. Nothing here calls Python's `eval`.

Arithmetic: integers stay integers within 64 bits, overflow is unknown; `/` is always a float
division; an operation whose result is NaN, or infinite from finite operands, is unknown.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from driftline.model.comparison import compared
from driftline.model.functions import FUNCTIONS
from driftline.model.scope import Scope
from driftline.model.text import identifier, literal
from driftline.model.truth import Outcome, Unknown
from driftline.model.value import (
    INTEGER_MAX,
    INTEGER_MIN,
    Value,
    identity,
    microseconds_of,
    type_name,
)

# How tightly a node binds when written: a child that binds less gets parentheses.
OR, AND, NOT, COMPARISON, SUM, PRODUCT, UNARY, ATOM = range(1, 9)


class Expression(ABC):
    """A node of the tree. `children` and `rebuilt` are all a traversal needs."""

    __slots__ = ()
    binding = ATOM

    @abstractmethod
    def evaluate(self, scope: Scope) -> Outcome:
        """The value in this scope, or why there is none."""

    def children(self) -> tuple[Expression, ...]:
        """The nodes below, in reading order."""
        return ()

    def rebuilt(self, children: tuple[Expression, ...]) -> Expression:
        """The same node over other children."""
        return self

    def written(self, binding: int) -> str:
        """The node's text as the operand of something that binds so tightly."""
        return str(self) if self.binding >= binding else f"({self})"


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Expression):
    """A constant; `None` is NULL. `1`, `1.0` and `TRUE` are three different constants."""

    value: Value | None

    def evaluate(self, scope: Scope) -> Outcome:
        return Unknown("NULL", "is no value") if self.value is None else self.value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return identity(self.value) == identity(other.value)

    def __hash__(self) -> int:
        return hash(identity(self.value))

    def __str__(self) -> str:
        return literal(self.value)


@dataclass(frozen=True, slots=True)
class Attribute(Expression):
    """An attribute of the event; `table` is set only in joins."""

    name: str
    table: str | None = None

    def evaluate(self, scope: Scope) -> Outcome:
        value = scope.attributes.get(self.name)
        if value is None:
            value = scope.attribute(self.name)
            if value is None:
                return Unknown(self.name, "is missing")
        return value

    def __str__(self) -> str:
        prefix = "" if self.table is None else identifier(self.table) + "."
        return prefix + identifier(self.name)


@dataclass(frozen=True, slots=True)
class Parameter(Expression):
    """`:name`, a variable the subscriber owns and moves."""

    name: str

    def evaluate(self, scope: Scope) -> Outcome:
        value = scope.params.get(self.name)
        return Unknown(self, "is unbound") if value is None else value

    def __str__(self) -> str:
        return f":{self.name}"


@dataclass(frozen=True, slots=True)
class Environment(Expression):
    """`env('name')`, a variable the system owns."""

    name: str

    def evaluate(self, scope: Scope) -> Outcome:
        value = scope.env.get(self.name)
        return Unknown(self, "is not known") if value is None else value

    def __str__(self) -> str:
        return f"env({literal(self.name)})"


@dataclass(frozen=True, slots=True)
class Now(Expression):
    """`now()`: the stamp the event got where it entered the system."""

    def evaluate(self, scope: Scope) -> Outcome:
        now = scope.now
        return Unknown(self, "has no stamp to read") if now is None else now

    def __str__(self) -> str:
        return "now()"


@dataclass(frozen=True, slots=True)
class Elapsed(Expression):
    """`elapsed()`: float seconds from the subscription's start to that stamp, never below 0."""

    def evaluate(self, scope: Scope) -> Outcome:
        return Unknown(self, "has no start") if scope.elapsed is None else scope.elapsed

    def __str__(self) -> str:
        return "elapsed()"


_OPERATIONS: dict[str, Callable[[int | float, int | float], int | float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """`left operator right` for + - * /."""

    operator: str
    left: Expression
    right: Expression

    @property
    def binding(self) -> int:  # type: ignore[override]  # depends on the operator
        return SUM if self.operator in "+-" else PRODUCT

    def evaluate(self, scope: Scope) -> Outcome:
        left = self.left.evaluate(scope)
        if type(left) is Unknown:
            return left
        right = self.right.evaluate(scope)
        if type(right) is Unknown:
            return right
        if type(left) is int or type(left) is float:
            if type(right) is int or type(right) is float:
                return self._numbers(left, right)
        elif type(left) is datetime and type(right) is datetime and self.operator == "-":
            return float(microseconds_of(left) - microseconds_of(right)) / 1e6
        return Unknown(self, f"mixes {type_name(left)} and {type_name(right)}")

    def _numbers(self, left: int | float, right: int | float) -> Outcome:
        if self.operator == "/":
            if right == 0:
                return Unknown(self, "divides by zero")
            result: int | float = float(left) / float(right)
        else:
            result = _OPERATIONS[self.operator](left, right)
        if type(result) is int:
            in_range = INTEGER_MIN <= result <= INTEGER_MAX
            return result if in_range else Unknown(self, "overflows 64 bits")
        if result != result:
            return Unknown(self, "is not a number")
        if math.isinf(result) and math.isfinite(left) and math.isfinite(right):
            return Unknown(self, "overflows")
        return result

    def children(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def rebuilt(self, children: tuple[Expression, ...]) -> Arithmetic:
        return Arithmetic(self.operator, *children)

    def __str__(self) -> str:
        # The right operand needs parentheses already at equal strength: a - (b - c).
        left, right = self.left.written(self.binding), self.right.written(self.binding + 1)
        return f"{left} {self.operator} {right}"


@dataclass(frozen=True, slots=True)
class Negate(Expression):
    """`-operand`."""

    operand: Expression
    binding = UNARY

    def evaluate(self, scope: Scope) -> Outcome:
        value = self.operand.evaluate(scope)
        if type(value) is Unknown:
            return value
        if type(value) is int:
            return -value if value != INTEGER_MIN else Unknown(self, "overflows 64 bits")
        if type(value) is float:
            return Unknown(self, "is not a number") if value != value else -value
        return Unknown(self, f"negates a {type_name(value)}")

    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def rebuilt(self, children: tuple[Expression, ...]) -> Negate:
        return Negate(*children)

    def __str__(self) -> str:
        # `-(3)` is this node and `-3` a literal; `-(-x)` because `--` begins a comment.
        plain = self.operand.binding >= ATOM and not isinstance(self.operand, Literal)
        return f"-{self.operand}" if plain else f"-({self.operand})"


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A call of one of `FUNCTIONS`."""

    function: str
    arguments: tuple[Expression, ...]

    def evaluate(self, scope: Scope) -> Outcome:
        values: list[Value] = []
        for argument in self.arguments:
            value = argument.evaluate(scope)
            if isinstance(value, Unknown):
                return value
            values.append(value)
        return FUNCTIONS[self.function].apply(values)

    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    def rebuilt(self, children: tuple[Expression, ...]) -> Call:
        return Call(self.function, children)

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Coalesce(Expression):
    """`coalesce(a, b, …)`: the first that has a value, whatever the reason the others had none."""

    arguments: tuple[Expression, ...]

    def evaluate(self, scope: Scope) -> Outcome:
        value: Outcome = Unknown(self, "has no argument")
        for argument in self.arguments:
            value = argument.evaluate(scope)
            if type(value) is not Unknown:
                return value
        return value

    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    def rebuilt(self, children: tuple[Expression, ...]) -> Coalesce:
        return Coalesce(children)

    def __str__(self) -> str:
        return f"coalesce({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """`CASE WHEN condition THEN value … ELSE value END`; only a true condition is taken.

    With a subject, `CASE x WHEN v THEN …`, each condition is `x = v`, and x is evaluated once.
    """

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression = Literal(None)
    subject: Expression | None = None

    def evaluate(self, scope: Scope) -> Outcome:
        subject = None if self.subject is None else self.subject.evaluate(scope)
        for when, value in self.branches:
            truth = when.evaluate(scope)
            if subject is not None:
                truth = compared("=", subject, truth)
            if truth is True:
                return value.evaluate(scope)
        return self.otherwise.evaluate(scope)

    def children(self) -> tuple[Expression, ...]:
        parts = (*(part for branch in self.branches for part in branch), self.otherwise)
        return parts if self.subject is None else (*parts, self.subject)

    def rebuilt(self, children: tuple[Expression, ...]) -> Case:
        parts = children if self.subject is None else children[:-1]
        pairs = tuple(zip(parts[:-1:2], parts[1:-1:2], strict=True))
        return Case(pairs, parts[-1], None if self.subject is None else children[-1])

    def __str__(self) -> str:
        subject = "" if self.subject is None else f"{self.subject.written(SUM)} "
        whens = " ".join(f"WHEN {when} THEN {value}" for when, value in self.branches)
        last = "" if self.otherwise == Literal(None) else f" ELSE {self.otherwise}"
        return f"CASE {subject}{whens}{last} END"


TRUE = Literal(True)
FALSE = Literal(False)
