"""How many events a second does a broker acknowledge that must not be lost?

A publisher sends a batch, waits until all of it is acknowledged, and sends the next: so at most one
batch is in flight. What the disk itself does is measured beside it: an append and a sync, one after
another.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from dataclasses import dataclass

from driftline.bench.broker_contestant import Address, Appends
from driftline.bench.waiting import Percentiles, percentiles

_TIMEOUT_S = 30.0
_SYNCS = 200


@dataclass(frozen=True, slots=True)
class Appended:
    """What was acknowledged, and how long a batch took."""

    name: str
    setting: str
    batch: int
    events: int
    events_per_s: float
    batch_us: Percentiles


def appended(address: Address, appends: Appends, seconds: float) -> Appended:
    """Publish batches for so long, or until there are no more; all must be kept in the end."""
    took = []
    with socket.create_connection(address, _TIMEOUT_S) as link:
        link.sendall(appends.opening)
        came = b""
        while not appends.is_open(came):
            came += _some(link)
        came = b""
        start = time.perf_counter()
        for batch in appends.batches:
            sent = time.perf_counter()
            link.sendall(batch)
            left = appends.batch
            while left > 0:
                came += _some(link)
                count, read = appends.acknowledged(came)
                left, came = left - count, came[read:]
            took.append((time.perf_counter() - sent) * 1e6)
            if time.perf_counter() - start > seconds:
                break
        spent = time.perf_counter() - start
    events = len(took) * appends.batch
    kept = appends.kept()
    if kept != events:
        raise AssertionError(f"{events:,} events were acknowledged, and {kept:,} are kept")
    return Appended(
        appends.name, appends.setting, appends.batch, events, events / spent, percentiles(took)
    )


def _some(link: socket.socket) -> bytes:
    some = link.recv(1 << 16)
    if not some:
        raise ConnectionError("the broker closed the connection of a durable publisher")
    return some


def syncs_per_s() -> float:
    """How often a second this disk takes 100 bytes and says that it has them."""
    with tempfile.TemporaryFile() as file:
        start = time.perf_counter()
        for _ in range(_SYNCS):
            os.write(file.fileno(), bytes(100))
            os.fdatasync(file.fileno())
        return _SYNCS / (time.perf_counter() - start)
