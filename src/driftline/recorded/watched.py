"""Which files are below a directory, asked again and again?

A directory that has not changed since it was read is not read again: its date says so, once it is
old enough that whatever else happened at that moment must have a later date.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

_SUFFIXES = (".parquet", ".jsonl", ".ndjson", ".json")

_SETTLED_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class _Folder:
    """What a directory held, and its date then."""

    date: int
    files: tuple[str, ...]
    folders: tuple[str, ...]


class Watched:
    """A directory, or one file."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[str, _Folder] = {}

    def files(self, now: int) -> Iterator[str]:
        """All files whose names say that they are for us; the time is in microseconds.

        Names that begin with `.` or `_` are passed over: files that are not finished.
        """
        if os.path.isfile(self._root):
            yield self._root
            return
        folders = [self._root]
        while folders:
            found = self._folder(folders.pop(), now)
            yield from found.files
            folders += found.folders

    def _folder(self, path: str, now: int) -> _Folder:
        try:
            date = os.stat(path).st_mtime_ns
        except FileNotFoundError:
            self._known.pop(path, None)
            return _Folder(0, (), ())
        known = self._known.get(path)
        if known is not None and known.date == date:
            return known
        files, folders = [], []
        for entry in os.scandir(path):
            if entry.name[0] not in "._":
                if entry.is_dir():
                    folders.append(entry.path)
                elif entry.name.endswith(_SUFFIXES):
                    files.append(entry.path)
        found = _Folder(date, tuple(files), tuple(folders))
        if now * 1000 - date > _SETTLED_NS:
            self._known[path] = found
        return found
