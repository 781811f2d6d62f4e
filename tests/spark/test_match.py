"""The match stage says of every row what the reference says."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from driftline.errors import DriftlineError, InvalidValue, NotSupported
from driftline.language.cloudevents import event_from, event_to, value_to
from driftline.language.records import Record
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.value import Value, microseconds_of
from driftline.spark.match import mark, match
from driftline.spark.subscriptions import pack
from driftline.testing.conditions import environments, events
from driftline.testing.strategies import standings
from driftline.workload.files import table_of
from tests.spark.worlds import drawn, expected, records

pytestmark = pytest.mark.spark


def answers(marked: DataFrame, key: str) -> dict[object, tuple[list[str] | None, str | None]]:
    # Only what is asked: PySpark itself cannot collect a time in the year 1.
    rows = marked.select(key, "subscriptions", "problem").collect()
    return {row[key]: (row["subscriptions"], row["problem"]) for row in rows}


def random_records(count: int, seed: int) -> list[Record]:
    return [Record(f"s{n}", one) for n, one in enumerate(drawn(standings(), count, seed))]


def test_random_text_events_match_as_the_reference_says(spark, seed):
    subscriptions = random_records(150, seed)
    (env, *_) = drawn(environments(), 5, seed)
    envelopes = [event_to(event) for event in drawn(events(), 300, seed)]
    texts = [json.dumps({**envelope, "id": str(n)}) for n, envelope in enumerate(envelopes)]
    truth = expected([event_from(json.loads(text)) for text in texts], subscriptions, env)
    rows = spark.createDataFrame([(text,) for text in texts], "value string").repartition(3)
    found = answers(rows.transform(mark(pack(subscriptions, env))), "value")
    assert {text: found[text] for text in texts} == {
        text: (ids or None, None) for text, ids in zip(texts, truth, strict=True)
    }
    assert any(truth), "a world in which nothing matches shows nothing"
    kept = answers(rows.transform(match(subscriptions, env)), "value")
    assert kept == {text: found[text] for text in texts if found[text][0]}


def test_random_wide_events_match_as_the_reference_says(spark, seed, tmp_path):
    world = [_renamed(event, f"{n}") for n, event in enumerate(drawn(events(), 300, seed))]
    # Each attribute has a column of the type it has first; other values go to ce_data.
    homes: dict[str, type] = {}
    for event in world:
        for name, value in event.attributes.items():
            homes.setdefault(name, type(value))
    wide, data = [], []
    for event in world:
        fits = {k: v for k, v in event.attributes.items() if type(v) is homes[k]}
        rest = {k: value_to(v) for k, v in event.attributes.items() if k not in fits}
        wide.append(_renamed(event, str(event.id), fits))
        data.append(json.dumps(rest))
    assert len(set(data)) > 1, "no attribute changed its type"
    table = table_of(wide).append_column("ce_data", pa.array(data))
    pq.write_table(table, tmp_path / "events.parquet")
    subscriptions = random_records(150, seed)
    truth = expected(world, subscriptions)
    rows = spark.read.parquet(str(tmp_path / "events.parquet"))
    found = answers(rows.transform(mark(pack(subscriptions))), "ce_id")
    assert found == {event.id: (ids or None, None) for event, ids in zip(world, truth, strict=True)}
    assert any(truth), "a world in which nothing matches shows nothing"


def _renamed(event: Event, id: str, attributes: dict[str, Value] | None = None) -> Event:
    kept = event.attributes if attributes is None else attributes
    rest = {"time": event.time, "source": event.source, "entered": event.entered}
    return Event(event.type, kept, id=id, **rest)


EDGES = [
    {"x": 2**53 + 1},
    {"x": 2**63 - 1},
    {"x": -(2**63)},
    {"x": 0},
    {},
]

FLOATS = [float(2**53), math.nan, math.inf, -math.inf, -0.0, 5e-324, None]


def test_numbers_at_the_edges_compare_exactly(spark):
    subscriptions = records(
        "SELECT * WHERE x = 9007199254740993",
        "SELECT * WHERE x > 9007199254740992.0",
        "SELECT * WHERE x = 9223372036854775807",
        "SELECT * WHERE x < -9223372036854775807",
        "SELECT * WHERE x = 0",
        "SELECT * WHERE x IS NULL",
        "SELECT * WHERE x IS NOT NULL",
        "SELECT * WHERE NOT x > 0",
    )
    for values, column in (
        ([one.get("x") for one in EDGES], "bigint"),
        (FLOATS, "double"),
    ):
        rows = [(number, value) for number, value in enumerate(values)]
        frame = spark.createDataFrame(rows, f"n int, x {column}")
        truth = expected([Event("t", {"x": value}) for value in values], subscriptions)
        found = answers(frame.transform(mark(pack(subscriptions), "t")), "n")
        assert found == {n: (ids or None, None) for n, ids in enumerate(truth)}
    assert expected([Event("t", {"x": 2**53 + 1})], subscriptions) == [["s0", "s1", "s6"]]


def test_text_times_and_bytes_at_the_edges_compare_exactly(spark):
    subscriptions = records(
        "SELECT * WHERE s = ''",
        "SELECT * WHERE s LIKE 'é%'",
        "SELECT * WHERE s > 'z'",
        "SELECT * WHERE t < TIMESTAMP '1970-01-01T00:00:00Z'",
        "SELECT * WHERE t = TIMESTAMP '1500-02-03T04:05:06.000007Z'",
        "SELECT * WHERE hour(t) = 4",
    )
    old = datetime(1500, 2, 3, 4, 5, 6, 7, tzinfo=UTC)
    world = [
        Event("t", {"s": ""}),
        Event("t", {"s": "é\U0001f600", "t": datetime(1969, 12, 31, 23, 59, tzinfo=UTC)}),
        Event("t", {"s": "\x00", "t": old}),
    ]
    rows = []
    for number, event in enumerate(world):
        t = event.attributes.get("t")
        rows.append((number, event.attributes.get("s"), None if t is None else microseconds_of(t)))
    # As microseconds, because PySpark would take a datetime through the local time.
    frame = spark.createDataFrame(rows, "n int, s string, u long").select(
        "n", "s", F.timestamp_micros("u").alias("t")
    )
    truth = expected(world, subscriptions)
    found = answers(frame.transform(mark(pack(subscriptions), "t")), "n")
    assert found == {n: (ids or None, None) for n, ids in enumerate(truth)}
    assert truth[2] == ["s3", "s4", "s5"]


def test_now_reads_the_stamp_of_entry_and_else_the_time(spark):
    subscriptions = records("SELECT * WHERE hour(now()) = 1", "SELECT * WHERE hour(now()) = 2")
    frame = spark.sql(
        """SELECT * FROM VALUES
        (0, TIMESTAMP'2026-01-01 01:30:00Z', TIMESTAMP'2026-01-01 02:30:00Z'),
        (1, TIMESTAMP'2026-01-01 01:30:00Z', NULL),
        (2, NULL, NULL) AS (n, ce_time, ce_entered)"""
    )
    found = answers(frame.transform(mark(pack(subscriptions), "t")), "n")
    assert found == {0: (["s1"], None), 1: (["s0"], None), 2: (None, None)}


def test_rows_that_are_no_events_come_out_with_their_problem(spark, tmp_path):
    lines = [b'{"type": "t", "data": {"x": 2}}', b"", b"nonsense", b'{"type": "\xff"}']
    lines += [b'{"data": {"x": 2}}', b'{"type": "t", "data": {"x": 0}}']
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(lines))
    rows = spark.read.text(str(tmp_path)).transform(match(records("SELECT * WHERE x > 1")))
    kept = rows.select("subscriptions", "problem").collect()
    assert sum(row.subscriptions == ["s0"] for row in kept) == 1
    problems = [row.problem for row in kept if row.problem is not None]
    assert len(problems) == 4
    assert all(row.subscriptions is None for row in kept if row.problem is not None)
    assert sum("UTF-8" in problem for problem in problems) == 1


def test_columns_come_out_as_they_went_in(spark):
    frame = spark.sql("SELECT 1 AS `a.b`, 2 AS A, CAST(3 AS TINYINT) AS c, 't' AS ce_type")
    frame = frame.withColumnRenamed("A", "Weird `name`")
    matched = frame.transform(match(records("SELECT * WHERE c = 3")))
    assert matched.schema.fields[:-2] == frame.schema.fields
    (row,) = matched.collect()
    assert row.asDict() == {
        **{"a.b": 1, "Weird `name`": 2, "c": 3, "ce_type": "t"},
        **{"subscriptions": ["s0"], "problem": None},
    }


def test_columns_apart_only_in_case_are_two_attributes(spark):
    frame = spark.sql("SELECT 1 AS x, 2 AS X")
    marked = frame.transform(
        mark(pack(records("SELECT * WHERE x = 1", "SELECT * WHERE X = 1")), "t")
    )
    assert marked.collect()[0][2] == ["s0"]


def test_ids_come_in_the_order_the_subscriptions_were_given(spark):
    subscriptions = [
        Record(id, Standing.of(parse("SELECT * WHERE x = 1"))) for id in ("z", "a", "10", "9")
    ]
    (row,) = spark.sql("SELECT 1 AS x").transform(match(subscriptions, default_type="t")).collect()
    assert row.subscriptions == ["z", "a", "10", "9"]


def test_nothing_runs_before_the_result_is_asked_for(spark: SparkSession):
    frame = spark.sql("SELECT assert_true(false) IS NULL AS x, 't' AS ce_type")
    frame.transform(match(records("SELECT * WHERE x"))).explain()  # would raise if it ran


def test_what_cannot_be_matched_is_refused_before_anything_runs(spark: SparkSession):
    with pytest.raises(InvalidValue, match=r"column price: .* came decimal128"):
        spark.sql("SELECT 't' AS ce_type, 10.25 AS price").transform(match(records("SELECT *")))
    with pytest.raises(NotSupported):
        match([Record("s", Standing.of(parse("SELECT MIN(x) FROM t")))])
    with pytest.raises(DriftlineError, match="env"):
        match(records("SELECT *"), env={"zone": object()})


def test_an_empty_frame_gives_an_empty_frame(spark: SparkSession):
    frame = spark.createDataFrame([], "ce_type string, x int")
    assert frame.transform(match(records("SELECT *"))).collect() == []
    assert frame.transform(match([])).collect() == []
