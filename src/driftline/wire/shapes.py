"""Which tag stands for which node of an expression, and what comes with it?

A node is an array: its tag, the names it has, and the nodes below it in the order of `children()`.

    tag                 names            below            node
    a                   name                              Attribute
    a.                  table, name                       Attribute, of a table
    :                   name                              Parameter
    env                 name                              Environment
    now, elapsed                                          Now, Elapsed
    + - * /                              left, right      Arithmetic
    neg                                  operand          Negate
    call                function         arguments        Call
    coalesce                             arguments        Coalesce
    case                                 when, then, … , otherwise            Case
    switch                               when, then, … , otherwise, subject   Case with a subject
    = != < <= > >=                       left, right      Comparison
    between                              operand, low, high                   Between
    in                                   operand, items   In
    like                pattern          operand          Like
    null                                 attribute        IsNull
    not                                  operand          Not
    and, or                              two or more      And, Or
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from driftline.model.comparison import COMPARISONS
from driftline.model.expression import (
    Arithmetic,
    Attribute,
    Call,
    Case,
    Coalesce,
    Elapsed,
    Environment,
    Expression,
    Literal,
    Negate,
    Now,
    Parameter,
)
from driftline.model.like import LikePattern
from driftline.model.predicate import And, Between, Comparison, In, IsNull, Like, Not, Or

Nodes: TypeAlias = tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """What an array with this tag holds.

    `build` takes the tag, the names and what is below, and may raise a ValueError. `calls` is how
    many calls deeper a node takes those who go down the tree; writing its text takes the most.
    """

    node: type[Expression]
    names: int
    least: int
    most: int | None
    build: Callable[[str, list[str], Nodes], Expression]
    calls: int = 4


# What `rebuilt` needs to see: with a subject or without.
_CASE, _SWITCH = Case(()), Case((), subject=Literal(None))

SHAPES: dict[str, Shape] = {
    "a": Shape(Attribute, 1, 0, 0, lambda tag, names, below: Attribute(names[0])),
    "a.": Shape(Attribute, 2, 0, 0, lambda tag, names, below: Attribute(names[1], names[0])),
    ":": Shape(Parameter, 1, 0, 0, lambda tag, names, below: Parameter(names[0])),
    "env": Shape(Environment, 1, 0, 0, lambda tag, names, below: Environment(names[0])),
    "now": Shape(Now, 0, 0, 0, lambda tag, names, below: Now()),
    "elapsed": Shape(Elapsed, 0, 0, 0, lambda tag, names, below: Elapsed()),
    "neg": Shape(Negate, 0, 1, 1, lambda tag, names, below: Negate(*below)),
    "call": Shape(Call, 1, 1, None, lambda tag, names, below: Call(names[0], below)),
    "coalesce": Shape(Coalesce, 0, 1, None, lambda tag, names, below: Coalesce(below)),
    "case": Shape(Case, 0, 3, None, lambda tag, names, below: _CASE.rebuilt(below), 6),
    "switch": Shape(Case, 0, 4, None, lambda tag, names, below: _SWITCH.rebuilt(below), 6),
    "between": Shape(Between, 0, 3, 3, lambda tag, names, below: Between(*below), 6),
    "in": Shape(In, 0, 2, None, lambda tag, names, below: In(below[0], below[1:])),
    "like": Shape(Like, 1, 1, 1, lambda tag, names, below: Like(below[0], LikePattern(names[0]))),
    "null": Shape(IsNull, 0, 1, 1, lambda tag, names, below: _is_null(*below)),
    "not": Shape(Not, 0, 1, 1, lambda tag, names, below: Not(*below)),
    "and": Shape(And, 0, 2, None, lambda tag, names, below: And(below), 6),
    "or": Shape(Or, 0, 2, None, lambda tag, names, below: Or(below), 6),
    **{
        sign: Shape(Arithmetic, 0, 2, 2, lambda tag, names, below: Arithmetic(tag, *below))
        for sign in "+-*/"
    },
    **{
        sign: Shape(Comparison, 0, 2, 2, lambda tag, names, below: Comparison(tag, *below))
        for sign in COMPARISONS
    },
}

_HEADS: dict[type[Expression], Callable[[Any], list[str]]] = {
    Attribute: lambda node: (
        ["a", node.name] if node.table is None else ["a.", node.table, node.name]
    ),
    Parameter: lambda node: [":", node.name],
    Environment: lambda node: ["env", node.name],
    Now: lambda node: ["now"],
    Elapsed: lambda node: ["elapsed"],
    Arithmetic: lambda node: [node.operator],
    Negate: lambda node: ["neg"],
    Call: lambda node: ["call", node.function],
    Coalesce: lambda node: ["coalesce"],
    Case: lambda node: ["case"] if node.subject is None else ["switch"],
    Comparison: lambda node: [node.sign],
    Between: lambda node: ["between"],
    In: lambda node: ["in"],
    Like: lambda node: ["like", node.pattern.text],
    IsNull: lambda node: ["null"],
    Not: lambda node: ["not"],
    And: lambda node: ["and"],
    Or: lambda node: ["or"],
}


def head_of(node: Expression) -> list[str] | None:
    """The tag and the names of a node; None if it has none, as a constant or an aggregate."""
    head = _HEADS.get(type(node))
    return None if head is None else head(node)


def _is_null(operand: Expression) -> IsNull:
    if not isinstance(operand, Attribute):
        raise ValueError("IS NULL is asked of an attribute")
    return IsNull(operand)
