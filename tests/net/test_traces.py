"""Does the trace of an event arrive wherever the event does, whichever way it takes?"""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

import pytest

import driftline as dl
from driftline.broker.links import Role
from driftline.client.client import Client
from driftline.errors import InvalidValue
from driftline.wire.compact import write_record
from driftline.wire.forms import form_of
from tests.net.here import address, served
from tests.net.processes import Brokers
from tests.net.test_server import Raw, run

TEXTS = {
    "quickly": "SELECT * FROM quote",  # as kernels do it, all the way
    "selected": "SELECT price FROM bid WHERE price > 0",
    "slowly": "SELECT * FROM drift WHERE price > elapsed()",  # event by event
    "pattern": "SELECT * FROM one THEN SELECT * FROM two",
}


def trace(n: int) -> str:
    return f"00-{n + 1:032x}-{n + 1:016x}-01"


def test_over_a_link_and_through_a_crash_it_is_told_with_the_event(tmp_path: Path) -> None:
    async def test() -> None:
        with Brokers(tmp_path) as brokers:
            near, far = brokers.overlay([("b0", "b1", Role.PEER)], ["b0", "b1"])
            async with dl.connect(near.address) as p:
                async with dl.connect(far.address) as c:
                    # They go on while nobody is connected.
                    for name, text in TEXTS.items():
                        await (await c.subscribe(text, durable=name)).detach()
                    async with c.subscribe("SELECT * FROM quote") as passing:
                        events = [
                            dl.Event(type, {"price": 10.0 + n}, time=n, trace=trace(n))
                            for n, type in enumerate(("quote", "bid", "drift", "one", "two"))
                        ]
                        await p.publish_many(events)
                        await p.publish(dl.Event("quote", {"n": 7}), trace=trace(7) + " v=1")
                        await p.publish(dl.Event("quote", {"n": 8}))
                        seen = [await passing.next(10) for _ in range(3)]
                        assert [n.trace for n in seen] == [trace(0), f"{trace(7)} v=1", None]
                        await _kept(c, 6)
            far.kill()
            far.restart()
            async with dl.connect(far.address) as c:
                found: dict[str, str | None] = {}
                for name, text in TEXTS.items():
                    async with c.subscribe(text, durable=name) as s:
                        found[name] = (await s.next(10)).trace
                async with c.subscribe(TEXTS["pattern"], durable="again") as s:
                    await c.publish_many(events[3:])
                    assert [one.trace for one in (await s.next(10)).events] == [trace(3), trace(4)]
            ways = ("quickly", "selected", "slowly", "pattern")
            assert found == dict(zip(ways, map(trace, (0, 1, 2, 4)), strict=True))

    run(test)


def test_what_a_view_tells_has_the_trace_of_what_caused_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(journal=str(tmp_path / "j")) as server, dl.connect(address(server)) as c:
            await c.declare("stock", "k")
            await c.publish(dl.Event("stock", {"k": 1, "x": 5}), trace=trace(1))
            texts = ("SELECT min(x) AS least FROM stock WHERE x < 100", "SELECT * FROM stock")
            least = await c.subscribe(texts[0], durable="least")
            rows = await c.subscribe(texts[1], rows=True)
            moved = await c.subscribe("SELECT * FROM tick WHERE moved(x, by => 2)")
            for s in (least, rows):
                assert [one.trace for one in await s.snapshot(5)] == [None]
            await c.publish(dl.Event("stock", {"k": 2, "x": 4}), trace=trace(2))
            for s in (least, rows):
                assert (await s.next(5)).trace == trace(2)
            for n, x in enumerate((1, 2, 3)):
                await c.publish(dl.Event("tick", {"x": x}), trace=trace(n))
            assert [(await moved.next(5)).trace for _ in range(2)] == [trace(0), trace(2)]

    run(test)


async def _kept(c: Client, count: int) -> None:
    """Wait until so much is."""
    while (await c.status())["kept"] < count:
        await asyncio.sleep(0.02)


def test_what_is_no_trace_is_refused_here_and_left_out_there() -> None:
    async def test() -> None:
        async with served() as server, dl.connect(address(server)) as c:
            async with c.subscribe("SELECT * FROM q") as s:
                with pytest.raises(InvalidValue, match="trace"):
                    await c.publish(dl.Event("q", {"n": 1}), trace="t")
                async with Raw(server) as raw:
                    # One who writes bytes may write anything.
                    good = dl.Event("q", {"n": 2}, trace=trace(2))
                    raw.publish(1, 1, good, good.with_trace(None))
                    assert [(await s.next(5)).trace for _ in range(2)] == [trace(2), None]
                    bad = garbled(good)
                    raw.publish_records(2, 3, good, bad)
                    told = await s.next(5)
                    assert (told.trace, told.values) == (None, {"n": 2})

    run(test)


def garbled(event: dl.Event) -> bytes:
    """Its record, with 60,000 bytes that are no trace."""
    raw = write_record(event, 0, form_of(event))
    assert event.trace is not None
    size, long = struct.pack("<H", 55), b"x" * 60_000
    found = raw.replace(size + event.trace.encode(), struct.pack("<H", len(long)) + long)
    return struct.pack("<I", len(found)) + found[4:]
