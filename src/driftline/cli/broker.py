"""How do the commands that speak with a broker find it, and read what they are given?

Who we are is proven by $DRIFTLINE_TOKEN, or by what the file $DRIFTLINE_TOKEN_FILE holds whenever a
connection is made.

The address may be left out: then it is $DRIFTLINE_ADDRESS, or driftline://127.0.0.1:7400. A first
word is taken for an address if it looks like one (`driftline://…`, `host:port`).
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
import typer

from driftline.client.proof import authority_context, token
from driftline.errors import InvalidValue
from driftline.language.cloudevents import value_from
from driftline.model.value import Value

if TYPE_CHECKING:
    from driftline.connecting import Connecting

T = TypeVar("T")

DEFAULT = "driftline://127.0.0.1:7400"
_ADDRESS = re.compile(r"driftlines?://.*|(\[[0-9a-fA-F:]+\]|[\w.-]+):\d{1,5}", re.DOTALL)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
"""A number as JSON writes it."""
_SHOWN = 60

AuthorityOption = Annotated[
    Path | None, typer.Option(help="With driftlines://, the certificate of who signed theirs.")
]
ParamOption = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter; once for each."),
]
WithinOption = Annotated[float, typer.Option(min=0.01, help="Seconds brokers have to answer.")]


def default_address() -> str:
    """The address where none is said."""
    return os.environ.get("DRIFTLINE_ADDRESS") or DEFAULT


def addressed(words: list[str]) -> tuple[str, list[str]]:
    """The address that words begin with, or the default, and the other words."""
    if words and _ADDRESS.fullmatch(words[0]):
        return words[0], words[1:]
    return default_address(), words


def connecting(address: str, authority: Path | None, within: float = 10.0) -> Connecting:
    """A connection to be entered."""
    from driftline.connecting import connect

    if authority is not None and not address.startswith("driftlines://"):
        raise typer.BadParameter("--authority is for an address with driftlines://")
    token()  # What cannot be read at all is said at once.
    return connect(address, token=token, tls=authority_context(authority), within=within)


def named_values(words: Iterable[str] | None, option: str) -> dict[str, Value]:
    """Names and values from words such as limit=10, typed like JSON; other words are texts.

    >>> named_values(["limit=10", "firm=IBM", 'id="7"', "open=true"], "-p")
    {'limit': 10, 'firm': 'IBM', 'id': '7', 'open': True}
    """
    found: dict[str, Value] = {}
    for word in words or ():
        name, equals, text = word.partition("=")
        if not name or not equals:
            raise InvalidValue(option, "NAME=VALUE", repr(word))
        if name in found:
            raise InvalidValue(option, "each name once", f"{name} again")
        value = _value(text, f"{option} {name}")
        if value is not None:
            found[name] = value
    return found


def _value(text: str, where: str) -> Value | None:
    try:
        data: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as problem:
        # What begins like JSON was meant to be some.
        if text[:1] in ('"', "{", "["):
            raise InvalidValue(where, "a JSON value", f"{text[:_SHOWN]}: {problem}") from None
        if _NUMBER.fullmatch(text.strip()):
            raise _too_great(where, "a number of 64 bits (to about 1.8e308)", text) from None
        data = text
    if data is None:
        return None
    try:
        return value_from(data, where)
    except InvalidValue as problem:
        if isinstance(data, int):
            raise _too_great(where, problem.wanted, text) from None
        raise


def _too_great(where: str, wanted: str, text: str) -> InvalidValue:
    """A number, and no text: whoever writes one does not mean its letters."""
    short = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    return InvalidValue(where, f"{wanted}, or a text in quotes ('\"…\"')", short)


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
    """Run something on a loop of its own; None: somebody pressed Ctrl-C."""
    with suppress(KeyboardInterrupt):
        return asyncio.run(work())
    return None
