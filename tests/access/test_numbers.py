"""Do the numbers of notifications tell what others are told?"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from typing import Any

import pytest

import driftline as dl
from tests.access.test_matrix import ROOT
from tests.net.here import configured, served
from tests.net.secured import Authority, client_of, closed

ACCESS = f"""{ROOT}
[[grants]]
who = ["mallory"]
may = ["publish", "subscribe", "set"]
on = ["q"]
attributes = ["x", "mark"]
"""
# With a pattern of her own events of a type are taken one by one, without it by kernels.
PATTERNS = {"one by one": "SELECT * FROM q WHERE x < 0 THEN SELECT * FROM q WHERE x < 0"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("numbers") / "keys")


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


@pytest.mark.parametrize("path", ["one by one", "kernels"])
@pytest.mark.parametrize("journal", ["memory:", "a file"])
def test_they_advance_alike_whoever_else_wants_an_event(authority, tmp_path, path, journal):
    async def test() -> None:
        where = journal if journal == "memory:" else str(tmp_path / "journal")
        async with (
            closed(authority, ACCESS, journal=where) as server,
            client_of(server, authority.token("root")) as root,
            client_of(server, authority.token("mallory")) as mallory,
        ):
            await root.subscribe("SELECT * FROM q WHERE x > 100", durable="theirs")
            await root.subscribe("SELECT * FROM q WHERE x > 200")
            await root.subscribe("SELECT * FROM q WHERE x > 300", durable="another")
            if path in PATTERNS:
                await mallory.subscribe(PATTERNS[path])
            mine = await mallory.subscribe("SELECT * FROM q WHERE mark = 1", durable="mine")

            async def number() -> int:
                await mallory.publish(dl.Event("q", {"mark": 1}))
                return int((await mine.next(5)).number)

            advances = []
            for x in (1, 150, 250, 350, 1, 350):
                before = await number()
                await mallory.publish(dl.Event("q", {"x": x}))
                advances.append(await number() - before)
            assert len(set(advances)) == 1, advances
            # They are numbers of hers nevertheless, each above the one before.
            assert advances[0] > 0

    run(test())


@pytest.mark.parametrize("path", ["one by one", "kernels"])
def test_they_do_not_tell_what_one_would_be_told_by_what_was_withdrawn(authority, path):
    grants = """
[[grants]]
who = ["alice"]
may = ["subscribe", "set"]
on = ["q"]
attributes = {seen}
"""

    async def test() -> None:
        file = authority.folder / "access.toml"
        file.write_text(ROOT + grants.format(seen='["x", "secret"]'))
        said = {"access": str(file), "tokens": authority.tokens()}
        async with served(**said) as server:
            async with client_of(server, authority.token("alice")) as alice:
                await alice.durables.keep("probe", "SELECT * FROM q WHERE secret > 40")
                await alice.durables.keep("mine", "SELECT * FROM q WHERE x > 0")
            file.write_text(ROOT + grants.format(seen='["x"]'))
            server.reload(configured(**said))
            async with (
                client_of(server, authority.token("root")) as root,
                client_of(server, authority.token("alice")) as alice,
            ):
                mine = await alice.attach("mine")
                if path in PATTERNS:
                    await alice.subscribe(PATTERNS[path])
                numbers = []
                for secret in (10, 50, 20, 60, 70, 5, 5):
                    await root.publish(dl.Event("q", {"x": 1, "secret": secret}))
                    numbers.append((await mine.next(5)).number)
                pairs = itertools.pairwise(numbers)
                assert len({after - before for before, after in pairs}) == 1, numbers

    run(test())
