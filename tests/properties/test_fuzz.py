"""Does any text at all bring out an error that is not of the family?

Three kinds of text: soup of the words and signs of SQL, valid texts with some of their words
changed, and random Unicode. What is read must be read back from its own text as the same.
"""

from __future__ import annotations

import random
import re

import pytest
from sqlglot.tokens import Tokenizer

from driftline import advertisement, parse
from driftline.errors import DriftlineError
from driftline.language.sql import parse_condition

VALID = [
    "SELECT * FROM quote WHERE firm = 'IBM' AND price < 10",
    "SELECT * WHERE what = 'alarm' AND level > 3 AND level < 7 AND host LIKE 'db-%'",
    "SELECT * FROM traffic WHERE x BETWEEN :mx - :range AND :mx + :range AND :on",
    "SELECT a, b * 2 AS c WHERE sqrt((x - :mx) * (x - :mx)) <= :range OR NOT y IN (1, 'a', :p)",
    "SELECT * FROM load WHERE value > CASE WHEN hour(now()) < 8 THEN 80 ELSE 50 END",
    "SELECT price FROM stock WHERE symbol = 'IBM' AND moved(price, may => 1.5, must => 2)",
    "SELECT price FROM stock WHERE crossed(price, above => 100, clear => 95)",
    "SELECT COUNT(*), AVG(per) FROM stock WHERE t < TIMESTAMP '2026-01-31T09:30Z'",
    "SELECT MIN(per) FROM stock WHERE risk < 60 HAVING moved(MIN(per), by => 1)",
    "SELECT DISTINCT sector FROM stock WHERE b = X'0F' AND coalesce(x, -1.5e3) / 2 != 0",
    "SELECT stock.a, news.b FROM stock JOIN news ON stock.a = news.a WHERE stock.p < env('e')",
    "SELECT * FROM q WHERE s = 'a' THEN SELECT * FROM q WHERE s = 'b' WITHIN 60",
]
KEYWORDS = sorted(Tokenizer.KEYWORDS)
SIGNS = [*"()[]{}<>=!+-*/%^&|~.,;:?@#$\\'\"`", "=>", "<=", "!=", "::", "--", "/*", "*/", "->", ":="]
WORDS = ["x", "y", "quote", "'a'", '"b"', "1", "1.5", "1e9", ":p", "NULL", "TRUE", "X'0F'", "''"]
OURS = ["moved(", "crossed(", "by", "above", "env('e')", "elapsed()", "now()", "hour(", "WITHIN 5"]
COMMON = ["SELECT", "*", "FROM", "WHERE", "AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "THEN"]
CHARACTERS = ["\0", "\n", "\r", "\t", "\x1f", "\x7f", "\xa0", "é", "\u2028", "\ufeff", "\U0001f600"]


def _soup(rng: random.Random) -> str:
    pools = (KEYWORDS, SIGNS, WORDS, WORDS, OURS, COMMON, COMMON)
    words = [rng.choice(rng.choice(pools)) for _ in range(rng.randrange(1, 25))]
    start = rng.choice(["", "SELECT * WHERE ", "SELECT * FROM t ", "SELECT x FROM t WHERE x = "])
    return start + rng.choice([" ", " ", ""]).join(words)


def _mutated(rng: random.Random) -> str:
    text = rng.choice(VALID)
    tokens = re.findall(r"'[^']*'|\w+|\s+|.", text)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(tokens))
        change = rng.randrange(5)
        if change == 0:
            del tokens[at : at + rng.randrange(1, 3)]
        elif change == 1:
            tokens.insert(at, f" {rng.choice(rng.choice((KEYWORDS, SIGNS, WORDS, OURS, COMMON)))} ")
        elif change == 2:
            other = rng.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif change == 3:
            tokens[at] = rng.choice((*CHARACTERS, *SIGNS, "\ud800"))
        else:
            tokens[at:at] = tokens[at : at + rng.randrange(1, 8)]
        tokens = tokens or ["SELECT"]
    return "".join(tokens)


def _unicode(rng: random.Random) -> str:
    def character() -> str:
        return rng.choice((chr(rng.randrange(128)), chr(rng.randrange(0x110000)), *CHARACTERS[:3]))

    inner = "".join(character() for _ in range(rng.randrange(20)))
    return rng.choice((inner, f"SELECT * WHERE x = {inner}", f"SELECT * WHERE {inner} = 'a'"))


def _try(text: str) -> bool:
    """Was it read? Raises if something other than a refusal happens."""
    try:
        statement = parse(text)
    except DriftlineError as error:
        str(error).encode()
        return False
    assert parse(str(statement)) == statement, text
    return True


def _fuzz(seed: int, count: int) -> None:
    rng = random.Random(seed)
    taken = 0
    for number in range(count):
        text = rng.choice((_soup, _mutated, _mutated, _unicode))(rng)
        try:
            taken += _try(text)
            if number % 10 == 0:
                for read in (advertisement, parse_condition):
                    try:
                        read(text)
                    except DriftlineError:
                        continue
        except Exception as error:
            raise AssertionError(f"text {number} of seed {seed}: {text!r}") from error
    # A fuzzer that only ever makes rubbish tests little.
    assert taken > count // 100


def test_a_few_thousand_random_texts_are_read_or_refused(seed: int) -> None:
    _fuzz(seed, 5_000)


@pytest.mark.slow
def test_a_hundred_thousand_random_texts_are_read_or_refused(seed: int) -> None:
    _fuzz(seed, 100_000)
