"""Does `covers` never wrongly say yes, and `intersects` never wrongly no?"""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from driftline import Event, covers, intersects
from driftline.model.advertisement import Advertisement
from driftline.model.comparison import COMPARISONS
from driftline.model.constraint import Constraint, Operator
from driftline.model.covering import filters_cover
from driftline.model.domain import Domain, pattern_implies, successor
from driftline.model.expression import Attribute, Literal
from driftline.model.like import LikePattern
from driftline.model.predicate import And, Between, Comparison, In, IsNull, Like, Not, Or
from driftline.model.subscription import Subscription
from driftline.testing import strategies

STRINGS = ["".join(letters) for n in range(5) for letters in product("ab\U0010ffff", repeat=n)]
VALUES = [
    None,
    *(value for pool in strategies.POOLS.values() for value in pool),
    *STRINGS,
]


@st.composite
def constraints_on_x(draw) -> object:
    """A condition on x alone: numbers and strings near one another, sometimes another kind."""
    x = Attribute("x")
    numbers = st.sampled_from((0, 1, 2, 2.5, 3, -0.0, 2**53 + 1, float(2**53))).map(Literal)
    strings = st.sampled_from(("", "a", "ab", "aa", "b", "a\U0010ffff", "\U0010ffff")).map(Literal)
    constants = draw(st.sampled_from((numbers, numbers, strings, strings, strategies.literals())))
    shape = draw(st.sampled_from(("compare",) * 4 + ("between", "in", "like", "like", "null")))
    if shape == "between":
        part = Between(x, draw(constants), draw(constants))
    elif shape == "in":
        part = In(x, tuple(draw(st.lists(constants, min_size=1, max_size=3))))
    elif shape == "like":
        part = Like(x, draw(strategies.like_patterns()))
    elif shape == "null":
        part = IsNull(x)
    else:
        part = Comparison(draw(st.sampled_from(sorted(COMPARISONS))), x, draw(constants))
    return Not(part) if draw(st.integers(0, 3)) == 3 else part


@st.composite
def conditions_on_x(draw) -> object:
    parts = tuple(draw(st.lists(constraints_on_x(), min_size=1, max_size=3)))
    if len(parts) == 1:
        return parts[0]
    return draw(st.sampled_from((And, And, Or)))(parts)


def matched(where) -> set[int]:
    """Which of the values the condition is true of, by its definition."""
    wanted = Subscription(where=where)
    found = set()
    for at, value in enumerate(VALUES):
        if wanted.matches(Event("quote", {"x": value})):
            found.add(at)
    return found


def _plain_constraints() -> list[object]:
    """Every operator with constants that tie: what chance rarely draws in pairs."""
    x = Attribute("x")
    constants = [Literal(value) for value in (0, 1, 1.0, 2.5, "", "a", "ab", True, False)]
    patterns = ("%", "a%", "%a", "%a%", "ab%", "a_", "_%", "%ab%", "%a%b%", "a\\%")
    plain = [Comparison(sign, x, one) for sign in COMPARISONS for one in constants]
    plain += [Like(x, LikePattern(text)) for text in patterns]
    plain += [In(x, (Literal(0), Literal("a"))), IsNull(x), Between(x, Literal(0), Literal(1))]
    return [*plain, *map(Not, plain)]


def test_covers_is_never_wrongly_yes_for_any_two_plain_constraints() -> None:
    plain = [(Subscription(where=where), matched(where)) for where in _plain_constraints()]
    for (general, wide), (specific, narrow) in product(plain, repeat=2):
        assert narrow <= wide or not covers(general, specific), (str(general), str(specific))


@settings(max_examples=500)
@given(conditions_on_x(), conditions_on_x())
def test_covers_is_never_wrongly_yes_for_one_attribute(general, specific) -> None:
    if covers(Subscription(where=general), Subscription(where=specific)):
        lost = matched(specific) - matched(general)
        assert not lost, VALUES[min(lost)]


@given(conditions_on_x())
def test_a_domain_holds_all_values_that_satisfy_its_constraints(where) -> None:
    """The superset that `empty` and `implies` reason about is one."""
    for one in Subscription(where=where).filters():
        domain = Domain.of(one.on("x"))
        for value in VALUES:
            if all(part.satisfied_by(value) for part in one.constraints):
                assert not domain.empty
                assert domain.values is None or any(value == other for other in domain.values)


@settings(max_examples=250)
@given(
    strategies.subscriptions(variables=False),
    strategies.subscriptions(variables=False),
    st.lists(strategies.events(), min_size=1, max_size=12),
)
def test_covers_is_never_wrongly_yes_for_subscriptions(general, specific, events) -> None:
    # The conjunction is covered by each of its parts far more often than chance would have it.
    both = Subscription(where=And((specific.where, general.where)), source=specific.source)
    for narrow in (specific, both):
        if covers(general, narrow):
            for event in events:
                assert general.matches(event) or not narrow.matches(event), event


@given(strategies.subscriptions(), strategies.subscriptions(), st.data())
def test_covers_with_parameters_is_never_wrongly_yes(general, specific, data) -> None:
    params = [
        data.draw(strategies.parameters(one.variables().parameters)) for one in (general, specific)
    ]
    if covers(general, specific, *params):
        env = data.draw(strategies.environments())
        for event in data.draw(st.lists(strategies.events(), max_size=8)):
            # `elapsed()` is each subscription's own, so any two values of it must do.
            if specific.matches(event, params[1], env, 0.0):
                assert general.matches(event, params[0], env, 2.5)


@given(strategies.subscriptions(), strategies.events(), strategies.environments(), st.data())
def test_covers_without_parameters_holds_whatever_they_are(wanted, event, env, data) -> None:
    if covers(wanted, wanted):
        names = wanted.variables().parameters
        one, other = (data.draw(strategies.parameters(names)) for _ in range(2))
        if wanted.matches(event, one, env, 0.0):
            assert wanted.matches(event, other, env, 2.5)


@given(strategies.subscriptions())
def test_a_subscription_covers_itself_unless_variables_of_its_own_decide(wanted) -> None:
    if not wanted.variables().private:
        assert covers(wanted, wanted)


@given(strategies.patterns())
def test_a_pattern_covers_itself_unless_variables_of_its_own_decide(wanted) -> None:
    if not wanted.variables().private:
        assert covers(wanted, wanted)


@given(strategies.subscriptions(stateful=True), strategies.subscriptions(stateful=True))
def test_what_depends_on_what_was_told_covers_nothing(general, specific) -> None:
    assert not covers(general, specific)
    assert not covers(general, general)


@given(conditions_on_x(), conditions_on_x(), conditions_on_x())
def test_what_one_filter_of_several_covers_the_several_cover(first, second, specific) -> None:
    either = Subscription(where=Or((first, second)))
    for narrow in Subscription(where=specific).filters():
        if filters_cover(Subscription(where=first).filters(), [narrow]):
            assert filters_cover(either.filters(), [narrow])


@settings(max_examples=250)
@given(strategies.advertisements(), strategies.advertisements(), st.data())
def test_covers_between_advertisements_is_never_wrongly_yes(general, specific, data) -> None:
    joined = Advertisement(
        None, tuple((n, (*o, *specific.alternatives(n))) for n, o in general.attributes)
    )
    for wide, narrow in ((general, specific), (joined, general)):
        if covers(wide, narrow):
            event = data.draw(strategies.events())
            assert wide.covers(event) or not narrow.covers(event)
    assert covers(general, general)


@st.composite
def advertised_events(draw) -> tuple[Advertisement, Event]:
    """An event, and an advertisement that covers it in one way among others."""
    event = draw(strategies.events())
    found = []
    for name, value in event.attributes.items():
        sure = [(Constraint(name, Operator.EXISTS),)]
        if value == value:
            sure.append((Constraint(name, Operator.EQ, Literal(value)),))
            between = (Operator.GE, Operator.LE)
            sure.append(tuple(Constraint(name, side, Literal(value)) for side in between))
        options = [draw(st.sampled_from(sure)), *draw(st.lists(strategies.constraints(name)))]
        found.append((name, tuple(options)))
    return Advertisement(draw(st.sampled_from((None, event.type))), tuple(found)), event


def test_intersects_is_never_wrongly_no_for_any_two_plain_constraints() -> None:
    plain = [Subscription(where=where) for where in _plain_constraints()]
    taken = {wanted: matched(wanted.where) for wanted in plain}
    missing = VALUES.index(None)
    for says, wanted in product(plain, repeat=2):
        options = tuple(one.constraints for one in says.filters())
        advertised = Advertisement(None, (("x", options),))
        # An advertisement never makes a publisher send the attribute, so it may be missing too.
        if taken[wanted] & (taken[says] | {missing}):
            assert intersects(advertised, wanted), (str(says), str(wanted))
        # The envelope is not advertised, and so asking about it rules nothing out.
        named = Comparison("=", Attribute("ce_id"), Literal("7"))
        if intersects(advertised, wanted):
            assert intersects(advertised, Subscription(where=And((wanted.where, named))))


@settings(max_examples=250)
@given(advertised_events(), strategies.subscriptions(), st.data())
def test_intersects_is_never_wrongly_no(advertised_event, wanted, data) -> None:
    advertised, event = advertised_event
    assert advertised.covers(event)
    params = data.draw(strategies.parameters(wanted.variables().parameters))
    if wanted.matches(event, params, data.draw(strategies.environments())):
        assert intersects(advertised, wanted, params)
        assert intersects(advertised, wanted)


@given(strategies.like_patterns(), strategies.like_patterns())
def test_a_pattern_said_to_imply_another_takes_no_other_strings(specific, general) -> None:
    if pattern_implies(specific, general):
        for text in (*STRINGS, "%", "_", "a%b", "\\", "é", "aé"):
            assert general.matches(text) or not specific.matches(text), text


@given(st.text(max_size=3) | st.sampled_from(STRINGS), st.text(max_size=3))
def test_the_successor_of_a_prefix_is_above_all_that_begins_with_it(prefix, rest) -> None:
    after = successor(prefix)
    if after is None:
        assert set(prefix) <= {"\U0010ffff"}
    else:
        assert prefix + rest < after
        assert not after.startswith(prefix)
        after.encode()
