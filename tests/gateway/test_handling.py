"""Can a webhook be asked for over HTTP, and what it has given up on be delivered again?"""

from __future__ import annotations

import asyncio

import httpx
import pytest

from driftline.handlers.signing import verify
from tests.handlers.receiver import Receiver, status
from tests.net.here import http, served

ONE = "/v1/subscriptions/alerts"


@pytest.fixture(autouse=True)
def _secret(monkeypatch):
    monkeypatch.setenv("DRIFTLINE_WEBHOOKS_SECRET", "m" * 32)


def test_from_a_handler_to_a_dead_letter_and_back():
    async def test():
        with Receiver() as receiver:
            webhooks = {
                "allow": [f"{receiver.url}/in/"],
                "first": 0.02,
                "longest": 0.1,
                "timeout": 1.0,
                "attempts": 2,
            }
            async with (
                served(http={"listen": "127.0.0.1:0"}, webhooks=webhooks) as server,
                httpx.AsyncClient(base_url=http(server), timeout=20) as client,
            ):
                body = {"sql": "SELECT * FROM quote WHERE price < 10"}
                assert (await client.put(ONE, json=body)).status_code == 201
                said = await client.put(f"{ONE}/handler", json={"address": "http://10.0.0.1/"})
                assert said.status_code == 422
                where = {"address": f"{receiver.url}/in/alerts"}
                assert (await client.put(f"{ONE}/handler", json=where)).status_code == 204
                secret = (await client.post(f"{ONE}/secret", json={})).json()["secret"]
                receiver.answers[:] = [status(500)] * 2
                events = [{"type": "quote", "price": price} for price in (1, 2)]
                await client.post("/v1/events", json=events)
                while (known := (await client.get(ONE)).json())["kept"] or not known["dead"]:
                    await asyncio.sleep(0.02)
                assert (known["handler"], known["dead"]) == (where["address"], 1)
                (letter,) = (await client.get(f"{ONE}/dead-letters")).json()["letters"]
                assert (letter["attempts"], letter["again"]) == (2, False)
                assert letter["event"]["data"]["values"] == {"price": 1}
                assert "500" in letter["why"]
                said = await client.post(f"{ONE}/dead-letters/redeliver", json={})
                assert said.json() == {"letters": 1}
                while (await client.get(ONE)).json()["dead"]:
                    await asyncio.sleep(0.02)
                posts = receiver.posts
                assert [verify(one.headers, one.body, secret) for one in posts]
                assert posts[-1].headers["webhook-id"].endswith(letter["id"])
                assert (await client.delete(f"{ONE}/handler")).status_code == 204
                assert (await client.get(ONE)).json()["handler"] is None
                said = await client.post(f"{ONE}/dead-letters/discard", json={"ids": []})
                assert said.json() == {"letters": 0}

    asyncio.run(asyncio.wait_for(test(), 30))
