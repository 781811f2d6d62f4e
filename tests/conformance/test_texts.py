"""Which texts are taken, in which canonical form, and which are refused?"""

from __future__ import annotations

from typing import Any

import pytest

from driftline import LanguageError, advertisement, parse
from driftline.errors import LimitExceeded
from driftline.language.limits import LENGTH_MAX, TOKENS_MAX
from tests.conformance.loader import texts

ACCEPTED, ADVERTISED, REFUSED = texts("accepted"), texts("advertised"), texts("refusals")
accepted = pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: row["text"])
advertised = pytest.mark.parametrize("row", ADVERTISED, ids=lambda row: row["text"])
refused = pytest.mark.parametrize("row", REFUSED, ids=lambda row: row["name"])


def refusal(text: str) -> LanguageError:
    with pytest.raises(LanguageError) as caught:
        parse(text)
    return caught.value


@accepted
def test_an_accepted_text_has_its_canonical_form(row: dict[str, str]) -> None:
    assert str(parse(row["text"])) == row["canonical"]


@accepted
def test_the_canonical_form_is_read_back_as_the_same(row: dict[str, str]) -> None:
    assert parse(row["canonical"]) == parse(row["text"])


@advertised
def test_an_advertised_text_has_its_canonical_form(row: dict[str, str]) -> None:
    assert str(advertisement(row["text"])) == row["canonical"]


@advertised
def test_the_canonical_advertisement_is_read_back_as_the_same(row: dict[str, str]) -> None:
    assert advertisement(row["canonical"]) == advertisement(row["text"])


@refused
def test_a_refusal_says_what_was_wanted_and_what_came(row: dict[str, Any]) -> None:
    error = refusal(row["text"])
    assert row["wanted"] in error.wanted
    assert row["came"] in error.came


@refused
def test_a_refusal_says_where(row: dict[str, Any]) -> None:
    error = refusal(row["text"])
    assert error.line is not None
    assert error.column is not None
    if "at" in row:
        assert [error.line, error.column] == row["at"]
    lines = row["text"].split("\n")
    assert 1 <= error.line <= len(lines)
    assert 1 <= error.column <= len(lines[error.line - 1]) + 1


def test_a_text_that_is_too_long_is_refused_before_it_is_read() -> None:
    text = f"SELECT * WHERE x = '{'a' * LENGTH_MAX}'"
    assert isinstance(refusal(text), LimitExceeded)


def test_a_text_of_too_many_words_is_refused() -> None:
    text = "SELECT * WHERE x IN (" + ",".join(["1"] * (TOKENS_MAX // 2)) + ")"
    assert isinstance(refusal(text), LimitExceeded)


def test_a_sum_that_is_too_deep_is_refused() -> None:
    assert isinstance(refusal("SELECT * WHERE x > " + " + ".join(["1"] * 300)), LimitExceeded)


def test_a_lone_surrogate_is_refused() -> None:
    assert refusal("SELECT * WHERE x = '\ud800'").wanted == "well-formed Unicode"
