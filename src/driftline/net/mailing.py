"""By which server does mail go out, in whose name, and to whom may it?

    [email]
    host = "mail.example.org"
    sender = "driftline@example.org"
    allow = ["*@example.org"]
    user = "driftline"
    password_file = "mail.password"     # or DRIFTLINE_EMAIL_PASSWORD

Without the table there is none.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from driftline.errors import InvalidValue
from driftline.model.value import show
from driftline.net.address import Address
from driftline.net.secrets import secret_of
from driftline.net.tls import trusting
from driftline.net.webhooks import check_numbers

PASSWORD_VARIABLE = "DRIFTLINE_EMAIL_PASSWORD"
SECURITY = ("starttls", "tls", "none")
_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_DAY = 86_400.0
_DOMAIN = r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_LOCAL = r"[A-Za-z0-9_+=~'-]+(?:\.[A-Za-z0-9_+=~'-]+)*"
MAILBOX = re.compile(f"(?=.{{3,254}}$){_LOCAL}@{_DOMAIN}")
"""A mailbox in its plain form: no quotes, no comments, a domain in small letters."""
_ALLOWED = re.compile(rf"(?:\*|{_LOCAL})@{_DOMAIN}")


@dataclass(frozen=True, slots=True)
class Email:
    """How mail is sent; times are seconds."""

    host: str
    sender: str
    allow: tuple[str, ...]
    """Whom it may go to: mailboxes, and `*@example.org` for all of a domain."""
    port: int = 0
    """0: the one that is usual."""
    security: str = "starttls"
    user: str = ""
    password_file: Path | None = None
    authority: Path | None = None
    """Who must have signed the server's certificate, if not whom the system trusts."""
    attempts: int = 12
    first: float = 5.0
    longest: float = 3600.0
    timeout: float = 30.0
    give_up: float = 2 * _DAY
    per_minute: int = 6
    """Mails of one durable subscription; what is more is gathered into one."""
    gathered: int = 200
    """So many notifications are in one mail at most."""
    at_once: int = 4
    """So many are sent at the same time."""

    def __post_init__(self) -> None:
        check_numbers("email", self, _RANGES)
        if self.security not in SECURITY:
            wanted = f"one of {', '.join(SECURITY)}"
            raise InvalidValue("email.security", wanted, show(self.security))
        if not self.host or not re.fullmatch(r"[A-Za-z0-9.:-]+", self.host):
            raise InvalidValue("email.host", "the name of a server", show(self.host))
        if self.security == "none" and not Address(self.host, 0).is_loopback:
            wanted = "starttls or tls, unless the server is on this machine"
            raise InvalidValue("email.security", wanted, f"none, and {self.host}")
        if not MAILBOX.fullmatch(self.sender):
            raise InvalidValue("email.sender", "a mailbox", show(self.sender))
        for one in self.allow:
            if not _ALLOWED.fullmatch(one):
                wanted = "mailboxes such as ops@example.org or *@example.org"
                raise InvalidValue("email.allow", wanted, show(one))
        if not self.allow:
            raise InvalidValue("email.allow", "mailboxes such as *@example.org", "none")

    @property
    def at(self) -> int:
        """The port of the server."""
        return int(self.port) or _PORTS[self.security]

    def password(self, environment: Mapping[str, str] | None = None) -> str | None:
        """What proves to the server that it is us; None: nothing does."""
        if not self.user:
            return None
        words = os.environ if environment is None else environment
        found = secret_of(self.password_file, PASSWORD_VARIABLE, words)
        if found is None:
            wanted = f"a file with the password of {self.user}, or {PASSWORD_VARIABLE}"
            raise InvalidValue("email.password_file", wanted, "none")
        try:
            return found.decode()
        except UnicodeDecodeError:
            raise InvalidValue("email.password_file", "UTF-8", "something else") from None

    def trust(self) -> ssl.SSLContext:
        """Which server is believed."""
        return trusting(self.authority)


_RANGES: Mapping[str, tuple[float, float]] = {
    "port": (0, 65_535),
    "attempts": (1, 1000),
    "first": (0.01, _DAY),
    "longest": (0.01, _DAY),
    "timeout": (0.1, 300.0),
    "give_up": (1.0, 30 * _DAY),
    "per_minute": (1, 6000),
    "gathered": (1, 10_000),
    "at_once": (1, 1000),
}
