"""Is every statement read back from its own text as the same?"""

from __future__ import annotations

import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot.tokens import Tokenizer

from driftline import advertisement, parse
from driftline.language.sql import parse_condition
from driftline.model.covering import Statement
from driftline.model.expression import (
    TRUE,
    Arithmetic,
    Attribute,
    Call,
    Case,
    Coalesce,
    Environment,
    Expression,
    Literal,
    Negate,
    Parameter,
)
from driftline.model.like import LikePattern
from driftline.model.pattern import Pattern
from driftline.model.predicate import And, Between, Comparison, In, Like, Not, Or
from driftline.model.subscription import Column, Subscription
from driftline.model.view import Join, View
from driftline.testing import strategies

# sqlglot's own list: a new version brings its new keywords into the test.
KEYWORDS = sorted(
    {word for keyword in Tokenizer.KEYWORDS for word in keyword.split() if word.isidentifier()}
    | {"WITHIN", "MOVED", "CROSSED", "ENV", "ELAPSED", "FN", "ONLY", "VALUE", "MIN", "COUNT", "TOP"}
)

# No lone surrogates: they are refused, and tested where values are.
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.text(
    "'\"\\%_\n\r\t\0-/*:;{}#é\U0001f600 a", max_size=30
)


@given(strategies.statements())
def test_every_statement_is_read_back_from_its_text_as_the_same(statement: Statement) -> None:
    again = parse(str(statement))
    assert again == statement
    assert hash(again) == hash(statement)
    assert str(again) == str(statement)


@given(strategies.predicates(depth=3))
def test_every_condition_is_read_back_from_its_text_as_the_same(condition: Expression) -> None:
    assert parse_condition(str(condition)) == condition


@given(strategies.advertisements())
def test_every_advertisement_is_read_back_from_its_text_as_the_same(advertised) -> None:
    assert advertisement(str(advertised)) == advertised


@given(strategies.statements())
def test_every_statement_survives_pickling(statement: Statement) -> None:
    again = pickle.loads(pickle.dumps(statement))
    assert again == statement
    assert hash(again) == hash(statement)


@given(names, texts)
@example('"', "'")
@example("a b", "\\")
@example("a.b", "\\'")
@example("\0", "\0")
@example("--", "--'")
@example("/*", "/* ' */")
@example("{#", "{# #}")
@example(":p", ":p")
def test_odd_names_and_strings_are_read_back(name: str, text: str) -> None:
    attribute = Attribute(name)
    where = And(
        (
            Comparison("=", attribute, Literal(text)),
            Comparison("<", Environment(text or "e"), attribute),
            Like(attribute, LikePattern(text.replace("\\", "\\\\").replace("%", "\\%")[:60])),
        )
    )
    wanted = Subscription((Column(attribute, alias=name),), name, where)
    assert parse(str(wanted)) == wanted


@given(names.filter(str.isidentifier) | st.from_regex(r"[^\W\d]\w*", fullmatch=True))
def test_any_identifier_can_name_a_parameter(name: str) -> None:
    if name.isidentifier():
        wanted = Subscription(where=Comparison("<", Attribute("x"), Parameter(name)))
        assert parse(str(wanted)) == wanted


def _uses(word: str) -> list[Statement]:
    """The word in each place where a name can stand."""
    attribute, parameter = Attribute(word), Parameter(word)
    joined = (Attribute("a", word), Attribute(word, "other"))
    return [
        Subscription(where=attribute),
        Subscription(where=Comparison("=", attribute, Literal(1))),
        Subscription(where=Comparison("=", Literal(1), attribute)),
        Subscription((Column(attribute),), word, And((attribute, attribute))),
        Subscription((Column(attribute, alias=word), Column(Literal(1))), word),
        Subscription(source=word),
        Subscription((Column(Attribute("x"), alias=word),)),
        Subscription(where=parameter),
        Subscription(where=And((parameter, Comparison("<", parameter, parameter)))),
        View((Column(attribute),), word, attribute, distinct=True),
        View(
            (Column(joined[0]), Column(joined[1])),
            word,
            join=Join("other", Comparison("=", *joined)),
        ),
        View((Column(Attribute("a", "other")),), "other", TRUE, join=Join(word, joined[0])),
        Pattern((Subscription(source=word), Subscription(where=attribute)), 5),
        Pattern((Subscription(where=parameter), Subscription(source=word))),
    ]


@pytest.mark.parametrize("word", KEYWORDS)
def test_every_keyword_of_sql_can_be_a_name(word: str) -> None:
    for spelled in (word, word.lower()):
        for wanted in _uses(spelled):
            assert parse(str(wanted)) == wanted, str(wanted)


def test_every_operator_inside_every_other_is_read_back() -> None:
    """Parentheses are written where they are needed: each shape in each place of each other."""
    x, y, z = Attribute("x"), Attribute("y"), Literal(-1)

    def shapes(a: Expression, b: Expression) -> list[Expression]:
        return [
            *(Arithmetic(operator, a, b) for operator in "+-*/"),
            *(Negate(a), Not(a), Call("abs", (a,)), Coalesce((a, b)), Case(((a, b),), a)),
            *(Comparison("=", a, b), Comparison("<=", a, b), Between(a, b, a), In(a, (z,))),
            *(Like(a, LikePattern("a%")), And((a, b)), Or((a, b))),
        ]

    for inner in (*shapes(x, y), *shapes(x, z), *shapes(z, x)):
        for outer in (*shapes(inner, x), *shapes(x, inner), *shapes(inner, inner)):
            assert parse_condition(str(outer)) == outer, str(outer)
