"""Is everything that a process said was kept there, when it is killed at any moment?"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

import pytest

from driftline.net.journal import open_journal
from driftline.net.journal.group import GroupCommit

KILLS = 40


def _writer(address: str, said: int) -> None:
    """Keep numbers, each with all before it in place, and say each that is kept."""
    journal = open_journal(address, "b")
    first = journal.load().get(("latest",), 0)
    assert isinstance(first, int)
    group = GroupCommit(journal)
    for number in range(first + 1, first + 100_000):

        def kept(problem: object, number: int = number) -> None:
            assert problem is None
            os.write(said, b"%d\n" % number)

        changed = {("latest",): number, ("kept", "p", str(number % 50)): b"%d" % number * 500}
        group.submit([changed], kept)
        while group.bytes_waiting > 100_000:
            time.sleep(0.0001)


def _run_and_kill(address: str, after: float) -> int:
    """A process that writes, killed after so many seconds: the last that it said was kept."""
    hear, say = os.pipe()
    with warnings.catch_warnings():
        # There may be threads: none of them has anything that the child waits for.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.close(hear)
            _writer(address, say)
        finally:
            os._exit(1)
    os.close(say)
    os.set_blocking(hear, True)
    heard = os.read(hear, 1 << 16)
    until = time.monotonic() + after
    os.set_blocking(hear, False)
    while time.monotonic() < until:
        try:
            heard += os.read(hear, 1 << 16)
        except BlockingIOError:
            time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.set_blocking(hear, True)
    while more := os.read(hear, 1 << 16):
        heard += more
    os.close(hear)
    numbers = [int(line) for line in heard.splitlines()]
    assert numbers == [*range(numbers[0], numbers[-1] + 1)]  # In order, and none left out.
    return numbers[-1]


def _check(address: str, acknowledged: int) -> None:
    journal = open_journal(address, "b")
    found = journal.load()
    last = found["latest",]
    assert isinstance(last, int)
    assert last >= acknowledged
    for number in range(max(1, last - 49), last + 1):
        assert found["kept", "p", str(number % 50)] == b"%d" % number * 500
    journal.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_what_was_acknowledged_survives_its_process(tmp_path: Path) -> None:
    address, draw, before = str(tmp_path / "b.journal"), random.Random(5), 0
    for _ in range(KILLS):
        acknowledged = _run_and_kill(address, draw.random() * 0.03)
        assert acknowledged > before
        _check(address, acknowledged)
        before = acknowledged


def test_that_of_a_process_with_postgresql_too(database: str) -> None:
    draw, before = random.Random(6), 0
    for _ in range(8):
        acknowledged = _run_and_kill(database, draw.random() * 0.05)
        assert acknowledged > before
        _check(database, acknowledged)
        before = acknowledged
