"""How is somebody served who means no harm, while others do? A process of its own, which measures.

    python -m tests.net.honest '{"door": "tcp", "address": "driftline://…", "seconds": 5}'

Publishes an event a hundred times a second, and is told of it, by a door: our own protocol, HTTP
with a stream, or a WebSocket. How long does that take?
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from httpx_sse import aconnect_sse
from websockets.asyncio.client import connect

import driftline as dl

_TEXT = "SELECT * FROM honest WHERE n >= 0"
Round = Callable[[int], Awaitable[None]]
"""Publishes an event with a number, and waits until that is told."""


@asynccontextmanager
async def _tcp(said: dict[str, Any], tls: ssl.SSLContext | None) -> AsyncIterator[Round]:
    async with (
        dl.connect(said["address"], token=said["token"], tls=tls) as client,
        client.subscribe(_TEXT) as subscription,
    ):

        async def go_round(n: int) -> None:
            await client.publish(dl.Event("honest", {"n": n}))
            while (told := await subscription.next(30)).values.get("n") != n:
                assert told.kind != "gap", "something was lost"

        yield go_round


@asynccontextmanager
async def _sse(said: dict[str, Any], tls: ssl.SSLContext | None) -> AsyncIterator[Round]:
    headers = {"Authorization": f"Bearer {said['token']}"}
    async with (
        httpx.AsyncClient(
            base_url=said["address"], headers=headers, verify=tls or False, timeout=30
        ) as client,
        aconnect_sse(client, "GET", "/v1/stream", params={"sql": _TEXT}) as stream,
    ):
        stream.response.raise_for_status()
        events = stream.aiter_sse()

        async def go_round(n: int) -> None:
            answer = await client.post("/v1/events", json={"type": "honest", "n": n})
            answer.raise_for_status()
            while (told := json.loads((await anext(events)).data))["values"].get("n") != n:
                assert told["kind"] != "gap", "something was lost"

        yield go_round


@asynccontextmanager
async def _websocket(said: dict[str, Any], tls: ssl.SSLContext | None) -> AsyncIterator[Round]:
    address = said["address"].replace("http", "ws", 1) + "/v1/socket"
    headers = {"Authorization": f"Bearer {said['token']}"}
    async with connect(address, ssl=tls, additional_headers=headers) as socket:
        await socket.send(json.dumps({"do": "subscribe", "id": "s", "sql": _TEXT}))
        assert json.loads(await socket.recv())["did"] == "subscribe"

        async def go_round(n: int) -> None:
            event = {"type": "honest", "n": n}
            await socket.send(json.dumps({"do": "publish", "id": f"{n}", "events": [event]}))
            published = told = False
            while not (published and told):
                came = json.loads(await asyncio.wait_for(socket.recv(), 30))
                assert "failed" not in came, came
                assert came.get("kind") != "gap", "something was lost"
                published |= came.get("id") == f"{n}"
                told |= came.get("values", {}).get("n") == n

        yield go_round


DOORS = {"tcp": _tcp, "sse": _sse, "websocket": _websocket}


async def measure(said: dict[str, Any]) -> dict[str, float]:
    """Milliseconds from publishing to being told: half of them, all but one in a hundred, most."""
    authority = said.get("authority")
    tls = ssl.create_default_context(cafile=authority) if authority else None
    took: list[float] = []
    async with DOORS[said["door"]](said, tls) as go_round:
        print("ready", flush=True)
        end = time.monotonic() + said["seconds"]
        n = said["first"]
        while time.monotonic() < end:
            began = time.perf_counter()
            await go_round(n)
            took.append(1000 * (time.perf_counter() - began))
            n += 1
            await asyncio.sleep(0.01)
    took.sort()
    return {
        "count": len(took),
        "p50": took[len(took) // 2],
        "p99": took[len(took) * 99 // 100],
        "most": took[-1],
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(json.loads(sys.argv[1])))), flush=True)
