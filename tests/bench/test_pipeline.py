"""`driftline bench pipeline`: what it is measured by, without Spark, and that it compares."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE
from types import SimpleNamespace

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftline.bench import (
    BENCHMARKS,
    pipeline,
    pipeline_by_hand,
    pipeline_match,
    pipeline_runs,
)
from driftline.bench.pipeline_cpu import tree_cpu_s
from driftline.bench.pipeline_files import config_of, write_events, write_groups
from driftline.bench.pipeline_joins import _W1, _W2
from driftline.bench.pipeline_latency import latencies
from driftline.bench.pipeline_runs import (
    Batch,
    Ran,
    Watched,
    batches_in,
    changes_of,
    commits_of,
    rows_told,
)
from driftline.bench.pipeline_shares import _shares
from driftline.bench.pipeline_tables import tables
from driftline.bench.pipeline_views import recomputed
from driftline.bench.value_peers import scanned
from driftline.bulk import IDS
from driftline.recorded.config import PipelineConfig
from driftline.recorded.recorder import Recorder
from driftline.recorded.sequence import RecordedSequence
from driftline.spark.manifest import MANIFESTS, Manifest, Written
from driftline.workload.matching import WORKLOADS
from driftline.workload.stocks import stocks

PER_BATCH = 100


@pytest.fixture
def config(tmp_path: Path) -> PipelineConfig:
    """W2 with 2,000 subscriptions and 300 events, recorded."""
    made = config_of(tmp_path, PER_BATCH)
    workload = WORKLOADS["W2"]
    assert write_groups(made, workload.groups(2_000)) == 2_000
    write_events(made, workload.type, workload.events(300), PER_BATCH)
    recorder = Recorder(made)
    recorder.look(1)
    recorder.close()
    return made


def _committed(config: PipelineConfig, batch: int, end: int, when_s: float, **more: object) -> None:
    start = max((one.end for one, _ in commits_of(config, "match")), default=0)
    manifest = Manifest("match", batch, "ours", start, end, **more)  # type: ignore[arg-type]
    file = Path(config.out.path, MANIFESTS, f"match-{batch}.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.encode(manifest))
    os.utime(file, (when_s, when_s))


def test_subscriptions_are_recorded_first_and_events_in_their_order(
    config: PipelineConfig,
) -> None:
    sequence = list(RecordedSequence(config.checkpoint / "sequence").refresh())
    assert [one.rows for one in sequence] == [2_000, 100, 100, 100]
    assert changes_of(config) == 2_000
    written = pa.concat_tables([pq.read_table(one.path) for one in sequence[1:]])
    drawn = WORKLOADS["W2"].events(300)
    assert written.column("price").to_pylist() == drawn.column("price").to_pylist()
    assert set(written.column("ce_type").to_pylist()) == {"quote"}


def test_a_batch_takes_from_one_manifest_to_the_next_and_only_full_ones_count(
    config: PipelineConfig,
) -> None:
    ends = [(2_050, 10.0), (2_150, 12.0), (2_250, 12.5), (2_300, 12.6)]
    for batch, (end, when) in enumerate(ends):
        _committed(config, batch, end, when)
    found = batches_in(commits_of(config, "match"), 2_000, PER_BATCH)
    assert [(one.start, one.end) for one in found] == [(2_050, 2_150), (2_150, 2_250)]
    assert [one.events_per_s for one in found] == pytest.approx([50, 200])
    ran = Ran(2_000, found, 0.0, [])
    assert (ran.events_per_s, ran.us) == pytest.approx((125, 5_000))


def test_a_file_is_as_late_as_the_batch_with_its_last_row(config: PipelineConfig) -> None:
    _committed(config, 0, 2_100, 10.0)
    _committed(config, 1, 2_199, 11.0)
    _committed(config, 2, 2_300, 14.0)
    first, second, third = (
        str(Path(config.events.path, f"{number:06}.parquet")) for number in range(3)
    )
    dropped = {second: 10_500_000_000, third: 12_000_000_000}
    assert latencies(config, "match", dropped) == pytest.approx([3.5, 2.0])
    assert latencies(config, "match", {first: 9_000_000_000}) == pytest.approx([1.0])


def _told(config: PipelineConfig, wrong: bool) -> Ran:
    """What a pipeline would have written of the last batch, by a look at everything."""
    workload = WORKLOADS["W2"]
    (group,) = workload.groups(2_000)
    events = workload.events(300)
    symbols, prices = (events.column(one).to_pylist() for one in ("symbol", "price"))
    asked = np.array(group.operands["s"].to_pylist())
    lists = []
    for at in range(200, 300):
        there = (asked == symbols[at]) & (group.operands["lo"] <= prices[at])
        ids = np.flatnonzero(there & (prices[at] <= group.operands["hi"]))
        lists.append([str(one) for one in (ids + wrong) % 2_000])
    out = Path(config.out.path, "matched")
    out.mkdir(parents=True)
    rows = pa.table({"seq": np.arange(2_200, 2_300), "subscriptions": pa.array(lists, IDS)})
    pq.write_table(rows, out / "match-x.parquet")
    written = Written("matched", "matched/match-x.parquet", 100, 0)
    _committed(config, 0, 2_200, 1.0)
    _committed(config, 1, 2_300, 2.0, files=(written,))
    return Ran(2_000, [Batch(2_200, 2_300, 1.0, 0)], 0.0, [])


@pytest.mark.parametrize("wrong", [False, True])
def test_an_answer_that_a_scan_does_not_give_is_no_result(
    config: PipelineConfig, wrong: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_match, "CHECKED", 60)
    workload = WORKLOADS["W2"]
    answer = (config, _told(config, wrong), workload.groups(2_000), workload.events(300))
    assert rows_told(config, "matched", 2_250, 2_260).column("seq").to_pylist()[::9] == [2250, 2259]
    if wrong:
        with pytest.raises(AssertionError, match="not the pairs that a scan finds"):
            pipeline_match._check(*answer)
    else:
        pipeline_match._check(*answer)


def test_what_one_would_write_tells_whom_a_scan_tells() -> None:
    draw = np.random.default_rng(1)
    radii = draw.integers(1, 300, 40).astype(float)
    values = 1_000 + np.cumsum(draw.normal(0, 60, 80)).round()
    expected, _ = scanned(radii, np.full(40, values[0]), values[1:])
    wanted = {(0, id) for id in range(40)}
    wanted |= {(at, int(id)) for at, ids in enumerate(expected, 1) for id in ids}
    parts = pd.DataFrame({"seq": np.arange(80), "price": values})
    for tell in (pipeline_by_hand._told_by_dictionary, pipeline_by_hand._told_by_numpy):
        last, found = None, set()
        for some in (parts[:30], parts[30:]):
            seqs, ids, last = tell(some, dict(enumerate(radii.tolist())), last)
            found |= set(zip(seqs, ids, strict=True))
        assert found == wanted


def test_a_least_value_is_told_when_it_changes() -> None:
    drawn = stocks(50, 400)
    found = dict(recomputed(drawn, 2_000.0, 6_000.0, 100, 300))
    values = drawn.points[:, 1].copy()
    inside = (drawn.points[:, 0] >= 2_000) & (drawn.points[:, 0] <= 6_000)
    least = values[inside].min()
    for at in range(300):
        values[drawn.updates.ids[at]] = drawn.updates.points[at, 1]
        now = values[inside].min()
        assert found.get(at) == (now if now != least and at >= 100 else None)
        least = now
    assert len(found) > 10


def test_the_tables_that_spark_joins_hold_what_was_drawn() -> None:
    groups = WORKLOADS["W1"].groups(300)
    table = _W1().subscriptions(groups)
    assert sorted(table.column("id").to_pylist()) == list(range(300))
    row = table.slice(17, 1).to_pylist()[0]
    (group,) = (one for one in groups if row["id"] in one.numbers)
    asked = list(dict.fromkeys(test.attribute for test in group.alternatives[0]))
    assert [f"a{row[f'a{at}']}" for at in range(3)] == asked
    at = group.numbers.tolist().index(row["id"])
    assert all(row[name] == column[at] for name, column in group.operands.items())
    events = WORKLOADS["W1"].events(5)
    assert _W1().events(events).column("a")[3].as_py()[7] == events.column("a7")[3].as_py()
    assert sum(way.is_nested for way in _W1().ways()) == 1
    assert not any(way.is_nested for way in _W2().ways())


def test_cpu_time_is_that_of_all_processes_also_of_those_that_ended() -> None:
    before = tree_cpu_s()
    if before is None:
        pytest.skip("this system does not say")
    burn = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    ended = tree_cpu_s()
    with subprocess.Popen([sys.executable, "-c", f"{burn}\ninput()"], stdin=PIPE) as running:
        deadline = time.monotonic() + 30
        while (now := tree_cpu_s()) - ended < 0.4 and time.monotonic() < deadline:
            time.sleep(0.02)
        running.communicate(b"\n")
    assert ended - before >= 0.4
    assert now - ended >= 0.4


def test_an_event_costs_what_was_taken_between_two_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = iter([5.0, 6.0, 6.5, 9.0])
    monkeypatch.setattr(pipeline_runs, "tree_cpu_s", lambda: next(spent))
    watched = Watched("match")
    for done in (100, 100, 1_100, 1_600, 4_100):
        watched(SimpleNamespace(done={"match": done, "reformulate": 7}))  # type: ignore[arg-type]
    assert watched.us_between(1_000, 4_000) == pytest.approx(1_000)
    assert watched.us_between(0, 4_100) == pytest.approx(1_000)
    assert watched.us_between(100, 1_100) == pytest.approx(1_000)
    assert watched.us_between(1_600, 4_099) is None


def test_shares_are_of_all_cores() -> None:
    shares = _shares(Batch(0, 100, 2.0, 0), {"kernel": 1.0, "arrow": 2.0})
    assert shares == {"kernel": 0.25, "arrow": 0.5, "rest": 0.25}


def _figures() -> dict[str, object]:
    shares = {"kernel": 0.3, "arrow": 0.3, "rest": 0.4}
    size = {"subscriptions": 100_000, "batch": 500, "matches_per_event": 2.0, "us": 3.0}
    run = {**size, "events_per_s": 400_000.0, "cpu_us": None, "load_s": 9.0, "shares": shares}
    joins = {"counted": {"nested": 500.0, "binned": 8_000.0}, "listed": 4_000.0}
    joined = {**run, "joins": joins, "ratio": 50.0, "ratio_counted": 10.0}
    told = {**run, "told_per_event": 1.0}
    late = {"files": 40, "p50_s": 0.4, "p95_s": 0.9, "max_s": 1.2, "batch_ms": {"addBatch": 200.0}}
    peers = {"peers": {"numpy": 9_000.0}, "ratios": {"numpy": 44.0}}
    return {
        "match": {"W2": {"100000": joined}, "W1": {"100000": joined}},
        "flat": {"by_subscriptions": {"10000": run}, "ratio": 1.2},
        "followers": {**told, "items": 200, **peers},
        "views": {**told, "tuples": 100_000, "views": 1_000},
        "latency": {"stateless": late, "stateful": late},
    }


def test_every_question_has_its_table_and_every_claim_its_figure() -> None:
    assert "pipeline" in BENCHMARKS
    shown = list(tables(_figures()))
    assert all(len(row) == len(one.columns) for one in shown for row in one.rows)
    assert [len(one.rows) for one in shown] == [3, 2, 7, 2, 4]
    claims = {claim.name: claim for claim in pipeline._claims(_figures())}
    assert claims.pop("load_1m").holds is None
    assert all(claim.holds for claim in claims.values())
    assert claims["match_ratio_w1"].measured == 50
