"""What must a broker show to take part in `driftline bench broker`?

A contestant starts its server as a process of its own, says what that has spent, and turns a job
into bytes: what each connection sends to subscribe, what the publisher sends, and a kernel that
reads what comes back. All connections, clocks and waiting belong to the driver, which is the same
for all.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from driftline.bench.broker_job import Job
from driftline.kernels.bench_tally import Inbox, Tally

Address = tuple[str, int]
Read = Callable[[Inbox, int, Tally], None]
"""Reads whole messages of the first so many connections in `ready`, and keeps what is left."""


@dataclass(frozen=True, slots=True)
class Load:
    """A job as the bytes of one protocol."""

    openings: Sequence[bytes]
    """What each connection sends first; the last is the publisher's."""
    is_open: Callable[[bytes], bool]
    """Has the broker answered all of an opening, if this is what came so far?"""
    stream: NDArray[np.uint8]
    """What the publisher sends, in any portions."""
    ends: NDArray[np.int64]
    """By event: where its bytes end."""
    messages: int
    """How many messages the broker will deliver to all connections together."""
    read: Read
    begun: Callable[[], None] = lambda: None
    """Connections are new: nothing has been read from them."""
    tls: ssl.SSLContext | None = None
    """Whom the connections trust, if they are over TLS."""


@dataclass(frozen=True, slots=True)
class Appends:
    """Publishing that is acknowledged once it is on disk, as the bytes of one protocol."""

    name: str
    setting: str
    """What the broker was told about the disk, in its own words."""
    opening: bytes
    is_open: Callable[[bytes], bool]
    batches: Sequence[bytes]
    batch: int
    """Events in each of them."""
    acknowledged: Callable[[bytes], tuple[int, int]]
    """How many events these bytes acknowledge, and how many of the bytes say so."""
    kept: Callable[[], int]
    """Ask the broker, when all is done, how many events it keeps."""


class Contestant(Protocol):
    """A broker in one way of using it."""

    @property
    def name(self) -> str:
        """As in the tables."""

    def start(self) -> Address:
        """Start the server, and return when it takes connections."""

    def stop(self) -> None:
        """Stop it, and remove what it kept."""

    def cpu_s(self) -> float:
        """The CPU time its processes have spent so far."""

    def load(self, job: Job, together: int = 100) -> Load:
        """The job in its protocol; so many events may be sent at the same time."""

    def appends(self, job: Job, batch: int) -> Sequence[Appends]:
        """The ways to publish the job's events durably; asked once the server has been started."""
