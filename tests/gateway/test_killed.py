"""Do clients written with ordinary libraries go on after a broker was killed, without a gap?

A program publishes counted events over HTTP until each is acknowledged. Others follow a durable
subscription by Server-Sent Events and by a WebSocket, reconnecting as browsers do: with the id of
the last event they had. Meanwhile the broker is killed, or what answers HTTP, again and again.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import suppress
from typing import Any

import httpx
import pytest
import websockets
from httpx_sse import aconnect_sse

from tests.net.here import eventually
from tests.net.processes import Brokers

KILLS = 5
SQL = "SELECT n FROM tick WHERE n >= 0"
HTTP = {"listen": "127.0.0.1:0"}
LOST = (httpx.HTTPError, OSError, websockets.WebSocketException, TimeoutError)


class Follower:
    """Has every notification that came, and says which was the last."""

    def __init__(self, base: str, name: str) -> None:
        self.base = base
        self.name = name
        self.last = ""
        self.had: list[tuple[int, int]] = []
        self.connections = 0

    def take(self, id: str, said: dict[str, Any]) -> None:
        assert said["kind"] == "event", said
        assert said["number"] == id
        self.had.append((int(id), said["values"]["n"]))
        self.last = id

    async def follow(self) -> None:
        while True:
            with suppress(*LOST):
                await self.once()
            await asyncio.sleep(0.05)

    async def once(self) -> None:
        raise NotImplementedError


class BySse(Follower):
    async def once(self) -> None:
        headers = {"Last-Event-ID": self.last} if self.last else {}
        path = f"/v1/subscriptions/{self.name}/stream"
        async with (
            httpx.AsyncClient(base_url=self.base, timeout=10) as client,
            aconnect_sse(client, "GET", path, headers=headers) as source,
        ):
            source.response.raise_for_status()
            self.connections += 1
            async for event in source.aiter_sse():
                if event.event == "end":
                    return
                said = json.loads(event.data)
                assert event.id.endswith(f"-{said['number']}")
                self.take(said["number"], said)
                self.last = event.id


class BySocket(Follower):
    async def once(self) -> None:
        address = self.base.replace("http", "ws", 1) + "/v1/socket"
        async with websockets.connect(address) as socket:
            asked = {"do": "attach", "id": "a", "name": self.name, "after": self.last or "0"}
            await socket.send(json.dumps(asked))
            async for message in socket:
                said = json.loads(message)
                if "failed" in said or "ended" in said:
                    return
                if "did" in said:
                    self.connections += said["did"] == "attach"
                    continue
                self.take(said["number"], said)


async def publish(base: str, until: asyncio.Event) -> int:
    """Counted events, each again and again until it is acknowledged; how many there were."""
    n = 0
    async with httpx.AsyncClient(base_url=base, timeout=5) as client:
        is_acknowledged = True
        # The last one too: it may have been published although nobody has said so.
        while not (until.is_set() and is_acknowledged):
            try:
                said = await client.post("/v1/events", json={"type": "tick", "n": n})
                said.raise_for_status()
            except LOST:
                is_acknowledged = False
                await asyncio.sleep(0.02)
            else:
                is_acknowledged = True
                n += 1
    return n


@pytest.mark.parametrize("kind", [BySse, BySocket])
def test_resumes_after_a_kill(tmp_path, kind):
    async def test(broker) -> None:
        async with httpx.AsyncClient(base_url=broker.http, timeout=10) as client:
            said = await client.put("/v1/subscriptions/all", json={"sql": SQL})
            assert said.status_code == 201
        enough = asyncio.Event()
        follower = kind(broker.http, "all")
        publishing = asyncio.create_task(publish(broker.http, enough))
        following = asyncio.create_task(follower.follow())
        for at in range(KILLS):
            had = len(follower.had)
            while len(follower.had) < had + 20:
                await asyncio.sleep(0.01)
            if at % 2:
                # What answers HTTP alone, which the broker begins again.
                (answering,) = await asyncio.to_thread(broker.ask, "http")
                os.kill(answering, signal.SIGKILL)
                continue
            broker.kill()
            await asyncio.to_thread(broker.restart)
        enough.set()
        sent = await publishing
        await eventually(lambda: follower.had[-1][1] == sent - 1, 60)
        following.cancel()
        check(follower, sent)

    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b", http=HTTP)
        asyncio.run(asyncio.wait_for(test(broker), 120))
        assert broker.errors.count("ERROR") == KILLS // 2


def check(follower: Follower, sent: int) -> None:
    """Everything that was acknowledged, in order; nothing twice under one id, no id twice.

    An event whose acknowledgement a kill has swallowed is published again, and is another event:
    it comes twice at most, with two ids.
    """
    ids = [id for id, _ in follower.had]
    assert ids == sorted(set(ids)), "an id came again, or out of order"
    told = [n for _, n in follower.had]
    assert sorted(set(told)) == list(range(sent)), "something was lost"
    assert told == sorted(told), "out of order"
    again = len(told) - sent
    assert 0 <= again <= KILLS, "an event came again that was acknowledged"
    assert follower.connections >= KILLS, "it was never cut off"
