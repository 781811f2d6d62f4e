"""How are named runs of bytes kept in one file, so that it is whole or refused?

    prelude    what the file is, which format, how long its header is, and the header's checksum
    header     who wrote it, and where each section lies, with its checksum (JSON)
    sections   each from a page of its own on, so that it can be mapped as it is

A file gets its name when it is whole and on the disk; so nobody sees half of one, and who has the
old one mapped keeps it. Every section is verified when the file is opened. That reads it once, at
gigabytes a second: what lies in it is followed by compiled code that does not look where it steps.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from driftline.errors import FileRefused

T = TypeVar("T", bound=np.generic)
Run: TypeAlias = bytes | NDArray[np.generic]

_MAGIC = b"driftidx"
_FORMAT = 1
_PRELUDE = struct.Struct("<8sIII")
# The largest pages in common use; sections at multiples of it can be mapped anywhere.
_PAGE = 1 << 16


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a section lies, counted from the first page after the header."""

    start: int
    size: int
    checksum: int


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`code` is a fingerprint of the code that wrote the file: no other reads it."""

    code: str
    byte_order: str
    generation: int
    sections: dict[str, _Section]


@dataclass(frozen=True, slots=True)
class Sections:
    """An opened file: mapped copy-on-write, so that what is written to it stays in this process."""

    map: mmap.mmap
    generation: int
    places: Mapping[str, slice]

    def __getitem__(self, name: str) -> memoryview:
        return memoryview(self.map)[self.places[name]]

    def array(self, name: str, dtype: type[T]) -> NDArray[T]:
        """A section as an array that lies in the file."""
        place, kind = self.places[name], np.dtype(dtype)
        count = (place.stop - place.start) // kind.itemsize
        return np.frombuffer(self.map, kind, count, place.start)


def write_sections(
    path: Path, sections: Mapping[str, Run], *, code: str, generation: int = 0
) -> None:
    """Write a file, or replace it, as a whole."""
    placed: dict[str, _Section] = {}
    end = 0
    for name, run in sections.items():
        # An array as it lies in memory; it need not be copied to be written.
        size = len(run) if isinstance(run, bytes) else run.nbytes
        placed[name] = _Section(end, size, zlib.crc32(_flat(run)))
        end = _page_after(end + size)
    header = msgspec.json.encode(_Header(code, sys.byteorder, generation, placed))
    prelude = _PRELUDE.pack(_MAGIC, _FORMAT, len(header), zlib.crc32(header))
    base = _page_after(len(prelude) + len(header))
    handle, temporary = tempfile.mkstemp(".new", f".{path.name}.", path.parent)
    try:
        with open(handle, "wb") as stream:
            stream.write(prelude + header)
            for name, run in sections.items():
                stream.seek(base + placed[name].start)
                stream.write(_flat(run))
            stream.truncate(base + end)
            stream.flush()
            # Otherwise a machine that stops now might come back with a name and no content.
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def open_sections(path: Path, *, code: str) -> Sections:
    """Map a file that the same code wrote; one that is damaged or another's is refused."""
    try:
        with open(path, "rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise FileRefused(str(path), None, f"wanted an index, came {error}") from error
    header, base = _header(path, mapped)
    if header.code != code or header.byte_order != sys.byteorder:
        raise _refused(path, "by this code on such a machine", "another's")
    end = base
    places: dict[str, slice] = {}
    for name, section in header.sections.items():
        start = base + section.start
        places[name] = slice(start, start + section.size)
        end = _page_after(start + section.size)
    if len(mapped) != end:
        raise _refused(path, f"of {end} bytes", f"one of {len(mapped)}")
    found = Sections(mapped, header.generation, places)
    for name, section in header.sections.items():
        if zlib.crc32(found[name]) != section.checksum:
            raise _refused(path, "as it was written", f"one whose {name} are damaged")
    return found


def _header(path: Path, mapped: mmap.mmap) -> tuple[_Header, int]:
    """The header, and where the first section begins."""
    if len(mapped) < _PRELUDE.size:
        raise _refused(path, "with a header", f"one of {len(mapped)} bytes")
    magic, format, size, checksum = _PRELUDE.unpack_from(mapped)
    if magic != _MAGIC:
        raise _refused(path, f"that begins with {_MAGIC!r}", f"one that begins with {magic!r}")
    if format != _FORMAT:
        raise _refused(path, f"of format {_FORMAT}", f"one of format {format}")
    raw = mapped[_PRELUDE.size : _PRELUDE.size + size]
    if len(raw) != size or zlib.crc32(raw) != checksum:
        raise _refused(path, "as it was written", "one whose header is damaged")
    return msgspec.json.decode(raw, type=_Header), _page_after(_PRELUDE.size + size)


def _refused(path: Path, wanted: str, came: str) -> FileRefused:
    return FileRefused(str(path), None, f"wanted an index {wanted}, came {came}")


def _flat(run: Run) -> memoryview | bytes:
    if isinstance(run, bytes):
        return run
    return run.data.cast("B") if run.size else b""


def _page_after(end: int) -> int:
    return -(-end // _PAGE) * _PAGE
