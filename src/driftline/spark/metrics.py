"""What does a run tell a Prometheus server that asks?

    driftline_recorded                      numbers of the sequence that are given
    driftline_done{query}, driftline_lag{query}
    driftline_rows_total{query}             taken in this run
    driftline_notifications_total{query}
    driftline_refused_total
    driftline_state_rows{query}, driftline_state_bytes{query}
    driftline_batch_seconds{query}          a histogram, of Spark's own account of each batch

Counts come from the manifests, so they count what was committed and nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Histogram, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from driftline.spark.running import Progress
from driftline.spark.session import LOOPBACK

_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 150, 600)

_OF_QUERY = (
    (GaugeMetricFamily, "done", "Up to which number everything was taken."),
    (CounterMetricFamily, "rows", "Rows taken in this run."),
    (CounterMetricFamily, "notifications", "How many times somebody was told in this run."),
    (GaugeMetricFamily, "state_rows", "Rows in Spark's state store."),
    (GaugeMetricFamily, "state_bytes", "Bytes of Spark's state store."),
)


class Metrics(Collector):
    """The last that was heard of a run, at an address."""

    def __init__(self, port: int, address: str = LOOPBACK) -> None:
        registry = CollectorRegistry()
        self._now: Progress | None = None
        self.batch_seconds = Histogram(
            "driftline_batch_seconds",
            "How long batches took.",
            ["query"],
            buckets=_BUCKETS,
            registry=registry,
        )
        registry.register(self)
        self._server, self._thread = start_http_server(port, address, registry)
        self.port: int = self._server.server_port

    def tell(self, now: Progress) -> None:
        """How far the run is now."""
        self._now = now

    def collect(self) -> Iterable[Metric]:
        """What Prometheus is told."""
        now = self._now
        if now is None:
            return
        said = "Numbers of the sequence that are given."
        yield GaugeMetricFamily("driftline_recorded", said, value=now.recorded)
        said = "Rows, changes and files that could not be taken, in this run."
        yield CounterMetricFamily("driftline_refused", said, value=now.refused)
        lag = GaugeMetricFamily(
            "driftline_lag", "Numbers that are still to take.", labels=["query"]
        )
        for name, one in now.queries.items():
            lag.add_metric([name], now.recorded - one.done)
        yield lag
        for family, what, said in _OF_QUERY:
            found = family(f"driftline_{what}", said, labels=["query"])
            for name, one in now.queries.items():
                found.add_metric([name], getattr(one, what))
            yield found

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Batches(StreamingQueryListener):
    """Hears of each batch how long it took."""

    def __init__(self, seconds: Histogram) -> None:
        self._seconds = seconds

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing to note."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A batch is done."""
        took = event.progress
        self._seconds.labels(took.name or "").observe(took.batchDuration / 1000)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing to note."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Nothing to note."""


@contextmanager
def served(spark: SparkSession, port: int, address: str = LOOPBACK) -> Iterator[Metrics]:
    """Metrics at an address, for as long as it takes; port 0 is any that is free."""
    metrics = Metrics(port, address)
    listener = _Batches(metrics.batch_seconds)
    spark.streams.addListener(listener)
    try:
        yield metrics
    finally:
        spark.streams.removeListener(listener)
        metrics.close()
