"""Does one identity take no more connections than it may, and leave the others to others?"""

from __future__ import annotations

import asyncio

import pytest

from driftline.errors import DriftlineError
from tests.net.secured import Authority, client_of, closed

GRANTS = """
[[grants]]
who = ["*"]
may = ["subscribe"]
on = ["q"]
attributes = ["*"]
"""


def run(test):
    asyncio.run(asyncio.wait_for(test(), 60))


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "keys")


def test_of_too_many_connections_of_one_identity_the_last_are_turned_away(authority):
    async def test():
        async with closed(authority, GRANTS, limits={"connections_each": 2}) as server:
            alice = authority.token("alice")
            once = {"reconnect": False}
            first = await client_of(server, alice).open()
            async with client_of(server, alice), client_of(server, authority.token("bob")):
                with pytest.raises(DriftlineError, match="at most 2"):
                    await client_of(server, alice, **once).open()
                await first.close()
                async with client_of(server, alice, **once) as again:
                    await again.subscribe("SELECT * FROM q")
        assert not server._connected

    run(test)


def test_who_is_turned_away_comes_in_when_there_is_room(authority):
    async def test():
        async with closed(authority, GRANTS, limits={"connections_each": 1}) as server:
            alice = authority.token("alice")
            first = await client_of(server, alice).open()
            waiting = asyncio.create_task(client_of(server, alice).open())
            await asyncio.sleep(0.1)
            assert not waiting.done()
            await first.close()
            await (await waiting).close()

    run(test)


def test_a_client_that_is_back_before_it_was_missed_counts_once(authority):
    async def test():
        async with closed(authority, GRANTS, limits={"connections_each": 1}) as server:
            alice = authority.token("alice")
            one = await client_of(server, alice, name="laptop", reconnect=False).open()
            async with client_of(server, alice, name="laptop") as again:
                await again.subscribe("SELECT * FROM q")
                assert server._connected == {"alice": 1}
            await one.close()
        assert not server._connected

    run(test)
