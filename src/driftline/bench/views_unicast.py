"""How long does it take to list the subscriptions that a message affects? [DBNET §2.4.1, §3.2]

For a server that tells each subscriber by itself, as the paper's unicast and multicast do: it knows
all ranges, and a message is a rectangle among them. And for one that only asks whether anybody
wants a message before it sends it. As many must be listed as `views_count` counts, and for some
messages the very same ones that a look at all ranges finds.

Nearly all that is listed is listed for spikes, one message in a hundred. So the mean is told apart:
what a *quiet* message takes, and what each number takes that the others list; these two when they
are asked again, which is kinder to caches.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np

from driftline.bench.views_count import Counts, Rectangles, look
from driftline.bench.views_update import batches_of, changed, table_of
from driftline.stateful.range_min.affected import Affected
from driftline.stateful.range_min.blocks import Blocks, Messages
from driftline.workload.stocks import SEED, Floats, Stocks

QUIET = 1_000
"""A message that affects fewer is a quiet one."""
LOOKED_AT = 200
"""For so many messages of a batch all ranges are tried."""


@dataclass(frozen=True, slots=True)
class Measured:
    """CPU microseconds a message, to list and to ask whether anybody wants it."""

    subscriptions: int
    messages: int
    add_us: float
    us: float
    quiet_us: float
    listed_ns: float | None
    """Nanoseconds for each that a message lists which is not quiet; None if all are."""
    wanted_us: float
    affected_per_message: float
    bytes_per_subscription: float


class Listed:
    """All ranges, and whom they say a message affects."""

    def __init__(self, low: Floats, high: Floats) -> None:
        self._low, self._high = low, high
        self.affected, self._counting = Affected(), Rectangles(low, high)
        start = time.process_time()
        self.affected.add_many(np.arange(len(low)), low, high)
        self.add_us = (time.process_time() - start) / len(low) * 1e6

    def check(self, messages: Messages) -> Counts:
        """Assert that those are listed who are affected; how many for each message."""
        numbers, ends = self.affected.of_many(messages.rows)
        counts = self._counting.of(messages.rows)
        wanted = self.affected.wanted_many(messages.rows)
        assert np.array_equal(np.diff(ends), counts), "not as many as there are"
        assert np.array_equal(wanted, counts > 0), "not what somebody wants"
        for at in np.random.default_rng(SEED).integers(0, len(messages), LOOKED_AT).tolist():
            expected = look(self._low, self._high, messages.rows[at])
            found = np.sort(numbers[ends[at] : ends[at + 1]])
            assert np.array_equal(found, expected), "not those whom it affects"
        return counts


def measured(drawn: Stocks, low: Floats, high: Floats) -> Measured:
    """All messages of these stocks."""
    listed, blocks = Listed(low, high), Blocks.load(table_of(drawn))
    of, wanted = listed.affected.of_many, listed.affected.wanted_many
    times: list[tuple[float, ...]] = []
    each: list[float] = []
    made = affected = 0
    for updates in batches_of(drawn.updates):
        messages = changed(blocks, updates)
        rows = messages.rows
        # Before anything else has looked at these, so that nothing lies ready in a cache.
        first = _seconds(of, rows) / len(rows), _seconds(wanted, rows) / len(rows)
        counts = listed.check(messages)
        quiet = counts < QUIET
        calm, wild = rows[quiet], rows[~quiet]
        times.append((*first, _seconds(of, calm) / max(1, len(calm))))
        if len(wild):
            each.append(_seconds(of, wild) / int(counts[~quiet].sum()))
        made, affected = made + len(messages), affected + int(counts.sum())
    us, wanted_us, quiet_us = (median(one) * 1e6 for one in zip(*times[1:], strict=True))
    return Measured(
        len(low),
        made,
        listed.add_us,
        us,
        quiet_us,
        median(each) * 1e9 if each else None,
        wanted_us,
        affected / made,
        listed.affected.nbytes / len(low),
    )


def _seconds(ask: Callable[[Floats], object], rows: Floats) -> float:
    start = time.process_time()
    ask(rows)
    return time.process_time() - start
