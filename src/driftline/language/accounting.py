"""Is every word of the text in its syntax tree, and nothing in the tree that was not said?

sqlglot forgives: it reads `BETWEEN 1 2`, `WHEN x 1` and `x NOT NULL`, and drops the stray sign of
`FROM t *`, `FROM .t` and `+'a'`. So the signs and words it forgives are counted on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from driftline.errors import LanguageError


def _one(*kinds: type[exp.Expr]) -> Callable[[exp.Expr], int]:
    return lambda node: int(isinstance(node, kinds))


def _numbers(node: exp.Expr) -> int:
    return int(isinstance(node, exp.Literal) and not node.is_string)


def _dots(node: exp.Expr) -> int:
    """The dots of a qualified name: table.column."""
    if isinstance(node, exp.Column | exp.Table):
        return sum(node.args.get(part) is not None for part in ("table", "db", "catalog"))
    return int(isinstance(node, exp.Dot))


# What a person would call it, the tokens that say it, and how many of them a node stands for.
_ACCOUNTS: tuple[tuple[str, frozenset[TokenType], Callable[[exp.Expr], int]], ...] = (
    ("AND", frozenset({TokenType.AND}), _one(exp.And, exp.Between)),
    ("THEN", frozenset({TokenType.THEN}), _one(exp.If)),
    ("IS", frozenset({TokenType.IS, TokenType.ISNULL, TokenType.NOTNULL}), _one(exp.Is)),
    ("+", frozenset({TokenType.PLUS}), _one(exp.Add)),
    ("*", frozenset({TokenType.STAR}), _one(exp.Star, exp.Mul)),
    ("dot", frozenset({TokenType.DOT}), _dots),
    ("number", frozenset({TokenType.NUMBER}), _numbers),
)


def check_accounts(select: exp.Select, said: Sequence[Token]) -> None:
    """Refuse a SELECT whose tree and tokens differ in one of the accounts."""
    nodes = tuple(select.walk())
    # The dot of `.5` is a token of its own, and none of a name's.
    fractions = (b.token_type is TokenType.NUMBER for b in (*said[1:], said[0]))
    words = [
        token
        for token, before_number in zip(said, fractions, strict=True)
        if not (before_number and token.token_type is TokenType.DOT)
    ]
    for word, kinds, count in _ACCOUNTS:
        spoken = [token for token in words if token.token_type in kinds]
        read = sum(count(node) for node in nodes)
        if len(spoken) != read:
            came = f"{word} {len(spoken)} times, read {read} times"
            raise LanguageError(f"each {word} in its place", came)
