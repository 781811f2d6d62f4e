"""What does a client do when its connection is lost, late, or full?

Each test here fails without the line that it is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import driftline as dl
from driftline.client import channel
from driftline.client.address import BrokerAddress
from driftline.client.client import Client
from driftline.client.conversation import Pending
from driftline.net.server import Server
from driftline.wire import asking
from driftline.wire.asking import Goodbye, Welcome
from driftline.wire.stream import Kind, frame
from tests.net.here import address, eventually, served


def run(test: Callable[[], Awaitable[None]], within: float = 60.0) -> None:
    asyncio.run(asyncio.wait_for(test(), within))


def event(n: int) -> dl.Event:
    return dl.Event("q", {"n": n})


def cut(server: Server, name: str) -> None:
    """Lose the connection of a client."""
    server.guests[f"anyone~{name}"].connection.abort("the test breaks it")


async def down(one: Client) -> None:
    await eventually(lambda: not one.is_connected)


def test_a_greeting_that_comes_too_late_is_of_no_consequence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker that was stopped answers all who dialled meanwhile; only the last is waited for."""
    monkeypatch.setattr(channel, "GREETING", 0.3)
    lines: list[asyncio.StreamWriter] = []

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append(writer)
        if len(lines) < 3:
            return
        welcome = Welcome("late", 1, 1, 1 << 20, 100, 0)
        writer.write(frame(Kind.HELLO, asking.encode(welcome)))
        await asyncio.sleep(0.2)
        for earlier in lines[:2]:
            gone = Goodbye("there is another connection of this client", again=False)
            earlier.write(frame(Kind.HELLO, asking.encode(welcome)))
            earlier.write(frame(Kind.GOODBYE, asking.encode(gone)))

    async def main() -> None:
        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with dl.connect(f"driftline://127.0.0.1:{port}") as one:
            await asyncio.sleep(0.5)
            assert one.is_connected
            assert len(lines) == 3
        server.close()
        for line in lines:
            line.transport.abort()

    run(main)


def test_what_is_asked_for_without_a_connection_is_asked_for_when_there_is_one() -> None:
    async def main() -> None:
        async with served() as first:
            listen = f"127.0.0.1:{first.address.port}"
            one = await dl.connect(address(first), name="one").open()
            await first.drain()
            await down(one)
            subscribing = asyncio.ensure_future(_begun(one))
            advertising = asyncio.ensure_future(one.advertise("SELECT * FROM q"))
            await asyncio.sleep(0.1)
            async with served(listen=listen):
                told = await asyncio.wait_for(subscribing, 10)
                await asyncio.wait_for(advertising, 10)
                await one.publish(event(1))
                assert (await told.next(5)).values == {"n": 1}
                await one.close()

    run(main)


async def _begun(one: Client) -> dl.client.subscription.Subscription:
    return await one.subscribe("SELECT * FROM q")


def test_a_parameter_that_is_set_survives_two_lost_connections() -> None:
    async def main() -> None:
        async with (
            served(peers=[{"name": "away", "role": "peer"}]) as server,
            dl.connect(address(server), name="one") as one,
        ):
            told = one.subscribe("SELECT * FROM q WHERE n > :low", {"low": 1}, within=0)
            await told
            told.within = 20.0
            setting = asyncio.ensure_future(told.set(low=2))
            await asyncio.sleep(0.1)
            # Nobody answers for the neighbour, so it is never in effect everywhere.
            for _ in range(2):
                cut(server, "one")
                await down(one)
                await eventually(lambda: "anyone~one" in server.guests)
                await asyncio.sleep(0.1)
            assert not setting.done()
            await one.close()
            with pytest.raises(dl.Unreachable):
                await setting

    run(main)


def test_what_is_durable_and_cancelled_without_a_connection_is_cancelled() -> None:
    async def main() -> None:
        async with served() as server, dl.connect(address(server), name="one") as one:
            kept = await one.subscribe("SELECT * FROM q", durable="d")
            cut(server, "one")
            await down(one)
            await kept.cancel()
            assert "anyone/d" not in server.edge.parties

    run(main)


def test_what_is_durable_comes_once_and_in_order_over_a_lost_connection(tmp_path: Path) -> None:
    """What had come and was not looked at is told again by the broker."""

    async def main() -> None:
        async with (
            served(journal=str(tmp_path / "j")) as server,
            dl.connect(address(server), name="one") as one,
        ):
            kept = await one.subscribe("SELECT * FROM q", durable="d")
            for n in range(10):
                await one.publish(event(n))
            first = [(await kept.next(5)).values["n"] for _ in range(3)]
            await eventually(lambda: len(kept._pending) == 7)
            cut(server, "one")
            await down(one)
            await eventually(lambda: one.is_connected)
            await asyncio.sleep(0.3)
            rest = [(await kept.next(5)).values["n"] for _ in range(7)]
            assert [*first, *rest] == [*range(10)]
            with pytest.raises(TimeoutError):
                await kept.next(0.3)

    run(main)


def test_a_durable_subscription_that_its_broker_has_forgotten_is_told_of_a_gap() -> None:
    async def main() -> None:
        async with served() as first:
            listen = f"127.0.0.1:{first.address.port}"
            one = await dl.connect(address(first), name="one").open()
            kept = await one.subscribe("SELECT * FROM q", durable="d")
            await one.publish(event(1))
            assert (await kept.next(5)).values == {"n": 1}
            await first.drain()
            await down(one)
            async with served(listen=listen):
                assert (await kept.next(10)).kind == "gap"
                await one.publish(event(2))
                assert (await kept.next(5)).values == {"n": 2}
                await one.close()

    run(main)


def test_who_waits_for_a_reply_is_not_held_back_by_what_nobody_looks_at() -> None:
    """A reply comes behind notifications: who looks at these only then would wait for ever."""

    async def main() -> None:
        async with served() as server:
            slow = Client(BrokerAddress.of(address(server)), pending=Pending(10))
            async with slow as one, dl.connect(address(server)) as other:
                told = await one.subscribe("SELECT * FROM q")
                await other.publish_many(dl.Event("q", {"pad": "x" * 50_000}) for _ in range(200))
                await eventually(lambda: one._talk._held)
                await asyncio.wait_for(one.confirm(), 10)
                await asyncio.wait_for(one.publish(event(1)), 10)
                await eventually(lambda: one._talk._held)
                await asyncio.wait_for(told.cancel(), 10)
                assert not one._talk._held

    run(main)


def test_who_looks_at_all_the_same_has_no_more_waiting_than_so_many_bytes() -> None:
    """Also while a reply is waited for. What is counted is what waits, whatever was lost."""

    async def main() -> None:
        peers = [{"name": "away", "role": "peer"}]
        async with served(peers=peers) as server:
            most = Pending(1_000, 200_000, always=True)
            slow = Client(BrokerAddress.of(address(server)), pending=most)
            async with slow as one, dl.connect(address(server)) as other:
                told = await one.subscribe("SELECT * FROM q", within=0.0)
                asking = asyncio.ensure_future(one.confirm(600))
                for _ in range(5):
                    many = (dl.Event("q", {"pad": "x" * 50_000}) for _ in range(200))
                    await other.publish_many(many)
                    await eventually(lambda: one._talk._held)
                    # What had come already is not thrown away.
                    assert 200_000 < one._talk._waiting_bytes < 1 << 20
                    while one._talk._held:
                        told.pending()
                        await asyncio.sleep(0)
                found = 0
                while found < 1:
                    found += sum(1 for one in told.pending() if one.kind == "gap")
                    await asyncio.sleep(0.01)
                await eventually(lambda: told.pending() == [])
                assert (one._talk._waiting, one._talk._waiting_bytes) == (0, 0)
                asking.cancel()

    run(main)


def test_a_gap_is_told_again_when_what_came_meanwhile_was_not_all() -> None:
    """After a lost connection it is in effect everywhere only later: until then some is missing."""

    async def main() -> None:
        peers = [{"name": "far", "role": "peer"}]
        async with served(peers=peers) as server:
            far = {
                "name": "far",
                "peers": [{"name": "b", "role": "peer", "address": str(server.address)}],
            }
            async with dl.connect(address(server), name="one", within=5) as one:
                async with served(**far) as first:
                    told = await one.subscribe("SELECT * FROM q", within=5)
                    assert first.address != server.address
                told.within = 1.0
                cut(server, "one")
                await down(one)
                assert (await told.next(5)).kind == "gap"
                await one.publish(event(1))
                assert (await told.next(5)).values == {"n": 1}
                async with served(**far):
                    assert (await told.next(10)).kind == "gap"

    run(main)
