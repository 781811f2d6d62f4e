"""What does a text mean, what does it depend on, and what in it looks like a mistake?

A text that parses may still be one that nobody would write on purpose: a range that is empty, a
comparison with NULL. It is honoured all the same, and the review says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from driftline.language.sql import parse
from driftline.model.covering import Statement
from driftline.model.domain import Domain
from driftline.model.expression import Arithmetic, Attribute, Expression, Literal
from driftline.model.filter import Filter, filters_of
from driftline.model.pattern import Pattern
from driftline.model.predicate import Between, Comparison, Like
from driftline.model.standing import conditions_of, kinds_of
from driftline.model.subscription import Subscription
from driftline.model.variables import Variables, attributes_of, walk
from driftline.model.view import View


@dataclass(frozen=True, slots=True)
class Review:
    """All that can be told of a text without an event."""

    statement: Statement
    canonical: str
    shape: str
    sources: tuple[str, ...]
    attributes: tuple[str, ...]
    parameters: dict[str, str]
    variables: Variables
    warnings: tuple[str, ...]


def review(text: str) -> Review:
    """Parse a text and look it over; a `LanguageError` if it is refused.

    >>> found = review("SELECT * FROM quote WHERE price BETWEEN 9 AND :hi AND price = NULL")
    >>> found.parameters, found.warnings[0]
    ({'hi': 'number'}, 'price = NULL is always unknown: use IS NULL')
    """
    statement = parse(text)
    variables = statement.variables()
    kinds = kinds_of(statement)
    return Review(
        statement,
        str(statement),
        _shape(statement),
        _sources(statement),
        tuple(sorted(_attributes(statement))),
        {
            name: " or ".join(sorted(kind.value for kind in kinds[name]))
            if name in kinds
            else "any"
            for name in sorted(variables.parameters)
        },
        variables,
        tuple(dict.fromkeys(_warnings(statement))),
    )


def _shape(statement: Statement) -> str:
    if isinstance(statement, Pattern):
        return f"pattern of {len(statement.steps)} filters"
    if isinstance(statement, View):
        return "join" if statement.join else "distinct view" if statement.distinct else "view"
    return "filter" if statement.change is None else "filter on changes"


def _sources(statement: Statement) -> tuple[str, ...]:
    if isinstance(statement, Pattern):
        named = [step.source for step in statement.steps]
    elif isinstance(statement, View):
        named = [statement.source, statement.join.table if statement.join else None]
    else:
        named = [statement.source]
    return tuple(dict.fromkeys(name for name in named if name is not None))


def _attributes(statement: Statement) -> set[str]:
    found: set[str] = set()
    for expression in _expressions(statement):
        found |= attributes_of(expression)
    return found


def _expressions(statement: Statement) -> Iterator[Expression]:
    yield from conditions_of(statement)
    parts = statement.steps if isinstance(statement, Pattern) else (statement,)
    for part in parts:
        yield from (column.expression for column in part.columns)
        change = part.having if isinstance(part, View) else part.change
        if change is not None:
            yield change.value


def _warnings(statement: Statement) -> Iterator[str]:
    for expression in _expressions(statement):
        for node in walk(expression):
            yield from _node_warnings(node)
    names = sorted(_attributes(statement))
    for at, name in enumerate(names):
        for other in names[at + 1 :]:
            if name.lower() == other.lower():
                yield f"{name} and {other} are different attributes: names are case-sensitive"
    for name, kinds in kinds_of(statement).items():
        if not kinds:
            yield f":{name} is used as things that exclude one another: no value will do"
    for source, condition in _alternatives(statement):
        yield from _impossible(source, condition)


def _node_warnings(node: Expression) -> Iterator[str]:
    if isinstance(node, Comparison | Between | Arithmetic) and Literal(None) in node.children():
        hint = ": use IS NULL" if isinstance(node, Comparison) else ""
        yield f"{node} is always unknown{hint}"
    if isinstance(node, Like) and node.pattern.literal is not None:
        yield f"{node} has no wildcard: it is an equality"
    if (
        isinstance(node, Comparison)
        and isinstance(node.left, Attribute)
        and node.left == node.right
    ):
        yield f"{node} compares an attribute with itself"


def _alternatives(statement: Statement) -> Iterator[tuple[str | None, Expression]]:
    if isinstance(statement, Pattern):
        yield from ((step.source, step.where) for step in statement.steps)
    elif isinstance(statement, Subscription) or statement.join is None:
        yield statement.source, statement.where


def _impossible(source: str | None, condition: Expression) -> Iterator[str]:
    """Alternatives that no event can satisfy, and whole conditions that none can."""
    filters = filters_of(source, condition)
    problems = [problem for one in filters for problem in [_contradiction(one)] if problem]
    if len(problems) == len(filters):
        why = "; ".join(problems)
        yield f"no event can ever satisfy {condition}" + (f": {why}" if why else "")
    else:
        yield from (f"one alternative can never hold: {problem}" for problem in problems)


def _contradiction(one: Filter) -> str | None:
    for attribute in dict.fromkeys(part.attribute for part in one.constraints):
        parts = one.on(attribute)
        if Domain.of(parts).empty:
            return " AND ".join(map(str, parts))
    return None
