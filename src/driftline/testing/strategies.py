"""What might anyone subscribe to, advertise or publish? Hypothesis strategies for all of the model.

    from driftline.testing import strategies
    strategies.subscriptions(stateful=True)

Everything drawn is canonical: `parse(str(statement)) == statement`. The strategies for values,
events and conditions are in `conditions` and can be had from here too.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from driftline.model.advertisement import Advertisement
from driftline.model.constraint import ORDERINGS, Constraint, Operator, string_constraint
from driftline.model.covering import Statement
from driftline.model.expression import TRUE, Attribute, Expression, Literal, Parameter
from driftline.model.pattern import Pattern
from driftline.model.standing import Standing
from driftline.model.subscription import Column, Crossed, Measure, Moved, Subscription
from driftline.model.value import Kind
from driftline.model.view import Aggregate, AggregateFunction, Join, View
from driftline.testing.conditions import (
    ATTRIBUTES,
    ENVELOPE_ATTRIBUTES,
    ENVIRONMENT,
    PARAMETERS,
    POOLS,
    TYPES,
    atoms,
    attributes,
    environments,
    events,
    like_patterns,
    literals,
    parameters,
    predicates,
    scalars,
    scopes,
    values,
)

__all__ = [
    "ATTRIBUTES",
    "ENVELOPE_ATTRIBUTES",
    "ENVIRONMENT",
    "PARAMETERS",
    "POOLS",
    "TYPES",
    "values",
    "events",
    "parameters",
    "environments",
    "scopes",
    "literals",
    "attributes",
    "scalars",
    "like_patterns",
    "atoms",
    "predicates",
    "changes",
    "subscriptions",
    "standings",
    "views",
    "patterns",
    "statements",
    "constraints",
    "advertisements",
]

_ALIASES = st.sampled_from((None, None, "a", "order", "it is", 'say "x"', "é"))


@st.composite
def _columns(
    draw: DrawFn, expressions: SearchStrategy[Expression], least: int
) -> tuple[Column, ...]:
    """Columns with names that differ."""
    found = draw(st.lists(st.builds(Column, expressions, _ALIASES), min_size=least, max_size=3))
    return tuple({column.name: column for column in found}.values())


@st.composite
def changes(draw: DrawFn, value: Expression | None = None) -> Moved | Crossed:
    """`moved(…)` or `crossed(…)` over an attribute or the given value, with radii that may move."""
    watched = value or draw(attributes(Kind.NUMBER))

    def bound(*constants: int | float) -> Expression:
        return draw(st.sampled_from([*map(Literal, constants), Parameter("p")]))

    if draw(st.booleans()):
        above = draw(st.booleans())
        threshold, clear = (bound(5, 2.5), bound(1, 2.5)) if above else (bound(1), bound(1, 5))
        return Crossed(watched, threshold, clear, above)
    measure = draw(st.sampled_from(Measure))
    radius = bound(2, 1.5)
    may = bound(1, 0.5) if measure is Measure.BY and draw(st.booleans()) else None
    return Moved(watched, measure, radius, may, draw(st.booleans()), draw(st.booleans()))


@st.composite
def subscriptions(draw: DrawFn, stateful: bool = False, variables: bool = True) -> Subscription:
    """A filter; `stateful` ones carry a `moved` or `crossed`."""
    expressions = scalars(depth=1, variables=variables)
    return Subscription(
        draw(_columns(expressions, 0)),
        draw(st.sampled_from((None, *TYPES))),
        draw(st.just(TRUE) | predicates(2, variables)),
        draw(changes()) if stateful else None,
    )


@st.composite
def standings(draw: DrawFn) -> Standing:
    """A stateless filter with all of its parameters bound."""
    statement = draw(subscriptions())
    bound = draw(parameters(statement.variables().parameters))
    return Standing(statement, bound, draw(st.sampled_from((0, 1_000_000))))


@st.composite
def views(draw: DrawFn) -> View:
    """Aggregates (perhaps with HAVING), DISTINCT, or a join."""
    shape = draw(st.sampled_from(("aggregate", "distinct", "join")))
    source, other = draw(st.permutations(TYPES))
    where = draw(st.just(TRUE) | predicates(1))
    if shape == "aggregate":
        function = st.sampled_from(AggregateFunction)
        whole = st.just(Aggregate(AggregateFunction.COUNT))
        columns = draw(_columns(st.builds(Aggregate, function, attributes()) | whole, 1))
        having = changes(columns[0].expression) if draw(st.booleans()) else st.none()
        return View(columns, source, where, having=draw(having))
    columns = draw(_columns(scalars(depth=1), 1))
    if shape == "distinct":
        return View(columns, source, where, distinct=True)
    sides = draw(st.sampled_from((TYPES, TYPES[::-1])))
    qualified = tuple(Column(_qualify(c.expression, sides), c.alias) for c in columns)
    on = _qualify(draw(predicates(1)), sides)
    return View(qualified, source, _qualify(where, sides), join=Join(other, on))


def _qualify(node: Expression, tables: tuple[str, ...]) -> Expression:
    """The expression with each attribute said of one table, by turns of the attributes' names."""
    if isinstance(node, Attribute):
        return Attribute(node.name, tables[len(node.name) % 2])
    return node.rebuilt(tuple(_qualify(child, tables) for child in node.children()))


@st.composite
def patterns(draw: DrawFn) -> Pattern:
    """Two to four filters, perhaps bounded in time."""
    steps = draw(st.lists(subscriptions(), min_size=2, max_size=4))
    return Pattern(tuple(steps), draw(st.sampled_from((None, 1, 2.5, 60))))


def statements() -> SearchStrategy[Statement]:
    """Anything that `parse` can give."""
    plain = st.one_of(subscriptions(), subscriptions(stateful=True))
    return st.one_of(plain, views(), patterns())


@st.composite
def constraints(draw: DrawFn, attribute: str) -> tuple[Constraint, ...]:
    """One alternative of an advertisement: a constraint, or the two of BETWEEN."""
    kind = ATTRIBUTES.get(attribute, Kind.STRING)
    shape = draw(st.sampled_from(("compare", "compare", "between", "like", "exists")))
    if shape == "exists":
        return (Constraint(attribute, Operator.EXISTS),)
    if shape == "like":
        return (string_constraint(attribute, draw(like_patterns())),)
    if shape == "between":
        low, high = draw(literals(kind)), draw(literals(kind))
        return (
            Constraint(attribute, Operator.GE, low),
            Constraint(attribute, Operator.LE, high),
        )
    operator = draw(st.sampled_from((Operator.EQ, Operator.NE, *ORDERINGS)))
    return (Constraint(attribute, operator, draw(literals(kind))),)


@st.composite
def advertisements(draw: DrawFn) -> Advertisement:
    """For some attributes, one to three alternatives each."""
    names = draw(st.lists(st.sampled_from(sorted(ATTRIBUTES)), unique=True))
    found = []
    for name in names:
        options = draw(st.lists(constraints(name), min_size=1, max_size=3, unique=True))
        found.append((name, tuple(options)))
    return Advertisement(draw(st.sampled_from((None, *TYPES))), tuple(found))
