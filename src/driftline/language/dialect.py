"""How are tokens and syntax trees got from sqlglot, exactly as the language needs them?

Our dialect knows no function by name, so that every call arrives in one shape and the language,
not sqlglot, decides what exists. Two things SQL cannot say are done on tokens: any word after a
colon is a parameter's name (sqlglot would stumble over `:on`), and THEN outside CASE separates the
steps of a pattern, which a closing WITHIN may bound in time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType

from driftline.errors import LanguageError, LimitExceeded
from driftline.language.limits import LENGTH_MAX, NESTING_MAX, STEPS_MAX, TOKENS_MAX
from driftline.model.value import INTEGER_MAX

_READABLE = "SQL that can be read"


class DriftlineDialect(Dialect):
    """SQL as Driftline reads it."""

    class Tokenizer(tokens.Tokenizer):
        """X'0F' is a bytes literal."""

        HEX_STRINGS = [("x'", "'"), ("X'", "'")]  # noqa: RUF012  # sqlglot's own shape

    class Parser(parser.Parser):
        """Every function call is anonymous."""

        FUNCTIONS = {}  # noqa: RUF012  # sqlglot's own shape
        FUNCTION_PARSERS = {}  # noqa: RUF012
        NO_PAREN_FUNCTIONS = {}  # noqa: RUF012


_DIALECT = DriftlineDialect()
_PREFIXES = frozenset({TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE})
_OPENS = frozenset({TokenType.L_PAREN, TokenType.CASE})
_CLOSES = frozenset({TokenType.R_PAREN, TokenType.END})
_NOT_OURS = frozenset(
    {TokenType.L_BRACKET, TokenType.R_BRACKET, TokenType.L_BRACE, TokenType.R_BRACE}
)
_QUOTED = frozenset({TokenType.STRING, TokenType.IDENTIFIER})
# Words that are functions in SQL: here they would be read as attributes of those names.
_CLOCKS = frozenset(parser.Parser.NO_PAREN_FUNCTIONS)
# sqlglot forgives a comma after the first, and before the second.
_BEFORE_LISTS = _OPENS | {TokenType.SELECT, TokenType.DISTINCT, TokenType.ALL}
_AFTER_LISTS = _CLOSES | {
    *(TokenType.FROM, TokenType.WHERE, TokenType.HAVING, TokenType.THEN, TokenType.COMMA),
    *(TokenType.JOIN, TokenType.INNER),
}
# What may stand between two tokens. sqlglot would skip more: comments without an end, Jinja's, and
# hints where it expects none.
_BLANK = re.compile(r"(?:\s|--[^\n]*|/\*(?!\+)(?s:.*?)\*/)*\Z")


@dataclass(frozen=True, slots=True)
class Syntax:
    """The SELECTs of a text (several in a pattern), their tokens, and the seconds after WITHIN."""

    selects: tuple[exp.Select, ...]
    tokens: tuple[tuple[Token, ...], ...]
    within: int | float | None


def read(text: object) -> Syntax:
    """Text to syntax trees, or a refusal with its place."""
    if not isinstance(text, str):
        raise LanguageError("a text", type(text).__name__)
    found = _name_parameters(_tokenize(text), text)
    _check_nesting(found, text)
    rest, within = _closing_within(found, text)
    steps = _split_at_then(rest, text)
    if len(steps) == 1 and within is not None:
        place = found[-2].line, column_of(found[-2], text)
        raise LanguageError("WITHIN at the end of a pattern (… THEN …)", "one SELECT", *place)
    if len(steps) > STEPS_MAX:
        first = steps[STEPS_MAX][0]
        place = first.line, column_of(first, text)
        raise LimitExceeded(f"at most {STEPS_MAX} steps in a pattern", str(len(steps)), *place)
    selects = tuple(_select(step, text) for step in steps)
    return Syntax(selects, tuple(map(tuple, steps)), within)


def _tokenize(text: str) -> list[Token]:
    if len(text) > LENGTH_MAX:
        raise LimitExceeded(f"at most {LENGTH_MAX} characters", f"{len(text)}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line, column = _place(text, error.start)
        raise LanguageError("well-formed Unicode", "a lone surrogate", line, column) from None
    try:
        found = list(_DIALECT.tokenize(text))
    except TokenError as error:
        raise _untokenized(error.__cause__ or error, text) from None
    if len(found) > TOKENS_MAX:
        raise LimitExceeded(f"at most {TOKENS_MAX} words and signs", f"{len(found)}")
    _check_gaps(found, text)
    while found and found[-1].token_type is TokenType.SEMICOLON:
        found.pop()
    for token in found:
        if token.token_type is TokenType.SEMICOLON:
            raise LanguageError("one statement", "several", token.line, column_of(token, text))
    if not found:
        raise LanguageError("a SELECT", "an empty text", 1, 1)
    return found


def _untokenized(cause: BaseException, text: str) -> LanguageError:
    """The refusal of a text that is no sequence of tokens: sqlglot says "Missing ' from 1:20"."""
    if isinstance(cause, IndexError):
        return LanguageError(_READABLE, "a comment without an end", *_place(text, len(text)))
    what, _, where = _first_line(str(cause)).rpartition(" from ")
    start = where.rpartition(":")[2]
    place = _place(text, int(start)) if start.isdecimal() else (None, None)
    return LanguageError(_READABLE, what.replace("Missing", "no closing") or where, *place)


def _check_gaps(found: Sequence[Token], text: str) -> None:
    """Refuse a text of which the tokens leave out more than blanks and comments."""
    ends = [-1, *(token.end for token in found)]
    starts = [*(token.start for token in found), len(text)]
    for end, start in zip(ends, starts, strict=True):
        if start - end > 1 and not _BLANK.match(text, end + 1, start):
            came = _first_line(text[end + 1 : start])[:40]
            raise LanguageError("words, signs and comments of SQL", came, *_place(text, end + 1))


def _name_parameters(found: list[Token], text: str) -> list[Token]:
    """Make words of keywords that stand as names, and refuse words that are no names."""
    for before, token in pairwise(found):
        place = token.line, column_of(token, text)
        if before.token_type is TokenType.COLON:
            if token.token_type in _QUOTED:
                raise LanguageError("a parameter such as :limit", f":{token.text[:40]!r}", *place)
            if token.text.isidentifier():
                token.token_type = TokenType.VAR
        if token.token_type is TokenType.NOT and token.text == "!":
            raise LanguageError("NOT", "!", *place)
        if token.token_type in _NOT_OURS:
            raise LanguageError("no brackets but ( )", token.text, *place)
        if token.token_type in _CLOCKS:
            raise LanguageError(f'now(), or "{token.text}" in quotes', token.text, *place)
        if token.token_type is TokenType.COMMA and before.token_type in _BEFORE_LISTS:
            raise LanguageError("something before the comma", before.text, *place)
        if before.token_type is TokenType.COMMA and token.token_type in _AFTER_LISTS:
            raise LanguageError("something after the comma", token.text, *place)
        if token.token_type is TokenType.FARROW and before.token_type in _QUOTED:
            raise LanguageError("name => value without quotes", repr(before.text[:40]), *place)
        if token.token_type is TokenType.UNKNOWN:  # sqlglot would read it as NULL after IS
            token.token_type = TokenType.VAR
        if token.token_type is TokenType.VAR and not token.text.isidentifier():
            raise LanguageError('a name, or "a name" in quotes', token.text[:40], *place)
        if token.token_type is TokenType.HEX_STRING and text[token.start] == "0":
            raise LanguageError("a number in decimal digits, or X'…' for bytes", "0x…", *place)
    return found


def _check_nesting(found: Iterable[Token], text: str) -> None:
    """Refuse what would nest too deep: brackets, CASEs, and runs of prefix operators."""
    depth = run = 0
    for token in found:
        kind = token.token_type
        depth += (kind in _OPENS) - (kind in _CLOSES)
        run = run + 1 if kind in _PREFIXES else 0
        if max(depth, 0) + run > NESTING_MAX:
            raise LimitExceeded(
                f"at most {NESTING_MAX} levels of nesting",
                "more",
                token.line,
                column_of(token, text),
            )


def _closing_within(found: list[Token], text: str) -> tuple[list[Token], int | float | None]:
    if len(found) < 2 or found[-2].text.upper() != "WITHIN":
        return found, None
    if found[-2].token_type is TokenType.IDENTIFIER or found[-1].token_type is not TokenType.NUMBER:
        return found, None
    place = found[-1].line, column_of(found[-1], text)
    seconds = number(found[-1].text, *place)
    if not 0 < seconds <= INTEGER_MAX:
        raise LanguageError("seconds above 0 after WITHIN", found[-1].text, *place)
    return found[:-2], seconds


def _split_at_then(found: list[Token], text: str) -> list[list[Token]]:
    """The tokens of each step: THEN inside CASE … END belongs to the CASE."""
    steps: list[list[Token]] = [[]]
    cases = 0
    for token in found:
        cases += (token.token_type is TokenType.CASE) - (token.token_type is TokenType.END)
        if token.token_type is not TokenType.THEN or cases:
            steps[-1].append(token)
            continue
        if not steps[-1] or token is found[-1]:
            place = token.line, column_of(token, text)
            raise LanguageError("a SELECT on both sides of THEN", "nothing", *place)
        steps.append([])
    return steps


def _select(step: Sequence[Token], text: str) -> exp.Select:
    first, last = step[0], step[-1]
    if last.token_type is TokenType.COMMA:
        place = last.line, column_of(last, text)
        raise LanguageError("something after the comma", "the end", *place)
    if first.token_type is not TokenType.SELECT:
        raise LanguageError("a SELECT", first.text or "nothing", first.line, column_of(first, text))
    try:
        trees = _DIALECT.parser().parse(list(step), text)
    except ParseError as error:
        facts = error.errors[0] if error.errors else {}
        near = str(facts.get("highlight") or "")
        # sqlglot says where the token ends; a refusal says where it begins.
        column = max(1, facts["col"] - len(near) + 1) if facts.get("col") else None
        came = _plainly(str(facts.get("description") or "something else"))
        raise LanguageError(
            _READABLE,
            f"{came} at {near[:40]!r}" if near else came,
            facts.get("line"),
            column,
        ) from None
    except Exception as error:
        # sqlglot meets texts it did not expect with whatever breaks first (an IndexError for
        # `f(() => 1)`); what it cannot read is refused, whatever it says.
        raise LanguageError(
            _READABLE, "something else", first.line, column_of(first, text)
        ) from error
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Select):
        came = "several statements" if tree is None else tree.key.upper()
        raise LanguageError("a plain SELECT", came, first.line, column_of(first, text))
    return tree


def number(text: str, line: int | None = None, column: int | None = None) -> int | float:
    """The number a token spells, exactly: an integer of 64 bits or a finite float."""
    if text.isdecimal() and text.isascii():
        # Counted before it is read, because Python refuses to read thousands of digits; one above
        # the largest is let through: a minus sign may stand before it.
        digits = text.lstrip("0") or "0"
        if len(digits) > 19 or int(digits) > 2**63:
            raise LanguageError("an integer of 64 bits", text[:40], line, column)
        return int(digits)
    try:
        real = float(text)
    except ValueError:
        raise LanguageError("a number", text[:40], line, column) from None
    vanished = real == 0 and any(digit in "123456789" for digit in text.lower().partition("e")[0])
    if math.isinf(real) or real != real or vanished or "_" in text:
        raise LanguageError("a number that a float can hold", text[:40], line, column)
    return real


def _plainly(description: str) -> str:
    """Sqlglot's description without its class names."""
    if description.startswith("Required keyword"):
        return "something unfinished"
    if description.startswith("Invalid expression"):
        return "something unexpected"
    return description.partition(" but got <")[0].rstrip(".")


def column_of(token: Token, text: str) -> int:
    """Where the token begins, from 1 (sqlglot says where it ends)."""
    return token.start - text.rfind("\n", 0, token.start)


def _place(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _first_line(message: str) -> str:
    return (message.strip().splitlines() or ["nothing"])[0][:120]
