"""What may somebody who may not publish make a broker remember?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

import driftline as dl
from driftline.broker.formed import LONGEST, Forms
from driftline.broker.grants import Operation, grants_of
from driftline.net.server import Server
from driftline.wire import asking
from driftline.wire.forms import NO_FORM, Form
from driftline.wire.stream import Frames, Kind, frame
from driftline.wire.values import INTEGER
from tests.net.secured import Authority, client_of, closed

ROOT = """
[[grants]]
who = ["root"]
may = ["publish", "subscribe"]
on = ["*"]
attributes = ["*"]
"""


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 30))


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("forms") / "keys")


class Raw:
    """A client of bytes, that has said who it is."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = Frames()
        self._heard: list[tuple[Kind, bytes]] = []

    def say(self, number: int, form: Form) -> None:
        """Say a form."""
        self._writer.write(frame(Kind.FORM, asking.encode_form(number, form)))

    async def heeded(self) -> None:
        """Wait until all that was said was read."""
        self._writer.write(frame(Kind.PING, b"all"))
        await self.until(Kind.PONG)

    async def until(self, kind: Kind) -> bytes:
        """What comes first of a kind."""
        while True:
            for at, (found, payload) in enumerate(self._heard):
                if found is kind:
                    del self._heard[: at + 1]
                    return payload
            data = await asyncio.wait_for(self._reader.read(1 << 16), 10)
            assert data, "the connection has ended"
            self._heard += self._frames.feed(data)

    async def ended(self) -> None:
        """Wait until the connection has ended."""
        while await asyncio.wait_for(self._reader.read(1 << 16), 10):
            pass


@asynccontextmanager
async def raw(server: Server, token: str) -> AsyncIterator[Raw]:
    """Somebody's client of bytes."""
    reader, writer = await asyncio.open_connection(server.address.host, server.address.port)
    writer.write(frame(Kind.HELLO, asking.encode(asking.Hello("raw", token))))
    try:
        yield Raw(reader, writer)
    finally:
        writer.transport.abort()


def known(server: Server) -> list[Form]:
    return [*server.broker.publishing.forms.known.values()]


def test_forms_of_what_may_not_be_published_are_not_known_to_the_broker(authority):
    async def test():
        async with closed(authority, ROOT) as server:
            form = Form("t", (("a", INTEGER),))
            async with raw(server, authority.token("nobody")) as nobody:
                for number in range(20):
                    nobody.say(number, Form(f"t{number}", (("a", INTEGER),)))
                nobody.say(0, form)
                await nobody.heeded()
                assert known(server) == []
            # The same, said by somebody who may publish it, is.
            async with raw(server, authority.token("root")) as root:
                root.say(0, form)
                await root.heeded()
                assert known(server) == [form]

    run(test)


def test_one_identity_leaves_room_for_the_forms_of_others(authority, monkeypatch):
    monkeypatch.setattr("driftline.broker.formed.FORMS_MAX", 80)

    async def test():
        async with closed(authority, ROOT + ROOT.replace("root", "other")) as server:
            # However many clients it has, and by events that are told one by one as well.
            for client in range(3):
                async with raw(server, authority.token("root")) as root:
                    for number in range(30):
                        root.say(number, Form(f"t{client}.{number}", (("a", INTEGER),)))
                    await root.heeded()
            assert len(known(server)) == 10
            async with (
                client_of(server, authority.token("root")) as root,
                root.subscribe("SELECT * FROM t") as told,
            ):
                for n in range(20):
                    await root.publish(dl.Event("t", {f"n{n}": n}))
                    assert (await told.next(5)).values == {f"n{n}": n}
            assert len(known(server)) == 10
            async with raw(server, authority.token("other")) as other:
                other.say(0, Form("other", (("a", INTEGER),)))
                await other.heeded()
            assert len(known(server)) == 11

    run(test)


def test_events_with_very_long_names_are_told_though_their_forms_are_not_for_all(authority):
    async def test():
        async with (
            closed(authority, ROOT) as server,
            client_of(server, authority.token("root")) as root,
        ):
            told = await root.subscribe("SELECT * FROM q WHERE x > 0")
            name = "n" * (LONGEST + 1)
            long = dl.Event("q", {"x": 1, name: 2})
            many = dl.Event("q", {"x": 2, **{f"{at}" + "n" * 1000: at for at in range(40)}})
            short = dl.Event("q", {"x": 3})
            # Alone, and with others that go by forms.
            sent = [short, long, many, short, long]
            await root.publish(long)
            await root.publish_many(sent)
            for event in (long, *sent):
                assert (await told.next(5)).values == dict(event.attributes)
            assert known(server) == [Form("q", (("x", INTEGER),))]

    run(test)


def test_a_connection_ends_whose_own_forms_have_too_many_letters(authority, monkeypatch):
    monkeypatch.setattr("driftline.net.incoming.OWN_LETTERS_MAX", 1000)

    async def test():
        async with closed(authority, ROOT) as server:
            async with raw(server, authority.token("nobody")) as nobody:
                # One that takes another's number takes its place, too.
                for number in (0, 0, 0, 1, 2):
                    nobody.say(number, Form(f"t{number}", (("n" * 300, INTEGER),)))
                await nobody.heeded()
                nobody.say(3, Form("t", (("n" * 300, INTEGER),)))
                why = asking.decode_goodbye(await nobody.until(Kind.GOODBYE)).why
                assert "forms of at most 1000 letters" in why
                await nobody.ended()
            # Of forms that all know nobody has too many.
            async with raw(server, authority.token("root")) as root:
                for number in range(10):
                    root.say(number, Form(f"t{number}", (("n" * 300, INTEGER),)))
                await root.heeded()
                assert len(known(server)) == 10

    run(test)


def test_all_forms_together_have_so_many_letters(monkeypatch):
    monkeypatch.setattr("driftline.broker.formed.LETTERS_MAX", 100)
    stored: dict[tuple[str, ...], object] = {}

    def number(forms: Forms, letters: int, type: str = "t") -> int:
        return forms.number(Form(type, (("n" * (letters - len(type)), INTEGER),)))

    forms = Forms(stored.__setitem__)
    assert [number(forms, letters) for letters in (60, 50, 30, 11, 10)] == [
        0,
        NO_FORM,
        1,
        NO_FORM,
        2,
    ]
    # What is known stays known, and what is kept counts in the next life too.
    for one in (forms, Forms(stored.__setitem__)):
        if not one.known:
            one.restore(stored)
        assert len(one) == 3
        assert number(one, 60) == 0
        assert number(one, 2, "u") == NO_FORM


def test_one_form_has_so_many_letters():
    stored: dict[tuple[str, ...], object] = {}
    forms = Forms(stored.__setitem__)
    assert forms.number(Form("t", (("n" * LONGEST, INTEGER),))) == NO_FORM
    halves = tuple((half * (LONGEST // 2), INTEGER) for half in "ab")
    assert forms.number(Form("t", halves)) == NO_FORM
    assert (len(forms), stored) == (0, {})
    assert forms.number(Form("t", (("n" * (LONGEST - 1), INTEGER),))) == 0


def test_answers_about_very_long_types_are_not_remembered(authority):
    grants = grants_of(
        {"grants": [{"who": ["a"], "may": ["subscribe"], "on": ["t*"], "attributes": ["x"]}]}
    )
    for type, remembered in (("t", 1), ("t" * 200, 2), ("t" * 201, 2), ("u" * 65_000, 2)):
        names = grants.names("a", Operation.SUBSCRIBE, type)
        assert (names is not None and "x" in names) is type.startswith("t")
        assert grants.names("b", Operation.PUBLISH, type) is None
        assert len(grants._known) == 2 * remembered

    async def test():
        async with (
            closed(authority, ROOT) as server,
            client_of(server, authority.token("nobody")) as nobody,
        ):
            for at in range(5):
                with pytest.raises(dl.errors.NotAllowed):
                    await nobody.subscribe(f'SELECT * FROM "{at}{"x" * 60_000}"')
            remembered = server.broker.access._grants._known
            assert all(type is None or len(type) <= 200 for _, _, type in remembered)

    run(test)
