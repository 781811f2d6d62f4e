"""How does a large thing of arrays stay in a file, so that going on with it costs next to nothing?

Pickled, with its arrays beside it, mapped: what is changed in them is changed in the file. From one
use to the next nothing is written but what is not an array, and arrays that are new or have grown.

    header    a magic word, the stamp, where the pickle is
    arrays    each from a multiple of 64 bytes on
    pickle    everything but the arrays, and where those are

The stamp says what the thing is; its user gives it. A file is opened by taking its stamp away and
has one again when it is left. Whoever dies in between leaves a file without a stamp, which nobody
takes for anything; nor is one taken that another boot of the machine has left, since it may never
have reached the disk. So a file is never wrong, only useless: its user can make the thing again.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import pickle
import struct
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from driftline.recorded.sequence import sync, temporary_of

_MAGIC = b"driftline held 1"
_STAMP = 32
_HEADER = struct.Struct(f"<{len(_MAGIC)}s{_STAMP}sQQQ")
"""The magic word, the stamp, where the pickles begin, how long they are."""
_NO_STAMP = bytes(_STAMP)
_ALIGNED = 64

_USED = 0.5
"""A file of which less than this share is used is written anew."""


def write_held(path: Path, thing: object, stamp: bytes) -> None:
    """Write a file that is there as a whole or not at all, and on disk when this returns."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = temporary_of(path)
    try:
        with open(temporary, "w+b") as stream:
            _write(stream.fileno(), thing, _digest(stamp))
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def read_held(path: Path, stamp: bytes) -> Any | None:
    """The thing in a file, in memory of its own; None if the file is not what the stamp says."""
    try:
        content = bytearray(path.read_bytes())
        return _thing(content[: _HEADER.size], memoryview(content), _digest(stamp))
    except OSError:
        return None


class Place:
    """A file for one thing, and nobody else's while it is in use."""

    __slots__ = ("_handle", "_mapped", "_path")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None
        self._mapped: mmap.mmap | None = None

    def open(self) -> bool:
        """Have it for oneself; False if somebody else does, or there can be no file."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever had it may have put another in its place, and the lock is of the old one.
            if os.path.samestat(os.fstat(self._handle), os.stat(self._path)):
                return True
        except OSError:
            pass
        self.close()
        return False

    def take(self, stamp: bytes) -> Any | None:
        """The thing that was left with this stamp, None if it was not; the file has none now."""
        assert self._handle is not None
        with suppress(OSError, ValueError):  # An empty file cannot be mapped.
            mapped = mmap.mmap(self._handle, 0)
            header = mapped[: _HEADER.size]
            mapped[len(_MAGIC) : len(_MAGIC) + _STAMP] = _NO_STAMP
            thing = _thing(header, memoryview(mapped), _here(stamp))
            if thing is not None:
                self._mapped = mapped
            return thing
        return None

    def leave(self, thing: object, stamp: bytes) -> None:
        """Leave a thing, with a stamp, to whoever comes next."""
        assert self._handle is not None
        with suppress(OSError):  # A full disk, say: then there is none.
            if self._mapped is None or not _write(self._handle, thing, _here(stamp), self._mapped):
                self._replace(thing, _here(stamp))
        self.close()

    def _replace(self, thing: object, stamp: bytes) -> None:
        # Who has the lock is alone, so what is left by one that died is written over.
        temporary = self._path.with_name(f".{self._path.name}.new")
        try:
            with open(temporary, "w+b") as stream:
                _write(stream.fileno(), thing, stamp)
            os.replace(temporary, self._path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def close(self) -> None:
        """Let go of the file. If it was taken and not left, it has no stamp."""
        if self._handle is not None:
            # A mapping has a handle of its own, and lives until the last of its arrays is gone.
            fcntl.flock(self._handle, fcntl.LOCK_UN)
            os.close(self._handle)
            self._handle = self._mapped = None


def _write(handle: int, thing: object, stamp: bytes, mapped: mmap.mmap | None = None) -> bool:
    """Write all but arrays that are in the file as it is mapped, the stamp last.

    False, and nothing written, if most of the file would be waste.
    """
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    raw = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
    base, length = 0, 0
    if mapped is not None:
        whole = np.frombuffer(mapped, np.uint8)
        base, length = whole.ctypes.data, len(whole)
    end = at = -(-max(length, _HEADER.size) // _ALIGNED) * _ALIGNED
    places: list[tuple[int, int]] = []
    for one in raw:
        offset = one.ctypes.data - base
        if not (mapped is not None and len(one) and 0 <= offset <= length - len(one)):
            offset, at = at, at + -(-len(one) // _ALIGNED) * _ALIGNED
        places.append((offset, len(one)))
    there = pickle.dumps(places, protocol=5)
    used = sum(size for _, size in places) + len(there) + len(pickled)
    if mapped is not None and used < _USED * (at + len(there) + len(pickled)):
        return False
    for one, (offset, _) in zip(raw, places, strict=True):
        if offset >= end:
            _put(handle, one.data, offset)
    _put(handle, memoryview(there + pickled), at)
    header = _HEADER.pack(_MAGIC, stamp, at, len(there), len(pickled))
    _put(handle, memoryview(header), 0)
    return True


def _put(handle: int, content: memoryview, at: int) -> None:
    while len(content):
        written = os.pwrite(handle, content, at)
        content, at = content[written:], at + written


def _thing(header: bytes | bytearray, content: memoryview, stamp: bytes) -> Any | None:
    """What is in a file, whose arrays stay there; None if it has another stamp."""
    if len(header) < _HEADER.size:
        return None
    magic, found, at, there, pickled = _HEADER.unpack(header)
    if magic != _MAGIC or found != stamp:
        return None
    try:
        places = pickle.loads(content[at : at + there])
        arrays = [content[offset : offset + size] for offset, size in places]
        return pickle.loads(content[at + there : at + there + pickled], buffers=arrays)
    except Exception:  # What a damaged pickle raises, or one of classes that are no more.
        return None


def _digest(stamp: bytes) -> bytes:
    return hashlib.sha256(stamp).digest()


def _here(stamp: bytes) -> bytes:
    """A stamp that is good until this machine starts again, and for this version of our code."""
    return _digest(b"\n".join((stamp, _boot(), _code())))


@cache
def _boot() -> bytes:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:  # Not Linux. A file then may outlive a loss of power half written.
        return b""


@cache
def _code() -> bytes:
    """What our code says: pickles hold the insides of its classes."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for file in sorted(package.rglob("*.py")):
        digest.update(f"{file.relative_to(package)}\0".encode() + file.read_bytes() + b"\0")
    return digest.digest()
