"""What does somebody still learn of what they may not see any more?"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

import driftline as dl
from driftline.broker.access import Anyone, Granted
from driftline.broker.grants import grants_of
from driftline.broker.letters import Letter
from driftline.errors import NotAllowed
from driftline.net.authority import sign_token
from driftline.net.server import Server
from driftline.net.withheld import is_withheld
from driftline.wire import asking
from tests.access.test_matrix import ROOT
from tests.handlers.receiver import Receiver, status
from tests.net.here import configured, eventually, served
from tests.net.secured import Authority, client_of

BOTH, LESS = '["price", "secret"]', '["price"]'
ALICE = """
[[grants]]
who = ["alice"]
may = ["subscribe", "set"]
on = ["quote"]
attributes = {seen}
"""
TRADES = """
[[grants]]
who = ["alice"]
may = ["subscribe"]
on = ["trade"]
attributes = ["*"]
"""
HANDLES = """
[[grants]]
who = ["alice"]
may = ["handle"]
on = ["http://127.0.0.1:*"]
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("withdrawn") / "keys")


@pytest.fixture(autouse=True)
def _secret(monkeypatch):
    monkeypatch.setenv("DRIFTLINE_WEBHOOKS_SECRET", "m" * 32)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


@asynccontextmanager
async def granting(
    authority: Authority, access: str, **said: Any
) -> AsyncIterator[tuple[Server, Callable[[str], None]]]:
    """A broker with these lists, and what lets it have others."""
    file = authority.folder / "access.toml"
    file.write_text(ROOT + access)
    said = {"access": str(file), "tokens": authority.tokens(), **said}
    async with served(**said) as server:

        def reload(access: str) -> None:
            file.write_text(ROOT + access)
            server.reload(configured(**said))

        yield server, reload


def quote(id: str, secret: int) -> dl.Event:
    return dl.Event("quote", {"price": 1.0, "secret": secret}, id=id)


def test_what_may_not_be_asked_for_any_more_cannot_be_restated_but_made_anew(authority):
    """Else what it matched until then would be told as what it asks for now."""

    async def test() -> None:
        async with granting(authority, ALICE.format(seen=BOTH) + TRADES) as (server, reload):
            async with client_of(server, authority.token("alice")) as alice:
                await alice.durables.keep("probe", "SELECT * FROM quote WHERE secret > 40")
                await alice.durables.keep("trades", "SELECT * FROM trade WHERE volume > 10")
            reload(ALICE.format(seen=LESS))
            async with (
                client_of(server, authority.token("root")) as root,
                client_of(server, authority.token("alice")) as alice,
            ):
                for at, secret in enumerate((10, 50, 20, 60)):
                    await root.publish(quote(f"q{at}", secret))
                    await root.publish(dl.Event("trade", {"volume": secret}, id=f"t{at}"))
                for name, denied in (("probe", "secret"), ("trades", "trade")):
                    with pytest.raises(NotAllowed, match=denied):
                        await alice.attach(name)
                    with pytest.raises(NotAllowed, match=denied):
                        await alice.durables.keep(name, "SELECT * FROM quote")
                    with pytest.raises(NotAllowed, match=denied):
                        await alice.subscribe("SELECT * FROM quote", durable=name)
                    await alice.durables.drop(name)
                    assert await alice.durables.keep(name, "SELECT * FROM quote")
                    anew = await alice.attach(name)
                    await root.publish(quote(f"after {name}", 50))
                    told = await anew.next(5)
                    assert (told.event.id, told.values) == (f"after {name}", {"price": 1.0})

    run(test())


def test_counters_say_nothing_of_what_may_not_be_asked_for_any_more(authority):
    async def test() -> None:
        async with granting(authority, ALICE.format(seen=BOTH)) as (server, reload):
            async with client_of(server, authority.token("alice")) as alice:
                await alice.durables.keep("probe", "SELECT * FROM quote WHERE secret > 40")
                await alice.durables.keep("plain", "SELECT * FROM quote WHERE price > 0")
            reload(ALICE.format(seen=LESS))
            async with (
                client_of(server, authority.token("root")) as root,
                client_of(server, authority.token("alice")) as alice,
            ):
                for at, secret in enumerate((10, 50, 20), 1):
                    await root.publish(quote(f"q{at}", secret))
                    mine = (await alice._status(False, others=True))["mine"]
                    of = {one["durable"]: one for one in mine}
                    counts = {name: n for name, n in of["probe"].items() if isinstance(n, int)}
                    assert {"matched", "evaluated", "waiting", "suppressed"} <= counts.keys()
                    assert not any(counts.values()), counts
                    assert (of["plain"]["matched"], of["plain"]["waiting"]) == (at, at)

    run(test())


def test_nothing_is_done_by_its_name_with_what_may_not_be_asked_for_any_more(authority):
    """But to end it; and what is shown of it says nothing of what it was asked about."""
    plain = "SELECT * FROM quote"
    text = "SELECT * FROM quote WHERE secret > :p"

    async def test() -> None:
        async with granting(authority, ALICE.format(seen=BOTH)) as (server, reload):
            async with client_of(server, authority.token("alice")) as alice:
                await alice.durables.keep("probe", text, {"p": 40})
            # Where it may be moved, but not be told.
            moved = ALICE.replace('"subscribe", "set"', '"set"').format(seen=BOTH)
            reload(ALICE.format(seen=LESS) + moved)
            async with (
                client_of(server, authority.token("root")) as root,
                client_of(server, authority.token("alice")) as alice,
            ):
                await root.publish(quote("q1", 50))
                shown = await alice.durables.get("probe")
                assert (shown.kept, shown.next, shown.matched) == (0, 0, 0)
                for ask in (
                    alice.explain("probe", quote("q2", 50)),
                    alice.set("probe", {"p": 10}),
                    alice.durables.keep("probe", text, {"p": 10}),
                    alice.subscribe(text, {"p": 40}, durable="probe"),
                    # By a text that she may say, to be told of what there is.
                    alice._talk.ask(asking.Subscribe, 9, plain, durable="probe", as_it_is=True),
                    alice.durables.dead("probe"),
                    alice.durables.redeliver("probe"),
                ):
                    with pytest.raises(NotAllowed, match="secret"):
                        await ask
                await alice.durables.drop("probe")

    run(test())


def test_what_may_not_be_moved_any_more_stays_where_it_is(authority):
    async def test() -> None:
        text = "SELECT * FROM quote WHERE price > :p"
        async with granting(authority, ALICE.format(seen=BOTH)) as (server, reload):
            async with client_of(server, authority.token("alice")) as alice:
                await alice.durables.keep("mine", text, {"p": 40})
            reload(ALICE.replace('"subscribe", "set"', '"subscribe"').format(seen=BOTH))
            async with client_of(server, authority.token("alice")) as alice:
                for ask in (
                    alice.set("mine", {"p": 10}),
                    alice.durables.keep("mine", text, {"p": 10}),
                    alice.durables.keep("mine", "SELECT * FROM quote"),
                ):
                    with pytest.raises(NotAllowed, match="move what it asks of"):
                        await ask
                assert (await alice.durables.get("mine")).params == {"p": 40}

    run(test())


# Dead letters


def hooks(receiver: Receiver) -> dict[str, Any]:
    return {"allow": [f"{receiver.url}/in/"], "first": 0.02, "longest": 0.1}


async def buried(client: Any, count: int, name: str = "alerts") -> Any:
    """Its dead letters, when there are so many."""
    async with asyncio.timeout(10):
        while len(found := await client.durables.dead(name)) != count:
            await asyncio.sleep(0.01)
    return found


def test_letters_that_say_what_was_withdrawn_are_neither_shown_nor_sent(authority):
    async def test(receiver: Receiver) -> None:
        before = ALICE.format(seen=BOTH) + HANDLES
        async with granting(authority, before, webhooks=hooks(receiver)) as (server, reload):
            async with (
                client_of(server, authority.token("root")) as root,
                client_of(server, authority.token("alice")) as alice,
            ):
                await alice.durables.keep("alerts", "SELECT * FROM quote")
                await alice.durables.redirect("alerts", f"{receiver.url}/in/")
                await root.publish(dl.Event("quote", {"price": 1.0, "secret": 4242}))
                await root.publish(dl.Event("quote", {"price": 2.0}))
                assert b"4242" in (await buried(alice, 2))[0].data
            receiver.posts.clear()
            reload(ALICE.format(seen=LESS) + HANDLES)
            receiver.otherwise = status(200)
            async with (
                client_of(server, authority.token("root")) as root,
                client_of(server, authority.token("alice")) as alice,
            ):
                said, harmless = await alice.durables.dead("alerts")
                assert said.data == b""
                assert json.loads(harmless.data)["data"]["values"] == {"price": 2.0}
                assert await alice.durables.redeliver("alerts", [said.id]) == 0
                assert await alice.durables.redeliver("alerts") == 1
                assert [one.id for one in await buried(alice, 1)] == [said.id]
                # What comes later would come behind it.
                await root.publish(dl.Event("quote", {"price": 3.0, "secret": 777}))
                await eventually(lambda: 3.0 in receiver.prices)
                assert [post.values for post in receiver.posts] == [{"price": 2.0}, {"price": 3.0}]
                assert await alice.durables.discard("alerts", [said.id]) == 1

    with Receiver(otherwise=status(400)) as receiver:
        run(test(receiver))


def test_a_letter_that_is_on_its_way_when_it_is_withdrawn_goes_no_further(authority):
    async def test(receiver: Receiver) -> None:
        before = ALICE.format(seen=BOTH) + HANDLES
        # So many that it is not given up meanwhile.
        settings = {**hooks(receiver), "attempts": 1000}
        async with granting(authority, before, webhooks=settings) as (server, reload):
            async with (
                client_of(server, authority.token("root")) as root,
                client_of(server, authority.token("alice")) as alice,
            ):
                await alice.durables.keep("alerts", "SELECT * FROM quote")
                await alice.durables.redirect("alerts", f"{receiver.url}/in/")
                await root.publish(dl.Event("quote", {"price": 1.0, "secret": 4242}))
                await buried(alice, 1)
                # It is tried again and again.
                receiver.otherwise = status(503)
                tried = len(receiver.posts)
                assert await alice.durables.redeliver("alerts") == 1
                await eventually(lambda: len(receiver.posts) > tried + 1)
            reload(ALICE.format(seen=LESS) + HANDLES)
            async with client_of(server, authority.token("root")) as root:
                await root.publish(dl.Event("quote", {"price": 3.0, "secret": 777}))
                await eventually(lambda: receiver.prices.count(3.0) > 2)
                since = receiver.prices.index(3.0)
                assert not any(b"4242" in post.body for post in receiver.posts[since:])

    with Receiver(otherwise=status(400)) as receiver:
        run(test(receiver))


ASKED = [
    # By what it was found, and what is asked for in its place before it is withdrawn.
    ("SELECT price FROM quote WHERE secret > 40", "SELECT price FROM quote"),
    ("SELECT secret AS price FROM quote", "SELECT price FROM quote WHERE price > 0"),
]


@pytest.mark.parametrize("is_waiting", [False, True], ids=["dead", "waiting"])
@pytest.mark.parametrize(("asked", "then"), ASKED)
def test_a_letter_is_judged_by_what_it_was_made_from(authority, tmp_path, asked, then, is_waiting):
    """And by nothing that is asked for since, whether it was dead by then or waited."""

    async def test(receiver: Receiver) -> None:
        before = ALICE.format(seen=BOTH) + HANDLES
        said = {"webhooks": hooks(receiver), "journal": str(tmp_path / "b.journal")}
        async with (
            granting(authority, before, **said) as (server, _),
            client_of(server, authority.token("root")) as root,
            client_of(server, authority.token("alice")) as alice,
        ):
            await alice.durables.keep("alerts", asked)
            await alice.durables.redirect("alerts", f"{receiver.url}/in/")
            if is_waiting:
                await alice.durables.suspend("alerts")
            await root.publish(quote("q1", 42))
            if not is_waiting:
                await buried(alice, 1)
            await alice.durables.keep("alerts", then)
            await alice.durables.resume("alerts")
            # While she may see it she does.
            assert b"alerts" in (await buried(alice, 1))[0].data
            await root.publish(quote("q2", 43))
            await buried(alice, 2)
        async with granting(authority, before, **said) as (server, reload):
            # What it was made from is known to a later life of the broker.
            reload(ALICE.format(seen=LESS) + HANDLES)
            async with client_of(server, authority.token("alice")) as alice:
                first, second = await alice.durables.dead("alerts")
                assert first.data == b""
                assert json.loads(second.data)["data"]["values"] == {"price": 1.0}
                assert await alice.durables.redeliver("alerts", [first.id]) == 0
                receiver.otherwise = status(200)
                assert await alice.durables.redeliver("alerts") == 1
                assert [one.id for one in await buried(alice, 1)] == [first.id]

    with Receiver(otherwise=status(400)) as receiver:
        run(test(receiver))


SEEN = Granted(
    grants_of(
        {
            "grants": [
                {
                    "who": ["alice"],
                    "may": ["subscribe", "view"],
                    "on": ["quote"],
                    "attributes": ["price", "symbol"],
                },
                {
                    "who": ["alice"],
                    "may": ["subscribe", "view"],
                    "on": ["trade"],
                    "attributes": ["*"],
                },
            ]
        }
    )
)
PATTERN = "SELECT * FROM trade THEN SELECT * FROM quote WHERE price > 1"
WINDOW = "SELECT MIN(price) FROM quote WHERE price BETWEEN 1 AND 9"


def event_of(**attributes: object) -> dict[str, object]:
    """An event in a letter, as a CloudEvent."""
    said = {"specversion": "1.0", "id": "1", "source": "s", "type": "quote"}
    return {**said, "datacontenttype": "application/json", "data": attributes}


@pytest.mark.parametrize(
    ("text", "data", "withheld"),
    [
        ("SELECT * FROM quote", {"values": {"price": 1}, "type": "quote"}, False),
        ("SELECT * FROM quote", {"values": {"secret": 1}, "type": "quote"}, True),
        ("SELECT * FROM quote", {"values": {"price": 1, "secret": None}, "type": "quote"}, True),
        # A view's news has no type of its own, and what was before.
        ("SELECT * FROM quote", {"values": {"price": 1}, "old": {"price": 2}}, False),
        ("SELECT * FROM quote", {"values": {"price": 1}, "old": {"secret": 2}}, True),
        # What it calls its columns is its own to name; what it asks of them was looked at before.
        ("SELECT price AS cost FROM quote", {"values": {"cost": 1}, "type": "quote"}, False),
        (WINDOW, {"values": {"MIN(price)": 1}}, False),
        ("SELECT secret AS price FROM quote", {"values": {"price": 1}, "type": "quote"}, True),
        ("SELECT * FROM quote WHERE secret > 1", {"values": {}, "type": "quote"}, True),
        ("SELECT * FROM nothing", {"values": {}}, True),
        # Which row it was: for those who may see everything.
        ("SELECT * FROM quote", {"values": {"price": 1}, "key": "IBM"}, True),
        ("SELECT * FROM trade", {"values": {"price": 1}, "key": "IBM"}, False),
        # All events of a pattern, each by its own type.
        (PATTERN, {"type": "quote", "values": {"price": 1}, "events": [event_of(price=1)]}, False),
        (PATTERN, {"type": "quote", "values": {"price": 1}, "events": [event_of(secret=1)]}, True),
        (
            PATTERN,
            {
                "type": "quote",
                "values": {"price": 1},
                "events": [{**event_of(secret=1), "type": "trade"}, event_of(price=1)],
            },
            False,
        ),
        # That something is missing says nothing.
        ("SELECT * FROM quote", {"kind": "gap", "values": {}}, False),
        ("SELECT * FROM quote", {"kind": "gap"}, False),
    ],
)
def test_a_letter_is_withheld_if_it_says_what_may_not_be_seen(text, data, withheld):
    body = json.dumps({"data": data}).encode()
    letter = Letter("1", "it answered 400", 1, 0, body, made_from=(dl.parse(text),))
    assert is_withheld(SEEN, "alice/d", letter) is withheld


@pytest.mark.parametrize(
    ("operations", "but", "withheld"),
    [
        (["subscribe", "view", "read"], [], False),
        (["subscribe", "view", "read"], ["secret"], True),
        (["subscribe", "view"], [], True),
        (["subscribe", "read"], [], True),
        (["view", "read"], [], True),
    ],
)
def test_a_letter_that_does_not_say_what_it_was_made_from_is_for_who_sees_all(
    operations, but, withheld
):
    """What an earlier version has kept may have been found by anything."""
    grant = {"who": ["alice"], "may": operations, "on": ["*"], "attributes": ["*"], "except": but}
    data = {"data": {"values": {"price": 1}, "type": "quote"}}
    letter = Letter("1", "it answered 400", 1, 0, json.dumps(data).encode())
    assert is_withheld(Granted(grants_of({"grants": [grant]})), "alice/d", letter) is withheld
    assert not is_withheld(Anyone(), "alice/d", letter)


# Rows


ROWS = """
[[grants]]
who = ["alice"]
may = ["subscribe", "view", "set"]
on = ["quote"]
attributes = ["symbol", "price"]
"""


def row(price: float, secret: int) -> dl.Event:
    return dl.Event("quote", {"symbol": "IBM", "price": price, "secret": secret})


@asynccontextmanager
async def following(authority: Authority) -> AsyncIterator[tuple[Any, Any, Callable[..., Any]]]:
    """Root and alice, each with a durable subscription to rows; and what changes the row."""
    async with (
        granting(authority, ROWS) as (server, _),
        client_of(server, authority.token("root")) as root,
        client_of(server, authority.token("alice")) as alice,
    ):
        await root.declare("quote", "symbol")
        await root.publish(row(1.0, 1))
        told = await root.subscribe("SELECT * FROM quote", rows=True)
        await told.next(5)
        for one in (root, alice):
            await one.durables.keep("rows", "SELECT * FROM quote", rows=True)
            async with asyncio.timeout(5):
                while (await one.durables.get("rows")).kept != 1:
                    await asyncio.sleep(0.01)

        async def change(price: float, secret: int) -> None:
            await root.publish(row(price, secret))
            # Who sees all of it was told: the others will have been, too.
            values = (await told.next(5)).values
            assert (values["price"], values["secret"]) == (price, secret)

        yield root, alice, change


def test_changes_that_cannot_be_seen_do_not_count(authority):
    async def test() -> None:
        async with following(authority) as (root, alice, change):
            snapshot = await alice.durables.get("rows")
            for at, secret in enumerate((2, 3, 4), 1):
                await change(1.0, secret)
                hers = await alice.durables.get("rows")
                assert (hers.kept, hers.next) == (1, snapshot.next)
                # To one who sees all of it they are told.
                assert (await root.durables.get("rows")).kept == 1 + at
            await change(2.0, 4)
            assert (await alice.durables.get("rows")).kept == 2
            await alice.durables.had("rows", snapshot.next)
            left = await alice.durables.get("rows")
            assert left.kept == 1
            assert left.next > snapshot.next
            told = await alice.attach("rows", ack="manual")
            first = await told.next(5)
            assert (first.number, first.values) == (left.next, {"symbol": "IBM", "price": 2.0})
            await told.ack(first)
            await change(2.0, 5)
            async with asyncio.timeout(5):
                while (one := await alice.durables.get("rows")).kept:
                    await asyncio.sleep(0.01)
            assert (one.kept, one.next) == (0, 0)

    run(test())


def test_counters_do_not_tell_whether_something_that_cannot_be_seen_has_changed(authority):
    async def test() -> None:
        async with following(authority) as (root, alice, _):

            async def counts() -> dict[str, int]:
                (mine,) = (await alice._status(False, others=True))["mine"]
                return {name: n for name, n in mine.items() if isinstance(n, int)}

            async def advance(secret: int) -> dict[str, int]:
                before = await counts()
                await root.publish(row(1.0, secret))
                async with asyncio.timeout(5):
                    while (now := await counts())["matched"] == before["matched"]:
                        await asyncio.sleep(0.01)
                return {name: now[name] - before[name] for name in now}

            # What it was already, and something else.
            assert await advance(1) == await advance(2)

    run(test())


@pytest.mark.parametrize("how", ["withdrawn", "expired"])
def test_who_may_not_be_there_any_more_lets_nobody_wait(authority, how):
    """Whether it reads that or not."""
    holds = """
[[grants]]
who = ["alice"]
may = ["subscribe", "hold"]
on = ["quote"]
attributes = ["*"]
"""

    async def test() -> None:
        async with granting(authority, holds) as (server, reload):
            now = time.time() - (8.0 if how == "expired" else 0.0)  # Clocks may differ by five.
            token = sign_token(authority.folder, "alice", now, 5.0)
            alice = client_of(server, token, reconnect=False)
            async with alice, client_of(server, authority.token("root")) as root:
                policy = {"overflow": "block", "limit": 10}
                await alice.subscribe("SELECT * FROM quote", policy=policy)
                line = alice._talk.channel._line
                line.hold(True)
                events = [dl.Event("quote", {"pad": "x" * 2000})] * 5000
                publishing = asyncio.create_task(root.publish_many(events))
                await eventually(lambda: bool(server.holding.blocking))
                if how == "withdrawn":
                    reload(ALICE.format(seen=LESS))
                await publishing
                assert not server.holding.blocking
                line.hold(False)

    run(test())
