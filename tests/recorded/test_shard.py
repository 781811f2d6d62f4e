"""Does a shard go on with exactly what it was given, whatever happened to its files?"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from driftline.errors import FileRefused
from driftline.recorded import shard
from driftline.recorded.held import Place
from driftline.recorded.shard import Files, Truth, advance


class Sum:
    """A state of arrays that depends on every input and on their order."""

    def __init__(self) -> None:
        self.words = np.zeros(1000, np.uint64)

    def take(self, inputs: bytes) -> str:
        self.words[0] += np.uint64(1)
        self.words[1:33] = np.frombuffer(
            hashlib.sha256(self.words[1:33].tobytes() + inputs).digest(), np.uint8
        )
        if inputs.startswith(b"die"):
            raise DiedError
        return self.said()

    def said(self) -> str:
        return f"{self.words[0]} {self.words[1:33].astype(np.uint8).tobytes().hex()}"

    def count(self, inputs: bytes) -> int:
        return len(inputs)


class DiedError(Exception):
    pass


class Remembered:
    """Memory that goes back when its batch is not committed, as Spark's does."""

    def __init__(self) -> None:
        self._truth: Truth | None = None
        self._log: list[bytes] = []

    def truth(self) -> Truth | None:
        return self._truth

    def log(self) -> list[bytes]:
        return list(self._log)

    def keep(self, truth: Truth, inputs: bytes | None) -> None:
        self._truth = truth
        self._log = [] if inputs is None else [*self._log, inputs]

    def copy(self) -> Remembered:
        other = Remembered()
        other._truth, other._log = self._truth, list(self._log)
        return other


class Shard:
    """One shard, on machines with caches of their own and one directory of snapshots."""

    def __init__(self, root: Path, replayed: int = 40) -> None:
        self.root = root
        self.memory = Remembered()
        self.replayed = replayed
        self.machine = "here"
        self._wanted = Sum()
        self.begun = 0

    @property
    def files(self) -> Files:
        return Files(self.root / "snapshots", self.root / self.machine / "shard")

    def begin(self) -> Sum:
        self.begun += 1
        return Sum()

    def attempt(self, inputs: bytes) -> tuple[Remembered, str]:
        """A batch that nobody has committed yet."""
        memory = self.memory.copy()
        return memory, advance(memory, self.files, self.begin, inputs, self.replayed)

    def batch(self, inputs: bytes) -> None:
        """A batch that is committed, and must have told what it should."""
        memory, told = self.attempt(inputs)
        assert told == self._wanted.take(inputs)
        self.memory = memory

    def is_in_file(self) -> bool:
        """Does the next batch go on with the file, without making the state again?"""
        copy = self.root / "copy"
        shutil.copy(str(self.files.cache), copy)
        place = Place(copy)
        assert place.open()
        truth = self.memory.truth()
        assert truth is not None
        there = place.take(truth.stamp)
        place.close()
        return there is not None


@pytest.fixture
def some(tmp_path) -> Shard:
    """A shard that has gone on for a while, and has a snapshot behind it."""
    some = Shard(tmp_path)
    for number in range(5):
        some.batch(b"input %d, as long as it is" % number)
    truth = some.memory.truth()
    assert truth is not None
    assert truth.snapshot
    assert some.is_in_file()
    return some


def test_it_goes_on_with_its_file_and_makes_nothing_again(some):
    begun = some.begun
    (some.root / "snapshots").rename(some.root / "not there")
    some.batch(b"short")
    assert some.begun == begun == 1


def test_a_lost_file_is_made_again(some):
    some.files.cache.unlink()
    some.batch(b"more")
    assert some.is_in_file()


def test_a_machine_without_a_place_for_files_goes_on_without(some, tmp_path):
    (tmp_path / "nowhere").write_text("in the way")
    some.machine = "nowhere"
    some.batch(b"more")
    some.batch(b"and more")


def test_a_batch_that_was_not_committed_is_repeated_from_before_it(some):
    some.attempt(b"more")
    some.batch(b"more")
    some.attempt(b"x" * 60)
    some.batch(b"x" * 60)
    some.batch(b"and more")


def test_a_file_that_went_on_elsewhere_is_behind(some):
    for machine in ("there", "here", "there"):
        some.machine = machine
        some.batch(b"more")


def test_a_file_of_as_many_other_batches_is_not_taken(some):
    """Here a batch was tried that never counted; elsewhere another took its place."""
    some.attempt(b"never committed")
    some.machine = "there"
    some.batch(b"committed")
    some.machine = "here"
    some.batch(b"more")


def test_a_batch_that_fails_within_leaves_a_file_that_nobody_takes(some):
    with pytest.raises(DiedError):
        some.attempt(b"die")
    assert not some.is_in_file()
    some.batch(b"more")
    assert some.is_in_file(), "the attempt that failed has let go of it"


def test_a_process_that_is_killed_within_leaves_a_file_that_nobody_takes(some, monkeypatch):
    child = os.fork()
    if child == 0:
        take = Sum.take

        def killed(self: Sum, inputs: bytes) -> None:
            take(self, inputs)
            os.kill(os.getpid(), signal.SIGKILL)

        monkeypatch.setattr(Sum, "take", killed)
        some.attempt(b"more")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not some.is_in_file()
    some.batch(b"more")


def test_one_who_still_has_the_file_disturbs_nobody(some):
    """A worker that was given up goes on, and leaves what it has made when others went on."""
    truth = some.memory.truth()
    zombie = Place(some.files.cache)
    assert zombie.open()
    state = zombie.take(truth.stamp)
    some.batch(b"more")
    state.take(b"more")
    some.batch(b"and more")
    zombie.leave(state, some.memory.truth().stamp + b" of the past")
    some.batch(b"still more")
    assert some.is_in_file()


def test_what_one_who_was_given_up_leaves_counts_if_it_is_the_same(some):
    truth = some.memory.truth()
    zombie = Place(some.files.cache)
    assert zombie.open()
    state = zombie.take(truth.stamp)
    some.batch(b"more")
    state.take(b"more")
    zombie.leave(state, some.memory.truth().stamp)
    assert some.is_in_file()
    some.batch(b"and more")


def test_a_snapshot_that_is_missing_is_named_and_nothing_is_guessed(some):
    truth = some.memory.truth()
    snapshot = some.root / "snapshots" / truth.snapshot_name
    snapshot.rename(some.root / "kept")
    some.files.cache.unlink()
    with pytest.raises(FileRefused, match=f"{truth.snapshot_name}: the snapshot .* is not there"):
        some.attempt(b"more")
    (some.root / "kept").rename(snapshot)
    some.batch(b"more")


def test_a_snapshot_of_other_batches_is_not_taken(some):
    truth = some.memory.truth()
    snapshot = some.root / "snapshots" / truth.snapshot_name
    shutil.copy(next(p for p in snapshot.parent.iterdir() if p != snapshot), snapshot)
    some.files.cache.unlink()
    with pytest.raises(FileRefused, match="the snapshot that the state refers to"):
        some.attempt(b"more")


def test_a_snapshot_is_made_when_more_would_be_taken_again_than_was_said(tmp_path):
    some = Shard(tmp_path, replayed=40)
    made = []
    for _ in range(9):
        some.batch(b"ten inputs")
        made.append(some.memory.truth().snapshot)
    assert made == [0, 0, 0, 0, 5, 5, 5, 5, 5]


def test_snapshots_stay_as_long_as_a_batch_may_be_repeated_from_them(tmp_path):
    some = Shard(tmp_path, replayed=0)
    for number in range(20):
        before = some.memory
        some.batch(b"%d" % number)
        some.files.cache.unlink()
        after, some.memory = some.memory, before
        if number:
            some.attempt(b"%d" % number)
        some.memory = after
    assert len([*(tmp_path / "snapshots").iterdir()]) == shard.KEPT


def test_whatever_happens_between_batches_what_is_told_is_what_was_given(tmp_path, seed):
    source = random.Random(seed)
    some = Shard(tmp_path)
    machines = ("here", "there", "elsewhere")
    saved = tmp_path / "saved"

    def lose() -> None:
        some.files.cache.unlink(missing_ok=True)

    def die() -> None:
        with pytest.raises(DiedError):
            some.attempt(b"die %d" % source.randrange(100))

    def try_in_vain() -> None:
        some.attempt(source.randbytes(source.randrange(1, 60)))

    def save() -> None:
        if some.files.cache.exists():
            shutil.copy(some.files.cache, saved)

    def bring_back() -> None:
        if saved.exists():
            some.files.cache.parent.mkdir(exist_ok=True)
            shutil.copy(saved, some.files.cache)

    def tear() -> None:
        if some.files.cache.exists():
            os.truncate(some.files.cache, some.files.cache.stat().st_size // 2)

    faults: list[Callable[[], None]] = [lose, die, try_in_vain, save, bring_back, tear]
    for _ in range(600):
        some.machine = source.choice(machines)
        if source.random() < 0.4:
            source.choice(faults)()
        some.batch(source.randbytes(source.randrange(1, 30)))
