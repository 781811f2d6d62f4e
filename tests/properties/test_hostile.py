"""Is a hostile text refused quickly, with an error of the family and no other?"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest

from driftline import Event, advertisement, covers, parse
from driftline.errors import DriftlineError, LanguageError, LimitExceeded
from driftline.language.limits import DEPTH_MAX, LENGTH_MAX, NESTING_MAX
from driftline.language.sql import parse_condition
from driftline.model.like import LikePattern

# Processor time, not the clock's: the machine may be busy. Generous, because it is a bound on
# blow-up, not a benchmark.
SECONDS_MAX = 1.0
USE_SECONDS_MAX = 6.0


def _where(condition: str) -> str:
    return f"SELECT * WHERE {condition}"


HOSTILE = {
    "10,000 parentheses": _where("(" * 10_000 + "x" + ")" * 10_000 + " = 1"),
    "10,000 open parentheses": _where("(" * 10_000),
    "10,000 closing parentheses": _where("x = 1" + ")" * 10_000),
    "10,000 brackets": _where("x" + "[" * 10_000),
    "10,000 braces": _where("{" * 10_000),
    "10 MB of spaces": _where("x = 1" + " " * 10_000_000),
    "10 MB of a string": _where("x = '" + "a" * 10_000_000 + "'"),
    "10 MB of a comment": _where("x = 1 --" + "a" * 10_000_000),
    "10,000 NOTs": _where("NOT " * 10_000 + "x"),
    "10,000 minuses": _where("x = " + "- " * 10_000 + "1"),
    "10,000 minuses in a row": _where("x = " + "-" * 10_000 + "1"),
    "10,000 pluses": _where("x = " + "+" * 10_000 + "1"),
    "10,000 tildes": _where("x = " + "~" * 10_000 + "1"),
    "5,000 CASEs": _where("CASE WHEN x THEN " * 3_000 + "1" + " END" * 3_000),
    "5,000 sums": _where("x = " + " + ".join(["1"] * 5_000)),
    "5,000 products": _where("x = " + " * ".join(["y"] * 5_000)),
    "5,000 comparisons": _where(" = ".join(["x"] * 5_000)),
    "5,000 concatenations": _where("x = " + " || ".join(["y"] * 5_000)),
    "5,000 dots": _where(".".join(["x"] * 5_000) + " = 1"),
    "5,000 casts": _where("x" + " :: INT" * 5_000 + " = 1"),
    "5,000 BETWEENs": _where("x " + "BETWEEN 1 AND 2 " * 3_000),
    "5,000 IS NOT NULLs": _where("x " + "IS NOT NULL " * 4_000),
    "5,000 LIKEs": _where("x " + "LIKE 'a' " * 5_000),
    "5,000 EXISTS": _where("EXISTS " * 5_000),
    "5,000 INTERVALs": _where("INTERVAL " * 5_000),
    "5,000 DATEs": _where("DATE " * 5_000),
    "5,000 SELECTs": "SELECT " * 5_000,
    "5,000 DISTINCTs": "SELECT " + "DISTINCT " * 5_000 + "x FROM t",
    "5,000 UNIONs": " UNION ".join(["SELECT *"] * 4_000),
    "5,000 JOINs": "SELECT * FROM t" + " JOIN t" * 5_000,
    "5,000 WITHs": "WITH a AS (" * 5_000,
    "5,000 THENs": " THEN ".join(["SELECT *"] * 4_000),
    "5,000 arrows": _where(" -> ".join(["x"] * 5_000)),
    "5,000 assignments": _where(" := ".join(["x"] * 5_000)),
    "5,000 types": _where("CAST(x AS " + "ARRAY<" * 4_000),
    "5,000 types of structs": _where("x :: " + "STRUCT<a " * 4_000),
    "5,000 PRIORs": _where("PRIOR " * 5_000 + "x"),
    "5,000 commas": "SELECT " + ",".join(["x"] * 5_000),
    "5,000 functions": _where("abs(" * 5_000),
    "5,000 LATERALs": "SELECT * FROM " + "LATERAL " * 5_000,
    "5,000 colons": _where("x = " + ":" * 5_000 + "p"),
    "1e400": _where("x = 1e400"),
    "5,000 digits": _where("x = " + "9" * 5_000),
    "60,000 digits": _where("x = -" + "9" * 60_000),
    "60,000 digits of a fraction": _where("x = 1." + "9" * 60_000 + "e999999999"),
    "NaN": _where("x = NaN()"),
    "inf as a number": _where("x = 1e999"),
    "a name of 70,000 characters": _where("a" * 70_000 + " = 1"),
    "a LIKE bomb": _where("x LIKE '" + "%a" * 1_000 + "'"),
    "an unknown function": _where("system('rm') = 1"),
    "a lone surrogate": _where("x = '\ud800'"),
    "a lone surrogate as a name": _where('"\udfff" = 1'),
    "DDL": "CREATE TABLE x (y INT)",
    "a quote without an end": _where("x = 'a"),
    "a comment without an end": _where("x = 1 /*" + "*" * 10_000),
    "comments in comments": _where("x = 1 " + "/*" * 10_000),
    "nothing": "",
    "only spaces": " \n\t ",
    "a NUL": "\0",
    "a byte order mark and nothing": "\ufeff",
    "None": None,
    "bytes": b"SELECT *",
    "a number": 7,
    "a list": ["SELECT *"],
}


@pytest.fixture(autouse=True, scope="module")
def _nothing_left_by_other_tests() -> Iterator[None]:
    """Walking what they left in memory must not count as reading a text."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("read", [parse, parse_condition, advertisement])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_refused_within_a_second(name: str, read) -> None:
    text = HOSTILE[name]
    if read is parse_condition and isinstance(text, str):
        text = text.removeprefix("SELECT * WHERE ")
    started = time.process_time()
    with pytest.raises(DriftlineError) as refusal:
        read(text)
    assert time.process_time() - started < SECONDS_MAX
    assert len(str(refusal.value)) < 1_000


LARGE = {
    "as deep as is allowed": _where("(" * (NESTING_MAX - 1) + "x" + ")" * (NESTING_MAX - 1)),
    "5,000 ANDs": _where(" AND ".join(["x"] * 5_000)),
    "5,000 ORs": _where(" OR ".join(["x"] * 5_000)),
    "5,000 values": _where(f"x IN ({', '.join(map(str, range(5_000)))})"),
    "3,000 columns": "SELECT " + ", ".join(f"x AS a{n}" for n in range(3_000)),
    "a long sum": _where("x = " + " + ".join(["y"] * (DEPTH_MAX - 5))),
    "a long string": _where("x = '" + "é" * (LENGTH_MAX - 100) + "'"),
    "a long name": _where("a" * (LENGTH_MAX - 100) + " = 1"),
    "a long comment": "--" + "a" * (LENGTH_MAX - 100) + "\nSELECT *",
    "nested functions": _where("abs(" * 30 + "x" + ")" * 30 + " = 1"),
    "nested cases of a subject": _where(
        "CASE " * 30 + "x" + " WHEN 1 THEN 1 WHEN 2 THEN 2 END" * 30
    ),
    "7,000 values of 7 digits": _where(f"x IN ({','.join(map(str, range(10**6, 10**6 + 7_000)))})"),
    "nested cases": _where("CASE WHEN x THEN " * 30 + "1" + " END" * 30 + " = 1"),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_text_within_the_limits_can_be_used_without_a_pause(name: str) -> None:
    """Whatever is read can be written, read again, spread, matched and compared.

    All that takes a fraction of the bound; what grows with the square of a list, or doubles with
    each level, takes many times as much.
    """
    started = time.process_time()
    wanted = parse(LARGE[name])
    assert parse(str(wanted)) == wanted
    wanted.filters()
    wanted.matches(Event("quote", {"x": 1, "y": 2}))
    covers(wanted, wanted)
    assert time.process_time() - started < USE_SECONDS_MAX


@pytest.mark.parametrize("part", ["x = {}", "x BETWEEN {} AND {}.5", "x{} > 1", "x LIKE '%{}%'"])
def test_advertisements_of_a_thousand_alternatives_are_compared_without_a_pause(part: str) -> None:
    """Those that a broker has are each compared with each."""
    parts = [part.format(n, n) for n in range(900)]
    some = [
        advertisement(_where(" OR ".join([*parts, part.format(9_000 + n, n)]))) for n in range(5)
    ]
    started = time.process_time()
    assert [(a, b) for a in some for b in some if covers(a, b)] == [(one, one) for one in some]
    assert time.process_time() - started < SECONDS_MAX


def test_the_limits_say_what_they_are() -> None:
    with pytest.raises(LimitExceeded, match="65536 characters"):
        parse(" " * (LENGTH_MAX + 1))
    with pytest.raises(LimitExceeded, match="40 levels of nesting"):
        parse(_where("(" * 100))
    with pytest.raises(LimitExceeded, match="16384 words"):
        parse(_where("x " * 20_000))
    with pytest.raises(LimitExceeded, match="200 levels"):
        parse(HOSTILE["5,000 sums"])
    with pytest.raises(LimitExceeded, match="16 steps"):
        parse(HOSTILE["5,000 THENs"])


def test_a_like_pattern_is_no_bomb() -> None:
    pattern, text = LikePattern("%a" * 32 + "b"), "a" * 100_000
    started = time.process_time()
    assert not pattern.matches(text)
    assert LikePattern("%" + "_a" * 31 + "%").matches(text)
    assert time.process_time() - started < SECONDS_MAX


def test_a_refusal_of_a_text_that_is_no_text_names_its_type() -> None:
    with pytest.raises(LanguageError, match="wanted a text, came bytes"):
        parse(b"SELECT *")
