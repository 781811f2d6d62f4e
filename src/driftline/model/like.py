"""Does a string match a LIKE pattern, and what does a pattern say about the strings it takes?

`%` stands for any run of characters, `_` for exactly one, a backslash takes the next character
as it is. Matching walks the text with one place to return to, so it costs at most
O(len(text) · len(pattern)) whatever the pattern: no pattern is a bomb.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

WILDCARDS_MAX = 64


class Wildcard(enum.Enum):
    """A pattern is a sequence of characters and these."""

    ANY_RUN = "%"
    ANY_ONE = "_"


class MalformedPattern(ValueError):
    """The pattern ends in a lone backslash or has too many wildcards."""


@dataclass(frozen=True, slots=True)
class LikePattern:
    r"""A pattern, taken apart once.

    >>> LikePattern("db-%").matches("db-7"), LikePattern("50\\%").matches("50%")
    (True, True)
    """

    text: str
    parts: tuple[str | Wildcard, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _take_apart(self.text))

    def matches(self, value: str) -> bool:
        """Does the whole of `value` match?"""
        parts = self.parts
        at, part, run, resume = 0, 0, -1, 0
        while at < len(value):
            want = parts[part] if part < len(parts) else None
            if want is Wildcard.ANY_RUN:
                run, resume = part, at
                part += 1
            elif want is Wildcard.ANY_ONE or want == value[at]:
                at += 1
                part += 1
            elif run >= 0:  # let the last run take one character more, and try again from there
                resume += 1
                at, part = resume, run + 1
            else:
                return False
        return all(rest is Wildcard.ANY_RUN for rest in parts[part:])

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
