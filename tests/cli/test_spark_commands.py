"""`driftline pipeline run`, `replay --into` and `driftline demo`, with a Spark.

The demonstration runs as a process of its own, from the start of its Spark to the end; the others
share one, which they may not stop.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from driftline.recorded.config import read_config
from driftline.recorded.replay import answers, answers_in, replayed
from driftline.spark.manifest import MATCHED, TOLD, committed_files, committed_tables

pytestmark = pytest.mark.spark

BOUND_S = 300


@pytest.fixture
def shared(driftline, spark, monkeypatch):
    """The command line, whose commands find a Spark and leave it running."""
    monkeypatch.setattr(type(spark), "stop", lambda session: None)
    return driftline


def told_in(out):
    tables = [table for name in (MATCHED, TOLD) for table in committed_tables(str(out), name)]
    return answers_in(tables)


def test_the_example_runs_is_what_an_engine_tells_and_runs_again_elsewhere(shared, tmp_path):
    mine, other = tmp_path / "mine", tmp_path / "other"
    assert shared("pipeline", "init", mine).code == 0
    ran = shared("pipeline", "run", mine, "--json", "--metrics", 0)
    assert ran.code == 0, ran.err
    assert "Metrics: http://127.0.0.1:" in ran.err
    done = ran.data
    assert (done["recorded"], done["matched"], done["told"], done["refused"]) == (16, 2, 6, 0)
    assert (done["notifications"], done["batches"], done["lag"]) == (8, 2, 0)
    assert (done["queries"]["match"]["rows"], done["queries"]["match"]["state_rows"]) == (16, 0)
    assert done["queries"]["reformulate"]["state_rows"] > 0
    assert done["queries"]["reformulate"]["state_bytes"] > 0
    check = shared("pipeline", "replay", mine, "--check", "--json")
    assert (check.code, check.data["notifications"]) == (0, 8)
    status = shared("pipeline", "status", mine, "--json").data
    assert {name: one["lag"] for name, one in status["queries"].items()} == {
        "match": 0,
        "reformulate": 0,
    }
    assert (status["notifications"], status["running"]) == (8, False)

    # What comes meanwhile is not for a replay.
    (mine / "events" / "5-late.jsonl").write_text('{"type": "quote", "symbol": "X", "price": 1}\n')
    text = (mine / "pipeline.toml").read_text().replace("# shards = 2", "shards = 3")
    (mine / "pipeline.toml").write_text(text)
    refused = shared("pipeline", "run", mine)
    assert refused.code == 4
    assert "replay --into" in refused.err
    again = shared("pipeline", "replay", mine, "--into", other, "--json")
    assert again.code == 0, again.err
    assert (again.data["recorded"], again.data["notifications"]) == (16, 8)
    wanted = answers(replayed(read_config(mine / "pipeline.toml")))
    assert told_in(other) == told_in(mine / "out") == wanted


def test_a_file_of_subscriptions_is_a_pipeline_that_goes_on_where_it_stopped(shared, tmp_path):
    subscriptions, events, out = (tmp_path / name for name in ("s.jsonl", "events", "out"))
    events.mkdir()

    def run(text, *lines):
        subscriptions.write_text(json.dumps({"id": "cheap", "text": text}) + "\n")
        name = f"{len(list(events.iterdir()))}.jsonl"
        (events / name).write_text("".join(f'{{"type": "q", "x": {x}}}\n' for x in lines))
        words = ("--subscriptions", subscriptions, "--events", events, "--out", out)
        ran = shared("pipeline", "run", *words, "--env", '{"most": 5}', "--json")
        assert ran.code == 0, ran.err
        return ran.data

    assert run("SELECT * WHERE x < env('most')", 1, 9, 2)["matched"] == 2
    # Numbers 2 to 4 were events; 5 and 6 end and begin it.
    again = run("SELECT * WHERE x < 3", 4, 1)
    assert (again["recorded"], again["matched"], again["batches"]) == (9, 1, 1)
    rows = pq.read_table(committed_files(str(out), MATCHED)).to_pylist()
    found = sorted((row["seq"], json.loads(row["value"])["x"]) for row in rows)
    assert found == [(2, 1), (4, 2), (8, 1)]
    assert {tuple(row["subscriptions"]) for row in rows} == {("cheap",)}
    assert shared("pipeline", "status", out, "--json").data["recorded"] == 9


def test_the_demonstration_tells_what_happened_and_spares_other_files(tmp_path, driftline):
    out = tmp_path / "demo"
    code = "from driftline.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "demo", "--out", out, "--count", "400", "--json"],
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["recorded"] > 12_154 + data["subscriptions"], "limits have moved, too"
    assert (data["refused"], data["lag"]) == (0, 0)
    assert data["notifications"] > 10_000
    assert len(data["most_told"]) == 5
    assert {"event", "change"} <= {one["kind"] for one in data["examples"]}
    assert {"least", "moved"} <= {one["id"].partition("-")[0] for one in data["examples"]}
    assert data["subscriptions"] == 404
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    ran = driftline("demo", "--out", tmp_path / "mine")
    assert ran.code == 4
    assert "an empty or new directory" in ran.err
    assert (tmp_path / "mine" / "file").exists()
