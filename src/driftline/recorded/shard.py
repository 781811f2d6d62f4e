"""How does a shard go on from batch to batch, and begin again after whatever happened?

Its state is a function of what it was given, so its truth is small: a version (how many batches), a
chain (a hash over all that they held, so that a version also says *which* batches), the name of the
last snapshot, and the inputs since. `Memory` keeps that; on Spark it is the state store, which goes
back with a batch that failed.

The interpreter itself lies in a file of this machine, mapped, stamped with version and chain. If
that file is not exactly what memory says (another worker went further, died within, or a batch is
repeated) it is not used: the snapshot is loaded and the inputs since are taken again, at most
`REPLAYED` of them and what one batch brings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from driftline.errors import FileRefused
from driftline.recorded.collection import without_collection
from driftline.recorded.held import Place, read_held, write_held

REPLAYED = 200_000
"""A snapshot is made when more inputs than this would have to be taken again."""

KEPT = 4
"""Snapshots that are kept: as far back as a restart may go, which is a batch."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What a shard is: enough to tell it from all others, and to make it again."""

    version: int
    chain: bytes
    snapshot: int = 0
    snapshot_chain: bytes = b""
    logged: int = 0

    @property
    def stamp(self) -> bytes:
        """What its file is stamped with."""
        return f"{self.version}-{self.chain.hex()}".encode()

    @property
    def snapshot_name(self) -> str:
        """The file of the last snapshot."""
        return f"{self.snapshot:08d}-{self.snapshot_chain.hex()[:16]}"


class Memory(Protocol):
    """Where the truth is kept."""

    def truth(self) -> Truth | None:
        """What was kept last; None in the beginning."""

    def log(self) -> list[bytes]:
        """The inputs since the last snapshot."""

    def keep(self, truth: Truth, inputs: bytes | None) -> None:
        """Keep it, with the inputs that led to it; None: with a snapshot, and no inputs."""


class State(Protocol):
    """What inputs are given to."""

    def take(self, inputs: bytes) -> Any:
        """Take them, in order; what follows from them."""

    def count(self, inputs: bytes) -> int:
        """How many they are."""


@dataclass(frozen=True, slots=True)
class Files:
    """Where a shard's files are: snapshots beside the checkpoint, the mapped one on the machine."""

    snapshots: Path
    cache: Path | None


def advance(
    memory: Memory,
    files: Files,
    begin: Callable[[], State],
    inputs: bytes,
    replayed: int = REPLAYED,
) -> Any:
    """Take a batch of inputs: what follows from them. Memory is the next version's then."""
    with without_collection():
        return _advance(memory, files, begin, inputs, replayed)


def _advance(
    memory: Memory, files: Files, begin: Callable[[], State], inputs: bytes, replayed: int
) -> Any:
    truth = memory.truth() or Truth(0, b"")
    place = None if files.cache is None else Place(files.cache)
    if place is not None and not place.open():
        place = None
    try:
        state = None if place is None else place.take(truth.stamp)
        if state is None:
            state = _made_again(memory, truth, files, begin)
        told = state.take(inputs)
        after = _next(memory, truth, files, state, inputs, replayed)
        if place is not None:
            place.leave(state, after.stamp)
    finally:
        if place is not None:
            place.close()
    return told


def _made_again(memory: Memory, truth: Truth, files: Files, begin: Callable[[], State]) -> State:
    state: State | None
    if truth.snapshot:
        path = files.snapshots / truth.snapshot_name
        state = read_held(path, truth.snapshot_chain)
        if state is None:
            why = (
                "the snapshot that the state refers to is not there, or this version of Driftline"
                " cannot read it; put it back, or replay the sequence into a new directory"
            )
            raise FileRefused(str(path), None, why)
    else:
        state = begin()
    for inputs in memory.log():
        state.take(inputs)
    return state


def _next(
    memory: Memory, truth: Truth, files: Files, state: State, inputs: bytes, replayed: int
) -> Truth:
    chain = hashlib.sha256(truth.chain + hashlib.sha256(inputs).digest()).digest()
    after = replace(
        truth, version=truth.version + 1, chain=chain, logged=truth.logged + state.count(inputs)
    )
    if after.logged <= replayed:
        memory.keep(after, inputs)
        return after
    after = replace(after, snapshot=after.version, snapshot_chain=chain, logged=0)
    write_held(files.snapshots / after.snapshot_name, state, chain)
    memory.keep(after, None)
    _tidy(files.snapshots)
    return after


def _tidy(snapshots: Path) -> None:
    """Remove snapshots that no state refers to any more."""
    names: Sequence[Path] = sorted(one for one in snapshots.iterdir() if one.name[0] != ".")
    for old in names[:-KEPT]:
        with suppress(OSError):
            old.unlink()
