"""One file of subscriptions as a pipeline: what is noted, and what only when it has changed."""

from __future__ import annotations

import json
import os

import pytest

from driftline.errors import FileRefused
from driftline.recorded.config import read_config
from driftline.recorded.quick import CONFIG, quick_pipeline
from driftline.recorded.recorder import Recorder, read_book

CHEAP = {"id": "cheap", "text": "SELECT * WHERE x < :p", "params": {"p": 5}}
OLD = {"text": "SELECT * WHERE x > 100"}


class Place:
    def __init__(self, root):
        self.file, self.events, self.out = root / "s.jsonl", root / "events", root / "out"
        self.events.mkdir()

    def given(self, *rows, **options):
        self.file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return quick_pipeline(self.file, self.events, self.out, **options)

    def noted(self):
        files = sorted((self.out / "changes").iterdir())
        return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_the_file_that_is_written_says_the_same_pipeline(place, tmp_path):
    config = place.given(CHEAP)
    assert read_config(place.out / CONFIG) == config
    options = {"checkpoint": tmp_path / 'a "b"', "default_type": "t", "events_per_batch": 7}
    config = place.given(CHEAP, **options)
    assert read_config(place.out / CONFIG) == config
    assert (config.checkpoint, config.run.events_per_batch) == (tmp_path / 'a "b"', 7)
    assert config.events.default_type == "t"


def test_only_what_is_different_is_noted_again(place):
    place.given(CHEAP, OLD, env={"wind": 3})
    place.given(CHEAP, OLD, env={"wind": 3})
    assert place.noted() == [
        [{"op": "env", "name": "wind", "value": 3}, CHEAP, {"id": "line 2", **OLD}]
    ]
    other = {**CHEAP, "params": {"p": 6}}
    place.given(other)
    assert place.noted()[1:] == [
        [
            {"op": "env", "name": "wind", "value": None},
            {"op": "cancel", "id": "cheap"},
            {"op": "cancel", "id": "line 2"},
            other,
        ]
    ]
    config = place.given(other, env={"wind": 4})
    recorder = Recorder(config)
    recorder.look(0)
    recorder.close()
    book = read_book(config)
    assert (book.env, book.filters.keys()) == ({"wind": 4}, {"cheap"})
    assert book.filters["cheap"].params == {"p": 6}


def test_subscriptions_count_for_all_events_however_old(place):
    old = place.events / "old.jsonl"
    old.write_text('{"type": "t", "x": 1}\n')
    os.utime(old, (1_000_000_000, 1_000_000_000))
    recorder = Recorder(place.given(CHEAP))
    recorder.look(0)
    recorder.close()
    assert [one.what for one in recorder.sequence] == ["changes", "events"]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"text": "SELECT"}, "line 2"),
        ({"op": "cancel", "id": "cheap"}, "subscriptions only"),
        (CHEAP, "one that is not taken"),
        ({"text": "SELECT MIN(x) FROM t"}, "no such table"),
        ([1], "a JSON object"),
    ],
)
def test_one_that_cannot_be_honoured_refuses_the_file_and_notes_nothing(place, row, problem):
    with pytest.raises(FileRefused, match=problem) as refused:
        place.given(CHEAP, row)
    assert refused.value.line == 2
    assert not place.out.exists()


def test_what_is_not_there_or_in_the_way_is_refused(place, tmp_path):
    place.given(CHEAP)
    with pytest.raises(FileRefused, match="no such file"):
        quick_pipeline(place.file, tmp_path / "no", place.out)
    with pytest.raises(FileRefused, match="outside"):
        quick_pipeline(place.file, place.events, place.events / "out")
    assert list(place.events.iterdir()) == []
