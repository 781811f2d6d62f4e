"""Is this the address of a webhook, and is it one of those that are allowed?

A broker stands where its operator has put it, often beside machines that nobody outside can reach.
So an address is taken apart once, must be in its plain form, and is compared part by part: what
looks like one place and is another must be refused here.

    >>> allowed = WebAddress.of("https://hooks.example.org/in/")
    >>> allowed.covers(WebAddress.of("https://hooks.example.org/in/alice?key=7"))
    True
    >>> allowed.covers(WebAddress.of("https://hooks.example.org:8443/in/alice"))
    False
    >>> WebAddress.of("https://hooks.example.org/in/../admin")
    Traceback (most recent call last):
    driftline.errors.InvalidValue: address: wanted a path without . and .., or what hides ...
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from unicodedata import normalize
from urllib.parse import unquote, urlsplit

from driftline.errors import InvalidValue
from driftline.model.value import show
from driftline.net.address import Address

ADDRESS_MAX = 2000
_PLAIN = re.compile(r"[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HIDDEN = re.compile(r"%(?:2f|5c|25)", re.IGNORECASE)
"""What a server behind another may read as a slash, or a percent sign once more."""
_UPWARDS = re.compile(r"\.\.(?![\w.~-])", re.ASCII)
"""Two dots, and nothing behind them that would make them a name to everybody."""
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class WebAddress:
    """An address in its parts."""

    scheme: str
    host: str
    port: int
    path: str
    query: str

    @classmethod
    def of(cls, text: str, where: str = "address") -> WebAddress:
        """Take an address apart; `InvalidValue` unless it is plain beyond doubt."""

        def refuse(wanted: str) -> InvalidValue:
            # What stands before an @ may be a password, wherever a parser would let it end.
            before, at, behind = text.rpartition("@")
            return InvalidValue(where, wanted, show(f"{'…' if before else ''}{at}{behind}"[:200]))

        if len(text) > ADDRESS_MAX:
            raise refuse(f"at most {ADDRESS_MAX} characters")
        if not _PLAIN.fullmatch(text):
            raise refuse("an address of ASCII letters, without spaces and backslashes")
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise refuse("an address such as https://host/path") from None
        if parts.scheme not in _PORTS or not text.startswith(f"{parts.scheme}://"):
            raise refuse("https://, in small letters")
        if "@" in parts.netloc:
            raise refuse("nobody's name or password before the host")
        if "#" in text:
            raise refuse("an address without #")
        if port == 0 or parts.netloc.endswith(":"):
            raise refuse("a port from 1 to 65535, or none")
        path = _path(parts.path, refuse("a path without . and .., or what hides them"))
        host = _host(parts.netloc, refuse("the plain name of a host, in small letters"))
        return cls(parts.scheme, host, port or _PORTS[parts.scheme], path, parts.query)

    def covers(self, other: WebAddress) -> bool:
        """Is another one here, or below this path?"""
        if (self.scheme, self.host, self.port) != (other.scheme, other.host, other.port):
            return False
        below = self.path if self.path.endswith("/") else f"{self.path}/"
        return other.path == self.path or other.path.startswith(below)

    @property
    def is_loopback(self) -> bool:
        """Is it on this machine, so that nobody is on the way?"""
        return Address(self.host.strip("[]"), self.port).is_loopback

    @property
    def place(self) -> str:
        """The host and the port, which can be shown to everybody: a path may be a secret."""
        return f"{self.host}:{self.port}"

    def __str__(self) -> str:
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        query = f"?{self.query}" if self.query else ""
        return f"{self.scheme}://{self.host}{port}{self.path}{query}"


def _host(netloc: str, refused: InvalidValue) -> str:
    host = re.sub(r":\d+$", "", netloc)
    if host.startswith("["):
        try:
            address = ipaddress.IPv6Address(host.strip("[]"))
        except ValueError:
            raise refused from None
        if host != f"[{address}]":
            raise refused
        return host
    if not _HOST.fullmatch(host):
        raise refused
    last = host.rpartition(".")[2]
    if last.isdigit() or last.startswith("0x"):
        # 127.1, 2130706433 and 0x7f000001 are addresses to some: only four plain numbers count.
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            raise refused from None
    return host


def _path(path: str, refused: InvalidValue) -> str:
    if _PERCENT.search(path) or _HIDDEN.search(path):
        raise refused
    for segment in path.split("/"):
        try:
            # A dot in more bytes than it takes is one to some, and no UTF-8.
            said = unquote(segment, errors="strict")
        except UnicodeDecodeError:
            raise refused from None
        # What cannot be seen may be taken away before a server looks, and what looks like a dot
        # may become one.
        if not said.isprintable():
            raise refused
        plain = normalize("NFKC", said).replace("\u3002", ".").replace(" ", "")
        # Some servers take away what is behind a semicolon and the like before they look.
        is_away = plain.partition(";")[0] == "." or _UPWARDS.match(plain) is not None
        # None of these is there as it stands: it hid until now.
        if is_away or set("/\\") & set(plain) or plain.count("%") > said.count("%"):
            raise refused
    return path or "/"
