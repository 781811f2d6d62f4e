"""Does each refusal say what was wanted, what came, and where?

The cases are in `refusals.jsonl`, one for each refusal that reading a text can make.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from driftline import advertisement, parse
from driftline.errors import LanguageError

ROWS = Path(__file__).with_name("refusals.jsonl").read_text(encoding="utf-8").splitlines()
CASES = [json.loads(row) for row in ROWS]


@pytest.mark.parametrize("case", CASES, ids=[case["text"] for case in CASES])
def test_a_refusal_says_what_was_wanted_what_came_and_where(case) -> None:
    with pytest.raises(LanguageError) as refusal:
        parse(case["text"])
    error = refusal.value
    assert (error.wanted, error.came) == (case["wanted"], case["came"])
    assert (error.line, error.column) == (case["line"], case["column"])


@pytest.mark.parametrize("case", CASES, ids=[case["text"] for case in CASES])
def test_a_refusal_names_a_place_inside_the_text_and_no_class_of_the_parser(case) -> None:
    lines = case["text"].split("\n")
    assert 1 <= case["line"] <= len(lines)
    assert 1 <= case["column"] <= len(lines[case["line"] - 1]) + 1
    message = case["wanted"] + case["came"]
    assert "sqlglot" not in message
    assert "<class" not in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x FROM q",
        "SELECT * WHERE x < :p",
        "SELECT * WHERE x < y",
        "SELECT * WHERE x < env('e')",
        "SELECT * WHERE NOT x < 1",
        "SELECT * WHERE NOT s LIKE 'a%'",
        "SELECT * WHERE x IS NULL",
        "SELECT * WHERE x = NULL",
        "SELECT * WHERE 5 BETWEEN x AND y",
        "SELECT * WHERE FALSE",
        "SELECT * WHERE moved(x, by => 1)",
        "SELECT MIN(x) FROM q",
        "SELECT * THEN SELECT *",
    ],
)
def test_an_advertisement_of_anything_but_constraints_is_refused(text: str) -> None:
    with pytest.raises(LanguageError, match="in an advertisement"):
        advertisement(text)


def test_an_advertisement_cannot_speak_of_the_envelope() -> None:
    with pytest.raises(LanguageError, match="not its envelope's"):
        advertisement("SELECT * WHERE ce_id = '7'")
