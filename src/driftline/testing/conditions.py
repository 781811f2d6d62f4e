"""What might anyone publish, or ask of an event? Strategies for values, events and conditions.

Names and values come from small pools, so that two draws often speak of the same attribute, tie,
or miss by one. Each attribute has a kind it usually holds and is usually compared with; now and
then it is another, because mixed kinds are where mistakes hide.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from driftline.model.comparison import COMPARISONS
from driftline.model.event import Event
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
from driftline.model.functions import FUNCTIONS
from driftline.model.like import LikePattern
from driftline.model.predicate import And, Between, Comparison, In, IsNull, Like, Not, Or
from driftline.model.scope import Scope
from driftline.model.value import INTEGER_MAX, INTEGER_MIN, Kind, Value

TYPES = ("quote", "stock")
ATTRIBUTES: dict[str, Kind] = {
    "x": Kind.NUMBER,
    "y": Kind.NUMBER,
    "s": Kind.STRING,
    "on": Kind.BOOLEAN,
    "t": Kind.TIME,
    "b": Kind.BYTES,
}
ENVELOPE_ATTRIBUTES: dict[str, Kind] = {
    "ce_type": Kind.STRING,
    "ce_id": Kind.STRING,
    "ce_time": Kind.TIME,
}
PARAMETERS: dict[str, Kind] = {"p": Kind.NUMBER, "q": Kind.STRING, "select": Kind.BOOLEAN}
ENVIRONMENT: dict[str, Kind] = {"e": Kind.NUMBER, "it's": Kind.STRING}
ZONES = ("UTC", "Europe/Berlin", "Asia/Kolkata")

STAMPS_US = (0, 1, 1_000_000, 1_767_225_600_000_000, 253_402_300_799_999_999)

POOLS: dict[Kind, tuple[Value, ...]] = {
    Kind.NUMBER: (
        *(0, 1, 2, 3, -1, 5, 0.0, -0.0, 0.5, 1.0, 2.5, 3.0),
        *(2**53, 2**53 + 1, float(2**53), INTEGER_MAX, INTEGER_MIN, float(2**63), -float(2**63)),
        *(5e-324, 1e308, -1e308, math.inf, -math.inf, math.nan),
    ),
    Kind.STRING: (
        *("", "a", "ab", "abc", "b", "ba", "aab", "A", "quote", "stock"),
        *("%", "_", "a%b", "\\", "it's", 'a"b', "a\nb", "\r\n", "\x00", "--", "/*", ":p", "\ud7ff"),
        *("é", "e\u0301", "\ue000", "\U0001f600", "a\U0001f600", "\U0010ffff", "a\U0010ffff"),
    ),
    Kind.BOOLEAN: (True, False),
    Kind.TIME: (
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ),
    Kind.BYTES: (b"", b"a", b"ab", b"\x00", b"\xff", b"'"),
}

_WILD: dict[Kind, SearchStrategy[Value]] = {
    Kind.NUMBER: st.integers(INTEGER_MIN, INTEGER_MAX) | st.floats(),
    Kind.STRING: st.text(max_size=12),
    Kind.BOOLEAN: st.booleans(),
    Kind.TIME: st.datetimes(timezones=st.just(UTC)),
    Kind.BYTES: st.binary(max_size=8),
}


@st.composite
def values(draw: DrawFn, kind: Kind | None = None, finite: bool = False) -> Value:
    """Any value: mostly from the pools, sometimes far from them.

    `finite` leaves out NaN and the infinities, which no text can spell.
    """
    chosen = kind or draw(st.sampled_from(Kind))
    pool = st.sampled_from(POOLS[chosen])
    value = draw(_WILD[chosen] if draw(st.integers(0, 7)) == 7 else pool)
    if finite and isinstance(value, float) and not math.isfinite(value):
        return 2.5
    return value


def _usually(kind: Kind) -> SearchStrategy[Kind]:
    return st.sampled_from((*((kind,) * 9), *Kind))


@st.composite
def events(draw: DrawFn, stamped: bool = True) -> Event:
    """An event with some of the attributes; `stamped` ones have a time and an entry stamp."""
    names = draw(st.lists(st.sampled_from(sorted(ATTRIBUTES)), unique=True))
    attributes = {name: draw(values(draw(_usually(ATTRIBUTES[name])))) for name in names}
    return Event(
        draw(st.sampled_from(TYPES)),
        attributes,
        time=draw(st.sampled_from(STAMPS_US) if stamped else st.none()),
        id=draw(st.sampled_from((None, "a", "ab"))),
        entered=draw(st.sampled_from(STAMPS_US) if stamped else st.none()),
    )


@st.composite
def parameters(draw: DrawFn, names: frozenset[str] | None = None) -> dict[str, Value]:
    """Values for these parameters, or for some of those that `scalars` speaks of."""
    if names is None:
        names = draw(st.frozensets(st.sampled_from(sorted(PARAMETERS))))
    found = {}
    for name in sorted(names):
        value = draw(values(draw(_usually(PARAMETERS.get(name, Kind.NUMBER)))))
        found[name] = value if value == value else 0  # a parameter is never NaN
    return found


@st.composite
def environments(draw: DrawFn) -> dict[str, Value]:
    """Some of the environment, whose values may be anything."""
    names = draw(st.lists(st.sampled_from(sorted(ENVIRONMENT)), unique=True))
    return {name: draw(values(draw(_usually(ENVIRONMENT[name])))) for name in names}


@st.composite
def scopes(draw: DrawFn) -> Scope:
    """An event with parameters, environment and elapsed time, each perhaps wanting."""
    elapsed = draw(st.sampled_from((None, 0.0, 1.0, 2.5)))
    event = draw(events(stamped=draw(st.booleans())))
    return Scope(event, draw(parameters()), draw(environments()), elapsed=elapsed)


def literals(kind: Kind | None = None) -> SearchStrategy[Literal]:
    """A constant that a text can spell."""
    return values(kind, finite=True).map(Literal)


@st.composite
def attributes(draw: DrawFn, kind: Kind | None = None) -> Attribute:
    """An attribute that usually holds this kind; now and then one of the envelope."""
    pool = {**ATTRIBUTES, **ENVELOPE_ATTRIBUTES} if draw(st.integers(0, 5)) == 5 else ATTRIBUTES
    names = sorted(name for name, usual in pool.items() if kind in (None, usual))
    return Attribute(draw(st.sampled_from(names or sorted(ATTRIBUTES))))


_FUNCTIONS_OF: dict[Kind, tuple[str, ...]] = {
    Kind.NUMBER: tuple(sorted(FUNCTIONS)),
    Kind.STRING: ("min", "max"),
    Kind.BOOLEAN: ("min", "max"),
    Kind.TIME: ("min", "max"),
    Kind.BYTES: ("min", "max"),
}


@st.composite
def scalars(
    draw: DrawFn, kind: Kind | None = None, depth: int = 2, variables: bool = True
) -> Expression:
    """An expression that usually has a value of this kind; of every node type there is."""
    kind = kind or draw(st.sampled_from(Kind))
    if draw(st.integers(0, 11)) == 11:
        kind = draw(st.sampled_from(Kind))
    shape = draw(st.sampled_from(("attribute", "literal", "variable", "node", "node")))
    if shape == "attribute":
        return draw(attributes(kind))
    if shape == "variable" and variables:
        return draw(_variables(kind))
    if shape == "node" and depth > 0:
        return draw(_nodes(kind, depth - 1, variables))
    return draw(literals(kind))


@st.composite
def _variables(draw: DrawFn, kind: Kind) -> Expression:
    fitting: list[Expression] = [Parameter(n) for n, usual in PARAMETERS.items() if usual is kind]
    fitting += [Environment(name) for name, usual in ENVIRONMENT.items() if usual is kind]
    fitting += [Now()] * (kind is Kind.TIME) + [Elapsed()] * (kind is Kind.NUMBER)
    return draw(st.sampled_from(fitting or [Parameter("p")]))


@st.composite
def _nodes(draw: DrawFn, kind: Kind, depth: int, variables: bool) -> Expression:
    def inner(of: Kind) -> Expression:
        return draw(scalars(of, depth, variables))

    shapes = ["call", "coalesce", "case", "null"]
    shapes += ["arithmetic", "arithmetic", "negate", "difference"] * (kind is Kind.NUMBER)
    shape = draw(st.sampled_from(shapes))
    if shape == "arithmetic":
        return Arithmetic(draw(st.sampled_from("+-*/")), inner(kind), inner(kind))
    if shape == "difference":
        return Arithmetic("-", inner(Kind.TIME), inner(Kind.TIME))
    if shape == "negate":
        return Negate(inner(kind))
    if shape == "null":
        return Literal(None)
    if shape == "coalesce":
        return Coalesce((inner(kind), inner(kind))[: draw(st.integers(1, 2))])
    if shape == "case":
        condition = draw(predicates(depth, variables))
        otherwise = inner(kind) if draw(st.booleans()) else Literal(None)
        return Case(((condition, inner(kind)),) * draw(st.integers(1, 2)), otherwise)
    return _call(draw, draw(st.sampled_from(_FUNCTIONS_OF[kind])), kind, depth, variables)


def _call(draw: DrawFn, name: str, kind: Kind, depth: int, variables: bool) -> Expression:
    if name in ("hour", "minute", "weekday"):
        time = draw(scalars(Kind.TIME, depth, variables))
        zone = (Literal(draw(st.sampled_from(ZONES))),) if draw(st.booleans()) else ()
        return Call(name, (time, *zone))
    count = draw(st.integers(2, 3)) if name in ("min", "max") else 1
    return Call(name, tuple(draw(scalars(kind, depth, variables)) for _ in range(count)))


def like_patterns() -> SearchStrategy[LikePattern]:
    """Patterns over the letters of the string pool."""
    pieces = st.sampled_from(("%", "_", "a", "b", "ab", "\\%", "\\_", "\\\\", "é", "\U0010ffff"))
    return st.lists(pieces, max_size=5).map("".join).map(LikePattern)


@st.composite
def atoms(draw: DrawFn, depth: int = 1, variables: bool = True) -> Expression:
    """A condition without AND, OR and NOT; usually one attribute against constants."""
    attribute = draw(attributes())
    kind = {**ATTRIBUTES, **ENVELOPE_ATTRIBUTES}[attribute.name]

    def bound() -> Expression:
        if depth > 0 and draw(st.integers(0, 4)) == 4:
            return draw(scalars(kind, depth, variables))
        return draw(literals(draw(_usually(kind))))

    shape = draw(st.sampled_from(("compare",) * 5 + ("between", "in", "like", "null", "truth")))
    operand: Expression = attribute
    if depth > 0 and draw(st.integers(0, 7)) == 7:
        operand = draw(scalars(kind, depth, variables))
    if shape == "between":
        return Between(operand, bound(), bound())
    if shape == "in":
        item = literals(draw(_usually(kind))) | (_variables(kind) if variables else literals())
        items = draw(st.lists(item, min_size=1, max_size=3))
        plain = (Literal, Parameter, Environment)
        return In(operand, tuple(i if isinstance(i, plain) else Literal(1) for i in items))
    if shape == "like":
        return Like(draw(attributes(Kind.STRING)), draw(like_patterns()))
    if shape == "null":
        return IsNull(attribute)
    if shape == "truth":
        switches = [Attribute("on"), Literal(True), Literal(False), Literal(None)]
        return draw(st.sampled_from(switches + [Parameter("select")] * variables))
    sides = (operand, bound()) if draw(st.booleans()) else (bound(), operand)
    return Comparison(draw(st.sampled_from(sorted(COMPARISONS))), *sides)


@st.composite
def predicates(draw: DrawFn, depth: int = 2, variables: bool = True) -> Expression:
    """A condition of every node type; without `variables` only the event decides."""
    shape = draw(st.sampled_from(("atom", "and", "or", "not"))) if depth > 0 else "atom"
    if shape == "atom":
        return draw(atoms(1, variables))
    if shape == "not":
        return Not(draw(predicates(depth - 1, variables)))
    inner = st.lists(predicates(depth - 1, variables), min_size=2, max_size=3)
    return And(tuple(draw(inner))) if shape == "and" else Or(tuple(draw(inner)))
