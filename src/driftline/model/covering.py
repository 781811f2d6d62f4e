"""Does one subscription take in all that another does? [SIENA §3.6–3.7, PARAM §3.1]

`covers` may wrongly say no, which costs traffic; never wrongly yes, which would lose events.
`intersects` the other way round, for the same reason. Variables that belong to a subscriber (its
parameters, its `elapsed()`) are different things in two subscriptions, so where the answer would
depend on them it is no, even for equal texts; `now()` and `env()` are shared by all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from driftline.errors import InvalidValue
from driftline.model.advertisement import (
    Advertisement,
    advertisement_covers,
    advertisement_intersects,
)
from driftline.model.constraint import Constraint, Operator
from driftline.model.domain import Domain
from driftline.model.expression import Literal
from driftline.model.filter import Filter
from driftline.model.pattern import Pattern
from driftline.model.subscription import Subscription
from driftline.model.value import admit_all, show
from driftline.model.variables import variables_of
from driftline.model.view import View

Statement: TypeAlias = Subscription | View | Pattern
_Params: TypeAlias = Mapping[str, object] | None

# `x != v` is `x < v OR x > v` [PARAM §3.1], and IN is equality with one of its values. A filter is
# split so at most this many times, and not for an IN with more values than this.
_SPLITS_MAX = 4
_VALUES_MAX = 16


def covers(
    a: Statement | Advertisement,
    b: Statement | Advertisement,
    params_a: _Params = None,
    params_b: _Params = None,
) -> bool:
    """Does a cover b: is every event that satisfies b sure to satisfy a?

    >>> from driftline import parse
    >>> covers(parse("SELECT * WHERE price > 100"), parse("SELECT * WHERE price > 200"))
    True
    >>> moving = parse("SELECT * WHERE price > :p")
    >>> covers(moving, moving), covers(moving, moving, {"p": 1}, {"p": 2})
    (False, True)
    """
    _check_parsed("covers", a, b)
    if isinstance(a, Advertisement) and isinstance(b, Advertisement):
        return advertisement_covers(a, b)
    if isinstance(a, Subscription) and isinstance(b, Subscription):
        return _subscription_covers(a, b, params_a, params_b)
    if isinstance(a, Pattern) and isinstance(b, Pattern):
        return _pattern_covers(a, b, params_a, params_b)
    if isinstance(a, View) and isinstance(b, View):
        return a == b and not a.variables().private
    return False


def intersects(advertised: Advertisement, wanted: Statement, params: _Params = None) -> bool:
    """Could the publisher say something the subscriber wants to hear?"""
    _check_parsed("intersects", advertised, wanted)
    if isinstance(wanted, Pattern):
        return any(intersects(advertised, step, params) for step in wanted.steps)
    if isinstance(wanted, View):
        tables = {wanted.source} | ({wanted.join.table} if wanted.join else set())
        return advertised.type is None or advertised.type in tables
    filters = wanted.filters(admit_all(params, "parameter"))
    return any(advertisement_intersects(advertised, one) for one in filters)


def _check_parsed(where: str, *given: object) -> None:
    """A text would otherwise be taken for something that covers nothing."""
    for one in given:
        if not isinstance(one, Subscription | View | Pattern | Advertisement):
            raise InvalidValue(where, "what parse or advertisement gives", show(one))


def _subscription_covers(
    general: Subscription, specific: Subscription, params_g: _Params, params_s: _Params
) -> bool:
    if general.change is not None:
        # What was told before decides, and that is each subscription's own.
        return False
    generals = general.filters(admit_all(params_g, "parameter"))
    specifics = specific.filters(admit_all(params_s, "parameter"))
    return all(filters_cover(generals, one) for one in specifics)


def _pattern_covers(
    general: Pattern, specific: Pattern, params_g: _Params, params_s: _Params
) -> bool:
    """Position by position [SIENA §3.7], and no shorter a window."""
    if len(general.steps) != len(specific.steps):
        return False
    if general.within is not None and (specific.within is None or specific.within > general.within):
        return False
    pairs = zip(general.steps, specific.steps, strict=True)
    return all(_subscription_covers(g, s, params_g, params_s) for g, s in pairs)


def filters_cover(generals: Sequence[Filter], specific: Filter, splits: int = _SPLITS_MAX) -> bool:
    """Is what the one filter takes also taken by one of the others?"""
    if any(filter_covers(general, specific) for general in generals):
        return True
    pieces = _split(specific) if splits else None
    return pieces is not None and all(filters_cover(generals, one, splits - 1) for one in pieces)


def filter_covers(general: Filter, specific: Filter) -> bool:
    """Does every event of `specific` satisfy `general`, by comparing attribute by attribute?"""
    domains = {
        name: Domain.of(specific.on(name)) for name in {c.attribute for c in specific.constraints}
    }
    if any(domain.empty for domain in domains.values()):
        return True
    if general.type is not None and general.type != specific.type:
        return False
    nothing = Domain()
    return all(
        domains.get(constraint.attribute, nothing).implies(constraint)
        for constraint in general.constraints
    ) and all(
        condition in specific.conditions and not variables_of(condition).private
        for condition in general.conditions
    )


def _split(whole: Filter) -> tuple[Filter, ...] | None:
    """The filter in pieces at its first `x != v` or IN; None where it has neither."""
    for at, constraint in enumerate(whole.constraints):
        pieces = _pieces(constraint)
        if pieces is not None:
            before, after = whole.constraints[:at], whole.constraints[at + 1 :]
            return tuple(replace(whole, constraints=(*before, one, *after)) for one in pieces)
    return None


def _pieces(constraint: Constraint) -> tuple[Constraint, ...] | None:
    if not constraint.constant:
        return None
    if constraint.operator is Operator.NE:
        signs = (Operator.LT, Operator.GT)
        return tuple(replace(constraint, operator=operator) for operator in signs)
    if constraint.operator is Operator.IN and len(constraint.values) <= _VALUES_MAX:
        return tuple(
            Constraint(constraint.attribute, Operator.EQ, Literal(value))
            for value in constraint.values
        )
    return None
