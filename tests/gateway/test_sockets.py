"""Can one talk with a broker over a WebSocket?"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import httpx
import jsonschema_rs
import pytest
import websockets
from starlette.websockets import WebSocketDisconnect, WebSocketState

import driftline as dl
from driftline.client.client import Client
from driftline.errors import Unreachable
from driftline.gateway.asyncapi import SOCKET, asyncapi
from driftline.gateway.sockets import WAITING_MOST, _close
from tests.net.here import eventually, gateway, http, served

TEXT = "SELECT n FROM tick WHERE n < :limit"
OPEN = {"listen": "127.0.0.1:0", "message_bytes": 17_000, "origins": ["https://app.example.org"]}


def run(test, within=60.0):
    asyncio.run(asyncio.wait_for(test, within))


def described():
    """What is said to come on a WebSocket."""
    description = asyncapi()
    kinds = [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in SOCKET]
    schema = {"oneOf": kinds, "components": description["components"]}
    return jsonschema_rs.validator_for(schema)


DESCRIBED = described()


class Talk:
    """One WebSocket."""

    def __init__(self, socket):
        self.socket = socket

    async def say(self, **said):
        await self.socket.send(json.dumps(said))

    async def hear(self):
        said = json.loads(await asyncio.wait_for(self.socket.recv(), 10))
        assert DESCRIBED.is_valid(said), said
        return said

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
            assert not server.durables.of("anyone")

    run(test())


def test_who_attaches_to_one_that_is_suspended_is_told_so():
    async def test():
        async with served(http=OPEN) as server, talking(server) as talk:
            asked = {"sql": TEXT, "params": {"limit": 100}, "name": "ticks"}
            assert "suspended" not in await talk.ask("subscribe", **asked)
            await talk.ask("detach")
            async with dl.connect(f"driftline://{server.address}") as client:
                await client.durables.suspend("ticks")
            assert (await talk.ask("attach", name="ticks"))["suspended"] is True

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
        # What could never be asked for in an address.
        ('{"do": "subscribe", "id": "a", "name": "n/n", "sql": "SELECT * FROM q"}', "$.name"),
        ('{"do": "subscribe", "id": "a", "name": "n\\n", "sql": "SELECT * FROM q"}', "without /"),
        ('{"do": "attach", "id": "a", "name": "n\\n"}', "without /"),
        (f'{{"do": "attach", "id": "a", "name": "{"n" * 251}"}}', "$.name"),
        # What the broker could not be told.
        (f'{{"do": "set", "id": "a", "params": {{"{"n" * 16_384}": 1}}}}', "<= 16383"),
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


AWAY = [{"name": "away", "role": "peer", "address": "127.0.0.1:9"}]
LONG = {"sql": TEXT, "params": {"limit": 5}, "within": 600}


def streams(server):
    return gateway(server).visitors.streams


def test_who_leaves_while_what_they_asked_for_takes_long_is_gone_at_once():
    async def test():
        async with served(http=OPEN, peers=AWAY) as server:
            async with talking(server) as talk:
                await talk.say(do="subscribe", id="a", **LONG)
                await talk.say(do="publish", id="p", events=[])
                await eventually(lambda: bool([*server.edge]))
                talk.socket.transport.abort()
            await eventually(lambda: not streams(server), 5)
            await eventually(lambda: not list(server.edge))

    run(test())


def test_who_waits_for_long_is_not_taken_for_gone():
    """Nor who has said so much meanwhile that their answers to us come behind it."""

    async def test():
        said = {**OPEN, "heartbeat": 0.3}
        async with served(http=said, peers=AWAY) as server, talking(server) as talk:
            for at in range(8):
                await talk.say(do="subscribe", id=str(at), **{**LONG, "within": 0.4})
            did = [await talk.hear() for _ in range(8)]
            assert [one["silent"] for one in did] == [["away"]] * 8

    run(test())


def test_whose_answers_wait_behind_what_they_said_is_not_taken_for_gone():
    """What is asked is read no faster than it is done, and a pong comes behind it."""

    async def test():
        said = {**OPEN, "heartbeat": 1.5}
        async with served(http=said, peers=AWAY) as server, talking(server) as talk:
            # So long that few of them wait in the broker, and the others on their way.
            asked = {**LONG, "sql": TEXT + " " * 16_000, "within": 0.2}
            for at in range(30):
                await talk.say(do="subscribe", id=str(at), **asked)
            did = [await talk.hear() for _ in range(30)]
            assert [one["id"] for one in did] == [str(at) for at in range(30)]

    run(test())


def test_the_end_of_who_has_gone_meanwhile_is_no_error():
    class Gone:
        application_state = WebSocketState.CONNECTED

        async def close(self, code, why):
            raise WebSocketDisconnect(1006)

    run(_close(Gone(), 1012, "the broker stops"))


def test_who_asks_for_more_than_is_done_for_too_long_is_told_why_it_ends():
    async def test():
        said = {**OPEN, "heartbeat": 1.0}
        async with served(http=said, peers=AWAY) as server, talking(server) as talk:
            await talk.say(do="subscribe", id="a", **LONG)
            for at in range(WAITING_MOST + 10):
                await talk.say(do="publish", id=str(at), events=[])
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await talk.hear()
            assert closed.value.rcvd.code == 1013
            assert "takes long" in closed.value.rcvd.reason
            await eventually(lambda: not streams(server))

    run(test())


def test_much_that_is_done_fast_is_done_however_much_it_is():
    """And in order: what is asked is read no faster than it is done."""

    async def test():
        async with open_talk() as (talk, _):

            async def all_of_them():
                for at in range(20 * WAITING_MOST):
                    await talk.say(do="publish", id=str(at), events=[{"type": "tick", "n": at}])

            saying = asyncio.create_task(all_of_them())
            did = [await talk.hear() for _ in range(20 * WAITING_MOST)]
            await saying
            assert [one["id"] for one in did] == [str(at) for at in range(20 * WAITING_MOST)]
            assert all(one["published"] == 1 for one in did)

    run(test())


def test_what_was_said_before_leaving_is_done():
    async def test():
        async with open_talk() as (talk, server):
            await talk.ask("subscribe", sql=TEXT, params={"limit": 100})
            async with talking(server) as other:
                for at in range(20):
                    await other.say(do="publish", id="p", events=[{"type": "tick", "n": at}])
            assert [(await talk.hear())["values"]["n"] for _ in range(20)] == [*range(20)]

    run(test())


def test_whether_some_were_published_is_not_said_if_nobody_knows(monkeypatch):
    async def half(self, events, *, once=False):
        return [None, Unreachable("b", "the connection was lost")]

    monkeypatch.setattr(Client, "publish_each", half)

    async def test():
        async with open_talk() as (talk, _):
            await talk.say(do="publish", id="p", events=[{"type": "tick"}] * 2)
            said = await talk.hear()
            assert (said["failed"], said["problem"]["status"]) == ("publish", 503)
            assert "may have been published" in said["problem"]["detail"]
            assert not said.keys() & {"published", "refused"}

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
