"""An index in a file is the same index, or refused; and what one process does to it stays there."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from driftline import Event, parse
from driftline.errors import FileRefused
from driftline.matching import index_file, sections
from driftline.matching.columns import Columns
from driftline.matching.index import Index
from driftline.matching.index_file import open_index, write_index
from driftline.model.filter import Filter
from driftline.testing.checks import check_matcher

SECTIONS = ("words", "numbers", "id ends", "ids", "said", "rest")

CONDITIONS = (
    "x < :high",
    "x BETWEEN :high - 3 AND :high",
    "x < :high OR y > :high OR x = y",  # found once, and verified
    "s IN ('a', 'b', 'abcdefghi') AND x > :high",
    "s LIKE 'ab_%' OR s LIKE '%c'",
    "x > 9007199254740993",
    "s = 'abcdefghi' AND x != :high",
)


def filters(condition: str) -> tuple[Filter, ...]:
    return parse(f"SELECT * WHERE {condition}").filters()


def example() -> Index:
    index = Index()
    for at in range(300):
        index.add(f"s{at}", filters(CONDITIONS[at % len(CONDITIONS)]), {"high": at % 40})
    for at in range(0, 300, 9):
        index.discard(f"s{at}")
    return index


def events(seed: int = 0) -> list[Event]:
    draw = random.Random(seed)
    return [
        Event(
            "quote",
            {
                "x": draw.choice([draw.randrange(40), 2**53 + 2]),
                "y": draw.randrange(40),
                "s": draw.choice(["a", "abc", "abcdefghi", "c"]),
            },
        )
        for _ in range(100)
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_index(tmp_path / "example.index", example())
    return tmp_path / "example.index"


class Reopened:
    """An index that is written and opened again at every third change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.index = Index()
        self.changes = 0

    def changed(self) -> None:
        self.changes += 1
        if self.changes % 3 == 0:
            write_index(self.path, self.index)
            self.index = open_index(self.path)

    def add(self, id, filters, bounds=None) -> None:
        self.index.add(id, filters, bounds or {})
        self.changed()

    def discard(self, id) -> None:
        self.index.discard(id)
        self.changed()

    def change(self, id, bounds) -> None:
        self.index.change(id, bounds)
        self.changed()

    def match(self, event):
        return self.index.match(event)

    def match_batch(self, columns):
        return self.index.match_batch(columns)

    def __len__(self) -> int:
        return len(self.index)

    def __contains__(self, id: object) -> bool:
        return id in self.index

    def _check(self) -> None:
        self.index._check()


def test_any_program_finds_what_scan_finds_though_the_index_goes_through_a_file(tmp_path) -> None:
    config = settings(max_examples=40, stateful_step_count=30)
    check_matcher(lambda: Reopened(tmp_path / "random.index"), config)


def test_an_opened_index_finds_what_was_written(path) -> None:
    index, opened = example(), open_index(path)
    opened._check()
    told = [index.match(event) for event in events()]
    assert [opened.match(event) for event in events()] == told
    batch = opened.match_batch(Columns.of_events(events()))
    assert [sorted(batch.ids(at)) for at in range(100)] == [sorted(ids) for ids in told]
    assert any(told)
    assert len(opened) == len(index)


def test_any_id_comes_back(tmp_path) -> None:
    ids = ["", "ä", "\U0001f600", "a\0b", "\ud800", " ", "x" * 1000]
    index = Index()
    for id in ids:
        index.add(id, Filter("quote"))
    write_index(tmp_path / "ids.index", index)
    opened = open_index(tmp_path / "ids.index")
    assert opened.match(Event("quote")) == ids
    opened.discard("")
    opened.discard("ä")
    assert opened.match(Event("quote")) == ids[2:]


def test_matching_writes_nothing_and_makes_no_dictionary_of_the_ids(path) -> None:
    opened = open_index(path)
    before = opened._memory.words.tobytes()
    for seed in range(5):
        for event in events(seed):
            opened.match(event)
        opened.match_batch(Columns.of_events(events(seed)))
    assert opened._memory.words.tobytes() == before
    assert "_numbers" not in vars(opened)


def test_what_is_changed_in_one_process_is_not_changed_in_the_file(path) -> None:
    before = path.read_bytes()
    other, mine = open_index(path), open_index(path)
    told = [other.match(event) for event in events()]
    reference = example()
    for index in (mine, reference):
        for at in range(1, 300, 4):
            index.discard(f"s{at}")
        index.change("s2", {"high": 0})
        for at in range(3000):
            index.add(f"new {at}", filters("x > :high"), {"high": 38 + at % 2})
    mine._check()
    assert [mine.match(event) for event in events()] == [reference.match(one) for one in events()]
    assert [other.match(event) for event in events()] == told
    assert path.read_bytes() == before


def test_a_file_that_is_replaced_or_removed_stays_as_it_was_for_who_has_it_open(path) -> None:
    opened = open_index(path)
    write_index(path, Index())
    assert len(open_index(path)) == 0
    path.unlink()
    index = example()
    assert [opened.match(event) for event in events()] == [index.match(one) for one in events()]


@pytest.mark.parametrize("name", SECTIONS)
def test_a_damaged_section_is_refused_by_name(path, name) -> None:
    opened = sections.open_sections(path, code=index_file.code())
    assert set(opened.places) == set(SECTIONS)
    place = opened.places[name]
    for at in (place.start, (place.start + place.stop) // 2, place.stop - 1):
        whole = path.read_bytes()
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(FileRefused, match=f"whose {name} are damaged"):
            open_index(path)
        path.write_bytes(whole)
    assert len(open_index(path)) == len(example())


@pytest.mark.parametrize(
    ("at", "problem"),
    [
        (0, "begins with b'driftidx', came one that begins with"),
        (8, "of format 1, came one of format 0"),
        (12, "header is damaged"),
        (16, "header is damaged"),
        (30, "header is damaged"),
    ],
)
def test_a_damaged_header_and_another_format_are_refused(path, at, problem) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(FileRefused, match=problem):
        open_index(path)


@pytest.mark.parametrize("length", [0, 7, 19, 200, 100_000, -1])
def test_a_file_that_was_cut_off_is_refused(path, length) -> None:
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(FileRefused, match="wanted an index"):
        open_index(path)


def test_a_file_with_something_behind_it_is_refused(path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(FileRefused, match="bytes, came one of"):
        open_index(path)


def test_no_file_is_refused(tmp_path) -> None:
    with pytest.raises(FileRefused, match="No such file"):
        open_index(tmp_path / "nowhere.index")


def test_a_file_of_other_code_is_refused(path, monkeypatch) -> None:
    monkeypatch.setattr(index_file, "code", lambda: "other")
    with pytest.raises(FileRefused, match="by this code"):
        open_index(path)


def test_a_writer_that_fails_leaves_the_file_as_it_was_and_nothing_else(path, monkeypatch) -> None:
    def full(handle: int) -> None:
        raise OSError("no space left")

    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write_index(path, Index())
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_sections_may_be_empty_and_lie_on_pages(tmp_path) -> None:
    path = tmp_path / "file"
    given = {"none": b"", "words": np.arange(5), "no words": np.zeros(0, np.int64), "last": b"x"}
    sections.write_sections(path, given, code="c", generation=7)
    opened = sections.open_sections(path, code="c")
    assert opened.generation == 7
    assert opened.array("words", np.int64).tolist() == [0, 1, 2, 3, 4]
    assert opened.array("no words", np.int64).tolist() == []
    assert (bytes(opened["none"]), bytes(opened["last"])) == (b"", b"x")
    assert all(place.start % 4096 == 0 for place in opened.places.values())
