"""How does a command speak: data to standard output, the rest to standard error?"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from rich.console import Console, HighlighterType, JustifyMethod, OverflowMethod
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

from driftline.errors import InvalidValue
from driftline.language.cloudevents import value_from, value_to
from driftline.model.value import Value

# Rich reads NO_COLOR and whether it writes to a terminal; nothing to do here.
# What goes into a file or a pipe has no width of its own: tables are not to be cut there.
_WIDE = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 200


def escaped(text: str, keep: str = "") -> str:
    r"""A text that moves no cursor, breaks no line and turns no direction, whoever wrote it.

    >>> escaped("a\x1b[2J\nb")
    'a\\x1b[2J\\nb'
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in keep else one.encode("unicode_escape").decode()
        for one in text
    )


def plain(said: object, style: str = "") -> Text:
    """What others may have written, on one line: for a cell of a table, or beside our own."""
    return Text(escaped(str(said)), style)


class _Plain(Console):
    """A console for which a string is what it says: no markup, no emoji, no orders to a terminal.

    Nearly all that is printed was written by others: events, names, texts, what went wrong.
    """

    def render_str(
        self,
        text: str,
        *,
        style: str | Style = "",
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        emoji: bool | None = None,
        markup: bool | None = None,
        highlight: bool | None = None,
        highlighter: HighlighterType | None = None,
    ) -> Text:
        # An explanation has lines of its own.
        return Text(escaped(text, keep="\n"), style, justify=justify, overflow=overflow)


stdout = _Plain(soft_wrap=True, highlight=False, markup=False, emoji=False, width=_WIDE)
stderr = _Plain(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


def print_json(data: object) -> None:
    """One JSON object on standard output."""
    encoded = msgspec.json.format(msgspec.json.encode(data, enc_hook=_encode), indent=2)
    sys.stdout.write(encoded.decode() + "\n")


def print_json_line(data: object) -> None:
    """One JSON object on a line of its own, at once: for whoever reads while we go on."""
    sys.stdout.write(msgspec.json.encode(data, enc_hook=_encode).decode() + "\n")
    sys.stdout.flush()


def _encode(value: object) -> object:
    if isinstance(value, datetime | bytes):
        return value_to(value)
    raise TypeError(f"no JSON for {type(value).__name__}")


def print_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """A table on standard output."""
    # An address is copied; half of one is of no use.
    heads = [Column(name, no_wrap=name == "address") for name in columns]
    table = Table(*heads, title=escaped(title), title_justify="left", title_style="bold")
    for row in rows:
        table.add_row(*map(plain, row))
    stdout.print(table)


def print_facts(facts: Mapping[str, object]) -> None:
    """Names and values, one a line; what is empty is left out."""
    width = max((len(name) for name in facts), default=0)
    for name, value in facts.items():
        if value not in (None, "", (), [], {}):
            stdout.print(plain(f"{name:<{width}}  {value}"))


def progress() -> Progress:
    """A progress bar on standard error; silent where that is no terminal."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=stderr,
        transient=True,
        disable=not stderr.is_terminal,
    )


def read_values(text: str | None, option: str) -> dict[str, Value]:
    """Names and values from an option such as --params '{"limit": 10}'."""
    if text is None:
        return {}
    try:
        data: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidValue(option, "a JSON object of names and values", str(error)) from None
    if not isinstance(data, dict):
        raise InvalidValue(option, "a JSON object of names and values", text[:60])
    return {name: value_from(value, f"{option} {name}") for name, value in data.items()}
