"""What is a broker's configuration, where does each part of it come from, and does it hold?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from driftline.errors import FileRefused, InvalidValue
from driftline.net.certified import certificate_doubts, check_certificate
from driftline.net.config import (
    ENVIRONMENT,
    TABLES,
    VARIABLES,
    Config,
    Sources,
    close_to,
    read_config,
    sources_of,
)
from driftline.net.identities import Identities
from driftline.net.journal import file_of
from driftline.net.secrets import is_misread, without_password

OTHERS = (
    "ADDRESS",
    "TOKEN",
    "TOKEN_FILE",
    "PROFILE",
    "SEED",
    "CACHE_DIR",
    "EMAIL_PASSWORD",
    "MQTT_PASSWORD",
    "WEBHOOKS_SECRET",
)
"""Variables of the environment that are no settings of a broker."""


class Setting(NamedTuple):
    """One setting, its value, and who said so."""

    name: str
    value: object
    origin: str


def settings_of(config: Config, sources: Sources) -> Iterator[Setting]:
    """Every setting there is, as it counts; tables that are not there are left out."""
    for one in fields(Config):
        value = getattr(config, one.name)
        if one.name in TABLES and is_dataclass(value):
            for inner in fields(value):
                name = f"{one.name}.{inner.name}"
                yield Setting(name, _shown(getattr(value, inner.name)), _origin(name, sources))
        elif one.name == "peers":
            for peer in config.peers:
                shown = f"{peer.role} at {peer.address}" if peer.address else f"{peer.role}"
                yield Setting(f"peers.{peer.name}", shown, _origin("peers", sources))
        elif one.name not in TABLES:
            is_journal = one.name == "journal"
            said = without_password(str(value)) if is_journal else _shown(value)
            yield Setting(one.name, said, _origin(one.name, sources))


def _shown(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    return list(value) if isinstance(value, tuple) else str(value)


def _origin(name: str, sources: Sources) -> str:
    if name in sources.given:
        return "command line"
    if name in sources.environment:
        return VARIABLES[name][0]
    return "file" if name in sources.file else "default"


def check_journal(config: Config) -> None:
    """Is its address one that is read as it is meant? What is not would be in errors."""
    if is_misread(config.journal):
        wanted = "a user and a password whose @ and / are written %40 and %2F"
        raise InvalidValue("journal", wanted, without_password(config.journal))


def _check_file(config: Config) -> None:
    """Can its journal be a file there? What is in it is not looked at: a broker may have it."""
    file = file_of(config.journal)
    if file is None:
        return
    if file.is_dir():
        raise FileRefused(str(file), None, "wanted the file of a journal, came a folder")
    if not file.parent.is_dir():
        raise FileRefused(str(file), None, "there is no such folder for the journal")


def _check_addresses(config: Config) -> None:
    """No two of its doors can be at one address; what others have is seen when it begins."""
    doors = [("listen", config.listen)]
    if config.http is not None:
        doors.append(("http.listen", config.http.address))
    if config.health is not None:
        doors.append(("health", config.health))
    for (one, at), (other, there) in combinations(doors, 2):
        if at.port and at.reached == there.reached:
            raise InvalidValue(other, f"an address that is not that of {one}", str(there))


def check(config: Config) -> None:
    """Read all files that it names, as a broker would when it begins; raises what is wrong."""
    check_journal(config)
    _check_file(config)
    _check_addresses(config)
    if config.tls is not None:
        config.tls.client()
        check_certificate(config.tls)
    Identities(config)
    if config.webhooks is not None:
        config.webhooks.master()
        config.webhooks.trust()
    if config.email is not None:
        config.email.password()
        config.email.trust()


def doubts(config: Config, environment: Mapping[str, str]) -> list[str]:
    """What is allowed, and perhaps not meant."""
    found = []
    known = {word.removeprefix(ENVIRONMENT) for word, _ in VARIABLES.values()} | {*OTHERS}
    for word in sorted(environment):
        # What they all begin with would make all of them look alike.
        said = word.removeprefix(ENVIRONMENT)
        if said != word and said not in known:
            near = "".join(f": perhaps {ENVIRONMENT}{one}?" for one in close_to(said, known))
            found.append(f"{word} is in the environment, and means nothing{near}")
    found += certificate_doubts(config)
    if not config.is_closed and not config.listen.is_loopback:
        found.append(
            f"everybody who reaches {config.listen} may do everything: see [tokens], access"
        )
    if config.access is None and config.tokens is not None:
        found.append("everybody with a token may do everything: there is no list of access")
    if config.tokens is None and config.is_closed and not _knows_certificates(config):
        found.append("nobody can prove who they are: there are neither [tokens] nor tls.authority")
    if config.journal == "memory:":
        found.append('nothing survives the end of this broker: journal = "memory:"')
    for one in () if config.webhooks is None else config.webhooks.prefixes():
        if one.scheme == "http" and not one.is_loopback:
            found.append(f"webhooks to {one} can be read by anybody on the way")
    if config.health is not None and not config.health.is_loopback:
        who = "sees tokens for /metrics on their way" if config.is_closed else "sees how it does"
        found.append(f"everybody who reaches {config.health} {who}")
    return found


def _knows_certificates(config: Config) -> bool:
    return config.tls is not None and config.tls.authority is not None


def read(path: Path | None, given: Mapping[str, Any] | None = None) -> tuple[Config, Sources]:
    """A configuration, and what it is made of."""
    return read_config(path, given), sources_of(path, given, os.environ)
