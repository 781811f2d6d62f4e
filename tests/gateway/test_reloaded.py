"""Does nothing go on that was believed before, when a broker has read anew whom to believe?"""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from httpx_sse import aconnect_sse

from driftline.errors import Unreachable
from driftline.net.authority import sign_party
from driftline.net.identities import Identities
from tests.net.here import http, served
from tests.net.secured import Authority, client_of, closed

OPEN = {"listen": "127.0.0.1:0"}
ACCESS = """
[[grants]]
who = ["alice"]
may = ["publish", "subscribe"]
on = ["*"]
attributes = ["*"]
"""


def run(test, within=60.0):
    asyncio.run(asyncio.wait_for(test, within))


def trust(old: Authority, new: Authority, *, certificate: bool) -> ssl.SSLContext:
    """Of alice, who trusts both, and has a certificate of the old one."""
    context = old.trust()
    context.load_verify_locations(new.folder / "ca.pem")
    if certificate:
        context.load_cert_chain(*sign_party(old.folder, "alice"))
    return context


def test_an_authority_that_is_no_longer_trusted_opens_no_door(tmp_path):
    async def test():
        old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
        async with closed(old, ACCESS, http=OPEN, tls=old.tls("b")) as server:
            context = trust(old, new, certificate=True)
            async with httpx.AsyncClient(base_url=http(server), verify=context) as client:
                assert (await client.get("/v1/subscriptions")).status_code == 200
                other = {name: Path(file) for name, file in new.tls("b").items()}
                config = server.config
                assert config.tls is not None
                server.reload(replace(config, tls=replace(config.tls, **other)))
                # Neither on the connection that there is, nor on another.
                for _ in range(2):
                    with pytest.raises(httpx.HTTPError):
                        (await client.get("/v1/subscriptions")).raise_for_status()
            with pytest.raises(Unreachable):
                async with client_of(server, tls=context, reconnect=False):
                    pass
            fresh = trust(old, new, certificate=False)
            fresh.load_cert_chain(*sign_party(new.folder, "alice"))
            async with httpx.AsyncClient(base_url=http(server), verify=fresh) as client:
                assert (await client.get("/v1/subscriptions")).status_code == 200

    run(test())


def test_a_token_that_does_not_count_any_more_ends_its_stream_and_begins_none(tmp_path):
    async def test():
        old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
        async with (
            closed(old, ACCESS, http=OPEN) as server,
            httpx.AsyncClient(base_url=http(server), timeout=20) as client,
        ):
            headers = {"Authorization": f"Bearer {old.token('alice')}"}
            host, _, port = http(server).removeprefix("http://").partition(":")
            # Its head is believed; its body comes when it should not be any more.
            slow = []
            body = json.dumps({"sql": "SELECT * FROM tick"})
            event = json.dumps({"type": "tick"})
            for path, said in (("/v1/stream", body), ("/v1/events", event)):
                reader, writer = await asyncio.open_connection(host, int(port))
                head = (
                    f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
                    f"Authorization: {headers['Authorization']}\r\n"
                    f"Content-Length: {len(said)}\r\n\r\n"
                )
                writer.write(f"{head}{said[:3]}".encode())
                slow.append((reader, writer, said[3:]))
            path = "/v1/stream?sql=SELECT+*+FROM+tick"
            async with aconnect_sse(client, "GET", path, headers=headers) as source:
                await asyncio.sleep(0.3)
                tokens = server.config.tokens
                assert tokens is not None
                other = replace(tokens, key=new.folder / "tokens.pub")
                server.reload(replace(server.config, tokens=other))
                end = await asyncio.wait_for(anext(source.aiter_sse()), 10)
                assert end.event == "end"
                assert "has changed" in end.data
            for reader, writer, rest in slow:
                writer.write(rest.encode())
                first = await asyncio.wait_for(reader.readline(), 10)
                assert b" 200 " not in first, first
                writer.close()
            assert (await client.get("/v1/subscriptions", headers=headers)).status_code == 401
            headers = {"Authorization": f"Bearer {new.token('alice')}"}
            assert (await client.get("/v1/subscriptions", headers=headers)).status_code == 200
            assert server.counters.unproven >= 1

    run(test())


def test_who_comes_while_that_changes_is_asked_to_come_again(tmp_path):
    """Nothing is wrong with them, and they are not counted as strangers."""

    async def test():
        async with (
            served(http=OPEN) as server,
            httpx.AsyncClient(base_url=http(server), timeout=20) as client,
        ):
            # What answers has not heard of it yet.
            server.identities = Identities(server.config)
            for path in ("/v1/subscriptions", "/v1/stream?sql=SELECT%20*%20FROM%20tick"):
                said = await client.get(path)
                assert (said.status_code, said.headers["Retry-After"]) == (503, "1")
                assert "who may do what has changed" in said.json()["detail"]
            assert server.counters.unproven == 0
            server.reload(server.config)
            while said.status_code == 503:
                await asyncio.sleep(0.01)
                # Its connection may end just when it asks.
                with suppress(httpx.TransportError):
                    said = await client.get("/v1/subscriptions")
            assert said.status_code == 200
            assert server.counters.unproven == 0

    run(test())
