"""Can somebody find out what they may not see by asking about it, moving, or waiting?"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from typing import Any

import pytest

import driftline as dl
from driftline.errors import DriftlineError, InvalidValue, LanguageError, NotAllowed, NotSupported
from driftline.language.sql import parse
from driftline.net import serving
from tests.access.test_matrix import VALUES, authority, broker, run
from tests.net.secured import client_of, closed

__all__ = ["authority"]

TEXTS = [
    "SELECT * FROM quote WHERE secret > 41",
    "SELECT * FROM quote WHERE NOT secret > 41",
    "SELECT * FROM quote WHERE secret IS NULL",
    "SELECT * FROM quote WHERE price > 1 OR secret IN (42)",
    "SELECT * FROM quote WHERE price > secret - 40",
    "SELECT * FROM quote WHERE price > CASE WHEN secret = 42 THEN 1 ELSE 100 END",
    "SELECT * FROM quote WHERE coalesce(secret, 0) > 41",
    "SELECT secret FROM quote",
    "SELECT price + secret AS price FROM quote",
    "SELECT * FROM quote WHERE moved(secret, by => 1)",
    "SELECT price FROM quote WHERE secret = 42 AND moved(price, by => 1)",
    "SELECT price FROM quote WHERE crossed(secret, above => 41, clear => 40)",
    "SELECT MIN(secret) FROM quote WHERE price BETWEEN 1 AND 100",
    "SELECT COUNT(*) FROM quote WHERE secret BETWEEN 42 AND 42",
    "SELECT MIN(price) FROM quote WHERE price BETWEEN 1 AND 9 HAVING moved(MIN(secret), by => 1)",
    "SELECT DISTINCT secret FROM quote WHERE price BETWEEN 1 AND 100",
    "SELECT quote.price, trade.price FROM quote JOIN trade ON quote.secret = trade.price",
    "SELECT quote.price, trade.price FROM quote JOIN trade ON quote.price = trade.price",
    "SELECT quote.price, trade.price FROM trade JOIN quote ON quote.price = trade.price",
    "SELECT * FROM quote WHERE price > 1 THEN SELECT * FROM quote WHERE secret = 42",
    "SELECT * FROM trade",
    "SELECT * WHERE secret = 42",
    "SELECT * WHERE price > 1",
    'SELECT * FROM "$rows:quote"',
    "SELECT price FROM quote WHERE price > env('wind')",
]


def test_no_text_asks_about_what_is_denied(authority):
    async def test() -> None:
        async with broker(authority) as server:
            token = authority.token("alice")
            async with client_of(server, token) as alice:
                for text in TEXTS:
                    for options in ({}, {"durable": "d"}, {"rows": True}):
                        # Refused for what it is, before it is looked at what there is.
                        with pytest.raises((LanguageError, NotAllowed, NotSupported)):
                            await alice.subscribe(text, **options)
                assert not [party for party in server.edge.parties if party.startswith("alice/")]
                plain = await alice.subscribe("SELECT * FROM quote WHERE price > :p", {"p": 1})
                durable = await alice.subscribe(
                    "SELECT * FROM quote WHERE price > :p", {"p": 1}, durable="d"
                )
                for s in (plain, durable):
                    for condition in ("secret > 1", "env('wind') > 1"):
                        with pytest.raises(NotAllowed):
                            await s.add(condition)
                    with pytest.raises(NotAllowed):
                        await s.replace("price > :p", "secret > :p")
                # It stands as before, and shows what it did before.
                assert str(plain.statement) == "SELECT * FROM quote WHERE price > :p"
                async with client_of(server, authority.token("root")) as root:
                    await root.publish(dl.Event("quote", VALUES))
                for s in (plain, durable):
                    told = await s.next(5)
                    assert told.values == {"symbol": "IBM", "price": 9.5}
                    assert dict(told.event.attributes) == told.values
                # An explanation knows the event that was given, and nothing else.
                said = await plain.explain(dl.Event("quote", {"price": 5.0}))
                assert "secret" not in str(said)

    run(test())


@pytest.mark.parametrize("secrets", [(42, 42), (43, 44)], ids=["as it was", "changed"])
def test_a_change_that_cannot_be_seen_leaves_no_trace(authority, secrets):
    """Neither in what waits, nor in the numbers that can be said to be had, nor in counters."""

    async def test() -> None:
        async with (
            broker(authority) as server,
            client_of(server, authority.token("root")) as root,
            client_of(server, authority.token("alice")) as alice,
        ):
            await root.publish(dl.Event("quote", VALUES))
            await alice.durables.keep("away", "SELECT * FROM quote", rows=True)
            durable = {"rows": True, "durable": "told", "ack": "manual"}
            told = await alice.subscribe("SELECT * FROM quote", **durable)
            await alice.subscribe("SELECT * FROM quote", rows=True)
            before = (await alice.attach("away")).kept_up_to
            for secret in secrets:
                await root.publish(dl.Event("quote", {**VALUES, "secret": secret}))
            # Told again, as after a lost connection.
            await told.detach()
            await alice.subscribe("SELECT * FROM quote", **durable)
            await alice.confirm()
            assert (await alice.attach("away")).kept_up_to == before
            for one in (await alice._status(False, others=True))["mine"]:
                assert (one["waiting"], one["suppressed"]) == (int("durable" in one), 2), one
            for number in range(before + 1, server.broker.last_number + 1):
                with pytest.raises(InvalidValue, match="one that this subscription was told"):
                    await alice.durables.had("away", number)

    run(test())


@pytest.mark.parametrize("who", ["root", "alice"])
def test_who_crosses_again_is_told_again_whatever_may_be_seen(authority, who):
    """With the same values: that it was below in between is news."""

    async def test() -> None:
        async with (
            broker(authority) as server,
            client_of(server, authority.token("root")) as root,
            client_of(server, authority.token(who)) as mine,
        ):
            s = await mine.subscribe(
                "SELECT * FROM quote WHERE crossed(price, above => 4, clear => 3)"
            )
            for price in (5, 2, 5, 2, 5):
                await root.publish(dl.Event("quote", {**VALUES, "price": price}))
            told = [await s.next(5) for _ in range(3)]
            assert [(one.kind, one.values["price"]) for one in told] == [
                ("enter", 5),
                ("change", 5),
                ("change", 5),
            ]

    run(test())


def test_a_queue_does_not_tell_apart_by_what_is_denied(authority):
    async def test() -> None:
        async with broker(authority) as server, client_of(server, authority.token("alice")) as c:
            policy = {"overflow": "conflate", "key": "secret", "min_interval": 0.2}
            with pytest.raises(NotAllowed, match="secret"):
                await c.subscribe("SELECT * FROM quote", policy=policy)

    run(test())


def test_who_reads_nothing_lets_nobody_wait_unless_that_was_granted(authority):
    grants = """
[[grants]]
who = ["alice", "bob"]
may = ["subscribe", "set"]
on = ["quote", "trade"]
attributes = ["*"]

[[grants]]
who = ["bob"]
may = ["hold"]
on = ["quote"]
"""

    async def test() -> None:
        async with (
            closed(authority, grants) as server,
            client_of(server, authority.token("alice")) as alice,
            client_of(server, authority.token("bob")) as bob,
        ):
            policy = {"overflow": "block"}
            with pytest.raises(NotAllowed, match="let publishers wait for quote"):
                await alice.subscribe("SELECT * FROM quote", policy=policy)
            assert (await alice.subscribe("SELECT * FROM quote")).epoch == 0
            for text in ("SELECT * FROM trade", "SELECT * FROM quote THEN SELECT * FROM trade"):
                with pytest.raises(NotAllowed, match="let publishers wait for trade"):
                    await bob.subscribe(text, policy=policy)
            s = await bob.subscribe("SELECT * FROM quote WHERE price > 1", policy=policy)
            # Nor by way of something else that it asks for later.
            with pytest.raises(NotAllowed, match="let publishers wait for trade"):
                await s._restate(parse("SELECT * FROM trade WHERE price > 1"), {})

    run(test())


def test_many_forms_and_many_kinds_of_values_are_left_out_alike(authority):
    """Over the path of kernels and one by one: the same, for all kinds of attributes."""
    kinds: list[Any] = [1, 2.5, True, "text", b"bytes", dl.Event("q", {}, time=1).time]

    async def test() -> None:
        async with (
            broker(authority) as server,
            client_of(server, authority.token("root")) as root,
            client_of(server, authority.token("bob")) as bob,
        ):
            s = await bob.subscribe("SELECT * FROM free")
            durable = await bob.subscribe("SELECT * FROM free", durable="d")
            sent = []
            for at in range(120):
                attributes: dict[str, Any] = {}
                for nth in range(at % 7):
                    attributes[f"a{nth}"] = kinds[(at + nth) % len(kinds)]
                if at % 3:
                    attributes = {**attributes, "secret": kinds[at % len(kinds)], "z": at}
                event = dl.Event("free", attributes, id=f"i{at}", source="s" if at % 2 else None)
                sent.append(event)
            await root.publish_many(sent)
            for one in (s, durable):
                for event in sent:
                    told = await one.next(5)
                    wanted = {k: v for k, v in event.attributes.items() if k != "secret"}
                    assert dict(told.event.attributes) == told.values == wanted
                    assert (told.event.id, told.event.source) == (event.id, event.source)

    run(test())


@pytest.mark.parametrize("durable", ["", "d"])
def test_how_soon_one_is_answered_does_not_say_whether_somebody_wants_it(
    authority, tmp_path, durable
):
    """With a journal, who publishes waits for it: whether anybody is told, durably, or not."""
    access = """
[[grants]]
who = ["*"]
may = ["publish", "subscribe", "set"]
on = ["*"]
attributes = ["*"]
"""

    async def test() -> None:
        journal = str(tmp_path / "journal")
        async with (
            closed(authority, access, journal=journal) as server,
            client_of(server, authority.token("alice")) as alice,
            client_of(server, authority.token("bob")) as bob,
        ):
            if durable:
                await alice.subscribe("SELECT * FROM q WHERE x < 10", durable=durable)
            before = server.driver._committed
            for x in range(20):
                await bob.publish(dl.Event("q", {"x": x}))
            # One for each, whether or not it is wanted.
            assert server.driver._committed - before >= 20

    run(test())


def test_refusals_take_as_long_whether_or_not_there_is_something(authority):
    """Of a table that is there and of one that is not, of a name that is taken and one that is not.

    Not a timed test: what is compared are two medians of the same run, with a wide margin.
    """

    async def test() -> None:
        async with broker(authority) as server, client_of(server, authority.token("nobody")) as c:

            async def median(text: str) -> float:
                took = []
                for _ in range(60):
                    began = time.perf_counter()
                    with pytest.raises(NotAllowed):
                        await c.subscribe(text)
                    took.append(time.perf_counter() - began)
                return statistics.median(took)

            there = await median("SELECT * FROM quote WHERE secret = 42")
            absent = await median("SELECT * FROM nothing WHERE secret = 42")
            assert 1 / 5 < there / absent < 5

    run(test())


@pytest.mark.parametrize(
    "text", ["SELECT * FROM quote WHERE secret > 123", "SELECT * FROM quote WHERE price > 123"]
)
def test_a_text_is_not_answered_sooner_because_somebody_else_has_said_it(
    authority, monkeypatch, text
):
    """Granted or not, it is read anew for each identity: that is most of the time."""
    read = []
    monkeypatch.setattr(serving, "parse", lambda text: (read.append(text), parse(text))[1])

    async def test() -> None:
        async with (
            broker(authority) as server,
            client_of(server, authority.token("root")) as root,
            client_of(server, authority.token("alice")) as alice,
        ):
            for who, times in ((root, 1), (root, 1), (alice, 2), (alice, 2)):
                with contextlib.suppress(NotAllowed):
                    await who.subscribe(text)
                assert read.count(text) == times

    run(test())


def test_what_is_for_operators_is_for_nobody_else(authority):
    async def test() -> None:
        async with (
            broker(authority) as server,
            client_of(server, authority.token("ops")) as ops,
            client_of(server, authority.token("alice")) as alice,
        ):
            for ask in ("status", "metrics"):
                assert await getattr(ops, ask)()
                with pytest.raises(NotAllowed, match="operate this broker"):
                    await getattr(alice, ask)()
            for change in (alice.peer("other", "127.0.0.1:1"), alice.peer("other")):
                with pytest.raises(NotAllowed, match="operate this broker"):
                    await change
            assert not server.links

    run(test())


def test_answers_of_others_names_are_the_same_as_of_none(authority):
    async def test() -> None:
        async with (
            broker(authority) as server,
            client_of(server, authority.token("alice")) as alice,
            client_of(server, authority.token("dave")) as dave,
        ):
            text = "SELECT * FROM quote WHERE price > :p"
            await alice.subscribe(text, {"p": 1}, durable="hers")
            said = []
            for name in ("hers", "nobodys"):
                with pytest.raises(DriftlineError) as found:
                    await dave.set(name, {"p": 2})
                said.append(str(found.value).replace(name, "NAME"))
            assert said[0] == said[1]

    run(test())


def test_what_may_not_be_published_is_not_where_kernels_read_events(authority):
    """Of a type that is no table: whether that may be is asked once, of a form."""
    grants = """
[[grants]]
who = ["alice"]
may = ["publish"]
on = ["plain"]
attributes = ["x"]

[[grants]]
who = ["bob"]
may = ["subscribe"]
on = ["*"]
attributes = ["*"]
"""

    async def test() -> None:
        async with (
            closed(authority, grants) as server,
            client_of(server, authority.token("alice")) as alice,
            client_of(server, authority.token("bob")) as bob,
        ):
            s = await bob.subscribe("SELECT *")
            for name, attributes in (("plain", {"x": 1, "secret": 2}), ("other", {"x": 1})):
                for _ in range(2):
                    with pytest.raises(NotAllowed):
                        await alice.publish_many([dl.Event(name, attributes)] * 100)
            await alice.publish(dl.Event("plain", {"x": 3}))
            assert (await s.next(5)).values == {"x": 3}

    run(test())


def test_somebody_without_any_grant_is_told_nothing_and_harms_nobody(authority):
    async def test() -> None:
        async with (
            broker(authority) as server,
            client_of(server, authority.token("nobody")) as c,
            client_of(server, authority.token("root")) as root,
        ):
            with pytest.raises(NotAllowed):
                await c.publish(dl.Event("quote", VALUES))
            # Some of a batch is allowed, none of it is lost to what is not.
            feed = client_of(server, authority.token("feed"))
            s = await root.subscribe("SELECT * FROM trade")
            async with feed:
                mixed = [
                    dl.Event("trade", {"symbol": "IBM", "price": 1.0}),
                    dl.Event("trade", {"symbol": "IBM", "price": 2.0, "volume": 3}),
                    dl.Event("trade", {"symbol": "IBM", "price": 4.0}),
                ]
                with pytest.raises(NotAllowed, match="with volume"):
                    await feed.publish_many(mixed)
            assert [(await s.next(5)).values["price"] for _ in range(2)] == [1.0, 4.0]
            await asyncio.sleep(0)
            assert not s.pending()

    run(test())
