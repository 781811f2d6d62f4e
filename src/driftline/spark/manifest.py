"""Which files of an output directory count?

    out/
    ├── data/batch=0/part-….parquet        events with their subscriptions
    ├── rejected/batch=0/part-….parquet    rows that were no events, if there were any
    └── _manifest/0.json                   what batch 0 is: its counts and the names of its files

A batch counts from the moment its manifest has its name, which is the last step and cannot happen
by half: temporary file, fsync, rename. Files that no manifest names are the remains of an attempt
that failed; readers never see them, and the next attempt replaces them.

The directory must be on a file system where renaming is atomic: a local disk or a mount of one.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from driftline.errors import FileRefused
from driftline.spark.schemas import SUBSCRIPTIONS

MANIFESTS = "_manifest"
DATA = "data"
REJECTED = "rejected"


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One committed batch. `query` says whose it is: the id that Spark keeps in the checkpoint."""

    batch: int
    query: str
    subscriptions: str
    events: int
    matched: int
    notifications: int
    rejected: int
    data_files: tuple[str, ...] = ()
    rejected_files: tuple[str, ...] = ()


def folder(out_dir: str, kind: str, batch: int) -> Path:
    """Where the files of a batch go."""
    return Path(out_dir, kind, f"batch={batch}")


def files_in(out_dir: str, kind: str, batch: int) -> tuple[str, ...]:
    """The Parquet files a batch has written, relative to the output directory."""
    found = folder(out_dir, kind, batch).glob("part-*.parquet")
    return tuple(sorted(file.relative_to(out_dir).as_posix() for file in found))


def count_rows(out_dir: str, files: tuple[str, ...]) -> int:
    """How many rows the files hold, by their own account."""
    return sum(pq.read_metadata(Path(out_dir, file)).num_rows for file in files)


def count_notifications(out_dir: str, files: tuple[str, ...]) -> int:
    """How many ids the lists hold, summed. Every list written has one or more, and none is null, so
    the number of leaf values in the file's own statistics is that sum.
    """
    total = 0
    for file in files:
        metadata = pq.read_metadata(Path(out_dir, file))
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            columns = map(group.column, range(group.num_columns))
            total += sum(
                column.num_values
                for column in columns
                if column.path_in_schema.startswith(f"{SUBSCRIPTIONS}.list.")
            )
    return total


def commit(out_dir: str, manifest: Manifest) -> None:
    """Make the batch count. Its files are on disk before the manifest that names them is."""
    for file in (*manifest.data_files, *manifest.rejected_files):
        _sync(Path(out_dir, file))
    for kind, files in ((DATA, manifest.data_files), (REJECTED, manifest.rejected_files)):
        if files:
            _sync(folder(out_dir, kind, manifest.batch))
    final = Path(out_dir, MANIFESTS, f"{manifest.batch}.json")
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = final.with_name(f".{final.name}.new")
    with open(temporary, "wb") as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, final)
    _sync(final.parent)


def committed(out_dir: str) -> list[Manifest]:
    """The manifests of all batches that count, in order."""
    files = Path(out_dir, MANIFESTS).glob("*.json")
    found = [_read(file) for file in files if not file.name.startswith(".")]
    return sorted(found, key=lambda manifest: manifest.batch)


def committed_batch(out_dir: str, batch: int) -> Manifest | None:
    """The manifest of one batch; None if it does not count (yet)."""
    file = Path(out_dir, MANIFESTS, f"{batch}.json")
    return _read(file) if file.exists() else None


def committed_files(out_dir: str, kind: str = DATA) -> list[str]:
    """The files that count, for any reader of Parquet: `pyarrow.parquet.read_table(files)`."""
    return [
        str(Path(out_dir, file))
        for manifest in committed(out_dir)
        for file in (manifest.data_files if kind == DATA else manifest.rejected_files)
    ]


def _read(file: Path) -> Manifest:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise FileRefused(str(file), None, f"no manifest: {error}") from error


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
