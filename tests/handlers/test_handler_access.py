"""Does nobody tell through a handler what, where, or whose they may not?"""

from __future__ import annotations

import asyncio
import ssl

import pytest

import driftline as dl
from driftline.errors import InvalidValue, LimitReached, NotAllowed, NotSupported, Unreachable
from driftline.net.running import facts_of
from tests.handlers.receiver import Receiver
from tests.net.here import address, configured, eventually, served
from tests.net.secured import Authority, client_of, closed

KEY = "g3heim"
TEXT = "SELECT * FROM quote"
ACCESS = """
[[grants]]
who = ["alice", "bob"]
may = ["subscribe"]
on = ["quote"]
attributes = ["symbol", "price"]

[[grants]]
who = ["alice"]
may = ["handle"]
on = ["{url}/in/alice/*", "mailto:alice@example.org"]

[[grants]]
who = ["feed"]
may = ["publish"]
on = ["quote"]
attributes = ["*"]
"""


@pytest.fixture(autouse=True)
def _secret(monkeypatch):
    monkeypatch.setenv("DRIFTLINE_WEBHOOKS_SECRET", "m" * 32)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("handlers") / "keys")


def hooks(receiver):
    return {"allow": [f"{receiver.url}/in/"], "first": 0.02, "longest": 0.1}


def test_a_handler_is_granted_by_its_address_and_tells_what_its_owner_may_see(authority, caplog):
    async def test(receiver):
        access = ACCESS.replace("{url}", receiver.url)
        async with (
            closed(authority, access, webhooks=hooks(receiver)) as server,
            client_of(server, authority.token("alice")) as alice,
            client_of(server, authority.token("bob")) as bob,
            client_of(server, authority.token("feed")) as feed,
        ):
            for one in (alice, bob):
                await one.durables.keep("alerts", TEXT)
            with pytest.raises(NotAllowed, match=f"be told through {receiver.url}") as refused:
                await bob.durables.redirect("alerts", f"{receiver.url}/in/alice/x?key={KEY}")
            assert KEY not in str(refused.value)
            for elsewhere in ("/in/bob", "/in/", "/in/alice"):
                with pytest.raises(NotAllowed):
                    await alice.durables.redirect("alerts", receiver.url + elsewhere)
            # What begins as it is granted is refused for what it is.
            with pytest.raises(InvalidValue):
                await alice.durables.redirect("alerts", f"{receiver.url}/in/alice/../bob")
            with pytest.raises(NotSupported):
                await alice.durables.redirect("alerts", "mailto:alice@example.org")
            await alice.durables.redirect("alerts", f"{receiver.url}/in/alice/x?key={KEY}")
            assert (await bob.durables.get("alerts")).handler == ""
            await feed.publish(dl.Event("quote", {"symbol": "IBM", "price": 9, "volume": 7}))
            await eventually(lambda: len(receiver.posts) == 1)
            data = receiver.posts[0].event["data"]
            assert data["values"] == {"symbol": "IBM", "price": 9}
            assert b"volume" not in receiver.posts[0].body
            # Nobody else's are there, and nobody else's secret is the same.
            with pytest.raises(InvalidValue, match="the name of a durable subscription"):
                await bob.durables.secret("other")
            assert await alice.durables.secret("alerts") != await bob.durables.secret("alerts")
            for ask in (bob.durables.dead, bob.durables.redeliver, bob.durables.discard):
                with pytest.raises(InvalidValue, match="the name of a durable subscription"):
                    await ask("others")
            # What is no longer granted is no longer sent.
            less = authority.folder / "less.toml"
            less.write_text(access.replace("in/alice/*", "in/alice/y"))
            said = {"listen": "127.0.0.1:0", "access": str(less), "tokens": authority.tokens()}
            server.reload(configured(**{**said, "webhooks": hooks(receiver)}))
            await eventually(lambda: alice.is_connected and feed.is_connected)
            await feed.publish(dl.Event("quote", {"symbol": "IBM", "price": 8}))
            while not (one := await alice.durables.get("alerts")).failing:
                await asyncio.sleep(0.02)
            assert "alice may not be told through" in one.failing
            assert "alice may not be told through" in caplog.text
            assert KEY not in one.failing + caplog.text
            assert (one.kept, len(receiver.posts)) == (1, 1)
            # And where webhooks may go counts from then on too.
            less.write_text(access)
            elsewhere = {"allow": ["https://hooks.example.org/"]}
            server.reload(configured(**{**said, "webhooks": elsewhere}))
            while "may go to" not in (await alice.durables.get("alerts")).failing:
                await asyncio.sleep(0.02)
            assert len(receiver.posts) == 1
            assert KEY not in caplog.text

    with Receiver() as receiver:
        asyncio.run(asyncio.wait_for(test(receiver), 30))


def test_who_has_as_many_handlers_as_connections_can_connect_all_the_same(authority):
    async def test(receiver):
        access = ACCESS.replace("{url}", receiver.url)
        limits = {"connections_each": 2}
        async with closed(authority, access, webhooks=hooks(receiver), limits=limits) as server:
            async with client_of(server, authority.token("alice")) as alice:
                for name in ("a", "b", "c"):
                    await alice.durables.keep(name, TEXT)
                    await alice.durables.redirect(name, f"{receiver.url}/in/alice/{name}")
                await eventually(lambda: server.durables.attached == 3)
            async with (
                client_of(server, authority.token("alice")) as alice,
                client_of(server, authority.token("alice")),
            ):
                assert len(await alice.durables.all()) == 3
                with pytest.raises(Unreachable, match="at most 2 connections"):
                    async with client_of(server, authority.token("alice"), reconnect=False):
                        pass

    with Receiver() as receiver:
        asyncio.run(asyncio.wait_for(test(receiver), 30))


def test_certificates_of_receivers_are_looked_at(authority):
    async def test(receiver, trusted):
        settings = hooks(receiver) | {"timeout": 2.0}
        if trusted:
            settings["authority"] = str(authority.folder / "ca.pem")
        async with served(webhooks=settings) as server, dl.connect(address(server)) as client:
            await client.durables.keep("alerts", TEXT)
            await client.durables.redirect("alerts", f"{receiver.url}/in/")
            await client.publish(dl.Event("quote", {"price": 1}))
            if trusted:
                await eventually(lambda: len(receiver.posts) == 1)
                return
            while not (one := await client.durables.get("alerts")).failing:
                await asyncio.sleep(0.02)
            assert one.failing == "the receiver cannot be reached"
            assert receiver.posts == []

    said = authority.tls("receiver")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(said["certificate"], said["key"])
    for trusted in (True, False):
        with Receiver(tls=context) as receiver:
            asyncio.run(asyncio.wait_for(test(receiver, trusted), 30))


def test_a_handler_that_is_no_longer_served_is_said_and_all_is_kept(tmp_path):
    async def test(receiver):
        journal = str(tmp_path / "b.journal")
        mail = {"host": "localhost", "sender": "d@example.org", "allow": ["*@example.org"]}
        said = {"journal": journal, "webhooks": hooks(receiver)}
        async with served(**said) as server, dl.connect(address(server)) as client:
            await client.durables.keep("alerts", TEXT)
            await client.durables.redirect("alerts", f"{receiver.url}/in/")
        for tables, why in (({}, "are sent from"), ({"email": mail}, "is not served")):
            said = {"journal": journal, **tables}
            async with served(**said) as server, dl.connect(address(server)) as client:
                await client.publish(dl.Event("quote", {"price": 1}))
                assert why in (await client.durables.get("alerts")).failing
        said = {"journal": journal, "webhooks": hooks(receiver)}
        async with served(**said) as server, dl.connect(address(server)) as client:
            await eventually(lambda: len(receiver.posts) == 2)
            assert (await client.durables.get("alerts")).failing == ""

    with Receiver() as receiver:
        asyncio.run(asyncio.wait_for(test(receiver), 30))


def test_what_can_be_served_is_said_when_the_broker_is_ready():
    async def test():
        mail = {"host": "localhost", "sender": "d@example.org", "allow": ["*@example.org"]}
        both = {"webhooks": {"allow": ["https://hooks.example.org/"]}, "email": mail}
        for said, wanted in (({"email": mail}, ["email"]), (both, ["webhooks", "email"])):
            async with served(**said) as server:
                assert facts_of(server)["handlers"] == wanted

    asyncio.run(test())


def test_without_the_tables_there_are_no_handlers_and_there_may_be_so_many_of_them():
    async def test():
        async with served() as server, dl.connect(address(server)) as client:
            await client.durables.keep("alerts", TEXT)
            with pytest.raises(NotSupported, match="no webhooks"):
                await client.durables.redirect("alerts", "https://hooks.example.org/")
            with pytest.raises(NotSupported, match="no webhooks"):
                await client.durables.secret("alerts")
        with Receiver() as receiver:
            settings = {"webhooks": hooks(receiver), "limits": {"handlers": 1}}
            async with served(**settings) as server, dl.connect(address(server)) as client:
                for name in ("one", "two"):
                    await client.durables.keep(name, TEXT)
                far = f"{receiver.url}/in/" + "x" * 2000
                for wrong in ("ftp://x", "callback", "javascript:alert(1)", far):
                    with pytest.raises(InvalidValue, match=r"https://|at most"):
                        await client.durables.redirect("one", wrong)
                await client.durables.redirect("one", f"{receiver.url}/in/1")
                with pytest.raises(LimitReached):
                    await client.durables.redirect("two", f"{receiver.url}/in/2")
                await client.durables.redirect("one", f"{receiver.url}/in/3")
                await client.durables.drop("one")
                await client.durables.redirect("two", f"{receiver.url}/in/2")

    asyncio.run(asyncio.wait_for(test(), 30))
