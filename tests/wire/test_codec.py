"""Does every control message come back as it was, and is what no broker would say refused?"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given

from driftline.errors import FrameRefused, InvalidValue
from driftline.language.advertising import advertisement
from driftline.language.sql import parse
from driftline.model.advertisement import Advertisement
from driftline.model.constraint import Constraint, Operator
from driftline.model.event import EARLIEST_US, LATEST_US, Event
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
    Now,
    Parameter,
)
from driftline.model.filter import Filter, filters_of
from driftline.model.like import LikePattern
from driftline.model.message import (
    Answer,
    Ask,
    Control,
    Home,
    Interest,
    Neighbours,
    Offer,
    Sequence,
)
from driftline.model.predicate import And, Between, Comparison, In, Like, Not, Or
from driftline.model.scope import Scope
from driftline.model.value import INTEGER_MAX, INTEGER_MIN, time_of
from driftline.model.variables import fold
from driftline.model.view import Aggregate, AggregateFunction
from driftline.testing.strategies import predicates, scalars
from driftline.wire import codec, filters, limits
from driftline.wire.codec import decode_control, encode_control
from driftline.wire.framing import PAYLOAD_BYTES_MAX
from driftline.wire.limits import (
    ENTRIES_MAX,
    FIELDS_MAX,
    FILTER_BYTES_MAX,
    NAME_BYTES_MAX,
)
from driftline.wire.shapes import SHAPES
from tests.wire.drawn import messages

pack = msgspec.msgpack.encode
unpack = msgspec.msgpack.decode


def asking(condition: Expression) -> Interest:
    return Interest({"k": Filter(None, (), (condition,))})


def constrained(*constraints: Constraint) -> Interest:
    return Interest({"k": Filter(None, constraints)})


def interest(written: object) -> bytes:
    """A message that asks for one filter, of which this is what is written."""
    return pack(["interest", False, [], ["k", written], [], []])


def there_and_back(message: Control) -> Control:
    return decode_control(encode_control(message))


@given(messages())
def test_messages_come_back_exactly(message: Control) -> None:
    found = there_and_back(message)
    assert found == message
    assert type(found) is type(message)
    if isinstance(message, Interest | Offer | Home):
        assert isinstance(found, Interest | Offer | Home)
        assert list(found.added) == list(message.added)


@given(predicates(3))
def test_any_condition_comes_back(condition: Expression) -> None:
    assert there_and_back(asking(condition)) == asking(condition)


@given(scalars(depth=3))
def test_any_expression_comes_back(expression: Expression) -> None:
    assert there_and_back(asking(expression)) == asking(expression)


EDGES = (
    *(None, True, False, 0, 1, -1, INTEGER_MIN, INTEGER_MAX, 2**53 + 1),
    *(0.0, -0.0, 1.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan),
    *("", "\x00", "\U0010ffff", "\ud7ff\ue000", "x" * 70_000, "@", "a", "and"),
    *(b"", b"\x00", bytes(range(256))),
    *(datetime(1, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
)


@pytest.mark.parametrize("value", EDGES, ids=lambda value: repr(value)[:20])
def test_a_constant_comes_back_as_the_very_same(value) -> None:
    """Literals are equal only if their types are, with NaN equal to itself and both zeros apart."""
    moving = Constraint("x", Operator.LT, Arithmetic("+", Literal(value), Parameter("p")))
    message = constrained(
        Constraint("x", Operator.EQ, Literal(value)),
        Constraint("x", Operator.IN, (Literal(value), Literal(1))),
        moving,
    )
    assert there_and_back(message) == message


SUBJECT = Case(((Literal(1), Literal("a")),), Literal(None), Attribute("x"))


@pytest.mark.parametrize(
    "condition",
    [
        Attribute("x", "stock"),
        Environment("it's"),
        SUBJECT,
        Case(((Literal(1), Literal("a")), (Literal(2), TRUE)), TRUE, Literal(None)),
        Case(((TRUE, Literal(1)), (TRUE, Literal(2))), Literal(3)),
        Coalesce((Attribute("x"),)),
        Like(Attribute("s"), LikePattern("")),
        Call("hour", (Now(), Literal("Europe/Berlin"))),
        Call("min", tuple(map(Literal, range(64)))),
        In(Attribute("x"), (Literal(None), Parameter("p"), Environment("e"))),
    ],
    ids=str,
)
def test_nodes_that_are_seldom_drawn_come_back(condition: Expression) -> None:
    assert there_and_back(asking(condition)) == asking(condition)


def test_the_form_is_the_one_written_by_hand() -> None:
    (one,) = parse(
        "SELECT * FROM quote WHERE firm = 'IBM' AND price IN (1, 2.5) AND s LIKE 'a%' "
        "AND note IS NULL AND at >= TIMESTAMP '1970-01-01T00:00:01Z' AND low < :p AND NOT a = b"
    ).filters()
    sent = encode_control(Home("b1", 7, 6, {"k1": one}, ("k0",)))
    assert unpack(sent) == [
        *("home", "b1", 7, 6, ["k0"]),
        [
            "k1",
            [
                "quote",
                [
                    ["firm", "=", "IBM"],
                    ["price", "IN", 1, 2.5],
                    ["s", "prefix", "a%"],
                    ["note", "IS NULL"],
                    ["at", ">=", ["@", 1_000_000]],
                    ["low", "<", [":", "p"]],
                ],
                [["!=", ["a", "a"], ["a", "b"]]],
            ],
        ],
        [],
        [],
        [],
    ]
    offer = Offer(
        {"k": advertisement("SELECT * FROM q WHERE x BETWEEN 1 AND 2 OR x = 5")}, (), True
    )
    assert encode_control(offer).hex(" ") == (
        "94 a5 6f 66 66 65 72 "  # array of 4, "offer"
        "c3 90 "  # reset, nothing removed
        "92 a1 6b "  # "k" and
        "92 a1 71 "  # of type "q":
        "93 a1 78 "  # "x" with two alternatives,
        "92 93 a1 78 a2 3e 3d 01 93 a1 78 a2 3c 3d 02 "  # x >= 1 and x <= 2,
        "91 93 a1 78 a1 3d 05"  # or x = 5
    )
    assert unpack(encode_control(Neighbours("a", 3, ("b", "c")))) == [
        *("neighbours", "a", 3, ["b", "c"])
    ]
    assert unpack(encode_control(Ask("t", 5))) == ["ask", "t", 5, None]
    asked = Ask("t", 5, advertisement("SELECT * FROM q WHERE x = 5"))
    assert unpack(encode_control(asked)) == ["ask", "t", 5, ["q", ["x", [["x", "=", 5]]]]]
    assert unpack(encode_control(Answer("t", ("c",), True))) == ["answer", "t", ["c"], True]
    any_event = Filter(None)
    sequence = Interest(sequences={"s": Sequence(((any_event,), (any_event, any_event)), 7)})
    empty = [None, [], []]
    assert unpack(encode_control(sequence)) == [
        *("interest", False, [], []),
        ["s", [7, [empty], [empty, empty]]],
        [],
    ]
    moved = Interest(updates={"k": {1: 9.5, 0: time_of(7)}})
    assert unpack(encode_control(moved)) == [
        "set",
        ["k", [1, 9.5, 0, ["@", 7]]],
    ]


def test_each_message_has_a_form_for_each_of_its_fields() -> None:
    assert {message for message, _ in codec._MESSAGES.values()} == {*get_args(Control)}
    for message, forms in codec._MESSAGES.values():
        fields = {field.name for field in dataclasses.fields(message)}
        # An interest has a short form for updates alone.
        short = message is Interest and len(forms) == 1
        assert {name for name, _ in forms} == ({"updates"} if short else fields)
        assert len(forms) < FIELDS_MAX


def test_each_node_that_can_be_drawn_has_a_shape() -> None:
    known = {shape.node.__name__ for shape in SHAPES.values()}
    there = {node.__name__ for node in Expression.__subclasses__()}
    assert known == there - {"Literal", "Aggregate"}


# How deep and how much

X = Attribute("x")
LEVELS: dict[str, Callable[[Expression], Expression]] = {
    "sum": lambda node: Arithmetic("+", node, X),
    "difference": lambda node: Arithmetic("-", X, node),
    "negation": Negate,
    "call": lambda node: Call("max", (node, X)),
    "coalesce": lambda node: Coalesce((node, X)),
    "condition": lambda node: Case(((node, X),), X),
    "otherwise": lambda node: Case(((X, X),), node),
    "subject": lambda node: Case(((X, X),), X, node),
    "comparison": lambda node: Comparison("<", node, X),
    "between": lambda node: Between(node, X, X),
    "in": lambda node: In(node, (Literal(1),)),
    "like": lambda node: Like(node, LikePattern("a%")),
    "not": Not,
    "and, or": lambda node: Or((And((node, X)), X)),
    "not, and": lambda node: Not(And((node, X))),
}


def tower(level: Callable[[Expression], Expression], height: int) -> Expression:
    node: Expression = X
    for _ in range(height):
        node = level(node)
    return node


def passes(condition: Expression) -> bool:
    try:
        encode_control(asking(condition))
    except InvalidValue as error:
        return error.came != "a deeper one"
    return True


@pytest.mark.parametrize("name", LEVELS)
def test_the_highest_tree_that_passes_can_be_used(name: str) -> None:
    """Nothing that is done with a filter runs out of stack; and the next higher is refused."""
    height = next(height for height in range(60, 300) if not passes(tower(LEVELS[name], height)))
    highest = tower(LEVELS[name], height - 1)
    found = there_and_back(asking(highest))
    assert isinstance(found, Interest)
    (one,) = found.added["k"].conditions
    assert one == highest
    assert hash(one) == hash(highest)
    assert str(found.added["k"])
    assert repr(found)
    assert fold(one) is not None
    assert filters_of(None, one) is not None
    assert found.added["k"].matches(Scope(Event("e", {"x": 1}))) in (True, False)


def test_what_the_language_reads_passes() -> None:
    (deep,) = parse("SELECT * WHERE y < " + " + ".join(["x"] * 198)).filters()
    message = Interest({"k": deep})
    assert there_and_back(message) == message


@pytest.mark.parametrize(("tag", "levels"), [("not", 205), ("neg", 205)])
def test_as_many_levels_are_read_as_are_written(tag: str, levels: int) -> None:
    written: object = ["a", "x"]
    for _ in range(levels - 1):
        written = [tag, written]
    assert decode_control(interest([None, [], [written]]))
    with pytest.raises(FrameRefused, match="at most 205 levels, came a deeper one"):
        decode_control(interest([None, [], [[tag, written]]]))


@pytest.mark.parametrize("depth", [500, 10_000, 1_000_000])
@pytest.mark.parametrize("opening", [b"\x91", b"\x92\xa3not", b"\x81\xa1k"])
def test_no_depth_is_too_much_to_be_refused(opening: bytes, depth: int) -> None:
    deep = opening * depth + b"\xc3"
    for payload in (
        deep,
        b"\x96\xa8interest\xc2\x90\x92\xa1k\x93\xc0\x90\x91" + deep + b"\x90\x90",
    ):
        with pytest.raises(FrameRefused):
            decode_control(payload)


def test_parts_are_counted_over_all_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "PARTS_MAX", 10)
    three = Filter(None, (Constraint("x", Operator.IN, (Literal(1), Literal(2))),))
    four = Filter(None, (), (Comparison("<", Negate(X), Literal(1)),))
    fits = Interest({"a": three, "b": three, "c": four})
    sent = encode_control(fits)
    assert decode_control(sent) == fits
    with pytest.raises(InvalidValue, match="'d': wanted at most 10 constraints"):
        encode_control(Interest({**fits.added, "d": Filter(None, (), (TRUE,))}))
    name, reset, removed, added, *rest = unpack(sent)
    with pytest.raises(FrameRefused, match="'d': wanted at most 10 constraints"):
        decode_control(pack([name, reset, removed, [*added, "d", [None, [], [True]]], *rest]))


def test_patterns_count_for_what_they_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = LikePattern("_" * 10)
    one = Filter(None, (Constraint("x", Operator.LIKE, pattern),))  # 1 + 8 + 5 parts
    other = Filter(None, (), (Like(X, pattern),))  # 2 + 8 + 5
    message = Interest({"a": one, "b": other})
    monkeypatch.setattr(filters, "PARTS_MAX", 29)
    sent = encode_control(message)
    assert decode_control(sent) == message
    monkeypatch.setattr(filters, "PARTS_MAX", 28)
    with pytest.raises(InvalidValue, match="'b': wanted at most 28 constraints"):
        encode_control(message)
    with pytest.raises(FrameRefused, match="'b': wanted at most 28 constraints"):
        decode_control(sent)


def test_a_filter_may_have_so_many_bytes_and_no_more() -> None:
    def of(size: int) -> Interest:
        return constrained(Constraint("x", Operator.EQ, Literal("x" * size)))

    rest = len(pack([None, [["x", "=", ""]], []])) + 4  # a long string has a length of four bytes
    fits = of(FILTER_BYTES_MAX - rest)
    assert there_and_back(fits) == fits
    with pytest.raises(InvalidValue, match=f"at most {FILTER_BYTES_MAX} bytes"):
        encode_control(of(FILTER_BYTES_MAX - rest + 1))
    with pytest.raises(FrameRefused, match=f"at most {FILTER_BYTES_MAX} bytes"):
        decode_control(interest([None, [["x", "=", "x" * FILTER_BYTES_MAX]], []]))


def test_a_message_may_have_so_many_entries_and_no_more() -> None:
    keys = tuple(map(str, range(ENTRIES_MAX + 1)))
    any_event = Filter(None)
    most = Interest(dict.fromkeys(keys[1:], any_event), keys[1:])
    assert there_and_back(most) == most
    for message in (
        Interest(dict.fromkeys(keys, any_event)),
        Interest({}, keys),
        Answer("t", keys),
    ):
        with pytest.raises(InvalidValue, match=f"at most {ENTRIES_MAX}"):
            encode_control(message)
    for written in (
        ["interest", False, [], [part for key in keys for part in (key, [None, [], []])], [], []],
        ["interest", False, keys, [], [], []],
    ):
        with pytest.raises(FrameRefused, match=f"at most {ENTRIES_MAX}"):
            decode_control(pack(written))


def test_a_message_may_have_so_many_bytes_and_no_more() -> None:
    long = "x" * NAME_BYTES_MAX
    with pytest.raises(InvalidValue, match=f"at most {PAYLOAD_BYTES_MAX} bytes"):
        encode_control(Answer("t", (long,) * 130))
    with pytest.raises(FrameRefused, match=f"at most {PAYLOAD_BYTES_MAX} bytes"):
        decode_control(bytes(PAYLOAD_BYTES_MAX + 1))


# What is refused

INTEREST = ["interest", False, [], [], [], []]
BAD_MESSAGES: dict[str, tuple[object, str]] = {
    "no array": ({}, "control message: wanted an array of 1 to 10"),
    "an empty array": ([], "an array of 1 to 10"),
    "too many fields": ([1] * 11, "an array of 1 to 10"),
    "a name that is a number": ([7], "name: wanted a text"),
    "an unknown name": (
        ["hello"],
        "one of interest, set, offer, neighbours, home, ask, answer, resync, came 'hello'",
    ),
    "a field too few": (["interest", False, []], "interest: wanted 5 fields, came 2"),
    "a field too many": ([*INTEREST, 1], "interest: wanted 5 fields, came 6"),
    "a number for a flag": (["interest", 1, [], [], [], []], "interest, reset: wanted a boolean"),
    "a text for texts": (
        ["interest", False, "k", [], [], []],
        "interest, removed: wanted an array",
    ),
    "a number among texts": (
        ["interest", False, [1], [], [], []],
        "interest, removed: wanted an array",
    ),
    "a map of filters": (["interest", False, [], {}, [], []], "interest, added: wanted an array"),
    "a key without a filter": (["interest", False, [], ["k"], [], []], "1 in all"),
    "a key that is a number": (
        ["interest", False, [], [1, 2], [], []],
        "interest, added: wanted a text",
    ),
    "a key again": (
        ["interest", False, [], ["k", [None, [], []], "k", [None, [], []]], [], []],
        "interest, added 'k': wanted each key once",
    ),
    "a negative version": (["neighbours", "a", -1, []], "version: wanted a number from 0 to"),
    "a version of 64 bits": (["neighbours", "a", 2**63, []], "version: wanted a number from 0 to"),
    "a version that is a float": (
        ["neighbours", "a", 1.0, []],
        "version: wanted a number from 0 to",
    ),
    "a long name": (["ask", "x" * 65_536, 0, None], "at most 65535 bytes"),
    "a long text among texts": (["answer", "t", ["é" * 32_768], False], "at most 65535 bytes"),
    "a sequence of one step": (
        ["interest", False, [], [], ["s", [0, [[None, [], []]]]], []],
        "a time and two steps or more",
    ),
    "a step of no filter": (
        ["interest", False, [], [], ["s", [0, [[None, [], []]], []]], []],
        "filters",
    ),
    "a sequence with a time that is none": (
        ["interest", False, [], [], ["s", ["x", [[None, [], []]], [[None, [], []]]]], []],
        "microseconds since 1970",
    ),
    "a sequence beyond all time": (
        ["interest", False, [], [], ["s", [2**62, [[None, [], []]], [[None, [], []]]]], []],
        "a time that exists",
    ),
    "an update of half a pair": (["interest", False, [], [], [], ["k", [1]]], "1 in all"),
    "an update of a slot below 0": (
        ["interest", False, [], [], [], ["k", [-1, 2]]],
        "slots from 0",
    ),
    "an update of a name": (["interest", False, [], [], [], ["k", ["x", 2]]], "each slot once"),
    "an update twice": (["interest", False, [], [], [], ["k", [1, 2, 1, 3]]], "each slot once"),
    "an update by a sum": (["interest", False, [], [], [], ["k", [1, ["+", 1, 2]]]], "a constant"),
    "an update to NULL": (["interest", False, [], [], [], ["k", [1, None]]], "values that compare"),
    "a flag for an advertisement": (["ask", "t", 0, True], "ask, says"),
    "an extension": (msgspec.msgpack.Ext(5, b"x"), "an array of 1 to 10"),
}


@pytest.mark.parametrize("name", BAD_MESSAGES)
def test_a_bad_message_is_refused(name: str) -> None:
    written, said = BAD_MESSAGES[name]
    with pytest.raises(FrameRefused) as refusal:
        decode_control(pack(written))
    assert said in str(refusal.value)


def of_condition(written: object) -> list[object]:
    return [None, [], [written]]


def of_constraint(*written: object) -> list[object]:
    return [None, [[*written]], []]


A = ["a", "x"]
BAD_FILTERS: dict[str, tuple[object, str]] = {
    "no array": (7, "a filter of three parts, came 7"),
    "two parts": ([None, []], "a filter of three parts, came an array of 2"),
    "an empty type": (["", [], []], "an event type, or nil, came ''"),
    "a type that is a number": ([1, [], []], "an event type, or nil, came 1"),
    "constraints that are none": ([None, 7, []], "constraints, came 7"),
    "conditions that are none": ([None, [], {}], "conditions, came a map of 0"),
    "a map": (of_condition({"x": 1}), "a constant or a node, came a map of 1"),
    "an extension": (
        of_condition(msgspec.msgpack.Ext(5, b"x")),
        "a constant or a node, came a Ext",
    ),
    "MessagePack's own time": (of_condition(datetime(2026, 1, 1, tzinfo=UTC)), "came a datetime"),
    "an integer of 65 bits": (of_condition(2**63), "an integer of 64 bits"),
    "an empty node": (of_condition([]), "the tag of a node, came nil"),
    "a number as tag": (of_condition([1, 2]), "the tag of a node, came 1"),
    "an array as tag": (of_condition([["a"], 2]), "the tag of a node, came an array of 1"),
    "an unknown tag": (of_condition(["xor", True, True]), "the tag of a node, came 'xor'"),
    "a time that is a text": (of_condition(["@", "now"]), "a time in microseconds"),
    "a time that is a boolean": (of_condition(["@", True]), "a time in microseconds"),
    "a time without one": (of_condition(["@"]), "a time in microseconds"),
    "a time before the year 1": (of_condition(["@", EARLIEST_US - 1]), "the years 1 and 9999"),
    "a time of the year 10000": (of_condition(["@", LATEST_US + 1]), "the years 1 and 9999"),
    "an attribute without a name": (of_condition(["a"]), "1 names in a node a, came 0"),
    "an attribute with an empty name": (of_condition(["a", ""]), "a name, came an empty one"),
    "an attribute with a number": (of_condition(["a", 7]), "a text, came 7"),
    "an attribute with a long name": (of_condition(["a", "x" * 65_536]), "at most 65535 bytes"),
    "an attribute with more": (of_condition(["a", "x", 1]), "0 to 0 expressions"),
    "a parameter that is no word": (of_condition([":", "a b"]), "a parameter's name, came 'a b'"),
    "a variable without a name": (of_condition(["env", ""]), "a name"),
    "one side of a comparison": (of_condition(["<", A]), "2 to 2 expressions below a Comparison"),
    "three sides of a sum": (of_condition(["+", A, A, A]), "2 to 2 expressions below a Arithmetic"),
    "an AND of one": (of_condition(["and", A]), "2 to more expressions below a And, came 1"),
    "an OR of none": (of_condition(["or"]), "2 to more expressions below a Or"),
    "a CASE of two": (of_condition(["case", A, A]), "3 to more expressions below a Case"),
    "a CASE with half a branch": (
        of_condition(["case", A, A, A, A]),
        "a node case as the language",
    ),
    "a CASE of a subject with half a branch": (of_condition(["switch", *[A] * 5]), "a node switch"),
    "a COALESCE of nothing": (of_condition(["coalesce"]), "1 to more"),
    "an unknown function": (of_condition(["call", "eval", A]), "one of the functions abs, ceil"),
    "too many arguments": (of_condition(["call", "abs", A, A]), "1 to 1 arguments of abs, came 2"),
    "a zone that is none": (
        of_condition(["call", "hour", ["now"], "Mars/Olympus"]),
        "a zone's name such as 'Europe/Berlin', came 'Mars/Olympus'",
    ),
    "a zone out of the database": (
        of_condition(["call", "hour", ["now"], "../x"]),
        "a zone's name",
    ),
    "a zone that moves": (of_condition(["call", "hour", ["now"], [":", "p"]]), "a zone's name"),
    "a zone that is NULL": (of_condition(["call", "hour", ["now"], None]), "a zone's name"),
    "IN of nothing": (of_condition(["in", A]), "2 to more expressions below a In"),
    "IN of a sum": (of_condition(["in", A, ["+", 1, 2]]), "literals and variables in IN"),
    "LIKE of half an escape": (of_condition(["like", "a\\", A]), "a node like as the language"),
    "LIKE of 65 wildcards": (of_condition(["like", "%a" * 65, A]), "at most 64 wildcards"),
    "IS NULL of a constant": (of_condition(["null", 1]), "IS NULL is asked of an attribute"),
    "a constraint of one part": (of_constraint("x"), "an attribute, an operator and operands"),
    "a constraint on nothing": (
        of_constraint("", "=", 1),
        "an attribute's name, came an empty one",
    ),
    "an unknown operator": (of_constraint("x", "~", 1), "came '~'"),
    "an operator that is a number": (of_constraint("x", 1, 1), "a text, came 1"),
    "nothing to compare with": (of_constraint("x", "="), "1 operands of =, came 0"),
    "two to compare with": (of_constraint("x", "=", 1, 2), "1 operands of =, came 2"),
    "an operand of IS NULL": (of_constraint("x", "IS NULL", 1), "0 operands of IS NULL, came 1"),
    "another attribute to compare with": (of_constraint("x", "<", ["a", "y"]), "an operand for <"),
    "a pattern that is a number": (of_constraint("x", "LIKE", 1), "a text, came 1"),
    "a prefix that is a suffix": (of_constraint("x", "prefix", "%a"), "an operand for prefix"),
    "a suffix that is a prefix": (of_constraint("x", "suffix", "a%"), "an operand for suffix"),
    "a substring that is a prefix": (of_constraint("x", "substring", "a%"), "an operand for subst"),
    "half an escape": (of_constraint("x", "LIKE", "\\"), "does not end in a lone backslash"),
    "IN a sum": (of_constraint("x", "IN", 1, ["+", 1, 2]), "an operand for IN"),
}


@pytest.mark.parametrize("name", BAD_FILTERS)
def test_a_bad_filter_is_refused(name: str) -> None:
    written, said = BAD_FILTERS[name]
    with pytest.raises(FrameRefused) as refusal:
        decode_control(interest(written))
    assert said in str(refusal.value)
    assert refusal.value.where == "interest, added 'k'"


EXISTS = ["x", "IS NOT NULL"]
BAD_OFFERS: dict[str, tuple[object, str]] = {
    "no array": ("x", "an advertisement of one part or more"),
    "an empty array": ([], "an advertisement of one part or more"),
    "an attribute without alternatives": ([None, ["x"]], "an attribute and its alternatives"),
    "an alternative of nothing": ([None, ["x", []]], "constraints, came an array of 0"),
    "three constraints": (
        [None, ["x", [EXISTS] * 3]],
        "one constraint, or the >= and <= of BETWEEN",
    ),
    "two that are not BETWEEN": ([None, ["x", [EXISTS] * 2]], "one constraint, or the >= and <="),
    "another attribute": ([None, ["y", [EXISTS]]], "constraints on 'y', came one on 'x'"),
    "an attribute again": ([None, ["x", [EXISTS]], ["x", [EXISTS]]], "each attribute once"),
    "an operand that moves": ([None, ["x", [["x", "<", [":", "p"]]]]], "constants in an adv"),
    "an attribute that is a number": ([None, [1, [EXISTS]]], "a text, came 1"),
}


@pytest.mark.parametrize("name", BAD_OFFERS)
def test_a_bad_advertisement_is_refused(name: str) -> None:
    written, said = BAD_OFFERS[name]
    with pytest.raises(FrameRefused) as refusal:
        decode_control(pack(["offer", False, [], ["k", written]]))
    assert said in str(refusal.value)
    assert refusal.value.where == "offer, added 'k'"


BAD_BYTES = {
    "nothing": b"",
    "no MessagePack": b"\xc1",
    "cut": encode_control(Ask("token"))[:-1],
    "more behind it": encode_control(Ask("token")) + b"\x00",
    "no UTF-8": b"\x92\xa3ask\xa1\xff",
    "a surrogate": b"\x92\xa3ask\xa3\xed\xa0\x80",
    "an array of four billion": b"\xdd\xff\xff\xff\xff",
    "four billion texts": b"\x93\xa6answer\xa1t\xdd\xff\xff\xff\xff",
    "a text of four billion": b"\x92\xa3ask\xdb\xff\xff\xff\xff",
    "no UTF-8 in a filter": b"\x96\xa8interest\xc2\x90\x92\xa1k\x93\xa1\xff\x90\x90\x90\x90",
    "a map with maps as keys": (
        b"\x96\xa8interest\xc2\x90\x92\xa1k\x93\xc0\x90\x91\x81\x80\x01\x90\x90"
    ),
    "a time that is none": interest(["t", [], []]).replace(
        b"\xa1t\x90\x90", b"\xd7\xff" + b"\xff" * 8 + b"\x90\x90"
    ),
}


@pytest.mark.parametrize("name", BAD_BYTES)
def test_bad_bytes_are_refused(name: str) -> None:
    with pytest.raises(FrameRefused):
        decode_control(BAD_BYTES[name])


def test_a_refusal_is_short_whatever_came() -> None:
    long = "\x00" * 60_000
    for bad in (
        pack([long]),
        pack(["interest", False, [], [long, 7], [], []]),
        pack(["interest", False, [], ["k", of_condition(["call", long, A])], [], []]),
        pack(["interest", False, [], ["k", of_constraint("x", long, 1)], [], []]),
        pack(["interest", False, [], ["k", of_condition([long])], [], []]),
        pack(["offer", False, [], ["k", [None, [long, [EXISTS]]]]]),
    ):
        with pytest.raises(FrameRefused) as refusal:
            decode_control(bad)
        assert len(str(refusal.value)) < 1000


# What is not written

UNSAYABLE: dict[str, Any] = {
    "no message": Filter(None),
    "a flag that is a number": Interest({}, (), 1),  # type: ignore[arg-type]
    "a negative version": Neighbours("a", -1),
    "a version of 64 bits": Home("a", 2**63, 0),
    "a version that is true": Home("a", True, 0),
    "a long token": Ask("x" * (NAME_BYTES_MAX + 1)),
    "a token that is none": Ask(None),  # type: ignore[arg-type]
    "a surrogate": Ask("\ud800"),
    "a key that is a number": Interest({7: Filter(None)}),  # type: ignore[dict-item]
    "an empty type": Interest({"k": Filter("")}),
    "an aggregate": asking(Aggregate(AggregateFunction.COUNT)),
    "a comparison by plus": asking(Comparison("+", TRUE, TRUE)),
    "arithmetic by less": asking(Arithmetic("<", TRUE, TRUE)),
    "an unknown operator": asking(Arithmetic("%", TRUE, TRUE)),
    "an empty CASE": asking(Case(())),
    "an empty COALESCE": asking(Coalesce(())),
    "an empty IN": asking(In(TRUE, ())),
    "a function that is none": asking(Call("eval", (TRUE,))),
    "an empty name": asking(Attribute("")),
    "a long name": asking(Attribute("x" * (NAME_BYTES_MAX + 1))),
    "a long pattern": asking(Like(TRUE, LikePattern("x" * (NAME_BYTES_MAX + 1)))),
    "a number that is too large": asking(Negate(Literal(2**63))),
    "a value that is none": asking(Literal([1])),  # type: ignore[arg-type]
    "a surrogate in a constant": asking(Literal("\ud800")),
    "an operand with an attribute": constrained(Constraint("x", Operator.LT, Attribute("y"))),
    "an operand that is a pattern": constrained(Constraint("x", Operator.LT, LikePattern("a"))),
    "a pattern that is none": constrained(Constraint("x", Operator.LIKE, TRUE)),
    "a prefix that is none": constrained(Constraint("x", Operator.PREFIX, LikePattern("%a"))),
    "an operand of EXISTS": constrained(Constraint("x", Operator.EXISTS, TRUE)),
    "an IN of nothing": constrained(Constraint("x", Operator.IN, ())),
    "an IN that is no tuple": constrained(Constraint("x", Operator.IN, TRUE)),
    "an attribute without alternatives": Offer({"k": Advertisement(None, (("x", ()),))}),
    "an alternative of nothing": Offer({"k": Advertisement(None, (("x", ((),)),))}),
}


@pytest.mark.parametrize("name", UNSAYABLE)
def test_what_would_be_refused_is_not_written(name: str) -> None:
    with pytest.raises(InvalidValue):
        encode_control(UNSAYABLE[name])


# What is remembered


def test_a_filter_that_came_in_other_bytes_is_written_in_ours() -> None:
    """A longer way to say a number is read, and remembered, but not passed on."""
    ours = encode_control(
        Interest({"k": Filter("t", (Constraint("x", Operator.EQ, Literal(77)),))})
    )
    theirs = ours.replace(b"\xa1=\x4d", b"\xa1=\xcd\x00\x4d")
    assert len(theirs) == len(ours) + 2
    for _ in range(2):
        message = decode_control(theirs)
        assert encode_control(message) == ours


def test_a_remembered_filter_counts_as_much_as_before() -> None:
    many = Filter(None, tuple(Constraint("x", Operator.NE, Literal(at)) for at in range(32)))
    assert encode_control(Interest({"k": many})) == encode_control(Interest({"k": many}))
    keys = [str(at) for at in range(limits.PARTS_MAX // 64 + 1)]
    with pytest.raises(InvalidValue, match="constraints and nodes"):
        encode_control(Interest(dict.fromkeys(keys, many)))
    assert encode_control(Interest(dict.fromkeys(keys[:-1], many)))
