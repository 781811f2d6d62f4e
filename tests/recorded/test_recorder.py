"""Is everything that comes recorded once, whatever is wrong with it and whoever dies?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from driftline.errors import FileRefused
from driftline.recorded import book
from driftline.recorded.pages import Pages
from driftline.recorded.recorder import Recorder
from driftline.recorded.sequence import RecordedSequence, What
from tests.recorded.worlds import EVERYTHING, FILTER, World

NOW = 1_700_000_000_000_000


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path)


def recorded(world: World) -> list[tuple[str, int, int]]:
    sequence = RecordedSequence(world.config.checkpoint / "sequence").refresh()
    return [(str(one.what), one.first, one.rows) for one in sequence]


def problems(world: World) -> list[str]:
    sequence = RecordedSequence(world.config.checkpoint / "sequence").refresh()
    return [one.problem for one in sequence if one.what is What.NOTHING]


def test_files_get_numbers_by_their_dates_once(world):
    world.changes(*EVERYTHING)
    world.quotes(0, 10)
    world.changes({"op": "cancel", "id": "filter"})
    assert world.record() == 15
    assert world.record() == 0
    world.quotes(10, 12)
    assert world.record() == 2
    assert recorded(world) == [
        ("changes", 0, 4),
        ("events", 4, 10),
        ("changes", 14, 1),
        ("events", 15, 2),
    ]


def test_what_follows_from_many_changes_is_on_several_pages(world, monkeypatch):
    monkeypatch.setattr(book, "PAGE", 3)
    world.changes(*EVERYTHING, {"op": "cancel", "id": "nobody"})
    world.quotes(0, 2)
    world.changes({"op": "cancel", "id": "filter"})
    world.record()
    pages = Pages(world.config.checkpoint / "book")
    assert sorted(pages.numbers()) == [(0, 3), (3, 5), (7, 8)]
    assert [page.first for page in pages.between(2, 5)] == [0, 3]
    assert [seq for seq, _ in pages.refused(0, 8)] == [4]
    assert [*pages.refused(0, 4)] == [*pages.refused(5, 8)] == []


@pytest.mark.parametrize("folder", ["events", "changes"])
def test_a_file_that_cannot_be_read_is_recorded_once_with_the_reason(world, folder):
    world.quotes(0, 3)
    world.arrive(folder, ".parquet", b"PAR1 but not really")
    world.quotes(3, 6)
    assert world.record() == 7
    assert world.record() == 0, "also by the next process"
    assert [what for what, _, _ in recorded(world)] == ["events", "nothing", "events"]
    (problem,) = problems(world)
    assert "0002.parquet" in problem


def test_a_broken_file_that_comes_first_says_nothing_of_what_comes_later(world):
    world.arrive("events", ".parquet", b"PAR1 but not really")
    assert world.record() == 1
    world.quotes(0, 3)
    assert world.record() == 3
    assert len(problems(world)) == 1


def test_changes_that_come_first_say_nothing_of_the_form_of_events(world):
    world.changes(*EVERYTHING)
    assert world.record() == 4
    world.quotes(0, 3)
    assert world.record() == 3
    assert problems(world) == []


def test_json_and_parquet_are_not_mixed(world):
    world.arrive("events", ".jsonl", b'{"type": "quote"}\n')
    world.record()
    world.quotes(0, 3)
    world.record()
    (problem,) = problems(world)
    assert "wanted JSON lines as before, came Parquet" in problem


def test_a_file_that_is_gone_again_is_passed_over(world, monkeypatch):
    world.quotes(0, 3)
    file = world.quotes(3, 6)
    recorder = Recorder(world.config)
    new = recorder._new

    def then_gone(now):
        yield from [*new(now), (False, str(file.with_name("gone.parquet")))]

    monkeypatch.setattr(recorder, "_new", then_gone)
    assert recorder.look(NOW) == 6
    recorder.close()


def test_one_who_dies_between_the_page_and_the_recording_has_recorded_nothing(world, monkeypatch):
    world.changes({"id": "a", "text": FILTER, "params": {"p": 1}})
    world.record()
    late = world.changes({"id": "b", "text": FILTER, "params": {"p": 2}})
    with monkeypatch.context() as patch:
        patch.setattr(RecordedSequence, "append", _die)
        with pytest.raises(KeyboardInterrupt):
            world.record()
    pages = Pages(world.config.checkpoint / "book")
    assert sorted(pages.numbers()) == [(0, 1), (1, 2)], "the page that is not recorded"
    late.unlink()
    world.quotes(0, 3)
    world.record()
    assert sorted(pages.numbers()) == [(0, 1)], "its numbers are those of events now"
    assert recorded(world) == [("changes", 0, 1), ("events", 1, 3)]


def test_the_book_goes_on_with_the_next_process_also_without_a_base(world):
    world.changes(*EVERYTHING)
    world.record()
    world.changes({"op": "set", "id": "filter", "params": {"p": 5}}, {"op": "cancel", "id": "x"})
    world.record()
    recorder = Recorder(world.config)
    assert recorder.book.filters["filter"].params == {"p": 5}
    assert set(recorder.book.remembered) == {"moved", "lowest", "pattern"}
    assert recorder.book.remembers
    recorder.rebase_if_due(first=True)
    recorder.close()
    recorder = Recorder(world.config)
    assert recorder.book.filters["filter"].params == {"p": 5}
    recorder.close()


def test_a_file_of_changes_that_was_changed_afterwards_is_named(world):
    file = world.changes(*EVERYTHING)
    world.record()
    before = file.read_bytes()
    file.write_bytes(before.replace(b'"p":100', b'"p":900'))
    with pytest.raises(FileRefused, match=r"0001\.jsonl: it has changed"):
        Recorder(world.config)
    file.write_bytes(before)
    Recorder(world.config).close()


def test_there_is_one_recorder_at_a_time(world):
    recorder = Recorder(world.config)
    with pytest.raises(FileRefused, match="another process runs this pipeline"):
        Recorder(world.config)
    recorder.close()
    Recorder(world.config).close()


HOLDING = """
import sys, time
from driftline.recorded.config import EventsConfig, OutConfig, PipelineConfig, RunConfig
from driftline.recorded.recorder import Recorder

run = RunConfig(checkpoint=sys.argv[1])
recorder = Recorder(PipelineConfig(EventsConfig("events"), OutConfig("out"), run=run))
print("there", flush=True)
time.sleep(60)
"""


def test_a_process_that_is_killed_holds_nobody_up(world):
    command = [sys.executable, "-c", HOLDING, str(world.config.checkpoint)]
    other = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"there\n"
        with pytest.raises(FileRefused, match="another process runs this pipeline"):
            Recorder(world.config)
    finally:
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        other.stdout.close()
    Recorder(world.config).close()


def test_a_recording_that_was_lost_is_noticed(world):
    world.quotes(0, 3)
    world.record()
    world.quotes(3, 6)
    world.record()
    (world.config.checkpoint / "sequence" / "0.json").unlink()
    with pytest.raises(FileRefused, match="this recording is missing"):
        world.record()


def test_replay_refuses_files_that_have_changed(world):
    file = world.quotes(0, 3)
    world.record()
    file.write_bytes(file.read_bytes() + b"more")
    with pytest.raises(FileRefused, match=r"0001\.parquet: it has changed"):
        world.wanted()


def _die(*_: object) -> None:
    raise KeyboardInterrupt
