"""Is a trace carried over HTTP, and can an operator see how the broker does?"""

from __future__ import annotations

import asyncio
import json

import httpx
from httpx_sse import aconnect_sse

from tests.net.here import http, served
from tests.net.secured import Authority, closed

OPEN = {"listen": "127.0.0.1:0"}
ONE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"


def run(test, within=60.0):
    asyncio.run(asyncio.wait_for(test, within))


def test_a_trace_goes_from_the_request_to_the_stream():
    """That of an event, else that of the request, else none; and one that is none is left out."""

    async def test():
        async with (
            served(http=OPEN) as server,
            httpx.AsyncClient(base_url=http(server), timeout=20) as client,
            aconnect_sse(client, "GET", "/v1/stream?sql=SELECT+*+FROM+tick") as source,
        ):
            own = {"specversion": "1.0", "type": "tick", "traceparent": OTHER, "data": {"n": 1}}
            plain = {"type": "tick", "n": 2}
            for headers in ({"traceparent": ONE, "tracestate": "v=1"}, {}, {"traceparent": "x"}):
                said = await client.post("/v1/events", json=[own, plain], headers=headers)
                assert said.status_code == 200
            events = source.aiter_sse()
            told = [json.loads((await anext(events)).data) for _ in range(6)]
            traces = [one.get("traceparent") for one in told]
            assert traces == [OTHER, ONE, OTHER, None, OTHER, None]
            assert [one.get("tracestate") for one in told][:2] == [None, "v=1"]
            assert all(set(one["values"]) == {"n"} for one in told)

    run(test())


def test_metrics_are_for_those_who_may_operate(tmp_path):
    async def test():
        authority = Authority(tmp_path / "keys")
        grants = """
[[grants]]
who = ["ops"]
may = ["operate"]
[[grants]]
who = ["feed"]
may = ["publish"]
on = ["tick"]
attributes = ["*"]
"""
        async with (
            closed(authority, grants, http=OPEN) as server,
            httpx.AsyncClient(base_url=http(server), timeout=20) as client,
        ):

            async def ask(who, method, path, **said):
                headers = {"Authorization": f"Bearer {authority.token(who)}"}
                return await client.request(method, path, headers=headers, **said)

            said = await ask("feed", "POST", "/v1/events", json=[{"type": "tick"}] * 3)
            assert said.status_code == 200
            assert (await client.get("/metrics")).status_code == 401
            assert (await ask("feed", "GET", "/metrics")).status_code == 403
            said = await ask("ops", "GET", "/metrics")
            assert said.headers["content-type"].startswith("text/plain")
            assert "driftline_events_published_total 3.0" in said.text
            assert "tick" not in said.text

    run(test())
