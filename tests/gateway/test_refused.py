"""Is everything that is refused a problem, whatever refuses it, and before it is sent in vain?"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import httpx
import pytest
import websockets
from websockets.protocol import State

import driftline as dl
from driftline.gateway import bodies
from driftline.gateway.connection import Connections, Socket, settings_of
from driftline.net.http import Http
from tests.gateway.raw import HANDSHAKE, answered, asked, framed, opened
from tests.net.here import address, eventually, gateway, http, served
from tests.net.secured import Authority, closed

OPEN = {"listen": "127.0.0.1:0", "body_bytes": 1000, "origins": ["https://app.example.org"]}
HOST = b"Host: localhost\r\n"
JSON = b"Content-Type: application/json\r\n"
POST = b"POST /v1/events HTTP/1.1\r\n" + HOST + JSON


def run(test, within=60.0):
    asyncio.run(asyncio.wait_for(test, within))


@pytest.mark.parametrize(
    ("said", "status", "detail"),
    [
        (b"\x16\x03\x01 hello\r\n\r\n", 400, "HTTP/1.1"),
        (b"GET /v1/status HTTP/1.1\r\n\r\n", 400, "Host"),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 40_000, 431, "at most 32768 bytes"),
        (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, "Transfer-Encoding"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n", 400, "chunk"),
        (b"GET /nowhere HTTP/1.1\r\n" + HOST + HANDSHAKE + b"\r\n", 404, "WebSocket"),
        (b"GET /v1/status HTTP/1.1\r\n" + HOST + HANDSHAKE + b"\r\n", 404, "WebSocket"),
        (b"\x16\x03\x01" + bytes(300) + b"\r\n\r\n", 400, "came TLS"),
        (b"GET /nowhere HTTP/1.1\r\n" + HOST + b"\r\n", 404, "/v1/openapi.json"),
        (b"PATCH /v1/events HTTP/1.1\r\n" + HOST + b"\r\n", 405, "wanted POST, came 'PATCH'"),
        (POST.replace(b"events", b"events?onec=true") + b"\r\n", 422, "'onec'"),
        (POST.replace(b"events", b"events?once=true&once=false") + b"\r\n", 422, "twice"),
        (b"GET /v1/stream?sql=%ff HTTP/1.1\r\n" + HOST + b"\r\n", 400, "UTF-8"),
        (b"GET /v1/stream?sql=a&params={ HTTP/1.1\r\n" + HOST + b"\r\n", 400, "query, params"),
        (b"GET /v1/subscriptions/%ff HTTP/1.1\r\n" + HOST + b"\r\n", 400, "UTF-8"),
        (b"GET /v1/subscriptions/.. HTTP/1.1\r\n" + HOST + b"\r\n", 422, "neither"),
        (b"POST /v1/socket HTTP/1.1\r\n" + HOST + HANDSHAKE + b"\r\n", 405, ""),
        (b"GET /v1/subscriptions HTTP/1.1\r\nHost: [\r\n\r\n", 421, "Host"),
    ],
)
def test_what_is_no_request_of_ours_is_a_problem(said, status, detail):
    async def test():
        async with served(http=OPEN) as server:
            found = await asked(server, said)
            assert found.status == status
            assert detail in found.problem["detail"]

    run(test())


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ((HANDSHAKE, b""), "Upgrade"),
        ((b"Version: 13", b"Version: 12"), "wanted 13, came '12'"),
        ((b"AQIDBAUGBwgJCgsMDQ4PEA==", b"AQ=="), "16 bytes"),
        ((b"AQIDBAUGBwgJCgsMDQ4PEA==", b"x"), "16 bytes"),
        ((HANDSHAKE, HANDSHAKE + b"X: " + b"x" * 9_000 + b"\r\n"), "8000 bytes"),
        ((HANDSHAKE, HANDSHAKE + b"X: x\r\n" * 200), "100 headers"),
        ((HANDSHAKE, HANDSHAKE + b"Content-Length: 9\r\n"), "no body"),
        ((HANDSHAKE, HANDSHAKE + b"Transfer-Encoding: chunked\r\n"), "no body"),
        ((b"/v1/socket", b"/v1/socket?" + b"a" * 9_000), "8000 bytes"),
    ],
)
def test_what_does_not_begin_a_websocket_is_told_what_does(change, detail):
    async def test():
        async with served(http=OPEN) as server:
            said = b"GET /v1/socket HTTP/1.1\r\n" + HOST + HANDSHAKE + b"\r\n"
            found = await asked(server, said.replace(*change))
            assert found.status == 426
            assert found.headers["sec-websocket-version"] == "13"
            assert detail in found.problem["detail"]

    run(test())


def test_what_begins_no_websocket_to_whom_it_was_handed_on_is_ended():
    async def test():
        loop = asyncio.get_running_loop()
        state = Connections(Http("127.0.0.1:0"), lambda peer, why: None)
        settings = settings_of(None, state.http)
        settings.load()
        one = Socket(settings, state, {}, loop)
        listening = await loop.create_server(lambda: one, "127.0.0.1", 0)
        async with listening:
            reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
            head = b"GET /v1/socket HTTP/1.1\r\n" + HOST + HANDSHAKE
            writer.write(head + b"Content-Length: 9\r\n\r\n")
            with suppress(ConnectionResetError):
                assert await asyncio.wait_for(reader.read(1), 10) == b""
            assert not state.connections
            writer.close()

    run(test())


def test_a_body_that_ends_no_more_after_its_answer_harms_nobody(caplog):
    """What comes behind an answer that is on its way is no request, and no error of ours."""

    async def test():
        async with served(http=OPEN) as server:
            reader, writer = await opened(server)
            chunked = b"Transfer-Encoding: chunked\r\n\r\n"
            writer.write(b"POST /nowhere HTTP/1.1\r\n" + HOST + chunked)
            assert (await answered(reader)).status == 404
            writer.write(b"zz\r\n")
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()
        assert not [one for one in caplog.records if one.levelname == "ERROR"]

    run(test())


@pytest.mark.parametrize(
    ("head", "status", "detail"),
    [
        (b"Content-Length: 1001\r\n", 413, "came 1001"),
        (b"Content-Length: 4\r\nContent-Encoding: gzip\r\n", 415, "identity"),
    ],
)
def test_a_body_that_cannot_be_taken_is_not_asked_for(head, status, detail):
    """Who waits to be told to go on is told not to, and that nothing else is heard here."""

    async def test():
        async with served(http=OPEN) as server:
            found = await asked(server, POST + head + b"Expect: 100-continue\r\n\r\n")
            assert found.status == status
            assert detail in found.problem["detail"]
            assert found.headers["connection"] == "close"
            assert found.ended

    run(test())


def test_a_body_in_no_encoding_is_taken():
    async def test():
        async with served(http=OPEN) as server:
            body = b'{"type": "x"}'
            head = b"Content-Encoding: identity\r\nContent-Length: %d\r\n\r\n" % len(body)
            found = await asked(server, POST + head + body)
            assert (found.status, found.ended) == (200, False)

    run(test())


def test_an_answer_that_is_the_last_on_its_connection_says_so():
    """What certificates and keys were believed is found out anew: whoever is answered meanwhile
    must not ask once more where nobody listens.
    """

    async def test():
        async with served(http=OPEN) as server:
            reader, writer = await opened(server)
            body = b'{"type": "x"}'
            writer.write(POST + b"Content-Length: %d\r\n\r\n" % len(body))
            await asyncio.sleep(0.3)
            server.reload(replace(server.config))
            await asyncio.sleep(0.3)
            writer.write(body)
            found = await answered(reader)
            # Whom it was asked of is no longer believed, either.
            assert found.status == 503
            assert found.headers["connection"] == "close"
            assert found.ended
            writer.close()

    run(test())


LONG = "SELECT * FROM quote WHERE " + " OR ".join(f"price = {n}" for n in range(100))


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ({"filters": [{"sql": "a = 1"}] * 5_000}, 422, "at most 4096 filters"),
        ({"sql": "SELECT * FROM quote WHERE " + " OR ".join(["a"] * 9_000)}, 422, "at most 16384"),
        ({"sql": "SELECT *", "params": dict.fromkeys(map(str, range(10_001)), 1)}, 422, "10000"),
        ({"sql": "SELECT *" + " " * (1 << 20)}, 413, "at most 1048576 bytes"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/stream", "/v1/subscriptions/s"])
def test_what_asks_for_more_than_can_be_said_is_refused(path, body, status, detail):
    async def test():
        async with (
            served(http={"listen": "127.0.0.1:0"}) as server,
            httpx.AsyncClient(base_url=http(server), timeout=60) as web,
        ):
            method = "POST" if path == "/v1/stream" else "PUT"
            said = await web.request(method, path, json=body)
            assert said.status_code == status
            assert detail in said.json()["detail"]

    run(test())


@pytest.mark.parametrize(
    "body", [{"sql": LONG}, {"filters": [{"sql": f"a = {n}"} for n in range(100)]}]
)
def test_while_a_long_text_is_read_others_are_heard(monkeypatch, body):
    threads: list[str] = []
    read = bodies.Subscribing.statement

    def noted(self):
        threads.append(threading.current_thread().name)
        return read(self)

    monkeypatch.setattr(bodies.Subscribing, "statement", noted)

    async def test():
        async with (
            served(http={"listen": "127.0.0.1:0"}) as server,
            httpx.AsyncClient(base_url=http(server), timeout=60) as web,
        ):
            assert (await web.put("/v1/subscriptions/s", json=body)).status_code == 201
            async with web.stream("POST", "/v1/stream", json=body) as stream:
                assert stream.status_code == 200
            async with websockets.connect(
                http(server).replace("http", "ws", 1) + "/v1/socket"
            ) as socket:
                await socket.send(json.dumps({"do": "subscribe", "id": "a", **body}))
                assert json.loads(await socket.recv())["did"] == "subscribe"
        assert len(threads) == 3
        assert not [one for one in threads if one == "driftline-http"]

    run(test())


@pytest.mark.parametrize("frm", ["127.0.0.1", "127.0.0.2"])
def test_nothing_waits_for_long_texts_but_others_of_whoever_wrote_them(monkeypatch, frm):
    goes_on = threading.Event()
    read = bodies.Subscribing.statement

    def slow(self):
        goes_on.wait(60)
        return read(self)

    monkeypatch.setattr(bodies.Subscribing, "statement", slow)
    line = httpx.AsyncHTTPTransport(local_address=frm)

    async def test():
        async with (
            served(http={"listen": "127.0.0.1:0"}) as server,
            httpx.AsyncClient(base_url=http(server), timeout=60) as web,
            httpx.AsyncClient(base_url=http(server), timeout=10, transport=line) as other,
        ):
            texts = [
                asyncio.create_task(web.put(f"/v1/subscriptions/s{n}", json={"sql": LONG}))
                for n in range(3)
            ]
            await eventually(lambda: gateway(server).visitors._aside.locked())
            try:
                assert (await other.post("/v1/events", json={"type": "tick"})).is_success
            finally:
                goes_on.set()
            assert {one.status_code for one in await asyncio.gather(*texts)} == {201}

    run(test())


@asynccontextmanager
async def talking(server):
    """A WebSocket, byte by byte."""
    reader, writer = await opened(server)
    writer.write(b"GET /v1/socket HTTP/1.1\r\n" + HOST + HANDSHAKE + b"\r\n")
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    yield reader, writer
    writer.close()


@pytest.mark.parametrize(
    ("said", "code", "why"),
    [
        (framed(1, b'{"do": "\xff"}'), 1007, b"invalid start byte at position 8"),
        (framed(1, b"\xe2\x82", last=False) + framed(0, b"("), 1007, b"invalid continuation byte"),
        (framed(1, b"\xff") + framed(1, b"{}" * 1000) * 100, 1007, b"invalid start byte"),
        (framed(1, b'"\xed\xa0\x80"'), 1007, b"invalid continuation byte"),
        (framed(8, (1005).to_bytes(2, "big")), 1002, b"invalid status code"),
        (framed(8, (999).to_bytes(2, "big")), 1002, b"invalid status code"),
        (framed(8, b"\x03"), 1002, b"too short"),
        (framed(8, (1000).to_bytes(2, "big") + b"\xff"), 1007, b"invalid start byte"),
        (framed(3, b"{}"), 1002, b"invalid opcode"),
        (framed(1, b"x" * 60_000), 1009, b"exceeds limit of 50000 bytes"),
    ],
)
def test_what_cannot_be_read_on_a_websocket_ends_it_and_is_a_line_in_the_log(
    caplog, said, code, why
):
    async def test():
        async with (
            served(http={**OPEN, "message_bytes": 50_000}) as server,
            talking(server) as (reader, writer),
        ):
            writer.write(said)
            found = await asyncio.wait_for(reader.read(), 10)
            assert found[:1] == b"\x88"
            assert int.from_bytes(found[2:4], "big") == code
            assert why in found
        (line,) = [one for one in caplog.records if one.levelname in ("WARNING", "ERROR")]
        assert (line.levelname, line.exc_info) == ("WARNING", None)
        assert why.decode() in line.getMessage()

    run(test())


def test_who_asks_whether_we_are_there_and_reads_no_answer_fills_no_memory():
    async def test():
        async with served(http=OPEN) as server, talking(server) as (reader, writer):
            (one,) = gateway(server)._state.connections
            for n in range(100):
                writer.write(framed(9, b"%100d" % n) * 1000)
                await writer.drain()
                assert one.transport.get_write_buffer_size() < 1 << 20
            writer.write(framed(9, b"last"))
            # The last one is answered when the answers are read.
            heard = b""
            while not heard.endswith(b"\x8a\x04last"):
                heard = heard[-10:] + await asyncio.wait_for(reader.read(1 << 16), 20)
            writer.write(framed(1, b"{}"))
            assert b'"failed":null' in await asyncio.wait_for(reader.readuntil(b"}}"), 10)

    run(test())


def test_a_message_takes_as_much_memory_as_it_has_bytes_however_many_parts_it_has():
    async def test():
        async with served(http=OPEN) as server, talking(server) as (reader, writer):
            (one,) = gateway(server)._state.connections
            writer.write(framed(1, b"{", last=False))
            for _ in range(20):
                writer.write((framed(0, b"", last=False) + framed(0, b" ", last=False)) * 1000)
                await writer.drain()
            await eventually(lambda: sum(map(len, one.frames)) == 20_001)
            assert len(one.frames) == 1
            writer.write(framed(0, b"}"))
            assert b'"failed":null' in await asyncio.wait_for(reader.readuntil(b"}}"), 10)

    run(test())


def test_a_broker_ends_whatever_was_said_on_websockets_before():
    """Somebody who has said goodbye and does not read what was said before is nobody to be told."""

    async def test():
        async with (
            served(http=OPEN) as server,
            dl.connect(address(server)) as client,
            talking(server) as (_, writer),
        ):
            asked = {"do": "subscribe", "id": "a", "sql": "SELECT * FROM tick"}
            writer.write(framed(1, json.dumps(asked).encode()))
            await eventually(lambda: bool(list(server.edge)))
            (one,) = gateway(server)._state.connections
            while one.writable.is_set():
                await client.publish(dl.Event("tick", {"text": "x" * 100_000}))
            writer.write(framed(8, (1000).to_bytes(2, "big")))
            await eventually(lambda: one.conn.state is not State.OPEN)
            await server.drain(5)

    run(test())


def test_what_is_said_of_a_problem_is_not_as_long_as_what_came():
    async def test():
        async with (
            served(http={"listen": "127.0.0.1:0"}) as server,
            httpx.AsyncClient(base_url=http(server)) as web,
        ):
            body = {"sql": "SELECT *", "params": {f"p{n}": n for n in range(900)}}
            said = await web.put("/v1/subscriptions/s", json=body)
            assert said.status_code == 422
            assert len(said.json()["detail"]) <= 2_001
            said = await web.post("/v1/events", json=[{"type": "x", "a" * 50_000: []}])
            assert len(said.json()["refused"][0]["detail"]) <= 2_001

    run(test())


def test_who_speaks_plain_http_where_tls_is_wanted_is_a_clear_line(tmp_path, caplog):
    async def test():
        authority = Authority(tmp_path / "keys")
        async with closed(authority, "", tls=authority.tls("b"), http=OPEN) as server:
            assert http(server).startswith("https://")
            reader, writer = await asyncio.open_connection(
                *http(server).removeprefix("https://").split(":")
            )
            writer.write(b"GET /v1/status HTTP/1.1\r\n" + HOST + b"\r\n")
            assert await asyncio.wait_for(reader.read(), 10) == b""
            writer.close()
            await eventually(lambda: "came plain HTTP" in caplog.text)

    run(test())
