"""Does a journal in a file keep others out, survive a full disk, and stay small?"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from driftline.errors import (
    JournalDamaged,
    JournalFull,
    JournalInUse,
    JournalRefused,
    JournalUnavailable,
)
from driftline.net.journal import open_journal
from driftline.net.journal import sqlite as under_test
from driftline.net.journal.journal import Journal
from driftline.net.journal.sqlite import SqliteJournal

HOLD = """
import sys
from driftline.net.journal import open_journal
held = open_journal(sys.argv[1], "b")
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "b.journal")


def test_two_processes_do_not_open_one_journal(path: str, tmp_path: Path) -> None:
    held = subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert held.stdout is not None
    assert held.stdout.readline() == b"open\n"
    other_way = tmp_path / "linked"
    other_way.symlink_to(path)
    for way in (path, f"sqlite:///{path}", other_way):
        with pytest.raises(JournalInUse, match=f"process {held.pid} has it open"):
            open_journal(way, "b")
    held.kill()
    held.communicate()
    open_journal(path, "b").close()


def test_one_process_does_not_open_it_twice(path: str) -> None:
    first = open_journal(path, "b")
    with pytest.raises(JournalInUse, match=f"process {os.getpid()}"):
        open_journal(path, "b")
    first.close()
    open_journal(path, "b").close()


def test_the_journal_of_another_broker_is_refused(path: str) -> None:
    open_journal(path, "b").close()
    with pytest.raises(JournalRefused, match="it is that of broker 'b', not of 'c'"):
        open_journal(path, "c")
    open_journal(path, "b").close()  # The lock was let go.


def test_a_newer_format_is_refused(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(under_test, "FORMAT", 3)
        open_journal(path, "b").close()
    with pytest.raises(JournalRefused, match="it has format 3, and up to 2 is known"):
        open_journal(path, "b")


def test_an_older_format_is_read_and_is_ours_from_then_on(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(under_test, "FORMAT", 1)
        journal = open_journal(path, "b")
        journal.commit([{("seen", "a"): 7}])
        journal.close()
    journal = open_journal(path, "b")
    assert journal.load() == {("seen", "a"): 7}
    journal.close()
    monkeypatch.setattr(under_test, "FORMAT", 1)
    with pytest.raises(JournalRefused, match="it has format 2, and up to 1 is known"):
        open_journal(path, "b")


@pytest.mark.parametrize("address", ["", "mysql://a/b", "sqlite:///"])
def test_an_address_of_nothing_is_refused(address: str) -> None:
    with pytest.raises(JournalRefused, match="wanted a path"):
        open_journal(address, "b")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(JournalUnavailable, match=r"cannot be opened: .*nowhere"):
        open_journal(tmp_path / "nowhere" / "b.journal", "b")


def test_a_full_journal_heals_when_there_is_room(path: str) -> None:
    journal = SqliteJournal(path, "b")
    journal.commit([{("seen", "a"): 1}])
    ((pages,),) = journal._all("PRAGMA page_count")
    journal._all(f"PRAGMA max_page_count = {pages + 3}")
    big = {("kept", "p", "1"): bytes(100_000), ("seen", "a"): 2}
    for _ in range(3):
        with pytest.raises(JournalFull, match=r"no room .* free some"):
            journal.commit([big])
        assert journal.load() == {("seen", "a"): 1}
    journal.commit([{("seen", "a"): 3}])
    journal._all("PRAGMA max_page_count = 1000000")
    journal.commit([big])
    assert journal.load() == {("seen", "a"): 2, ("kept", "p", "1"): bytes(100_000)}
    journal.close()


FILL = """
import resource, signal, sys
from driftline.errors import JournalUnavailable
from driftline.net.journal import open_journal
journal = open_journal(sys.argv[1], "b")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
kept = failed = 0
for number in range(40):
    try:
        journal.commit([{("kept", "p", str(number)): bytes(20_000), ("latest",): number}])
        kept = number
    except JournalUnavailable as problem:
        failed += 1
        assert journal.load()["latest",] == kept, problem
assert failed, "the limit was never met"
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
journal.commit([{("kept", "p", "after"): bytes(20_000), ("latest",): 99}])
assert journal.load()["latest",] == 99
print("healed", kept)
"""


def test_files_that_must_not_grow_leave_nothing_half_written(path: str) -> None:
    done = subprocess.run([sys.executable, "-c", FILL, path], capture_output=True, text=True)
    assert done.stdout.startswith("healed"), done.stderr
    kept = int(done.stdout.split()[1])
    journal = open_journal(path, "b")
    found = journal.load()
    assert {("kept", "p", str(number)) for number in range(kept + 1)} < found.keys()
    assert found["latest",] == 99
    journal.close()


def _fill(journal: Journal) -> int:
    """Keep until there is no room: how many were kept."""
    for number in range(1, 100):
        try:
            journal.commit([{("kept", "p", str(number)): bytes(20_000)}])
        except JournalFull:
            return number - 1
    raise AssertionError("there was room for all")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_disk_without_room_is_named_and_heals(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)]
    if subprocess.run(mounted, capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount")
    try:
        journal = open_journal(small / "b.journal", "b")
        filler = small / "filler"
        filler.write_bytes(bytes(600_000))
        kept = _fill(journal)
        assert len(journal.load()) == kept
        with pytest.raises(JournalFull, match="no room"):
            journal.commit([{("kept", "p", str(kept + 1)): bytes(20_000)}])
        filler.unlink()
        journal.commit([{("kept", "p", str(kept + 1)): bytes(20_000)}])
        assert len(journal.load()) == kept + 1
        journal.close()
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_the_file_gets_smaller_when_what_it_kept_is_gone(path: str) -> None:
    journal = SqliteJournal(path, "b")
    for number in range(300):
        journal.commit([{("kept", "p", str(number)): bytes(60_000)}])
    large = os.path.getsize(path)
    for number in range(300):
        journal.commit([{("kept", "p", str(number)): None}])
    for _ in range(26):
        journal._commits = under_test._COMMITS_BETWEEN - 1
        journal.commit([{("latest",): 1}])
    journal.close()
    assert large > 16_000_000
    assert os.path.getsize(path) < large * 0.6
    assert not os.path.exists(f"{path}-wal")


def test_the_log_does_not_grow_without_end(path: str) -> None:
    journal = SqliteJournal(path, "b")
    for number in range(1000):
        journal.commit([{("kept", "p", str(number % 5)): bytes(30_000)}])
    assert os.path.getsize(f"{path}-wal") < 8_000_000
    assert os.path.getsize(path) < 2_000_000
    journal.close()


def test_a_journal_that_is_open_can_be_copied(path: str, tmp_path: Path) -> None:
    journal = SqliteJournal(path, "b")
    journal.commit([{("seen", "a"): 1}])
    source, copy = sqlite3.connect(path), sqlite3.connect(tmp_path / "copy")
    source.backup(copy)
    source.close()
    copy.close()
    journal.commit([{("seen", "a"): 2}])
    journal.close()
    copied = open_journal(tmp_path / "copy", "b")
    assert copied.load() == {("seen", "a"): 1}
    copied.close()


def test_a_file_that_became_empty_is_no_new_journal(path: str) -> None:
    open_journal(path, "b").close()
    Path(path).write_bytes(b"")
    with pytest.raises(JournalDamaged, match="is empty, and was not before"):
        open_journal(path, "b")


@pytest.mark.skipif(sys.platform == "win32", reason="modes are not kept there")
def test_nobody_else_can_read_what_is_made(path: str) -> None:
    """What is in it belongs to all parties of the broker, whatever others may see of a folder."""
    before = os.umask(0o022)
    try:
        journal = open_journal(path, "b")
        journal.commit([{("seen", "a"): 1}])
        made = {one.name: one.stat().st_mode & 0o777 for one in Path(path).parent.iterdir()}
        journal.close()
    finally:
        os.umask(before)
    names = ("b.journal", "b.journal-shm", "b.journal-wal", "b.journal.lock")
    assert made == dict.fromkeys(names, 0o600)


@pytest.mark.skipif(sys.platform == "win32", reason="modes are not kept there")
def test_what_is_there_already_is_as_its_owner_has_let_it(path: str) -> None:
    open_journal(path, "b").close()
    os.chmod(path, 0o640)
    journal = open_journal(path, "b")
    journal.commit([{("seen", "a"): 1}])
    assert Path(path).stat().st_mode & 0o777 == 0o640
    journal.close()
