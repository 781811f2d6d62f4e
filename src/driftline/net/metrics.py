"""What does a broker tell a Prometheus server that asks?

Nothing is counted for it: what is there is read when somebody asks. Names are in base units; a
label is the name of a broker, never anything of a party (docs/reference/observability.md has all).

prometheus_client is imported when somebody asks: a broker without it runs, and says what it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from driftline.errors import NotSupported
from driftline.net.buckets import Buckets
from driftline.net.status import status_of

if TYPE_CHECKING:
    from driftline.net.server import Server

# (name, what of the status, help); the library adds _total to what counts.
_COUNTS = (
    ("events_published", "published", "Events that parties published here."),
    ("events_refused", "refused", "Events that were not taken, for a reason that was told."),
    ("matches", "matched", "How often an event satisfied a subscription here."),
    ("matches_quiet", "quiet", "Of these, how often that told nothing: views, patterns, moved."),
    ("notifications", "told", "Notifications made for parties here."),
    ("notifications_dropped", "dropped", "Notifications that slow consumers lost."),
    ("notifications_conflated", "conflated", "Notifications that a later one took the place of."),
    ("gaps", "gaps", "How often somebody was told that something is missing."),
    ("received_bytes", "bytes_in", "Bytes from clients and other brokers."),
    ("sent_bytes", "bytes_out", "Bytes to clients and other brokers."),
    (
        "connections_turned_away",
        "turned_away",
        "Connections that ended before they said who they are, by us.",
    ),
    ("connections_unproven", "unproven", "Connections of those who did not prove who they are."),
)
_LEVELS = (
    ("connections", "connections", "Connections, those of other brokers among them."),
    ("guests", "guests", "Clients that are connected."),
    ("subscriptions", "subscriptions", "Subscriptions of parties here."),
    ("durable_subscriptions", "durable", "Of these, durable ones."),
    ("kept_notifications", "kept", "Kept for durable subscriptions until they were had."),
    ("journal_waiting_effects", "waiting_for_journal", "What waits for a commit."),
)
_OF_LINKS = (
    ("link_received_bytes", "bytes_in", "Bytes that came from a neighbour.", True),
    ("link_sent_bytes", "bytes_out", "Bytes that went to a neighbour.", True),
    ("link_given_up_events", "given_up", "Events that a neighbour was away too long for.", True),
    ("link_up", "up", "Is there a connection to a neighbour?", False),
    ("link_waiting_events", "waiting", "Events on their way to a neighbour.", False),
)


def metrics_of(server: Server) -> bytes:
    """All metrics of a server, in the text format of Prometheus; see `CONTENT_TYPE`.

    `NotSupported` says what to install.
    """
    try:
        from prometheus_client import (
            CollectorRegistry,
            PlatformCollector,
            ProcessCollector,
            generate_latest,
        )
    except ImportError as problem:
        why = f"they need prometheus_client: pip install 'driftline[open]' ({problem})"
        raise NotSupported("metrics", why) from None
    registry = CollectorRegistry()
    registry.register(_Of(server))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return generate_latest(registry)


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Of:
    """What there is at one server, when it is asked."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def collect(self) -> Iterable[Any]:
        """See `prometheus_client.registry.Collector`."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

        server, status = self._server, status_of(self._server)
        known = {"broker": server.config.name, "version": _version()}
        yield InfoMetricFamily("driftline_build", "Which broker this is.", value=known)
        for name, what, said in _COUNTS:
            yield CounterMetricFamily(f"driftline_{name}", said, value=_number(status[what]))
        garbled = server.broker.carrying.garbled
        said = "Bundles of neighbours of which some was no event."
        yield CounterMetricFamily("driftline_bundles_garbled", said, value=garbled)
        levels = [(name, _number(status[what]), said) for name, what, said in _LEVELS]
        for name, value, said in (*levels, *self._more_levels()):
            yield GaugeMetricFamily(f"driftline_{name}", said, value=value)
        yield from self._links(status["links"])
        yield from self._doors()
        yield from self._times()

    def _more_levels(self) -> Iterator[tuple[str, float, str]]:
        server = self._server
        commits, waiting = server.commits, [one.waiting for one in server.guests.values()]
        waits = 0 if commits is None else commits.bytes_waiting
        yield "strangers", len(server.strangers), "Connections that have not said who they are."
        yield "tables", len(server.broker.tables.home.tables), "Tables that are kept here."
        yield "links", len(server.links), "Neighbours, whether they are reached or not."
        yield "journal_waiting_bytes", waits, "About what waits to be committed."
        yield "journal_troubled", bool(server.trouble), "Can nothing be stored?"
        held = bool(server.holding.for_journal or server.holding.blocking)
        yield "publishers_held", held, "Must publishers wait, for the journal or who blocks?"
        yield "queue_bytes", sum(waiting), "What waits for connections to take it."
        yield "slow_consumers", sum(map(bool, waiting)), "Clients for whom something waits."
        yield "draining", server.draining, "Is it ending?"
        yield "uptime_seconds", (server.clock.now() - server.began) / 1e6, "Since it began."

    def _doors(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for one in (one for door in self._server.doors for one in door.counts()):
            family = CounterMetricFamily if one.grows else GaugeMetricFamily
            yield family(f"driftline_{one.name}", one.said, value=one.value)

    def _links(self, links: Any) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for name, what, said, counts in _OF_LINKS:
            family = CounterMetricFamily if counts else GaugeMetricFamily
            found = family(f"driftline_{name}", said, labels=["link"])
            for one in links:
                found.add_metric([one["broker"]], _number(one[what]))
            yield found

    def _times(self) -> Iterator[Any]:
        from prometheus_client.core import HistogramMetricFamily

        server = self._server
        commits = server.commits
        times: list[tuple[str, Buckets, str]] = [
            ("loop_lag", server.sampling.lag, "How late the loop was, four times a second."),
            ("told", server.sampling.latency, "From entry to a connection, of some events."),
        ]
        if commits is not None:
            times.append(("commit", commits.seconds, "How long commits to the journal took."))
        for name, took, said in times:
            found = HistogramMetricFamily(f"driftline_{name}_seconds", said)
            found.add_metric([], buckets=took.cumulative(), sum_value=took.sum)
            yield found


def _version() -> str:
    try:
        return version("driftline")
    except PackageNotFoundError:
        return "unknown"  # It runs where it was not installed.


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return value
