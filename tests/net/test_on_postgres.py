"""Does a broker whose journal is in PostgreSQL lose nothing, whichever of the two is killed?"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import driftline as dl
from tests.net.checking import Publisher, Reader, Wrong
from tests.net.conftest import Server
from tests.net.here import eventually
from tests.net.processes import Brokers


def run(test: Callable[[], Awaitable[None]], within: float = 120.0) -> None:
    asyncio.run(asyncio.wait_for(test(), within))


def _has_come_to(publisher: Publisher, acked: int) -> bool:
    return publisher.done.acked >= acked


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Brokers]:
    with Brokers(tmp_path) as made:
        yield made


def test_nothing_acknowledged_is_lost_when_either_is_killed(
    brokers: Brokers, server: Server, database: str
) -> None:
    wrong = Wrong()

    async def main() -> None:
        broker = brokers.start("b0", journal=database)
        over = asyncio.Event()
        async with (
            dl.connect(broker.address, name="reader") as reading,
            dl.connect(broker.address, name="writer") as writing,
        ):
            kept = await reading.subscribe("SELECT * FROM q WHERE x < 5", durable="kept")
            durable = Reader("durable", kept, wrong, range(5), durable=True)
            publisher = Publisher(writing, "p")
            reader = asyncio.create_task(durable.run())
            working = asyncio.create_task(publisher.run(300, over))
            for kill_broker in (True, False, True, False):
                await asyncio.sleep(0.7)
                more = publisher.done.acked + 1
                if kill_broker:
                    broker.kill()
                    await asyncio.to_thread(broker.restart)
                else:
                    await asyncio.to_thread(server.kill)
                    await asyncio.to_thread(server.start)
                # It goes on by itself.
                await eventually(partial(_has_come_to, publisher, more), 30)
            over.set()
            await working
            await eventually(lambda: not durable.missing([publisher.done]), 30)
            reader.cancel()
            assert not wrong.found, wrong.found
            assert publisher.done.acked > 200
            assert broker.ask("check") == "sound"

    run(main)


def test_tables_and_parameters_come_back(brokers: Brokers, database: str) -> None:
    async def main() -> None:
        broker = brokers.start("b0", journal=database)
        async with dl.connect(broker.address) as client:
            await client.declare("stock", "id")
            await client.publish_many([dl.Event("stock", {"id": n, "p": n}) for n in range(100)])
            kept = await client.subscribe(
                "SELECT * FROM q WHERE x > :low", {"low": 1}, durable="kept"
            )
            await kept.set(low=5)
        broker.kill()
        broker.restart()
        async with dl.connect(broker.address) as client:
            async with client.subscribe("SELECT COUNT(*), MAX(p) FROM stock") as s:
                (only,) = await s.snapshot(10)
                assert list(only.values.values()) == [100, 99]
            await client.publish_many([dl.Event("q", {"x": x}) for x in (5, 6)])
            kept = await client.subscribe(
                "SELECT * FROM q WHERE x > :low", {"low": 5}, durable="kept"
            )
            assert (kept.resumed, kept.epoch) == (True, 1)
            assert (await kept.next(10)).values == {"x": 6}

    run(main)
