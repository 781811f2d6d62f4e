"""What does a subscription weigh, and is nobody let ask for more than they may?"""

from __future__ import annotations

import asyncio
from random import Random

import numpy as np
import pytest

import driftline as dl
from driftline.broker.weight import JUDGED, weight_of, weight_of_advertisement
from driftline.errors import LimitReached
from driftline.language.advertising import advertisement
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.wire.compact import write_record
from driftline.wire.forms import form_of
from tests.broker.test_intake import Twin
from tests.net.here import address, served
from tests.net.secured import Authority, client_of, closed

TYPES = ["flood", "other"]
LIKE = "SELECT * FROM flood WHERE text LIKE '%a%b{}%a%'"


def weight(text: str, **params: object) -> int:
    return weight_of(Standing.of(parse(text), params))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM q",
        "SELECT x, y FROM q WHERE firm = 'IBM' AND x BETWEEN 1 AND 2 AND z IS NOT NULL",
        "SELECT * FROM q WHERE firm = 'a very long name' OR firm IN ('IBM', 'HP')",
        "SELECT * FROM q WHERE text LIKE 'abc%' OR text LIKE '%abc' OR text LIKE '%abc%'",
        "SELECT MIN(x) FROM q WHERE y BETWEEN 1 AND 2",
        "SELECT * FROM q WHERE moved(x, by => 2)",
        "SELECT * FROM a WHERE x < 1 THEN SELECT * FROM b",
    ],
)
def test_what_an_index_answers_weighs_nothing(text):
    assert weight(text) == 0


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("SELECT * FROM q WHERE x * y > 3", 5),
        ("SELECT * FROM q WHERE text LIKE '%a%b%'", 16),
        ("SELECT * FROM q WHERE name > 'a very long name'", JUDGED),
        ("SELECT * FROM q WHERE x != 1e300", JUDGED),
        ("SELECT x * y AS z FROM q", 3),
        (f"SELECT * FROM q WHERE x IN ({', '.join(map(str, range(160)))})", 10),
        ("SELECT * FROM q WHERE " + " OR ".join(f"x > {n} AND y = {n}" for n in range(32)), 2),
        ("SELECT * FROM q WHERE " + " AND ".join(f"x{n} > {n}" for n in range(160)), 10),
        (f"SELECT {', '.join(f'x AS x{n}' for n in range(160))} FROM q", 10),
        ("SELECT MIN(x) FROM q WHERE x * y > 3", 5),
        ("SELECT * FROM a WHERE x * y > 3 THEN SELECT * FROM b WHERE x * y > 3", 10),
        ("SELECT a.x FROM a JOIN b ON a.x = b.x AND a.y < b.y WHERE a.x * b.y > 3", 8),
    ],
)
def test_what_is_judged_one_by_one_weighs_something(text, least):
    assert least <= weight(text) <= 2 * least


def test_a_parameter_weighs_by_its_value():
    text = "SELECT * FROM q WHERE name > :name"
    assert weight(text, name="short") == 0
    assert weight(text, name="a very long name") == JUDGED


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT * FROM q", 0),
        ("SELECT * FROM q WHERE firm = 'IBM' OR firm = 'HP' AND price BETWEEN 1 AND 2", 0),
        (f"SELECT * FROM q WHERE x IN ({', '.join(map(str, range(160)))})", 10),
        ("SELECT * FROM q WHERE " + " OR ".join(f"x{n} IS NOT NULL" for n in range(160)), 10),
        ("SELECT * FROM q WHERE " + " OR ".join(f"x BETWEEN {n} AND 999" for n in range(80)), 10),
        ("SELECT * FROM q WHERE text LIKE '%a%b%' OR text > 'a very long text'", 16 + JUDGED),
    ],
)
def test_an_advertisement_weighs_by_how_many_constraints_it_has(text, wanted):
    assert weight_of_advertisement(advertisement(text)) == wanted
    assert weight_of_advertisement(None) == 0


def run(test):
    asyncio.run(asyncio.wait_for(test(), 60))


GRANTS = """
[[grants]]
who = ["*"]
may = ["publish", "subscribe", "set", "advertise"]
on = ["*"]
attributes = ["*"]
"""


def test_who_asks_for_too_much_is_refused_and_may_have_something_else(tmp_path):
    authority = Authority(tmp_path / "keys")

    async def test():
        async with (
            closed(authority, GRANTS, limits={"weight": 100}) as server,
            client_of(server, authority.token("alice")) as client,
        ):
            first, *_ = [await client.subscribe(LIKE.format(at)) for at in range(6)]
            with pytest.raises(LimitReached, match=r"at most 100 .*limits\.weight"):
                await client.subscribe(LIKE.format(7))
            await client.subscribe("SELECT * FROM flood WHERE text = 'a'")
            await first.cancel()
            again = await client.subscribe(LIKE.format(7))
            # What is moved, or restated, weighs what it comes to.
            named = await client.subscribe("SELECT * FROM q WHERE name > :name", {"name": "a"})
            await named.set(name="a very long name")
            with pytest.raises(LimitReached):
                await named.add("text LIKE '%a%b8%a%'")
            assert named.params["name"] == "a very long name"
            await client.publish(Event("flood", {"text": "aab7aa"}))
            assert (await again.next(5)).values["text"] == "aab7aa"
            server.edge._check()

    run(test)


def test_who_advertises_too_much_is_refused_and_what_is_taken_back_counts_no_more(tmp_path):
    authority = Authority(tmp_path / "keys")
    long = "SELECT * FROM q WHERE x IN ({}, " + ", ".join(map(str, range(1, 160))) + ")"

    async def test():
        async with closed(authority, GRANTS, limits={"weight": 49}) as server:
            alice = authority.token("alice")
            async with (
                client_of(server, alice) as one,
                client_of(server, alice) as two,
                client_of(server, authority.token("bob")) as other,
            ):
                first, *_ = [await one.advertise(long.format(-at)) for at in range(3)]
                await two.advertise(long.format(-3))
                for client in (one, two):
                    with pytest.raises(LimitReached, match=r"limits\.weight"):
                        await client.advertise(long.format(-4))
                    with pytest.raises(LimitReached):
                        await client.subscribe(LIKE.format(1))
                await other.advertise(long.format(-4))
                await two.advertise("SELECT * FROM q WHERE y = 1")
                await first.withdraw()
                await two.subscribe(LIKE.format(1))
                with pytest.raises(LimitReached):
                    await one.advertise(long.format(-4))
                server.broker._check()
            async with client_of(server, alice) as again:
                for at in range(4):
                    await again.advertise(long.format(-at))
                server.broker._check()

    run(test)


def test_an_open_broker_refuses_nobody_what_another_connection_would_get():
    async def test():
        async with served(limits={"weight": 10}) as server, dl.connect(address(server)) as client:
            some = [await client.subscribe(LIKE.format(at)) for at in range(6)]
            await client.publish(Event("flood", {"text": "aab3aa"}))
            assert (await some[3].next(5)).values["text"] == "aab3aa"

    run(test)


def test_all_that_is_of_one_identity_counts_together_and_nothing_of_another(tmp_path):
    authority = Authority(tmp_path / "keys")

    async def test():
        async with closed(authority, GRANTS, limits={"weight": 40}) as server:
            alice = authority.token("alice")
            async with (
                client_of(server, alice) as one,
                client_of(server, alice) as two,
                client_of(server, authority.token("bob")) as other,
            ):
                await one.subscribe(LIKE.format(1))
                await two.durables.keep("mine", LIKE.format(1))
                with pytest.raises(LimitReached):
                    await two.subscribe(LIKE.format(2))
                with pytest.raises(LimitReached):
                    await one.durables.keep("more", LIKE.format(2))
                await other.subscribe(LIKE.format(1))
                await other.subscribe(LIKE.format(2))
                await two.durables.drop("mine")
                await one.durables.keep("more", LIKE.format(2))
                server.edge._check()

    run(test)


@pytest.mark.parametrize("seed", range(8))
def test_what_events_weigh_is_known_before_they_are_published(seed):
    """By filters that kernels never decide, so that it can be said what each event weighs."""
    random = Random(seed)
    twin = Twin()
    twin.enter("p", durable=False)
    count = random.randrange(1, 6)
    for at in range(count):
        twin.subscribe("p", f"p#{at}", Standing.of(parse(LIKE.format(at))))
    each = count * (JUDGED + weight(LIKE.format(0)))
    types = [random.choice(["flood", "other"]) for _ in range(random.randrange(1, 300))]
    events = [Event(type, {"text": f"aab{at % 5}a"}) for at, type in enumerate(types)]
    publishing = twin.many.publishing
    numbers = np.array([publishing.forms.number(form_of(Event(t, {"text": ""}))) for t in TYPES])
    records = b"".join(write_record(one, TYPES.index(one.type), form_of(one)) for one in events)
    for most in (0, each, 7 * each, random.randrange(40 * each), 1 << 40):
        fits = left = 0
        for type in types:
            left += each * (type == "flood")
            if left > most:
                break
            fits += 1
        assert publishing.light(records, numbers, most) == max(1, fits)
    # Nothing was published by asking, and nothing is told otherwise.
    twin.publish(events)
