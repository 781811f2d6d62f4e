"""What does a broker do with clients that lose their connection, read too little, or lie?

Each test here fails without the line that it is about.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import driftline as dl
from driftline.broker import formed
from driftline.broker.effects import Effect, Reply, SendBytes
from driftline.broker.station import Station
from driftline.errors import NotSupported
from driftline.net import link
from driftline.net.clock import BrokerClock
from driftline.net.driver import Driver
from driftline.net.journal.sqlite import SqliteJournal
from driftline.net.server import Server
from driftline.wire import asking
from driftline.wire.compact import write_record
from driftline.wire.forms import form_of
from driftline.wire.publishing import batch
from driftline.wire.stream import Frames, Kind, frame
from tests.net.here import address, eventually, served


def run(test: Callable[[], Awaitable[None]], within: float = 60.0) -> None:
    asyncio.run(asyncio.wait_for(test(), within))


def event(n: int) -> dl.Event:
    return dl.Event("q", {"n": n, "x": n % 10})


class Raw:
    """A client of bytes: it says what it likes, and reads when it likes."""

    def __init__(self, server: Server, name: str = "raw", life: int = 1) -> None:
        self._address = (server.address.host, server.address.port)
        self._hello = frame(Kind.HELLO, asking.encode(asking.Hello(name, "", life)))
        self._frames = Frames()
        self.heard: list[tuple[Kind, bytes]] = []

    async def __aenter__(self) -> Raw:
        self.reader, self.writer = await asyncio.open_connection(*self._address)
        self.writer.write(self._hello)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.transport.abort()

    def ask(self, asked: Any) -> None:
        self.writer.write(frame(Kind.REQUEST, asking.encode(asked)))

    def publish(self, request: int, number: int, *events: dl.Event) -> None:
        form = form_of(events[0])
        records = [write_record(one, 0, form) for one in events]
        self.publish_records(request, number, events[0], *records)

    def publish_records(self, request: int, number: int, like: dl.Event, *records: bytes) -> None:
        self.writer.write(frame(Kind.FORM, asking.encode_form(0, form_of(like))))
        raw = b"".join(records)
        self.writer.write(frame(Kind.EVENTS, batch(request, len(records), number, raw)))

    async def until(self, kind: Kind, count: int = 1) -> list[bytes]:
        """Read until so many of a kind have come: those."""
        while len(found := [payload for k, payload in self.heard if k is kind]) < count:
            data = await asyncio.wait_for(self.reader.read(1 << 16), 10)
            assert data, f"closed: {self.heard}"
            self.heard += self._frames.feed(data)
        return found


# What is acknowledged


def test_a_batch_is_not_acknowledged_by_the_reply_to_one_of_an_earlier_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply that waits for the journal must not be taken for that to what came since."""
    commit, may, begun = SqliteJournal.commit, threading.Semaphore(0), threading.Event()

    def slow(self: SqliteJournal, stores: Any) -> None:
        begun.set()
        may.acquire(timeout=20)
        commit(self, stores)

    async def main() -> None:
        async with (
            served(journal=str(tmp_path / "j")) as server,
            dl.connect(address(server), name="keeper") as keeper,
        ):
            await keeper.subscribe("SELECT * FROM q", durable="d", ack="manual")
            monkeypatch.setattr(SqliteJournal, "commit", slow)
            async with Raw(server) as first:
                first.publish(1, 1, event(1))
                await eventually(begun.is_set)
                begun.clear()
            async with Raw(server) as second:
                # The first is being committed; the second must wait for another commit.
                second.publish(1, 2, event(2))
                await eventually(lambda: server.driver._submitted >= 3)
                may.release()
                await eventually(begun.is_set)
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(second.until(Kind.REPLY), 0.3)
                may.release(100)
                await second.until(Kind.REPLY)

    run(main)


def test_a_client_whose_clock_is_behind_is_heard() -> None:
    """One that counts anew, with a lower life, must not be told that all of it was had before."""

    async def main() -> None:
        async with served() as server, dl.connect(address(server)) as client:
            told = await client.subscribe("SELECT * FROM q")
            for life, n in ((5, 1), (3, 2)):
                async with Raw(server, life=life) as raw:
                    raw.publish(1, 1, event(n))
                    await raw.until(Kind.REPLY)
            assert [(await told.next(5)).values["n"] for _ in range(2)] == [1, 2]

    run(main)


def test_what_an_effect_leads_to_comes_behind_what_was_to_be_done() -> None:
    sent: list[bytes] = []

    class World:
        def reply(self, reply: Reply) -> None:
            driver.perform([SendBytes("l", b"2")])

        def send(self, link: str, data: bytes) -> None:
            sent.append(data)

    async def main() -> None:
        nonlocal driver
        world: Any = World()
        driver = Driver(Station("b"), None, world, BrokerClock(), asyncio.get_running_loop())
        effects: list[Effect] = [Reply("p", "r"), SendBytes("l", b"1")]
        driver.perform(effects)

    driver: Driver
    run(main)
    assert sent == [b"1", b"2"]


# Who reads too little


def test_who_asks_and_never_reads_is_not_listened_to() -> None:
    """Replies that nobody reads must not fill the broker's memory."""

    async def main() -> None:
        async with served() as server, Raw(server) as raw:
            raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
            flood = frame(Kind.PING, bytes(1000)) * 1000
            for _ in range(40):
                raw.writer.write(flood)
                await asyncio.sleep(0.005)
            (guest,) = server.guests.values()
            assert guest.connection.unsent < 4 << 20
            # When it reads it is listened to again.
            raw.writer.transport.resume_reading()  # type: ignore[attr-defined]
            await asyncio.wait_for(raw.until(Kind.PONG, 40_000), 30)

    run(main)


def test_a_durable_subscription_that_is_not_read_is_kept_once(tmp_path: Path) -> None:
    """What waits is the broker's to limit; the connection holds only a little of it."""

    async def main() -> None:
        limits = {"kept": 500}
        async with served(journal=str(tmp_path / "j"), limits=limits) as server:
            async with Raw(server, "slow") as raw:
                raw.ask(asking.Subscribe(1, 1, "SELECT * FROM q", durable="d"))
                await raw.until(Kind.REPLY)
                raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
                async with dl.connect(address(server)) as client:
                    for first in range(0, 4000, 100):
                        await client.publish_many(
                            dl.Event("q", {"n": n, "pad": "x" * 3000})
                            for n in range(first, first + 100)
                        )
                    (channel,) = server.guests["anyone~slow"].channels.values()
                    assert len(channel._at_hand) <= 256
                    assert server.edge.parties["anyone/d"].kept <= 500
                raw.writer.transport.resume_reading()  # type: ignore[attr-defined]
                while channel._sent < channel._stored:
                    assert await asyncio.wait_for(raw.reader.read(1 << 20), 10)
            async with dl.connect(address(server)) as client:
                told = await client.subscribe("SELECT * FROM q", durable="d")
                first_told = await told.next(5)
                assert first_told.kind == "gap"
                numbers = [(await told.next(5)).values["n"] for _ in range(500)]
                assert numbers == [*range(3500, 4000)]

    run(main)


def test_who_is_held_back_is_not_taken_for_gone() -> None:
    async def main() -> None:
        async with (
            served(limits={"silence": 1}) as server,
            dl.connect(address(server), name="held") as client,
        ):
            guest = server.guests["anyone~held"]
            guest.connection.hold("journal")
            await asyncio.sleep(2)
            assert server.guests.get("anyone~held") is guest
            guest.connection.release("journal")
            await client.confirm()

    run(main)


def test_a_view_that_has_missed_something_is_told_anew_what_it_is_about() -> None:
    async def main() -> None:
        async with served() as server, dl.connect(address(server)) as client:
            await client.declare("t", "k")
            view = await client.subscribe(
                "SELECT k, y FROM t", rows=True, policy={"limit": 15, "min_interval": 0.05}
            )
            # Most rows come once, and are pushed out by one that comes again and again.
            for n in range(40):
                await client.publish(dl.Event("t", {"k": n if n < 10 else 0, "y": n}))
            known: dict[object, object] = {}
            gaps = 0
            wanted = {0: 39, **{n: n for n in range(1, 10)}}
            while known != wanted:
                told = await view.next(15)
                gaps += told.kind == "gap"
                if told.kind == "gap":
                    known.clear()
                elif told.kind != "leave":
                    known[told.key] = told.values["y"]
            assert gaps

    run(main)


def test_a_silent_move_of_rows_tells_nothing() -> None:
    async def main() -> None:
        async with served() as server, dl.connect(address(server)) as client:
            await client.declare("t", "k")
            for n in range(4):
                await client.publish(dl.Event("t", {"k": n, "y": n}))
            for on_change, kinds in (("silent", []), ("reevaluate", ["enter", "enter"])):
                view = await client.subscribe(
                    "SELECT * FROM t WHERE y >= :low", {"low": 3}, rows=True, on_change=on_change
                )
                assert (await view.next(5)).kind == "snapshot"
                await view.set(low=1)
                await asyncio.sleep(0.2)
                assert [one.kind for one in view.pending()] == kinds

    run(main)


def test_the_status_of_what_was_just_refused(tmp_path: Path) -> None:
    """Its refusal waits for the journal; until then nobody knows of it."""

    async def main() -> None:
        async with served(journal=str(tmp_path / "j")) as server, Raw(server) as raw:
            raw.ask(asking.Subscribe(1, 1, "SELECT * FROM q", durable="d", within=0))
            evolving = "SELECT * FROM q WHERE x > env('v')"
            raw.ask(asking.Subscribe(2, 2, evolving, within=0, rows=True))
            raw.ask(asking.Status(3, subscriptions=True))
            replies = [asking.decode_reply(one) for one in await raw.until(Kind.REPLY, 3)]
            assert [one.request for one in replies if one.error] == [2]

    run(main)


# Who asks for too much


def test_more_forms_than_can_be_known_are_read_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody may use them up; others are served no worse for it."""
    monkeypatch.setattr(formed, "FORMS_MAX", 2)

    async def main() -> None:
        async with served() as server, dl.connect(address(server)) as client:
            told = await client.subscribe("SELECT * FROM q")
            for n in range(5):
                await client.publish(dl.Event("q", {f"a{n}": n}))
                assert (await told.next(5)).values == {f"a{n}": n}

    run(main)


def test_questions_of_who_has_gone_are_forgotten() -> None:
    """Here a neighbour never answers; the wait for it must not outlive who waits."""

    async def main() -> None:
        async with served(peers=[{"name": "away", "role": "peer"}]) as server:
            async with Raw(server) as raw:
                for n in range(1500):
                    raw.ask(asking.Confirm(n + 1, within=1 << 60))
                waves = server.broker._waves._waves
                await eventually(lambda: len(waves) > 900)
                guest = server.guests["anyone~raw"]
                # It asks for more than it may: if not yet, then when its turn comes.
                await eventually(lambda: guest.connection.is_held)
                assert len(waves) < 1500 + 1
            guest.connection.abort("it has gone")
            await eventually(lambda: not server.guests)
            assert not server.broker._waves._waves
            assert not server._awaited

    run(main)


def test_an_epoch_that_does_not_fit_a_notice_is_refused() -> None:
    async def main() -> None:
        async with served() as server, Raw(server) as raw:
            raw.ask(asking.Subscribe(1, 1, "SELECT * FROM q", epoch=1 << 40))
            assert b"1073741824" in (await raw.until(Kind.GOODBYE))[0]

    run(main)


def test_something_of_another_kind_does_not_take_the_place_of_what_is_durable() -> None:
    """What waits was found for the one, and cannot be told as the other's."""

    async def main() -> None:
        async with served() as server, dl.connect(address(server)) as client:
            told = await client.subscribe("SELECT * FROM q", durable="d", ack="manual")
            await client.publish(event(1))
            await told.next(5)
            await told.detach()
            for other in ("SELECT * FROM q THEN SELECT * FROM q", "SELECT COUNT(*) FROM t"):
                with pytest.raises(NotSupported, match="another kind"):
                    await client.subscribe(other, durable="d")
            again = await client.subscribe("SELECT * FROM q", durable="d")
            assert (await again.next(5)).values["n"] == 1

    run(main)


# Links


def test_a_host_that_can_be_none_is_a_problem_of_its_link() -> None:
    async def main() -> None:
        peers = [{"name": "odd", "role": "peer", "address": f"{'x' * 300}:1"}]
        async with served(peers=peers) as server:
            await eventually(lambda: bool(server.links["odd"].problem))
            with pytest.raises(dl.Unreachable):
                await dl.connect(f"driftline://{'x' * 300}", within=2, reconnect=False).open()

    run(main)


def test_who_greets_too_late_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that is dialled and says nothing must not cost a connection each time."""

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            peers = [
                {"name": "mute", "role": "peer", "address": f"127.0.0.1:{silent.getsockname()[1]}"}
            ]
            async with served(peers=peers, limits={"greeting": 1}) as server:
                await eventually(lambda: bool(server.links["mute"].problem))
                await asyncio.sleep(2.5)
                assert len(server.connections) <= 1

    run(main)


def test_two_ends_that_both_dial_agree_on_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    joined: list[str] = []
    real = link.Link.joined

    def note(self: link.Link, wire: link.Wire) -> None:
        joined.append(self.name)
        real(self, wire)

    monkeypatch.setattr(link.Link, "joined", note)

    async def main() -> None:
        ports = []
        for _ in range(2):
            with socket.create_server(("127.0.0.1", 0)) as free:
                ports.append(free.getsockname()[1])
        for _ in range(5):
            one, two = (
                {
                    "name": name,
                    "listen": f"127.0.0.1:{ports[at]}",
                    "peers": [
                        {"name": other, "role": "peer", "address": f"127.0.0.1:{ports[1 - at]}"}
                    ],
                }
                for at, (name, other) in enumerate((("a", "z"), ("z", "a")))
            )
            async with served(**one) as first, served(**two) as second:
                await eventually(lambda: first.links["z"].is_up and second.links["a"].is_up)
                # They dial at the same moment, again and again.
                for _ in range(5):
                    for each in (first, second):
                        for connection in [*each.connections]:
                            connection.abort("the test breaks it")
                    await asyncio.sleep(0.05)
                await eventually(lambda: first.links["z"].is_up and second.links["a"].is_up)
                await asyncio.sleep(0.3)
                before = len(joined)
                await asyncio.sleep(0.5)
                assert len(joined) == before, "they go on ending one another's"
                async with dl.connect(address(first)) as client:
                    await client.confirm(5)

    run(main)
