"""Is nobody faster than they may be, however they say what they publish?"""

from __future__ import annotations

import asyncio

import driftline as dl
from tests.net.here import address, eventually, served

RATE = 200


def test_who_publishes_faster_than_allowed_is_held_back_and_loses_nothing() -> None:
    async def test() -> None:
        async with (
            served(limits={"rate": RATE}) as server,
            dl.connect(address(server)) as client,
            client.subscribe("SELECT * FROM q") as told,
        ):
            loop = asyncio.get_running_loop()
            began = loop.time()
            every = [dl.Event("q", {"n": n}) for n in range(3 * RATE)]
            for at in range(0, len(every), 20):
                await client.publish_each(every[at : at + 20])
            assert [(await told.next(30)).values["n"] for _ in every] == [*range(3 * RATE)]
            # A second's worth is there at the beginning.
            assert loop.time() - began > 1.5
            (guest,) = server.guests.values()
            await eventually(lambda: not guest.connection.is_held)

    asyncio.run(asyncio.wait_for(test(), 60))


def test_what_comes_while_somebody_is_held_back_holds_them_longer() -> None:
    """Many small batches in one read: none of them lets the others through."""

    async def test() -> None:
        async with served(limits={"rate": RATE}) as server, dl.connect(address(server)) as client:
            loop = asyncio.get_running_loop()
            await client.publish(dl.Event("q", {"n": 0}))
            (guest,) = server.guests.values()
            began = loop.time()
            for _ in range(RATE + RATE // 2):
                guest.incoming._pace(1)
            assert guest.connection.is_held
            await eventually(lambda: not guest.connection.is_held)
            assert loop.time() - began > 0.4

    asyncio.run(asyncio.wait_for(test(), 60))
