"""Where does a broker listen, and where is another?"""

from __future__ import annotations

import ipaddress
import os
from contextlib import suppress
from dataclasses import dataclass

from driftline.errors import CannotListen, InvalidValue
from driftline.model.value import show

PORT = 7400


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port."""

    host: str
    port: int

    @classmethod
    def of(cls, text: object, where: str = "address") -> Address:
        """From `host:port`, `host` or `[::1]:port`."""
        if not isinstance(text, str) or not text:
            raise InvalidValue(where, "host:port", show(text))
        host, colon, port = text.rpartition(":")
        if not colon or (":" in host and not host.startswith("[")):
            host, port = text, str(PORT)
            if ":" in host.strip("[]") and not _is_ipv6(host.strip("[]")):
                raise InvalidValue(where, "host:port", show(text))
        # Python refuses to read numbers of thousands of digits.
        if not port.isdecimal() or len(port) > 5 or int(port) > 65_535:
            raise InvalidValue(where, "a port from 0 to 65535", show(port))
        host = host.strip("[]")
        if not host or not host.isprintable() or " " in host:
            raise InvalidValue(where, "a host without blanks, and perhaps :port", show(text))
        return cls(host, int(port))

    @property
    def is_loopback(self) -> bool:
        """Can only this machine reach it?"""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def reached(self) -> Address:
        """Where this machine reaches whoever listens here: all addresses are none to go to."""
        with suppress(ValueError):
            one = ipaddress.ip_address(self.host)
            if one.is_unspecified:
                return Address("127.0.0.1" if one.version == 4 else "::1", self.port)
        return self

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False


def cannot_listen(at: Address, problem: OSError) -> CannotListen:
    """What the system says to somebody who wants to listen there, without what asyncio adds."""
    number = problem.errno or 0
    # Where a name is looked up, numbers are negative and mean something else.
    return CannotListen(str(at), os.strerror(number).lower() if number > 0 else str(problem))
