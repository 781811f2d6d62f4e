"""What may be on a disk when the power fails?

SQLite writes through a layer of ours (an apsw VFS), which notes what each file held when it was
last synced, and every write since. A power loss leaves the former, and of the latter anything:
nothing, all, the first few, or any sectors of any of them. A sector is written whole or not at all,
which is what SQLite takes for granted of disks, and no more.

The journal runs unchanged on this: it gets another connection, with the same methods, and says the
same statements to it. Only what is measured, not what is meant, may be told otherwise (`instead`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512


class Disk:
    """The files of a folder by name: what is safe, and what was written since, in order."""

    def __init__(self) -> None:
        self.safe: dict[str, bytes] = {}
        self.since: list[tuple[str, int, bytes | None]] = []
        self.happened: Callable[[], None] = lambda: None

    def write(self, name: str, at: int, data: bytes) -> None:
        self.since.append((name, at, data))
        self.happened()

    def cut(self, name: str, size: int) -> None:
        self.since.append((name, size, None))
        self.happened()

    def sync(self, name: str) -> None:
        done = [one for one in self.since if one[0] == name]
        self.since = [one for one in self.since if one[0] != name]
        self.safe[name] = _applied(self.safe.get(name, b""), done)
        self.happened()

    def delete(self, name: str) -> None:
        self.safe.pop(name, None)
        self.since = [one for one in self.since if one[0] != name]
        self.happened()

    def after_power_loss(self, draw: random.Random) -> dict[str, bytes]:
        """Files as they may be found."""
        how = draw.randrange(4)
        if how == 0:
            left = []
        elif how == 1:
            left = self.since
        elif how == 2:
            left = self.since[: draw.randrange(len(self.since) + 1)]
        else:
            chance = draw.choice((0.1, 0.5, 0.9))
            left = [part for one in self.since for part in _sectors(one) if draw.random() < chance]
        names = {*self.safe, *(name for name, *_ in left)}
        return {
            name: _applied(self.safe.get(name, b""), [one for one in left if one[0] == name])
            for name in names
        }


def _applied(before: bytes, writes: Iterable[tuple[str, int, bytes | None]]) -> bytes:
    found = bytearray(before)
    for _, at, data in writes:
        if data is None:
            del found[at:]
            continue
        if len(found) < at:
            found.extend(bytes(at - len(found)))
        found[at : at + len(data)] = data
    return bytes(found)


def _sectors(write: tuple[str, int, bytes | None]) -> Iterable[tuple[str, int, bytes | None]]:
    name, at, data = write
    if data is None:
        yield write
        return
    end = at + len(data)
    while at < end:
        until = min(end, (at // SECTOR + 1) * SECTOR)
        yield name, at, data[at - end + len(data) : until - end + len(data)]
        at = until


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, given: Any, flags: list[int]) -> None:
        super().__init__("", given, flags)
        named = given.filename() if isinstance(given, apsw.URIFilename) else given
        self._name = Path(named or "temporary").name
        self._disk = disk

    def xWrite(self, data: bytes, at: int) -> None:  # noqa: N802
        super().xWrite(data, at)
        self._disk.write(self._name, at, bytes(data))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        super().xTruncate(size)
        self._disk.cut(self._name, size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.sync(self._name)


class _Files(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        super().__init__(f"watched {id(disk)}", "")
        self.vfs_name = f"watched {id(disk)}"
        self._disk = disk

    def xOpen(self, name: Any, flags: list[int]) -> _File:  # noqa: N802
        return _File(self._disk, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802
        super().xDelete(name, sync)
        self._disk.delete(Path(name).name)


class Watched:
    """A connection whose files are a disk that may lose its power."""

    def __init__(self, path: str, disk: Disk, instead: Mapping[str, str]) -> None:
        self._files = _Files(disk)
        self._connection = apsw.Connection(path, vfs=self._files.vfs_name)
        self._instead = instead
        # Files of ours have no shared memory; with one process alone the log needs none.
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")

    def execute(self, sql: str, parameters: Any = ()) -> Any:
        return self._connection.execute(self._instead.get(sql, sql), parameters)

    def executemany(self, sql: str, parameters: Iterable[Any]) -> Any:
        return [*self._connection.executemany(sql, parameters)]

    def close(self) -> None:
        self._connection.close()
