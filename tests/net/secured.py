"""How do tests come by a broker that knows who is who?"""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from driftline.client.address import BrokerAddress
from driftline.client.client import Client
from driftline.net.authority import create, sign_broker, sign_token
from driftline.net.server import Server
from tests.net.here import served


class Authority:
    """An authority in a folder, and what it signs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        create(folder)

    def tls(self, name: str) -> dict[str, str]:
        """The settings of a broker's TLS."""
        certificate, key = sign_broker(self.folder, name, ["127.0.0.1", "localhost"])
        authority = str(self.folder / "ca.pem")
        return {"certificate": str(certificate), "key": str(key), "authority": authority}

    def tokens(self) -> dict[str, str]:
        """The settings of a broker that takes its tokens."""
        return {"key": str(self.folder / "tokens.pub")}

    def token(self, identity: str, seconds: float = 600.0, **options: Any) -> str:
        """A token."""
        return sign_token(self.folder, identity, time.time(), seconds, **options)

    def trust(self) -> ssl.SSLContext:
        """A client's trust in those whom it has signed."""
        return ssl.create_default_context(cafile=str(self.folder / "ca.pem"))


@asynccontextmanager
async def closed(authority: Authority, access: str, **said: Any) -> AsyncIterator[Server]:
    """A broker that is closed, with these lists of access."""
    file = authority.folder / f"access-{len(list(authority.folder.iterdir()))}.toml"
    file.write_text(access)
    said = {"access": str(file), "tokens": authority.tokens(), **said}
    async with served(**said) as server:
        yield server


def client_of(server: Server, token: Any = "", **options: Any) -> Client:
    """A client, to be entered."""
    address = BrokerAddress(server.address.host, server.address.port, "tls" in options)
    return Client(address, token=token, within=5.0, **options)
