"""Does LIKE take the strings that its definition takes?"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftline.model.like import WILDCARDS_MAX, LikePattern, MalformedPattern


def takes(pattern: str, text: str) -> bool:
    """The definition, character by character, trying everything."""
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == "%":
        return any(takes(rest, text[skipped:]) for skipped in range(len(text) + 1))
    if first == "_":
        return bool(text) and takes(rest, text[1:])
    if first == "\\":
        first, rest = rest[0], rest[1:]
    return bool(text) and text[0] == first and takes(rest, text[1:])


pieces = st.sampled_from(("%", "_", "a", "b", "\\%", "\\_", "\\\\", "\\a", "\U0001f600", "\n"))
patterns = st.lists(pieces, max_size=7).map("".join)
texts = st.text("ab%_\\\U0001f600\n", max_size=8)


@settings(max_examples=1500)
@given(patterns, texts)
def test_like_takes_what_its_definition_takes(pattern: str, text: str) -> None:
    assert LikePattern(pattern).matches(text) is takes(pattern, text)


@given(patterns, texts)
def test_what_a_pattern_says_of_its_strings_is_true_of_them(pattern: str, text: str) -> None:
    like = LikePattern(pattern)
    if like.matches(text):
        assert text.startswith(like.prefix)
        assert text.endswith(like.suffix)
        assert all(run in text for run in like.substrings)
        assert like.literal in (None, text)
    # A named shape asks for that and for nothing else.
    if like.is_prefix:
        assert like.matches(text) is text.startswith(like.prefix)
    if like.is_suffix:
        assert like.matches(text) is text.endswith(like.suffix)
    if like.is_substring:
        assert like.matches(text) is ("".join(like.substrings) in text)


def test_a_lone_backslash_at_the_end_is_refused() -> None:
    with pytest.raises(MalformedPattern, match="lone backslash"):
        LikePattern("a\\")


def test_too_many_wildcards_are_refused_and_as_many_as_allowed_are_not() -> None:
    LikePattern("%_" * (WILDCARDS_MAX // 2))
    with pytest.raises(MalformedPattern, match="64 wildcards"):
        LikePattern("_" * (WILDCARDS_MAX + 1))


@pytest.mark.parametrize(
    "pattern", ["%" + "a" * 1000 + "b", "%" + "a" * 500 + "_" + "a" * 500 + "b%", "%a" * 63 + "%"]
)
def test_no_pattern_is_a_bomb(pattern: str) -> None:
    """A walk that tries again from each place would take minutes here."""
    assert LikePattern(pattern).matches("a" * 200_000) is pattern.endswith("a%")
