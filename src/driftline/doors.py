"""What may be given to the engine?

Checked at its door, before anything changes: the error says what was wanted and what came.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from driftline.broker.stating import check_executable
from driftline.errors import InvalidValue, NotSupported
from driftline.language.advertising import advertisement as read_advertisement
from driftline.language.builder import Term, select
from driftline.language.sql import parse
from driftline.model.advertisement import Advertisement
from driftline.model.covering import Statement
from driftline.model.event import Event
from driftline.model.pattern import Pattern
from driftline.model.subscription import Subscription
from driftline.model.value import show
from driftline.model.view import View
from driftline.moving.evolving.crossing import followed

# The same text, with other parameters, stands for many: reading it is most of the work.
_read = lru_cache(maxsize=1024)(parse)
_SHORT = 1000

Wanted: TypeAlias = str | Statement | Term


def admit_event(given: object) -> Event:
    """An event, or InvalidValue."""
    if not isinstance(given, Event):
        raise InvalidValue("event", "an Event", show(given))
    return given


def check_provider(given: object) -> None:
    """A provider is a function, or none."""
    if given is not None and not callable(given):
        raise InvalidValue("provider", "a function without arguments", show(given))


def check_followed(statement: Statement, rows: bool) -> None:
    """Only live rows whose bounds move by polynomials can be followed."""
    if not rows or not isinstance(statement, Subscription):
        raise NotSupported(
            str(statement), 'on_change="follow" is for a live set of rows: rows=True'
        )
    problem = followed(statement)
    if problem is not None:
        raise NotSupported(str(statement), problem)


def microseconds(seconds: object, where: str) -> int:
    """Seconds as whole microseconds."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    # Written so that NaN does not get further.
    if number and 1e-6 <= seconds <= 1e9:  # type: ignore[operator]
        return round(seconds * 1e6)  # type: ignore[operator]
    raise InvalidValue(where, "seconds, from a millionth to a thousand million", show(seconds))


def check_handler(given: object) -> None:
    """A handler is a function, or none."""
    if given is not None and not callable(given):
        raise InvalidValue("handler", "a function of a handle and a notification", show(given))


def check_party(given: object) -> None:
    """A party is a name."""
    if not isinstance(given, str):
        raise InvalidValue("party", "a name", show(given))


def admit_advertisement(says: object) -> Advertisement:
    """An advertisement, or that of a text."""
    if isinstance(says, Advertisement):
        return says
    return read_advertisement(says)  # type: ignore[arg-type]  # which refuses what is no text


def admit_statement(wanted: Wanted | object) -> Statement:
    """The model of what is wanted, if the engine can execute it."""
    if isinstance(wanted, Term):
        statement: Statement = select(where=wanted)
    elif isinstance(wanted, Subscription | Pattern | View):
        statement = wanted
    elif isinstance(wanted, str) and len(wanted) <= _SHORT:
        statement = _read(wanted)
    else:
        statement = parse(wanted)  # type: ignore[arg-type]  # which refuses what is no text
    check_executable(statement)
    return statement
