"""Directories of events are read whole, or refused with what is wrong."""

from __future__ import annotations

import pytest

from driftline.errors import FileRefused
from driftline.model.event import Event
from driftline.spark.sources import count_events, read_events, stream_events
from driftline.workload.files import write_events, write_json_events

pytestmark = pytest.mark.spark


def test_every_file_is_read_however_deep_and_directories_are_no_attributes(spark, tmp_path):
    write_events([Event("t", {"x": 1})], str(tmp_path / "deep" / "day=7"))
    write_events([Event("t", {"y": "a"})], str(tmp_path / "flat"))
    write_events([Event("t", {"x": 9})], str(tmp_path / "_hidden"))
    frame = read_events(spark, str(tmp_path))
    assert "day" not in frame.columns
    assert {(row.x, row.y) for row in frame.collect()} == {(1, None), (None, "a")}
    assert count_events(str(tmp_path)) == 2
    streamed = stream_events(spark, str(tmp_path), max_files_per_trigger=3)
    assert streamed.isStreaming
    assert streamed.schema == frame.schema


def test_json_lines_are_text_and_are_not_counted(spark, tmp_path):
    write_json_events([Event("t", {"x": 1})] * 3, str(tmp_path / "events.jsonl"))
    assert read_events(spark, str(tmp_path)).columns == ["value"]
    assert read_events(spark, str(tmp_path / "events.jsonl")).count() == 3
    assert stream_events(spark, str(tmp_path)).columns == ["value"]
    assert count_events(str(tmp_path)) is None


def test_an_empty_directory_of_json_may_be_followed(spark, tmp_path):
    assert stream_events(spark, str(tmp_path), "json").columns == ["value"]


@pytest.mark.parametrize("read", [read_events, stream_events])
def test_what_cannot_be_read_is_refused(spark, tmp_path, read):
    with pytest.raises(FileRefused, match="no such file"):
        read(spark, str(tmp_path / "nowhere"))
    with pytest.raises(FileRefused, match="no files there"):
        read(spark, str(tmp_path))
    with pytest.raises(FileRefused, match="no files there"):
        read(spark, str(tmp_path), "parquet")
    with pytest.raises(FileRefused, match="came 'csv'"):
        read(spark, str(tmp_path), "csv")
    with pytest.raises(FileRefused, match="say the format"):
        read(spark, "s3://bucket/events")
    (tmp_path / "a.csv").write_text("x")
    with pytest.raises(FileRefused, match=r"files of one kind.*came a\.csv"):
        read(spark, str(tmp_path))


def test_columns_of_different_types_in_different_files_are_refused(spark, tmp_path):
    write_events([Event("t", {"x": 1})], str(tmp_path / "a"))
    write_events([Event("t", {"x": "1"})], str(tmp_path / "b"))
    with pytest.raises(FileRefused, match="merge"):
        read_events(spark, str(tmp_path))


def test_a_file_cannot_be_followed(spark, tmp_path):
    (file,) = write_events([Event("t", {"x": 1})], str(tmp_path))
    with pytest.raises(FileRefused, match="a directory to follow"):
        stream_events(spark, file)
