"""Can one talk with a broker over a WebSocket?"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import httpx
import pytest
import websockets

from tests.net.here import eventually, http, served

TEXT = "SELECT n FROM tick WHERE n < :limit"
OPEN = {"listen": "127.0.0.1:0", "message_bytes": 10_000, "origins": ["https://app.example.org"]}


def run(test, within=60.0):
    asyncio.run(asyncio.wait_for(test, within))


class Talk:
    """One WebSocket."""

    def __init__(self, socket):
        self.socket = socket

    async def say(self, **said):
        await self.socket.send(json.dumps(said))

    async def hear(self):
        return json.loads(await asyncio.wait_for(self.socket.recv(), 10))

    async def ask(self, verb, id="a", **said):
        await self.say(do=verb, id=id, **said)
        reply = await self.hear()
        assert reply.get("did") == verb, reply
        assert reply["id"] == id
        return reply


@asynccontextmanager
async def talking(server, **options):
    address = http(server).replace("http", "ws", 1) + "/v1/socket"
    async with websockets.connect(address, **options) as socket:
        yield Talk(socket)


@asynccontextmanager
async def open_talk():
    async with served(http=OPEN) as server, talking(server) as talk:
        yield talk, server


async def ticks(server, *numbers):
    async with httpx.AsyncClient(base_url=http(server)) as client:
        said = await client.post("/v1/events", json=[{"type": "tick", "n": n} for n in numbers])
        assert said.status_code == 200


def test_subscribe_be_told_move_and_cancel():
    async def test():
        async with open_talk() as (talk, server):
            said = await talk.ask("subscribe", sql=TEXT, params={"limit": 5})
            assert said["epoch"] == 0
            await ticks(server, 1, 7)
            told = await talk.hear()
            assert (told["told"], told["kind"], told["values"]) == ("a", "event", {"n": 1})
            assert (await talk.ask("set", params={"limit": 10}))["epoch"] == 1
            await ticks(server, 7, 12)
            told = await talk.hear()
            assert (told["values"], told["epoch"]) == ({"n": 7}, 1)
            await talk.ask("cancel")
            assert not list(server.edge)
            # Its id is free again.
            await talk.ask("subscribe", sql=TEXT, params={"limit": 5})

    run(test())


def test_a_durable_one_goes_on_behind_what_was_had():
    async def test():
        async with served(http=OPEN) as server:
            async with talking(server) as talk:
                asked = {"sql": TEXT, "params": {"limit": 100}, "name": "ticks"}
                assert (await talk.ask("subscribe", **asked))["resumed"] is False
                await ticks(server, 1, 2, 3)
                told = [await talk.hear() for _ in range(3)]
                await talk.ask("acknowledge", number=told[0]["number"])
            async with talking(server) as talk:
                assert (await talk.ask("attach", name="ticks"))["resumed"] is True
                assert [await talk.hear() for _ in range(2)] == told[1:]
                await talk.ask("detach")
                said = await talk.ask("attach", name="ticks", after=told[1]["number"])
                assert said["epoch"] == 0
                assert await talk.hear() == told[2]
                # Another who attaches takes it over.
                async with talking(server) as other:
                    await other.ask("attach", "b", name="ticks", after=told[2]["number"])
                    ended = await talk.hear()
                    assert ended["ended"] == "a"
                    assert "another connection" in ended["problem"]["detail"]
                    await other.ask("cancel", "b")
            assert not server.durable_of("anyone")

    run(test())


def test_publish_and_advertise():
    async def test():
        async with open_talk() as (talk, server), talking(server) as other:
            text = "SELECT * FROM tick WHERE n IS NOT NULL"
            assert (await talk.ask("advertise", "ad", advertisement=text))["interested"] is False
            await other.ask("subscribe", sql=TEXT, params={"limit": 5})
            assert await talk.hear() == {"interest": "ad", "interested": True}
            events = [{"type": "tick", "n": 1}, {"n": 2}, {"type": "tick", "n": 3}]
            said = await talk.ask("publish", "p", events=events)
            assert said["published"] == 2
            assert [one["index"] for one in said["refused"]] == [1]
            assert [(await other.hear())["values"]["n"] for _ in range(2)] == [1, 3]
            await talk.ask("cancel", "ad")

    run(test())


@pytest.mark.parametrize(
    ("said", "detail"),
    [
        ("{", "JSON"),
        ('{"do": "nothing"}', "nothing"),
        ('{"do": "subscribe"}', "id"),
        ('{"do": "subscribe", "id": "a", "sql": "DROP"}', "a SELECT"),
        ('{"do": "subscribe", "id": "a", "sql": "SELECT * FROM q", "more": 1}', "more"),
        ('{"do": "set", "id": "x", "params": {}}', "one of your subscriptions"),
        ('{"do": "cancel", "id": "x"}', "one of your subscriptions"),
        ('{"do": "attach", "id": "x", "name": "nobody"}', "no durable subscription"),
        ('{"do": "acknowledge", "id": "x", "number": 7}', "str"),
        ("[" * 9_000, "array"),
    ],
)
def test_what_cannot_be_done_is_said_and_the_talk_goes_on(said, detail):
    async def test():
        async with open_talk() as (talk, _):
            await talk.socket.send(said)
            reply = await talk.hear()
            assert "failed" in reply
            assert detail in reply["problem"]["detail"]
            await talk.ask("subscribe", "b", sql=TEXT, params={"limit": 5})

    run(test())


def test_a_message_that_is_too_long_ends_it_and_nothing_stays():
    async def test():
        async with served(http=OPEN) as server:
            async with talking(server) as talk:
                await talk.ask("subscribe", sql=TEXT, params={"limit": 5})
                await talk.socket.send("x" * 20_000)
                with pytest.raises(websockets.ConnectionClosed) as closed:
                    await talk.hear()
                assert closed.value.rcvd.code == 1009
            await eventually(lambda: not list(server.edge))

    run(test())


def test_a_neighbour_that_is_away_is_named_and_everything_goes_on():
    async def test():
        peers = [{"name": "away", "role": "peer", "address": "127.0.0.1:9"}]
        async with served(http=OPEN, peers=peers) as server, talking(server) as talk:
            asked = {"sql": TEXT, "params": {"limit": 1000}, "within": 0.2}
            assert (await talk.ask("subscribe", "a", **asked))["silent"] == ["away"]
            await ticks(server, *range(400))
            assert [(await talk.hear())["values"]["n"] for _ in range(400)] == [*range(400)]
            await talk.ask("cancel", "a")

    run(test())


def test_one_name_under_two_ids_is_the_later_ones():
    async def test():
        async with open_talk() as (talk, _):
            asked = {"sql": TEXT, "params": {"limit": 5}, "name": "ticks"}
            await talk.ask("subscribe", "a", **asked)
            await talk.say(do="attach", id="b", name="ticks")
            said = [await talk.hear(), await talk.hear()]
            assert {next(iter(one)) for one in said} == {"ended", "did"}
            assert [one["id"] for one in said if "did" in one] == ["b"]

    run(test())


def test_pages_of_other_origins_are_turned_away():
    async def test():
        async with served(http=OPEN) as server:
            with pytest.raises(websockets.InvalidStatus) as refused:
                async with talking(server, origin="https://evil.example.org"):
                    pass
            assert refused.value.response.status_code == 403
            async with talking(server, origin="https://app.example.org") as talk:
                await talk.ask("subscribe", sql=TEXT, params={"limit": 5})

    run(test())


def test_the_end_of_the_broker_is_said():
    async def test():
        async with served(http=OPEN) as server, talking(server) as talk:
            await talk.ask("subscribe", sql=TEXT, params={"limit": 5})
            draining = asyncio.create_task(server.drain(5))
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await talk.hear()
            assert closed.value.rcvd.code == 1012
            await draining

    run(test())


def test_it_lasts_longer_than_a_request_may_take():
    async def test():
        said = {**OPEN, "patience": 0.3}
        async with served(http=said) as server, talking(server) as talk:
            for _ in range(4):
                await asyncio.sleep(0.2)
                await talk.ask("publish", events=[])

    run(test())
