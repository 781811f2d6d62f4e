"""Do Spark and the command line answer every case as the specification says?

Both take all subscriptions and all events of a run at once, so every case also meets the texts and
events of all others.
"""

from __future__ import annotations

import json

import pytest

from driftline.language.cloudevents import event_to, value_to
from driftline.workload.files import write_json_events, write_records
from tests.conformance.loader import Run, runs

every_run = pytest.mark.parametrize("run", runs(), ids=lambda run: repr(dict(run.env)))


def answers(run: Run, told: dict[str, list[str]]) -> dict[str, bool]:
    """By case id: was its subscription told of its event? `told` is by the event's text."""
    return {case.id: case.id in told[text(case.event)] for case in run.cases}


def text(event: object) -> str:
    return json.dumps(event_to(event))  # type: ignore[arg-type]


@every_run
def test_the_command_line_matches_only_on_true(run: Run, driftline, tmp_path) -> None:
    write_records(run.records, str(tmp_path / "subscriptions.jsonl"))
    write_json_events(run.events, str(tmp_path / "events.jsonl"))
    ran = driftline(
        "match",
        "--subscriptions",
        tmp_path / "subscriptions.jsonl",
        "--events",
        tmp_path / "events.jsonl",
        "--out",
        tmp_path / "out.jsonl",
        "--env",
        json.dumps({name: value_to(value) for name, value in run.env.items()}),
        "--json",
    )
    assert (ran.code, ran.data["events"], ran.data["refused"]) == (0, len(run.events), 0)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    told: dict[str, list[str]] = {text(event): [] for event in run.events}
    for row in rows:
        told[text(run.events[row["event"] - 1])] = row["subscriptions"]
    assert answers(run, told) == run.expected


@pytest.mark.spark
@every_run
def test_spark_matches_only_on_true(run: Run, spark) -> None:
    from driftline.spark.match import mark
    from driftline.spark.subscriptions import pack

    rows = [(text(event),) for event in run.events]
    marked = spark.createDataFrame(rows, "value string").transform(mark(pack(run.records, run.env)))
    found = marked.collect()
    assert [row.problem for row in found if row.problem] == []
    assert answers(run, {row.value: row.subscriptions or [] for row in found}) == run.expected
