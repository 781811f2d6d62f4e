"""Does a pipeline tell on Spark what one engine tells: run, watched, stopped and run again?"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from driftline.errors import FileRefused
from driftline.recorded.config import OutConfig
from driftline.spark.manifest import MANIFESTS, committed, committed_files, remains
from driftline.spark.running import Progress, Run
from tests.recorded.worlds import EVERYTHING, World

pytestmark = pytest.mark.spark


@pytest.fixture
def world(tmp_path) -> World:
    """Events, one subscription of each kind, changes of these, and more events."""
    world = World(tmp_path, events_per_batch=50)
    world.quotes(0, 10)
    world.changes(*EVERYTHING)
    world.quotes(10, 40)
    change_all(world, 104, 1, 4)
    world.quotes(40, 80)
    return world


def change_all(world: World, price: int, by: int, size: int) -> None:
    world.changes(
        {"op": "set", "id": "filter", "params": {"p": price}},
        {"op": "set", "id": "moved", "params": {"r": by}},
        {"op": "set", "id": "lowest", "params": {"s": size}},
    )


def test_a_run_tells_what_one_engine_tells_and_so_does_one_that_goes_on(spark, world):
    heard: list[Progress] = []
    run = Run(spark, world.config, heard.append)
    done = run.once()
    wanted = world.wanted()
    assert world.told() == wanted
    assert {id for _, id, *_ in wanted} == {"filter", "moved", "lowest", "pattern"}
    assert (done.recorded, done.done, done.lag) == (87, {"match": 87, "reformulate": 87}, 0)
    assert (done.batches, done.refused) == (4, 0)
    assert [one["batchId"] for one in run.said("match") if one["numInputRows"]] == [0, 1]
    assert done.notifications == wanted.total() == done.matched + done.told
    assert heard[0].done == {"match": 0, "reformulate": 0}
    assert [one.notifications for one in heard] == sorted(one.notifications for one in heard)
    _its_manifests_name_what_is_there(world)

    long_ago = world.quotes(80, 90)
    os.utime(long_ago, (1, 1))
    change_all(world, 99, 4, 1)
    world.quotes(90, 110)
    again = Run(spark, world.config).once()
    assert world.told() == world.wanted() > wanted
    assert (again.recorded, again.lag) == (120, 0)
    assert again.notifications == (world.wanted() - wanted).total()
    nothing = Run(spark, world.config).once()
    assert (nothing.batches, nothing.lag) == (0, 0)


def _its_manifests_name_what_is_there(world: World) -> None:
    manifests = committed(world.out)
    assert [(one.query, one.batch, one.start, one.end) for one in manifests] == [
        ("match", 0, 0, 50),
        ("match", 1, 50, 87),
        ("reformulate", 0, 0, 50),
        ("reformulate", 1, 50, 87),
    ]
    assert remains(world.out) == []
    for name in ("matched", "told"):
        there = {str(file) for file in Path(world.out, name).glob("*.parquet")}
        assert set(committed_files(world.out, name)) == there
        assert world.table(name).num_rows == sum(one.rows(name) for one in manifests)


def test_a_following_run_takes_what_comes_and_remembers_from_when_somebody_asks(spark, tmp_path):
    world = World(tmp_path, interval=0.1)
    world.changes(EVERYTHING[0])
    world.quotes(0, 20)
    steps: list[Callable[[], object]] = [
        lambda: world.quotes(20, 30),
        lambda: world.changes(*EVERYTHING[1:]),
        lambda: world.quotes(30, 50),
    ]
    queries: list[set[str]] = []
    run = Run(spark, world.config, lambda now: queries.append(set(now.done)))

    def stop() -> bool:
        """Everything that has come is done: let more come."""
        ends = {one.query: one.end for one in committed(world.out)}
        recorded = 20 + 1 if len(steps) == 3 else 30 + 1 if len(steps) == 2 else 34
        if not steps:
            return ends == {"match": 54, "reformulate": 54}
        if ends and set(ends.values()) == {recorded}:
            steps.pop(0)()
        return False

    done = run.forever(stop)
    assert world.told() == world.wanted()
    assert done.lag == 0
    assert queries[0] == {"match"}
    assert queries[-1] == {"match", "reformulate"}


def test_control_c_ends_a_run_in_order_and_the_next_goes_on(spark, world, capfd):
    """Whether it comes before the first batch or after; nothing is printed and nothing lost."""

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
        Run(spark, world.config, interrupt_after(0)).once()
    going_on = Run(spark, world.config, interrupt_after(1)).forever()
    assert going_on.batches >= 1
    Run(spark, world.config).once()
    assert world.told() == world.wanted()
    assert capfd.readouterr().err == ""


def test_an_output_and_a_checkpoint_that_do_not_belong_together_are_refused(spark, world, tmp_path):
    Run(spark, world.config).once()
    replace = msgspec.structs.replace
    other = World(tmp_path / "other")
    with pytest.raises(FileRefused, match="it is the output of another pipeline"):
        Run(spark, replace(other.config, out=world.config.out)).once()
    empty = replace(world.config, out=OutConfig(str(tmp_path / "empty")))
    with pytest.raises(FileRefused, match=r"batch 1 of match is done, .* not here"):
        Run(spark, empty).once()
    for inside in (world.root / "events" / "out", world.root / "changes"):
        with pytest.raises(FileRefused, match="wanted a place outside"):
            Run(spark, replace(world.config, out=OutConfig(str(inside)))).once()
    Path(world.out, MANIFESTS, "match-0.json").write_text("{}")
    with pytest.raises(FileRefused, match="no manifest"):
        Run(spark, world.config).once()
