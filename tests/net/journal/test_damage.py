"""Is a journal that is not what was written ever taken for one that is?

Each case may end in two ways: it is refused with an error of ours, or it holds exactly what it
should. Of a log whose end is torn or cut off, exactly the commits before.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import mkdtemp

import pytest

from driftline.broker.effects import Key
from driftline.errors import JournalDamaged, JournalError
from driftline.net.journal import wal
from driftline.net.journal.sqlite import SqliteJournal
from driftline.net.journal.wal import _small_sum, read_log

FLIPS = 250
QUIETLY = (
    "DROP TRIGGER came; DROP TRIGGER went; DROP TRIGGER moved; {};{{came}}; {{went}}; {{moved}}"
)


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    yield made
    shutil.rmtree(made)


def _written(folder: Path, commits: int) -> list[dict[Key, object]]:
    """A journal that a process left without closing it: all of these are in its log or its file.

    States after each of its commits.
    """
    draw = random.Random(7)
    live = SqliteJournal(str(folder / "live"), "b")
    live.incarnation()
    states: list[dict[Key, object]] = [{}]
    for number in range(commits):
        store: dict[Key, object] = {("seen", str(draw.randrange(40))): number}
        if number % 3 == 0:
            store["kept", "p", str(number)] = draw.randbytes(draw.choice((10, 700, 9000)))
        if number % 5 == 4:
            store["kept", "p", str(number - 4)] = None
        live.commit([store])
        after = {**states[-1], **store}
        states.append({key: value for key, value in after.items() if value is not None})
    for end in ("", "-wal"):
        shutil.copy(folder / f"live{end}", folder / f"b.journal{end}")
    (folder / "b.journal.lock").write_text("1\nknown")
    live.close()
    return states


def _read(folder: Path, incarnation: int | None = 2) -> dict[Key, object]:
    journal = SqliteJournal(str(folder / "b.journal"), "b")
    try:
        found = journal.load()
        assert incarnation in (None, journal.incarnation())
        return found
    finally:
        journal.close()


def _closed(folder: Path, commits: int) -> dict[Key, object]:
    """The same, moved into its file as a whole."""
    states = _written(folder, commits)
    SqliteJournal(str(folder / "b.journal"), "b").close()
    assert not (folder / "b.journal-wal").exists()
    return states[-1]


def test_a_flipped_bit_in_the_file_is_found_or_does_no_harm(folder: Path) -> None:
    wanted = _closed(folder, 60)
    sound = (folder / "b.journal").read_bytes()
    draw, found = random.Random(1), 0
    for _ in range(FLIPS):
        at, bit = draw.randrange(len(sound)), 1 << draw.randrange(8)
        broken = bytearray(sound)
        broken[at] ^= bit
        (folder / "b.journal").write_bytes(broken)
        try:
            assert _read(folder) == wanted, f"byte {at}, bit {bit}"
        except JournalError:
            found += 1
    assert found > FLIPS / 5  # The rest lies where nothing is.


def test_a_sector_of_zeros_or_of_another_time_is_found(folder: Path) -> None:
    wanted = _closed(folder, 60)
    sound = (folder / "b.journal").read_bytes()
    draw = random.Random(2)
    for at in range(0, len(sound), 512):
        broken = bytearray(sound)
        other = sound[at - 512 : at] or b"x" * 512
        broken[at : at + 512] = draw.choice((bytes(512), other))
        (folder / "b.journal").write_bytes(broken)
        with suppress(JournalError):
            assert _read(folder) == wanted, f"sector at {at}"


@pytest.mark.parametrize(
    "change",
    [
        # A row that is gone, and one that has come back, with all that is said of them elsewhere.
        QUIETLY.format("DELETE FROM entries WHERE place = 5"),
        QUIETLY.format("INSERT INTO entries VALUES (99, '[\"latest\"]', x'01', 2219617520)"),
        "UPDATE about SET value = '0' WHERE what = 'incarnation'",
        "DELETE FROM about WHERE what = 'incarnation'",
        "DELETE FROM sums",
        "DROP TRIGGER went",
    ],
)
def test_what_is_sound_in_itself_and_not_what_was_written_is_found(
    folder: Path, change: str
) -> None:
    _closed(folder, 20)
    with closing(sqlite3.connect(folder / "b.journal")) as connection:
        made = dict(connection.execute("SELECT name, sql FROM sqlite_master"))
        connection.executescript(change.format(**made) if "{" in change else change)
    with pytest.raises(JournalDamaged):
        _read(folder)


def test_an_index_that_has_lost_a_key_is_found(folder: Path) -> None:
    wanted = _closed(folder, 60)
    key = next(key for key in wanted if key[0] == "seen")
    text = f'["seen","{key[1]}"]'.encode()
    sound = (folder / "b.journal").read_bytes()
    found, at = 0, -1
    while (at := sound.find(text, at + 1)) >= 0:
        broken = bytearray(sound)
        broken[at + len(text) - 3] ^= 0x40
        (folder / "b.journal").write_bytes(broken)
        journal = SqliteJournal(str(folder / "b.journal"), "b")
        try:
            assert journal.load() == wanted
            # It was where nothing is; otherwise it would come twice now.
            journal.commit([{key: 999}])
            assert journal.load() == {**wanted, key: 999}
        except JournalError:
            found += 1
        finally:
            journal.close()
    assert found == 2  # In the table and in its index.


def test_a_file_that_was_cut_is_found(folder: Path) -> None:
    _closed(folder, 60)
    sound = (folder / "b.journal").read_bytes()
    for size in [*range(0, len(sound), 4096), 10, 100, 5000, len(sound) - 1]:
        (folder / "b.journal").write_bytes(sound[:size])
        with pytest.raises(JournalDamaged):
            _read(folder)


def test_a_flipped_bit_in_the_log_loses_nothing_but_the_last_commit(folder: Path) -> None:
    states = _written(folder, 30)
    main, log = ((folder / f"b.journal{end}").read_bytes() for end in ("", "-wal"))
    draw, found = random.Random(3), 0
    for number in range(FLIPS):
        at = number % 32 if number < 64 else draw.randrange(len(log))
        broken = bytearray(log)
        broken[at] ^= 1 << draw.randrange(8)
        (folder / "b.journal").write_bytes(main)
        (folder / "b.journal-wal").write_bytes(broken)
        try:
            assert _read(folder) in states[-2:], f"byte {at}"
        except JournalDamaged:
            found += 1
    assert found > FLIPS / 2


def test_a_log_that_was_cut_holds_the_commits_before(folder: Path) -> None:
    states = _written(folder, 30)
    main, log = ((folder / f"b.journal{end}").read_bytes() for end in ("", "-wal"))
    before = -1
    for size in range(0, len(log) + 1, 1999):
        (folder / "b.journal").write_bytes(main)
        (folder / "b.journal-wal").write_bytes(log[:size])
        found = states.index(_read(folder, incarnation=None))
        assert found >= before
        before = found
    assert before > 25


def test_the_log_is_read_as_sqlite_reads_it(folder: Path) -> None:
    """By the sums of its definition, frame by frame."""
    _written(folder, 12)
    log = (folder / "b.journal-wal").read_bytes()
    # And one incarnation.
    assert read_log(folder / "b.journal-wal") == (13, 0, True)
    words = log[:24]
    assert _small_sum(words, "<") == struct.unpack_from(">2I", log, 24)


def test_a_log_of_many_frames_is_read_in_pieces(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _written(folder, 12)
    monkeypatch.setattr(wal, "_FRAMES_AT_ONCE", 5)
    assert read_log(folder / "b.journal-wal") == (13, 0, True)


def test_a_log_that_is_all_zeros_has_not_begun(folder: Path) -> None:
    (folder / "log").write_bytes(bytes(5000))
    assert not read_log(folder / "log").damaged
    (folder / "log").write_bytes(bytes(3_000_000) + b"x")
    assert read_log(folder / "log").damaged


def test_what_is_gone_from_the_log_is_said(folder: Path) -> None:
    _written(folder, 30)
    log = bytearray((folder / "b.journal-wal").read_bytes())
    log[len(log) // 2] ^= 1
    (folder / "b.journal-wal").write_bytes(log)
    for _ in range(2):  # Looking does not make it worse.
        with pytest.raises(JournalDamaged, match=r"commits in its log .* restore a backup"):
            _read(folder)
