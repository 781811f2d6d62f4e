"""How fast does a broker bring events to many connections, and how late do they come?

One thread and one epoll hold all connections, so that sender and receivers read one clock. What has
come on any of them is read first, then a portion is published. Bytes are taken apart by a kernel,
once per turn for all connections together. `busy` is the share of its core that the driver needed:
a rate that was measured while it was above `BUSY_MAX` says more about the driver than the broker.

Two ways to publish:

saturated   as fast as the broker takes it, but never more than a window of notifications ahead of
            what has been received. Without a bound a broker that buffers would end up with all of
            the job in its memory, and be measured on how it fills that.
paced       each event at its time, whatever came back: a late broker does not slow the schedule
            down. A latency counts from the time an event was due, so if the sender is held up, that
            counts too (`sent_late_us` says how much).

Before anything is told, every connection must have received exactly what it wants.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np

from driftline.bench.broker_contestant import Address, Load
from driftline.bench.broker_job import Truth
from driftline.bench.timer import Ticks
from driftline.bench.waiting import Percentiles, percentiles
from driftline.kernels.bench_tally import MATCHES, MESSAGES, REFUSED, USEFUL, Inbox, Tally

BUSY_MAX = 0.9
WINDOW = 20_000

_ROOM = 1 << 17
"""What may wait on a connection: far more than one message."""
_PORTION = 1 << 16
"""What is published before connections are looked at again."""
TICK_S = 1e-4
"""In a paced run something is sent at most so often."""
_SILENCE_S = 20.0
"""A broker that says nothing for so long will not say the rest."""


@dataclass(frozen=True, slots=True)
class Received:
    """What one run brought; seconds from the first byte sent to the last message received."""

    seconds: float
    messages: int
    useful: int
    bytes: int
    """What all subscribers received."""
    busy: float
    """The share of a core that the driver needed."""
    latency_us: Percentiles | None = None
    """From when an event was due to its receipt by somebody who wants it."""
    sent_late_us: Percentiles | None = None


class Driver:
    """Connections to a broker, subscribed; for one run, because it counts from the start."""

    def __init__(self, address: Address, load: Load, truth: Truth) -> None:
        self._load = load
        self._truth = truth
        load.begun()
        count = len(load.openings)
        self._links = [_opened(address, opening, load) for opening in load.openings]
        self._publisher = self._links[-1]
        self._places = {link.fileno(): at for at, link in enumerate(self._links)}
        self._inbox = Inbox(
            np.zeros((count, _ROOM), np.uint8),
            np.zeros(count, np.int64),
            np.zeros(count, np.int64),
            np.zeros(count, np.int64),
        )
        self._rows = [memoryview(row) for row in self._inbox.bytes]
        # The same words, of which one is read or set in a third of the time.
        self._words = [memoryview(column) for column in self._inbox[1:]]  # type: ignore[arg-type]
        useful = int(truth.useful_until[-1])
        self._tally = Tally(
            np.zeros((count, 3), np.int64),
            np.zeros(count, np.uint64),
            np.zeros(4, np.int64),
            np.zeros(useful, np.int64),
            np.zeros(useful, np.int64),
        )
        self._poll = select.epoll()
        for link in self._links:
            self._poll.register(link, select.EPOLLIN)
        self._bytes = 0
        self._last_ns = 0
        self._sent = 0
        self._is_held_up = False
        self._stream = memoryview(load.stream)  # type: ignore[arg-type]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._poll.close()
        for link in self._links:
            link.close()

    def saturated(self, window: int = WINDOW) -> Received:
        """Publish all there is as fast as it is taken, `window` notifications ahead at most."""
        ends, until, total = self._load.ends, self._truth.useful_until, len(self._load.stream)
        useful = int(until[-1])
        start, spent = self._begin()
        while not self._is_done():
            ahead = int(self._tally.totals[USEFUL]) + window
            limit = total if ahead >= useful else int(ends[np.searchsorted(until, ahead)])
            self._send(min(limit, self._sent + _PORTION))
            self._receive(waits=self._is_held_up or self._sent >= limit)
        return self._received(start, spent)

    def paced(self, per_second: float) -> Received:
        """Publish each event when it is due."""
        ends = self._load.ends
        count = len(ends)
        late = np.zeros(count)
        done = 0
        with Ticks(max(TICK_S, 1 / per_second)) as ticks:
            self._poll.register(ticks, select.EPOLLIN)
            start, spent = self._begin()
            while not self._is_done():
                now = time.monotonic_ns()
                due = min(count, int((now - start) * per_second / 1e9) + 1)
                self._send(int(ends[due - 1]))
                sent = int(np.searchsorted(ends, self._sent, "right"))
                late[done:sent] = (now - start) / 1e3 - np.arange(done, sent) * (1e6 / per_second)
                done = sent
                self._receive(waits=True)
                ticks.clear()
            self._poll.unregister(ticks)
        came = (self._tally.received_ns - start) / 1e3
        latency = came - self._tally.numbers * (1e6 / per_second)
        return self._received(start, spent, percentiles(latency), percentiles(late))  # type: ignore[arg-type]

    def _begin(self) -> tuple[int, float]:
        self._last_ns = time.monotonic_ns()
        return self._last_ns, time.thread_time()

    def _is_done(self) -> bool:
        return bool(self._tally.totals[MESSAGES] >= self._load.messages)

    def _send(self, end: int) -> None:
        """Send up to this byte, as far as there is room for it on the way."""
        if end <= self._sent or self._is_held_up:
            return
        try:
            self._sent += self._publisher.send(self._stream[self._sent : end])
        except (BlockingIOError, ssl.SSLWantWriteError):
            self._is_held_up = True
            self._poll.modify(self._publisher, select.EPOLLIN | select.EPOLLOUT)

    def _receive(self, waits: bool) -> None:
        """Take what has come on all connections; wait for something if there is nothing to do."""
        places, links, rows = self._places, self._links, self._rows
        filled, ready, came_ns = self._words
        publisher = len(links) - 1
        plain = self._load.tls is None
        count = 0
        for file, mask in self._poll.poll(_SILENCE_S if waits else 0):
            place = places.get(file)
            if place is None:
                continue  # The ticks.
            if mask & select.EPOLLOUT:
                self._is_held_up = False
                self._poll.modify(self._publisher, select.EPOLLIN)
            if mask & ~select.EPOLLOUT:
                start = filled[place]
                row = rows[place][start:] if start else rows[place]
                got = links[place].recv_into(row) if plain else _all_of(links[place], row)
                if not got:
                    if not plain:
                        continue  # A part of a record, or something of TLS itself.
                    raise ConnectionError(f"the broker closed connection {place}, maybe as slow")
                filled[place] = start + got
                ready[count] = place
                came_ns[count] = time.monotonic_ns()
                if place < publisher:
                    self._bytes += got
                count += 1
        if count:
            self._last_ns = came_ns[count - 1]
            self._load.read(self._inbox, count, self._tally)
            self._check_progress()
        elif waits and time.monotonic_ns() - self._last_ns > _SILENCE_S * 1e9:
            raise AssertionError(
                f"{self._tally.totals[MESSAGES]:,} of {self._load.messages:,} messages came, "
                f"and none for {_SILENCE_S:.0f} s"
            )

    def _check_progress(self) -> None:
        refused = int(self._tally.totals[REFUSED])
        if refused:
            raise AssertionError(f"connection {refused - 1} received what is no event")
        if self._inbox.filled.max() == _ROOM:
            raise AssertionError(f"a message is longer than {_ROOM} bytes")

    def _received(
        self,
        start: int,
        spent: float,
        latency: Percentiles | None = None,
        late: Percentiles | None = None,
    ) -> Received:
        seconds = (self._last_ns - start) / 1e9
        busy = (time.thread_time() - spent) / seconds
        check(self._tally, self._truth)
        totals = self._tally.totals
        return Received(
            seconds,
            int(totals[MESSAGES]),
            int(totals[USEFUL]),
            self._bytes,
            busy,
            latency,
            late,
        )


def check(tally: Tally, truth: Truth) -> None:
    """Has every connection received all that it wants, and each pair once?"""
    # The publisher comes last, and wants nothing.
    for name, found, wanted in (
        ("events", tally.counts[:-1, USEFUL], truth.useful),
        ("matches", tally.counts[:-1, MATCHES], truth.matches),
        ("a sum", tally.sums[:-1], truth.sums),
    ):
        wrong = np.flatnonzero(found != wanted)
        if len(wrong):
            at = int(wrong[0])
            raise AssertionError(
                f"{len(wrong)} connections received something else than they want: connection "
                f"{at} wanted {name} of {wanted[at]}, came {found[at]}"
            )


def _all_of(link: socket.socket, into: memoryview) -> int:
    """All that has come on a connection over TLS, of which one record is read at a time."""
    got = 0
    while got < len(into):
        try:
            some = link.recv_into(into[got:])
        except ssl.SSLWantReadError:
            break
        if not some:
            raise ConnectionError("the broker closed a connection, maybe as slow")
        got += some
    return got


def _opened(address: Address, opening: bytes, load: Load) -> socket.socket:
    """A connection on which the broker has answered the opening."""
    link = socket.create_connection(address, _SILENCE_S)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if load.tls is not None:
        link = load.tls.wrap_socket(link, server_hostname=address[0])
    link.sendall(opening)
    came = b""
    while not load.is_open(came):
        some = link.recv(_ROOM)
        if not some:
            raise ConnectionError(f"the broker refused an opening, having said {came[-200:]!r}")
        came += some
    link.setblocking(False)
    return link
