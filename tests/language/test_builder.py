"""Does Python build what the text says, and refuse what Python cannot say?"""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from driftline import attr, crossed, elapsed, env, moved, now, param, parse, select
from driftline.errors import DriftlineError, InvalidValue, LanguageError
from driftline.language.builder import call

SAME = [
    (attr.x == 1, "x = 1"),
    (attr.x != 1.5, "x != 1.5"),
    (attr.x < param.limit, "x < :limit"),
    (attr.x <= -3, "x <= -3"),
    (attr.x > True, "x > TRUE"),
    (attr.x >= "it's", "x >= 'it''s'"),
    (1 < attr.x, "x > 1"),  # noqa: SIM300  # the operator is turned round
    (attr["order"] == 1, '"order" = 1'),
    (attr["a b"] == b"\x0f", "\"a b\" = X'0F'"),
    (attr.t > datetime(2026, 1, 1, tzinfo=UTC), "t > TIMESTAMP '2026-01-01T00:00:00Z'"),
    ((attr.x == 1) & (attr.y == 2) & (attr.z == 3), "x = 1 AND y = 2 AND z = 3"),
    ((attr.x == 1) | (attr.y == 2) & (attr.z == 3), "x = 1 OR y = 2 AND z = 3"),
    (~((attr.x == 1) | (attr.y == 2)), "NOT (x = 1 OR y = 2)"),
    (attr.x + 1 < 2 * attr.y - 3, "x + 1 < 2 * y - 3"),
    (1 - attr.x / 2 > 0, "1 - x / 2 > 0"),
    (1 / attr.x > 0, "1 / x > 0"),
    (-attr.x < 0, "-x < 0"),
    (-(-attr.x) < 0, "-(-x) < 0"),  # noqa: B002
    (abs(attr.x - param.mx) < 3, "abs(x - :mx) < 3"),
    (call("sqrt", attr.x) < 3, "sqrt(x) < 3"),
    (call("coalesce", attr.x, 0) < 3, "coalesce(x, 0) < 3"),
    (call("hour", now(), "Europe/Berlin") < 3, "hour(now(), 'Europe/Berlin') < 3"),
    (attr.x.between(1, param.hi), "x BETWEEN 1 AND :hi"),
    (attr.x.is_in(1, "a", param.p, env("e")), "x IN (1, 'a', :p, env('e'))"),
    (attr.x.like("a\\%%"), "x LIKE 'a\\%%'"),
    (attr.x.is_null(), "x IS NULL"),
    (attr.x.is_not_null(), "x IS NOT NULL"),
    (attr.on & param.select, '"on" AND :select'),
    (attr.x < elapsed() * env("visibility"), "x < elapsed() * env('visibility')"),
    (attr.x == None, "x = NULL"),  # noqa: E711  # this is how Python says it
    ((attr.x == 1) & moved(attr.p, by=2), "x = 1 AND moved(p, by => 2)"),
    (moved(attr.p, by=2) & (attr.x == 1), "x = 1 AND moved(p, by => 2)"),
    (moved(attr.p, may=1, must=2, strict=True), "moved(p, may => 1, must => 2, strict => TRUE)"),
    (moved(attr.p, percent=param.r, shared=True), "moved(p, percent => :r, shared => TRUE)"),
    (moved(attr.p, factor=1.1), "moved(p, factor => 1.1)"),
    (crossed(attr.p, above=100, clear=95), "crossed(p, above => 100, clear => 95)"),
    (crossed(attr.p, below=5), "crossed(p, below => 5)"),
]


@pytest.mark.parametrize(("built", "text"), SAME, ids=[text for _, text in SAME])
def test_the_builder_builds_what_the_text_says(built, text: str) -> None:
    assert select(source="quote", where=built) == parse(f"SELECT * FROM quote WHERE {text}")


def test_columns_are_selected_by_position_and_named_by_keyword() -> None:
    built = select(attr.x, attr.y * 2, total=attr.x + attr.y, source="quote")
    assert built == parse("SELECT x, y * 2, x + y AS total FROM quote")
    assert select() == parse("SELECT *")


REFUSED = [
    (lambda: attr.x > 1 and attr.x < 3, "&, | and ~"),
    (lambda: attr.x > 1 or attr.x < 3, "&, | and ~"),
    (lambda: not attr.x, "&, | and ~"),
    (lambda: 1 < attr.x < 3, "&, | and ~"),
    (lambda: attr.x in [1, 2], "&, | and ~"),
    (lambda: 1 if attr.x == 1 else 2, "&, | and ~"),
    (lambda: attr.x == math.nan, "a number that can be written"),
    (lambda: attr.x < math.inf, "a number that can be written"),
    (lambda: attr.x.is_in(), "one value or more"),
    (lambda: attr.x.is_in(attr.y), "literals and variables"),
    (lambda: attr.x.is_in(None), "literals and variables"),
    (lambda: attr.x.like("a\\"), "lone backslash"),
    (lambda: attr.x.like("%_" * 40), "wildcards"),
    (lambda: (attr.x + 1).is_null(), "an attribute before IS NULL"),
    (lambda: attr[""], "a name"),
    (lambda: param["a b"], "a name"),
    (lambda: param["1"], "a name"),
    (lambda: env(""), "a name"),
    (lambda: call("eval", attr.x), "one of the functions"),
    (lambda: call("sqrt"), "arguments for sqrt"),
    (lambda: call("hour", attr.t, "Mars/Olympus"), "a zone"),
    (lambda: call("hour", attr.t, attr.s), "a zone"),
    (lambda: moved(attr.p), "one of by, percent, factor"),
    (lambda: moved(attr.p, by=1, percent=2), "one of by, percent, factor"),
    (lambda: moved(attr.p, by=0), "by above 0"),
    (lambda: moved(attr.p, by="a"), "a number for by"),
    (lambda: moved(attr.p, factor=1), "factor above 1"),
    (lambda: moved(attr.p, may=3, must=2), "may at most must"),
    (lambda: moved(attr.p, must=2), "may with must"),
    (lambda: moved(attr.p, by=attr.x), "a number or variables"),
    (lambda: moved(attr.p + 1, by=1), "an attribute in moved"),
    (lambda: moved(attr.p, by=1) & moved(attr.q, by=1), "moved or crossed once"),
    (lambda: moved(attr.p, by=1) | (attr.x == 1), "joined by & alone"),
    (lambda: ~moved(attr.p, by=1), "joined by & alone"),
    (lambda: crossed(attr.p), "above or below"),
    (lambda: crossed(attr.p, above=1, below=2), "above or below"),
    (lambda: crossed(attr.p, above=1, clear=2), "clear at most above"),
    (lambda: crossed(attr.p, below=1, clear=0), "clear at least below"),
    (lambda: select(attr.x, attr.x), "different names"),
    (lambda: select(source=""), "a name"),
    (lambda: select(source=5), "a name"),
    (lambda: moved(attr.p, by=1, strict="yes"), "True or False"),
    (lambda: select(where=sum((attr.x for _ in range(300)), attr.x) < 1), "levels"),
    (lambda: (attr.x == 1) & True, "a condition"),
    (lambda: (attr.x == 1) | 7, "a condition"),
    (lambda: select("x"), "a column"),
    (lambda: select(where=True), "a condition"),
    (lambda: moved("price", by=1), "an attribute in moved"),
]


@pytest.mark.parametrize(("build", "wanted"), REFUSED, ids=[str(at) for at in range(len(REFUSED))])
def test_what_cannot_be_said_is_refused(build, wanted: str) -> None:
    with pytest.raises(LanguageError) as refusal:
        build()
    assert wanted in str(refusal.value)


@pytest.mark.parametrize(
    "build",
    [
        lambda: attr.x == [1],
        lambda: attr.x == object(),
        lambda: attr.x < 2**63,
        lambda: attr.x == "\ud800",
        lambda: attr["\ud800"],
        lambda: env("\ud800"),
        lambda: attr.x.like("\ud800"),
        lambda: attr.x == datetime(2026, 1, 1),
        lambda: attr[7],
        lambda: param[None],
        lambda: env(7),
        lambda: attr.x.like(7),
    ],
)
def test_hostile_values_give_only_errors_of_the_family(build) -> None:
    with pytest.raises(DriftlineError):
        build()


def test_a_term_cannot_be_hashed_and_shows_its_text() -> None:
    with pytest.raises(TypeError):
        hash(attr.x)
    assert str(attr.x < param.p) == "x < :p"


def test_private_python_names_are_not_attributes() -> None:
    with pytest.raises(AttributeError):
        _ = attr.__wrapped__
    with pytest.raises(InvalidValue):
        _ = attr.x == (1, 2)
