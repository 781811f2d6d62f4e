"""What Prometheus is told over HTTP is what was committed."""

from __future__ import annotations

import re
import urllib.request
from dataclasses import replace

import pytest

from driftline.cli.pipeline.begin import init
from driftline.recorded.config import read_config
from driftline.spark.metrics import Metrics, served
from driftline.spark.running import Progress, QueryProgress, Run

pytestmark = pytest.mark.spark


def asked(metrics: Metrics) -> dict[str, float]:
    """What stands at /metrics, by name and labels."""
    address = f"http://127.0.0.1:{metrics.port}/metrics"
    with urllib.request.urlopen(address, timeout=10) as answer:
        text = answer.read().decode()
    return {name: float(value) for name, value in re.findall(r"^(\w\S*) (\S+)$", text, re.M)}


QUERY = QueryProgress(
    done=70, batches=2, rows=60, notifications=5, rows_per_s=1.5, state_rows=4, state_bytes=800
)
NOW = Progress(100, {"match": QUERY}, matched=4, told=1, refused=3, seconds=40.0)


def test_it_says_how_far_each_query_is():
    metrics = Metrics(0)
    try:
        assert asked(metrics) == {}
        metrics.tell(NOW)
        metrics.tell(replace(NOW, refused=7))
        assert asked(metrics) == {
            "driftline_recorded": 100,
            "driftline_refused_total": 7,
            'driftline_lag{query="match"}': 30,
            'driftline_done{query="match"}': 70,
            'driftline_rows_total{query="match"}': 60,
            'driftline_notifications_total{query="match"}': 5,
            'driftline_state_rows{query="match"}': 4,
            'driftline_state_bytes{query="match"}': 800,
        }
    finally:
        metrics.close()
    with pytest.raises(OSError, match="refused"):
        asked(metrics)


def test_a_run_is_told_while_it_runs_and_batches_are_timed(spark, tmp_path):
    init(tmp_path / "mine")
    config = read_config(tmp_path / "mine" / "pipeline.toml")
    with served(spark, 0) as metrics:
        # Spark tells of a batch a little after it is committed.
        Run(spark, config, metrics.tell).forever(lambda: is_all_told(metrics))
        found = asked(metrics)
    assert found['driftline_lag{query="reformulate"}'] == 0
    assert found['driftline_notifications_total{query="match"}'] == 2
    assert found['driftline_notifications_total{query="reformulate"}'] == 6
    assert found['driftline_state_rows{query="reformulate"}'] > 0
    assert found['driftline_batch_seconds_sum{query="reformulate"}'] > 0


def is_all_told(metrics: Metrics) -> bool:
    found = asked(metrics)
    return all(
        found.get(f'driftline_done{{query="{one}"}}') == 16
        and found.get(f'driftline_batch_seconds_count{{query="{one}"}}', 0) >= 1
        for one in ("match", "reformulate")
    )
