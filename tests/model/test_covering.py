"""Where must `covers` say yes to be useful, and where must it say no?"""

from __future__ import annotations

import pytest

from driftline import advertisement, covers, intersects, parse


def _where(condition: str) -> object:
    return parse(f"SELECT * WHERE {condition}")


YES = [
    ("x > 100", "x > 200"),
    ("x >= 100", "x > 100"),
    ("x > 100", "x > 100"),
    ("x BETWEEN 0 AND 10", "x BETWEEN 2 AND 3"),
    ("x >= 0 AND x <= 10", "x = 5"),
    ("x = 5", "x >= 5 AND x <= 5"),
    ("x = 5.0", "x = 5"),
    ("x < 9007199254740993", "x <= 9007199254740992.0"),
    ("x != 5", "x < 5"),
    ("x != 5", "x > 5"),
    ("x != 5", "x != 5 AND x != 6"),
    ("x < 5 OR x > 5", "x != 5"),
    ("x < 5 OR x > 5 AND x < 7 OR x > 7", "x != 5 AND x != 7"),
    ("x IN (1, 2, 3)", "x IN (1, 3)"),
    ("x IN (1, 2, 3)", "x = 2.0"),
    ("x < 4", "x IN (1, 2, 3)"),
    ("x IN (1, 2)", "x = 1 OR x = 2"),
    ("x = 1 OR x = 2", "x IN (2, 1)"),
    ("x < 2 OR x > 2 AND x < 9", "x IN (1, 3) AND y = 1"),
    ("x = 1 OR x = 2", "x = 2"),
    ("x > 1", "x > 1 AND y > 1"),
    ("x > 1 OR y > 1", "y > 2"),
    ("x IS NOT NULL", "x > 1"),
    ("x IS NOT NULL", "x LIKE '%a%'"),
    ("x IS NULL", "x IS NULL AND y = 1"),
    ("TRUE", "x = 1"),
    ("x = 1", "FALSE"),
    ("x = 1", "x > 2 AND x < 1"),
    ("x = 1", "x = 2 AND x = 'a'"),
    ("x = 1", "x IS NULL AND x = 1"),
    ("s LIKE 'a%'", "s LIKE 'ab%'"),
    ("s LIKE 'a%'", "s = 'abc'"),
    ("s LIKE 'a%'", "s LIKE 'ab_%c'"),
    ("s LIKE '%c'", "s LIKE '%bc'"),
    ("s LIKE '%b%'", "s LIKE 'abc%'"),
    ("s LIKE '%b%'", "s LIKE '%abc'"),
    ("s LIKE '%'", "s LIKE 'a_'"),
    ("s >= 'ab'", "s LIKE 'ab%'"),
    ("s < 'b'", "s LIKE 'ab%'"),
    ("s != 'zz'", "s LIKE 'ab%'"),
    ("s != 'abd'", "s LIKE 'ab%c'"),
    ("NOT s LIKE 'a%'", "NOT s LIKE 'a%' AND s > 'b'"),
    ("s LIKE 'a_c'", "s IN ('abc', 'axc')"),
    ("flag", "flag = TRUE"),
    ("NOT flag", "flag != TRUE"),
    ("t > TIMESTAMP '2026-01-01T00:00:00Z'", "t > TIMESTAMP '2026-01-02T00:00:00+01:00'"),
    ("b < X'0F'", "b = X'0E'"),
    ("x > env('e')", "x > env('e') AND y = 1"),
    ("x > y", "x > y AND x > 1"),
    ("hour(now()) > 8", "hour(now()) > 8 AND x = 1"),
    ("x < 10", "x < 2 * 5"),
    ("NOT (x < 1 OR x > 5)", "x BETWEEN 2 AND 3"),
]

NO = [
    ("x > 200", "x > 100"),
    ("x > 100", "x >= 100"),
    ("x = 1", "x = TRUE"),
    ("x != 5", "x IS NOT NULL"),
    ("x != 5", "x != 'a'"),
    ("x < 5 OR x > 6", "x != 5"),
    ("x IS NULL", "y = 1"),
    ("x = 1", "TRUE"),
    ("s LIKE 'ab%'", "s LIKE 'a%'"),
    ("s LIKE '%b%'", "s LIKE 'a_c'"),
    ("s > ''", "s LIKE '%'"),
    ("x > :p", "x > :p"),
    ("x > elapsed()", "x > elapsed()"),
    ("NOT s LIKE 'a%'", "s IS NOT NULL"),
]


@pytest.mark.parametrize(("general", "specific"), YES)
def test_covers_says_yes(general: str, specific: str) -> None:
    assert covers(_where(general), _where(specific))


@pytest.mark.parametrize(("general", "specific"), NO)
def test_covers_says_no(general: str, specific: str) -> None:
    assert not covers(_where(general), _where(specific))


def test_a_type_covers_itself_and_any_type_covers_all() -> None:
    quote, stock, any_type = (parse(f"SELECT *{f}") for f in (" FROM quote", " FROM stock", ""))
    assert covers(quote, quote)
    assert covers(any_type, quote)
    assert not covers(quote, stock)
    assert not covers(quote, any_type)


def test_bound_parameters_are_compared_by_value() -> None:
    moving = _where("x > :p")
    assert covers(moving, moving, {"p": 1}, {"p": 2})
    assert not covers(moving, moving, {"p": 2}, {"p": 1})
    assert not covers(moving, moving, {"p": 1})


def test_patterns_cover_step_by_step_and_with_no_shorter_a_window() -> None:
    def pattern(first: str, second: str, within: str = "") -> object:
        return parse(f"SELECT * WHERE {first} THEN SELECT * WHERE {second}{within}")

    assert covers(pattern("x > 1", "x < 1"), pattern("x > 2", "x < 0"))
    assert covers(pattern("x > 1", "x < 1", " WITHIN 5"), pattern("x > 2", "x < 0", " WITHIN 4"))
    assert not covers(pattern("x > 1", "x < 1", " WITHIN 5"), pattern("x > 2", "x < 0"))
    assert not covers(pattern("x > 1", "x < 1"), pattern("x < 0", "x > 2"))


def test_statements_of_different_shapes_do_not_cover_one_another() -> None:
    view = parse("SELECT MIN(x) FROM quote")
    assert covers(view, view)
    assert not covers(parse("SELECT *"), view)
    assert not covers(view, parse("SELECT * FROM quote"))


@pytest.mark.parametrize(
    ("advertised", "wanted", "answer"),
    [
        ("x > 10", "x > 5", True),
        ("x > 10", "x < 5", False),
        ("x > 10 OR x < 3", "x < 5", True),
        ("x > 10", "x > 5 AND y = 1", False),
        ("x > 10", "x > 5 AND y IS NULL", True),
        ("x > 10", "ce_id = '7' AND x = 11", True),
        ("x IS NOT NULL", "x LIKE 'a%'", True),
        ("s LIKE 'a%'", "s LIKE 'b%'", False),
        ("s LIKE 'a%'", "s LIKE '%b'", True),
        ("x = 1", "x = TRUE", False),
    ],
)
def test_an_advertisement_intersects(advertised: str, wanted: str, answer: bool) -> None:
    found = intersects(advertisement(f"SELECT * WHERE {advertised}"), _where(wanted))
    assert found is answer


@pytest.mark.parametrize(
    ("general", "specific", "answer"),
    [
        ("x > 1 OR s IS NOT NULL", "x > 2", True),
        ("x > 1", "x > 2 OR s = 'a'", False),
        ("x > 1 OR x < 0", "x BETWEEN 5 AND 6 OR x = -1", True),
        ("x > 1", "x > 0", False),
    ],
)
def test_an_advertisement_covers_another(general: str, specific: str, answer: bool) -> None:
    one, other = (advertisement(f"SELECT * WHERE {text}") for text in (general, specific))
    assert covers(one, other) is answer


def test_a_filter_that_nothing_satisfies_intersects_no_advertisement() -> None:
    says = advertisement("SELECT * WHERE x IS NOT NULL")
    assert intersects(says, parse("SELECT * WHERE x > 3"))
    assert not intersects(says, parse("SELECT * WHERE x > 5 AND x < 3"))
