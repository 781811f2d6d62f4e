"""Where is a broker reached over HTTP, and how much may that ask of it?

    [http]
    listen = "127.0.0.1:7480"
    origins = ["https://app.example.org"]     # pages whose scripts may read the answers

With `[tls]` it is HTTPS, with the same certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from driftline.errors import InvalidValue
from driftline.model.value import show
from driftline.net.address import Address


@dataclass(frozen=True, slots=True)
class Http:
    """The settings of `[http]`; times are seconds."""

    listen: str
    origins: tuple[str, ...] = ()
    """Origins (scheme, host and port) of pages that may use it; none by default."""
    connections: int = 2_000
    """All at once; more are turned away."""
    requests: int = 200
    """Of one identity at a time; of those who prove none, from one address."""
    streams: int = 200
    """Streams and WebSockets of one identity, or address."""
    body_bytes: int = 4 << 20
    message_bytes: int = 1 << 20
    """Of one message on a WebSocket."""
    patience: float = 10.0
    """Who has not finished a request by then is turned away."""
    heartbeat: float = 15.0
    """So often is something said on a stream that has nothing to say."""

    def __post_init__(self) -> None:
        Address.of(self.listen, "http.listen")
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, int | float) and not 0 < value <= 1 << 30:
                raise InvalidValue(f"http.{one.name}", "a number above 0", show(value))
        for origin in self.origins:
            scheme, _, host = origin.partition("://")
            if scheme not in ("http", "https") or not host or "/" in host:
                raise InvalidValue("http.origins", "https://host[:port]", show(origin))

    @property
    def address(self) -> Address:
        """Where it listens."""
        return Address.of(self.listen, "http.listen")
