"""Is everything that was acknowledged there after a power loss, and nothing half?"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import pytest

from driftline.broker.effects import Key
from driftline.errors import JournalDamaged
from driftline.net.journal.journal import Journal
from driftline.net.journal.sqlite import SqliteJournal

pytest.importorskip("apsw", reason="a dependency of development: make setup")

from tests.net.journal.power import Disk, Watched

COMMITS = 60


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory if that can be: what is safe is what `Disk` says, and syncs take time."""
    made = Path(mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    yield made
    shutil.rmtree(made)


class Run:
    """A journal on a watched disk, and what it must be after each commit."""

    def __init__(self, folder: Path, seed: int, instead: dict[str, str] | None = None) -> None:
        self.draw = random.Random(seed)
        self.path = folder / "b.journal"
        self.again = folder / "again"
        self.disk = Disk()
        SqliteJournal(str(self.path), "b").close()
        self.disk.safe = {self.path.name: self.path.read_bytes()}
        self.wanted: list[dict[Key, object]] = [{}]
        self.acknowledged = 0
        self.checked = 0
        self.chance = 0.0
        self.disk.happened = self._may_fail
        # A short log, so that it is moved into the file and begun anew again and again.
        short = {"PRAGMA wal_autocheckpoint = 1000": "PRAGMA wal_autocheckpoint = 12"}
        watched = partial(Watched, disk=self.disk, instead={**short, **(instead or {})})
        self.journal: Journal = SqliteJournal(str(self.path), "b", watched)

    def run(self, chance: float) -> None:
        self.chance = chance
        for number in range(COMMITS):
            stores = [self._store(number) for _ in range(self.draw.choice((1, 1, 3)))]
            after = dict(self.wanted[-1])
            for store in stores:
                for key, value in store.items():
                    after.pop(key, None) if value is None else after.update({key: value})
            self.wanted.append(after)
            self.journal.commit(stores)
            self.acknowledged += 1
        self.chance = 0.0
        self.journal.close()

    def _store(self, number: int) -> dict[Key, object]:
        draw = self.draw
        made: dict[Key, object] = {("latest",): number}
        for _ in range(draw.randrange(4)):
            kind, key = draw.choice(("seen", "kept")), str(draw.randrange(12))
            value: object = draw.randrange(1000)
            if kind == "kept":
                value = draw.randbytes(draw.choice((5, 300, 9000, 40_000)))
            made[kind, key] = None if draw.random() < 0.3 else value
        return made

    def _may_fail(self) -> None:
        if self.draw.random() >= self.chance:
            return
        self.checked += 1
        shutil.rmtree(self.again, ignore_errors=True)
        self.again.mkdir()
        for name, data in self.disk.after_power_loss(self.draw).items():
            (self.again / name).write_bytes(data)
        (self.again / "b.journal.lock").write_text("1\nknown")
        journal = SqliteJournal(str(self.again / "b.journal"), "b")
        try:
            found = journal.load()
        finally:
            journal.close()
        assert found in self.wanted[self.acknowledged :], (
            f"acknowledged {self.acknowledged}, found {found.get(('latest',))}"
        )


@pytest.mark.parametrize("seed", range(6))
def test_what_was_acknowledged_survives(folder: Path, seed: int) -> None:
    run = Run(folder, seed)
    run.run(0.15)
    assert run.checked > 50


@pytest.mark.parametrize("seed", range(3))
def test_a_journal_that_is_just_being_made_can_be_made_again(folder: Path, seed: int) -> None:
    draw, disk, checked = random.Random(seed), Disk(), 0

    def fails() -> None:
        nonlocal checked
        checked += 1
        again = folder / "again"
        shutil.rmtree(again, ignore_errors=True)
        again.mkdir()
        for name, data in disk.after_power_loss(draw).items():
            (again / name).write_bytes(data)
        journal = SqliteJournal(str(again / "b.journal"), "b")
        assert journal.load() == {}
        assert journal.incarnation() == 1
        journal.close()

    disk.happened = fails
    made = SqliteJournal(str(folder / "b.journal"), "b", partial(Watched, disk=disk, instead={}))
    assert checked > 10
    disk.happened = lambda: None
    made.close()


@pytest.mark.parametrize("level", ["OFF", "NORMAL"])
def test_a_journal_that_does_not_sync_is_caught(folder: Path, level: str) -> None:
    less = {"PRAGMA synchronous = FULL": f"PRAGMA synchronous = {level}"}
    with pytest.raises((AssertionError, JournalDamaged)):
        _run_often(folder, less)


def _run_often(folder: Path, instead: dict[str, str]) -> None:
    for seed in range(20):
        shutil.rmtree(folder)
        folder.mkdir()
        Run(folder, seed, instead).run(0.15)


def test_a_sync_that_does_nothing_is_caught(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(folder, 1)
    monkeypatch.setattr(run.disk, "sync", lambda name: None)
    with pytest.raises((AssertionError, JournalDamaged)):
        run.run(0.15)
