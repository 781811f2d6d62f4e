"""What is a broker asked to do, and who must be told of which event?

Stock events {symbol, price, volume}: one of 500 symbols by Zipf's law, a price in cents anywhere
below $100. 200 connections have 100 subscriptions each: a symbol, and a range of prices of $2.00 to
$3.20. So about one connection wants an event; and to one in five connections its symbol means
something, which is what a broker that cannot compare prices must go by: 36 or so of 200.

Subscribers choose their symbols evenly, not by popularity: by popularity, nearly every connection
would have something on each of the first symbols, and a subject per symbol would deliver 112
messages of an event. What is measured here is kinder to such brokers.

Everything follows from the seed. Who must be told is computed with sorted columns; a client filters
one message at a time, so the two have nothing in common.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from driftline.workload.draws import SYMBOLS, zipf_codes

SEED = 23
CONNECTIONS = 200
SUBSCRIPTIONS = 100
PRICES = 10_000
"""Prices are whole cents below this."""
BUCKET = 100
"""A dollar."""

_WIDTH_MIN, _WIDTH_MAX = 200, 320
_VOLUME_MAX = 100_000
_FAN_OUT_BYTES = 128

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """Row `k` wants `symbol[k]` at `low[k]` to `high[k]` cents, both included, for a connection."""

    connection: Ints
    symbol: Ints
    low: Ints
    high: Ints


@dataclass(frozen=True, slots=True)
class Events:
    """Row `n` is the event with the number `n`."""

    symbol: Ints
    price: Ints
    volume: Ints

    def __len__(self) -> int:
        return len(self.symbol)


@dataclass(frozen=True, slots=True)
class Job:
    """Subscriptions of so many connections, and events to publish."""

    connections: int
    subscriptions: Subscriptions
    events: Events
    payload_bytes: int | None = None
    """A payload is padded to so many bytes, if it is said."""


@dataclass(frozen=True, slots=True)
class Truth:
    """Who must be told: by connection where not said otherwise, and without regard to the order."""

    useful: Ints
    """How many events it wants."""
    matches: Ints
    """How many pairs of an event and one of its subscriptions match."""
    sums: NDArray[np.uint64]
    """The sum of a number made of each such pair."""
    useful_until: Ints
    """By event: how many pairs of an event up to this one and a connection that wants it."""


def stock_job(events: int, seed: int = SEED) -> Job:
    """The job with so many events."""
    count = CONNECTIONS * SUBSCRIPTIONS
    draw = np.random.default_rng([seed, 0])
    width = draw.integers(_WIDTH_MIN, _WIDTH_MAX + 1, count)
    low = draw.integers(0, PRICES - width + 1)
    subscriptions = Subscriptions(
        np.repeat(np.arange(CONNECTIONS), SUBSCRIPTIONS),
        draw.integers(0, len(SYMBOLS), count),
        low,
        low + width - 1,
    )
    return Job(CONNECTIONS, subscriptions, _events(np.random.default_rng([seed, 1]), events))


def fan_out_job(events: int, connections: int = CONNECTIONS) -> Job:
    """Everybody wants everything, in messages of 128 bytes."""
    zeros = np.zeros(connections, np.int64)
    everything = Subscriptions(np.arange(connections), zeros, zeros, zeros + (PRICES - 1))
    drawn = _events(np.random.default_rng([SEED, 2]), events)
    one = Events(np.zeros(events, np.int64), drawn.price, drawn.volume)
    return Job(connections, everything, one, _FAN_OUT_BYTES)


def _events(draw: np.random.Generator, count: int) -> Events:
    return Events(
        zipf_codes(draw, len(SYMBOLS), count).astype(np.int64),
        draw.integers(0, PRICES, count),
        draw.integers(1, _VOLUME_MAX, count),
    )


def matches_of(job: Job) -> tuple[Ints, Ints]:
    """All pairs of an event and a subscription that match, by subscription: two columns."""
    events, wanted = job.events, job.subscriptions
    keys = events.symbol * PRICES + events.price
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    start = np.searchsorted(keys, wanted.symbol * PRICES + wanted.low, "left")
    end = np.searchsorted(keys, wanted.symbol * PRICES + wanted.high, "right")
    lengths = end - start
    subscription = np.repeat(np.arange(len(lengths)), lengths)
    # The place within its run, counted from the start of that run.
    within = np.arange(len(subscription)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return order[np.repeat(start, lengths) + within], subscription


def truth_of(job: Job) -> Truth:
    """Who must be told of what."""
    number, subscription = matches_of(job)
    connection = job.subscriptions.connection[subscription]
    told = np.unique(number * job.connections + connection)
    sums = np.zeros(job.connections, np.uint64)
    np.add.at(sums, connection, mixed(number, subscription))
    per_event = np.bincount(told // job.connections, minlength=len(job.events))
    return Truth(
        np.bincount(told % job.connections, minlength=job.connections),
        np.bincount(connection, minlength=job.connections),
        sums,
        np.cumsum(per_event),
    )


def mixed(number: Ints, subscription: Ints) -> NDArray[np.uint64]:
    """A number for a pair, such that sums of different sets of pairs differ."""
    word = number.astype(np.uint64) << np.uint64(20) | subscription.astype(np.uint64)
    word *= np.uint64(0x9E3779B97F4A7C15)
    word ^= word >> np.uint64(29)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    return word ^ word >> np.uint64(32)
