"""How does one say it in Python instead of SQL?

    >>> from driftline import attr, param, select
    >>> near = (attr.x >= param.mx - 3) & (attr.x <= param.mx + 3) & (attr.kind == "jam")
    >>> print(select(source="traffic", where=near))
    SELECT * FROM traffic WHERE x >= :mx - 3 AND x <= :mx + 3 AND kind = 'jam'

Operators on names build the same model the parser does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from driftline.errors import LanguageError, LimitExceeded
from driftline.language.change import crossed_condition, moved_condition
from driftline.language.limits import DEPTH_MAX, NESTING_MAX
from driftline.language.sql import parse
from driftline.model.expression import (
    TRUE,
    Arithmetic,
    Attribute,
    Call,
    Coalesce,
    Elapsed,
    Environment,
    Expression,
    Literal,
    Negate,
    Now,
    Parameter,
)
from driftline.model.functions import FUNCTIONS, is_zone
from driftline.model.like import LikePattern, MalformedPattern
from driftline.model.predicate import Between, Comparison, In, IsNull, Like, Not, Or, conjunction
from driftline.model.subscription import Column, Crossed, Moved, Subscription, where_text
from driftline.model.value import Value, admit, show

Operand: TypeAlias = "Term | Value | None"


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """An expression that Python's operators extend.

    `==` builds a comparison, so two terms are compared by their `expression`; and because Python's
    `and`, `or` and `not` cannot be redefined, a term has no truth: use `&`, `|` and `~`.
    """

    expression: Expression
    change: Moved | Crossed | None = None

    def __bool__(self) -> bool:
        raise LanguageError("&, | and ~ between conditions, with parentheses", "and, or, not or if")

    def __and__(self, other: Term) -> Term:
        other = _term(other, "a condition")
        if self.change is not None and other.change is not None:
            raise LanguageError("moved or crossed once", "it twice")
        parts = tuple(term.expression for term in (self, other) if term.expression != TRUE)
        return Term(conjunction(parts), self.change or other.change)

    def __or__(self, other: Term) -> Term:
        return Term(Or((_plain(self), _plain(_term(other, "a condition")))))

    def __invert__(self) -> Term:
        return Term(Not(_plain(self)))

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        return self._compared("=", other)

    def __ne__(self, other: object) -> Term:  # type: ignore[override]
        return self._compared("!=", other)

    def __lt__(self, other: Operand) -> Term:
        return self._compared("<", other)

    def __le__(self, other: Operand) -> Term:
        return self._compared("<=", other)

    def __gt__(self, other: Operand) -> Term:
        return self._compared(">", other)

    def __ge__(self, other: Operand) -> Term:
        return self._compared(">=", other)

    __hash__ = None  # type: ignore[assignment]

    def _compared(self, sign: str, other: object) -> Term:
        return Term(Comparison(sign, _plain(self), expression_of(other)))

    def __add__(self, other: Operand) -> Term:
        return Term(Arithmetic("+", _plain(self), expression_of(other)))

    def __radd__(self, other: Operand) -> Term:
        return Term(Arithmetic("+", expression_of(other), _plain(self)))

    def __sub__(self, other: Operand) -> Term:
        return Term(Arithmetic("-", _plain(self), expression_of(other)))

    def __rsub__(self, other: Operand) -> Term:
        return Term(Arithmetic("-", expression_of(other), _plain(self)))

    def __mul__(self, other: Operand) -> Term:
        return Term(Arithmetic("*", _plain(self), expression_of(other)))

    def __rmul__(self, other: Operand) -> Term:
        return Term(Arithmetic("*", expression_of(other), _plain(self)))

    def __truediv__(self, other: Operand) -> Term:
        return Term(Arithmetic("/", _plain(self), expression_of(other)))

    def __rtruediv__(self, other: Operand) -> Term:
        return Term(Arithmetic("/", expression_of(other), _plain(self)))

    def __neg__(self) -> Term:
        return Term(Negate(_plain(self)))

    def __abs__(self) -> Term:
        return Term(Call("abs", (_plain(self),)))

    def between(self, low: Operand, high: Operand) -> Term:
        """`BETWEEN low AND high`, both ends included."""
        return Term(Between(_plain(self), expression_of(low), expression_of(high)))

    def is_in(self, *items: Operand) -> Term:
        """`IN (…)`: literals and variables."""
        expressions = tuple(expression_of(item) for item in items)
        for item in expressions:
            if not isinstance(item, Literal | Parameter | Environment) or item == Literal(None):
                raise LanguageError("literals and variables in IN", str(item))
        if not expressions:
            raise LanguageError("one value or more in IN", "none")
        return Term(In(_plain(self), expressions))

    def like(self, pattern: str) -> Term:
        """`LIKE 'pattern'`."""
        if not isinstance(pattern, str):
            raise LanguageError("a string as LIKE pattern", show(pattern))
        try:
            return Term(Like(_plain(self), LikePattern(str(admit(pattern, "pattern")))))
        except MalformedPattern as error:
            raise LanguageError(str(error), repr(pattern)) from None

    def is_null(self) -> Term:
        """`IS NULL`: the attribute is missing."""
        inner = _plain(self)
        if not isinstance(inner, Attribute):
            raise LanguageError("an attribute before IS NULL", str(inner))
        return Term(IsNull(inner))

    def is_not_null(self) -> Term:
        """`IS NOT NULL`: the attribute is present."""
        return ~self.is_null()

    def __str__(self) -> str:
        return where_text(self.expression, self.change) or "TRUE"


def expression_of(operand: object) -> Expression:
    """The expression behind a term, or a constant."""
    if isinstance(operand, Term):
        return _plain(operand)
    if operand is None:
        return Literal(None)
    value = admit(operand, "constant")
    if isinstance(value, float) and not math.isfinite(value):
        raise LanguageError("a number that can be written", repr(value))
    return Literal(value)


def _term(operand: object, wanted: str) -> Term:
    """The operand, if it is a term: Python would let anything stand there."""
    if not isinstance(operand, Term):
        raise LanguageError(wanted, show(operand))
    return operand


def _name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise LanguageError("a name", show(name))
    return str(admit(name, "name"))


def _plain(term: Term) -> Expression:
    if term.change is not None:
        raise LanguageError("moved or crossed joined by & alone", "it inside another condition")
    return term.expression


class _Names:
    """`attr.price`, or `attr["any name"]`."""

    def __init__(self, node: type[Attribute] | type[Parameter]) -> None:
        self._node = node

    def __getattr__(self, name: str) -> Term:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Term:
        admitted = _name(name)
        if self._node is Parameter and not admitted.isidentifier():
            raise LanguageError("a name of letters, digits and _ for a parameter", show(name))
        return Term(self._node(admitted))


attr = _Names(Attribute)
param = _Names(Parameter)


def env(name: str) -> Term:
    """`env('name')`, a variable of the system."""
    return Term(Environment(_name(name)))


def elapsed() -> Term:
    """Float seconds since the subscription began."""
    return Term(Elapsed())


def now() -> Term:
    """The stamp the event got where it entered the system."""
    return Term(Now())


def call(function: str, *arguments: Operand) -> Term:
    """A call of one of the language's functions: `call("sqrt", attr.x)`."""
    expressions = tuple(expression_of(argument) for argument in arguments)
    if function == "coalesce" and expressions:
        return Term(Coalesce(expressions))
    known = FUNCTIONS.get(function)
    if known is None:
        raise LanguageError(f"one of the functions {', '.join(sorted(FUNCTIONS))}", function)
    if not known.arguments_min <= len(expressions) <= known.arguments_max:
        wanted = f"{known.arguments_min} to {known.arguments_max} arguments for {function}"
        raise LanguageError(wanted, str(len(expressions)))
    if function in ("hour", "minute", "weekday"):
        for zone in expressions[1:]:
            if not (isinstance(zone, Literal) and is_zone(str(zone.value))):
                raise LanguageError("a zone's name such as 'Europe/Berlin'", str(zone))
    return Term(Call(function, expressions))


def moved(
    value: Term,
    *,
    by: Operand = None,
    may: Operand = None,
    must: Operand = None,
    percent: Operand = None,
    factor: Operand = None,
    strict: bool = False,
    shared: bool = False,
) -> Term:
    """`moved(value, by => …)`: only when it moved since I was last told."""
    given = {"by": by, "may": may, "must": must, "percent": percent, "factor": factor}
    named = {name: expression_of(bound) for name, bound in given.items() if bound is not None}
    for flag in (strict, shared):
        if not isinstance(flag, bool):
            raise LanguageError("True or False for strict and shared", show(flag))
    watched = _plain(_term(value, "an attribute in moved(…)"))
    return Term(TRUE, moved_condition(watched, named, strict, shared))


def crossed(
    value: Term, *, above: Operand = None, below: Operand = None, clear: Operand = None
) -> Term:
    """`crossed(value, above => …, clear => …)`: hysteresis."""
    given = {"above": above, "below": below, "clear": clear}
    named = {name: expression_of(bound) for name, bound in given.items() if bound is not None}
    watched = _plain(_term(value, "an attribute in crossed(…)"))
    return Term(TRUE, crossed_condition(watched, named))


def select(
    *columns: Term, source: str | None = None, where: Term | None = None, **aliases: Term
) -> Subscription:
    """The subscription; without columns it is `SELECT *`, keywords name columns."""
    chosen = [Column(_plain(_term(column, "a column"))) for column in columns]
    chosen += [
        Column(_plain(_term(column, "a column")), _name(alias)) for alias, column in aliases.items()
    ]
    if len({column.name for column in chosen}) < len(chosen):
        raise LanguageError("columns with different names", ", ".join(c.name for c in chosen))
    condition = Term(TRUE) if where is None else _term(where, "a condition")
    named = None if source is None else _name(source)
    statement = Subscription(tuple(chosen), named, condition.expression, condition.change)
    deepest = max(_depth(one) for one in (condition.expression, *(c.expression for c in chosen)))
    if deepest > DEPTH_MAX:
        raise LimitExceeded(f"a tree of at most {DEPTH_MAX} levels", f"{deepest}")
    if deepest > NESTING_MAX:
        parse(str(statement))  # What is built so deep must be readable as text all the same.
    return statement


def _depth(expression: Expression) -> int:
    """Levels of the tree, counted without recursion: a tree too deep is what this looks for."""
    deepest = 0
    stack = [(expression, 1)]
    while stack:
        node, level = stack.pop()
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in node.children())
    return deepest
