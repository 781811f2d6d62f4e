"""Is output exact, whatever fails between two steps and is repeated?"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from driftline.errors import FileRefused, PipelineFailed
from driftline.recorded.config import OrderConfig, PipelineConfig, TableConfig
from driftline.recorded.held import Place
from driftline.recorded.recorder import Recorder
from driftline.spark import matched, reformulate
from driftline.spark.identity import claim
from driftline.spark.manifest import committed, pipeline_id, remains
from driftline.spark.reformulate import Shards, cache_directory
from driftline.spark.running import Run
from tests.recorded.worlds import EVERYTHING, QUOTES, World, made_event
from tests.spark import dying

pytestmark = pytest.mark.spark

QUERIES = ("match", "reformulate")


@pytest.fixture
def world(tmp_path) -> World:
    world = World(tmp_path, events_per_batch=30)
    world.changes(*EVERYTHING)
    world.quotes(0, 50)
    return world


def move(world: World, by: int) -> None:
    world.changes(
        {"op": "set", "id": "moved", "params": {"r": by}},
        {"op": "set", "id": "filter", "params": {"p": 95 + by}},
        {"op": "set", "id": "lowest", "params": {"s": by}},
    )


def caches(world: World) -> list[Path]:
    """The mapped files of its shards on this machine."""
    return sorted(cache_directory().glob(f"{pipeline_id(str(world.config.checkpoint))}-*"))


def forget_commits(world: World) -> None:
    """As after a death between the manifest and Spark's note that the batch is done."""
    for query in QUERIES:
        commits = world.config.checkpoint / query / "commits"
        last = max(int(file.name) for file in commits.iterdir() if file.name.isdecimal())
        (commits / f"{last}").unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)


def test_lost_commits_lost_and_wrong_caches_and_what_is_no_event_over_restarts(spark, world):
    """Each restart takes new files too; what is refused is told once."""
    world.arrive("events", ".parquet", b"PAR1 but not really")
    world.changes({"op": "set", "id": "nobody", "params": {}}, {"op": "explode"})
    Run(spark, world.config).once()
    assert world.told() == world.wanted()
    assert [seq for seq, _ in world.refused()] == [54, 55, 56]
    refused = world.refused()
    first = caches(world)
    assert len(first) == 2

    before = content(Path(world.out))
    forget_commits(world)
    move(world, 1)
    world.quotes(50, 80)
    done = Run(spark, world.config).once()
    assert world.told() == world.wanted()
    assert done.notifications < world.wanted().total(), "what counted already was passed over"
    assert before.items() <= content(Path(world.out)).items(), "what counts is never changed"
    assert remains(world.out) == []

    for file in first:
        file.unlink()
    world.quotes(80, 100)
    Run(spark, world.config).once()
    assert world.told() == world.wanted()

    one, other = caches(world)
    raw = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(raw)
    move(world, 5)
    world.quotes(100, 120)
    Run(spark, world.config).once()
    assert world.told() == world.wanted()
    assert world.refused() == refused


def test_workers_that_die_are_replaced_and_what_they_left_is_not_trusted(spark, world, monkeypatch):
    monkeypatch.setattr(matched, "Matching", dying.DyingMatching)
    monkeypatch.setattr(reformulate, "Shards", dying.DyingShards)
    move(world, 1)
    world.quotes(50, 100)
    Run(spark, world.config).once()
    marks = dying.marks(str(world.config.checkpoint))
    assert {"match", "within", "left"} <= set(os.listdir(marks))
    left = Place(marks / "file")
    assert left.open()
    assert left.take((marks / "stamp").read_bytes()) is None, "half of a batch is in it"
    left.close()
    assert world.told() == world.wanted()


KILLED = """
import os, signal, sys
import msgspec
from driftline.recorded.config import PipelineConfig
from driftline.spark import running
from driftline.spark.out import ManifestWriter
from driftline.spark.session import local_session
from driftline.spark.source import DriftlineSource

config = msgspec.json.decode(sys.argv[1], type=PipelineConfig)
spark = local_session("killed")
# Spark's half of the driver first: it must not note anything after the death of ours.
driver = (spark._jvm.java.lang.ProcessHandle.current().pid(), os.getpid())

def die():
    for process in driver:
        os.kill(process, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)

class DyingWriter(ManifestWriter):
    def commit(self, messages, batchId):
        is_it = self._query == "reformulate" and batchId >= 1
        if is_it:
            die()
        super().commit(messages, batchId)

class DyingSource(DriftlineSource):
    def streamWriter(self, schema, overwrite):
        writer = super().streamWriter(schema, overwrite)
        writer.__class__ = DyingWriter
        return writer

running.DriftlineSource = DyingSource
running.Run(spark, config).once()
"""


@pytest.mark.slow
def test_a_driver_that_is_killed_loses_and_doubles_nothing(spark, world, tmp_path):
    """Nothing is flushed, closed or caught: what the next process finds is what was on disk.

    It dies when all is written and a manifest is due, so shards have gone further than what counts.
    What it is to die behind the manifest, lost commits show.
    """
    config = msgspec.json.encode(world.config).decode()
    said = tmp_path / "said"
    with open(said, "wb") as stream:
        # Not a pipe: Spark's workers outlive it for a moment, and would keep that open.
        command = [sys.executable, "-c", KILLED, config]
        killed = subprocess.run(command, timeout=150, check=False, stdout=stream, stderr=stream)
    assert killed.returncode == -signal.SIGKILL, said.read_text()[-3000:]
    counted = max(one.end for one in committed(world.out) if one.query == "reformulate")
    assert counted == 30, "it died when it should"
    move(world, 2)
    world.quotes(50, 70)
    Run(spark, world.config).once()
    assert world.told() == world.wanted()
    # Spark's workers outlive it for a moment: what they still write goes when the next run begins.
    Run(spark, world.config).once()
    assert remains(world.out) == []


def test_a_recorded_file_that_is_not_what_it_was_stops_the_run_until_it_is(spark, world):
    late = world.quotes(50, 60)
    world.record()
    whole = late.read_bytes()
    late.unlink()
    with pytest.raises(PipelineFailed, match=r"^the query \w+ failed: .*0003\.parquet: No such"):
        Run(spark, world.config).once()
    late.write_bytes(whole[:-9] + b"another" + whole[-2:])
    with pytest.raises(PipelineFailed, match=r"0003\.parquet: it has changed") as caught:
        Run(spark, world.config).once()
    assert "\n" not in str(caught.value)
    late.write_bytes(whole)
    Run(spark, world.config).once()
    assert world.told() == world.wanted()
    assert {seq for seq, id, *_ in world.told() if id == "moved"} & set(range(54, 64))


def test_an_order_of_their_own_is_kept_over_batches_and_restarts(spark, tmp_path):
    world = World(tmp_path, OrderConfig("time", lateness=4), events_per_batch=25)
    shuffled = [number ^ 5 for number in range(80)] + [3]
    world.events(*map(made_event, shuffled[:20]))
    world.changes(*EVERYTHING)
    world.events(*map(made_event, shuffled[20:40]))
    Run(spark, world.config).once()
    for file in caches(world):
        file.unlink()
    world.events(*map(made_event, shuffled[40:]))
    Run(spark, world.config).once()
    assert world.told() == world.wanted()
    ((seq, problem),) = world.refused()
    assert seq == 4 + 80
    assert problem.startswith("time ")


def with_run(config: PipelineConfig, **run: object) -> PipelineConfig:
    replace = msgspec.structs.replace
    return replace(config, run=replace(config.run, **run))


OTHERS = {
    "shards": lambda config: with_run(config, shards=3),
    "tables": lambda config: msgspec.structs.replace(
        config, tables={**QUOTES, "trade": TableConfig("number", ticks={"price": "0.01"})}
    ),
    "order": lambda config: msgspec.structs.replace(config, order=OrderConfig("time")),
    "default_type": lambda config: msgspec.structs.replace(
        config, events=msgspec.structs.replace(config.events, default_type="quote")
    ),
}


def content(root: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in root.rglob("*") if file.is_file()}


@pytest.mark.parametrize("name", OTHERS)
def test_another_configuration_is_refused_and_changes_nothing(world, name):
    world.record()
    claim(world.config)
    before = content(world.root)
    with pytest.raises(FileRefused, match=f"made with {name} = .*driftline pipeline replay"):
        Run(None, OTHERS[name](world.config)).once()  # type: ignore[arg-type]
    assert content(world.root) == before
    claim(with_run(world.config, events_per_batch=7, interval=5.0, replayed=1))


def test_a_pipeline_that_another_process_runs_is_refused(world):
    recorder = Recorder(world.config)
    with pytest.raises(FileRefused, match="another process runs this pipeline"):
        Run(None, world.config).once()  # type: ignore[arg-type]
    recorder.close()


def test_pipelines_and_configurations_do_not_share_caches(world, tmp_path):
    """A cache of as many shards and the same inputs, but of other tables, would be taken."""
    claim(world.config)
    found = set()
    shutil.copytree(world.config.checkpoint, tmp_path / "copy")
    (tmp_path / "copy" / "pipeline.json").unlink()
    copied = with_run(world.config, checkpoint=str(tmp_path / "copy"))
    claim(copied)
    for config in (world.config, copied, *(other(world.config) for other in OTHERS.values())):
        shards = Shards(config, str(config.checkpoint), (0, 1))
        found |= {shards._files(shard).cache for shard in (0, 1)}
    assert len(found) == 2 * (2 + len(OTHERS))


def test_a_cache_directory_that_others_write_to_is_not_used(world, tmp_path, monkeypatch):
    claim(world.config)
    monkeypatch.setenv("DRIFTLINE_CACHE_DIR", str(tmp_path / "cache"))
    shards = Shards(world.config, str(world.config.checkpoint), (0, 1))
    assert shards._files(0).cache is not None
    cache_directory().chmod(0o777)
    assert shards._files(0).cache is None
