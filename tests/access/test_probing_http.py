"""Can somebody find out over HTTP what they may not see?"""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
import websockets

import driftline as dl
from driftline.net.authority import sign_token
from tests.access.test_matrix import VALUES, authority, broker, run
from tests.access.test_probing import TEXTS
from tests.net.here import http
from tests.net.secured import client_of

__all__ = ["authority"]


@asynccontextmanager
async def web(authority: Any, server: Any, who: str):
    headers = {"Authorization": f"Bearer {authority.token(who)}"}
    async with httpx.AsyncClient(base_url=http(server), headers=headers, timeout=30) as client:
        yield client


def test_no_text_asks_about_what_is_denied_at_any_door(authority):
    """Neither durably, nor by a stream, nor on a WebSocket; and of a value nothing is said."""

    async def test() -> None:
        async with broker(authority) as server, web(authority, server, "alice") as alice:
            address = http(server).replace("http", "ws", 1) + "/v1/socket"
            headers = {"Authorization": f"Bearer {authority.token('alice')}"}
            async with websockets.connect(address, additional_headers=headers) as socket:
                for text in TEXTS:
                    body = {"sql": text}
                    said = [
                        await alice.put("/v1/subscriptions/d", json=body),
                        await alice.put("/v1/subscriptions/d", json={**body, "rows": True}),
                        await alice.get(f"/v1/stream?{urlencode(body)}"),
                        await alice.post("/v1/stream", json=body),
                    ]
                    await socket.send(json.dumps({"do": "subscribe", "id": "a", **body}))
                    problem = json.loads(await socket.recv())["problem"]
                    for status, detail in (
                        *((one.status_code, one.json()["detail"]) for one in said),
                        (problem["status"], problem["detail"]),
                    ):
                        assert status in (403, 422), (text, status, detail)
                        assert "42" not in detail.replace(text, "")
            assert (await alice.get("/v1/subscriptions")).json() == {"subscriptions": []}
            assert not [party for party in server.edge.parties if party.startswith("alice/")]

    run(test())


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("DELETE", "", None),
        ("GET", "/stream", None),
        ("PUT", "/parameters", {"params": {"p": 2}}),
        ("POST", "/acknowledged", {"number": "1"}),
        ("POST", "/explain", {"type": "quote", "price": 1}),
        ("POST", "/suspend", None),
        ("PUT", "/handler", {"address": "https://example.org/"}),
        ("DELETE", "/handler", None),
        ("POST", "/secret", {}),
        ("GET", "/dead-letters", None),
        ("POST", "/dead-letters/redeliver", {}),
        ("POST", "/dead-letters/discard", {}),
        ("POST", "/resume", None),
    ],
)
def test_a_name_of_anothers_answers_as_one_that_nobody_has(authority, method, path, body):
    async def test() -> None:
        async with (
            broker(authority) as server,
            web(authority, server, "alice") as alice,
            web(authority, server, "dave") as dave,
        ):
            text = {"sql": "SELECT * FROM quote WHERE price > :p", "params": {"p": 1}}
            assert (await alice.put("/v1/subscriptions/hers", json=text)).status_code == 201
            said = [
                await dave.request(method, f"/v1/subscriptions/{name}{path}", json=body)
                for name in ("hers", "nobodys")
            ]
            assert said[0].status_code == said[1].status_code == 404
            assert said[0].json() == said[1].json()
            assert {**said[0].headers} == {**said[1].headers}
            known = (await alice.get("/v1/subscriptions/hers")).json()
            assert (known["params"], known["suspended"]) == ({"p": 1}, False)

    run(test())


def test_what_describes_the_broker_says_nothing_of_what_is_in_it(authority):
    async def test() -> None:
        async with broker(authority) as server:
            async with client_of(server, authority.token("root")) as root:
                await root.publish(dl.Event("quote", VALUES))
            async with httpx.AsyncClient(base_url=http(server)) as nobody:
                texts = [
                    (await nobody.get(f"/v1/{name}.json")).text for name in ("openapi", "asyncapi")
                ]
                for path in ("/v1/status", "/v1/subscriptions", "/v1/stream?sql=SELECT+1"):
                    said = await nobody.get(path)
                    assert said.status_code == 401
                    assert said.headers["www-authenticate"] == "Bearer"
                    texts.append(said.text)
            async with web(authority, server, "alice") as alice:
                said = await alice.get("/v1/status")
                assert said.status_code == 403
                texts.append(said.text)
            for text in texts:
                assert not any(word in text for word in ("trade", "volume", "wind"))

    run(test())


def test_tokens_that_do_not_count_are_all_alike_to_whoever_shows_them(authority):
    async def test() -> None:
        async with broker(authority) as server, httpx.AsyncClient(base_url=http(server)) as client:
            sound = authority.token("alice")
            head, body, signature = sound.split(".")
            for token in (
                "x",
                f"{head}.{body}.",
                f"{head}.{body}.{signature[:-4]}AAAA",
                sign_token(authority.folder, "alice", time.time() - 1000, 10.0),
                authority.token("alice", audience="others"),
                "x" * 10_000,
            ):
                headers = {"Authorization": f"Bearer {token}"}
                said = await client.get("/v1/subscriptions", headers=headers)
                assert said.status_code == 401
                assert sound not in said.text
            for word in ("Basic YTpi", "bearer"):
                said = await client.get("/v1/subscriptions", headers={"Authorization": word})
                assert said.status_code == 401
            said = await client.get(
                "/v1/subscriptions", headers={"Authorization": f"Bearer {sound}"}
            )
            assert said.status_code == 200

    run(test())
