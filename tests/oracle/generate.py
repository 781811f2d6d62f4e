"""Which random subscriptions and events are worth comparing two implementations on?

`pairs(seed)` gives subscriptions and events over a handful of attributes, each of one type, so that
an engine with SQL's semantics agrees on every answer, and with values so few that equalities hold,
bounds are met exactly and attributes are missing often enough. Arithmetic stays far inside
64 bits; the attribute `big`, around 2^53 and the ends of 64 bits, is compared but not computed
with. There is no NaN (SQL has none) and nothing depends on time or environment.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from driftline.language.records import Record
from driftline.model.event import Event
from driftline.model.expression import (
    Arithmetic,
    Attribute,
    Call,
    Case,
    Coalesce,
    Expression,
    Literal,
    Negate,
    Parameter,
)
from driftline.model.like import LikePattern
from driftline.model.predicate import And, Between, Comparison, In, IsNull, Like, Not, Or
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.value import Kind, Value

FILTERS, EVENTS = 1000, 200

COLUMNS: dict[str, Kind] = {
    "i": Kind.NUMBER,
    "j": Kind.NUMBER,
    "f": Kind.NUMBER,
    "big": Kind.NUMBER,
    "s": Kind.STRING,
    "u": Kind.STRING,
    "flag": Kind.BOOLEAN,
    "t": Kind.TIME,
    "t2": Kind.TIME,
    "raw": Kind.BYTES,
}
TYPES = ("quote", "trade")

_MISSING = 0.25
_SIGNS = ("=", "!=", "<", "<=", ">", ">=")
_WORDS = ("", *"a ab abc b B ba a% a_c a\\b it's é \uff5e \U0001f600".split())
_PATTERNS = (
    *("", "%", "_", "_%", "a%", "A%", "%b", "%c", "%b%", "%a%b%", "_b%", "a_c", "a__", "abc"),
    *("a\\%", "a\\_c", "a\\\\%", "%\\%", "é", "\U0001f600"),
)
_BIG = (2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, -(2**53), 2**63 - 1, -(2**63), 0)
_WIDE = (float(2**53), float(2**53 + 2), -float(2**53), float(2**63), -float(2**63), 0.5)
_START = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def pairs(
    seed: int, filters: int = FILTERS, events: int = EVENTS
) -> tuple[list[Record], list[Event]]:
    """Subscriptions and events, the same for the same seed."""
    rng = random.Random(seed)
    return [record(rng, str(n)) for n in range(filters)], [event(rng) for _ in range(events)]


def event(rng: random.Random) -> Event:
    """An event with a value for most attributes."""
    values = {
        name: None if rng.random() < _MISSING else _value(rng, name, kind)
        for name, kind in COLUMNS.items()
    }
    return Event(rng.choice(TYPES), values, time=0, entered=0)


def record(rng: random.Random, id: str) -> Record:
    """A subscription with all its parameters bound."""
    maker = _Maker(rng)
    where = maker.condition(rng.choice((1, 2, 2, 3)))
    source = rng.choice((None, None, None, None, *TYPES))
    return Record(id, Standing.of(Subscription((), source, where), maker.params))


def _value(rng: random.Random, name: str, kind: Kind) -> Value:
    if name == "big":
        return rng.choice(_BIG)
    if name == "f" and rng.random() < 0.03:
        return rng.choice((float("inf"), float("-inf")))
    return _constant(rng, kind, fraction=name == "f")


def _constant(rng: random.Random, kind: Kind, fraction: bool = False) -> Value:
    """A value from the few that events have too. Fractions are exact in binary."""
    if kind is Kind.NUMBER:
        return rng.randint(-12, 12) / 4 if fraction else rng.randint(-5, 5)
    if kind is Kind.STRING:
        return rng.choice(_WORDS)
    if kind is Kind.BOOLEAN:
        return rng.random() < 0.5
    if kind is Kind.TIME:
        return _START + timedelta(microseconds=rng.randint(-3, 3) * 250_000)
    return bytes(rng.choices((0, 1, 255), k=rng.randint(0, 2)))


class _Maker:
    """Builds one condition, and collects the parameters it uses."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.params: dict[str, Value] = {}

    def condition(self, depth: int) -> Expression:
        """A condition of so many levels of AND, OR and NOT."""
        if depth == 0:
            return self._test()
        roll = self.rng.random()
        if roll < 0.40:
            return And(self._some(depth))
        if roll < 0.75:
            return Or(self._some(depth))
        if roll < 0.87:
            return Not(self.condition(depth - 1))
        return self.condition(depth - 1)

    def _some(self, depth: int) -> tuple[Expression, ...]:
        return tuple(self.condition(depth - 1) for _ in range(self.rng.randint(2, 3)))

    def _test(self) -> Expression:
        kind = self.rng.choice((Kind.NUMBER, Kind.NUMBER, Kind.NUMBER, Kind.STRING, *Kind))
        tests: Sequence[Callable[[Kind], Expression]] = (
            self._comparison,
            self._comparison,
            self._equality,
            self._between,
            self._in,
            self._null,
            self._like if kind is Kind.STRING else self._comparison,
            self._truth if kind is Kind.BOOLEAN else self._comparison,
            self._big if kind is Kind.NUMBER else self._equality,
        )
        return self.rng.choice(tests)(kind)

    def _comparison(self, kind: Kind) -> Expression:
        return Comparison(self.rng.choice(_SIGNS), self._term(kind, 2), self._term(kind, 1))

    def _equality(self, kind: Kind) -> Expression:
        return Comparison("=", self._attribute(kind), self._leaf(kind))

    def _between(self, kind: Kind) -> Expression:
        return Between(self._term(kind, 1), self._term(kind, 1), self._term(kind, 1))

    def _in(self, kind: Kind) -> Expression:
        items = tuple(self._leaf(kind) for _ in range(self.rng.randint(1, 4)))
        return In(self._term(kind, 1), items)

    def _null(self, kind: Kind) -> Expression:
        test = IsNull(self._attribute(kind))
        return Not(test) if self.rng.random() < 0.7 else test

    def _like(self, kind: Kind) -> Expression:
        return Like(self._term(kind, 1), LikePattern(self.rng.choice(_PATTERNS)))

    def _truth(self, kind: Kind) -> Expression:
        return self._term(kind, 1)

    def _big(self, kind: Kind) -> Expression:
        bound = self.rng.choice((*_BIG, *_WIDE, *_WIDE))
        return Comparison(self.rng.choice(_SIGNS), Attribute("big"), Literal(bound))

    def _term(self, kind: Kind, depth: int) -> Expression:
        """A value of this kind, computed through at most so many levels."""
        roll = self.rng.random()
        if depth == 0 or roll < 0.45:
            return self._attribute(kind) if self.rng.random() < 0.7 else self._leaf(kind)
        if roll < 0.80:
            if kind is Kind.NUMBER:
                return self._number(depth)
            if kind is Kind.BOOLEAN:
                return self._test()
        inner = tuple(self._term(kind, depth - 1) for _ in range(self.rng.randint(2, 3)))
        if roll < 0.87:
            return Coalesce(inner)
        if roll < 0.94:
            return Call(self.rng.choice(("min", "max")), inner)
        branches = tuple((self._test(), value) for value in inner)
        return Case(branches) if self.rng.random() < 0.3 else Case(branches, self._leaf(kind))

    def _number(self, depth: int) -> Expression:
        roll = self.rng.random()
        if roll < 0.1:
            return Call("abs", (self._term(Kind.NUMBER, depth - 1),))
        if roll < 0.2:
            return Negate(self._term(Kind.NUMBER, depth - 1))
        if roll < 0.3:
            return Arithmetic("-", self._attribute(Kind.TIME), self._leaf(Kind.TIME))
        left, right = (self._term(Kind.NUMBER, depth - 1) for _ in range(2))
        return Arithmetic(self.rng.choice("+-*/"), left, right)

    def _attribute(self, kind: Kind) -> Attribute:
        names = [name for name, its in COLUMNS.items() if its is kind and name != "big"]
        return Attribute(self.rng.choice(names))

    def _leaf(self, kind: Kind) -> Literal | Parameter:
        value = _constant(self.rng, kind, fraction=self.rng.random() < 0.5)
        if self.rng.random() < 0.7:
            return Literal(value)
        name = f"{kind.value}_{len(self.params)}"
        self.params[name] = value
        return Parameter(name)
