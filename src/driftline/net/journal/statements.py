"""How is a subscription kept as it stands, so that very many come back quickly?

By its canonical text, from which the language reads the same statement again. Reading a text takes
half a millisecond, and most subscriptions differ in their parameters only: so a text is read once,
and all that stand for it share the statement.

    >>> from driftline.language.sql import parse
    >>> one = Standing.of(parse("SELECT * FROM quote WHERE price < :top"), {"top": 9})
    >>> written = write_standing(one)
    >>> written
    ['SELECT * FROM quote WHERE price < :top', False, {'top': 9}, 0, 0]
    >>> read_standing(written) == one
    True
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from driftline.language.sql import parse
from driftline.model.covering import Statement
from driftline.model.standing import Standing
from driftline.model.subscription import Subscription
from driftline.model.view import View

_TEXTS_MAX = 1 << 16
"""So many texts are known at a time; each takes a few kB."""


def write_standing(one: Standing) -> list[Any]:
    """Text, whether it is a view, parameters, start and epoch."""
    return [*write_statement(one.statement), dict(one.params), one.start_us, one.epoch]


def read_standing(written: list[Any]) -> Standing:
    """The inverse of `write_standing`."""
    text, viewed, params, start, epoch = written
    return Standing(_read(text, viewed), params, start, epoch)


def write_statement(one: Statement) -> list[Any]:
    """Text, and whether it is a view."""
    return [str(one), isinstance(one, View)]


def read_statement(written: list[Any]) -> Statement:
    """The inverse of `write_statement`."""
    text, viewed = written
    return _read(text, viewed)


@lru_cache(maxsize=_TEXTS_MAX)
def _read(text: str, viewed: bool) -> Statement:
    statement = parse(text)
    # Sets of rows, `moved` and `crossed` are written as subscriptions are.
    if viewed and isinstance(statement, Subscription):
        changes = statement.change is not None
        return View.of_change(statement) if changes else View.of_rows(statement)
    return statement
