"""How is an index kept in a file that processes share?

    words       the memory of the index, as it is: all that matching reads
    numbers     the numbers in use
    id ends     where each id ends in the next section, by number
    ids         their texts, one after the other
    said        by number which of the filters below were said, -1 where that is not kept
    rest        those filters, the bounds of what the definition verifies, and the axes (pickled)

Opening maps the file and reads little of it, however many ids there are: an id is looked up when it
is found. The pages are those of the system's cache, one copy for all processes. An opened index can
be changed like any other; the pages it changes become its own, and the file stays as it is.

A file is read by the code that wrote it and by no other. It is a cache of what can be built again,
and nothing to be exchanged: like any pickle, open only what you or your machine wrote.

    >>> from tempfile import TemporaryDirectory
    >>> from driftline.language.sql import parse
    >>> from driftline.model.event import Event
    >>> index = Index()
    >>> index.add("cheap", parse("SELECT * FROM quote WHERE price < 10").filters())
    >>> with TemporaryDirectory() as place:
    ...     write_index(Path(place, "quotes.index"), index)
    ...     open_index(Path(place, "quotes.index")).match(Event("quote", {"price": 9.5}))
    ['cheap']
"""

from __future__ import annotations

import functools
import hashlib
import pickle
from collections.abc import Sequence
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftline.kernels import layout
from driftline.matching.index import Index
from driftline.matching.memory import Memory
from driftline.matching.parts import Parts
from driftline.matching.sections import Run, Sections, open_sections, write_sections
from driftline.model.filter import Filter

T = TypeVar("T")

# What the sections mean: the layout of the words, the pickled classes, and how they are used.
_PACKAGES = ("driftline.kernels", "driftline.matching", "driftline.model")


def write_index(path: str | PathLike[str], index: Index) -> None:
    """Write the file, or replace it; who has it open keeps what it was."""
    write_sections(Path(path), sections_of(index), code=code())


def open_index(path: str | PathLike[str]) -> Index:
    """The index in a file; FileRefused for one that is damaged, or of other code."""
    return index_of(open_sections(Path(path), code=code()))


@functools.cache
def code() -> str:
    """What the code that reads and writes such files says."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for file in sorted(files(package).iterdir(), key=lambda file: file.name):
            if file.name.endswith(".py"):
                digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def sections_of(index: Index) -> dict[str, Run]:
    """An index as sections, to be written before it is changed again."""
    parts = index._parts()
    words = parts.memory.words
    texts = [id.encode("utf-8", "surrogatepass") for id in parts.ids]
    # By identity, as the index knows them: what shares filters shares them again afterwards.
    place_of: dict[int, int] = {id(None): -1}
    filters: list[tuple[Filter, ...]] = []
    for one in parts.said:
        if id(one) not in place_of:
            place_of[id(one)] = len(filters)
            filters.append(one)  # type: ignore[arg-type]  # None has its place
    said = np.fromiter((place_of[id(one)] for one in parts.said), np.int32, len(parts.said))
    rest = (filters, dict(parts.doubted), parts.axes)
    return {
        "words": words[: int(words[layout.TAIL])],
        "numbers": np.array(parts.numbers, np.int32),
        "id ends": np.cumsum([0, *map(len, texts)], dtype=np.int64),
        "ids": b"".join(texts),
        "said": said,
        "rest": pickle.dumps(rest, protocol=5),
    }


def index_of(sections: Sections) -> Index:
    """The index in an opened file."""
    filters, doubted, axes = pickle.loads(sections["rest"])
    memory = Memory.of_words(sections.array("words", np.int64))
    ids = _Texts(sections.array("id ends", np.int64), sections["ids"])
    said = _Chosen(sections.array("said", np.int32), [*filters, None])
    numbers = sections.array("numbers", np.int32)
    return Index._of_parts(Parts(memory, axes, numbers.data, ids, said, doubted))


class _Texts(Sequence[str]):
    """Texts that are decoded when they are asked for: a million strings would be 60 MB."""

    __slots__ = ("_ends", "_offsets", "_raw")

    def __init__(self, ends: NDArray[np.int64], raw: memoryview) -> None:
        self._offsets = ends
        self._ends = ends.data
        self._raw = raw

    def __getitem__(self, at: Any) -> Any:
        return str(self._raw[self._ends[at] : self._ends[at + 1]], "utf-8", "surrogatepass")

    def __len__(self) -> int:
        return len(self._ends) - 1

    def column(self) -> pa.Array:
        """All of them, as they lie there."""
        ends, raw = pa.py_buffer(self._offsets), pa.py_buffer(self._raw)
        return pa.LargeStringArray.from_buffers(len(self), ends, raw)


class _Chosen(Sequence[T]):
    """For each number one of a few."""

    __slots__ = ("_few", "_which")

    def __init__(self, which: NDArray[np.int32], few: Sequence[T]) -> None:
        self._which = which.data
        self._few = few

    def __getitem__(self, at: Any) -> Any:
        return self._few[self._which[at]]

    def __len__(self) -> int:
        return len(self._which)
