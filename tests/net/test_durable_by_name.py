"""Can a durable subscription be moved and explained by its name, without taking it over?"""

import asyncio

import pytest

import driftline as dl
from driftline.errors import InvalidValue, NotSupported, ParameterError
from driftline.net.address import Address
from driftline.net.config import Config
from driftline.net.server import Server

TEXT = "SELECT * FROM quote WHERE price < :limit"


def quote(price):
    return dl.Event("quote", {"firm": "IBM", "price": price})


def at(server):
    return f"driftline://{server.address}"


async def broker(tmp_path, name="london", port=0):
    server = Server(Config(name, Address("127.0.0.1", port), str(tmp_path / f"{name}.journal")))
    await server.start()
    return server


def test_whoever_is_attached_goes_on_being_told_with_the_new_epoch(tmp_path):
    async def run():
        server = await broker(tmp_path)
        async with dl.connect(at(server)) as mine, dl.connect(at(server)) as other:
            s = await mine.subscribe(TEXT, {"limit": 10}, durable="cheap")
            await other.publish(quote(9.5))
            told = await s.next(10)
            assert (told.values["price"], told.epoch) == (9.5, 0)
            assert await other.set("cheap", {"limit": 9}) == 1
            await other.publish(quote(9.5))
            await other.publish(quote(8))
            told = await s.next(10)
            assert (told.values["price"], told.epoch) == (8, 1)
            assert (s.params, s.epoch, s.active) == ({"limit": 9}, 1, True)
            # It counts on from there.
            assert await s.set(limit=20) == 2
            assert await other.set("cheap", {"limit": 7}) == 3
        await server.drain()

    asyncio.run(run())


def test_one_that_was_refused_can_be_asked_for_again_by_anybody(tmp_path):
    async def run():
        server = await broker(tmp_path)
        # It reads as one, and brokers do not do it.
        refused = "SELECT * FROM stock WHERE price > hour(now())"
        async with dl.connect(at(server)) as one, dl.connect(at(server)) as other:
            await one.declare("stock", "id")
            for client in (one, other, one):
                with pytest.raises(NotSupported):
                    await client.subscribe(refused, rows=True, durable="cheap")
            s = await other.subscribe(TEXT, {"limit": 10}, durable="cheap")
            assert not s.resumed
            await one.publish(quote(9.5))
            assert (await s.next(10)).values["price"] == 9.5
        await server.drain()

    asyncio.run(run())


def test_one_that_nobody_is_attached_to_moves_too_and_is_explained(tmp_path):
    async def run():
        server = await broker(tmp_path)
        async with dl.connect(at(server)) as client:
            async with client.subscribe(TEXT, {"limit": 10}, durable="cheap"):
                pass
            assert (await client.explain("cheap", quote(9.5))).outcome is True
            await client.set("cheap", {"limit": 9})
            assert (await client.explain("cheap", quote(9.5))).outcome is False
        await server.drain()

    asyncio.run(run())


def test_what_is_refused_changes_nothing(tmp_path):
    async def run():
        server = await broker(tmp_path)
        async with dl.connect(at(server)) as client:
            s = await client.subscribe(TEXT, {"limit": 10}, durable="cheap")
            with pytest.raises(ParameterError):
                await client.set("cheap", {"other": 1})
            with pytest.raises(InvalidValue, match="nobody"):
                await client.set("nobody", {"limit": 1})
            with pytest.raises(InvalidValue, match="nobody"):
                await client.explain("nobody", quote(1))
            await client.publish(quote(9))
            assert (await s.next(10)).epoch == 0
        await server.drain()

    asyncio.run(run())


def test_a_move_while_the_subscriber_was_away_stands_when_it_comes_back(tmp_path):
    async def run():
        server = await broker(tmp_path)
        address = at(server)
        async with dl.connect(address) as mine, dl.connect(address) as other:
            s = await mine.subscribe(TEXT, {"limit": 10}, durable="cheap")
            # The connection breaks, and another moves it before it is made again.
            mine._talk.channel._line._transport.abort()
            assert await other.set("cheap", {"limit": 9}) == 1
            while s.epoch == 0:
                await asyncio.sleep(0.01)
            assert s.params == {"limit": 9}
            await other.publish(quote(9.5))
            await other.publish(quote(8))
            told = await s.next(10)
            assert (told.values["price"], told.epoch) == (8, 1)
        await server.drain()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_one_that_is_subscribed_to_anew_by_a_program_has_the_programs_parameters(tmp_path):
    async def run():
        server = await broker(tmp_path)
        async with dl.connect(at(server)) as client:
            async with client.subscribe(TEXT, {"limit": 10}, durable="cheap"):
                await client.set("cheap", {"limit": 9})
            async with client.subscribe(TEXT, {"limit": 12}, durable="cheap") as s:
                assert (s.params, s.epoch) == ({"limit": 12}, 2)
        await server.drain()

    asyncio.run(run())
