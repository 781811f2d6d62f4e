"""Is the book the same for everybody who reads it, whatever was left by one who died?"""

from __future__ import annotations

import pytest

from driftline.errors import FileRefused
from driftline.matching.choice import make_matcher
from driftline.matching.columns import Columns
from driftline.matching.lazy import Lazy
from driftline.model.event import Event
from driftline.recorded.book import Book
from driftline.recorded.changes import change_from
from driftline.recorded.pages import BASES, Pages
from driftline.recorded.places import Places
from driftline.recorded.versions import Versions


def change(number: int):
    text = {"id": f"s{number}", "text": "SELECT * WHERE x > :x", "params": {"x": number}}
    return change_from(text, "line 1")


@pytest.fixture
def book() -> Book:
    return Book(Places(2))


@pytest.fixture
def pages(tmp_path) -> Pages:
    return Pages(tmp_path / "book")


def test_pages_are_read_in_the_order_of_their_numbers(book, pages):
    for first in (0, 5, 100, 1000):
        pages.write(book.write(first, 7, [change(first), change(first + 1)]))
    assert [page.first for page in pages.between(0, 2000)] == [0, 5, 100, 1000]
    assert [page.first for page in pages.between(5, 1000)] == [5, 100]
    assert [seq for page in pages.between(5, 6) for seq, _, _ in page.filters] == [5, 6]


def test_a_page_that_was_never_recorded_is_forgotten(book, pages):
    pages.write(book.write(0, 7, [change(0)]))
    pages.write_base(book)
    pages.write(book.write(4, 7, [change(1)]))
    pages.write(book.write(5, 7, [change(2), change(3)]))
    pages.write_base(book)
    pages.forget(5)
    assert sorted(pages.numbers()) == [(0, 1), (4, 5)]
    assert pages.newest(100) == 1
    assert pages.book().end == 1, "the later one holds what was never recorded"


def test_of_the_bases_the_last_few_stay_and_of_the_pages_all(book, pages):
    for number in range(BASES + 3):
        pages.write(book.write(number, 7, [change(number)]))
        pages.write_base(book)
    assert [pages.newest(at) for at in range(8)] == [0, 0, 0, 0, 4, 5, 6, 6]
    assert pages.base(3) is None
    assert pages.base(5).count == 5
    assert len(list(pages.numbers())) == BASES + 3


def test_whoever_begins_reads_a_base_instead_of_all_pages(book, pages):
    pages.write(book.write(0, 7, [change(0), change(1)]))
    pages.write_base(book)
    pages.write(book.write(2, 7, [change(2)]))
    opened = []
    versions = Versions(pages, lambda base: opened.append(base.end) or Lazy(make_matcher("auto")))
    found = versions.at(10).match_batch(Columns.of_events([Event("t", {"x": 9})]), {})
    assert opened == [2]
    assert list(found.ids(0)) == ["s2"], "beside an empty base"


def test_a_damaged_page_is_named(book, pages, tmp_path):
    pages.write(book.write(0, 7, [change(0)]))
    file = tmp_path / "book" / "page-0-1"
    whole = file.read_bytes()
    for damaged in (b"", whole[:-5], b"no pickle"):
        file.write_bytes(damaged)
        with pytest.raises(FileRefused, match="page-0-1"):
            list(pages.between(0, 1))
