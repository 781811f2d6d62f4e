"""Does a string match a LIKE pattern, and what does a pattern say about the strings it takes?

`%` stands for any run of characters, `_` for exactly one, a backslash takes the next character
as it is. The segments between the `%` are looked for from left to right, and the first place found
is kept, so nothing is ever tried again: no pattern is a bomb.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field

WILDCARDS_MAX = 64


class Wildcard(enum.Enum):
    """A pattern is a sequence of characters and these."""

    ANY_RUN = "%"
    ANY_ONE = "_"


class MalformedPattern(ValueError):
    """The pattern ends in a lone backslash or has too many wildcards."""


@dataclass(frozen=True, slots=True)
class _Segment:
    """A run of characters and `_`: a fixed length, found by Python's own searches.

    `str.find` is linear. The expression for a segment with `_` has no repetition in it, so its
    search costs at most length times text, in C.
    """

    length: int
    plain: str | None
    expression: re.Pattern[str] | None

    def stands_at(self, value: str, at: int) -> bool:
        """Does it match the characters from here on?"""
        if self.expression is not None:
            return self.expression.match(value, at) is not None
        return value.startswith(self.plain or "", at)

    def find(self, value: str, at: int, end: int) -> int:
        """The first place within these bounds where it stands, -1 if there is none."""
        if self.expression is not None:
            found = self.expression.search(value, at, end)
            return -1 if found is None else found.start()
        return value.find(self.plain or "", at, end)


@dataclass(frozen=True, slots=True)
class LikePattern:
    r"""A pattern, taken apart once.

    >>> LikePattern("db-%").matches("db-7"), LikePattern("50\\%").matches("50%")
    (True, True)
    """

    text: str
    parts: tuple[str | Wildcard, ...] = field(init=False, compare=False, repr=False)
    segments: tuple[_Segment, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        parts = _take_apart(self.text)
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "segments", _segments(parts))

    def matches(self, value: str) -> bool:
        """Does the whole of `value` match?"""
        first, last = self.segments[0], self.segments[-1]
        if len(self.segments) == 1:
            return len(value) == first.length and first.stands_at(value, 0)
        at, end = first.length, len(value) - last.length
        if at > end or not first.stands_at(value, 0) or not last.stands_at(value, end):
            return False
        # The first place will do for each: what it leaves to the others is the most there is.
        for segment in self.segments[1:-1]:
            at = segment.find(value, at, end)
            if at < 0:
                return False
            at += segment.length
        return True

    @property
    def literal(self) -> str | None:
        """The only string it takes, if it has no wildcard."""
        if any(isinstance(part, Wildcard) for part in self.parts):
            return None
        return "".join(str(part) for part in self.parts)

    @property
    def prefix(self) -> str:
        """What every string it takes begins with."""
        return _leading(self.parts)

    @property
    def suffix(self) -> str:
        """What every string it takes ends with."""
        return _leading(self.parts[::-1])[::-1]

    @property
    def substrings(self) -> tuple[str, ...]:
        """Runs of plain characters that every string it takes contains."""
        runs = [""]
        for part in self.parts:
            if isinstance(part, Wildcard):
                runs.append("")
            else:
                runs[-1] += part
        return tuple(run for run in runs if run)

    @property
    def is_prefix(self) -> bool:
        """Is it `text%`, which asks for the prefix and nothing else?"""
        return self.parts[len(self.prefix) :] == (Wildcard.ANY_RUN,)

    @property
    def is_suffix(self) -> bool:
        """Is it `%text`?"""
        return self.parts[: len(self.parts) - len(self.suffix)] == (Wildcard.ANY_RUN,)

    @property
    def is_substring(self) -> bool:
        """Is it `%text%`?"""
        run = Wildcard.ANY_RUN
        inner = self.parts[1:-1]
        return (
            len(self.parts) >= 2
            and self.parts[0] is run
            and self.parts[-1] is run
            and not any(isinstance(part, Wildcard) for part in inner)
        )


def _segments(parts: tuple[str | Wildcard, ...]) -> tuple[_Segment, ...]:
    """The pattern cut at its `%`: one segment more than there are of them."""
    cut: list[list[str | Wildcard]] = [[]]
    for part in parts:
        if part is Wildcard.ANY_RUN:
            cut.append([])
        else:
            cut[-1].append(part)
    return tuple(_segment(run) for run in cut)


def _segment(run: list[str | Wildcard]) -> _Segment:
    if Wildcard.ANY_ONE in run:
        text = "".join("." if isinstance(part, Wildcard) else re.escape(part) for part in run)
        return _Segment(len(run), None, re.compile(text, re.DOTALL))
    return _Segment(len(run), "".join(map(str, run)), None)


def _leading(parts: tuple[str | Wildcard, ...]) -> str:
    plain = []
    for part in parts:
        if isinstance(part, Wildcard):
            break
        plain.append(part)
    return "".join(plain)


def _take_apart(text: str) -> tuple[str | Wildcard, ...]:
    parts: list[str | Wildcard] = []
    wildcards = 0
    characters = iter(text)
    for character in characters:
        if character == "\\":
            escaped = next(characters, None)
            if escaped is None:
                raise MalformedPattern("a pattern that does not end in a lone backslash")
            parts.append(escaped)
            continue
        if character not in "%_":
            parts.append(character)
            continue
        wildcards += 1
        wildcard = Wildcard(character)
        if not (wildcard is Wildcard.ANY_RUN and parts and parts[-1] is Wildcard.ANY_RUN):
            parts.append(wildcard)
    if wildcards > WILDCARDS_MAX:
        raise MalformedPattern(f"at most {WILDCARDS_MAX} wildcards, not {wildcards}")
    return tuple(parts)
