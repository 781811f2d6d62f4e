"""What does a subscriber that does not read cost the broker and the others?

Beside an honest one: its memory is bounded, others are told everything, and when it reads at last
it is told what its policy promises, and of each gap.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import driftline as dl
from driftline.client.client import Client
from driftline.net import connection
from driftline.net.server import Server
from tests.net.here import eventually, served
from tests.net.processes import BrokerProcess, Brokers
from tests.net.serving import client

PAD = "x" * 2000
STORM = 200


def run(test: Callable[[], Awaitable[None]], within: float = 120.0) -> None:
    asyncio.run(asyncio.wait_for(test(), within))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with Brokers(tmp_path_factory.mktemp("slow")) as brokers:
        yield brokers.start("b0")


def _stop(client: Client, stopped: bool) -> None:
    """Let a client read nothing from its connection, as if its process were stopped."""
    line = client._talk.channel._line
    assert line is not None
    line.hold(stopped)


async def _publish(client: Client, type: str, first: int, last: int) -> None:
    await client.publish_many(
        dl.Event(type, {"n": n, "k": n % 10, "pad": PAD}) for n in range(first, last)
    )


def test_a_view_that_is_more_than_its_queue_takes_is_told_anew_less_and_less_often(
    broker: BrokerProcess,
) -> None:
    async def main() -> None:
        async with dl.connect(broker.address) as c:
            await c.declare("wide", "n")
            await c.publish_many(dl.Event("wide", {"n": n}) for n in range(100))
            policy = {"limit": 5, "min_interval": 0.02}
            async with c.subscribe("SELECT * FROM wide", rows=True, policy=policy) as s:
                until = time.monotonic() + 4
                gaps = 0
                while time.monotonic() < until:
                    try:
                        gaps += (await s.next(0.1)).kind == "gap"
                    except TimeoutError:
                        continue
                # At first, and 0, 0.5, 1.5 and 3.5 seconds later; each says so before and behind.
                assert 2 <= gaps <= 12

    run(main)


async def _numbers(told: Any, last: int) -> tuple[list[int], int]:
    """What is told up to a number, and how much is said to be lost."""
    numbers: list[int] = []
    lost = 0
    while not numbers or numbers[-1] != last:
        one = await told.next(10)
        if one.kind == "gap":
            lost += one.lost
        else:
            numbers.append(one.values["n"])
    return numbers, lost


EVENTS = 30_000


@pytest.mark.parametrize("policy", [{}, {"overflow": "conflate", "key": "k"}], ids=str)
def test_one_that_never_reads_costs_little_and_nobody_else(
    broker: BrokerProcess, policy: dict[str, Any]
) -> None:
    name = f"never{len(policy)}"

    async def main() -> None:
        async with (
            dl.connect(broker.address) as slow,
            dl.connect(broker.address) as quick,
            dl.connect(broker.address) as writing,
        ):
            sleepy = await slow.subscribe(f"SELECT n, k FROM {name}", policy=policy)
            plainly = await slow.subscribe(f"SELECT * FROM {name}", policy=policy)
            awake = await quick.subscribe(f"SELECT * FROM {name}")
            await _publish(writing, name, 0, 100)
            await _numbers(sleepy, 99)
            await _numbers(plainly, 99)
            before = broker.rss()
            _stop(slow, True)
            reading = asyncio.create_task(_numbers(awake, EVENTS - 1))
            for first in range(100, EVENTS, 1000):
                await _publish(writing, name, first, min(first + 1000, EVENTS))
            numbers, lost = await reading
            assert (numbers, lost) == ([*range(EVENTS)], 0)
            grown = broker.rss() - before
            print(f"grown by {grown >> 20} MiB for {EVENTS * len(PAD) >> 20} MiB of events")
            assert grown < 40 << 20
            _stop(slow, False)
            for told in (sleepy, plainly):
                numbers, lost = await _numbers(told, EVENTS - 1)
                assert len(numbers) < EVENTS - 100
                assert numbers == sorted(set(numbers))
                if not policy:
                    assert len(numbers) + lost == EVENTS - 100
                else:
                    # The latest of each key, and no gap: conflating is what was asked for.
                    assert {*range(EVENTS - 10, EVENTS)} <= {*numbers}

    run(main)


def test_one_that_blocks_loses_nothing_and_holds_publishers_back(broker: BrokerProcess) -> None:
    async def main() -> None:
        async with dl.connect(broker.address) as slow, dl.connect(broker.address) as writing:
            policy = {"overflow": "block", "limit": 100}
            told = await slow.subscribe("SELECT * FROM blocks", policy=policy)
            _stop(slow, True)
            publishing = asyncio.create_task(_publish(writing, "blocks", 0, EVENTS))
            await asyncio.sleep(2)
            assert not publishing.done()
            before = broker.rss()
            await asyncio.sleep(1)
            assert broker.rss() - before < 4 << 20
            _stop(slow, False)
            numbers, lost = await _numbers(told, EVENTS - 1)
            assert (numbers, lost) == ([*range(EVENTS)], 0)
            await publishing

    run(main)


def test_one_that_blocks_and_is_gone_holds_nobody_back(broker: BrokerProcess) -> None:
    async def main() -> None:
        async with dl.connect(broker.address) as writing:
            slow = await dl.connect(broker.address, reconnect=False).open()
            policy = {"overflow": "block", "limit": 100}
            await slow.subscribe("SELECT * FROM gone", policy=policy)
            _stop(slow, True)
            publishing = asyncio.create_task(_publish(writing, "gone", 0, EVENTS))
            await asyncio.sleep(1.5)
            assert not publishing.done()
            await slow.close()
            await asyncio.wait_for(publishing, 30)

    run(main)


async def _held(server: Server, slow: Client, writing: Client) -> asyncio.Task[None]:
    """Somebody who publishes, and waits for one that must not lose anything and does not read."""
    await slow.subscribe("SELECT * FROM held", policy={"overflow": "block", "limit": 10})
    _stop(slow, True)
    publishing = asyncio.create_task(_publish(writing, "held", 0, EVENTS))
    await eventually(lambda: bool(server.holding.blocking))
    return publishing


def test_one_that_blocks_and_comes_again_before_it_was_missed_holds_nobody_back() -> None:
    """Neither while its old connection stands still, nor when that takes what it was sent."""

    async def main() -> None:
        async with served() as server, client(server) as writing:
            slow = await client(server, name="slow", reconnect=False).open()
            publishing = await _held(server, slow, writing)
            async with client(server, name="slow"):
                await asyncio.wait_for(publishing, 30)
                _stop(slow, False)
                await eventually(lambda: len(server.connections) == 2)
                assert not server.holding.blocking
                await asyncio.wait_for(_publish(writing, "held", 0, 10), 10)
            await slow.close()

    run(main)


def test_a_connection_that_was_ended_is_gone_although_nobody_reads_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else whoever comes again and again under one name would have all there may be."""
    monkeypatch.setattr(connection, "LINGER", 0.3)

    async def main() -> None:
        async with served() as server, client(server) as writing:
            stopped = []
            for _ in range(3):
                slow = await client(server, name="slow", reconnect=False).open()
                stopped.append(slow)
                publishing = await _held(server, slow, writing)
                publishing.cancel()
            async with client(server, name="slow"):
                await eventually(lambda: len(server.connections) == 2)
            for slow in stopped:
                _stop(slow, False)
                await slow.close()

    run(main)


def test_at_most_one_in_an_interval(broker: BrokerProcess) -> None:
    async def main() -> None:
        async with dl.connect(broker.address) as client:
            policy = {"overflow": "conflate", "min_interval": 0.2}
            told = await client.subscribe("SELECT n FROM often", policy=policy)
            begun = time.monotonic()
            for n in range(100):
                await client.publish(dl.Event("often", {"n": n}))
                await asyncio.sleep(0.01)
            took = time.monotonic() - begun
            numbers, _ = await _numbers(told, 99)
            assert numbers == sorted(numbers)
            assert 3 <= len(numbers) <= took / 0.2 + 2

    run(main)


def test_a_storm_of_clients_that_come_back_at_once(tmp_path: Path) -> None:
    """All of them lose their broker; each comes back by itself, and is told again."""

    async def main(brokers: Brokers) -> None:
        broker = brokers.start("b0")
        clients = [dl.connect(broker.address, name=f"c{at}") for at in range(STORM)]
        opened = await asyncio.gather(*(one.open() for one in clients))
        try:
            told = await asyncio.gather(*(_asked(one, at) for at, one in enumerate(opened)))
            broker.kill()
            await asyncio.to_thread(broker.restart)
            begun = time.monotonic()
            await eventually(lambda: all(one.is_connected for one in opened), 30)
            await asyncio.gather(*(one.confirm(30) for one in opened))
            print(f"{STORM} clients are back in {time.monotonic() - begun:.1f} s")
            async with dl.connect(broker.address) as writing:
                await writing.publish_many(dl.Event("storm", {"x": at}) for at in range(STORM))
            for at, one in enumerate(told):
                assert (await one.next(10)).kind == "gap"
                found = await one.next(10)
                # It may have been told of something before it was in effect everywhere.
                assert found.values == {"x": at}
            assert broker.ask("count")["guests"] == STORM
            assert broker.ask("check") == "sound"
        finally:
            await asyncio.gather(*(one.close() for one in opened))

    with Brokers(tmp_path) as brokers:
        asyncio.run(asyncio.wait_for(main(brokers), 120))


async def _asked(client: Client, at: int) -> Any:
    return await client.subscribe("SELECT * FROM storm WHERE x = :x", {"x": at})
