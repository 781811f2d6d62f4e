"""Where is the book kept, so that every process can read what counts at a number?

    <directory>/page-<first>-<end>    what follows from changes of one file (`book.Page`)
    <directory>/refused-<first>       which of them were refused, and why, if some were
    <directory>/base-<end>            everything as it stands before number <end>

A page is written before its file is recorded, and never changed: whoever sees the numbers sees the
page. A base spares reading all pages; which one is read makes no difference to the answer. Pages
stay; of bases only the last few.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from driftline.errors import FileRefused
from driftline.matching.roster import Roster
from driftline.model.value import Value
from driftline.recorded.book import Book, Page, Want
from driftline.recorded.sequence import replace_file

BASES = 3
"""A reader may be a batch or two behind."""


@dataclass(frozen=True, slots=True)
class Base:
    """What matching needs of the book as it stands before a number."""

    end: int
    fingerprint: str
    roster: bytes
    count: int
    env: dict[str, Value]
    wants: list[Want]


class Pages:
    """The book in a directory."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = Path(directory)

    def write(self, page: Page) -> None:
        """Keep a page."""
        if page.refused:
            self._write(f"refused-{page.first}", page.refused)
        self._write(f"page-{page.first}-{page.end}", page)

    def write_base(self, book: Book) -> None:
        """Keep all of the book, and forget older bases."""
        roster = Roster.of(book.filters.items())
        base = Base(
            book.end, roster.fingerprint, roster.packed(), len(roster), book.env, book.wants
        )
        self._write(f"book-{book.end}", book)
        self._write(f"base-{book.end}", base)
        for kind in ("base", "book"):
            for end in self._ends(kind)[:-BASES]:
                with suppress(OSError):
                    (self._directory / f"{kind}-{end}").unlink()

    def forget(self, end: int) -> None:
        """Forget pages that reach beyond a number: they were never recorded."""
        for first, last in list(self.numbers()):
            if last > end:
                (self._directory / f"page-{first}-{last}").unlink()
        for kind in ("base", "book"):
            for one in self._ends(kind):
                if one > end:
                    (self._directory / f"{kind}-{one}").unlink()
        for first in self._ends("refused"):
            if first >= end:
                (self._directory / f"refused-{first}").unlink()

    def book(self, before: int | None = None) -> Book | None:
        """The book as it stood at the last base, that holds at a number if one is said; None: there
        was none yet.
        """
        ends = [end for end in self._ends("book") if before is None or end <= before]
        if not ends:
            return None
        book: Book = self._read(f"book-{ends[-1]}")  # type: ignore[assignment]
        return book

    def base(self, before: int) -> Base | None:
        """The last base that holds at a number."""
        fitting = [end for end in self._ends("base") if end <= before]
        if not fitting:
            return None
        base: Base = self._read(f"base-{fitting[-1]}")  # type: ignore[assignment]
        return base

    def newest(self, before: int) -> int:
        """Where the last base ends that holds at a number; 0: there is none."""
        return max((end for end in self._ends("base") if end <= before), default=0)

    def between(self, start: int, before: int) -> Iterator[Page]:
        """The pages that hold numbers from `start` on and up to `before`, in order."""
        for first, end in sorted(self.numbers()):
            if end > start and first < before:
                page: Page = self._read(f"page-{first}-{end}")  # type: ignore[assignment]
                yield page

    def refused(self, start: int, before: int) -> Iterator[tuple[int, str]]:
        """The changes with numbers from `start` on and up to `before` that were refused, and why;
        pages of which nothing was are not read.
        """
        some = {*self._ends("refused")}
        for first, end in sorted(self.numbers()):
            if first in some and end > start and first < before:
                found: list[tuple[int, str]] = self._read(f"refused-{first}")  # type: ignore[assignment]
                yield from (one for one in found if start <= one[0] < before)

    def numbers(self) -> Iterator[tuple[int, int]]:
        """Of which numbers [first, end) there are pages."""
        for name in self._names("page"):
            first, end = name.split("-")[1:]
            yield int(first), int(end)

    def _ends(self, kind: str) -> list[int]:
        return sorted(int(name.split("-")[1]) for name in self._names(kind))

    def _names(self, kind: str) -> list[str]:
        try:
            return [name for name in os.listdir(self._directory) if name.startswith(f"{kind}-")]
        except FileNotFoundError:
            return []

    def _write(self, name: str, what: object) -> None:
        replace_file(self._directory / name, pickle.dumps(what, protocol=5))

    def _read(self, name: str) -> object:
        try:
            return pickle.loads((self._directory / name).read_bytes())
        except (OSError, pickle.UnpicklingError, EOFError) as problem:
            raise FileRefused(str(self._directory / name), None, str(problem)) from problem
