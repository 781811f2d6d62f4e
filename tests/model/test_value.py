"""Which Python objects may be values, and do values compare as one order?"""

from __future__ import annotations

import enum
import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given

from driftline.errors import DriftlineError, InvalidValue
from driftline.model.value import admit, compare, identity, kind_of, microseconds_of, same, time_of
from driftline.testing import strategies

pandas = pytest.importorskip("pandas")


class Colour(enum.IntEnum):
    RED = 7


class Word(str, enum.Enum):  # noqa: UP042  # its str() is not its value, which is the point
    HELLO = "hello"


class Name(str):
    def __str__(self) -> str:
        return "not the characters"


class Odd(int):
    def __repr__(self) -> str:
        return "odd"


BERLIN = timezone(timedelta(hours=2))
ADMITTED = [
    (True, True),
    (np.True_, True),
    (np.bool_(False), False),
    (7, 7),
    (Colour.RED, 7),
    (Odd(3), 3),
    (2**63 - 1, 2**63 - 1),
    (-(2**63), -(2**63)),
    (np.int8(-5), -5),
    (np.uint64(2**63 - 1), 2**63 - 1),
    (2.5, 2.5),
    (-0.0, -0.0),
    (math.nan, math.nan),
    (math.inf, math.inf),
    (np.float64(2.5), 2.5),
    (np.float32(0.1), float(np.float32(0.1))),
    ("", ""),
    ("é\U0001f600", "é\U0001f600"),
    (np.str_("abc"), "abc"),
    (Word.HELLO, "hello"),
    (Name("abc"), "abc"),
    (b"\x00", b"\x00"),
    (bytearray(b"ab"), b"ab"),
    (memoryview(b"ab"), b"ab"),
    (np.bytes_(b"ab"), b"ab"),
    (datetime(2026, 1, 1, 2, tzinfo=BERLIN), datetime(2026, 1, 1, tzinfo=UTC)),
    (pandas.Timestamp("2026-01-01T02:00:00+02:00"), datetime(2026, 1, 1, tzinfo=UTC)),
]


@pytest.mark.parametrize(
    ("given_", "wanted"), ADMITTED, ids=[f"{type(g).__name__} {w!r}"[:40] for g, w in ADMITTED]
)
def test_a_value_is_brought_to_its_exact_type(given_: object, wanted: object) -> None:
    admitted = admit(given_, "x")
    assert same(admitted, wanted)
    assert type(admitted) is type(wanted)


REFUSED = [
    (2**63, "64 bits"),
    (-(2**63) - 1, "64 bits"),
    (10**5000, "64 bits"),
    (np.uint64(2**63), "64 bits"),
    (Decimal("1.5"), "Decimal"),
    (Fraction(1, 2), "Fraction"),
    (1j, "complex"),
    (None, "NoneType"),
    ([1], "list"),
    ({"a": 1}, "dict"),
    (object(), "object"),
    ("\ud800", "lone surrogate"),
    ("a\udfff", "lone surrogate"),
    (Name("\ud800"), "lone surrogate"),
    (datetime(2026, 1, 1), "without one"),
    (pandas.Timestamp("2026-01-01"), "without one"),
    (pandas.Timestamp("2026-01-01T00:00:00.000000001Z"), "whole microseconds"),
    (pandas.NaT, "NaT"),
    (pandas.NA, "NAType"),
    (datetime(1, 1, 1, tzinfo=BERLIN), "years 1 and 9999"),
    (date(2026, 1, 1), "date"),
    (time(1, 2), "time"),
    (timedelta(1), "timedelta"),
    (np.datetime64("2026-01-01"), "datetime64"),
    (np.array([1, 2]), "ndarray"),
    (np.complex128(1), "complex"),
]


@pytest.mark.parametrize(("value", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_anything_else_is_refused_saying_what_came(value: object, said: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        admit(value, "attribute volume")
    assert str(refusal.value).startswith("attribute volume: wanted ")
    assert said in str(refusal.value)
    assert isinstance(refusal.value, DriftlineError)
    assert len(str(refusal.value)) < 300


POOL = [value for pool in strategies.POOLS.values() for value in pool]


def test_comparison_is_a_total_order_within_each_kind_and_none_across() -> None:
    for a, b in product(POOL, repeat=2):
        order = compare(a, b)
        comparable = kind_of(a) is kind_of(b) and a == a and b == b
        assert (order is not None) is comparable
        assert (order is None and compare(b, a) is None) or compare(b, a) == -order
    for a, b, c in product(POOL, repeat=3):
        if compare(a, b) in (-1, 0) and compare(b, c) in (-1, 0):
            assert compare(a, c) in (-1, 0)


@given(strategies.values(), strategies.values())
def test_two_values_are_the_same_exactly_when_their_identities_are_equal(a, b) -> None:
    assert same(a, a)
    assert same(a, b) is (identity(a) == identity(b))
    if same(a, b) and a == a:
        assert compare(a, b) == 0


@given(strategies.values())
def test_an_admitted_value_is_admitted_again_as_itself(value) -> None:
    assert same(admit(value, "x"), value)


@given(strategies.values(kind_of(datetime.now(UTC))))
def test_microseconds_and_times_are_inverse(value) -> None:
    assert time_of(microseconds_of(value)) == value
