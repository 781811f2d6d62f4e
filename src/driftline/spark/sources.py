"""Where do events come from?

A directory of Parquet files (the wide form of `schemas`) or of JSON lines (the text form), read at
once or followed as files arrive. Every file below the directory is read, however deep; a directory
called `day=2026-01-31` adds no attribute: an event is what its file says. As everywhere in Spark,
names that begin with `.` or `_` are passed over, so a writer finishes a file under such a name and
then renames it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from driftline.errors import FileRefused
from driftline.language.columns import TEXT
from driftline.spark.failure import SPARK_ERRORS, reason

PARQUET = "parquet"
JSON = "json"

_SUFFIXES = {".parquet": PARQUET, ".json": JSON, ".jsonl": JSON, ".ndjson": JSON}
_COMPRESSIONS = (".gz", ".bz2", ".zst", ".lz4", ".snappy")

# Spark's file stream forgets files, and skips new ones, whose date is more than a week before the
# newest it has seen. A file copied with its old date would be lost without a word; remembering all
# names costs some hundred bytes each.
_FILE_AGE_MAX = "36500d"


def read_events(spark: SparkSession, path: str, format: str | None = None) -> DataFrame:
    """All events that are in a file or directory now."""
    known = _format(path, format)
    reader = spark.read.option("recursiveFileLookup", True)
    if known == JSON:
        return reader.text(path).select(TEXT)
    try:
        # Files may lack columns that others have: a missing attribute, not a missing event.
        return reader.option("mergeSchema", True).parquet(path)
    except SPARK_ERRORS as error:
        raise FileRefused(path, None, reason(error)) from error


def stream_events(
    spark: SparkSession,
    path: str,
    format: str | None = None,
    max_files_per_trigger: int | None = None,
) -> DataFrame:
    """The events of a directory, those there now and those of files that come.

    Parquet columns are those of the files there at the start; a column that appears only later is
    read after a restart. A small `max_files_per_trigger` makes small batches: progress sooner, at
    the price of some tenths of a second each.
    """
    known = _format(path, format)
    if _is_local(path) and not Path(path).is_dir():
        raise FileRefused(path, None, "wanted a directory to follow, came a file")
    reader = spark.readStream.option("recursiveFileLookup", True)
    reader = reader.option("maxFileAge", _FILE_AGE_MAX)
    if max_files_per_trigger is not None:
        reader = reader.option("maxFilesPerTrigger", max_files_per_trigger)
    if known == JSON:
        return reader.text(path).select(TEXT)
    return reader.schema(read_events(spark, path, PARQUET).schema).parquet(path)


def count_events(path: str, format: str | None = None) -> int | None:
    """How many rows are there? Known at once for local Parquet, whose files say; else None."""
    if not _is_local(path) or _format(path, format) != PARQUET:
        return None
    try:
        return sum(int(pq.read_metadata(file).num_rows) for file in _files(Path(path)))
    except (pa.ArrowException, OSError) as error:
        raise FileRefused(path, None, str(error)) from error


def _format(path: str, format: str | None) -> str:
    if format not in (None, PARQUET, JSON):
        raise FileRefused(path, None, f"wanted the format {PARQUET} or {JSON}, came {format!r}")
    if not _is_local(path):
        if format is None:
            raise FileRefused(path, None, f"say the format ({PARQUET} or {JSON}) of a remote path")
        return format
    if not Path(path).exists():
        raise FileRefused(path, None, "no such file or directory")
    files = list(_files(Path(path)))
    if format is not None and (format == JSON or files):
        return format
    found = {_SUFFIXES.get(_suffix(file), "") for file in files}
    if not found:
        raise FileRefused(path, None, "no files there, so nothing says what columns events have")
    if len(found) > 1 or "" in found:
        wanted = f"files of one kind: {', '.join(_SUFFIXES)} (or say the format)"
        raise FileRefused(path, None, f"wanted {wanted}, came {', '.join(_examples(files))}")
    return found.pop()


def _examples(files: list[Path]) -> list[str]:
    """One name of each kind, for an error to show."""
    return sorted({_suffix(file): file.name for file in files}.values())[:4]


def _suffix(file: Path) -> str:
    return Path(file.stem).suffix if file.suffix in _COMPRESSIONS else file.suffix


def _files(path: Path) -> Iterator[Path]:
    """The files Spark would read."""
    if path.is_file():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        yield from (Path(folder, name) for name in sorted(names) if not _is_hidden(name))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _is_local(path: str) -> bool:
    return "://" not in path
