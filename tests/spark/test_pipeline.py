"""Output is exact, whatever fails between two steps and is repeated."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from driftline.errors import DriftlineError, FileRefused, PipelineFailed
from driftline.model.event import Event
from driftline.spark import manifest as manifests
from driftline.spark import pipeline
from driftline.spark.manifest import committed, committed_files
from driftline.spark.pipeline import Progress, match_batch, run_match
from driftline.spark.sinks import ManifestSink, read_committed
from driftline.workload.files import write_events, write_json_events, write_records
from tests.spark.worlds import expected, records

pytestmark = pytest.mark.spark

SUBSCRIPTIONS = records(
    "SELECT * FROM t WHERE x < 5",
    "SELECT * FROM t WHERE x BETWEEN 3 AND 30",
    "SELECT * WHERE x = 7",
)


class Place:
    """Where one pipeline reads and writes."""

    def __init__(self, spark, root: Path) -> None:
        self.spark = spark
        self.events, self.out, self.checkpoint = (
            str(root / name) for name in ("events", "out", "checkpoint")
        )
        self.world: list[Event] = []

    def arrive(self, name: str, first: int, last: int) -> None:
        fresh = [Event("t", {"x": x}, id=f"e{x}") for x in range(first, last)]
        self.world += fresh
        (file,) = write_events(fresh, f"{self.events}/.incoming")
        os.replace(file, f"{self.events}/{name}.parquet")

    def run(self, **options):
        return run_match(
            self.spark, self.events, SUBSCRIPTIONS, self.out, self.checkpoint, **options
        )

    def wanted(self) -> Counter[tuple[str, tuple[str, ...]]]:
        truth = zip(self.world, expected(self.world, SUBSCRIPTIONS), strict=True)
        return Counter((str(event.id), tuple(ids)) for event, ids in truth if ids)

    def found(self) -> Counter[tuple[str, tuple[str, ...]]]:
        """As a reader without Spark sees it."""
        rows = []
        for file in committed_files(self.out):
            rows += pq.read_table(file, columns=["ce_id", "subscriptions"]).to_pylist()
        return Counter((row["ce_id"], tuple(row["subscriptions"])) for row in rows)


@pytest.fixture
def place(spark, tmp_path) -> Place:
    place = Place(spark, tmp_path)
    for number in range(3):
        place.arrive(f"a{number}", number * 20, number * 20 + 20)
    return place


def test_several_files_in_several_batches_give_what_the_reference_gives(place):
    heard: list[Progress] = []
    summary = place.run(max_files_per_trigger=1, progress=heard.append)
    wanted = place.wanted()
    assert place.found() == wanted
    assert (summary.events, summary.matched, summary.batches) == (60, wanted.total(), 3)
    assert summary.notifications == sum(len(ids) for _, ids in wanted.elements())
    assert summary.rejected == 0
    assert summary.seconds > 0
    assert (heard[0].events, heard[0].total) == (0, 60)
    assert (heard[-1].events, heard[-1].total, heard[-1].batches) == (60, 60, 3)
    assert [one.events for one in heard] == sorted(one.events for one in heard)
    read = read_committed(place.spark, place.out).select("ce_id", "subscriptions").collect()
    assert Counter((row[0], tuple(row[1])) for row in read) == wanted


def test_a_restart_goes_on_with_new_files_also_with_an_old_date(place):
    place.run()
    place.arrive("b", 60, 70)
    place.arrive("c", 70, 75)
    long_ago = 1_000_000_000
    os.utime(f"{place.events}/c.parquet", (long_ago, long_ago))
    heard: list[Progress] = []
    summary = place.run(progress=heard.append)
    assert summary.events == 15
    assert heard[0].total == 15
    assert place.found() == place.wanted()
    assert place.run().batches == 0


def test_a_lost_commit_is_repeated_without_duplicates(place):
    place.run(max_files_per_trigger=1)
    before = {file: os.stat(file).st_mtime_ns for file in committed_files(place.out)}
    _forget_commit(place, 2)
    place.arrive("b", 60, 70)
    summary = place.run(max_files_per_trigger=1)
    assert summary.events == 10, "the batch that counted already was passed over"
    assert place.found() == place.wanted()
    assert before.items() <= {f: os.stat(f).st_mtime_ns for f in committed_files(place.out)}.items()


def test_dying_between_the_files_and_the_manifest_loses_and_doubles_nothing(place, monkeypatch):
    commit = manifests.commit

    def die(out_dir, manifest):
        if manifest.batch == 1:
            raise PipelineFailed("the test", "died before the manifest")
        commit(out_dir, manifest)

    with monkeypatch.context() as patch:
        patch.setattr(manifests, "commit", die)
        with pytest.raises(PipelineFailed, match="died before the manifest"):
            place.run(max_files_per_trigger=1)
    assert Path(place.out, "data", "batch=1").exists()
    assert [manifest.batch for manifest in committed(place.out)] == [0]
    assert place.found() < place.wanted()
    place.run(max_files_per_trigger=1)
    assert [manifest.batch for manifest in committed(place.out)] == [0, 1, 2]
    assert place.found() == place.wanted()


def test_dying_between_the_manifest_and_the_commit_loses_and_doubles_nothing(place, monkeypatch):
    commit = manifests.commit

    def die(out_dir, manifest):
        commit(out_dir, manifest)
        raise PipelineFailed("the test", "died after the manifest")

    with monkeypatch.context() as patch:
        patch.setattr(manifests, "commit", die)
        with pytest.raises(PipelineFailed, match="died after the manifest"):
            place.run()
    assert place.found() == place.wanted()
    assert place.run().events == 0
    assert place.found() == place.wanted()


KILLED = """
import os, signal, sys
from driftline.spark import manifest as manifests
from driftline.spark.pipeline import run_match
from driftline.spark.session import local_session

commit, moment = manifests.commit, sys.argv[1]

def dying(out_dir, manifest):
    if manifest.batch == 1 and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    commit(out_dir, manifest)
    if manifest.batch == 1:
        os.kill(os.getpid(), signal.SIGKILL)

manifests.commit = dying
run_match(local_session("killed"), *sys.argv[2:], max_files_per_trigger=1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_killed_process_loses_and_doubles_nothing(place, tmp_path, moment):
    """Nothing is flushed, closed or caught: what the next process finds is what was on disk."""
    write_records(SUBSCRIPTIONS, str(tmp_path / "subscriptions.jsonl"))
    paths = (place.events, str(tmp_path / "subscriptions.jsonl"), place.out, place.checkpoint)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, moment, *paths], timeout=150, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert len(committed(place.out)) == (1 if moment == "before" else 2)
    summary = place.run(max_files_per_trigger=1)
    assert summary.batches == (2 if moment == "before" else 1)
    assert place.found() == place.wanted()


def test_remains_of_a_failed_attempt_are_replaced(place, spark):
    remains = Path(place.out, "rejected", "batch=0")
    remains.mkdir(parents=True)
    (remains / "part-old.parquet").write_bytes(b"half a file")
    place.run()
    assert committed_files(place.out, "rejected") == []
    assert place.found() == place.wanted()


def test_an_output_and_a_checkpoint_of_different_queries_are_refused(place, tmp_path):
    place.run()
    with pytest.raises(FileRefused, match="output of a query"):
        run_match(place.spark, place.events, SUBSCRIPTIONS, place.out, str(tmp_path / "other"))
    with pytest.raises(FileRefused, match="has done batch 0"):
        run_match(
            place.spark, place.events, SUBSCRIPTIONS, str(tmp_path / "other"), place.checkpoint
        )
    sink = ManifestSink(place.out, lambda: "somebody else")
    with pytest.raises(FileRefused, match="batch 0 is of another query"):
        sink.write(place.spark.sql("SELECT 1"), 0)


def test_rejected_rows_are_kept_with_their_problem(spark, tmp_path):
    folder = tmp_path / "events"
    write_json_events([Event("t", {"x": x}, id=f"e{x}") for x in (1, 7, 99)], f"{folder}/a.jsonl")
    (folder / "b.jsonl").write_text('nonsense\n{"type": "t", "data": {"x": "7"}}\n{"data": {}}\n')
    out = str(tmp_path / "out")
    summary = run_match(spark, str(folder), SUBSCRIPTIONS, out, str(tmp_path / "checkpoint"))
    assert (summary.events, summary.matched, summary.rejected) == (6, 2, 2)
    assert summary.notifications == 3
    rows = read_committed(spark, out, "rejected").collect()
    assert {row.value for row in rows} == {"nonsense", '{"data": {}}'}
    assert all(row.problem for row in rows)
    assert read_committed(spark, out).columns == ["value", "subscriptions"]


def test_a_following_run_takes_what_arrives_until_it_is_stopped(place):
    rounds = []

    def stop() -> bool:
        rounds.append(len(committed(place.out)))
        if rounds[-1] == 1 and len(place.world) == 60:
            place.arrive("late", 60, 65)
        return rounds[-1] == 2

    summary = place.run(once=False, interval="100 milliseconds", stop=stop)
    assert summary.events == 65
    assert place.found() == place.wanted()


def test_control_c_ends_a_run_in_order_and_the_next_goes_on(place, capfd):
    """Whether it comes within the first batch or after it; nothing is printed and nothing lost."""

    def interrupt_after(batches: int) -> Callable[[Progress], None]:
        # From here, on the caller's thread, so that the signal cannot come after the run; and
        # once, however many batches are seen at a time.
        left = [True]

        def interrupt(now: Progress) -> None:
            if now.batches >= batches and left:
                left.pop()
                os.kill(os.getpid(), signal.SIGINT)

        return interrupt

    with pytest.raises(KeyboardInterrupt):
        place.run(max_files_per_trigger=1, progress=interrupt_after(0))
    going_on = place.run(once=False, max_files_per_trigger=1, progress=interrupt_after(1))
    assert going_on.batches >= 1
    place.run()
    assert place.found() == place.wanted()
    assert capfd.readouterr().err == ""


def test_the_batch_form_gives_the_same_and_will_not_write_twice(place):
    summary = match_batch(place.spark, place.events, SUBSCRIPTIONS, place.out)
    assert (summary.events, summary.batches) == (60, 1)
    assert place.found() == place.wanted()
    with pytest.raises(FileRefused, match="without output"):
        match_batch(place.spark, place.events, SUBSCRIPTIONS, place.out)


def test_a_file_that_is_no_parquet_is_named(place):
    place.run()
    Path(place.events, "broken.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(DriftlineError, match=r"broken\.parquet"):
        place.run()
    os.remove(f"{place.events}/broken.parquet")
    with pytest.raises(FileRefused, match="outside"):
        run_match(place.spark, place.events, [], f"{place.events}/out", place.checkpoint)


def test_a_failure_in_a_worker_is_told_in_one_sentence(place, monkeypatch, tmp_path):
    # A matcher that cannot be built: its subscriptions are damaged on the way.
    packed = pipeline.pack(SUBSCRIPTIONS)
    damaged = replace(packed, fingerprint="damaged", payload=b"not compressed")
    monkeypatch.setattr(pipeline, "pack", lambda *_: damaged)
    with pytest.raises(PipelineFailed, match=r"^matching .* failed: error: Error -3") as caught:
        place.run()
    assert "\n" not in str(caught.value)


def test_a_damaged_manifest_is_refused(place):
    place.run()
    Path(place.out, "_manifest", "0.json").write_text("{}")
    with pytest.raises(FileRefused, match="no manifest"):
        committed(place.out)


def test_a_manifest_names_what_is_there(place):
    place.run()
    (manifest,) = committed(place.out)
    assert set(committed_files(place.out)) == {
        str(file) for file in Path(place.out, "data", "batch=0").glob("*.parquet")
    }
    raw = msgspec.json.decode(Path(place.out, "_manifest", "0.json").read_bytes())
    assert raw["matched"] == manifest.matched == place.wanted().total()
    shutil.rmtree(place.out)
    with pytest.raises(FileRefused, match="no directory"):
        read_committed(place.spark, place.out)


def _forget_commit(place: Place, batch: int) -> None:
    """As after a crash that came before Spark noted the batch as done."""
    commits = Path(place.checkpoint, "commits")
    (commits / f"{batch}").unlink()
    (commits / f".{batch}.crc").unlink(missing_ok=True)
