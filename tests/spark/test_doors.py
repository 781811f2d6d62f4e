"""What comes from any source of Spark, and what goes to a database, is there exactly once."""

from __future__ import annotations

from collections import Counter

import msgspec
import pyarrow.parquet as pq
import pytest

from driftline.errors import PipelineFailed
from driftline.recorded.config import PipelineConfig
from driftline.recorded.replay import answers, replayed
from driftline.recorded.sequence import replace_file
from driftline.spark.ingest import _Files
from driftline.spark.jdbc import Database
from driftline.spark.manifest import MATCHED, Manifest, committed_files
from driftline.spark.running import Run

pytestmark = pytest.mark.spark

CHANGES = [
    {"id": "cheap", "text": "SELECT * FROM quote WHERE price < :limit", "params": {"limit": 5}},
    {"id": "mover", "text": "SELECT price FROM quote WHERE moved(price, by => 2)"},
    {"id": "wrong", "text": "SELECT"},
]


@pytest.fixture
def config(tmp_path) -> PipelineConfig:
    """Prices in CSV, which is none of our formats; and a database that Spark brings along."""
    (tmp_path / "csv").mkdir()
    lines = [f"S{at % 3},{at % 7}.5" for at in range(40)]
    (tmp_path / "csv" / "a.csv").write_text("symbol,price\n" + "\n".join(lines) + "\n")
    (tmp_path / "events").mkdir()
    (tmp_path / "changes.jsonl").write_bytes(
        b"".join(msgspec.json.encode(change) + b"\n" for change in CHANGES)
    )
    options = {"path": str(tmp_path / "csv"), "schema": "symbol string, price double"}
    said = {
        "events": {
            "path": str(tmp_path / "events"),
            "format": "csv",
            "options": {**options, "header": "true"},
            "default_type": "quote",
        },
        "changes": {"path": str(tmp_path / "changes.jsonl")},
        "tables": {"quote": {"key": "symbol"}},
        "out": {
            "path": str(tmp_path / "out"),
            "jdbc": {"url": f"jdbc:derby:{tmp_path}/told;create=true"},
        },
    }
    return msgspec.convert(said, PipelineConfig).check()


def test_events_of_another_source_and_a_database(spark, tmp_path, config):
    Run(spark, config).once()
    (tmp_path / "csv" / "b.csv").write_text("symbol,price\nS0,1.0\nS9,99.0\n")
    Run(spark, config).once()
    wanted = answers(replayed(config))
    assert {answer[1] for answer in wanted} == {"cheap", "mover"}
    matched = [pq.read_table(file) for file in committed_files(config.out.path, MATCHED)]
    cheap = sum(len(ids) for table in matched for ids in table["subscriptions"].to_pylist())
    assert cheap == sum(1 for answer in wanted if answer[1] == "cheap") == 31

    database = Database(spark, config.out.jdbc)
    rows = database._read("driftline_matched").collect()
    assert Counter((row.seq, row.subscription) for row in rows) == Counter(
        answer[:2] for answer in wanted if answer[2] == "event"
    )
    rows = database._read("driftline_told").collect()
    assert Counter((row.seq, row.subscription, row.kind) for row in rows) == Counter(
        answer[:3] for answer in wanted.elements() if answer[2] != "event"
    )
    (refused,) = database._read("driftline_refused").collect()
    assert "wanted" in refused.problem
    assert database.deliver(config.out.path) == 0


def test_a_batch_whose_transaction_failed_is_put_in_once(spark, config, monkeypatch):
    """It was written beside the table already, when the process died."""
    with monkeypatch.context() as patch:
        patch.setattr(Database, "deliver", lambda *_: 0)
        Run(spark, config).once()
    database = Database(spark, config.out.jdbc)
    with monkeypatch.context() as patch:
        connection = Database._connection
        left = [3]

        def dying(self):
            left[0] -= 1
            if not left[0]:
                raise RuntimeError("died")
            return connection(self)

        patch.setattr(Database, "_connection", dying)
        with pytest.raises(RuntimeError, match="died"):
            database.deliver(config.out.path)
    assert Database(spark, config.out.jdbc).deliver(config.out.path) > 0
    rows = database._read("driftline_matched").collect()
    assert Counter((row.seq, row.subscription) for row in rows) == Counter(
        answer[:2] for answer in answers(replayed(config)) if answer[2] == "event"
    )


def test_a_database_with_what_another_pipeline_has_told_is_refused(spark, config, tmp_path):
    database = Database(spark, config.out.jdbc)
    for pipeline in ("one", "other"):
        manifest = Manifest("match", 0, pipeline, 0, 5)
        file = tmp_path / pipeline / "_manifest" / "match-0.json"
        replace_file(file, msgspec.json.encode(manifest))
    assert database.deliver(str(tmp_path / "one")) == 1
    assert database.deliver(str(tmp_path / "one")) == 0
    for again in (database, Database(spark, config.out.jdbc)):
        with pytest.raises(PipelineFailed, match="what another pipeline has told"):
            again.deliver(str(tmp_path / "other"))


def test_batches_of_texts_are_lines_of_a_file_each(spark, tmp_path):
    """Also those of many lines, and those that are nothing; another pipeline has its own."""
    texts = spark.createDataFrame([('{"type":\n "q"}\r\n',), (None,)], "value string")
    for pipeline in ("one", "one", "other"):
        _Files(str(tmp_path), pipeline)(texts, 0)
    files = sorted(tmp_path.glob("[!.]*"))
    assert [file.name for file in files] == [
        "ingest-one-0000000000.jsonl",
        "ingest-other-0000000000.jsonl",
    ]
    for file in files:
        assert file.read_text().splitlines() == ['{"type":  "q"} ', "null"]
