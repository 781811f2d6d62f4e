"""Does a broker in the open bear a thousand connections that mean it harm?

Some say nothing, some a byte at a time, some half of a frame and no more; some say who they are and
then too much, too large, or nothing that is known; some spoil TLS. Meanwhile somebody honest
publishes and is told, in a process of their own, and must not notice.

    python -m tests.net.hostile --connections 1000 --seed 7
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from driftline.model.event import Event
from driftline.wire import asking
from driftline.wire.compact import write_record
from driftline.wire.forms import form_of
from driftline.wire.publishing import batch
from driftline.wire.stream import Kind, frame
from tests.net.honest import DOORS
from tests.net.hostile_http import HttpAttacker
from tests.net.processes import BrokerProcess, Brokers
from tests.net.secured import Authority

LIMITS = {"greeting": 2.0, "silence": 6.0, "strangers": 200, "unfinished_bytes": 32 << 20}
ACCESS = """
[[grants]]
who = ["honest"]
may = ["publish", "subscribe"]
on = ["honest"]
attributes = ["n"]

[[grants]]
who = ["hostile"]
may = ["publish", "subscribe"]
on = ["flood"]
attributes = ["*"]
"""
_AT_ONCE = 100
_HELD = 3.0
"""Seconds that a connection is held which only wants to be there."""


@dataclass(slots=True)
class Borne:
    """What was tried, and what came of it."""

    tried: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    honest: dict[str, dict[str, float]] = field(default_factory=dict)
    """By the door that they came by."""
    rss_before: int = 0
    rss_after: int = 0
    left: dict[str, Any] = field(default_factory=dict)


class Attacker:
    """Somebody who means harm, and has a token or none."""

    def __init__(self, host: str, port: int, token: str, trust: ssl.SSLContext, seed: int) -> None:
        self._where = (host, port)
        self._token = token
        self._trust = trust
        self._random = random.Random(seed)
        self.kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "says nothing": self._nothing,
            "half of TLS": self._half_of_tls,
            "no TLS": self._no_tls,
            "a byte at a time": self._drip,
            "half a greeting": self._half_a_greeting,
            "too large a greeting": self._large_greeting,
            "a wrong token": self._wrong_token,
            "half a frame": self._half_a_frame,
            "too large a frame": self._large_frame,
            "a flood of requests": self._requests,
            "a flood of events": self._events,
            "a flood of what comes once": self._once,
            "a flood of forms": self._forms,
            "a flood of pings": self._pings,
            "costly filters": self._costly,
            "long texts": self._long,
            "reads nothing": self._reads_nothing,
            "rubbish": self._rubbish,
            "forbidden things": self._forbidden,
        }

    async def _plain(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self._where)

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self._where, ssl=self._trust)

    async def _known(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await self._open()
        name = f"{self._random.getrandbits(64):x}"
        writer.write(frame(Kind.HELLO, asking.encode(asking.Hello(name, self._token, 1))))
        await asyncio.wait_for(reader.read(1 << 16), 10)
        return reader, writer

    async def _nothing(self) -> None:
        _, writer = await self._plain()
        await asyncio.sleep(_HELD)
        writer.transport.abort()

    async def _half_of_tls(self) -> None:
        _, writer = await self._plain()
        writer.write(bytes.fromhex("16030102000100") + bytes(100))
        await asyncio.sleep(_HELD)
        writer.transport.abort()

    async def _no_tls(self) -> None:
        reader, writer = await self._plain()
        writer.write(frame(Kind.HELLO, asking.encode(asking.Hello("x", self._token))))
        await asyncio.wait_for(reader.read(1 << 16), 10)
        writer.close()

    async def _drip(self) -> None:
        _, writer = await self._open()
        for byte in frame(Kind.HELLO, asking.encode(asking.Hello("x" * 50, self._token))):
            writer.write(bytes([byte]))
            await asyncio.sleep(0.05)

    async def _half_a_greeting(self) -> None:
        _, writer = await self._open()
        writer.write(frame(Kind.HELLO, asking.encode(asking.Hello("x", self._token)))[:20])
        await asyncio.sleep(_HELD)
        writer.transport.abort()

    async def _large_greeting(self) -> None:
        reader, writer = await self._open()
        writer.write(b"\xd2\x01\x01\x00\xff\xff\xff\x00" + bytes(1 << 16))
        await asyncio.wait_for(reader.read(1 << 16), 10)
        writer.close()

    async def _wrong_token(self) -> None:
        reader, writer = await self._open()
        wrong = self._token[:-4] + "AAAA"
        writer.write(frame(Kind.HELLO, asking.encode(asking.Hello("x", wrong))))
        await asyncio.wait_for(reader.read(1 << 16), 10)
        writer.close()

    async def _half_a_frame(self) -> None:
        _, writer = await self._known()
        writer.write(b"\xd2\x01\x04\x00" + (4 << 20).to_bytes(4, "little") + bytes(1 << 20))
        await asyncio.sleep(_HELD)
        writer.transport.abort()

    async def _large_frame(self) -> None:
        reader, writer = await self._known()
        writer.write(b"\xd2\x01\x04\x00\xff\xff\xff\x7f" + bytes(1 << 16))
        await asyncio.wait_for(reader.read(1 << 16), 10)
        writer.close()

    async def _requests(self) -> None:
        _, writer = await self._known()
        for at in range(300):
            text = f"SELECT * FROM flood WHERE x > {at} AND y LIKE '%{at}%'"
            writer.write(
                frame(Kind.REQUEST, asking.encode(asking.Subscribe(at, at, text, within=0)))
            )
        await writer.drain()
        await asyncio.sleep(0.2)
        writer.transport.abort()

    async def _events(self) -> None:
        _, writer = await self._known()
        event = Event("flood", {"x": 1, "text": "x" * 100})
        form = form_of(event)
        writer.write(frame(Kind.FORM, asking.encode_form(0, form)))
        records = write_record(event, 0, form) * 500
        for at in range(10):
            writer.write(frame(Kind.EVENTS, batch(at + 1, 500, 0, records)))
        with suppress(TimeoutError):
            await asyncio.wait_for(writer.drain(), 5)
        writer.transport.abort()

    async def _once(self) -> None:
        _, writer = await self._known()
        some = [
            Event("flood", {"x": at}, source="/flood", id=f"{self._random.getrandbits(64)}-{at}")
            for at in range(500)
        ]
        form = form_of(some[0])
        writer.write(frame(Kind.FORM, asking.encode_form(0, form)))
        records = b"".join(write_record(event, 0, form) for event in some)
        for at in range(4):
            writer.write(frame(Kind.ONCE, batch(at + 1, 500, 0, records)))
        with suppress(TimeoutError):
            await asyncio.wait_for(writer.drain(), 5)
        writer.transport.abort()

    async def _forms(self) -> None:
        """Many, each of many attributes that nobody had, and an event of each."""
        _, writer = await self._known()
        for at in range(200):
            event = Event("flood", {f"a{self._random.getrandbits(40):x}": 1 for _ in range(60)})
            form = form_of(event)
            writer.write(frame(Kind.FORM, asking.encode_form(at, form)))
            record = write_record(event, at, form)
            writer.write(frame(Kind.EVENTS, batch(at + 1, 1, 0, record)))
        with suppress(TimeoutError):
            await asyncio.wait_for(writer.drain(), 5)
        writer.transport.abort()

    async def _pings(self) -> None:
        _, writer = await self._known()
        writer.write(frame(Kind.PING, b"x" * 8) * 20_000)
        with suppress(TimeoutError):
            await asyncio.wait_for(writer.drain(), 5)
        writer.transport.abort()

    async def _long(self) -> None:
        """As long as a text may be, and again and again."""
        _, writer = await self._known()
        either = " OR ".join(f"(x > {at} AND text LIKE 'a{at}%')" for at in range(1600))
        for at in range(20):
            text = f"SELECT * FROM flood WHERE y = {at} OR {either}"
            writer.write(
                frame(Kind.REQUEST, asking.encode(asking.Subscribe(at, at, text, within=0)))
            )
        with suppress(TimeoutError):
            await asyncio.wait_for(writer.drain(), 5)
        await asyncio.sleep(0.5)
        writer.transport.abort()

    async def _costly(self) -> None:
        """Texts to search for in long texts, of which they have nearly all."""
        _, writer = await self._known()
        for at in range(50):
            text = f"SELECT * FROM flood WHERE text LIKE '%a%a%a%a{at}%b%'"
            writer.write(
                frame(Kind.REQUEST, asking.encode(asking.Subscribe(at, at, text, within=0)))
            )
        event = Event("flood", {"text": "a" * 4000})
        form = form_of(event)
        writer.write(frame(Kind.FORM, asking.encode_form(0, form)))
        writer.write(frame(Kind.EVENTS, batch(1, 100, 0, write_record(event, 0, form) * 100)))
        with suppress(TimeoutError):
            await asyncio.wait_for(writer.drain(), 5)
        await asyncio.sleep(0.2)
        writer.transport.abort()

    async def _reads_nothing(self) -> None:
        reader, writer = await self._known()
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        asked = asking.Subscribe(1, 1, "SELECT * FROM flood", within=0)
        writer.write(frame(Kind.REQUEST, asking.encode(asked)))
        await asyncio.sleep(_HELD)
        writer.transport.abort()

    async def _rubbish(self) -> None:
        reader, writer = await self._known()
        writer.write(self._random.randbytes(4096))
        await asyncio.wait_for(reader.read(1 << 16), 10)
        writer.close()

    async def _forbidden(self) -> None:
        _, writer = await self._known()
        asked = [
            asking.Subscribe(1, 1, "SELECT * FROM honest"),
            asking.Status(2),
            asking.Peer(3, "x", "127.0.0.1:1", "peer"),
            asking.Declare(4, "honest", "n"),
            asking.Set(5, 0, {}, durable="honest"),
        ]
        for one in asked:
            writer.write(frame(Kind.REQUEST, asking.encode(one)))
        await asyncio.sleep(0.1)
        writer.transport.abort()


async def _attack(
    kinds: dict[str, Callable[[], Awaitable[None]]], connections: int, borne: Borne
) -> None:
    """So many connections, of all kinds in turns, some at once."""
    names = list(kinds)
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(name: str) -> None:
        async with room:
            with suppress(OSError, TimeoutError, ssl.SSLError, asyncio.IncompleteReadError):
                await kinds[name]()
            borne.tried[name] += 1

    await asyncio.gather(*(one(names[at % len(names)]) for at in range(connections)))


def _honest(
    door: str, number: int, broker: BrokerProcess, authority: Authority, seconds: float
) -> subprocess.Popen[str]:
    """Somebody who means no harm, and has begun."""
    tcp = f"driftlines://127.0.0.1:{broker.port}"
    said = {
        "door": door,
        "address": tcp if door == "tcp" else f"https://127.0.0.1:{broker.http_port}",
        "token": authority.token("honest"),
        "authority": str(authority.folder / "ca.pem"),
        "seconds": seconds,
        # All are told what any of them publishes.
        "first": number * 1_000_000,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.net.honest", json.dumps(said)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def bear(
    folder: Path, connections: int, seed: int, *, niceness: int = 0
) -> tuple[Borne, BrokerProcess]:
    """Attack a broker of one's own, and say how it bore it.

    `niceness`: of this process, from when the broker and who is honest have theirs. Those who mean
    harm would be elsewhere, and not take the processors of these two.
    """
    authority = Authority(folder / "keys")
    access = folder / "access.toml"
    access.write_text(ACCESS)
    borne = Borne()
    with Brokers(folder) as brokers:
        broker = brokers.start(
            "b0",
            tls=authority.tls("b0"),
            tokens=authority.tokens(),
            access=str(access),
            limits=LIMITS,
            http={"listen": "127.0.0.1:0", "patience": 2.0, "connections": 300, "heartbeat": 2.0},
        )
        honest = {
            door: _honest(door, at, broker, authority, max(5.0, connections / 40))
            for at, door in enumerate(DOORS)
        }
        borne.rss_before = broker.ask("count")["rss"]
        os.nice(niceness)
        began = time.monotonic()
        who = authority.token("hostile"), authority.trust(), seed
        kinds = {
            **Attacker("127.0.0.1", broker.port, *who).kinds,
            **HttpAttacker("127.0.0.1", broker.http_port, *who).kinds,
        }
        asyncio.run(_attack(kinds, connections, borne))
        borne.seconds = time.monotonic() - began
        assert broker.is_up(), broker.errors
        for door, process in honest.items():
            out, _ = process.communicate(timeout=60)
            assert process.returncode == 0, door
            borne.honest[door] = json.loads(out)
        deadline = time.monotonic() + 30
        # The clients that requests of HTTP share stay a while.
        while time.monotonic() < deadline:
            left = broker.ask("count")
            if left["connections"] <= 2 and not left["http"]:
                break
            time.sleep(0.2)
        borne.left = left
        if left["http"]:
            borne.left["stacks"] = broker.ask("stacks")
        borne.rss_after = left["rss"]
        assert broker.ask("check") == "sound"
        assert broker.end() == 0, broker.errors
        assert "UNCAUGHT" not in broker.errors
        assert authority.token("hostile")[:20] not in broker.errors
    return borne, broker


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # Of connections that we spoil.
    with tempfile.TemporaryDirectory() as folder:
        borne, _ = bear(Path(folder), given.connections, given.seed, niceness=10)
    waited = ", ".join(f"{door} {one['p99']:.1f} ms" for door, one in borne.honest.items())
    print(f"99 of 100 who mean no harm waited no longer than: {waited}", file=sys.stderr)
    print(json.dumps({**asdict(replace(borne, tried=Counter())), "tried": borne.tried}, indent=2))


if __name__ == "__main__":
    main()
