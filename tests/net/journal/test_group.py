"""Does everybody hear what became of what he submitted, in order, whatever the disk does?"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from driftline.broker.effects import Key
from driftline.errors import DriftlineError, InvalidValue, JournalError, JournalFull, JournalInUse
from driftline.net.journal.group import GroupCommit
from driftline.net.journal.memory import MemoryJournal
from driftline.net.journal.sqlite import SqliteJournal
from driftline.net.journal.waiting import RETRY_FIRST_SECONDS, RETRY_LAST_SECONDS, Waiting

FULL = JournalFull("b", "no room")


class Scripted(MemoryJournal):
    """Commits as it is told to: each waits until it may, and then does what is next."""

    __slots__ = ("closed", "commits", "may", "script")

    def __init__(self, *script: Exception | None) -> None:
        super().__init__()
        self.script = [*script]
        self.may = threading.Semaphore(0)
        self.commits: list[list[Mapping[Key, object]]] = []
        self.closed = False

    def commit(self, stores: Sequence[Mapping[Key, object]]) -> None:
        assert self.may.acquire(timeout=10)
        problem = self.script.pop(0) if self.script else None
        if problem is not None:
            raise problem
        self.commits.append([*stores])
        super().commit(stores)

    def close(self) -> None:
        self.closed = True


class Told:
    """What was said of what, in order."""

    def __init__(self) -> None:
        self.said: list[tuple[int, DriftlineError | None]] = []
        self.changed = threading.Condition()

    def of(self, number: int):  # type: ignore[no-untyped-def]
        def done(problem: DriftlineError | None) -> None:
            with self.changed:
                self.said.append((number, problem))
                self.changed.notify()

        return done

    def wait(self, count: int) -> list[tuple[int, DriftlineError | None]]:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.said) >= count, timeout=10), self.said
            return self.said[:count]


def _store(number: int) -> list[dict[Key, object]]:
    return [{("seen", "a"): number}]


def test_what_waits_during_a_commit_is_the_next_one() -> None:
    journal, told = Scripted(), Told()
    group = GroupCommit(journal)
    group.submit(_store(0), told.of(0))
    while group._waiting._trying != 1:
        pass
    for number in range(1, 10):
        group.submit(_store(number), told.of(number))
    assert told.said == []
    journal.may.release(2)
    assert told.wait(10) == [(number, None) for number in range(10)]
    assert [len(one) for one in journal.commits] == [1, 9]
    assert group.commits == 2
    assert group.close()
    assert journal.closed


def test_after_a_failure_everything_is_told_and_kept_in_order() -> None:
    journal, told, trouble = Scripted(FULL, FULL), Told(), list[object]()
    group = GroupCommit(journal, trouble.append)
    group.submit(_store(0), told.of(0))
    while group._waiting._trying != 1:
        pass
    group.submit(_store(1), told.of(1))
    journal.may.release()
    assert told.wait(2) == [(0, FULL), (1, FULL)]
    group.submit(_store(2), told.of(2))
    journal.may.release(2)
    kept = [(number, None) for number in range(3)]
    assert told.wait(8)[2:] == [(0, FULL), (1, FULL), (2, FULL), *kept]
    assert trouble == [FULL, FULL, None]
    assert group.bytes_waiting == 0
    assert journal.load() == {("seen", "a"): 2}
    assert group.close()


@pytest.mark.parametrize("problem", [JournalInUse("b", "is taken"), ValueError("a fault of ours")])
def test_a_failure_that_cannot_pass_is_the_end(problem: Exception) -> None:
    journal, told = Scripted(None, problem), Told()
    group = GroupCommit(journal)
    journal.may.release(2)
    group.submit(_store(0), told.of(0))
    assert told.wait(1) == [(0, None)]
    group.submit(_store(1), told.of(1))
    ((_, said),) = told.wait(2)[1:]
    assert isinstance(said, JournalError)
    with pytest.raises(JournalError):
        group.submit(_store(2), told.of(2))
    assert group.failure is said
    assert not group.close()
    assert journal.load() == {("seen", "a"): 0}


def test_what_is_nothing_to_keep_is_the_end_too() -> None:
    journal, told = MemoryJournal(), Told()
    group = GroupCommit(journal)
    group.submit([{("nothing", "a"): 1}], told.of(0))
    assert isinstance(told.wait(1)[0][1], InvalidValue)
    assert not group.close()


def test_closing_keeps_what_waits(tmp_path: Path) -> None:
    path, told = str(tmp_path / "b"), Told()
    group = GroupCommit(SqliteJournal(path, "b"))
    for number in range(100):
        group.submit(_store(number), told.of(number))
    assert group.close()
    assert told.said == [(number, None) for number in range(100)]
    with pytest.raises(JournalError, match="being closed"):
        group.submit(_store(1), told.of(1))
    again = SqliteJournal(path, "b")
    assert again.load() == {("seen", "a"): 99}
    again.close()


def test_closing_does_not_wait_for_ever() -> None:
    journal, told = Scripted(*[FULL] * 1000), Told()
    journal.may.release(1000)
    group = GroupCommit(journal)
    group.submit(_store(0), told.of(0))
    assert not group.close(within=0.3)
    assert journal.closed
    assert told.said[-1][1] is not FULL  # Told in the end that it will not be kept.


def test_a_listener_that_is_gone_does_not_stop_the_others() -> None:
    told = Told()
    group = GroupCommit(MemoryJournal())

    def gone(problem: object) -> None:
        raise RuntimeError("the loop is closed")

    group.submit(_store(0), gone)
    group.submit(_store(1), told.of(1))
    assert told.wait(1) == [(1, None)]
    assert group.close()


def test_how_much_waits_is_known() -> None:
    waiting = Waiting()
    waiting.submit([{("kept", "p", "1"): bytes(5000)}], lambda problem: None)
    waiting.submit([{("seen", "a"): 1, ("seen", "b"): None}], lambda problem: None)
    assert 5000 <= waiting.bytes <= 6000
    assert len(waiting.take()) == 2
    waiting.submit([{("kept", "p", "2"): bytes(7000)}], lambda problem: None)
    assert len(waiting.committed()) == 2
    assert 7000 <= waiting.bytes <= 7500
    waiting.take()
    waiting.committed()
    assert waiting.bytes == 0


def test_the_pause_between_attempts_doubles_up_to_a_limit() -> None:
    waiting, now, pauses = Waiting(), 100.0, []
    waiting.submit(_store(0), lambda problem: None)
    for _ in range(12):
        waiting.take()
        waiting.failed(now)
        pauses.append(waiting.retry_at - now)
    assert pauses[:3] == pytest.approx([RETRY_FIRST_SECONDS * 2**n for n in range(3)])
    assert pauses[-1] == RETRY_LAST_SECONDS
    waiting.take()
    waiting.committed()
    assert waiting.retry_at == 0
