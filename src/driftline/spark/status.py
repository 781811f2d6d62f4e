"""How far is a pipeline, as its directories tell? No Spark is started, and nothing is changed."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from driftline.model.value import time_of
from driftline.recorded.config import PipelineConfig
from driftline.recorded.plan import plan_of
from driftline.recorded.recorder import LOCK, read_book, read_sequence
from driftline.recorded.sequence import What
from driftline.spark.arriving import arrived
from driftline.spark.manifest import MANIFESTS, TABLES, Manifest, committed, remains
from driftline.spark.telling import Published, published


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """How far a query is."""

    done: int
    lag: int
    batches: int
    notifications: int
    committed: datetime
    """When its last batch was."""


@dataclass(frozen=True, slots=True)
class ArrivedStatus:
    """How far it is with the broker that events come from."""

    broker: str
    subscription: str
    number: int
    events: int
    repeated: int
    gaps: int
    """How often the broker has said that something is missing."""
    last_gap: datetime | None


@dataclass(frozen=True, slots=True)
class PublishedStatus:
    """How far it is with the broker that is told."""

    address: str
    notifications: int
    lag: int
    refused: int
    """How many it refuses for good; they are set aside (see `letters`)."""


@dataclass(frozen=True, slots=True)
class Status:
    """How far a pipeline is."""

    running: bool
    recorded: int
    files: dict[str, int]
    rows: dict[str, int]
    last_recorded: datetime | None
    queries: dict[str, QueryStatus]
    tables: dict[str, int]
    notifications: int
    subscriptions: dict[str, int]
    shards: int
    snapshots: int
    snapshot_bytes: int
    remains: int
    """Files of attempts that failed, or that are being written."""
    arrived: ArrivedStatus | None
    published: PublishedStatus | None


def status_of(config: PipelineConfig) -> Status:
    """What is recorded and done; FileRefused if nothing ever was."""
    root, out = config.checkpoint, config.out.path
    sequence = read_sequence(root)
    segments = list(sequence)
    batches = committed(out)
    snapshots = [file for file in root.glob("snapshots/*/*") if not file.name.startswith(".")]
    return Status(
        is_running(root),
        sequence.end,
        {str(what): sum(one.what is what for one in segments) for what in What},
        {str(what): sum(one.rows for one in segments if one.what is what) for what in What},
        time_of(segments[-1].recorded) if segments else None,
        {name: _query(name, batches, sequence.end, out) for name in _names(batches)},
        {table: sum(one.rows(table) for one in batches) for table in TABLES},
        sum(one.notifications for one in batches),
        plan_of(config, read_book(config)).kinds,
        config.run.shards,
        len(snapshots),
        sum(file.stat().st_size for file in snapshots),
        len(remains(out)),
        _arrived(config),
        _published(config, batches),
    )


def _arrived(config: PipelineConfig) -> ArrivedStatus | None:
    found = None if config.events.broker is None else arrived(config)
    if found is None:
        return None
    seen = [*(gap.seen for gap in found.gaps), *([found.missing] if found.missing else [])]
    return ArrivedStatus(
        found.broker,
        found.subscription,
        found.number,
        found.events,
        found.repeated,
        len(found.gaps) + bool(found.missing),
        time_of(seen[-1]) if seen else None,
    )


def _published(config: PipelineConfig, batches: list[Manifest]) -> PublishedStatus | None:
    if config.out.broker is None:
        return None
    done = published(config)
    lag = 0
    for one in batches:
        reached = done.get(one.query, Published())
        if one.batch >= reached.batch:
            lag += one.notifications
        if one.batch == reached.batch:
            lag -= reached.notifications
    total = sum(one.total for one in done.values())
    refused = sum(one.refused for one in done.values())
    return PublishedStatus(config.out.broker.address, total, lag, refused)


def is_running(checkpoint: Path) -> bool:
    """Does a process run it now? It has the lock then."""
    try:
        handle = os.open(checkpoint / LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _names(batches: list[Manifest]) -> list[str]:
    return sorted({one.query for one in batches})


def _query(name: str, batches: list[Manifest], end: int, out: str) -> QueryStatus:
    ours = [one for one in batches if one.query == name]
    last = max(ours, key=lambda one: one.batch)
    file = Path(out, MANIFESTS, f"{name}-{last.batch}.json")
    return QueryStatus(
        last.end,
        end - last.end,
        len(ours),
        sum(one.notifications for one in ours),
        datetime.fromtimestamp(file.stat().st_mtime, UTC),
    )
