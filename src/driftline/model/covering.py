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
from driftline.model.view import View, ViewKind

Statement: TypeAlias = Subscription | View | Pattern
_Params: TypeAlias = Mapping[str, object] | None

# `x != v` is `x < v OR x > v` [PARAM §3.1], and IN is equality with one of its values. A comparison
# of two subscriptions tries at most this many such pieces.
_PIECES_MAX = 64


def covers(
    a: Statement | Advertisement,
    b: Statement | Advertisement,
    params_a: _Params = None,
    params_b: _Params = None,
) -> bool:
    """Does a cover b: is every event that satisfies b sure to satisfy a?

    May wrongly say no, never wrongly yes. Columns are not compared, only what is taken. For
    patterns it is the paper's rule of unsubscription, position by position.

    >>> from driftline import parse
    >>> covers(parse("SELECT * WHERE price > 100"), parse("SELECT * WHERE price > 200"))
    True
    >>> moving = parse("SELECT * WHERE price > :p")
    >>> covers(moving, moving), covers(moving, moving, {"p": 1}, {"p": 2})
    (False, True)
    """
    for one in (a, b):
        _check_kind("covers", (Subscription, View, Pattern, Advertisement), one)
    a, b = _rows(a), _rows(b)
    if isinstance(a, Advertisement) and isinstance(b, Advertisement):
        return advertisement_covers(a, b)
    if isinstance(a, Subscription) and isinstance(b, Subscription):
        return _subscription_covers(a, b, params_a, params_b)
    if isinstance(a, Pattern) and isinstance(b, Pattern):
        return _pattern_covers(a, b, params_a, params_b)
    if isinstance(a, View) and isinstance(b, View):
        return a == b and not a.variables().private
    return False


def cancels(
    general: Statement, specific: Statement, params_a: _Params = None, params_b: _Params = None
) -> bool:
    """Does whoever unsubscribes from the one mean the other too? What it covers, and itself.

    What moved since it was told covers nothing, as that is each subscription's own; it is meant.
    """
    if covers(general, specific, params_a, params_b):
        return True
    return _rows(general) == _rows(specific) and not general.variables().private


def intersects(advertised: Advertisement, wanted: Statement, params: _Params = None) -> bool:
    """Could the publisher say something the subscriber wants? May wrongly say yes, never no."""
    _check_kind("intersects", (Advertisement,), advertised)
    _check_kind("intersects", (Subscription, View, Pattern), wanted)
    if isinstance(wanted, View) and wanted.of in (ViewKind.ROWS, ViewKind.MOVED):
        wanted = wanted.condition()
    if isinstance(wanted, Pattern):
        return any(intersects(advertised, step, params) for step in wanted.steps)
    if isinstance(wanted, View):
        return advertised.type is None or advertised.type in wanted.tables
    filters = wanted.filters(admit_all(params, "parameter"))
    return any(advertisement_intersects(advertised, one) for one in filters)


def _rows(one: Statement | Advertisement) -> Statement | Advertisement:
    """A live set of rows takes what its condition takes; what moved is asked for as it is."""
    return one.asked() if isinstance(one, View) else one


def _check_kind(where: str, kinds: tuple[type, ...], given: object) -> None:
    """A text, say, would otherwise be taken for something that covers nothing."""
    if not isinstance(given, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise InvalidValue(where, f"a {wanted} (see parse, advertisement)", show(given))


def _subscription_covers(
    general: Subscription, specific: Subscription, params_g: _Params, params_s: _Params
) -> bool:
    if general.change is not None:
        # What was told before decides, and that is each subscription's own.
        return False
    generals = general.filters(admit_all(params_g, "parameter"))
    specifics = specific.filters(admit_all(params_s, "parameter"))
    return filters_cover(generals, specifics)


def _pattern_covers(
    general: Pattern, specific: Pattern, params_g: _Params, params_s: _Params
) -> bool:
    """Position by position, and no shorter a window: the rule of unsubscription [SIENA §3.7].

    Not a guarantee: the wider pattern may be busy with a sequence begun earlier when the narrower
    one completes, so this must not decide what is forwarded.
    """
    if len(general.steps) != len(specific.steps):
        return False
    if general.within is not None and (specific.within is None or specific.within > general.within):
        return False
    pairs = zip(general.steps, specific.steps, strict=True)
    return all(_subscription_covers(g, s, params_g, params_s) for g, s in pairs)


def filters_cover(generals: Sequence[Filter], specifics: Sequence[Filter]) -> bool:
    """Is all that the second ones take also taken by one of the first? May wrongly say no.

    A filter that none of them covers is split and its pieces tried, up to `_PIECES_MAX` in all:
    past that the answer is no, which only costs traffic.
    """
    queue = list(specifics)
    pieces_left = _PIECES_MAX
    while queue:
        specific = queue.pop()
        domains = domains_of(specific)
        if any(filter_covers(general, specific, domains) for general in generals):
            continue
        pieces = _split(specific)
        if pieces is None or len(pieces) > pieces_left:
            return False
        pieces_left -= len(pieces)
        queue.extend(pieces)
    return True


def domains_of(one: Filter) -> dict[str, Domain]:
    """What each attribute can be under the filter, for those it asks something of."""
    asked: dict[str, list[Constraint]] = {}
    for constraint in one.constraints:
        asked.setdefault(constraint.attribute, []).append(constraint)
    return {name: Domain.of(constraints) for name, constraints in asked.items()}


def filter_covers(
    general: Filter, specific: Filter, domains: Mapping[str, Domain] | None = None
) -> bool:
    """Does every event of `specific` satisfy `general`? May wrongly say no, never wrongly yes.

    Attribute by attribute: do the values left to the specific filter satisfy the general one?
    `domains` are those of `specific`, where they were worked out before.
    """
    if domains is None:
        domains = domains_of(specific)
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
    if constraint.operator is Operator.IN:
        return tuple(
            Constraint(constraint.attribute, Operator.EQ, Literal(value))
            for value in constraint.values
        )
    return None
