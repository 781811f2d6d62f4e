"""The ways into a broker: each can try what a cell of the matrix is about.

A try ends quietly if it was granted, with `NotAllowed` if it was denied, and fails the test with
anything else.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from itertools import count
from types import TracebackType
from typing import Any, Protocol
from urllib.parse import urlencode

import httpx
import websockets
from httpx_sse import aconnect_sse
from websockets import Subprotocol

import driftline as dl
from driftline.client.client import Client
from driftline.errors import DriftlineError, NotAllowed
from driftline.language.cloudevents import event_to
from driftline.language.notified import notification_to
from driftline.net.server import Server
from tests.net.here import http
from tests.net.secured import client_of


@dataclass(frozen=True)
class Told:
    """What one notification showed: the names of attributes, wherever they stood in it."""

    kind: str
    names: frozenset[str]
    changed: bool


def shown(said: dict[str, Any]) -> Told:
    """What a notification in JSON showed."""
    names = {*said["values"], *(said.get("old") or {})}
    for event in said.get("events", ()):
        names |= {*event["data"]}
    if "key" in said:
        names.add("key")
    return Told(said["kind"], frozenset(names), said["values"] != said.get("old"))


class Door(Protocol):
    """One party at one door."""

    async def publish(self, event: dl.Event) -> None: ...
    async def subscribe(self, text: str, params: dict[str, Any], *, rows: bool = False) -> None: ...
    async def told(self, text: str, publish: Any, *, rows: bool = False) -> list[Told]:
        """What somebody with this text is told while others publish."""

    async def set(self, text: str, before: dict[str, Any], after: dict[str, Any]) -> None: ...
    async def advertise(self, text: str) -> None: ...
    async def declare(self, table: str) -> None: ...
    async def delete(self, table: str) -> None: ...
    async def observe(self, name: str) -> None: ...
    async def operate(self) -> None: ...


ALL = frozenset(
    {
        "publish",
        "subscribe",
        "view",
        "set",
        "advertise",
        "declare",
        "delete",
        "observe",
        "operate",
    }
)


class Tcp:
    """The client library, over the broker's own protocol."""

    name = "tcp"
    operations = ALL

    def __init__(self, server: Server, token: str) -> None:
        self._opening = client_of(server, token)

    async def __aenter__(self) -> Tcp:
        self._client: Client = await self._opening.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._client.close()

    async def publish(self, event: dl.Event) -> None:
        await self._client.publish(event)

    async def subscribe(self, text: str, params: dict[str, Any], *, rows: bool = False) -> None:
        async with self._client.subscribe(text, params, rows=rows):
            pass

    async def told(self, text: str, publish: Any, *, rows: bool = False) -> list[Told]:
        found: list[Told] = []
        async with self._client.subscribe(text, rows=rows) as s:
            await publish()
            await self._client.confirm()
            for one in s.pending():
                told = shown(notification_to(one))
                # The client has the event too, whatever was selected.
                also = {*one.event.attributes} if one.event is not None else set()
                found.append(replace(told, names=told.names | also))
        return found

    async def set(self, text: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        try:
            s = await self._client.subscribe(text, before)
        except NotAllowed:
            # Who may not even ask cannot move it: by its durable name neither.
            raise
        await s.set(**after)
        await s.cancel()

    async def advertise(self, text: str) -> None:
        await (await self._client.advertise(text)).withdraw()

    async def declare(self, table: str) -> None:
        await self._client.declare(table, "symbol")

    async def delete(self, table: str) -> None:
        await self._client.delete(table, "IBM")

    async def observe(self, name: str) -> None:
        await self._client.observe(name, 3.0)

    async def operate(self) -> None:
        await self._client.status()


class Http:
    """HTTP: what is done once, and what is durable."""

    name = "http"
    operations = ALL

    def __init__(self, server: Server, token: str) -> None:
        self._base = http(server)
        self._token = token
        self._numbers = count()

    async def __aenter__(self) -> Any:
        headers = {"Authorization": f"Bearer {self._token}"}
        self._http = httpx.AsyncClient(base_url=self._base, headers=headers, timeout=30)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def _ask(self, method: str, path: str, body: Any = None) -> Any:
        said = await self._http.request(method, path, json=body)
        return checked(said.status_code, said.json() if said.content else None)

    async def publish(self, event: dl.Event) -> None:
        await self._ask("POST", "/v1/events", event_to(event))

    async def _kept(self, text: str, params: dict[str, Any], rows: bool) -> str:
        path = f"/v1/subscriptions/d{next(self._numbers)}"
        await self._ask("PUT", path, {"sql": text, "params": params, "rows": rows})
        return path

    async def subscribe(self, text: str, params: dict[str, Any], *, rows: bool = False) -> None:
        path = await self._kept(text, params, rows)
        await self._ask("DELETE", path)

    async def told(self, text: str, publish: Any, *, rows: bool = False) -> list[Told]:
        """What is kept meanwhile, read by the stream of the durable subscription."""
        path = await self._kept(text, {}, rows)
        await publish()
        found = await read_stream(self._http, f"{path}/stream", quiet=1.0)
        await self._ask("DELETE", path)
        return found

    async def set(self, text: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        path = await self._kept(text, before, False)
        try:
            await self._ask("PUT", f"{path}/parameters", {"params": after})
        finally:
            await self._ask("DELETE", path)

    async def advertise(self, text: str) -> None:
        await self._ask("POST", "/v1/interest", {"advertisement": text})

    async def declare(self, table: str) -> None:
        await self._ask("PUT", f"/v1/tables/{table}", {"key": "symbol"})

    async def delete(self, table: str) -> None:
        await self._ask("POST", f"/v1/tables/{table}/delete", {"key": "IBM"})

    async def observe(self, name: str) -> None:
        await self._ask("PUT", f"/v1/environment/{name}", {"value": 3.0})

    async def operate(self) -> None:
        await self._ask("GET", "/v1/status")


class Sse(Http):
    """Server-Sent Events: a subscription for as long as somebody listens."""

    name = "sse"
    operations = frozenset({"subscribe", "view"})

    def _address(self, text: str, params: dict[str, Any], rows: bool) -> str:
        given = {"sql": text, "params": json.dumps(params), "rows": json.dumps(rows)}
        return f"/v1/stream?{urlencode(given)}"

    async def subscribe(self, text: str, params: dict[str, Any], *, rows: bool = False) -> None:
        async with self._http.stream("GET", self._address(text, params, rows)) as said:
            if said.status_code != 200:
                checked(said.status_code, json.loads(await said.aread()))

    async def told(self, text: str, publish: Any, *, rows: bool = False) -> list[Told]:
        address = self._address(text, {}, rows)
        return await read_stream(self._http, address, publish, quiet=1.0)


class WebSocket:
    """A WebSocket, whose token is one of its protocols, as a browser's."""

    name = "websocket"
    operations = frozenset({"publish", "subscribe", "view", "set", "advertise"})

    def __init__(self, server: Server, token: str) -> None:
        self._address = f"{http(server).replace('http', 'ws', 1)}/v1/socket"
        self._protocols = [Subprotocol("driftline.v1"), Subprotocol(f"bearer.{token}")]
        self._numbers = count()

    async def __aenter__(self) -> WebSocket:
        self._socket = await websockets.connect(self._address, subprotocols=self._protocols)
        assert self._socket.subprotocol == "driftline.v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._socket.close()

    async def _do(self, verb: str, id: str = "", **said: Any) -> tuple[str, Any]:
        id = id or f"i{next(self._numbers)}"
        await self._socket.send(json.dumps({"do": verb, "id": id, **said}))
        while True:
            reply = json.loads(await asyncio.wait_for(self._socket.recv(), 30))
            if "failed" in reply:
                checked(reply["problem"]["status"], reply["problem"])
            if "did" in reply:
                return id, reply

    async def publish(self, event: dl.Event) -> None:
        _, reply = await self._do("publish", events=[event_to(event)])
        for one in reply.get("refused", ()):
            checked(403 if one["type"].endswith("not-allowed") else 422, one)

    async def subscribe(self, text: str, params: dict[str, Any], *, rows: bool = False) -> None:
        id, _ = await self._do("subscribe", sql=text, params=params, rows=rows)
        await self._do("cancel", id)

    async def told(self, text: str, publish: Any, *, rows: bool = False) -> list[Told]:
        id, _ = await self._do("subscribe", sql=text, rows=rows)
        await publish()
        found: list[Told] = []
        try:
            while True:
                said = json.loads(await asyncio.wait_for(self._socket.recv(), 1.0))
                if said.get("told") == id:
                    found.append(shown(said))
        except TimeoutError:
            pass
        await self._do("cancel", id)
        return found

    async def set(self, text: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        id, _ = await self._do("subscribe", sql=text, params=before)
        try:
            await self._do("set", id, params=after)
        finally:
            await self._do("cancel", id)

    async def advertise(self, text: str) -> None:
        id, _ = await self._do("advertise", advertisement=text)
        await self._do("cancel", id)


async def read_stream(
    client: httpx.AsyncClient, address: str, publish: Any = None, *, quiet: float
) -> list[Told]:
    """What a stream tells, until nothing comes for so many seconds."""
    found: list[Told] = []
    async with aconnect_sse(client, "GET", address) as source:
        if source.response.status_code != 200:
            checked(source.response.status_code, json.loads(await source.response.aread()))
        if publish is not None:
            await publish()
        events = source.aiter_sse()
        try:
            while True:
                event = await asyncio.wait_for(anext(events), quiet)
                found.append(shown(json.loads(event.data)))
        except TimeoutError:
            pass
    return found


def checked(status: int, said: Any) -> Any:
    """What was said, or the error that it was."""
    if status < 400:
        return said
    kind = said["type"].removeprefix("urn:driftline:problem:")
    if status == 403:
        assert kind == "not-allowed", said
        who, _, what = said["detail"].partition(" may not ")
        raise NotAllowed(who, what)
    raise DriftlineError(f"{status}: {said}")


DOORS = [Tcp, Http, Sse, WebSocket]
