"""Does the reader that the documents show do what they say of it?"""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from httpx_sse import aconnect_sse

from tests.net.here import gateway, http, served

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "http.md"
ONE = "/v1/subscriptions/cheap"
BODY = {"sql": "SELECT * FROM quote WHERE price < 10"}


def run(test, within=60.0):
    asyncio.run(asyncio.wait_for(test, within))


@asynccontextmanager
async def reading(address):
    """The reader of the page, as a program."""
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    text = text.replace("http://127.0.0.1:7480", address)
    pipe = asyncio.subprocess.PIPE
    reader = await asyncio.create_subprocess_exec(
        sys.executable, "-c", text, stdout=pipe, stderr=pipe
    )
    try:
        yield reader
    finally:
        if reader.returncode is None:
            reader.kill()
        await reader.communicate()


async def says(reader, line):
    assert (await asyncio.wait_for(reader.stdout.readline(), 20)).decode().strip() == line


async def quote(client, price):
    said = await client.post("/v1/events", json={"type": "quote", "price": price})
    assert said.status_code == 200


def test_it_goes_on_after_the_broker_was_away_and_ends_with_its_subscription(tmp_path):
    async def test():
        journal, listen = str(tmp_path / "journal"), "127.0.0.1:0"
        async with served(journal=journal, http={"listen": listen}) as server:
            listen = http(server).removeprefix("http://")
            async with (
                httpx.AsyncClient(base_url=http(server)) as client,
                reading(http(server)) as reader,
            ):
                assert (await client.put(ONE, json=BODY)).status_code == 201
                await quote(client, 9)
                await says(reader, "event {'price': 9}")
                await server.drain(5)
                async with served(journal=journal, http={"listen": listen}) as again:
                    assert http(again) == f"http://{listen}"
                    await quote(client, 8)
                    await says(reader, "event {'price': 8}")
                    await client.delete(ONE)
                    _, said = await asyncio.wait_for(reader.communicate(), 20)
                    assert reader.returncode == 1
                    assert said.decode().strip() == (
                        "there is no durable subscription of yours by this name"
                    )

    run(test())


def test_it_takes_its_time_to_come_back():
    """Two who are told of the same take it from each other: not as fast as they can."""

    async def test():
        async with (
            served(http={"listen": "127.0.0.1:0"}) as server,
            httpx.AsyncClient(base_url=http(server), timeout=20) as client,
        ):
            assert (await client.put(ONE, json=BODY)).status_code == 201
            await quote(client, 9)
            async with reading(http(server)) as reader:
                await says(reader, "event {'price': 9}")
                before = gateway(server).busy().requests
                ends = asyncio.get_running_loop().time() + 2.0
                while asyncio.get_running_loop().time() < ends:
                    async with aconnect_sse(client, "GET", f"{ONE}/stream") as source:
                        async for one in source.aiter_sse():
                            if one.event == "end":
                                break
                assert gateway(server).busy().requests - before <= 8

    run(test())
