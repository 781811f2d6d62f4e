"""Are durable subscriptions managed over HTTP?"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.net.here import http, served

TEXT = "SELECT * FROM quote WHERE price < :limit"
BODY = {"sql": TEXT, "params": {"limit": 10}}
ONE = "/v1/subscriptions/alerts"


def run(test, within=60.0):
    asyncio.run(asyncio.wait_for(test, within))


@asynccontextmanager
async def web(**said):
    async with (
        served(http={"listen": "127.0.0.1:0"}, **said) as server,
        httpx.AsyncClient(base_url=http(server), timeout=20) as client,
    ):
        yield client


def test_from_its_beginning_to_its_end():
    async def test():
        async with web() as client:
            said = await client.put(ONE, json=BODY)
            assert (said.status_code, said.json()) == (
                201,
                {"name": "alerts", "created": True, "epoch": 0},
            )
            assert (await client.put(ONE, json=BODY)).status_code == 200
            await client.post("/v1/events", json={"type": "quote", "price": 9.5})
            said = (await client.get(ONE)).json()
            number = said.pop("next")
            assert said == {
                "name": "alerts",
                "sql": TEXT,
                "rows": False,
                "params": {"limit": 10},
                "epoch": 0,
                "kept": 1,
                "attached": False,
                "suspended": False,
                "matched": 1,
                "handler": None,
                "failing": None,
                "attempts": 0,
                "dead": 0,
                "forgotten": 0,
            }
            moved = await client.put(f"{ONE}/parameters", json={"params": {"limit": 3}})
            assert moved.json() == {"epoch": 1}
            why = await client.post(f"{ONE}/explain", json={"type": "quote", "price": 9.5})
            assert why.json()["outcome"] is False
            assert why.json()["parts"][1]["seen"] == {"price": 9.5, ":limit": 3}
            had = await client.post(f"{ONE}/acknowledged", json={"number": number})
            assert had.status_code == 204
            (said,) = (await client.get("/v1/subscriptions")).json()["subscriptions"]
            assert (said["kept"], said["next"], said["params"]) == (0, None, {"limit": 3})
            assert (await client.post(f"{ONE}/suspend")).status_code == 204
            assert (await client.get(ONE)).json()["suspended"]
            assert (await client.post(f"{ONE}/resume")).status_code == 204
            assert (await client.delete(ONE)).status_code == 204
            assert (await client.get(ONE)).status_code == 404

    run(test())


def test_filters_of_cloudevents_are_taken_beside_sql():
    async def test():
        async with web() as client:
            filters = [{"any": [{"exact": {"type": "quote"}}, {"prefix": {"source": "/feed"}}]}]
            assert (await client.put(ONE, json={"filters": filters})).status_code == 201
            await client.post("/v1/events", json={"type": "quote", "price": 9.5})
            await client.post("/v1/events", json={"type": "trade", "price": 9.5})
            assert (await client.get(ONE)).json()["kept"] == 1
            both = {"sql": TEXT, "filters": filters}
            assert (await client.put(ONE, json=both)).status_code == 422

    run(test())


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "detail"),
    [
        ("PUT", ONE, {"sql": "SELECT * FROM quote WHERE price <"}, 422, "line 1"),
        ("PUT", ONE, {"sql": TEXT}, 422, "limit"),
        ("PUT", ONE, {"sql": TEXT, "params": {"limit": 1, "x": 2}}, 422, "x"),
        ("PUT", ONE, {"sql": TEXT, "params": {"limit": [1]}}, 422, ":limit"),
        ("PUT", ONE, {"sql": TEXT, "parameters": {"limit": 1}}, 422, "parameters"),
        ("PUT", ONE, {}, 422, "sql or filters"),
        ("PUT", f"{ONE}%23x", BODY, 422, "name"),
        ("PUT", f"/v1/subscriptions/{'x' * 300}", BODY, 422, "name"),
        ("PUT", f"{ONE}/parameters", {"params": {"limit": 1}}, 404, "no durable subscription"),
        ("DELETE", ONE, None, 404, "no durable subscription"),
        ("GET", f"{ONE}/stream", None, 404, "no durable subscription"),
        ("PUT", f"{ONE}/handler", {"address": "https://example.org/"}, 404, "no durable"),
        ("GET", f"{ONE}/dead-letters", None, 404, "no durable subscription"),
        ("POST", f"{ONE}/secret", {}, 404, "no durable subscription"),
        ("POST", f"{ONE}/acknowledged", {"number": "-1"}, 422, "number"),
        ("POST", f"{ONE}/acknowledged", {"number": "9" * 19}, 422, "at most"),
        ("POST", ONE, BODY, 405, ""),
        ("GET", "/v1/elsewhere", None, 404, ""),
        ("PUT", "/v1/tables/quote", {"key": ""}, 422, "key"),
        ("PUT", "/v1/environment/wind", {}, 422, "value"),
        ("POST", "/v1/interest", {"advertisement": "DROP"}, 422, ""),
    ],
)
def test_what_cannot_be_done_is_a_problem_that_says_why(method, path, body, status, detail):
    async def test():
        async with web() as client:
            said = await client.request(method, path, json=body)
            assert said.headers["content-type"] == "application/problem+json"
            problem = said.json()
            assert (said.status_code, problem["status"]) == (status, status)
            assert detail in problem["detail"]
            assert problem["type"].startswith("urn:driftline:problem:")
            assert problem["title"]
            # And nothing has changed.
            assert (await client.get("/v1/subscriptions")).json() == {"subscriptions": []}

    run(test())


def test_tables_environment_and_interest():
    async def test():
        async with web() as client:
            said = await client.put("/v1/tables/stock", json={"key": "symbol"})
            assert said.status_code == 204
            assert (await client.put("/v1/environment/floor", json={"value": 5})).status_code == 204
            wanted = {"advertisement": "SELECT * FROM stock WHERE price IS NOT NULL"}
            assert (await client.post("/v1/interest", json=wanted)).json() == {"interested": False}
            plain = {"sql": "SELECT * FROM stock WHERE price > 5", "rows": True}
            assert (await client.put("/v1/subscriptions/rows", json=plain)).status_code == 201
            assert (await client.post("/v1/interest", json=wanted)).json() == {"interested": True}
            row = {"type": "stock", "symbol": "IBM", "price": 9.5}
            assert (await client.post("/v1/events", json=row)).status_code == 200
            said = await client.post("/v1/tables/stock/delete", json={"key": "IBM"})
            assert said.status_code == 204
            (one,) = [
                one
                for one in (await client.get("/v1/subscriptions")).json()["subscriptions"]
                if one["name"] == "rows"
            ]
            # The empty snapshot, the row that entered, and that it left.
            assert (one["rows"], one["kept"]) == (True, 3)

    run(test())


LONG = "n" * 16_384


@pytest.mark.parametrize(
    ("method", "path", "said", "where"),
    [
        ("PUT", ONE, {"sql": TEXT, "params": {LONG: 1}}, "$.params"),
        ("PUT", f"{ONE}/parameters", {"params": {LONG: 1}}, "$.params"),
        ("POST", "/v1/stream", {**BODY, "policy": {LONG: 1}}, "$.policy"),
        ("POST", "/v1/stream", {**BODY, "on_change": "silent\n"}, "$.on_change"),
        ("PUT", "/v1/tables/t", {"key": "k", "ticks": {LONG: "1"}}, "$.ticks"),
        ("PUT", "/v1/tables/t", {"key": "k", "ticks": {"price": "abc"}}, "price"),
        ("PUT", "/v1/tables/t", {"key": "k", "ticks": {"price": "-1"}}, "price"),
        ("PUT", "/v1/tables/$t", {"key": "k"}, "$"),
        ("POST", f"{ONE}/dead-letters/redeliver", {"ids": ["x"] * 10_001}, "$.ids"),
        ("POST", f"{ONE}/dead-letters/discard", {"ids": ["x" * 201]}, "$.ids"),
        ("GET", f"{ONE}/dead-letters?after={'x' * 201}", None, "$.after"),
    ],
)
def test_what_no_broker_could_be_told_is_refused_where_it_comes_in(method, path, said, where):
    async def test():
        async with web() as client:
            await client.put(ONE, json=BODY)
            found = await client.request(method, path, json=said)
            assert found.status_code == 422
            assert where in found.json()["detail"]

    run(test())


def test_a_table_that_is_another_is_still_a_conflict():
    async def test():
        async with web() as client:
            assert (await client.put("/v1/tables/t", json={"key": "k"})).status_code == 204
            assert (await client.put("/v1/tables/t", json={"key": "other"})).status_code == 409

    run(test())


@pytest.mark.parametrize(
    ("media", "status"),
    [
        ("application/json", 200),
        ("application/cloudevents+json; charset=utf-8", 200),
        ("text/plain", 415),
        ("", 415),
    ],
)
def test_what_is_to_be_explained_says_what_it_is(media, status):
    async def test():
        async with web() as client:
            await client.put(ONE, json=BODY)
            event = b'{"type": "quote", "price": 9.5}'
            headers = {"content-type": media} if media else {}
            said = await client.post(f"{ONE}/explain", content=event, headers=headers)
            assert said.status_code == status

    run(test())
