"""Does an overlay of brokers go on as it should while one after the other is killed?

Three brokers in a row, each a process with a journal. Publishers and subscribers of every kind at
each of them; every so often a broker is killed, and begins again. What is told is checked as it
comes (`checking`), and in the end, when nobody publishes any more, everything that was acknowledged
must have been told. Memory must not grow.

    python -m tests.net.soak --minutes 30 --every 60 --json soak.json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import driftline as dl
from driftline.broker.links import Role
from driftline.client.client import Client
from tests.net.checking import Mover, Published, Publisher, Reader, RowPublisher, Rows, Wrong
from tests.net.processes import BrokerProcess, Brokers

SETTLE_WITHIN = 60.0
YOUNG = 25.0
"""So many seconds a process is still growing into its work, and is not measured."""
SLOPE_MOST = 1 << 20
"""Bytes a minute."""
_KEYS = 20


@dataclass(slots=True)
class Soaked:
    """What came of it."""

    seed: int
    seconds: float = 0.0
    kills: int = 0
    published: int = 0
    told: int = 0
    told_twice: int = 0
    moves: int = 0
    rows: int = 0
    gaps: int = 0
    rss_mib: dict[str, float] = field(default_factory=dict)
    rss_slope_mib_per_minute: dict[str, float] = field(default_factory=dict)
    restart_seconds_most: float = 0.0
    wrong: list[str] = field(default_factory=list)


class Memory:
    """What brokers have in use, over time."""

    def __init__(self) -> None:
        self.seen: dict[str, list[tuple[float, int]]] = {}
        self.born: dict[str, float] = {}

    def look(self, brokers: list[BrokerProcess], now: float) -> None:
        """Note it, of those that are old enough."""
        for one in brokers:
            if one.is_up() and now - self.born.get(one.name, now) > YOUNG:
                self.seen.setdefault(one.name, []).append((now, one.rss()))

    def slope(self, name: str) -> float:
        """Bytes a minute, by least squares."""
        points = self.seen.get(name, [])
        if len(points) < 10:
            return 0.0
        mean_t = sum(t for t, _ in points) / len(points)
        mean_b = sum(b for _, b in points) / len(points)
        spread = sum((t - mean_t) ** 2 for t, _ in points)
        return 60 * sum((t - mean_t) * (b - mean_b) for t, b in points) / spread


class Soak:
    """One run."""

    def __init__(
        self, brokers: Brokers, seed: int, say: Callable[[str], None], rate: float = 100.0
    ) -> None:
        self._brokers = brokers
        self._draw = random.Random(seed)
        self._say = say
        self._rate = rate
        self._wrong = Wrong()
        self._memory = Memory()
        self._over = asyncio.Event()
        self.done = Soaked(seed)
        self._publishers: list[Publisher] = []
        self._readers: list[Reader] = []
        self._movers: list[Mover] = []
        self._rows: list[Rows] = []

    @property
    def _published(self) -> list[Published]:
        return [one.done for one in self._publishers]

    async def run(self, seconds: float, every: float) -> Soaked:
        """Let it go on for so long, with a kill every so many seconds."""
        links = [("b0", "b1", Role.PEER), ("b1", "b2", Role.PEER)]
        make = self._brokers.overlay
        processes = await asyncio.to_thread(make, links, ["b0", "b1", "b2"])
        begun = time.monotonic()
        for one in processes:
            self._memory.born[one.name] = begun
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(_connect(one)) for one in processes]
            reading = await self._subscribe(clients)
            writing = self._begin(clients)
            await self._trouble(processes, begun, seconds, every)
            self._over.set()
            await asyncio.wait_for(asyncio.gather(*writing), SETTLE_WITHIN)
            await self._settle(clients)
            for task in reading:
                task.cancel()
            found = await asyncio.gather(*reading, return_exceptions=True)
            for problem in found:
                if isinstance(problem, Exception):
                    self._wrong.note(f"a reader ended: {problem!r}")
        self._report(processes, time.monotonic() - begun)
        return self.done

    async def _subscribe(self, clients: list[Client]) -> list[asyncio.Task[None]]:
        wrong = self._wrong
        await clients[1].declare("t", "k")
        for at, client in enumerate(clients):
            kept = await client.subscribe(
                "SELECT * FROM q WHERE x < 5", durable=f"kept{at}", within=30
            )
            self._readers.append(Reader(f"durable{at}", kept, wrong, range(5), durable=True))
            plain = await client.subscribe("SELECT * FROM q WHERE x >= 5", within=30)
            self._readers.append(Reader(f"plain{at}", plain, wrong, range(5, 10), durable=False))
            moving = await client.subscribe("SELECT * FROM q WHERE x >= :low", {"low": 5}, within=2)
            self._movers.append(Mover(f"mover{at}", moving, wrong))
            rows = await client.subscribe("SELECT k, y FROM t WHERE y >= 0", rows=True)
            self._rows.append(Rows(f"rows{at}", rows, wrong))
        total = await clients[2].subscribe("SELECT COUNT(*), SUM(y) FROM t")
        self._rows.append(Rows("total", total, wrong))
        readers: list[Any] = [*self._readers, *self._movers, *self._rows]
        return [asyncio.create_task(one.run()) for one in readers]

    def _begin(self, clients: list[Client]) -> list[asyncio.Task[None]]:
        self._publishers = [Publisher(one, f"p{at}") for at, one in enumerate(clients)]
        for reader in self._readers:
            reader.begins(self._published)
        self._row_publisher = RowPublisher(clients[0], _KEYS)
        work: list[Awaitable[None]] = [
            *(one.run(self._rate, self._over) for one in self._publishers),
            *(one.move(random.Random(self._draw.random()), self._over) for one in self._movers),
            self._row_publisher.run(self._over),
        ]
        return [asyncio.ensure_future(one) for one in work]

    async def _trouble(
        self, processes: list[BrokerProcess], begun: float, seconds: float, every: float
    ) -> None:
        kills_at = begun + every
        while (now := time.monotonic()) < begun + seconds:
            if now >= kills_at and now + every / 2 < begun + seconds:
                kills_at = now + every
                await self._kill(self._draw.choice(processes))
            self._memory.look(processes, time.monotonic())
            self._progress(now - begun)
            if self._wrong.found:
                return
            await asyncio.sleep(1)

    async def _kill(self, one: BrokerProcess) -> None:
        self.done.kills += 1
        one.kill()
        await asyncio.sleep(self._draw.uniform(0, 2))
        begun = time.monotonic()
        await asyncio.to_thread(one.restart)
        took = time.monotonic() - begun
        self.done.restart_seconds_most = max(self.done.restart_seconds_most, took)
        self._memory.born[one.name] = time.monotonic()

    def _progress(self, seconds: float) -> None:
        acked = sum(one.acked for one in self._published)
        told = sum(one.count for one in self._readers)
        use = ", ".join(
            f"{name} {points[-1][1] >> 20} MiB" for name, points in self._memory.seen.items()
        )
        self._say(f"{seconds:5.0f} s: {acked:,} acknowledged, {told:,} told, "
                  f"{self.done.kills} kills; {use}")  # fmt: skip

    async def _settle(self, clients: list[Client]) -> None:
        """Wait until everything has come that must, or it is clear that it does not."""
        for client in clients:
            await client.confirm(within=30)
        # What is published now comes behind everything, on every way.
        for publisher in self._publishers:
            await publisher.some(10)
        deadline = time.monotonic() + SETTLE_WITHIN
        left = self._left()
        while left and time.monotonic() < deadline and not self._wrong.found:
            await asyncio.sleep(0.1)
            left = self._left()
        for one in left:
            self._wrong.note(one)

    def _left(self) -> list[str]:
        left = [one.missing(self._published) for one in self._readers]
        rows = self._row_publisher.rows
        for one in self._rows:
            if one.name == "total":
                total = sum(row["y"] for row in rows.values())
                wanted: Any = {None: {"COUNT(*)": len(rows), "SUM(y)": total}}
            else:
                wanted = rows
            if one.known != wanted:
                left.append(f"{one.name}: knows {one.known} and should {wanted}")
        return [one for one in left if one]

    def _report(self, processes: list[BrokerProcess], seconds: float) -> None:
        done = self.done
        done.seconds = round(seconds, 1)
        done.published = sum(one.acked for one in self._published)
        done.told = sum(one.count for one in (*self._readers, *self._movers))
        done.told_twice = sum(one.twice for one in self._readers)
        done.moves = sum(one.moves for one in self._movers)
        done.rows = self._row_publisher._count
        done.gaps = sum(one.gaps for one in (*self._readers, *self._movers, *self._rows))
        for one in processes:
            done.rss_mib[one.name] = round(one.rss() / (1 << 20), 1)
            slope = self._memory.slope(one.name)
            done.rss_slope_mib_per_minute[one.name] = round(slope / (1 << 20), 3)
            long = (self._memory.seen.get(one.name) or [(0.0, 0)])[-1][0]
            first = (self._memory.seen.get(one.name) or [(0.0, 0)])[0][0]
            if long - first > 300 and slope > SLOPE_MOST:
                self._wrong.note(
                    f"{one.name}: memory grows by {slope / (1 << 20):.2f} MiB a minute"
                )
        done.wrong = self._wrong.found


def _connect(one: BrokerProcess) -> Any:
    return dl.connect(one.address, name=f"client-{one.name}")


def soak(
    folder: Path, seconds: float, every: float, seed: int, say: Callable[[str], None]
) -> Soaked:
    """One run in a folder."""
    with Brokers(folder) as brokers:
        return asyncio.run(Soak(brokers, seed, say).run(seconds, every))


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between kills")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print(f"seed {given.seed}: replay with --seed {given.seed}", flush=True)
    said = 0.0

    def say(line: str) -> None:
        nonlocal said
        if time.monotonic() - said > 10:
            said = time.monotonic()
            print(line, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        done = soak(Path(folder), 60 * given.minutes, given.every, given.seed, say)
    report = json.dumps(asdict(done), indent=2)
    print(report)
    if given.json:
        given.json.write_text(report + "\n")
    if done.wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
