"""How long does it take to list the subscriptions that a message affects? [DBNET §2.4.1, §3.2]

For a server that tells each subscriber by itself, as the paper's unicast and multicast do: it knows
all ranges, and a message is a rectangle among them. And for one that only asks whether anybody
wants a message before it sends it. As many must be listed as `views_count` counts, and for some
messages the very same ones that a look at all ranges finds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

import numpy as np

from driftline.bench.views_count import Rectangles, look
from driftline.bench.views_update import batches_of, changed, table_of
from driftline.stateful.range_min.affected import Affected
from driftline.stateful.range_min.blocks import Blocks, Messages
from driftline.workload.stocks import SEED, Floats, Stocks

LOOKED_AT = 200
"""For so many messages of a batch all ranges are tried."""


@dataclass(frozen=True, slots=True)
class Measured:
    """CPU microseconds a message, to list and to ask whether anybody wants it."""

    subscriptions: int
    messages: int
    add_us: float
    us: float
    wanted_us: float
    affected_per_message: float
    bytes_per_subscription: float


class Listed:
    """All ranges, and whom they say a message affects."""

    def __init__(self, low: Floats, high: Floats) -> None:
        self._low, self._high = low, high
        self._affected, self._counting = Affected(), Rectangles(low, high)
        start = time.process_time()
        self._affected.add_many(np.arange(len(low)), low, high)
        self.add_us = (time.process_time() - start) / len(low) * 1e6

    def take(self, messages: Messages) -> tuple[int, float, float]:
        """How many all messages affect, and the seconds of both questions."""
        start = time.process_time()
        numbers, ends = self._affected.of_many(messages.rows)
        listed = time.process_time()
        wanted = self._affected.wanted_many(messages.rows)
        asked = time.process_time()
        counts = self._counting.of(messages.rows)
        assert np.array_equal(np.diff(ends), counts), "not as many as there are"
        assert np.array_equal(wanted, counts > 0), "not what somebody wants"
        for at in np.random.default_rng(SEED).integers(0, len(messages), LOOKED_AT).tolist():
            expected = look(self._low, self._high, messages.rows[at])
            found = np.sort(numbers[ends[at] : ends[at + 1]])
            assert np.array_equal(found, expected), "not those whom it affects"
        return len(numbers), listed - start, asked - listed

    @property
    def nbytes(self) -> int:
        """Of the ranges."""
        return self._affected.nbytes


def measured(drawn: Stocks, low: Floats, high: Floats) -> Measured:
    """All messages of these stocks."""
    listed, blocks = Listed(low, high), Blocks.load(table_of(drawn))
    times: list[tuple[float, float]] = []
    made = affected = 0
    for some in batches_of(drawn.updates):
        messages = changed(blocks, some)
        count, *took = listed.take(messages)
        times.append((took[0] / len(messages), took[1] / len(messages)))
        made, affected = made + len(messages), affected + count
    us, wanted_us = (median(one) * 1e6 for one in zip(*times[1:], strict=True))
    return Measured(
        len(low), made, listed.add_us, us, wanted_us, affected / made, listed.nbytes / len(low)
    )
