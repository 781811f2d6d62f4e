"""Is what is published once told once, when brokers are killed and clients begin anew?"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

import driftline as dl
from driftline.broker.links import Role
from driftline.errors import InvalidValue
from driftline.net import server
from tests.net.here import address, eventually, served
from tests.net.processes import Brokers

ALL = "SELECT * FROM paid"


def paid(number: int) -> dl.Event:
    return dl.Event("paid", {"n": number}, source="shop", id=f"order-{number}")


def run(test) -> None:
    asyncio.run(asyncio.wait_for(test, 120))


async def read(address: str, wanted: int) -> Counter[str | None]:
    """How often a durable subscription was told of each id: until so many, and what is behind."""
    found: dict[int, str | None] = {}
    async with dl.connect(address) as client:
        async with client.subscribe(ALL, durable="all") as told:
            while len(found) < wanted:
                one = await told.next(30)
                assert one.event is not None
                found[one.number] = one.event.id
            await client.publish(dl.Event("paid", {}, source="shop", id="end"))
            async for one in told:
                assert one.event is not None
                if one.event.id == "end":
                    break
                found[one.number] = one.event.id
    return Counter(found.values())


@pytest.mark.parametrize("once", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_broker_that_is_killed_remembers_and_so_does_one_that_is_elsewhere(
    tmp_path: Path, once: bool
) -> None:
    """Without `once` all of it is told each time: what is shown here is not shown by chance."""

    async def test() -> None:
        with Brokers(tmp_path) as brokers:
            entry, away = brokers.overlay([("b0", "b1", Role.PEER)], ["b0", "b1"])
            async with dl.connect(away.address) as reader:
                await (await reader.subscribe(ALL, durable="all")).detach()
            for life in range(3):
                # Another client each time, which knows nothing of those before.
                async with dl.connect(entry.address) as client:
                    await client.publish_many([paid(n) for n in range(0, 500, 2)], once=once)
                    await client.publish(paid(life), once=once)
                    await asyncio.gather(*(client.publish(paid(n), once=once) for n in range(500)))
                entry.kill()
                entry.restart()
            told = await read(away.address, 500)
            assert set(told) == {f"order-{n}" for n in range(500)}
            assert (set(told.values()) == {1}) is once

    run(test())


def test_it_is_told_once_while_its_broker_is_killed_again_and_again(tmp_path: Path) -> None:
    """The client sends again what was not acknowledged; the broker may or may not have had it."""
    draw = random.Random(7)

    async def test() -> None:
        with Brokers(tmp_path) as brokers:
            one = brokers.start("b0")
            async with dl.connect(one.address) as client:
                async with client.subscribe(ALL, durable="all"):
                    pass
                over = asyncio.Event()

                async def publish() -> int:
                    number = 0
                    while not over.is_set():
                        some = [paid(n) for n in range(number, number + 50)]
                        await client.publish_many(some, once=True)
                        number += 50
                    return number

                publishing = asyncio.create_task(publish())
                for _ in range(4):
                    await asyncio.sleep(draw.uniform(0.05, 0.3))
                    one.kill()
                    await asyncio.to_thread(one.restart)
                over.set()
                number = await publishing
            told = await read(one.address, number)
            assert told == Counter(f"order-{n}" for n in range(number))

    run(test())


@pytest.mark.parametrize("once", [True, False])
def test_it_is_remembered_for_longer_than_whoever_has_published_it(
    monkeypatch: pytest.MonkeyPatch, once: bool
) -> None:
    """As when a driver is down for a day, and says again what it has not noted. What is published
    otherwise is counted, and counts are forgotten.
    """
    monkeypatch.setattr(server, "PUBLISHER_REMEMBERED", 0.0)

    async def test() -> None:
        async with served() as here:
            async with dl.connect(address(here)) as reader:
                told = await reader.subscribe(ALL)
                for many in (5, 10):
                    async with dl.connect(address(here), name="driver") as client:
                        await client.publish_many([paid(n) for n in range(many)], once=once)
                    await eventually(lambda: "anyone~driver" not in here.guests)
                    await eventually(lambda: "anyone~driver" not in here.broker.publishing.numbers)
                await reader.publish(dl.Event("paid", {}, source="shop", id="end"))
                found: Counter[str | None] = Counter()
                async for one in told:
                    assert one.event is not None
                    if one.event.id == "end":
                        break
                    found[one.event.id] += 1
            assert len(found) == 10
            assert (set(found.values()) == {1}) is once

    run(test())


def test_without_a_name_it_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(events: object, *, once: bool) -> int:
        assert once
        await asyncio.sleep(600)
        return 0

    with dl.connect() as client:
        with pytest.raises(InvalidValue, match="a source and an id"):
            client.publish(dl.Event("paid", {}, id="1"), once=True)
        assert client.publish_many([paid(1), paid(1)], once=True) == 2
        monkeypatch.setattr(client._there, "publish_many", never)
        with pytest.raises(TimeoutError):
            client.publish_many([paid(2)], once=True, within=0.01)
