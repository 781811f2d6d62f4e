"""Are durable subscriptions managed by their names, wherever they are attached?"""

from __future__ import annotations

import asyncio

import pytest

import driftline as dl
from driftline.client.address import BrokerAddress
from driftline.client.client import Client
from driftline.errors import InvalidValue, NotSupported, Unreachable
from driftline.net.inside import dial_as
from driftline.net.tokens import Proven
from tests.net.here import address, served

TEXT = "SELECT * FROM quote WHERE price < :limit"


def quote(price: float) -> dl.Event:
    return dl.Event("quote", {"price": price})


def run(test, within=30.0):
    asyncio.run(asyncio.wait_for(test, within))


def test_one_that_nobody_is_attached_to_keeps_what_it_is_to_be_told():
    async def test():
        async with served() as server, dl.connect(address(server)) as client:
            assert await client.durables.keep("alerts", TEXT, {"limit": 10})
            await client.publish(quote(9))
            await client.publish(quote(11))
            (one,) = await client.durables.all()
            assert (one.name, one.text, one.params) == ("alerts", TEXT, {"limit": 10})
            assert (one.kept, one.attached, one.matched) == (1, False, 1)
            first = one.next
            # The same again changes nothing; another limit moves it, and tells nothing twice.
            assert not await client.durables.keep("alerts", TEXT, {"limit": 10})
            assert (await client.durables.get("alerts")).epoch == 0
            assert not await client.durables.keep("alerts", TEXT, {"limit": 12})
            await client.publish(quote(11.5))
            s = await client.attach("alerts", ack="manual")
            assert s.params == {"limit": 12}
            told = [await s.next(5), await s.next(5)]
            assert [(one.values["price"], one.epoch) for one in told] == [(9, 0), (11.5, 1)]
            assert told[0].number == first < told[1].number
            await client.durables.had("alerts", first)
            assert (await client.durables.get("alerts")).next == told[1].number
            await client.durables.drop("alerts")
            with pytest.raises(Unreachable):
                await s.next(5)
            assert await client.durables.all() == []

    run(test())


def test_whoever_is_attached_stays_so_and_hears_of_what_others_change():
    async def test():
        async with (
            served() as server,
            dl.connect(address(server)) as here,
            dl.connect(address(server)) as there,
        ):
            s = await here.subscribe(TEXT, {"limit": 10}, durable="alerts")
            await there.durables.keep("alerts", TEXT, {"limit": 5})
            await there.publish(quote(7))
            await there.publish(quote(4))
            told = await s.next(5)
            assert told.values == {"price": 4}
            await s.ack(told)
            assert s.params == {"limit": 5}
            # With another text it must be attached to anew: it may select other columns.
            other = "SELECT price * 2 AS double FROM quote WHERE price < :limit"
            await there.durables.keep("alerts", other, {"limit": 5})
            with pytest.raises(Unreachable, match="something else"):
                await s.next(5)
            s = await here.attach("alerts")
            assert str(s.statement) == other
            await there.publish(quote(3))
            assert (await s.next(5)).values == {"double": 6}

    run(test())


def test_while_it_is_suspended_all_is_kept():
    async def test():
        async with served() as server, dl.connect(address(server)) as client:
            s = await client.subscribe(TEXT, {"limit": 10}, durable="alerts")
            await client.durables.suspend("alerts")
            for price in (1, 2, 3):
                await client.publish(quote(price))
            with pytest.raises(TimeoutError):
                await s.next(0.2)
            assert (await client.durables.get("alerts")).suspended
            await client.durables.resume("alerts")
            await client.publish(quote(4))
            assert [(await s.next(5)).values["price"] for _ in range(4)] == [1, 2, 3, 4]

    run(test())


def test_who_attaches_to_one_that_is_suspended_is_told_so_and_nothing_else():
    async def test():
        async with served() as server, dl.connect(address(server)) as client:
            await client.durables.keep("alerts", TEXT, {"limit": 10})
            assert not (await client.attach("alerts")).suspended
            await client.publish(quote(1))
            await client.durables.suspend("alerts")
            await client.publish(quote(2))
            s = await client.attach("alerts")
            assert s.suspended
            await client.confirm()
            assert s.pending() == []
            await client.publish(quote(3))
            await client.durables.resume("alerts")
            assert [(await s.next(5)).values["price"] for _ in range(3)] == [1, 2, 3]

    run(test())


def test_after_a_number_only_what_follows_is_told():
    async def test():
        async with served() as server, dl.connect(address(server)) as client:
            await client.durables.keep("alerts", TEXT, {"limit": 10})
            for price in range(5):
                await client.publish(quote(price))
            s = await client.attach("alerts", ack="manual")
            told = [await s.next(5) for _ in range(5)]
            s = await client.attach("alerts", after=told[2].number)
            assert [await s.next(5) for _ in range(2)] == told[3:]

    run(test())


def test_a_number_that_it_was_not_told_throws_nothing_away():
    async def test():
        async with served() as server, dl.connect(address(server)) as client:
            await client.durables.keep("alerts", TEXT, {"limit": 10})
            await client.durables.keep("all", "SELECT * FROM quote")
            for price in (1, 20, 2, 3):
                await client.publish(quote(price))
            s = await client.attach("all", ack="manual")
            told = [await s.next(5) for _ in range(4)]
            # Of two the events are the same, and so their numbers; of the second they are not.
            for after in (told[1].number, told[3].number):
                with pytest.raises(InvalidValue, match="that this subscription was told"):
                    await client.attach("alerts", after=after)
            with pytest.raises(InvalidValue, match="that this subscription was told"):
                await client.durables.had("alerts", told[1].number)
            assert (await client.durables.get("alerts")).kept == 3
            s = await client.attach("alerts", ack="manual")
            mine = [await s.next(5) for _ in range(3)]
            assert [one.values["price"] for one in mine] == [1, 2, 3]
            s = await client.attach("alerts", after=mine[1].number)
            assert await s.next(5) == mine[2]

    run(test())


def test_names_of_others_and_of_nobody_are_alike_and_handlers_need_somebody_who_has_them():
    async def test():
        async with served() as server, dl.connect(address(server)) as client:
            for what in (
                client.durables.get("x"),
                client.durables.drop("x"),
                client.durables.had("x", 1),
                client.durables.suspend("x"),
                client.attach("x"),
            ):
                with pytest.raises(InvalidValue, match="the name of a durable subscription"):
                    await what
            await client.durables.keep("alerts", TEXT, {"limit": 10})
            with pytest.raises(NotSupported, match="no webhooks"):
                await client.durables.redirect("alerts", "https://example.org/hook")
            assert (await client.durables.get("alerts")).handler == ""

    run(test())


def test_another_door_of_the_process_is_whom_it_says():
    async def test():
        async with served() as server:
            alice = Client(BrokerAddress("inside"), dial=dial_as(server, Proven("alice")))
            bob = Client(BrokerAddress("inside"), dial=dial_as(server, Proven("bob")))
            async with alice, bob:
                await alice.durables.keep("alerts", TEXT, {"limit": 10})
                assert await bob.durables.all() == []
                with pytest.raises(InvalidValue):
                    await bob.durables.drop("alerts")
                assert [one.name for one in await alice.durables.all()] == ["alerts"]

    run(test())
