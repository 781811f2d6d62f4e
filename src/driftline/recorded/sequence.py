"""In which order did everything happen, for good?

Events and changes come in files. When a file is found it is *recorded*: it gets a run of numbers of
one sequence, one for each of its rows, behind all that was recorded before, and the time. From then
on the order is fixed: whoever reads numbers 1,000 to 2,000, today or again next year, in one piece
or in ten, reads the same rows.

    <directory>/0.json, 1.json …    each a list of files with their numbers, in order

Nothing of the files is copied, so they must stay as they are until nobody wants their numbers any
more; one that has changed is noticed when it is read. A recording counts once it has its name:
temporary file, fsync, rename.
"""

from __future__ import annotations

import os
import uuid
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from zlib import crc32

import msgspec

from driftline.errors import FileRefused

_ENDS = 1 << 16


_NEW = ".new"


class What(StrEnum):
    """What a file holds. One that cannot be read has one number all the same, under which it is
    told why.
    """

    EVENTS = "events"
    CHANGES = "changes"
    NOTHING = "nothing"


class Segment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file, or one of its kind, with its numbers [first, first + rows)."""

    path: str
    what: What
    first: int
    rows: int
    bytes: int
    ends: int
    """A checksum of how it begins and ends (see `size_and_ends`)."""
    recorded: int
    """When, in microseconds since 1970."""
    problem: str | None = None

    @property
    def end(self) -> int:
        """The first number behind it."""
        return self.first + self.rows

    def check_unchanged(self) -> None:
        """FileRefused if the file is not what was recorded."""
        if size_and_ends(self.path) != (self.bytes, self.ends):
            why = "it has changed since it was recorded; put it back as it was, to go on"
            raise FileRefused(self.path, None, why)


class RecordedSequence:
    """The recorded sequence in a directory: read it, and record what comes."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = Path(directory)
        self._segments: list[Segment] = []
        self._firsts: list[int] = []
        self._read = 0

    @property
    def end(self) -> int:
        """The number that comes next."""
        return self._segments[-1].end if self._segments else 0

    def refresh(self) -> RecordedSequence:
        """Take in what others have recorded; itself."""
        while True:
            file = self._file(self._read)
            if not file.exists():
                return self
            try:
                found = msgspec.json.decode(file.read_bytes(), type=list[Segment])
            except (OSError, msgspec.DecodeError) as problem:
                raise FileRefused(str(file), None, f"no recording: {problem}") from problem
            for segment in found:
                if segment.first != self.end:
                    raise FileRefused(str(file), None, f"wanted to go on from {self.end}")
                self._segments.append(segment)
                self._firsts.append(segment.first)
            self._read += 1

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def between(self, start: int, end: int) -> Iterator[tuple[Segment, int, int]]:
        """The files with numbers in [start, end), each with those of its rows that are meant."""
        at = max(bisect_right(self._firsts, start) - 1, 0)
        for segment in self._segments[at:]:
            if segment.first >= end:
                return
            low, high = max(start, segment.first), min(end, segment.end)
            if low < high:
                yield segment, low - segment.first, high - segment.first

    def check_whole(self) -> None:
        """FileRefused if a recording is missing before others: its numbers would be given again."""
        with suppress(FileNotFoundError):
            later = [name for name in os.listdir(self._directory) if name[0] != "."]
            if len(later) > self._read:
                raise FileRefused(str(self._file(self._read)), None, "this recording is missing")

    def append(self, segments: Iterable[Segment]) -> None:
        """Record, each from where the one before ends. Only one process does (see `recorder`)."""
        some = list(segments)
        if some:
            replace_file(self._file(self._read), msgspec.json.encode(some) + b"\n")
            self.refresh()

    def _file(self, number: int) -> Path:
        return self._directory / f"{number}.json"

    def _check(self) -> None:
        end = 0
        for segment, first in zip(self._segments, self._firsts, strict=True):
            assert segment.first == first == end
            end = segment.end


def size_and_ends(path: str) -> tuple[int, int]:
    """The size of a file, and a checksum of its first and last bytes; FileRefused if it is not
    there.

    Enough to notice another file in its place, or one that somebody has written to: all of a small
    file, and of a Parquet file the part that sums up the rest. Not every byte of a large one.
    """
    try:
        with open(path, "rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(0)
            first = stream.read(_ENDS)
            stream.seek(max(size - _ENDS, 0))
            return size, crc32(stream.read(), crc32(first))
    except OSError as problem:
        raise FileRefused(path, None, problem.strerror or str(problem)) from problem


def temporary_of(final: Path) -> Path:
    """A name beside it that nobody else has, on no machine, until it has its own."""
    return final.with_name(f".{final.name}.{uuid.uuid4().hex}{_NEW}")


def remove_remains(root: Path) -> None:
    """Remove what writers have left who were killed; there may be none now."""
    for left in root.rglob(f".*{_NEW}"):
        left.unlink(missing_ok=True)


def replace_file(final: Path, content: bytes) -> None:
    """Write a file so that it is there as a whole or not at all, also after a loss of power."""
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_of(final)
    with open(temporary, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, final)
    sync(final.parent)


def sync(path: str | os.PathLike[str]) -> None:
    """Have a file, or the names in a directory, on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
