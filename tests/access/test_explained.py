"""Does an explanation say which row is worth what to those who may not see which it is?"""

from __future__ import annotations

import asyncio

import pytest

import driftline as dl
from tests.access.test_matrix import ROOT
from tests.net.secured import Authority, client_of, closed

ACCESS = f"""{ROOT}
[[grants]]
who = ["alice"]
may = ["subscribe", "view"]
on = ["quote"]
attributes = ["price"]
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("explained") / "keys")


def test_which_row_has_moved_is_explained_to_those_who_may_see_everything(authority):
    async def test() -> None:
        async with (
            closed(authority, ACCESS) as server,
            client_of(server, authority.token("root")) as root,
            client_of(server, authority.token("alice")) as alice,
        ):
            await root.declare("quote", "symbol")
            prices = {"IBM": 9.5, "DIS": 77.25}
            for symbol, price in prices.items():
                await root.publish(dl.Event("quote", {"symbol": symbol, "price": price}))
            text = "SELECT price FROM quote WHERE moved(price, by => 1)"
            said = {}
            for who, client in (("root", root), ("alice", alice)):
                subscription = await client.subscribe(text)
                told = [(await subscription.next(5)).values["price"] for _ in prices]
                assert told == [*prices.values()]
                for symbol in (*prices, "ACME"):
                    event = dl.Event("quote", {"symbol": symbol, "price": 0.0})
                    said[who, symbol] = str(await subscription.explain(event))
            # Of a row that is there the same as of one that is not.
            assert said["alice", "IBM"] == said["alice", "DIS"] == said["alice", "ACME"]
            for symbol, price in prices.items():
                assert f"{price:g}" in said["root", symbol]
                assert f"{price:g}" not in said["alice", symbol]

    asyncio.run(asyncio.wait_for(test(), 30))
