"""Does a running broker bear tens of thousands of hostile frames? `make fuzz-broker` sends more."""

from __future__ import annotations

import asyncio
from pathlib import Path

import driftline as dl
from tests.net.fuzz import LIMITS, NEIGHBOUR, fuzz, settled
from tests.net.processes import BrokerProcess, Brokers

FRAMES = 20_000
GROWTH_MOST = 48 << 20
"""Bytes: forms that were made up stay known, up to a limit."""


def test_a_broker_bears_hostile_frames(tmp_path: Path, seed: int) -> None:
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b0", awaited={NEIGHBOUR: "peer"}, limits=LIMITS)
        done = fuzz(broker, FRAMES, seed)
        settled(broker, done)
        print(done)
        left = done.counted
        assert left["connections"] == left["guests"] == left["attached"] == left["watched"] == 0
        assert left["awaited"] == left["policies"] == left["behind"] == 0
        assert left["parties"] <= LIMITS["durable"]
        assert left["tasks"] == left["links"] == 1
        assert done.rss_after - done.rss_before < GROWTH_MOST
        assert broker.ask("check") == "sound"
        asyncio.run(asyncio.wait_for(_honest(broker), 60))


async def _honest(broker: BrokerProcess) -> None:
    """Somebody who means well is served as ever."""
    async with dl.connect(broker.address) as client:
        await client.unpeer(NEIGHBOUR)
        told = await client.subscribe("SELECT * FROM fair WHERE x > :low", {"low": 1})
        await client.declare("fairtable", "k")
        rows = await client.subscribe("SELECT * FROM fairtable", rows=True)
        for x in range(4):
            await client.publish(dl.Event("fair", {"x": x, "new": "form"}))
            await client.publish(dl.Event("fairtable", {"k": x}))
        assert [(await told.next(10)).values["x"] for _ in range(2)] == [2, 3]
        assert [(await rows.next(10)).key for _ in range(4)] == [0, 1, 2, 3]
        await told.set(low=2)
        await client.publish(dl.Event("fair", {"x": 2, "new": "form"}))
        await client.publish(dl.Event("fair", {"x": 9, "new": "form"}))
        assert (await told.next(10)).values["x"] == 9
