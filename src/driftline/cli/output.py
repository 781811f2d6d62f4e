"""How does a command speak: data to standard output, the rest to standard error?"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column, Table

from driftline.errors import InvalidValue
from driftline.language.cloudevents import value_from, value_to
from driftline.model.value import Value

# Rich reads NO_COLOR and whether it writes to a terminal; nothing to do here.
# What goes into a file or a pipe has no width of its own: tables are not to be cut there.
_WIDE = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 200
stdout = Console(soft_wrap=True, highlight=False, width=_WIDE)
stderr = Console(stderr=True, soft_wrap=True, highlight=False)


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
    table = Table(*heads, title=title, title_justify="left", title_style="bold")
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    stdout.print(table)


def print_facts(facts: Mapping[str, object]) -> None:
    """Names and values, one a line; what is empty is left out."""
    width = max((len(name) for name in facts), default=0)
    for name, value in facts.items():
        if value not in (None, "", (), [], {}):
            stdout.print(f"{name:<{width}}  {value}", markup=False)


def progress() -> Progress:
    """A progress bar on standard error; silent where that is no terminal."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
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
