"""Do rewritings of a condition keep its meaning, in all three truths?"""

from __future__ import annotations

from itertools import pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from driftline import Event
from driftline.model.comparison import COMPARISONS
from driftline.model.expression import Attribute, Expression, Literal
from driftline.model.filter import FILTERS_MAX, filters_of
from driftline.model.predicate import (
    And,
    Between,
    Comparison,
    In,
    Not,
    Or,
    conjunction,
    conjuncts,
    truth_of,
)
from driftline.model.scope import Scope
from driftline.model.subscription import Subscription
from driftline.model.truth import Outcome, Unknown
from driftline.model.value import same
from driftline.model.variables import bind, fold, variables_of
from driftline.testing import strategies


def alike(a: Outcome, b: Outcome) -> bool:
    """The very same value, or both unknown (for whatever reason)."""
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return isinstance(a, Unknown) and isinstance(b, Unknown)
    return same(a, b)


def truth(condition: Expression, scope: Scope) -> bool | None:
    found = truth_of(condition.evaluate(scope))
    return None if isinstance(found, Unknown) else found


def naive_and(truths: list[bool | None]) -> bool | None:
    """Kleene's table, by the order false < unknown < true."""
    return min(truths, key=lambda one: {False: 0, None: 1, True: 2}[one])


@given(strategies.predicates(depth=3), strategies.scopes())
def test_a_condition_is_true_exactly_when_one_of_its_filters_is(where, scope) -> None:
    filters = filters_of(None, where)
    assert any(one.matches(scope) for one in filters) is (where.evaluate(scope) is True)
    assert len(filters) <= FILTERS_MAX


@given(strategies.subscriptions(), strategies.scopes())
def test_a_subscription_with_its_parameters_bound_matches_by_its_filters(wanted, scope) -> None:
    params = {name: scope.params[name] for name in scope.params}
    expected = wanted.truth(scope) is True
    assert any(one.matches(scope) for one in wanted.filters(params)) is expected
    if scope.elapsed is not None:
        assert wanted.matches(scope.event, params, scope.env, scope.elapsed) is expected


@given(st.lists(strategies.predicates(depth=1), min_size=9, max_size=12), strategies.scopes())
def test_a_condition_too_wide_to_spread_keeps_its_meaning(parts, scope) -> None:
    where = And(tuple(Or((part, Not(part), parts[0])) for part in parts))
    filters = filters_of(None, where)
    assert len(filters) <= FILTERS_MAX
    assert any(one.matches(scope) for one in filters) is (where.evaluate(scope) is True)
    negation = filters_of(None, Not(where))
    assert len(negation) <= FILTERS_MAX
    assert any(one.matches(scope) for one in negation) is (where.evaluate(scope) is False)


@given(strategies.predicates(depth=2), strategies.scopes())
def test_no_event_satisfies_a_condition_and_its_negation(where, scope) -> None:
    positive = any(one.matches(scope) for one in filters_of(None, where))
    negative = any(one.matches(scope) for one in filters_of(None, Not(where)))
    assert not (positive and negative)
    assert negative is (where.evaluate(scope) is False)


@given(strategies.scalars(depth=3) | strategies.predicates(depth=2), strategies.scopes())
def test_fold_keeps_the_value_and_whether_there_is_one(expression, scope) -> None:
    assert alike(expression.evaluate(scope), fold(expression).evaluate(scope))
    assert fold(fold(expression)) == fold(expression)


@given(strategies.scalars(depth=3) | strategies.predicates(depth=2), strategies.scopes())
def test_bind_keeps_the_value_and_leaves_no_bound_parameter(expression, scope) -> None:
    bound = bind(expression, scope.params)
    assert alike(expression.evaluate(scope), bound.evaluate(scope))
    without = Scope(scope.event, {}, scope.env, scope.now_us, scope.elapsed)
    assert alike(expression.evaluate(scope), bound.evaluate(without))
    assert not variables_of(bound).parameters & scope.params.keys()


@given(st.lists(strategies.predicates(depth=1), min_size=2, max_size=4), strategies.scopes())
def test_and_and_or_follow_kleenes_tables(parts, scope) -> None:
    truths = [truth(part, scope) for part in parts]
    assert truth(And(tuple(parts)), scope) is naive_and(truths)
    opposite = {True: False, False: True, None: None}
    either = opposite[naive_and([opposite[one] for one in truths])]
    assert truth(Or(tuple(parts)), scope) is either
    # De Morgan, double negation, and the order of the parts changes nothing.
    assert truth(Not(And(tuple(parts))), scope) is truth(Or(tuple(map(Not, parts))), scope)
    assert truth(Not(Not(parts[0])), scope) is truths[0]
    assert truth(And(tuple(reversed(parts))), scope) is naive_and(truths)


@given(strategies.predicates(depth=2))
def test_the_parts_of_a_conjunction_make_it_again(where) -> None:
    assert conjunction(conjuncts(where)) == where


@given(strategies.subscriptions(variables=False), strategies.events())
def test_without_variables_only_the_event_decides(wanted: Subscription, event) -> None:
    assert not wanted.variables()
    assert wanted.matches(event) is wanted.matches(event, {"p": 1}, {"e": 2}, 3.0, now=4)


def test_every_comparison_and_its_negation_is_spread_exactly_also_on_ties() -> None:
    """Chance rarely draws a tie, so here each value meets each constant, in all ways."""
    x = Attribute("x")
    for kind, pool in strategies.POOLS.items():
        scopes = [Scope(Event("quote", {"x": value})) for value in pool]
        constants = [Literal(value) for value in pool if value == value]
        pairs = list(product(sorted(COMPARISONS), constants))
        wheres = [Comparison(sign, x, constant) for sign, constant in pairs]
        wheres += [Comparison(sign, constant, x) for sign, constant in pairs]
        wheres += [In(x, (constant,)) for constant in constants]
        wheres += [Between(x, low, high) for low, high in pairwise(constants)]
        for where in (*wheres, *map(Not, wheres)):
            filters = filters_of(None, where)
            for scope in scopes:
                found = any(one.matches(scope) for one in filters)
                assert found is (where.evaluate(scope) is True), (kind, str(where), scope.event)
