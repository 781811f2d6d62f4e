"""Where may webhooks go, what are they signed with, and how patiently are they tried?

    [webhooks]
    allow = ["https://hooks.example.org/driftline/"]
    secret_file = "webhooks.secret"     # at least 32 bytes; or DRIFTLINE_WEBHOOKS_SECRET
    attempts = 12                       # then it is a dead letter
    give_up = 86400                     # seconds after which it is one, too

Without the table there are none. Whatever is in the file, no receiver ever sees: each durable
subscription has a secret of its own, which is made from it.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from driftline.errors import FileRefused, InvalidValue
from driftline.model.value import show
from driftline.net.secrets import secret_of
from driftline.net.tls import trusting
from driftline.net.web_address import WebAddress

SECRET_VARIABLE = "DRIFTLINE_WEBHOOKS_SECRET"
SECRET_LEAST = 32
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Webhooks:
    """How webhooks are sent; times are seconds."""

    allow: tuple[str, ...]
    """The addresses that they may go to, each with all that is below its path."""
    secret_file: Path | None = None
    authority: Path | None = None
    """Who must have signed the certificates of receivers, if not whom the system trusts."""
    attempts: int = 12
    first: float = 1.0
    """How long to wait after the first failure; then twice as long each time."""
    longest: float = 3600.0
    """No longer than this, whatever a receiver asks for."""
    timeout: float = 15.0
    give_up: float = _DAY
    at_once: int = 32
    """So many are sent at the same time."""
    per_host: int = 8
    """So many of these to one host."""

    def __post_init__(self) -> None:
        check_numbers("webhooks", self, _RANGES)
        if not self.allow:
            raise InvalidValue("webhooks.allow", "addresses such as https://host/path/", "none")
        for one in self.prefixes():
            if one.query:
                raise InvalidValue("webhooks.allow", "addresses without ?", show(str(one)))

    def prefixes(self) -> list[WebAddress]:
        """What is allowed, taken apart."""
        return [WebAddress.of(one, "webhooks.allow") for one in self.allow]

    def master(self, environment: Mapping[str, str] | None = None) -> bytes:
        """What all secrets are made from."""
        words = os.environ if environment is None else environment
        found = secret_of(self.secret_file, SECRET_VARIABLE, words)
        if found is None:
            wanted = f"a file with at least {SECRET_LEAST} bytes, or {SECRET_VARIABLE}"
            raise InvalidValue("webhooks.secret_file", wanted, "none")
        if len(found) < SECRET_LEAST:
            why = f"a secret for webhooks has at least {SECRET_LEAST} bytes, came {len(found)}"
            raise FileRefused(str(self.secret_file or SECRET_VARIABLE), None, why)
        return found

    def trust(self) -> ssl.SSLContext:
        """Which receivers are believed."""
        return trusting(self.authority)


_RANGES: Mapping[str, tuple[float, float]] = {
    "attempts": (1, 1000),
    "first": (0.01, _DAY),
    "longest": (0.01, _DAY),
    "timeout": (0.1, 300.0),
    "give_up": (1.0, 30 * _DAY),
    "at_once": (1, 1000),
    "per_host": (1, 1000),
}


def check_numbers(table: str, settings: object, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Raise if a setting is not within its range."""
    for name, (least, most) in ranges.items():
        value = getattr(settings, name)
        if not least <= value <= most:
            wanted = f"a number from {least:g} to {most:g}"
            raise InvalidValue(f"{table}.{name}", wanted, show(value))
