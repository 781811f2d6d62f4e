"""Can a page in somebody's browser ask for what it may not?"""

from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.gateway.raw import HANDSHAKE, asked
from tests.net.here import http, served
from tests.net.secured import Authority, closed

OPEN = {"listen": "127.0.0.1:0", "origins": ["https://app.example.org"]}
ONE = "/v1/subscriptions/s"
ANYONE = """
[[grants]]
who = ["anyone", "alice"]
may = ["publish", "subscribe"]
on = ["*"]
attributes = ["*"]
"""


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
        # Programs send an origin, too: that of the address they were given.
        ({"Host": "127.0.0.1:7480", "Origin": "http://127.0.0.1:7480"}, 204),
        ({"Host": "localhost:80", "Origin": "http://localhost"}, 204),
        ({"Host": "127.0.0.1:7480", "Origin": "https://127.0.0.1:7480"}, 403),
        ({"Host": "127.0.0.1:7480", "Origin": "http://127.0.0.1:7481"}, 403),
        ({"Host": "evil.example.org", "Origin": "http://evil.example.org"}, 421),
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


def test_where_nobody_proves_who_they_are_no_name_is_an_origin_of_its_own():
    """Whoever has a name can make it lead here, also where an address is not this machine's."""

    async def test():
        async with served(http={**OPEN, "listen": "0.0.0.0:0"}) as server:
            _, _, port = http(server).rpartition(":")
            at = f"http://127.0.0.1:{port}"
            async with httpx.AsyncClient(base_url=at, timeout=20) as client:
                for host, status in (("evil.example.org", 403), (f"127.0.0.1:{port}", 200)):
                    headers = {"Host": host, "Origin": f"http://{host}"}
                    said = await client.get("/v1/subscriptions", headers=headers)
                    assert said.status_code == status

    run(test())


@pytest.mark.parametrize(
    ("host", "token", "status"),
    [
        ("evil.example.org", False, 421),
        ("evil.example.org:7480", False, 421),
        ("localhost:7480", False, 200),
        ("127.0.0.1:7480", False, 200),
        # By another name come those who prove who they are, and through a proxy pages that may.
        ("broker.example.org", True, 200),
        ("app.example.org", False, 200),
        ("app.example.org:443", False, 200),
        ("app.example.org:444", False, 421),
    ],
)
def test_a_closed_broker_does_nothing_for_nobody_under_anybodys_name(tmp_path, host, token, status):
    async def test():
        keys = Authority(tmp_path / "keys")
        async with (
            closed(keys, ANYONE, http=OPEN) as server,
            httpx.AsyncClient(base_url=http(server), timeout=20) as client,
        ):
            headers = {"Host": host}
            if token:
                headers["Authorization"] = f"Bearer {keys.token('alice')}"
            event = {"type": "q", "x": 1}
            said = await client.post("/v1/events", json=event, headers=headers)
            assert said.status_code == status
            # Also if a page under that name says that it is of no other.
            origin = {"Origin": f"http://{host}"}
            said = await client.post("/v1/events", json=event, headers={**headers, **origin})
            assert (said.status_code == 200) == (status == 200 and not host.startswith("app."))
            said = await asked(server, socket_handshake(headers))
            assert said.status == (101 if status == 200 else status)

    run(test())


def socket_handshake(headers: dict[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"GET /v1/socket HTTP/1.1\r\n{lines}".encode() + HANDSHAKE + b"\r\n"


def test_who_proves_nothing_where_everybody_must_is_told_so_under_whatever_name(tmp_path):
    async def test():
        keys = Authority(tmp_path / "keys")
        async with (
            closed(keys, ANYONE.replace('"anyone", ', ""), http=OPEN) as server,
            httpx.AsyncClient(base_url=http(server), timeout=20) as client,
        ):
            said = await client.get("/v1/subscriptions", headers={"Host": "broker.example.org"})
            assert said.status_code == 401

    run(test())


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("", "", 101),
        ("127.0.0.1:7480", "http://127.0.0.1:7480", 101),
        ("127.0.0.1:7480", "https://app.example.org", 101),
        ("127.0.0.1:7480", "http://evil.example.org", 403),
        ("evil.example.org", "http://evil.example.org", 421),
        ("evil.example.org", "", 421),
    ],
)
def test_a_websocket_is_for_the_same_pages(host, origin, status):
    async def test():
        async with served(http=OPEN) as server:
            said = (
                f"GET /v1/socket HTTP/1.1\r\nHost: {host or 'localhost'}\r\n".encode() + HANDSHAKE
            )
            if origin:
                said += f"Origin: {origin}\r\n".encode()
            found = await asked(server, said + b"\r\n")
            assert found.status == status
            assert status == 101 or found.problem

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


@pytest.mark.parametrize(
    ("method", "headers", "why"),
    [
        ("POST", "content-type, ce-id, CE-Specversion, ce-myextension", ""),
        ("POST", "traceparent, tracestate", ""),
        ("GET", "", ""),
        ("POST", "content-type, x-other", "x-other"),
        ("PATCH", "", "PATCH"),
    ],
)
def test_a_page_may_say_an_event_in_headers(method, headers, why):
    async def test():
        async with (
            served(http=OPEN) as server,
            httpx.AsyncClient(base_url=http(server), timeout=20) as client,
        ):
            asks = {
                "Origin": "https://app.example.org",
                "Access-Control-Request-Method": method,
                "Access-Control-Request-Headers": headers,
            }
            said = await client.options("/v1/events", headers=asks)
            if why:
                assert said.status_code == 400
                assert said.headers["content-type"] == "application/problem+json"
                assert why in said.json()["detail"]
                return
            assert said.status_code == 200
            allowed = said.headers["access-control-allow-headers"].split(", ")
            assert {one.strip().lower() for one in headers.split(",") if one} <= {*allowed}

    run(test())
