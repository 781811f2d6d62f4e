"""Which advertisement does this SQL text make? [SIENA §3.4]

AND and OR only list the constraints: those on one attribute are alternatives, and every attribute
of an event must be covered. BETWEEN and IN are one constraint each.
"""

from __future__ import annotations

from collections.abc import Iterator

from driftline.errors import LanguageError
from driftline.language.sql import parse
from driftline.model.advertisement import Advertisement
from driftline.model.constraint import Constraint, Operator
from driftline.model.event import ENVELOPE
from driftline.model.expression import TRUE, Attribute, Expression, Literal
from driftline.model.filter import filters_of
from driftline.model.predicate import And, Between, Comparison, In, IsNull, Like, Not, Or
from driftline.model.subscription import Subscription


def advertisement(text: str) -> Advertisement:
    """The advertisement a text makes.

    >>> print(advertisement("SELECT * FROM q WHERE firm = 'IBM' OR firm = 'DIS' AND p IS NOT NULL"))
    SELECT * FROM q WHERE (firm = 'IBM' OR firm = 'DIS') AND p IS NOT NULL
    """
    statement = parse(text)
    if not isinstance(statement, Subscription) or statement.columns or statement.change:
        raise LanguageError("SELECT * with constraints in an advertisement", str(statement)[:60])
    attributes: dict[str, list[tuple[Constraint, ...]]] = {}
    for leaf in _leaves(statement.where):
        for option in _options(leaf):
            name = option[0].attribute
            if name in ENVELOPE:  # an event is covered whatever its envelope says
                raise LanguageError("attributes of the event, not its envelope's", name)
            attributes.setdefault(name, []).append(option)
    return Advertisement(
        statement.source,
        tuple((name, tuple(dict.fromkeys(options))) for name, options in attributes.items()),
    )


def _leaves(node: Expression) -> Iterator[Expression]:
    if isinstance(node, And | Or):
        for item in node.items:
            yield from _leaves(item)
    elif node != TRUE:
        yield node


def _options(leaf: Expression) -> list[tuple[Constraint, ...]]:
    """The alternatives one constraint adds; each a conjunction on its attribute."""
    plain = isinstance(leaf, Comparison | Between | In | Like | Attribute)
    exists = isinstance(leaf, Not) and isinstance(leaf.operand, IsNull)
    found = filters_of(None, leaf) if plain or exists else ()
    options = []
    for one in found:
        attributes = {part.attribute for part in one.constraints}
        constant = all(part.constant for part in one.constraints)
        if one.conditions or not constant or len(attributes) != 1:
            break
        options += _apart(one.constraints)
    else:
        if options:
            return options
    raise LanguageError(
        "constraints of attributes with constants in an advertisement", str(leaf)[:60]
    )


def _apart(constraints: tuple[Constraint, ...]) -> list[tuple[Constraint, ...]]:
    if len(constraints) == 1 and constraints[0].operator is Operator.IN:
        (constraint,) = constraints
        return [
            (Constraint(constraint.attribute, Operator.EQ, Literal(value)),)
            for value in constraint.values
        ]
    return [constraints]
