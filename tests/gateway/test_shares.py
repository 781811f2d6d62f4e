"""Does somebody who takes all there is leave something to others?"""

from __future__ import annotations

import asyncio
import json

from tests.gateway.raw import answered
from tests.gateway.test_pages import ANYONE
from tests.net.here import eventually, gateway, http, served
from tests.net.secured import Authority, closed

OPEN = {"listen": "127.0.0.1:0", "body_bytes": 100_000, "patience": 30.0}
LIMITS = {"unfinished_bytes": 400_000}
ACCESS = ANYONE.replace('"alice"', '"alice", "bob"')
SIZE = 90_000


def run(test, within=60.0):
    asyncio.run(asyncio.wait_for(test, within))


def request(path: str, body: bytes, *, token: str = "", length: int | None = None) -> bytes:
    """A request, or as much of its body as there is."""
    shown = f"Authorization: Bearer {token}\r\n" if token else ""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{shown}"
        f"Content-Length: {len(body) if length is None else length}\r\n\r\n"
    )
    return head.encode() + body


async def said(server, what: bytes, frm: str = "127.0.0.1"):
    host, _, port = http(server).removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), local_addr=(frm, 0))
    writer.write(what)
    return reader, writer


def event(size: int) -> bytes:
    return json.dumps({"type": "q", "text": "x" * size}).encode()


def test_whose_bodies_do_not_come_leaves_room_for_those_of_others(tmp_path):
    async def test():
        keys = Authority(tmp_path / "keys")
        async with closed(keys, ACCESS, http=OPEN, limits=LIMITS) as server:
            for mine, others in (
                ({"token": keys.token("alice")}, {"token": keys.token("bob")}),
                ({}, {"token": keys.token("bob")}),
                ({}, {"frm": "127.0.0.2"}),
                ({"frm": "127.0.0.2"}, {"frm": "127.0.0.1"}),
            ):
                stalled, answers = [], []
                for _ in range(12):
                    before = gateway(server).unfinished.all
                    what = request("/v1/events", b" " * SIZE, length=SIZE + 1, **token_of(mine))
                    reader, writer = await said(server, what, mine.get("frm", "127.0.0.1"))
                    stalled.append(writer)
                    # It stalls, or was refused.
                    answer = asyncio.create_task(reader.read(1))
                    answers.append(answer)
                    await eventually(
                        lambda before=before, answer=answer: (
                            answer.done() or gateway(server).unfinished.all == before + SIZE
                        )
                    )
                assert gateway(server).unfinished.all >= SIZE
                for _ in range(3):
                    what = request("/v1/events", event(50_000), **token_of(others))
                    reader, writer = await said(server, what, others.get("frm", "127.0.0.1"))
                    assert (await answered(reader)).status == 200
                    writer.close()
                for one in stalled:
                    one.transport.abort()
                await asyncio.gather(*answers, return_exceptions=True)
                await eventually(lambda: not gateway(server).unfinished.all)

    run(test())


def token_of(whose: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in whose.items() if name == "token"}


def test_of_those_without_a_name_one_address_has_no_more_than_one_identity():
    async def test():
        async with served(http={**OPEN, "requests": 3, "streams": 2}) as server:
            lines = []
            for _ in range(3):
                lines.append(await said(server, request("/v1/events", b" ", length=2)))
            await eventually(lambda: gateway(server).unfinished.all == 3)
            stream = request("/v1/stream", json.dumps({"sql": "SELECT * FROM q"}).encode())
            whole = request("/v1/events", event(10))
            for what, status in ((whole, 429), (stream, 429)):
                reader, writer = await said(server, what)
                assert (await answered(reader)).status == status
                writer.close()
            reader, writer = await said(server, whole, "127.0.0.2")
            lines.append((reader, writer))
            assert (await answered(reader)).status == 200
            for _, writer in lines[:3]:
                writer.write(b"x")
            for reader, _ in lines[:3]:
                assert (await answered(reader)).status == 400
            for frm, status in (
                ("127.0.0.1", b" 200 "),
                ("127.0.0.1", b" 200 "),
                ("127.0.0.1", b" 429 "),
                ("127.0.0.2", b" 200 "),
            ):
                lines.append(await said(server, stream, frm))
                assert status in await lines[-1][0].readline()
            for _, writer in lines:
                writer.close()

    run(test())
