"""Which files of an output directory count, and of which numbers of the sequence are they?

    out/
    ├── matched/….parquet         events, each with the subscriptions it was told to
    ├── told/….parquet            what views, followers and patterns were told
    ├── refused/….parquet         rows, changes and files that could not be taken, and why
    └── _manifest/match-0.json    what batch 0 of a query is: its numbers, counts and files

A batch counts from the moment its manifest has its name. Files that no manifest names are the
remains of an attempt that failed, or are being written; readers never see them. To read needs no
Spark; `out` writes.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from driftline.errors import FileRefused

if TYPE_CHECKING:
    import pyarrow as pa

MATCH = "match"
REFORMULATE = "reformulate"
"""The queries of a pipeline."""

MATCHED = "matched"
TOLD = "told"
REFUSED = "refused"

MANIFESTS = "_manifest"
IDENTITY = "pipeline.json"
"""Where a checkpoint says whose it is (see `identity`)."""
TABLES = (MATCHED, TOLD, REFUSED)


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of one table: how many rows it has, and how many notifications that is."""

    table: str
    path: str
    rows: int
    told: int


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One committed batch of one query: the numbers [start, end) of the sequence."""

    query: str
    batch: int
    pipeline: str
    start: int
    end: int
    files: tuple[Written, ...] = ()

    def rows(self, table: str) -> int:
        """How many rows of a table."""
        return sum(one.rows for one in self.files if one.table == table)

    @property
    def notifications(self) -> int:
        """How many times somebody was told."""
        return sum(one.told for one in self.files)


def committed(out: str, besides: Container[tuple[str, int]] = ()) -> list[Manifest]:
    """The manifests of all batches that count, in order; `besides` those whose batch is known."""
    found = [
        _read(file)
        for file in Path(out, MANIFESTS).glob("[!.]*.json")
        if _batch_of(file) not in besides
    ]
    return sorted(found, key=lambda manifest: (manifest.query, manifest.batch))


def _batch_of(file: Path) -> tuple[str, int]:
    query, _, number = file.stem.rpartition("-")
    if not number.isdecimal():
        raise FileRefused(str(file), None, "no manifest: wanted a name like match-0.json")
    return query, int(number)


def committed_batch(out: str, query: str, batch: int) -> Manifest | None:
    """The manifest of one batch; None if it does not count (yet)."""
    file = Path(out, MANIFESTS, f"{query}-{batch}.json")
    return _read(file) if file.exists() else None


def committed_files(out: str, table: str) -> list[str]:
    """The files that count, for any reader of Parquet."""
    return [
        str(Path(out, one.path))
        for manifest in committed(out)
        for one in manifest.files
        if one.table == table
    ]


def committed_tables(out: str, table: str) -> Iterator[pa.Table]:
    """What is in the files that count, one by one: their columns may differ."""
    # Loaded when needed: processes that only commit start often.
    import pyarrow.parquet as pq

    for file in committed_files(out, table):
        yield pq.read_table(file)


def remains(out: str) -> list[Path]:
    """Files that no manifest names: left by attempts that failed, or being written."""
    named = {Path(file) for table in TABLES for file in committed_files(out, table)}
    return [
        file
        for table in TABLES
        for file in Path(out, table).glob("*-*.parquet")
        if file not in named
    ]


def _read(file: Path) -> Manifest:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as problem:
        raise FileRefused(str(file), None, f"no manifest: {problem}") from problem


def check_owner(out: str, query: str, pipeline: str, checkpoint: Path) -> None:
    """FileRefused if an output is of another pipeline, or does not have what this one has done."""
    if any(one.pipeline != pipeline for one in committed(out) if one.query == query):
        why = "it is the output of another pipeline; wanted a directory of its own"
        raise FileRefused(out, None, why)
    done = [int(file.name) for file in checkpoint.glob("commits/*") if file.name.isdecimal()]
    if done and committed_batch(out, query, max(done)) is None:
        why = f"batch {max(done)} of {query} is done, and its manifest is not here"
        raise FileRefused(out, None, f"{why}; wanted the output that goes with {checkpoint.parent}")


class _Whose(msgspec.Struct, frozen=True):
    id: str


def pipeline_id(checkpoint: str) -> str:
    """What tells a pipeline from all others, also from one that had its directory before."""
    file = Path(checkpoint, IDENTITY)
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Whose).id
    except (OSError, msgspec.DecodeError) as problem:
        raise FileRefused(str(file), None, f"no checkpoint of a pipeline: {problem}") from problem
