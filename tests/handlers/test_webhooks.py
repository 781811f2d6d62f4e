"""Are webhooks signed, tried again, given up and delivered again, whatever a receiver does?"""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import jsonschema_rs
import pytest

import driftline as dl
from driftline.errors import InvalidValue, NotAuthenticated
from driftline.handlers.signing import verify
from tests.handlers.receiver import (
    OK,
    Receiver,
    after,
    cut_short,
    dripping,
    endless,
    half,
    repeated,
    reset,
    stalled,
    status,
)
from tests.net.here import address, eventually, served

TEXT = "SELECT * FROM quote WHERE price < :limit"
SECRET = "m" * 32


@pytest.fixture(autouse=True)
def _secret(monkeypatch):
    monkeypatch.setenv("DRIFTLINE_WEBHOOKS_SECRET", SECRET)
    # If these were heeded, nothing would arrive.
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")


def hooks(receiver: Receiver, **said: Any) -> dict[str, Any]:
    """The table [webhooks] of a broker that tries again soon."""
    table = {"first": 0.02, "longest": 0.1, "timeout": 10.0, "attempts": 4}
    return {"webhooks": {"allow": [f"{receiver.url}/in/"], **table, **said}}


def quote(price: float) -> dl.Event:
    return dl.Event("quote", {"price": price})


def run(test: Any, within: float = 60.0) -> None:
    asyncio.run(asyncio.wait_for(test, within))


async def kept(client: Any, receiver: Receiver, name: str = "alerts") -> str:
    """A durable subscription that is told to a receiver; its secret."""
    await client.durables.keep(name, TEXT, {"limit": 10})
    await client.durables.redirect(name, f"{receiver.url}/in/{name}")
    return str(await client.durables.secret(name))


async def settled(client: Any, name: str = "alerts", **wanted: Any) -> Any:
    """The subscription, when it is as wanted."""
    for _ in range(3000):
        one = await client.durables.get(name)
        if all(getattr(one, key) == value for key, value in wanted.items()):
            return one
        await asyncio.sleep(0.01)
    raise AssertionError(f"{one}, wanted {wanted}")


def test_a_webhook_is_a_signed_cloudevent_and_what_was_taken_is_had():
    async def test():
        with Receiver() as receiver:
            async with served(**hooks(receiver)) as server, dl.connect(address(server)) as client:
                await client.durables.keep("alerts", TEXT, {"limit": 10})
                await client.publish(quote(1))  # It was kept before there was a handler.
                await client.durables.redirect("alerts", f"{receiver.url}/in/alerts?key=7")
                secret = await client.durables.secret("alerts")
                await client.publish_many([quote(2), quote(11), quote(3)])
                one = await settled(client, kept=0)
                assert (one.attached, one.failing, one.dead) == (False, "", 0)
                assert receiver.prices == [1, 2, 3]
                assert len({post.id for post in receiver.posts}) == 3
                first = receiver.posts[0]
                assert first.path == "/in/alerts?key=7"
                assert first.headers["content-type"].startswith("application/cloudevents+json")
                assert verify(first.headers, first.body, secret) == first.id
                for wrong in (
                    (first.headers, first.body + b" ", secret),
                    (first.headers | {"webhook-id": "another"}, first.body, secret),
                    (first.headers | {"webhook-timestamp": "1"}, first.body, secret),
                    (first.headers, first.body, "whsec_AAAA"),
                    ({}, first.body, secret),
                ):
                    with pytest.raises(NotAuthenticated):
                        verify(*wrong)
                event = first.event
                assert event["specversion"] == "1.0"
                assert (event["type"], event["subject"]) == ("driftline.event", "alerts")
                assert event["source"] == "/b/anyone"
                assert event["data"]["type"] == "quote"

    run(test())


def test_its_source_is_a_uri_reference_whatever_the_broker_is_called():
    async def test():
        with Receiver() as receiver:
            settings = hooks(receiver) | {"name": "west é 1/2"}
            async with served(**settings) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish(quote(1))
                await eventually(lambda: len(receiver.posts) == 1)
                source = receiver.posts[0].event["source"]
                assert source == "/west%20%C3%A9%201%2F2/anyone"
                wanted = {"type": "string", "format": "uri-reference"}
                jsonschema_rs.validate(wanted, source, validate_formats=True)

    run(test())


@pytest.mark.parametrize(
    "fails",
    [status(500), status(503), status(429, "retry-after: 0"), status(408), reset, half, dripping],
    ids=["500", "503", "429", "408", "reset", "half", "dripping"],
)
def test_what_may_pass_is_tried_again_in_order_under_the_same_id(fails):
    async def test():
        with Receiver(fails, fails) as receiver:
            settings = hooks(receiver, timeout=0.5 if fails is dripping else 10.0)
            async with served(**settings) as server, dl.connect(address(server)) as client:
                secret = await kept(client, receiver)
                await client.publish_many([quote(1), quote(2)])
                one = await settled(client, kept=0)
                assert receiver.prices == [1, 1, 1, 2]
                ids = [post.id for post in receiver.posts]
                assert ids[0] == ids[1] == ids[2] != ids[3]
                assert (one.failing, one.attempts, one.dead) == ("", 0, 0)
                for post in receiver.posts:
                    verify(post.headers, post.body, secret)

    run(test())


@pytest.mark.parametrize("answer", [cut_short, endless, status(204)], ids=["cut", "endless", "204"])
def test_what_was_answered_with_2xx_was_had_however_the_answer_ends(answer):
    async def test():
        with Receiver(answer) as receiver:
            settings = hooks(receiver, timeout=1.0 if answer is endless else 10.0)
            async with served(**settings) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish_many([quote(1), quote(2)])
                await settled(client, kept=0)
                assert receiver.prices == [1, 2]

    run(test())


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (200, {"kept": 0, "dead": 0}),
        (404, {"kept": 0, "dead": 1}),
        (410, {"kept": 2, "suspended": True}),
        (503, {"failing": "the receiver answered 503"}),
    ],
    ids=["200", "404", "410", "503"],
)
def test_a_status_counts_though_the_rest_of_the_answer_never_comes(code, wanted, chunked):
    async def test():
        with Receiver(stalled(code, chunked=chunked)) as receiver:
            settings = hooks(receiver, timeout=2.0, first=100.0, longest=100.0)
            async with served(**settings) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish_many([quote(1), quote(2)])
                await settled(client, **wanted)
                assert receiver.prices == ([1, 2] if wanted.get("kept") == 0 else [1])

    run(test())


@pytest.mark.parametrize(
    "location",
    ["http://[bad", "https:///x", "\x7f\u00e9", "/" + "a" * 70_000, "ftp://x/"],
    ids=["bad", "no host", "bytes", "long", "ftp"],
)
def test_a_redirection_is_refused_whatever_it_says_of_where_to(location):
    async def test():
        with Receiver(status(302, f"location: {location}")) as receiver:
            async with served(**hooks(receiver)) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish_many([quote(1), quote(2)])
                await settled(client, kept=0, dead=1)
                assert receiver.prices == [1, 2]
                (letter,) = await client.durables.dead("alerts")
                assert letter.why == "the receiver answered 302, and redirections are not followed"

    run(test())


def test_no_cookies_are_kept_of_this_receiver_or_another():
    async def test():
        with Receiver(otherwise=status(200, "set-cookie: a=b; Path=/")) as receiver:
            async with served(**hooks(receiver)) as server, dl.connect(address(server)) as client:
                await kept(client, receiver, "one")
                await client.publish_many([quote(1), quote(2)])
                await settled(client, "one", kept=0)
                await kept(client, receiver, "two")
                await client.publish(quote(3))
                await settled(client, "two", kept=0)
                await eventually(lambda: len(receiver.posts) == 4)
                assert not any("cookie" in post.headers for post in receiver.posts)

    run(test())


def test_who_answers_twice_does_not_answer_for_another_receiver_of_its_host():
    async def test():
        async def answers(post, writer):
            if post.path.endswith("/two"):
                await after(0.05, status(500))(post, writer)
            else:
                await OK(post, writer)
                await OK(post, writer)

        with Receiver(otherwise=answers) as receiver:
            settings = hooks(receiver, attempts=2, per_host=1)
            async with served(**settings) as server, dl.connect(address(server)) as client:
                await kept(client, receiver, "one")
                await kept(client, receiver, "two")
                for price in range(4):
                    await client.publish(quote(price))
                    await settled(client, "one", kept=0)
                    await settled(client, "two", kept=0)
                assert (await client.durables.get("two")).dead == 4

    run(test())


def test_a_trace_is_in_the_headers_too_and_stays_with_a_letter():
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    async def test():
        with Receiver(status(400)) as receiver:
            async with served(**hooks(receiver)) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish(dl.Event("quote", {"price": 1}, trace=f"{parent} vendor=7"))
                await client.publish(dl.Event("quote", {"price": 2}, trace=parent))
                await client.publish(quote(3))
                await settled(client, kept=0, dead=1)
                await client.durables.redeliver("alerts")
                await settled(client, dead=0)
                said = [
                    (post.headers.get("traceparent"), post.headers.get("tracestate"))
                    for post in receiver.posts
                ]
                both = (parent, "vendor=7")
                assert said == [both, (parent, None), (None, None), both]

    run(test())


def test_a_letter_that_fails_again_does_not_hold_up_what_is_new():
    async def test():
        async def answer(post, writer):
            await status(500 if post.values["price"] == 1 else 200)(post, writer)

        with Receiver(status(400), otherwise=answer) as receiver:
            settings = hooks(receiver, attempts=1000, first=0.5, longest=0.5)
            async with served(**settings) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish(quote(1))
                await settled(client, kept=0, dead=1)
                await client.durables.redeliver("alerts")
                await settled(client, failing="the receiver answered 500")
                for price in (2, 3):
                    await client.publish(quote(price))
                    one = await settled(client, kept=0)
                    assert (one.dead, one.failing) == (1, "the receiver answered 500")
                # It is tried again by itself, though nothing new comes.
                tries = receiver.prices.count(1)
                await eventually(lambda: receiver.prices.count(1) > tries + 1)
                receiver.otherwise = OK
                one = await settled(client, dead=0)
                assert one.failing == ""
                assert receiver.prices.count(2) == receiver.prices.count(3) == 1

    run(test())


def test_what_comes_while_a_letter_is_tried_is_told_once_and_nothing_ends(caplog):
    async def test():
        tried, go_on = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        async def answer(post, writer):
            if post.values["price"] != 1:
                await OK(post, writer)
                return
            if receiver.prices.count(1) == 3:  # By now it was waited for in between.
                loop.call_soon_threadsafe(tried.set)
                await asyncio.to_thread(go_on.wait, 30)
            await status(500)(post, writer)

        with Receiver(status(400), otherwise=answer) as receiver:
            settings = hooks(receiver, attempts=1000, first=0.02, longest=0.02)
            async with served(**settings) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish(quote(1))
                await settled(client, kept=0, dead=1)
                await client.durables.redeliver("alerts")
                await tried.wait()
                await client.publish(quote(2))
                go_on.set()
                await settled(client, kept=0)
                for _ in range(5):
                    await client.publish(quote(3))
                    one = await settled(client, kept=0)
                    assert (one.dead, one.failing) == (1, "the receiver answered 500")
                assert receiver.prices.count(2) == 1
        assert not [one for one in caplog.records if one.levelname == "ERROR"]

    run(test())


def test_what_is_new_waits_for_one_letter_at_most():
    async def test():
        tried, go_on = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        async def slowly(post, writer):
            loop.call_soon_threadsafe(tried.set)
            await asyncio.to_thread(go_on.wait, 30)
            await OK(post, writer)

        with Receiver(*[status(400)] * 5, slowly) as receiver:
            async with served(**hooks(receiver)) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish_many([quote(price) for price in range(1, 6)])
                await settled(client, kept=0, dead=5)
                await client.durables.redeliver("alerts")
                await tried.wait()
                await client.publish_many([quote(6), quote(7)])
                go_on.set()
                await settled(client, kept=0, dead=0)
                told = receiver.prices[5:]
                # Each has a turn; the first may have been over before the second was at hand.
                assert told.index(6) <= 2
                assert told.index(7) <= 4
                assert [price for price in told if price < 6] == [1, 2, 3, 4, 5]

    run(test())


def test_letters_that_are_thrown_away_are_not_tried_any_more():
    async def test():
        with Receiver(status(400), otherwise=status(500)) as receiver:
            settings = hooks(receiver, attempts=1000, first=0.3, longest=0.3)
            async with served(**settings) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish(quote(1))
                await settled(client, kept=0, dead=1)
                await client.durables.redeliver("alerts")
                await settled(client, failing="the receiver answered 500")
                await client.durables.discard("alerts")
                await settled(client, failing="")
                receiver.otherwise = OK
                await client.publish(quote(2))
                await settled(client, kept=0)
                assert receiver.prices[-1] == 2

    run(test())


def test_nobody_is_asked_again_sooner_than_they_say_but_within_bounds():
    async def test():
        later = status(429, "retry-after: 1")
        never = status(503, "retry-after: 1000000")
        with Receiver(later, never) as receiver:
            settings = hooks(receiver, longest=1.5, first=0.01)
            async with served(**settings) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish(quote(1))
                one = await settled(client, failing="the receiver answered 429")
                assert (one.attempts, one.kept, one.attached) == (1, 1, False)
                await settled(client, kept=0)
                first, second, third = (post.at for post in receiver.posts)
                assert second - first >= 1.0
                assert third - second >= 1.5  # And not a million.

    run(test())


@pytest.mark.parametrize(
    ("answer", "dead"),
    [
        (repeated(b"", b"HTTP/1.1 100 \r\n\r\n"), 1),
        (repeated(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"), 1),
        (repeated(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n"), 0),
    ],
    ids=["continue", "headers", "chunks"],
)
def test_who_never_stops_to_answer_is_not_listened_to(answer, dead):
    """Each piece is parsed where everybody's turns are: it would take those for seconds."""

    async def test():
        with Receiver(answer, answer, answer, answer) as receiver:
            settings = hooks(receiver, timeout=60.0)
            async with served(**settings) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish(quote(1))
                one = await settled(client, kept=0, dead=dead)
                assert len(receiver.posts) == (4 if dead else 1)
                assert one.failing == ""
                if dead:
                    (letter,) = await client.durables.dead("alerts")
                    assert letter.why.startswith("the receiver did not answer in HTTP")

    run(test(), within=40)


def test_an_unreachable_receiver_is_not_asked_all_the_time():
    async def test():
        receiver = Receiver()
        with socket.socket() as taken:  # By somebody who does not listen.
            taken.bind(("127.0.0.1", 0))
            receiver.port = taken.getsockname()[1]
            settings = hooks(receiver, first=0.2, longest=10.0, attempts=100)
            async with served(**settings) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish(quote(1))
                await settled(client, attempts=2)
                began = asyncio.get_running_loop().time()
                one = await settled(client, attempts=4)
                # After the second and the third it waits for at least half of 0.4 and of 0.8 s.
                assert asyncio.get_running_loop().time() - began > 0.5
                assert one.failing == "the receiver cannot be reached"

    run(test())


@pytest.mark.parametrize("code", [400, 401, 404, 422, 301, 302, 303, 307, 308])
def test_what_is_refused_for_good_is_a_dead_letter_and_the_next_goes_on(code):
    async def test():
        with Receiver() as elsewhere, Receiver() as receiver:
            # Nobody may be led to where they could not have gone themselves.
            receiver.answers = [status(code, f"location: {elsewhere.url}/in/secret")]
            async with served(**hooks(receiver)) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish_many([quote(1), quote(2)])
                one = await settled(client, kept=0)
                assert (one.dead, one.failing) == (1, "")
                assert receiver.prices == [1, 2]
                assert elsewhere.posts == []
                (letter,) = await client.durables.dead("alerts")
                assert letter.why.startswith(f"the receiver answered {code}")
                assert letter.attempts == 1
                assert letter.data == receiver.posts[0].body
                assert not letter.again

    run(test())


def test_what_was_tried_often_enough_is_given_up_and_delivered_again_when_asked_for():
    async def test():
        with Receiver(otherwise=status(500, body=b"what only they should see")) as receiver:
            async with served(**hooks(receiver)) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish_many([quote(price) for price in (1, 2, 3)])
                await settled(client, dead=3, kept=0)
                assert receiver.prices == [1] * 4 + [2] * 4 + [3] * 4
                letters = await client.durables.dead("alerts")
                assert {(one.attempts, one.why) for one in letters} == {
                    (4, "the receiver answered 500")
                }
                # One of them again, which fails again.
                assert await client.durables.redeliver("alerts", [letters[1].id, "7"]) == 1
                await settled(client, failing="")
                again = None
                while again is None or again.again:
                    again = (await client.durables.dead("alerts"))[1]
                assert (again.id, again.attempts) == (letters[1].id, 8)
                receiver.otherwise = OK
                before = len(receiver.posts)
                assert await client.durables.redeliver("alerts") == 3
                await settled(client, dead=0)
                assert receiver.prices[before:] == [1, 2, 3]
                ids = [post.id for post in receiver.posts]
                assert ids[before:] == [ids[0], ids[4], ids[8]]

    run(test())


def test_dead_letters_can_be_thrown_away_are_bounded_and_those_forgotten_are_counted():
    async def test():
        with Receiver(otherwise=status(400)) as receiver:
            settings = {**hooks(receiver), "limits": {"dead": 3}}
            async with served(**settings) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish_many([quote(price) for price in range(5)])
                await settled(client, dead=3, forgotten=2, kept=0)
                letters = await client.durables.dead("alerts", most=2)
                assert [one.data for one in letters] == [post.body for post in receiver.posts[2:4]]
                rest = await client.durables.dead("alerts", after=letters[-1].id)
                assert [one.data for one in rest] == [receiver.posts[4].body]
                assert await client.durables.discard("alerts", [rest[0].id]) == 1
                assert await client.durables.discard("alerts") == 2
                assert await client.durables.dead("alerts") == []
                await client.durables.redirect("alerts", "")
                with pytest.raises(InvalidValue, match="redirect it first"):
                    await client.durables.redeliver("alerts")

    run(test())


def test_a_letter_that_is_too_large_to_be_shown_can_be_delivered_again():
    async def test():
        with Receiver(status(413)) as receiver:
            async with served(**hooks(receiver)) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish(dl.Event("quote", {"price": 1, "text": "x" * (5 << 20)}))
                await client.publish(quote(2))
                await settled(client, dead=1, kept=0)
                (letter,) = await client.durables.dead("alerts")
                assert (letter.data, letter.why) == (b"", "the receiver answered 413")
                await client.durables.redeliver("alerts", [letter.id])
                await settled(client, dead=0)
                assert receiver.posts[2].body == receiver.posts[0].body

    run(test())


def test_who_says_gone_is_told_nothing_more_and_all_is_kept():
    async def test():
        with Receiver(status(410)) as receiver:
            async with served(**hooks(receiver)) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish_many([quote(1), quote(2)])
                one = await settled(client, suspended=True)
                assert one.failing == "the receiver answered 410: suspended"
                assert (one.kept, one.dead) == (2, 0)
                await asyncio.sleep(0.2)
                assert receiver.prices == [1]
                await client.durables.resume("alerts")
                assert (await settled(client, kept=0)).failing == ""
                assert receiver.prices == [1, 1, 2]

    run(test())


def test_who_says_gone_and_is_let_go_on_at_that_very_moment_is_told():
    """Who tells it leaves then: another must begin, though this one has not gone yet."""

    async def test():
        with Receiver(*(status(410) for _ in range(20))) as receiver:
            async with served(**hooks(receiver)) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish(quote(1))
                for _ in range(20):
                    while not server.edge.parties["anyone/alerts"].suspended:
                        await asyncio.sleep(0)
                    await client.durables.resume("alerts")
                assert (await settled(client, kept=0)).failing == ""
                assert receiver.prices == [1] * 21

    run(test(), within=20)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308, 410])
def test_nobody_elsewhere_is_told_or_shown_how_it_is_signed(code):
    """What leads elsewhere is no answer that is followed, also when letters are delivered again."""

    async def test():
        with Receiver() as elsewhere, Receiver() as receiver:
            answer = status(code, f"location: {elsewhere.url}/in/alerts")
            receiver.answers = [answer, answer]
            settings = hooks(receiver)
            # Not even where it might have gone, had its owner said so.
            settings["webhooks"]["allow"].append(f"{elsewhere.url}/in/")
            async with served(**settings) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish(quote(1))
                if code == 410:
                    for more in (1, 2):
                        await settled(client, suspended=True)
                        assert len(receiver.posts) == more
                        await client.durables.resume("alerts")
                else:
                    await settled(client, kept=0, dead=1)
                    await client.durables.redeliver("alerts")
                    await eventually(lambda: len(receiver.posts) == 2)
                    while (await client.durables.dead("alerts"))[0].again:
                        await asyncio.sleep(0.01)
                    await client.durables.redeliver("alerts")
                one = await settled(client, kept=0, dead=0)
                assert one.handler == f"{receiver.url}/in/alerts"
                assert receiver.prices == [1, 1, 1]
                assert elsewhere.posts == []

    run(test())


def test_suspended_and_redirected_while_events_are_kept_nothing_is_lost():
    async def test():
        with Receiver() as one, Receiver() as two:
            settings = hooks(one)
            settings["webhooks"]["allow"].append(f"{two.url}/")
            async with served(**settings) as server, dl.connect(address(server)) as client:
                await kept(client, one)
                await client.publish(quote(1))
                await settled(client, kept=0)
                await client.durables.suspend("alerts")
                await client.publish_many([quote(2), quote(3)])
                await asyncio.sleep(0.2)
                assert one.prices == [1]
                await client.durables.redirect("alerts", f"{two.url}/there")
                await asyncio.sleep(0.1)
                assert two.prices == []
                await client.durables.resume("alerts")
                await client.publish(quote(4))
                await settled(client, kept=0)
                assert (one.prices, two.prices) == ([1], [2, 3, 4])
                # Without a handler it is kept for whoever attaches.
                await client.durables.redirect("alerts", "")
                await client.publish(quote(5))
                s = await client.attach("alerts")
                assert (await s.next(5)).values == {"price": 5}

    run(test())


def test_however_often_it_is_routed_anew_there_is_one_that_tells_and_nothing_is_lost():
    async def test():
        with Receiver(otherwise=after(0.005, OK)) as one, Receiver() as two:
            settings = hooks(one)
            settings["webhooks"]["allow"].append(f"{two.url}/")
            async with served(**settings) as server, dl.connect(address(server)) as client:
                await kept(client, one)
                for at in range(40):
                    client.send(quote(at / 10))
                    if at % 3 == 0:
                        await client.durables.suspend("alerts")
                        await client.durables.resume("alerts")
                    else:
                        await client.durables.redirect("alerts", f"{(one, two)[at % 2].url}/in/x")
                    await asyncio.sleep(0.01 * (at % 4))
                await settled(client, kept=0)
                told = [*one.posts, *two.posts]
                assert {post.values["price"] for post in told} == {at / 10 for at in range(40)}
                assert len({post.id for post in told}) == 40
                await client.publish(quote(9))
                await settled(client, kept=0)
                assert [*one.prices, *two.prices].count(9) == 1
                tasks = [task for task in asyncio.all_tasks() if "Delivering.run" in repr(task)]
                assert len(tasks) == 1

    run(test())


def test_while_somebody_is_attached_the_handler_steps_aside():
    async def test():
        with Receiver() as receiver:
            async with served(**hooks(receiver)) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish(quote(1))
                await settled(client, kept=0)
                s = await client.attach("alerts")
                assert (await client.durables.get("alerts")).attached
                await client.publish(quote(2))
                told = await s.next(5)
                assert told.values == {"price": 2}
                await s.ack(told)
                await asyncio.sleep(0.6)
                await client.publish(quote(2.5))
                told = await s.next(5)
                await s.ack(told)
                assert (told.values, receiver.prices) == ({"price": 2.5}, [1])
                await s.detach()
                await client.publish(quote(3))
                await settled(client, kept=0)
                assert receiver.prices == [1, 3]

    run(test())


def test_a_slow_receiver_does_not_let_others_wait_and_is_not_sent_to_by_too_many():
    async def test():
        busy = most = 0

        async def slowly(post, writer):
            nonlocal busy, most
            busy += 1
            most = max(most, busy)
            await asyncio.sleep(0.3)
            busy -= 1
            await OK(post, writer)

        with Receiver(otherwise=slowly) as slow, Receiver() as quick:
            settings = hooks(slow, per_host=2, at_once=3, timeout=5.0)
            settings["webhooks"]["allow"].append(f"{quick.url}/in/")
            async with served(**settings) as server, dl.connect(address(server)) as client:
                for at in range(5):
                    await kept(client, slow, f"slow{at}")
                await kept(client, quick, "quick")
                await client.publish(quote(1))
                await settled(client, "quick", kept=0)
                assert len(quick.posts) == 1
                for at in range(5):
                    await settled(client, f"slow{at}", kept=0)
                assert (len(slow.posts), most) == (5, 2)

    run(test())


def test_a_renewed_secret_and_the_one_before_both_count():
    async def test():
        with Receiver() as receiver:
            async with served(**hooks(receiver)) as server, dl.connect(address(server)) as client:
                first = await kept(client, receiver)
                second = await client.durables.secret("alerts", renew=True)
                third = await client.durables.secret("alerts", renew=True)
                assert len({first, second, third}) == 3
                assert await client.durables.secret("alerts") == third
                other = await kept(client, receiver, "others")
                assert other not in (first, second, third)
                await client.durables.drop("others")
                await client.publish(quote(1))
                await settled(client, kept=0)
                (post,) = receiver.posts
                for secret in (second, third):
                    verify(post.headers, post.body, secret)
                with pytest.raises(NotAuthenticated):
                    verify(post.headers, post.body, first)

    run(test())


def test_who_is_made_anew_under_a_name_has_no_secret_that_was_there_before(tmp_path):
    """Whoever knows what an earlier one was signed with must not be believed again."""

    async def test():
        with Receiver() as receiver:
            said = {**hooks(receiver), "journal": str(tmp_path / "b.journal")}
            known: list[str] = []
            for renewals in (0, 2, 0):
                async with served(**said) as server, dl.connect(address(server)) as client:
                    known.append(await kept(client, receiver))
                    for _ in range(renewals):
                        known.append(await client.durables.secret("alerts", renew=True))
                # It is the same after a restart.
                async with served(**said) as server, dl.connect(address(server)) as client:
                    assert await client.durables.secret("alerts") == known[-1]
                    await client.publish(quote(1))
                    await settled(client, kept=0)
                    post = receiver.posts[-1]
                    assert len(post.headers["webhook-signature"].split()) == (2 if renewals else 1)
                    verify(post.headers, post.body, known[-1])
                    await client.durables.drop("alerts")
            assert len({*known}) == len(known) == 5

    run(test())


def test_when_the_broker_ends_what_is_on_its_way_arrives_and_nothing_more():
    async def test():
        with Receiver(otherwise=after(0.3, OK)) as receiver:
            async with served(**hooks(receiver)) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.publish_many([quote(1), quote(2)])
                await eventually(lambda: len(receiver.posts) == 1)
                await server.drain(5)
            assert receiver.prices == [1]

    run(test())


def test_what_was_forgotten_is_told_as_a_gap_of_its_own():
    async def test():
        with Receiver(status(500)) as receiver:
            settings = {**hooks(receiver), "limits": {"kept": 3}}
            async with served(**settings) as server, dl.connect(address(server)) as client:
                await kept(client, receiver)
                await client.durables.suspend("alerts")
                for price in range(6):
                    await client.publish(quote(price))
                await client.durables.resume("alerts")
                await settled(client, kept=0)
                told = [(post.event["data"]["kind"], post.id) for post in receiver.posts]
                assert [kind for kind, _ in told] == ["gap", "gap", "event", "event", "event"]
                assert told[0] == told[1]
                assert told[0][1] == f"{told[2][1]}-gap"
                assert receiver.prices[2:] == [3, 4, 5]
                ids = [post.event["id"] for post in receiver.posts]
                assert len({*ids}) == 4

    run(test())


def test_snapshots_and_rows_leave_one_by_one_under_ids_of_their_own():
    async def test():
        with Receiver(OK, status(500)) as receiver:
            async with served(**hooks(receiver)) as server, dl.connect(address(server)) as client:
                await client.declare("quote", "firm")
                for firm, price in (("a", 1), ("b", 2), ("c", 3)):
                    await client.publish(dl.Event("quote", {"firm": firm, "price": price}))
                await client.durables.keep("cheap", TEXT, {"limit": 3}, rows=True)
                await client.durables.redirect("cheap", f"{receiver.url}/in/rows")
                await settled(client, "cheap", kept=0)
                kinds = [post.event["data"]["kind"] for post in receiver.posts]
                # The second failed, and all of the number came again.
                assert kinds == ["snapshot"] * 4
                by_id = {post.id: post.values for post in receiver.posts}
                assert sorted(one["firm"] for one in by_id.values()) == ["a", "b"]
                await client.publish(dl.Event("quote", {"firm": "c", "price": 0}))
                await eventually(lambda: len(receiver.posts) == 5)
                assert receiver.posts[-1].event["data"]["kind"] == "enter"

    run(test())
