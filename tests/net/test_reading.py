"""Are long texts read aside, in the order in which they were said, while others are served?"""

from __future__ import annotations

import asyncio
import threading

import pytest

import driftline as dl
from driftline.errors import DriftlineError, LanguageError, ParameterError
from driftline.net import serving
from driftline.net.reading import LETTERS
from tests.net.here import address, served

LONG = "SELECT * FROM q WHERE " + " OR ".join(f"x = {at}" for at in range(LETTERS // 5))


def run(test):
    asyncio.run(asyncio.wait_for(test(), 60))


async def begun_at(client):
    return await client.subscribe(LONG)


def test_others_are_served_while_a_long_text_is_read(monkeypatch):
    """And what comes behind it on its connection waits until it was."""
    begun, go = threading.Event(), threading.Event()
    parse = serving.parse

    def slow(text):
        if len(text) > LETTERS:
            begun.set()
            assert go.wait(10)
        return parse(text)

    monkeypatch.setattr(serving, "parse", slow)

    async def test():
        async with (
            served() as server,
            dl.connect(address(server)) as one,
            dl.connect(address(server)) as other,
        ):
            subscribing = asyncio.create_task(begun_at(one))
            await asyncio.to_thread(begun.wait, 10)
            published = asyncio.ensure_future(one.publish(dl.Event("q", {"x": 7})))
            async with other.subscribe("SELECT * FROM q") as told:
                await other.publish(dl.Event("q", {"x": 1}))
                assert (await told.next(5)).values == {"x": 1}
                assert not subscribing.done()
                assert not published.done()
                go.set()
                # It was published behind the subscription, which it is for.
                assert (await told.next(5)).values == {"x": 7}
            subscription = await subscribing
            assert (await subscription.next(5)).values == {"x": 7}
            await published

    run(test)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LONG + " OR", LanguageError),
        (LONG + " OR y = :missing", ParameterError),
        ("SELECT * FROM q WHERE " + "(" * LETTERS, DriftlineError),
    ],
)
def test_what_is_wrong_with_a_long_text_is_said_as_of_a_short_one(text, problem):
    async def test():
        async with served() as server, dl.connect(address(server)) as client:
            with pytest.raises(problem):
                await client.subscribe(text)
            with pytest.raises(problem):
                await client.durables.keep("mine", text)
            async with client.subscribe(LONG) as told:
                await client.publish(dl.Event("q", {"x": 7}))
                assert (await told.next(5)).values == {"x": 7}

    run(test)


def test_who_goes_while_its_text_is_read_is_forgotten(monkeypatch):
    begun, go = threading.Event(), threading.Event()
    parse = serving.parse

    def slow(text):
        begun.set()
        assert go.wait(10)
        return parse(text)

    monkeypatch.setattr(serving, "parse", slow)

    async def test():
        async with served() as server:
            client = await dl.connect(address(server), reconnect=False).open()
            subscribing = asyncio.create_task(begun_at(client))
            await asyncio.to_thread(begun.wait, 10)
            [guest] = server.guests.values()
            guest.connection.abort("as in a crash")
            with pytest.raises(DriftlineError):
                await subscribing
            go.set()
            await client.close()
        assert len(server.edge) == 0

    run(test)


def test_a_long_advertisement_is_read_too():
    says = "SELECT * FROM q WHERE " + " AND ".join(f"a{at} > {at}" for at in range(LETTERS // 8))

    async def test():
        async with served() as server, dl.connect(address(server)) as client:
            with pytest.raises(LanguageError):
                await client.advertise(says + " OR a1 > b1")
            await client.advertise(says)
            [standing] = server.broker.advertising.of(next(iter(server.guests))).values()
            assert str(standing) == says

    run(test)


def test_what_was_read_for_one_is_nobody_elses_whatever_became_of_it(monkeypatch):
    """Should something go wrong behind it that nobody has thought of."""

    async def test():
        async with served() as server, dl.connect(address(server)) as one:
            (guest,) = server.guests.values()
            with monkeypatch.context() as wrong:
                wrong.setattr(server.serving, "_serve", lambda guest, asked: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    server.serving._serve_read(guest, None, dl.parse("SELECT * FROM another"))
            async with one.subscribe("SELECT * FROM q") as told:
                await one.publish(dl.Event("q", {"x": 1}))
                assert (await told.next(5)).values == {"x": 1}

    run(test)
