"""How does a live subscription get another predicate, or lose one? [PARAM §10]

A condition is a conjunction of predicates. Adding, removing or replacing one gives another
subscription, which takes the place of the first at once: nothing is missed in between.

    >>> from driftline.language.sql import parse
    >>> one = parse("SELECT * FROM quote WHERE firm = 'IBM' AND price < :p")
    >>> print(added(one, "volume > 100"))
    SELECT * FROM quote WHERE firm = 'IBM' AND price < :p AND volume > 100
    >>> print(removed(one, "price < :p"))
    SELECT * FROM quote WHERE firm = 'IBM'
    >>> print(replaced(one, "price < :p", "price < 2 * :p"))
    SELECT * FROM quote WHERE firm = 'IBM' AND price < 2 * :p
"""

from __future__ import annotations

from dataclasses import replace

from driftline.errors import InvalidValue, NotSupported
from driftline.language.sql import parse_condition
from driftline.model.covering import Statement
from driftline.model.expression import TRUE, Expression
from driftline.model.predicate import conjunction, conjuncts
from driftline.model.subscription import Subscription


def added(statement: Statement, condition: str) -> Subscription:
    """The subscription with one more condition."""
    one = _plain(statement)
    return _with(one, [*_predicates(one), *_read(condition)])


def removed(statement: Statement, condition: str) -> Subscription:
    """The subscription without a condition that it has."""
    return replaced(statement, condition, "TRUE")


def replaced(statement: Statement, condition: str, other: str) -> Subscription:
    """The subscription with one condition in the place of another."""
    one = _plain(statement)
    left = _predicates(one)
    at = len(left)
    for predicate in _read(condition):
        at = min(at, _find(left, predicate))
        left.remove(predicate)
    return _with(one, [*left[:at], *_read(other), *left[at:]])


def _plain(statement: Statement) -> Subscription:
    if not isinstance(statement, Subscription):
        raise NotSupported(str(statement), "only the condition of a plain subscription is changed")
    return statement


def _read(text: str) -> list[Expression]:
    return list(conjuncts(parse_condition(text)))


def _predicates(one: Subscription) -> list[Expression]:
    return [] if one.where == TRUE else list(conjuncts(one.where))


def _find(predicates: list[Expression], wanted: Expression) -> int:
    if wanted not in predicates:
        there = ", ".join(map(str, predicates)) or "none"
        raise InvalidValue("condition", f"one of {there}", str(wanted))
    return predicates.index(wanted)


def _with(one: Subscription, predicates: list[Expression]) -> Subscription:
    return replace(one, where=conjunction(tuple(predicates)))
