"""What would Spark's own joins take, for the same events and subscriptions?

    nested    every event beside every subscription
    binned    subscriptions once in each bin that a range of theirs touches, events in the bin of
              their value, a hash join on the bin; the other conditions are looked at on what it
              finds

Subscriptions lie in memory already, in columns, in bins where there are any. *counted* only counts
the pairs of events that lie there too, and is the quickest answer there is. *listed* is what we are
asked for: from Parquet to Parquet, one row for each event, with the ids (texts) it satisfies. Of
bins the best width counts. All must find as many pairs as we do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from driftline.bench.pipeline_cpu import tree_cpu_s
from driftline.bench.pipeline_runs import CORES, Spark
from driftline.workload.matching import ATTRIBUTES
from driftline.workload.prepared import Group

NESTED = 200
"""So many events are joined by a nested loop, which takes them one by one."""
_W1_WIDTHS, _W2_WIDTHS = (10_000, 30_000), (1_500, 3_000, 6_000)
_SLICES = 4 * CORES

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Joined:
    """Events a second, by how they were joined."""

    events: int
    pairs: int
    counted: dict[str, float]
    listed: float
    counted_cpu_us: float | None
    listed_cpu_us: float | None
    """CPU time of an event, in the best way that counts, and as it is listed."""

    @property
    def best(self) -> float:
        """Of those that only count."""
        return max(self.counted.values())


class Way(NamedTuple):
    """How to join: a name, FROM and what follows, and what is put into bins for it, if anything."""

    name: str
    join: str
    binned: str = ""

    @property
    def is_nested(self) -> bool:
        """Is it only for a few events?"""
        return not self.binned


class Stated(Protocol):
    """A workload as tables, and the ways to join them."""

    def subscriptions(self, groups: list[Group]) -> pa.Table:
        """With an id."""

    def events(self, events: pa.RecordBatch) -> pa.Table:
        """With a number."""

    def ways(self) -> Iterator[Way]:
        """All that are tried."""


def joined(
    spark: Spark,
    root: Path,
    name: str,
    groups: list[Group],
    some: pa.RecordBatch,
    pairs_of: Callable[[int], int],
) -> Joined:
    """Some events of a workload with all of its subscriptions.

    `pairs_of` says how many pairs we found for the first so many of the events.
    """
    stated: Stated = _W1() if name == "W1" else _W2()
    events = stated.events(some)
    pairs = pairs_of(len(events))
    _cached(spark, root, "subscriptions", stated.subscriptions(groups))
    _cached(spark, root, "events", events)
    _cached(spark, root, "few", events.slice(0, NESTED))
    counted: dict[str, float] = {}
    cpu: dict[str, float | None] = {}
    for way in stated.ways():
        with _bins(spark, way):
            found, took = _counted(spark, way.join)
        asked = min(NESTED, len(events)) if way.is_nested else len(events)
        ours = pairs if asked == len(events) else pairs_of(asked)
        assert found == ours, f"{name}, {way.name}: {found} pairs, and we have {ours}"
        counted[way.name] = asked / took.seconds
        cpu[way.name] = took.us(asked)
    best = max((way for way in stated.ways() if way.binned), key=lambda way: counted[way.name])
    with _bins(spark, best):
        took = _listed(spark, root, best.join, events.schema.names, pairs)
    spark.catalog.clearCache()
    quickest = max(counted, key=lambda name: counted[name])
    return Joined(
        len(events),
        pairs,
        counted,
        len(events) / took.seconds,
        cpu[quickest],
        took.us(len(events)),
    )


@contextmanager
def _bins(spark: Spark, way: Way) -> Iterator[None]:
    if way.binned:
        spark.sql(f"CACHE TABLE binned AS {way.binned}")
    yield
    if way.binned:
        spark.catalog.dropTempView("binned")


class Took(NamedTuple):
    """What a job took, by the clock and of all cores; the latter is None where it is not known."""

    seconds: float
    cpu_s: float | None

    def us(self, events: int) -> float | None:
        """CPU time of one of so many events."""
        return None if self.cpu_s is None else self.cpu_s / events * 1e6


def _better_of_two(job: Callable[[], T]) -> tuple[T, Took]:
    """Run it twice: the first time has code to compile."""
    found, first = _took(job)
    _, second = _took(job)
    return found, min(first, second)


def _took(job: Callable[[], T]) -> tuple[T, Took]:
    before, start = tree_cpu_s(), time.perf_counter()
    found = job()
    seconds, after = time.perf_counter() - start, tree_cpu_s()
    spent = None if before is None or after is None else after - before
    return found, Took(seconds, spent)


def _counted(spark: Spark, join: str) -> tuple[int, Took]:
    """How many pairs there are."""

    def count() -> int:
        ((found,),) = spark.sql(f"SELECT count(*) {join}").collect()
        return int(found)

    return _better_of_two(count)


def _listed(spark: Spark, root: Path, join: str, names: list[str], pairs: int) -> Took:
    """What a join takes to read what we read, and to write what we write."""
    out = str(root / "listed")
    spark.catalog.uncacheTable("events")
    spark.read.parquet(str(root / "events.parquet")).createOrReplaceTempView("events")
    columns = ", ".join(f"first({name}) AS {name}" for name in names if name != "seq")

    def write() -> None:
        ids = "collect_list(CAST(id AS STRING)) AS ids"
        rows = spark.sql(f"SELECT seq, {columns}, {ids} {join} GROUP BY seq")
        rows.write.mode("overwrite").parquet(out)

    _, took = _better_of_two(write)
    ((found,),) = spark.read.parquet(out).selectExpr("sum(size(ids))").collect()
    assert found == pairs, "not all of them were written"
    return took


def _cached(spark: Spark, root: Path, name: str, table: pa.Table) -> None:
    file = root / f"{name}.parquet"
    pq.write_table(table, file, row_group_size=-(-len(table) // _SLICES))
    frame = spark.read.parquet(str(file)).repartition(_SLICES)
    frame.createOrReplaceTempView(name)
    spark.sql(f"CACHE TABLE {name}")


class _W2:
    """A symbol, and a range of prices."""

    def subscriptions(self, groups: list[Group]) -> pa.Table:
        (group,) = groups
        return pa.table({"id": group.numbers, **group.operands})

    def events(self, events: pa.RecordBatch) -> pa.Table:
        symbols = events.column("symbol").dictionary_decode()
        prices = events.column("price")
        return pa.table({"seq": np.arange(len(events)), "symbol": symbols, "price": prices})

    def ways(self) -> Iterator[Way]:
        for width in _W2_WIDTHS:
            join = (
                f"FROM events JOIN binned ON symbol = s AND price div {width} = bin"
                " AND price BETWEEN lo AND hi"
            )
            yield Way(f"binned {width:,}", join, _in_bins("lo", "hi", width))


class _W1:
    """Three ranges over three of twenty attributes, which are numbers into an array here."""

    _ALL = " AND ".join(f"a[a{at}] BETWEEN lo{at} AND hi{at}" for at in range(3))

    def subscriptions(self, groups: list[Group]) -> pa.Table:
        columns: dict[str, list[np.ndarray]] = {}
        for group in groups:
            asked = dict.fromkeys(test.attribute for test in group.alternatives[0])
            columns.setdefault("id", []).append(group.numbers)
            for at, attribute in enumerate(asked):
                which = np.full(len(group.numbers), ATTRIBUTES.index(attribute), np.int32)
                columns.setdefault(f"a{at}", []).append(which)
            for name, operand in group.operands.items():
                columns.setdefault(name, []).append(operand)
        return pa.table({name: np.concatenate(parts) for name, parts in columns.items()})

    def events(self, events: pa.RecordBatch) -> pa.Table:
        values = np.column_stack([events.column(name).to_numpy() for name in ATTRIBUTES])
        edges = np.arange(0, values.size + 1, len(ATTRIBUTES), dtype=np.int32)
        arrays = pa.ListArray.from_arrays(edges, values.ravel())
        return pa.table({"seq": np.arange(len(events)), "a": arrays})

    def ways(self) -> Iterator[Way]:
        yield Way("nested", f"FROM few JOIN subscriptions ON {self._ALL}")
        each = "(SELECT seq, a, posexplode(a) AS (k, v) FROM events)"
        # By the attribute that most ask for, and by the one that fewest do.
        for at in (0, 2):
            for width in _W1_WIDTHS:
                on = f"k = a{at} AND v div {width} = bin AND {self._ALL}"
                name = f"binned {width:,} by attribute {at + 1}"
                binned = _in_bins(f"lo{at}", f"hi{at}", width)
                yield Way(name, f"FROM {each} JOIN binned ON {on}", binned)


def _in_bins(low: str, high: str, width: int) -> str:
    bins = f"explode(sequence({low} div {width}, {high} div {width}))"
    return f"SELECT *, {bins} AS bin FROM subscriptions"
