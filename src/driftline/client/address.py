"""Where is a broker, and how is it spoken to?

    driftline://host:port      plain
    driftlines://host:port     over TLS

The port is 7400 where none is said.

    >>> BrokerAddress.of("driftline://localhost")
    BrokerAddress(host='localhost', port=7400, tls=False)
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from driftline.errors import InvalidValue
from driftline.model.value import show

PORT = 7400


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """A broker on a network."""

    host: str
    port: int = PORT
    tls: bool = False

    @classmethod
    def of(cls, text: object) -> BrokerAddress:
        """From a text."""
        if not isinstance(text, str):
            raise InvalidValue("address", "driftline://host:port", show(text))
        try:
            parts = urlsplit(text if "://" in text else f"driftline://{text}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port, parts = None, None, urlsplit("")
        odd = parts.path not in ("", "/") or parts.query or parts.fragment or parts.username
        if parts.scheme not in ("driftline", "driftlines") or not host or odd:
            raise InvalidValue("address", "driftline://host:port", show(text))
        return cls(host, PORT if port is None else port, parts.scheme == "driftlines")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"driftline{'s' if self.tls else ''}://{host}:{self.port}"
