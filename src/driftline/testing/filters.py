"""What filters and events might a matcher be given? Strategies that tie, and miss by one.

Values come from a few themes of near neighbours: a bound and an event that share a theme are equal,
or next to one another, every few draws. The themes are where an index can go wrong: integers that
no float has, both zeros, strings that differ behind their eighth byte, the ends of the calendar.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from driftline.model.constraint import ORDERINGS, Constraint, Operator, string_constraint
from driftline.model.event import ENVELOPE, Event
from driftline.model.expression import (
    Arithmetic,
    Elapsed,
    Environment,
    Expression,
    Literal,
    Now,
    Parameter,
)
from driftline.model.filter import Filter
from driftline.model.like import LikePattern
from driftline.model.value import INTEGER_MAX, INTEGER_MIN, Kind, Value, microseconds_of
from driftline.testing.conditions import TYPES, predicates, values

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
_TICK = timedelta(microseconds=1)

THEMES: dict[Kind, tuple[tuple[Value, ...], ...]] = {
    Kind.NUMBER: (
        (0, 1, 2, 3, 4, 5, 2.5, 3.0),
        (0, 0.0, -0.0, 5e-324, -5e-324, 1, -1),
        (2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, float(2**53), float(2**53 + 2)),
        (-(2**53) + 1, -(2**53), -(2**53) - 1, -(2**53) - 2, -float(2**53)),
        (INTEGER_MAX, INTEGER_MAX - 1, INTEGER_MAX - 1024, float(2**63), float(2**63 - 1024)),
        (INTEGER_MIN, INTEGER_MIN + 1, -float(2**63), -float(2**63 + 2048)),
        (math.inf, -math.inf, math.nan, 1e308, -1e308, INTEGER_MAX, 0),
    ),
    Kind.STRING: (
        ("", "a", "ab", "abc", "b", "ba", "A"),
        ("", "\x00", "a\x00", "a\x00b", "a", "\x00a"),
        ("abcdef", "abcdefg", "abcdefgh", "abcdefghi", "abcdefgi", "abcdefg\x00", "abcdefgha"),
        ("é", "e\u0301", "\ue000", "\ud7ff", "\U0001f600", "\U0010ffff", "a\U0010ffff"),
        ("abcdéf", "abcdéfg", "abcdeé", "abcdefé", "abcdef\U0001f600", "日本語", "日本語日"),
        ("quote", "stock", "quot", "quotes"),
    ),
    Kind.BOOLEAN: ((True, False),),
    Kind.TIME: (
        (_EPOCH, _EPOCH + _TICK, _EPOCH - _TICK, _EPOCH + 2 * _TICK),
        (datetime(1, 1, 1, tzinfo=UTC), _LAST, _LAST - _TICK, datetime(2026, 1, 1, tzinfo=UTC)),
    ),
    Kind.BYTES: (
        (b"", b"\x00", b"a", b"ab", b"a\x00", b"\xff", b"\xff\xff"),
        (b"abcdefg", b"abcdefgh", b"abcdefgh\x00", b"abcdefghi"),
    ),
}

USUAL: dict[str, Kind] = {
    "x": Kind.NUMBER,
    "y": Kind.NUMBER,
    "z": Kind.NUMBER,
    "w": Kind.NUMBER,
    "s": Kind.STRING,
    "on": Kind.BOOLEAN,
    "t": Kind.TIME,
    "b": Kind.BYTES,
}
_ENVELOPE: dict[str, Kind] = {
    "ce_type": Kind.STRING,
    "ce_id": Kind.STRING,
    "ce_source": Kind.STRING,
    "ce_time": Kind.TIME,
    "ce_entered": Kind.TIME,
}
NAMES: dict[str, Kind] = {
    "p": Kind.NUMBER,
    "p2": Kind.NUMBER,
    "q": Kind.STRING,
    "select": Kind.BOOLEAN,
    "since": Kind.TIME,
    "raw": Kind.BYTES,
}
"""The parameters, and what they usually are."""


@st.composite
def near(draw: DrawFn, kind: Kind | None = None) -> Value:
    """A value: mostly of this kind, and mostly of a theme."""
    if kind is None or draw(st.integers(0, 11)) == 11:
        kind = draw(st.sampled_from(Kind))
    if draw(st.integers(0, 9)) == 9:
        return draw(values(kind))
    return draw(st.sampled_from(draw(st.sampled_from(THEMES[kind]))))


@st.composite
def bounds(draw: DrawFn, names: frozenset[str] = frozenset(NAMES)) -> dict[str, Value]:
    """Values for these parameters."""
    found = {name: draw(near(NAMES.get(name))) for name in sorted(names)}
    return {name: value if value == value else 0 for name, value in found.items()}  # never NaN


@st.composite
def published(draw: DrawFn) -> Event:
    """An event with some of the attributes and some of the envelope."""
    names = [name for name in USUAL if draw(st.integers(0, 4)) < 4]

    def stamp() -> int | None:
        time = draw(st.none() | near(Kind.TIME))
        return microseconds_of(time) if isinstance(time, datetime) else None

    def name() -> str | None:
        text = draw(st.none() | near(Kind.STRING))
        return text if isinstance(text, str) and text else None

    return Event(
        draw(st.sampled_from((*TYPES, *TYPES, "quotes"))),
        {attribute: draw(near(USUAL[attribute])) for attribute in names},
        time=stamp(),
        id=name(),
        source=name(),
        entered=stamp(),
    )


@st.composite
def _operands(draw: DrawFn, kind: Kind, variables: bool) -> Expression:
    shape = draw(st.sampled_from(("literal",) * 7 + ("parameter",) * 4 + ("sum", "moving", "null")))
    if shape in ("parameter", "sum") and variables:
        fitting = [name for name, usual in NAMES.items() if usual is kind]
        parameter = Parameter(draw(st.sampled_from(fitting)))
        if shape == "sum":
            return Arithmetic("+", parameter, Literal(draw(near(Kind.NUMBER))))
        return parameter
    if shape == "moving" and variables:
        return draw(st.sampled_from((Now(), Elapsed(), Environment("e"))))
    if shape == "null" and draw(st.integers(0, 3)) == 3:
        return Literal(None)
    return Literal(draw(near(kind)))


def _like_patterns() -> SearchStrategy[LikePattern]:
    pieces = ("%", "%", "_", "a", "b", "ab", "abcdefg", "abcdefgh", "é", "\x00", "quote", "\\%")
    return st.lists(st.sampled_from(pieces), max_size=4).map("".join).map(LikePattern)


@st.composite
def _constraints(draw: DrawFn, variables: bool) -> tuple[Constraint, ...]:
    """A constraint on one attribute, or the two of a range, whose ends may be crossed."""
    pool = _ENVELOPE if draw(st.integers(0, 9)) == 9 else USUAL
    # Mostly two attributes, so that filters speak of the same.
    name = draw(st.sampled_from((*pool, *("x", "x", "x", "x", "s", "s") * (pool is USUAL))))
    shape = draw(st.sampled_from(("compare",) * 4 + ("range",) * 3 + ("in", "like", "there")))
    if shape == "there":
        return (Constraint(name, draw(st.sampled_from((Operator.EXISTS, Operator.ABSENT)))),)
    if shape == "like":
        name = draw(st.sampled_from(("s", "s", "s", name)))
        negated = draw(st.integers(0, 3)) == 3
        return (string_constraint(name, draw(_like_patterns()), negated),)
    operands = _operands(pool[name], variables)
    if shape == "in":
        items = tuple(draw(st.lists(operands, min_size=1, max_size=4)))
        plain = tuple(one for one in items if isinstance(one, Literal | Parameter | Environment))
        return (Constraint(name, Operator.IN, plain or (Literal(1),)),)
    if shape == "range":
        low = draw(st.sampled_from((Operator.GE, Operator.GT)))
        high = draw(st.sampled_from((Operator.LE, Operator.LT)))
        return (Constraint(name, low, draw(operands)), Constraint(name, high, draw(operands)))
    operator = draw(st.sampled_from((Operator.EQ, Operator.EQ, Operator.NE, *ORDERINGS)))
    return (Constraint(name, operator, draw(operands)),)


@st.composite
def _pairs(draw: DrawFn, variables: bool) -> tuple[Constraint, ...]:
    """One or two pairs of attributes, each with a value between them; one may lack a side.

    To such filters an event is what a filter is to other events: it has the bounds.
    """
    names = draw(st.permutations(("x", "y", "z", "w")))
    found: list[Constraint] = []
    for above, below in ((names[0], names[1]), (names[2], names[3]))[: draw(st.integers(1, 2))]:
        operand = draw(_operands(Kind.NUMBER, variables))
        strict = draw(st.sampled_from(((Operator.GT, Operator.LE), (Operator.GE, Operator.LT))))
        found += (
            Constraint(above, strict[0], operand),
            Constraint(below, strict[1], operand),
        )
    if draw(st.integers(0, 3)) == 3:
        found.pop(draw(st.integers(0, len(found) - 1)))
    return tuple(draw(st.permutations(found)))


@st.composite
def filters(draw: DrawFn, variables: bool = True) -> tuple[Filter, ...]:
    """Alternatives: mostly one filter of a few constraints, sometimes none or several."""
    found = []
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 3, 0)))):
        count = draw(st.sampled_from((1, 1, 1, 2, 2, 3, 0)))
        groups = [draw(_constraints(variables)) for _ in range(count)]
        if draw(st.integers(0, 3)) == 3:
            groups.append(draw(_pairs(variables)))
        opaque = draw(st.integers(0, 7)) == 7
        conditions = (draw(predicates(1, variables)),) if opaque else ()
        one = draw(st.sampled_from((None, None, *TYPES)))
        found.append(Filter(one, tuple(c for group in groups for c in group), conditions))
    return tuple(found)


assert {*_ENVELOPE} == {*ENVELOPE}
