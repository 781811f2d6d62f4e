"""Does nobody get what they may not: cell by cell, at every door?"""

from __future__ import annotations

import asyncio
import itertools
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import driftline as dl
from driftline.errors import DriftlineError, NotAllowed
from driftline.net.server import Server
from tests.access.doors import DOORS
from tests.net.here import served
from tests.net.secured import Authority, client_of

MATRIX = tomllib.loads(Path(__file__).with_name("matrix.toml").read_text())
VALUES = {"symbol": "IBM", "price": 9.5, "volume": 700, "secret": 42}
ROOT = """
[[grants]]
who = ["root"]
may = ["publish", "subscribe", "view", "set", "declare", "delete", "operate", "observe", "read"]
on = ["*"]
attributes = ["*"]
"""


def toml(grants: list[dict[str, Any]], groups: dict[str, list[str]]) -> str:
    lines = ["[groups]", *(f"{name} = {who!r}" for name, who in groups.items())]
    for one in grants:
        lines += ["[[grants]]", *(f"{name} = {value!r}" for name, value in one.items())]
    return "\n".join(lines) + ROOT


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    found = Authority(tmp_path_factory.mktemp("access") / "keys")
    access = MATRIX["access"]
    (found.folder / "access.toml").write_text(toml(access["grants"], access["groups"]))
    return found


@asynccontextmanager
async def broker(authority: Authority) -> AsyncIterator[Server]:
    said = {
        "access": str(authority.folder / "access.toml"),
        "tokens": authority.tokens(),
        "http": {"listen": "127.0.0.1:0"},
    }
    async with served(**said) as server, client_of(server, authority.token("root")) as root:
        for table in MATRIX["types"]:
            await root.declare(table, "symbol")
        await root.observe("wind", 5.0)
        yield server


def allowed(who: str, operation: str, type: str) -> set[str]:
    return set(MATRIX["allowed"].get(f"{who}.{operation}", {}).get(type, ()))


def cells(who: str) -> Iterator[tuple[str, str, str, bool]]:
    for operation, type, name in itertools.product(
        MATRIX["operations"], MATRIX["types"], MATRIX["attributes"]
    ):
        yield operation, type, name, name in allowed(who, operation, type)


async def attempt(door: Any, operation: str, type: str, name: str) -> None:
    """Try what a cell is about."""
    condition = f"{name} IS NOT NULL"
    match operation:
        case "publish":
            await door.publish(dl.Event(type, {"symbol": "IBM", name: VALUES[name]}))
        case "subscribe":
            await door.subscribe(f"SELECT * FROM {type} WHERE {condition}", {})
        case "view":
            await door.subscribe(f"SELECT * FROM {type} WHERE {condition}", {}, rows=True)
        case "set":
            text = f"SELECT * FROM {type} WHERE {condition} AND :on"
            await door.set(text, {"on": True}, {"on": False})
        case "advertise":
            await door.advertise(f"SELECT * FROM {type} WHERE {condition}")


def run(test: Any, within: float = 120.0) -> None:
    asyncio.run(asyncio.wait_for(test, within))


@pytest.mark.parametrize("who", MATRIX["who"])
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_every_cell(authority, door, who):
    """Granted if and only if the matrix says so; what is denied names only what was asked."""

    async def test() -> None:
        async with broker(authority) as server, door(server, authority.token(who)) as mine:
            wrong, texts = [], []
            for operation, type, name, is_allowed in cells(who):
                if operation not in door.operations:
                    continue
                # Of these being allowed takes two: one must be told it to move it.
                if operation == "set":
                    is_allowed = is_allowed and name in allowed(who, "subscribe", type)
                try:
                    await attempt(mine, operation, type, name)
                    granted = True
                except NotAllowed as problem:
                    granted = False
                    texts.append((name, str(problem)))
                if granted != is_allowed:
                    wrong.append((operation, type, name, "granted" if granted else "denied"))
            assert not wrong
            for name, text in texts:
                assert text.startswith(f"{who} may not "), text
                assert not any(one in text for one in set(VALUES) - {name, "symbol"}), text

    run(test())


@pytest.mark.parametrize("who", MATRIX["who"])
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_what_is_about_no_attribute(authority, door, who):
    async def test() -> None:
        async with broker(authority) as server, door(server, authority.token(who)) as mine:
            wrong = []
            for operation, type in (
                ("declare", "quote"),
                ("declare", "trade"),
                ("delete", "quote"),
                ("delete", "trade"),
                ("observe", "wind"),
                ("observe", "rain"),
                ("operate", ""),
            ):
                if operation not in door.operations:
                    continue
                said = getattr(mine, operation)
                try:
                    await (said(type) if type else said())
                    granted = True
                except NotAllowed:
                    granted = False
                except DriftlineError:
                    granted = True  # It may, and it cannot be done.
                if granted != (type in MATRIX["plain"][operation].get(who, ())):
                    wrong.append((operation, type, "granted" if granted else "denied"))
            assert not wrong
            reads = "SELECT symbol FROM quote WHERE symbol IS NOT NULL AND env('wind') > 1"
            try:
                await mine.subscribe(reads, {})
                granted = True
            except NotAllowed:
                granted = False
            assert granted == (who in MATRIX["plain"]["read"])

    run(test())


@pytest.mark.parametrize("who", MATRIX["who"])
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_nobody_sees_what_they_may_not(authority, door, who):
    """Of events with everything in them each sees what is theirs, in every kind of text."""

    async def test() -> None:
        async with (
            broker(authority) as server,
            client_of(server, authority.token("root")) as root,
            door(server, authority.token(who)) as mine,
        ):
            for type in MATRIX["types"]:
                await _check_seen(mine, root, who, type)

    run(test())


async def _check_seen(mine: Any, root: Any, who: str, type: str) -> None:
    async def one() -> None:
        await root.publish(dl.Event(type, VALUES))

    async def changes() -> None:
        # Each attribute once, and then all of them.
        for at, name in enumerate(("price", "volume", "secret")):
            await root.publish(dl.Event(type, {**VALUES, name: 1000.0 + at}))
        await root.publish(dl.Event(type, {**VALUES, "price": 1.0, "volume": 2, "secret": 3}))
        await root.publish(dl.Event(type, VALUES))

    events, kept = allowed(who, "subscribe", type), allowed(who, "view", type)
    if events:
        texts = [
            f"SELECT * FROM {type}",
            f"SELECT * FROM {type} WHERE hour(now()) >= 0",
            f"SELECT * FROM {type} THEN SELECT * FROM {type}",
        ]
        for text in texts:
            told = await mine.told(text, lambda: _twice(one))
            assert told, text
            assert {name for seen in told for name in seen.names} == events, text
    if kept:
        await one()
        told = await mine.told(f"SELECT * FROM {type}", changes, rows=True)
        assert {name for seen in told for name in seen.names} == kept
        assert [seen.kind for seen in told[:2]] == ["snapshot", "change"]
        assert all(seen.changed for seen in told), "it is told of a change that it cannot see"


async def _twice(what: Any) -> None:
    await what()
    await what()
