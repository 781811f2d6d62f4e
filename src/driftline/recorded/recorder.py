"""What has come since we last looked, and what number does it get?

A recorder looks for files that are not recorded yet: of events, and of changes. Those found at one
time are put in the order of their dates, and of their names where the dates are the same; changes
before events if that is the same too. Each file of changes is read, checked and written into the
book (see `book`) before it is recorded.

One file that cannot be read is recorded as nothing, with the reason, and stops nobody. There is one
recorder at a time: it has a lock, which ends with its process.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from driftline.errors import DriftlineError, FileRefused
from driftline.files import rows_of
from driftline.recorded.book import Book, Page
from driftline.recorded.changes import Change, change_from
from driftline.recorded.collection import without_collection
from driftline.recorded.config import PipelineConfig
from driftline.recorded.pages import Pages
from driftline.recorded.reading import (
    COLUMNS,
    TEXT_SCHEMA,
    count_rows,
    read_columns,
    wide_schema,
)
from driftline.recorded.sequence import (
    RecordedSequence,
    Segment,
    What,
    replace_file,
    size_and_ends,
)
from driftline.recorded.watched import Watched

REBASED = 20_000
"""So many changes to plain filters, or a tenth of all if that is more, make a new base."""


LOCK = ".lock"


class Recorder:
    """Records what comes for one pipeline, and keeps its book."""

    def __init__(self, config: PipelineConfig) -> None:
        self._config = config
        self._root = config.checkpoint
        self._lock = _locked(self._root)
        self.sequence = RecordedSequence(self._root / "sequence")
        self.pages = Pages(self._root / "book")
        self._since = 0
        self._events = Watched(config.events.path)
        self._changes = Watched(config.changes.path) if config.changes.path else None
        self._written = 0
        try:
            self.book = self._begin()
        except BaseException:
            self.close()
            raise
        self._seen = {key for one in self.sequence for key in _keys(one)}

    def _begin(self) -> Book:
        """The book as whoever came before has left it."""
        self.sequence.refresh().check_whole()
        # Written by one who died before it was recorded.
        self.pages.forget(self.sequence.end)
        self._written = max((end for _, end in self.pages.numbers()), default=0)
        return _book(self._config, self.sequence, self.pages, self._known)

    def _known(self, page: Page) -> None:
        """A page of what was recorded. A sequence that comes from elsewhere has none yet."""
        self._since += len(page.filters)
        if page.first >= self._written:
            self.pages.write(page)

    def _columns(self) -> pa.Schema:
        """The columns of the pipeline's events: those of the files that there were at first."""
        file = self._root / COLUMNS
        if file.exists():
            return read_columns(self._root)
        schemas = []
        for path in sorted(self._events.files(0)):
            with suppress(FileRefused):  # It is told of when it is recorded.
                schemas.append(count_rows(path)[1])
        wide = [schema for schema in schemas if schema is not None]
        schema = wide_schema(wide) if wide else TEXT_SCHEMA
        replace_file(file, schema.serialize().to_pybytes())
        return schema

    def look(self, now: int) -> int:
        """Record what has come, at this time: how many rows that is."""
        with without_collection():
            return self._look(now)

    def _look(self, now: int) -> int:
        found = []
        for changes, path in self._new(now):
            with suppress(FileNotFoundError):  # Gone again.
                found.append((os.stat(path).st_mtime_ns, Path(path).name, not changes, path))
        if not found:
            return 0
        before = first = self.sequence.end
        segments = []
        for _, _, is_events, path in sorted(found):
            segment = self._segment(path, not is_events, first, now)
            segments.append(segment)
            self._seen.add((not is_events, path))
            first = segment.end
        self.sequence.append(segments)
        self.rebase_if_due()
        return first - before

    def close(self) -> None:
        """Let another record."""
        os.close(self._lock)

    def rebase_if_due(self, *, first: bool = False) -> None:
        """Make a new base of the book, if pages behind the last hold much; the first one anyway."""
        none_yet = first and not self.pages.newest(self.sequence.end)
        if self._since > (0 if none_yet else max(REBASED, len(self.book.filters) // 10)):
            self.pages.write_base(self.book)
            self._since = 0

    def _new(self, now: int) -> Iterator[tuple[bool, str]]:
        for changes, watched in ((True, self._changes), (False, self._events)):
            if watched is not None:
                for path in watched.files(now):
                    if (changes, path) not in self._seen:
                        yield changes, path

    def _segment(self, path: str, is_changes: bool, first: int, now: int) -> Segment:
        size = ends = 0
        try:
            size, ends = size_and_ends(path)
            if is_changes:
                rows = 0
                for page in self.book.pages(first, now, changes_in(path)):
                    self.pages.write(page)
                    self._since += len(page.filters)
                    rows = page.end - first
                return Segment(path, What.CHANGES, first, rows, size, ends, now)
            rows, schema = count_rows(path)
            is_text = self._columns().names == TEXT_SCHEMA.names
            if is_text != (schema is None):
                kinds = ("JSON lines", "Parquet") if is_text else ("Parquet", "JSON lines")
                raise FileRefused(path, None, f"wanted {kinds[0]} as before, came {kinds[1]}")
            return Segment(path, What.EVENTS, first, rows, size, ends, now)
        except FileRefused as problem:
            return Segment(path, What.NOTHING, first, 1, size, ends, now, str(problem))


def _locked(root: Path) -> int:
    root.mkdir(parents=True, exist_ok=True)
    handle = os.open(root / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise FileRefused(str(root), None, "another process runs this pipeline") from None
    return handle


def read_sequence(checkpoint: Path) -> RecordedSequence:
    """What was recorded in a checkpoint; FileRefused if nothing ever was."""
    if not (checkpoint / "sequence").is_dir():
        raise FileRefused(str(checkpoint), None, "nothing is recorded there")
    return RecordedSequence(checkpoint / "sequence").refresh()


def read_book(config: PipelineConfig) -> Book:
    """How the book of a pipeline stands at the end of what was recorded; nothing is written."""
    pages = Pages(config.checkpoint / "book")
    return _book(config, read_sequence(config.checkpoint), pages, lambda page: None)


def _book(
    config: PipelineConfig,
    sequence: RecordedSequence,
    pages: Pages,
    known: Callable[[Page], None],
) -> Book:
    """The last base, and what follows from the files since."""
    book = pages.book() or Book(config.places)
    for segment, _, _ in sequence.between(book.end, sequence.end):
        if segment.what is What.CHANGES:
            for page in book.pages(segment.first, segment.recorded, changes_of(segment)):
                known(page)
    return book


def copy_sequence(checkpoint: Path, to: Path) -> None:
    """Begin a checkpoint with what was recorded in another: nothing of it is done yet there.

    The book is made again by whoever opens it, since where things are remembered may differ.
    """
    read_sequence(checkpoint)
    if to.exists() and any(to.iterdir()):
        raise FileRefused(str(to), None, "wanted an empty or new directory")
    shutil.copytree(checkpoint / "sequence", to / "sequence")
    if (checkpoint / COLUMNS).exists():
        shutil.copy(checkpoint / COLUMNS, to / COLUMNS)


def changes_of(segment: Segment) -> list[Change | DriftlineError]:
    """What the rows of a recorded file of changes say."""
    segment.check_unchanged()
    return changes_in(segment.path)


def _keys(one: Segment) -> Iterator[tuple[bool, str]]:
    """What a recorded file is known by: is it of changes, and its path."""
    if one.what is not What.EVENTS:
        yield True, one.path
    # One that could not be read may have been of either.
    if one.what is not What.CHANGES:
        yield False, one.path


def changes_in(path: str) -> list[Change | DriftlineError]:
    """What the rows of a file say; an error in the place of one that says nothing."""
    found: list[Change | DriftlineError] = []
    for number, row in rows_of(Path(path)):
        try:
            if isinstance(row, DriftlineError):
                raise row
            found.append(change_from(row, f"line {number}"))
        except DriftlineError as problem:
            found.append(problem)
    return found
