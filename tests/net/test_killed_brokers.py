"""Is anything lost that was acknowledged, when brokers are killed, stopped or run out of room?"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import resource
import shutil
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import driftline as dl
from driftline.broker.links import Role
from driftline.client.client import Client
from driftline.errors import NotEffective, Unreachable
from tests.net.checking import Mover, Publisher, Reader, Wrong
from tests.net.here import eventually
from tests.net.processes import BrokerProcess, Brokers
from tests.net.serving_process import REFUSED

PAIR = [("b0", "b1", Role.PEER)]


def run(test: Callable[[], Awaitable[None]], within: float = 120.0) -> None:
    asyncio.run(asyncio.wait_for(test(), within))


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Brokers]:
    with Brokers(tmp_path) as made:
        yield made


async def _come(reader: Reader, publisher: Publisher, within: float = 30.0) -> None:
    """Wait until all that was acknowledged was told."""
    await eventually(lambda: not reader.missing([publisher.done]), within)


@contextlib.asynccontextmanager
async def _reading(*readers: Any) -> Any:
    tasks = [asyncio.create_task(one.run()) for one in readers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for problem in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(problem, Exception):
                raise problem


class _Names:
    """Subscribes durably under new names, and moves each; knows what was acknowledged of it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.lows: dict[str, set[int]] = {}
        self.acked: set[str] = set()

    async def run(self, over: asyncio.Event) -> None:
        while not over.is_set():
            name = f"n{len(self.lows)}"
            self.lows[name] = {1}
            try:
                one = await self._client.subscribe(
                    "SELECT * FROM r WHERE x >= :low", {"low": 1}, durable=name
                )
                self.acked.add(name)
                self.lows[name] = {1, 2}
                await one.set(low=2)
                self.lows[name] = {2}
                await one.detach()
            except (Unreachable, NotEffective):
                continue  # Nobody knows what became of it.
            await asyncio.sleep(0.02)


def test_nothing_acknowledged_is_lost_when_a_broker_is_killed(brokers: Brokers, seed: int) -> None:
    """While events, subscriptions and parameters come; it begins again, and clients by themselves
    go on.
    """
    draw, wrong = random.Random(seed), Wrong()

    async def main() -> None:
        broker = brokers.start("b0")
        over = asyncio.Event()
        async with (
            dl.connect(broker.address, name="reader") as reading,
            dl.connect(broker.address, name="writer") as writing,
        ):
            kept = await reading.subscribe("SELECT * FROM q WHERE x < 5", durable="kept")
            durable = Reader("durable", kept, wrong, range(5), durable=True)
            told = await reading.subscribe("SELECT * FROM q WHERE x >= 5")
            plain = Reader("plain", told, wrong, range(5, 10), durable=False)
            moving = await reading.subscribe("SELECT * FROM q WHERE x >= :low", {"low": 5})
            mover = Mover("mover", moving, wrong)
            publisher, names = Publisher(writing, "p"), _Names(writing)
            async with _reading(durable, plain, mover):
                working = [
                    asyncio.create_task(publisher.run(500, over)),
                    asyncio.create_task(mover.move(draw, over)),
                    asyncio.create_task(names.run(over)),
                ]
                for _ in range(3):
                    await asyncio.sleep(draw.uniform(0.3, 1))
                    broker.kill()
                    await asyncio.to_thread(broker.restart)
                    await eventually(lambda: reading.is_connected and writing.is_connected)
                await asyncio.sleep(0.5)
                over.set()
                await asyncio.gather(*working)
                await publisher.some(10)
                await _come(durable, publisher)
                await _come(plain, publisher)
            assert not wrong.found, wrong.found
            assert plain.gaps >= 3
            assert publisher.done.acked > 300
            assert names.acked
            for name in sorted(names.lows):
                one = await reading.subscribe(
                    "SELECT * FROM r WHERE x >= :low", {"low": 9}, durable=name
                )
                assert one.resumed or name not in names.acked, name
            assert broker.ask("check") == "sound"

    run(main)


def test_what_was_acknowledged_before_the_last_kill_is_told_to_somebody_new(
    brokers: Brokers,
) -> None:
    """In order, with numbers, and from where the last reader said it had come."""

    async def main() -> None:
        broker = brokers.start("b0")
        async with dl.connect(broker.address) as client:
            kept = await client.subscribe("SELECT * FROM q", durable="kept", ack="manual")
            for n in range(20):
                await client.publish(dl.Event("q", {"n": n}))
            first = [await kept.next(5) for _ in range(10)]
            await kept.ack(first[4])
            await client.confirm()
        broker.kill()
        broker.restart()
        async with dl.connect(broker.address) as client:
            kept = await client.subscribe("SELECT * FROM q", durable="kept")
            assert kept.resumed
            rest = [await kept.next(5) for _ in range(15)]
            assert [one.values["n"] for one in rest] == [*range(5, 20)]
            assert [one.number for one in rest[:5]] == [one.number for one in first[5:]]
            numbers = [one.number for one in rest]
            assert numbers == sorted(set(numbers))
            with pytest.raises(TimeoutError):
                await kept.next(0.2)

    run(main)


def test_a_broker_that_is_stopped_for_a_while_misses_nothing(brokers: Brokers) -> None:
    wrong = Wrong()

    async def main() -> None:
        one, two = brokers.overlay(PAIR, ["b0", "b1"])
        async with dl.connect(one.address) as writing, dl.connect(two.address) as reading:
            kept = await reading.subscribe("SELECT * FROM q WHERE x < 5", durable="kept")
            durable = Reader("durable", kept, wrong, range(5), durable=True)
            told = await reading.subscribe("SELECT * FROM q WHERE x >= 5")
            plain = Reader("plain", told, wrong, range(5, 10), durable=False)
            publisher, over = Publisher(writing, "p"), asyncio.Event()
            async with _reading(durable, plain):
                working = asyncio.create_task(publisher.run(500, over))
                await asyncio.sleep(0.5)
                two.pause()
                before = publisher.done.acked
                dialling = asyncio.create_task(dl.connect(two.address, within=30).open())
                await asyncio.sleep(2.5)
                # Others go on meanwhile.
                assert publisher.done.acked > before + 100
                with pytest.raises(NotEffective, match="b1"):
                    await writing.confirm(0.3)
                two.resume()
                late = await dialling
                over.set()
                await working
                await publisher.some(10)
                await _come(durable, publisher)
                await _come(plain, publisher)
                await writing.confirm()
                await late.confirm()
                await late.close()
            assert not wrong.found, wrong.found
            assert not plain.gaps

    run(main)


# The disk


def _limited(broker: BrokerProcess, folder: Path) -> Callable[[], None]:
    """Let no file of a broker's grow any more; what undoes it."""
    sizes = [one.stat().st_size for one in folder.glob("b0.journal*")]
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (max(sizes), resource.RLIM_INFINITY))
    infinite = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    return lambda: resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, infinite) and None


def _filled(broker: BrokerProcess, folder: Path) -> Callable[[], None]:
    """Fill the disk; what undoes it."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return filler.unlink


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(made, capture_output=True).returncode:
        pytest.skip("no file system of a few megabytes can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_waited_for(small_disk: Path) -> None:
    _wait_for_room(small_disk, _filled)


def test_files_that_may_not_grow_are_waited_for(tmp_path: Path) -> None:
    _wait_for_room(tmp_path, _limited)


def _wait_for_room(folder: Path, fill: Callable[[BrokerProcess, Path], Callable[[], None]]) -> None:
    """Nothing is acknowledged while nothing can be stored; then everything is."""
    wrong = Wrong()

    async def main(brokers: Brokers) -> None:
        broker = brokers.start("b0")
        async with (
            dl.connect(broker.address) as writing,
            dl.connect(broker.address) as reading,
        ):
            kept = await reading.subscribe("SELECT * FROM q WHERE x < 5", durable="kept")
            durable = Reader("durable", kept, wrong, range(5), durable=True)
            publisher = Publisher(writing, "p")
            async with _reading(durable):
                await publisher.some(20)
                await _come(durable, publisher)
                heal = fill(broker, folder)
                try:
                    # Until there is no room left in files that have some.
                    while True:
                        more = asyncio.ensure_future(publisher.some(500))
                        done, _ = await asyncio.wait([more], timeout=2)
                        if not done:
                            break
                    assert (await reading.status())["trouble"]
                    acked, count = publisher.done.acked, durable.count
                    subscribing = asyncio.ensure_future(_durable(writing))
                    await asyncio.sleep(1)
                    assert (publisher.done.acked, durable.count) == (acked, count)
                    assert not subscribing.done()
                finally:
                    heal()
                await asyncio.wait_for(more, 30)
                await asyncio.wait_for(subscribing, 30)
                await publisher.some(10)
                await _come(durable, publisher)
                assert not (await reading.status())["trouble"]
            broker.kill()
            await asyncio.to_thread(broker.restart)
            async with dl.connect(broker.address) as client:
                assert (await _durable(client)).resumed
        assert not wrong.found, wrong.found

    with Brokers(folder) as brokers:
        asyncio.run(asyncio.wait_for(main(brokers), 120))


async def _durable(client: Client) -> Any:
    return await client.subscribe("SELECT * FROM r", durable="late", within=30)


def test_a_journal_that_was_damaged_is_refused_with_a_reason(
    brokers: Brokers, tmp_path: Path
) -> None:
    async def main() -> None:
        broker = brokers.start("b0")
        async with dl.connect(broker.address) as client:
            await client.subscribe("SELECT * FROM q", durable="kept")
            await client.publish_many(dl.Event("q", {"n": n}) for n in range(500))
        broker.end()
        journal = tmp_path / "b0.journal"
        sound = journal.read_bytes()
        harmed = bytearray(sound)
        for page in range(4096, len(harmed), 4096):
            harmed[page + 4090] ^= 0x10
        journal.write_bytes(harmed)
        broker.launch()
        assert broker.wait(60) == REFUSED
        said = broker.errors
        assert "JournalDamaged" in said
        assert str(journal) in said
        assert "restore a backup" in said
        journal.write_bytes(sound)
        broker.restart()

    run(main)


# Clocks


@pytest.mark.slow
def test_brokers_whose_clocks_differ_by_an_hour_understand_one_another(tmp_path: Path) -> None:
    """Also when one comes back with its clock set right, far behind what it was."""
    hour, wrong = 3_600_000_000, Wrong()

    async def main(brokers: Brokers) -> None:
        one = brokers.start("b0", awaited={"b1": "peer"}, skew=hour)
        two = brokers.start("b1", {"b0": "peer"}, skew=-hour)
        async with dl.connect(one.address) as writing, dl.connect(two.address) as reading:
            kept = await reading.subscribe("SELECT * FROM q WHERE x < 5", durable="kept")
            durable = Reader("durable", kept, wrong, range(5), durable=True)
            publisher = Publisher(writing, "p")
            async with _reading(durable):
                await publisher.some(50)
                await _come(durable, publisher)
                for process in (one, two):
                    process.kill()
                    process.said["skew"] = 0
                    await asyncio.to_thread(process.restart)
                    await publisher.some(50)
                    await _come(durable, publisher)
        assert not wrong.found, wrong.found

    with Brokers(tmp_path) as brokers:
        asyncio.run(asyncio.wait_for(main(brokers), 120))


# Networks


class _Spaces:
    """Two namespaces, each reached from here, and a cable between them."""

    def __init__(self) -> None:
        self._id = f"dl{os.getpid() % 100_000}"
        self.names = [f"{self._id}a", f"{self._id}b"]

    def __enter__(self) -> _Spaces:
        a, b = self.names
        try:
            for at, name in enumerate(self.names):
                self._ip(f"netns add {name}")
                self._ip(f"link add {name}h type veth peer name eth netns {name}")
                self._ip(f"addr add 10.97.{at}.1/24 dev {name}h")
                self._ip(f"link set {name}h up")
                self._ip(f"-n {name} addr add 10.97.{at}.2/24 dev eth")
                self._ip(f"-n {name} link set eth up")
                self._ip(f"-n {name} link set lo up")
            self._ip(f"-n {a} link add cable type veth peer name cable netns {b}")
            for at, name in enumerate(self.names):
                self._ip(f"-n {name} addr add 10.97.9.{at + 1}/24 dev cable")
                self._ip(f"-n {name} link set cable up")
        except OSError as problem:
            self.__exit__()
            pytest.skip(f"no network namespaces here: {problem}")
        return self

    def cut(self, *, healed: bool = False) -> None:
        self._ip(f"-n {self.names[0]} link set cable {'up' if healed else 'down'}")

    def _ip(self, words: str) -> None:
        if shutil.which("ip") is None:
            raise OSError("no ip")
        done = subprocess.run(["ip", *words.split()], capture_output=True, text=True)
        if done.returncode:
            raise OSError(done.stderr.strip())

    def __exit__(self, *_: object) -> None:
        for name in self.names:
            with contextlib.suppress(OSError):
                self._ip(f"netns del {name}")


def test_a_partition_heals(tmp_path: Path) -> None:
    """The cable between two brokers is cut, and comes back: nothing is lost, and nobody is told of
    a gap.
    """
    wrong = Wrong()

    async def main(brokers: Brokers, spaces: _Spaces) -> None:
        inside = [["ip", "netns", "exec", name] for name in spaces.names]
        one = brokers.start("b0", awaited={"b1": "peer"}, host="0.0.0.0", prefix=inside[0])
        two = brokers.define("b1", host="0.0.0.0", prefix=inside[1])
        peer = {"name": "b0", "role": "peer", "address": f"10.97.9.1:{one.port}"}
        two.said["peers"] = [peer]
        two.launch()
        two.ready()
        async with (
            dl.connect(f"driftline://10.97.0.2:{one.port}") as writing,
            dl.connect(f"driftline://10.97.1.2:{two.port}") as reading,
        ):
            kept = await reading.subscribe("SELECT * FROM q WHERE x < 5", durable="kept")
            durable = Reader("durable", kept, wrong, range(5), durable=True)
            told = await reading.subscribe("SELECT * FROM q WHERE x >= 5")
            plain = Reader("plain", told, wrong, range(5, 10), durable=False)
            publisher, over = Publisher(writing, "p"), asyncio.Event()
            async with _reading(durable, plain):
                working = asyncio.create_task(publisher.run(200, over))
                await asyncio.sleep(0.5)
                spaces.cut()
                before = publisher.done.acked
                with pytest.raises(NotEffective, match="b1"):
                    await writing.confirm(1)
                late = asyncio.create_task(_subscribed(reading))
                await asyncio.sleep(3)
                assert publisher.done.acked > before + 100
                spaces.cut(healed=True)
                begun = time.monotonic()
                over.set()
                await working
                await publisher.some(10)
                await _come(durable, publisher)
                await _come(plain, publisher)
                print(f"healed in {time.monotonic() - begun:.1f} s")
                await (await late).cancel()
                await writing.confirm()
            assert not wrong.found, wrong.found
            assert not plain.gaps

    with _Spaces() as spaces, Brokers(tmp_path) as brokers:
        asyncio.run(asyncio.wait_for(main(brokers, spaces), 120))


async def _subscribed(client: Client) -> Any:
    return await client.subscribe("SELECT * FROM somethingelse", within=60)
