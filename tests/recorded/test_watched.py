"""Is every file found, also where the date of a directory says little?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from driftline.recorded.watched import Watched

DATE_S = 1_700_000_000


def dated(folder: Path, seconds: int = DATE_S) -> None:
    os.utime(folder, (seconds, seconds))


def names(watched: Watched, seconds: float) -> list[str]:
    return sorted(Path(file).name for file in watched.files(round(seconds * 1_000_000)))


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "below").mkdir()
    for name in ("a.jsonl", "b.parquet", ".c.jsonl", "_d.jsonl", "e.txt", "below/f.json"):
        (tmp_path / name).write_text("")
    dated(tmp_path / "below")
    dated(tmp_path)
    return tmp_path


def test_files_are_those_whose_names_say_so(folder):
    assert names(Watched(str(folder)), 0) == ["a.jsonl", "b.parquet", "f.json"]
    assert names(Watched(str(folder / "a.jsonl")), 0) == ["a.jsonl"]
    assert names(Watched(str(folder / "none")), 0) == []


def test_a_directory_that_has_not_changed_is_not_read_again(folder, monkeypatch):
    watched = Watched(str(folder))
    first = names(watched, DATE_S + 10)
    monkeypatch.setattr(os, "scandir", None)
    assert names(watched, DATE_S + 20) == first


def test_a_file_that_came_at_the_date_at_which_it_was_read_is_found(folder):
    """Two things may happen at one date, and we may look between them, and then not for a while."""
    watched = Watched(str(folder))
    names(watched, DATE_S + 0.001)
    (folder / "below" / "late.jsonl").write_text("")
    dated(folder / "below")
    assert "late.jsonl" in names(watched, DATE_S + 60)


def test_a_file_that_comes_later_is_found_and_one_that_goes_is_not(folder):
    watched = Watched(str(folder))
    names(watched, DATE_S + 10)
    (folder / "below" / "late.jsonl").write_text("")
    (folder / "a.jsonl").unlink()
    dated(folder, DATE_S + 11)
    dated(folder / "below", DATE_S + 11)
    assert names(watched, DATE_S + 20) == ["b.parquet", "f.json", "late.jsonl"]
