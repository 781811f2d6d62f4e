"""`driftline pipeline run` and `driftline demo` as separate processes, each with its own Spark."""

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

import driftline as dl
from driftline.language.records import record_from
from driftline.spark.manifest import committed_files
from driftline.workload.files import write_events, write_records

pytestmark = pytest.mark.spark

BOUND_S = 180


def run(*words):
    """Its exit code, its standard output as JSON if it is any, and its standard error."""
    code = "from driftline.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def quotes(prices):
    return [dl.Event("quote", {"price": price, "n": n}) for n, price in enumerate(prices)]


def test_the_pipeline_goes_on_where_it_stopped(tmp_path):
    record = record_from({"text": "SELECT * WHERE price < :p", "params": {"p": 5}}, "cheap")
    write_records([record], str(tmp_path / "s.jsonl"))
    write_events(quotes([1, 9, 2]), str(tmp_path / "events" / "a"))
    words = ["pipeline", "run", "--subscriptions", tmp_path / "s.jsonl", "--json"]
    words += ["--events", tmp_path / "events", "--out", tmp_path / "out"]
    code, first, err = run(*words)
    assert code == 0, err
    assert (first["events"], first["matched"], first["notifications"]) == (3, 2, 2)
    write_events(quotes([4, 7]), str(tmp_path / "events" / "b"))
    code, second, err = run(*words)
    assert code == 0, err
    assert (second["events"], second["matched"]) == (2, 1)
    rows = pq.read_table(committed_files(str(tmp_path / "out"))).to_pylist()
    assert sorted(row["price"] for row in rows) == [1, 2, 4]
    assert {tuple(row["subscriptions"]) for row in rows} == {("cheap",)}


def test_a_pipeline_without_events_says_so_with_its_exit_code(tmp_path):
    (tmp_path / "s.jsonl").write_text('{"text": "SELECT *"}\n')
    words = ["--subscriptions", tmp_path / "s.jsonl", "--events", tmp_path / "no"]
    code, data, err = run("pipeline", "run", *words, "--out", tmp_path / "out")
    assert (code, data) == (4, None)
    assert "no such file or directory" in err
    assert "Traceback" not in err


def test_the_demonstration_tells_what_happened_and_spares_other_files(tmp_path):
    out = tmp_path / "demo"
    code, data, err = run("demo", "--out", out, "--count", 200, "--json")
    assert code == 0, err
    assert data["events"] == 12_154
    assert data["rejected"] == 0
    assert data["notifications"] > 1_000
    assert len(data["most_told"]) == 5
    assert len((out / "subscriptions.jsonl").read_text().splitlines()) == 200
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    code, _, err = run("demo", "--out", tmp_path / "mine")
    assert code == 4
    assert "an empty or new directory" in err
    assert (tmp_path / "mine" / "file").exists()
