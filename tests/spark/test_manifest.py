"""Which files of an output count: those that a manifest names, and no others."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftline.errors import FileRefused
from driftline.spark.manifest import (
    Manifest,
    Written,
    committed,
    committed_batch,
    committed_files,
    committed_tables,
    remains,
)


@pytest.fixture
def out(tmp_path):
    """Two batches of one query and one of another; one file is of an attempt that failed."""
    for folder in ("_manifest", "matched", "told"):
        (tmp_path / folder).mkdir()
    for query, batch, table, name in (
        ("match", 10, "matched", "match-a"),
        ("match", 9, "matched", "match-b"),
        ("reformulate", 0, "told", "reformulate-c"),
    ):
        path = f"{table}/{name}.parquet"
        pq.write_table(pa.table({"seq": [batch]}), tmp_path / path)
        manifest = Manifest(query, batch, "id", batch, batch + 1, (Written(table, path, 1, 3),))
        (tmp_path / "_manifest" / f"{query}-{batch}.json").write_bytes(
            msgspec.json.encode(manifest)
        )
    (tmp_path / "told" / "reformulate-d.parquet").touch()
    (tmp_path / "_manifest" / ".match-11.json.7.new").touch()
    return tmp_path


def test_batches_come_in_order_and_known_ones_are_passed_over(out):
    assert [(one.query, one.batch) for one in committed(str(out))] == [
        ("match", 9),
        ("match", 10),
        ("reformulate", 0),
    ]
    (left,) = committed(str(out), besides={("match", 9), ("reformulate", 0)})
    assert (left.batch, left.notifications) == (10, 3)
    assert (left.rows("matched"), left.rows("told")) == (1, 0)
    assert committed_batch(str(out), "match", 9) == committed(str(out))[0]
    assert committed_batch(str(out), "match", 8) is None


def test_files_that_no_manifest_names_are_remains(out):
    assert committed_files(str(out), "told") == [str(out / "told" / "reformulate-c.parquet")]
    tables = committed_tables(str(out), "matched")
    assert [table["seq"].to_pylist() for table in tables] == [[9], [10]]
    assert remains(str(out)) == [out / "told" / "reformulate-d.parquet"]


@pytest.mark.parametrize("name", ["match-9.json", "stray.json"])
def test_a_damaged_manifest_is_refused_by_name(out, name):
    (out / "_manifest" / name).write_text("{}")
    with pytest.raises(FileRefused, match=rf"{name}: no manifest"):
        committed(str(out))
