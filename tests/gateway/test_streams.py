"""Is a subscription told by Server-Sent Events, and can one go on where one was?"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import httpx
import pytest
import websockets
from httpx_sse import aconnect_sse

import driftline as dl
from tests.net.here import address, eventually, gateway, http, served
from tests.net.secured import Authority, closed

OPEN = {"listen": "127.0.0.1:0", "heartbeat": 0.2}
TEXT = "SELECT n FROM tick WHERE n < :limit"
ONE = "/v1/subscriptions/ticks"


def run(test, within=60.0):
    asyncio.run(asyncio.wait_for(test, within))


@asynccontextmanager
async def web(**said):
    async with (
        served(http={**OPEN, **said}) as server,
        httpx.AsyncClient(base_url=http(server), timeout=20) as client,
    ):
        yield client, server


async def tick(client, *numbers):
    said = await client.post("/v1/events", json=[{"type": "tick", "n": n} for n in numbers])
    assert said.status_code == 200


@asynccontextmanager
async def stream(client, path, method="GET", **said):
    """The events of a stream; `anext` gives the next."""
    async with aconnect_sse(client, method, path, **said) as source:
        assert source.response.headers["cache-control"] == "no-store"
        yield source.aiter_sse()


async def some(events, many):
    return [await asyncio.wait_for(anext(events), 10) for _ in range(many)]


def values(events):
    return [json.loads(one.data)["values"].get("n") for one in events]


def number(id):
    """The number in the id of an event."""
    return id.partition("-")[2]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_one_that_lasts_as_long_as_somebody_listens(method):
    async def test():
        async with web() as (client, server):
            body = {"sql": TEXT, "params": {"limit": 5}}
            said = {"json": body} if method == "POST" else {}
            query = {"sql": TEXT, "params": json.dumps(body["params"])}
            path = "/v1/stream" if method == "POST" else f"/v1/stream?{httpx.QueryParams(query)}"
            async with stream(client, path, method, **said) as source:
                await tick(client, 1, 7, 2)
                events = await some(source, 2)
                assert values(events) == [1, 2]
                assert [(one.event, one.id) for one in events] == [("event", "")] * 2
            await eventually(lambda: not list(server.edge))
            await eventually(lambda: gateway(server).visitors.streams == 0)

    run(test())


def test_whoever_comes_back_with_the_last_id_goes_on_there():
    async def test():
        async with web() as (client, _):
            await client.put(ONE, json={"sql": TEXT, "params": {"limit": 100}})
            await tick(client, *range(5))
            async with stream(client, f"{ONE}/stream") as source:
                events = await some(source, 3)
            assert values(events) == [0, 1, 2]
            await tick(client, 5)
            # By the header that browsers send, and by the address.
            last = events[1].id
            for headers, query in (({"Last-Event-ID": last}, ""), ({}, f"?after={last}")):
                path = f"{ONE}/stream{query}"
                async with stream(client, path, headers=headers) as source:
                    assert values(await some(source, 4)) == [2, 3, 4, 5]
            # What was said to be had is gone; what was not is there for whoever comes.
            async with stream(client, f"{ONE}/stream") as source:
                assert values(await some(source, 4)) == [2, 3, 4, 5]
            assert (await client.get(ONE)).json()["kept"] == 4

    run(test())


def test_a_stream_of_one_that_is_suspended_says_so():
    async def test():
        async with web() as (client, _):
            await client.put(ONE, json={"sql": TEXT, "params": {"limit": 100}})
            await client.post(f"{ONE}/suspend")
            await tick(client, 1)
            async with stream(client, f"{ONE}/stream") as source:
                (said,) = await some(source, 1)
                assert (said.event, said.id, said.data) == ("suspended", "", '{"suspended":true}')
                await client.post(f"{ONE}/resume")
                assert values(await some(source, 1)) == [1]

    run(test())


def test_what_belongs_together_has_its_id_at_its_end():
    async def test():
        async with web() as (client, _):
            await client.put("/v1/tables/stock", json={"key": "symbol"})
            rows = [{"type": "stock", "symbol": name, "price": 9.5} for name in "ABC"]
            await client.post("/v1/events", json=rows)
            await client.put(ONE, json={"sql": "SELECT * FROM stock", "rows": True})
            async with stream(client, f"{ONE}/stream") as source:
                events = await some(source, 3)
            said = [json.loads(one.data) for one in events]
            assert [one["kind"] for one in said] == ["snapshot"] * 3
            assert len({one["number"] for one in said}) == 1
            assert [bool(one.id) for one in events] == [False, False, True]
            assert [one.get("more", False) for one in said] == [True, True, False]
            assert said[-1]["last"]

    run(test())


def test_another_who_attaches_ends_it_and_so_does_who_ends_the_subscription():
    async def test():
        async with web() as (client, _):
            await client.put(ONE, json={"sql": TEXT, "params": {"limit": 100}})
            async with (
                stream(client, f"{ONE}/stream") as first,
                stream(client, f"{ONE}/stream") as second,
            ):
                (end,) = await some(first, 1)
                assert (end.event, end.id) == ("end", "")
                assert "another connection" in json.loads(end.data)["detail"]
                await tick(client, 1)
                assert values(await some(second, 1)) == [1]
                await client.delete(ONE)
                (end,) = await some(second, 1)
                assert "it was ended" in json.loads(end.data)["detail"]

    run(test())


def test_a_stream_that_has_nothing_to_say_says_so():
    async def test():
        async with web() as (client, _):
            async with client.stream("GET", "/v1/stream?sql=SELECT+*+FROM+tick") as said:
                lines = said.aiter_lines()
                found = [await asyncio.wait_for(anext(lines), 5) for _ in range(5)]
            assert found == [": in effect everywhere", "", ": still here", "", ": still here"]

    run(test())


def test_where_it_is_in_effect_is_said_only_if_everybody_was_asked():
    async def test():
        peers = [{"name": "away", "role": "peer", "address": "127.0.0.1:9"}]
        async with (
            served(http=OPEN, peers=peers) as server,
            httpx.AsyncClient(base_url=http(server), timeout=20) as client,
        ):
            body = {"sql": "SELECT * FROM tick", "within": 0}
            assert (await client.put(ONE, json=body)).status_code == 201
            asked = (("GET", f"{ONE}/stream", {}), ("POST", "/v1/stream", {"json": body}))
            for method, path, more in asked:
                async with client.stream(method, path, **more) as said:
                    first = await asyncio.wait_for(anext(said.aiter_lines()), 5)
                    assert first == ": in effect at this broker"

    run(test())


def test_who_reads_nothing_is_told_what_was_lost_by_the_policy_of_the_broker():
    async def test():
        async with web() as (client, _):
            policy = json.dumps({"overflow": "drop_oldest", "limit": 10})
            query = httpx.QueryParams({"sql": "SELECT * FROM tick", "policy": policy})
            async with stream(client, f"/v1/stream?{query}") as source:
                text = "x" * 10_000
                for start in range(0, 2000, 20):
                    many = [
                        {"type": "tick", "n": n, "text": text} for n in range(start, start + 20)
                    ]
                    await client.post("/v1/events", json=many)
                told, lost = 0, 0
                while told + lost < 2000:
                    said = json.loads((await asyncio.wait_for(anext(source), 10)).data)
                    if said["kind"] == "gap":
                        lost += said["lost"]
                    else:
                        told += 1
                assert lost > 500, "nothing was lost: nobody was slow"
                assert told > 10

    run(test())


def test_the_end_of_a_token_is_the_end_of_its_stream(tmp_path):
    async def test():
        authority = Authority(tmp_path / "keys")
        grants = '[[grants]]\nwho = ["a"]\nmay = ["subscribe"]\non = ["*"]\nattributes = ["*"]\n'
        tokens = {**authority.tokens(), "leeway": 0.0}
        async with (
            closed(authority, grants, http=OPEN, tokens=tokens) as server,
            httpx.AsyncClient(base_url=http(server), timeout=20) as client,
        ):
            headers = {"Authorization": f"Bearer {authority.token('a', 2.0)}"}
            path = "/v1/stream?sql=SELECT+*+FROM+tick"
            async with stream(client, path, headers=headers) as source:
                (end,) = await some(source, 1)
                assert end.event == "end"
                assert json.loads(end.data)["status"] == 401
            said = await client.get(path, headers=headers)
            assert said.status_code == 401
            assert said.headers["www-authenticate"] == "Bearer"

    run(test())


def test_what_has_not_been_told_cannot_have_been_had():
    """A number of another broker, or of the future, would silently skip what is to come."""

    async def test():
        async with web() as (client, _):
            await client.put(ONE, json={"sql": TEXT, "params": {"limit": 100}})
            await tick(client, 1, 2)
            async with stream(client, f"{ONE}/stream") as source:
                first, second = [one.id for one in await some(source, 2)]
            await client.post(f"{ONE}/acknowledged", json={"number": number(second)})
            await tick(client, 3, 4)
            # Nobody has been told of these two yet.
            ahead = (await client.get(ONE)).json()["next"]
            mark, future = first.partition("-")[0], str(2**63 - 1)
            lasts = [f"{mark}-{one}" for one in (future, ahead)]
            for last in [*lasts, number(second)]:
                headers = {"Last-Event-ID": last}
                assert (await client.get(f"{ONE}/stream", headers=headers)).status_code == 422
                assert (await client.get(f"{ONE}/stream?after={last}")).status_code == 422
            said = await client.post(f"{ONE}/acknowledged", json={"number": future})
            assert said.status_code == 422
            # What was had before is no harm.
            async with stream(client, f"{ONE}/stream?after={first}") as source:
                assert values(await some(source, 2)) == [3, 4]

    run(test())


def test_an_id_of_another_subscription_throws_nothing_away():
    async def test():
        other = "/v1/subscriptions/other"
        async with web() as (client, _):
            for path in (ONE, other):
                await client.put(path, json={"sql": TEXT, "params": {"limit": 100}})
            await tick(client, 1, 2, 3)
            async with stream(client, f"{other}/stream") as source:
                last = (await some(source, 3))[-1].id
            # The same events, so the same numbers: but nobody was told them of this one.
            said = await client.get(f"{ONE}/stream", headers={"Last-Event-ID": last})
            assert (said.status_code, last in said.json()["detail"]) == (422, True)
            assert (await client.get(ONE)).json()["kept"] == 3
            # Nor of one that has its name now.
            await client.delete(other)
            await client.put(other, json={"sql": TEXT, "params": {"limit": 100}})
            await tick(client, 4)
            said = await client.get(f"{other}/stream", headers={"Last-Event-ID": last})
            assert said.status_code == 422
            async with stream(client, f"{other}/stream") as source:
                assert values(await some(source, 1)) == [4]

    run(test())


def test_an_id_of_a_broker_that_had_another_journal_throws_nothing_away(tmp_path):
    async def test():
        last = ""
        for journal in ("one", "other"):
            settings = {"http": OPEN, "journal": str(tmp_path / journal)}
            async with (
                served(**settings) as server,
                httpx.AsyncClient(base_url=http(server), timeout=20) as client,
            ):
                await client.put(ONE, json={"sql": TEXT, "params": {"limit": 100}})
                await tick(client, 1, 2)
                if last:
                    said = await client.get(f"{ONE}/stream", headers={"Last-Event-ID": last})
                    assert said.status_code == 422
                async with stream(client, f"{ONE}/stream") as source:
                    events = await some(source, 2)
                assert values(events) == [1, 2]
                last = events[0].id

    run(test())


def test_what_was_kept_comes_in_its_order_whatever_the_text_was_then():
    """Some of it as kernels wrote it, some as messages: the one must not overtake the other."""

    async def test():
        async with web() as (client, _):
            await client.put(ONE, json={"sql": "SELECT n FROM tick WHERE n < 100"})
            await tick(client, 1, 2)
            await client.put(ONE, json={"sql": "SELECT n FROM tick WHERE n < 100 + elapsed()"})
            await tick(client, 3, 4)
            async with stream(client, f"{ONE}/stream") as source:
                events = await some(source, 4)
            assert values(events) == [1, 2, 3, 4]
            numbers = [int(number(one.id)) for one in events]
            assert numbers == sorted(numbers)

    run(test())


def test_a_neighbour_that_is_away_keeps_nobody_from_being_told():
    async def test():
        peers = [{"name": "away", "role": "peer", "address": "127.0.0.1:9"}]
        async with (
            served(http=OPEN, peers=peers) as server,
            httpx.AsyncClient(base_url=http(server), timeout=20) as client,
        ):
            body = {"sql": TEXT, "params": {"limit": 100}, "within": 0.2}
            said = await client.put(ONE, json=body)
            assert (said.status_code, said.json()["silent"]) == (504, ["away"])
            async with stream(client, f"{ONE}/stream") as source:
                await tick(client, 1)
                assert values(await some(source, 1)) == [1]
            async with stream(client, "/v1/stream", "POST", json=body) as source:
                (partial,) = await some(source, 1)
                assert (partial.event, json.loads(partial.data)) == (
                    "partial",
                    {"silent": ["away"]},
                )
                await tick(client, 2)
                assert values(await some(source, 1)) == [2]

    run(test())


def test_who_asks_for_the_head_only_gets_it_and_no_stream():
    async def test():
        async with web() as (client, server):
            said = await client.head("/v1/stream?sql=SELECT+*+FROM+tick")
            assert said.status_code == 200
            assert said.headers["content-type"].startswith("text/event-stream")
            assert gateway(server).visitors.streams == 0

    run(test())


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/stream", 422),
        ("/v1/stream?sql=DROP", 422),
        ("/v1/stream?sql=SELECT+*+FROM+tick+WHERE+n<:limit", 422),
        ("/v1/subscriptions/nobody/stream", 404),
        (f"{ONE}/stream?after=x", 422),
        (f"{ONE}/stream", 200),
    ],
)
def test_the_head_of_a_stream_is_that_of_the_whole(path, status):
    async def test():
        async with web() as (client, server):
            await client.put(ONE, json={"sql": TEXT, "params": {"limit": 5}})
            async with stream(client, f"{ONE}/stream") as source:
                found = await client.head(path)
                assert (found.status_code, found.content) == (status, b"")
                # Whoever is told of it goes on being told.
                await tick(client, 1)
                assert values(await some(source, 1)) == [1]
            await eventually(lambda: gateway(server).visitors.streams == 0)

    run(test())


def test_a_stream_that_takes_long_to_begin_says_that_it_is_there():
    async def test():
        peers = [{"name": "away", "role": "peer", "address": "127.0.0.1:9"}]
        async with (
            served(http=OPEN, peers=peers) as server,
            httpx.AsyncClient(base_url=http(server), timeout=20) as client,
        ):
            body = {"sql": TEXT, "params": {"limit": 100}, "within": 600}
            async with client.stream("POST", "/v1/stream", json=body) as said:
                lines = said.aiter_lines()
                found = [await asyncio.wait_for(anext(lines), 5) for _ in range(3)]
                assert found == [": about to begin", "", ": about to begin"]
            await eventually(lambda: gateway(server).visitors.streams == 0)
            await eventually(lambda: not list(server.edge))

    run(test())


def test_what_some_take_for_the_end_of_a_line_ends_none():
    async def test():
        async with web() as (client, _):
            texts = [f"a{end}b" for end in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\n\r"]
            path = "/v1/stream?sql=SELECT+*+FROM+tick"
            async with client.stream("GET", path) as said:
                lines = said.aiter_lines()
                await client.post("/v1/events", json=[{"type": "tick", "n": one} for one in texts])
                found = []
                while len(found) < len(texts):
                    line = await asyncio.wait_for(anext(lines), 5)
                    if line.startswith("data: "):
                        found.append(json.loads(line.removeprefix("data: "))["values"]["n"])
                assert found == texts

    run(test())


def test_an_identity_has_so_many_streams_and_no_more():
    async def test():
        async with web(streams=2) as (client, _):
            path = "/v1/stream?sql=SELECT+*+FROM+tick"
            async with client.stream("GET", path), client.stream("GET", path):
                said = await client.get(path)
                assert said.status_code == 429
                assert said.headers["retry-after"] == "1"

    run(test())


@pytest.mark.parametrize(
    "last", ["x", "-1", "1.0", str(2**63), "9" * 5_000, f"{'0' * 20}-{2**63}", f"{'0' * 20}-1"]
)
def test_an_id_that_can_be_none_is_refused(last):
    async def test():
        async with web() as (client, _):
            await client.put(ONE, json={"sql": TEXT, "params": {"limit": 5}})
            said = await client.get(f"{ONE}/stream", headers={"Last-Event-ID": last})
            assert said.status_code == 422

    run(test())


@asynccontextmanager
async def reads_nothing(server, path, within):
    """Somebody who asks for a stream, or a WebSocket, and does not read it: then what is left."""
    host, _, port = http(server).removeprefix("http://").partition(":")
    asked = {"sql": "SELECT * FROM tick", "within": within}
    if path == "/v1/socket":
        async with websockets.connect(
            f"ws://{host}:{port}{path}", max_queue=1, max_size=None
        ) as socket:
            await socket.send(json.dumps({"do": "subscribe", "id": "a", **asked}))

            async def read():
                while True:
                    said = json.loads(await socket.recv())
                    if "told" in said:
                        yield said

            yield read()
        return
    async with httpx.AsyncClient(base_url=http(server), timeout=20) as client:  # noqa: SIM117
        async with stream(client, path, "POST", json=asked) as source:

            async def read():
                async for one in source:
                    if one.event in ("event", "gap"):
                        yield json.loads(one.data)

            yield read()


@pytest.mark.parametrize("within", [0, 600])
@pytest.mark.parametrize("path", ["/v1/stream", "/v1/socket"])
def test_for_who_reads_nothing_no_more_waits_than_so_many_bytes(path, within):
    """Whether brokers far away have answered or not: beyond that its policy decides."""
    text, many = "x" * 100_000, 300

    async def test():
        peers = [{"name": "away", "role": "peer"}]
        async with (
            served(http=OPEN, peers=peers) as server,
            dl.connect(address(server)) as client,
            reads_nothing(server, path, within) as left,
        ):
            await eventually(lambda: bool([one for one in server.edge if "tick" in str(one)]))
            for _ in range(3):
                await client.publish_many(
                    dl.Event("tick", {"n": n, "text": text}) for n in range(many // 3)
                )
                assert (
                    max(one._talk._waiting_bytes for one in gateway(server).visitors._open)
                    < 4 << 20
                )
            told = lost = 0
            async for said in left:
                told += said["kind"] == "event"
                lost += said.get("lost", 0)
                if told + lost == many:
                    break
            assert told > 10
            assert lost > 10

    run(test())
