"""What of a broker's configuration can be said on a command line, and what is it then?

`serve` and `config` take the same options: what one shows is what the other runs with.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from driftline.errors import InvalidValue


class LogFormat(StrEnum):
    """How it is said."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """How much is said on standard error."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


NameOption = Annotated[
    str | None, typer.Option(help="What the broker is called in the overlay. [default: broker]")
]
ListenOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="Port 0 takes any that is free. [default: 127.0.0.1:7400]"
    ),
]
JournalOption = Annotated[
    str | None,
    typer.Option(
        metavar="PATH|URL",
        help="Where what is durable survives: a file, postgresql://…, or memory: (nowhere). "
        "[default: memory:]",
    ),
]
AccessOption = Annotated[
    Path | None, typer.Option(help="A TOML file that says who may do what; else anybody.")
]
HttpOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="Be reached over HTTP there, too: events, streams, commands."
    ),
]
HealthOption = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Answer /health there, over HTTP.")
]
PeerOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=HOST:PORT[:ROLE]",
        help="A broker to dial, and what it is to us: peer, master, client or mesh. "
        "NAME or NAME=ROLE waits until that one dials.",
    ),
]
LevelOption = Annotated[
    LogLevel | None,
    typer.Option(case_sensitive=False, help="On standard error. [default: info]"),
]
FormatOption = Annotated[
    LogFormat | None,
    typer.Option(case_sensitive=False, help="Text, or a JSON object a line. [default: text]"),
]


def given_of(
    *,
    name: str | None,
    listen: str | None,
    journal: str | None,
    access: Path | None,
    http: str | None,
    health: str | None,
    peer: list[str] | None,
    log_level: LogLevel | None,
    log_format: LogFormat | None,
) -> dict[str, Any]:
    """These options by the names of the settings that they are."""
    return {
        "name": name,
        "listen": listen,
        "journal": journal,
        "access": None if access is None else str(access),
        "http.listen": http,
        "health": health,
        "peers": [_peer(one) for one in peer] if peer else None,
        "logs.level": log_level,
        "logs.format": log_format,
    }


def _peer(text: str) -> dict[str, str]:
    """A peer from NAME, NAME=ROLE, or NAME=HOST:PORT[:ROLE]."""
    from driftline.broker.links import Role

    name, equals, rest = text.partition("=")
    if not name or (equals and not rest):
        raise InvalidValue("--peer", "NAME=HOST:PORT[:ROLE]", repr(text))
    if not equals:
        return {"name": name}
    if rest in tuple(Role):
        return {"name": name, "role": rest}
    address, colon, role = rest.rpartition(":")
    if colon and role in tuple(Role):
        return {"name": name, "address": address, "role": role}
    return {"name": name, "address": rest}
