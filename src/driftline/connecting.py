"""How does a program come to a broker: to one elsewhere, or to one of its own?

async with dl.connect("driftline://host:7400") as client: ...
async with dl.connect() as client: ...          # a broker in this process, which ends with it
with dl.connect("driftline://host:7400") as client: ...     # without async
"""

from __future__ import annotations

import ssl
from types import TracebackType
from typing import TYPE_CHECKING

from driftline.client.address import BrokerAddress
from driftline.client.channel import Token
from driftline.client.client import Client

if TYPE_CHECKING:
    from driftline.client.waiting import WaitingClient
    from driftline.net.server import Server


def connect(
    address: str | None = None,
    *,
    name: str = "",
    token: Token = "",
    tls: ssl.SSLContext | None = None,
    reconnect: bool = True,
    within: float = 10.0,
    journal: str = "memory:",
) -> Connecting:
    """A connection to be entered, `async with` or `with`.

    Without an address there is a broker in this process for as long as it lasts; `journal` is
    where that keeps what is durable. `name` is what this client is called when it comes back, also
    in another process. `token` proves whose it is, or is a function that gives a new one. `within`
    so many seconds the first connection must be made.
    """
    where = None if address is None else BrokerAddress.of(address)
    return Connecting(where, name, token, tls, reconnect, within, journal)


class Connecting:
    """A connection that is made when it is entered."""

    def __init__(
        self,
        address: BrokerAddress | None,
        name: str,
        token: Token,
        tls: ssl.SSLContext | None,
        reconnect: bool,
        within: float,
        journal: str,
    ) -> None:
        self._address = address
        self._name = name
        self._token = token
        self._tls = tls
        self._reconnect = reconnect
        self._within = within
        self._journal = journal
        self._client: Client | None = None
        self._server: Server | None = None
        self._waiting: WaitingClient | None = None

    async def open(self) -> Client:
        """Make it."""
        address = self._address
        if address is None:
            address = await self._embed()
        client = Client(
            address,
            name=self._name,
            token=self._token,
            tls=self._tls,
            reconnect=self._reconnect,
            within=self._within,
        )
        try:
            self._client = await client.open()
        except BaseException:
            await self._end_server()
            raise
        return client

    async def close(self) -> None:
        """End it."""
        if self._client is not None:
            await self._client.close()
            self._client = None
        await self._end_server()

    async def _embed(self) -> BrokerAddress:
        from driftline.net.address import Address
        from driftline.net.config import Config
        from driftline.net.server import Server

        listen = Address("127.0.0.1", 0)
        self._server = Server(Config(name="embedded", listen=listen, journal=self._journal))
        await self._server.start()
        return BrokerAddress(self._server.address.host, self._server.address.port)

    async def _end_server(self) -> None:
        if self._server is not None:
            await self._server.drain()
            self._server = None

    async def __aenter__(self) -> Client:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __enter__(self) -> WaitingClient:
        from driftline.client.waiting import WaitingClient

        self._waiting = WaitingClient(self.open, self.close)
        return self._waiting.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._waiting is not None
        self._waiting.__exit__(kind, error, traceback)
