"""Does Spark tell what engines tell, however the events come in batches?

A hundred random programs of events and changes are recorded as one sequence; what each is told must
be what an engine of its own tells it.
"""

from __future__ import annotations

import shutil
from collections import Counter

import pyarrow.parquet as pq
import pytest

from driftline.recorded import book
from driftline.recorded.config import PipelineConfig
from driftline.recorded.replay import Answer, answers_in
from driftline.spark.manifest import MATCHED, TOLD, committed_files
from driftline.spark.running import Run
from tests.recorded.programs import (
    ROUNDS,
    comparable,
    config_of,
    programs,
    recorded,
    told_by_engines,
)

pytestmark = pytest.mark.spark

PROGRAMS = 100


@pytest.fixture(scope="module")
def some():
    return programs(PROGRAMS)


@pytest.fixture(scope="module")
def wanted(some) -> Counter[Answer]:
    return told_by_engines(some)


def found(config: PipelineConfig, some) -> Counter[Answer]:
    """What the tables of a pipeline say, as a reader without Spark sees them."""
    files = (file for table in (MATCHED, TOLD) for file in committed_files(config.out.path, table))
    followed = set().union(*(program.followed for program in some))
    return comparable(answers_in(map(pq.read_table, files)), followed)


def test_in_one_batch(spark, tmp_path, some, wanted):
    recorded(some, tmp_path, parquet=True)
    config = config_of(some, tmp_path, shards=2)
    done = Run(spark, config).once()
    assert done.batches == 2, "one of each query"
    assert found(config, some) == wanted
    assert wanted.total() > 5000


def test_in_small_batches_of_three_shards(spark, tmp_path, some, wanted, monkeypatch):
    monkeypatch.setattr(book, "PAGE", 37)
    recorded(some, tmp_path, parquet=False)
    config = config_of(some, tmp_path, shards=3, events_per_batch=997, replayed=500)
    done = Run(spark, config).once()
    assert done.batches >= 12
    assert found(config, some) == wanted
    snapshots = [*(config.checkpoint / "snapshots").glob("*/*")]
    assert snapshots, "more was taken than is ever taken again"


def test_with_restarts_between(spark, tmp_path, some, wanted):
    written = recorded(some, tmp_path, parquet=True)
    later = tmp_path / "later"
    for number, files in enumerate(written):
        for file in files:
            if number > ROUNDS // 2:
                (later / file.parent.name).mkdir(parents=True, exist_ok=True)
                shutil.move(file, later / file.parent.name / file.name)
    config = config_of(some, tmp_path, shards=2, events_per_batch=3001)
    Run(spark, config).once()
    for file in later.glob("*/*"):
        shutil.move(file, tmp_path / file.parent.name / file.name)
    config = config_of(some, tmp_path, shards=2, events_per_batch=1500)
    Run(spark, config).once()
    assert found(config, some) == wanted
