"""Is a request refused whose end others could see elsewhere?"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable

import pytest
import websockets

import driftline as dl
from tests.net.here import http
from tests.net.secured import Authority, client_of, closed

ROOT = """
[[grants]]
who = ["root"]
may = ["publish", "subscribe"]
on = ["*"]
attributes = ["*"]
"""


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 30))


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ambiguous") / "keys")


def request(path: str, token: str, body: bytes, *headers: str) -> bytes:
    """A request to publish."""
    said = (
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        *headers,
    )
    return "\r\n".join((*said, "", "")).encode() + body


def event(name: str) -> bytes:
    return json.dumps({"type": "quote", name: True}).encode()


async def answered(server, data: bytes) -> bytes:
    """All that is answered until the connection ends."""
    host, _, port = http(server).removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    heard = b""
    try:
        while some := await asyncio.wait_for(reader.read(1 << 16), 10):
            heard += some
    except ConnectionError:
        pass
    writer.close()
    return heard


@pytest.mark.parametrize("path", ["/v1/events", "/nowhere"])
@pytest.mark.parametrize("first", ["Content-Length", "Transfer-Encoding"])
def test_a_request_with_two_lengths_is_refused_and_nothing_behind_it_is_read(
    authority, path, first
):
    """Who passes it on by the one takes for a body what by the other is a request."""

    async def test():
        async with (
            closed(authority, ROOT, http={"listen": "127.0.0.1:0"}) as server,
            client_of(server, authority.token("root")) as root,
        ):
            told = await root.subscribe("SELECT * FROM quote")
            token, inner, outer = authority.token("root"), event("inner"), event("outer")
            behind = request("/v1/events", token, inner, f"Content-Length: {len(inner)}")
            body = b"%x\r\n%s\r\n0\r\n\r\n%s" % (len(outer), outer, behind)
            lengths = [f"Content-Length: {len(body)}", "Transfer-Encoding: chunked"]
            if first == "Transfer-Encoding":
                lengths.reverse()
            heard = await answered(server, request(path, token, body, *lengths))
            assert heard.count(b"HTTP/1.1 ") == 1
            head, _, said = heard.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 400 ")
            assert b"content-type: application/problem+json" in head.lower()
            assert json.loads(said)["status"] == 400
            await root.publish(dl.Event("quote", {"last": True}))
            assert (await told.next(5)).values == {"last": True}

    run(test)


@pytest.mark.parametrize("length", ["Content-Length", "Transfer-Encoding"])
def test_one_with_one_length_is_taken(authority, length):
    async def test():
        async with (
            closed(authority, ROOT, http={"listen": "127.0.0.1:0"}) as server,
            client_of(server, authority.token("root")) as root,
        ):
            told = await root.subscribe("SELECT * FROM quote")
            body, header = event("outer"), f"Content-Length: {len(event('outer'))}"
            if length == "Transfer-Encoding":
                body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
                header = "Transfer-Encoding: chunked"
            said = request("/v1/events", authority.token("root"), body, header, "Connection: close")
            assert (await answered(server, said)).startswith(b"HTTP/1.1 200 ")
            assert (await told.next(5)).values == {"outer": True}

    run(test)


def test_a_websocket_that_is_denied_is_not_said_to_be_forgotten(authority):
    """Strangers could fill the log with it."""
    lines: list[str] = []

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    async def test():
        async with closed(authority, ROOT, http={"listen": "127.0.0.1:0"}) as server:
            address = http(server).replace("http", "ws", 1) + "/v1/socket"
            for _ in range(3):
                with pytest.raises(websockets.InvalidStatus):
                    async with websockets.connect(address):
                        pass

    log, listening = logging.getLogger("uvicorn.error"), Listening()
    log.addHandler(listening)
    try:
        run(test)
        assert lines == []
        # What is worth a line still has one.
        log.error("something else")
        assert lines == ["something else"]
    finally:
        log.removeHandler(listening)


def test_of_several_who_somebody_says_to_be_none_is_believed(authority):
    """Whoever passes a request on may look at the other."""

    async def test():
        async with closed(authority, ROOT, http={"listen": "127.0.0.1:0"}) as server:
            root, nobody = authority.token("root"), authority.token("nobody")
            for first, second in ((root, nobody), (nobody, root), (root, root)):
                again = f"Authorization: Bearer {second}"
                body = event("x")
                length = f"Content-Length: {len(body)}"
                said = request("/v1/events", first, body, again, length, "Connection: close")
                assert (await answered(server, said)).startswith(b"HTTP/1.1 401 ")
            assert server.counters.published == 0

    run(test)
