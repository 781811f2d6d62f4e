"""Can a page in somebody's browser ask for what it may not?"""

from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.net.here import http, served

OPEN = {"listen": "127.0.0.1:0", "origins": ["https://app.example.org"]}
ONE = "/v1/subscriptions/s"


def run(test, within=60.0):
    asyncio.run(asyncio.wait_for(test, within))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 204),
        ({"Origin": "https://app.example.org"}, 204),
        ({"Origin": "https://app.example.org", "Sec-Fetch-Site": "cross-site"}, 204),
        ({"Sec-Fetch-Site": "none"}, 204),
        ({"Origin": "https://evil.example.org"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "evil.example.org"}, 421),
        ({"Host": "localhost:7480"}, 204),
    ],
)
def test_only_pages_that_may_are_served(headers, status):
    async def test():
        async with (
            served(http=OPEN) as server,
            httpx.AsyncClient(base_url=http(server), timeout=20) as client,
        ):
            await client.put(ONE, json={"sql": "SELECT * FROM q"})
            said = await client.post(f"{ONE}/suspend", headers=headers)
            assert said.status_code == status
            assert (await client.get(ONE)).json()["suspended"] == (status == 204)

    run(test())


def test_a_page_is_told_beforehand_whether_it_may():
    async def test():
        async with (
            served(http=OPEN) as server,
            httpx.AsyncClient(base_url=http(server), timeout=20) as client,
        ):
            asks = {"Access-Control-Request-Method": "PUT"}
            for origin, status in (("https://app.example.org", 200), ("https://evil.example", 400)):
                said = await client.options(ONE, headers={"Origin": origin, **asks})
                assert said.status_code == status
                allowed = said.headers.get("access-control-allow-origin")
                assert (allowed == origin) == (status == 200)

    run(test())
