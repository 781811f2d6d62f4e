"""Does a number of the sequence stand for one row, for good?"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from driftline.errors import FileRefused
from driftline.recorded import sequence as sequences
from driftline.recorded.sequence import RecordedSequence, Segment, What, replace_file, size_and_ends


def segment(first: int, rows: int, path: str = "a file") -> Segment:
    return Segment(path, What.EVENTS, first, rows, 0, 0, 7)


def written(directory: Path, *rows: int) -> RecordedSequence:
    """A recording for each file of so many rows."""
    found = RecordedSequence(directory)
    for number, count in enumerate(rows):
        found.append([segment(found.end, count, f"file {number}")])
    return found


def test_everybody_sees_what_one_has_recorded(tmp_path):
    ours, others = RecordedSequence(tmp_path), RecordedSequence(tmp_path)
    ours.append([segment(0, 3), segment(3, 0), segment(3, 4)])
    assert others.end == 0
    assert others.refresh().end == 7
    ours.append([])
    ours.append([segment(7, 1)])
    assert [one.first for one in others.refresh()] == [0, 3, 3, 7]
    others._check()


def test_any_two_numbers_give_the_rows_between_them(tmp_path, seed):
    source = random.Random(seed)
    rows = [source.choice([0, 1, 2, 7]) for _ in range(12)]
    found = written(tmp_path, *rows)
    everything = [(f"file {n}", at) for n, count in enumerate(rows) for at in range(count)]
    for start in range(found.end + 1):
        for end in range(start, found.end + 2):
            some = [
                (one.path, at)
                for one, low, high in found.between(start, end)
                for at in range(low, high)
            ]
            assert some == everything[start:end]


def test_a_recording_that_dies_has_never_been(tmp_path, monkeypatch):
    found = written(tmp_path, 3)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", _die)
        with pytest.raises(KeyboardInterrupt):
            found.append([segment(3, 5)])
    again = RecordedSequence(tmp_path).refresh()
    again.check_whole()
    assert again.end == 3
    again.append([segment(3, 1)])
    assert RecordedSequence(tmp_path).refresh().end == 4


def test_a_file_is_on_disk_before_it_has_its_name(tmp_path, monkeypatch):
    done: list[str] = []
    fsync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("fsync"), fsync(handle)))
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("name"), rename(*names)))
    replace_file(tmp_path / "file", b"content")
    assert done == ["fsync", "name", "fsync"], "the content, the name, the directory"


@pytest.mark.parametrize("content", [b"", b"[", b"{}", b'[{"path": "a"}]', b"\xff\xfe"])
def test_a_recording_that_says_nothing_is_named(tmp_path, content):
    written(tmp_path, 3)
    (tmp_path / "1.json").write_bytes(content)
    with pytest.raises(FileRefused, match=r"1\.json: no recording"):
        RecordedSequence(tmp_path).refresh()


def test_a_recording_that_does_not_go_on_from_the_last_is_refused(tmp_path):
    written(tmp_path, 3, 4)
    (tmp_path / "0.json").unlink()
    (tmp_path / "1.json").rename(tmp_path / "0.json")
    with pytest.raises(FileRefused, match="wanted to go on from 0"):
        RecordedSequence(tmp_path).refresh()


def test_a_recording_that_is_missing_is_noticed_before_its_numbers_are_given_again(tmp_path):
    written(tmp_path, 3, 4, 5)
    (tmp_path / "1.json").unlink()
    found = RecordedSequence(tmp_path).refresh()
    with pytest.raises(FileRefused, match=r"1\.json: this recording is missing"):
        found.check_whole()
    RecordedSequence(tmp_path / "none").check_whole()


def test_a_file_that_was_changed_or_is_gone_is_named(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"x" * 300_000)
    size, ends = size_and_ends(str(file))
    recorded = Segment(str(file), What.EVENTS, 0, 1, size, ends, 7)
    recorded.check_unchanged()
    for other in (b"x" * 299_999, b"y" + b"x" * 299_999, b"x" * 299_999 + b"y"):
        file.write_bytes(other)
        with pytest.raises(FileRefused, match=r"a\.jsonl: it has changed since it was recorded"):
            recorded.check_unchanged()
    file.unlink()
    with pytest.raises(FileRefused, match=r"a\.jsonl: No such file"):
        recorded.check_unchanged()
    file.write_bytes(b"x" * 300_000)
    recorded.check_unchanged()


def test_a_small_file_is_known_by_every_byte(tmp_path):
    assert sequences._ENDS > 1000
    file = tmp_path / "a.jsonl"
    found = set()
    for at in range(0, 1000, 50):
        content = bytearray(1000)
        content[at] = 1
        file.write_bytes(content)
        found.add(size_and_ends(str(file)))
    assert len(found) == 20


def _die(*_: object) -> None:
    raise KeyboardInterrupt
