"""How long does it take to list the subscriptions that a message affects? [DBNET §3.2]

For a server that tells each subscriber by itself, as the paper's unicast and multicast do: it knows
all ranges, and a message is a rectangle among them. As many must be listed as `views_count` counts,
and for some messages the very same ones that a look at all ranges finds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np

from driftline.bench.views_count import Rectangles, look
from driftline.bench.views_update import batches_of, changed, table_of
from driftline.stateful.range_min.blocks import Blocks
from driftline.workload.stocks import SEED, Floats, Stocks

_MODULE = "driftline.stateful.range_min.affected"
LOOKED_AT = 50
"""For so many messages of a batch all ranges are tried."""


@dataclass(frozen=True, slots=True)
class Measured:
    """CPU microseconds a message, and how many it affects."""

    subscriptions: int
    messages: int
    us: float
    affected_per_message: float


def measured(drawn: Stocks, low: Floats, high: Floats) -> Measured | None:
    """All messages of these stocks; None as long as nothing lists them."""
    if find_spec(_MODULE) is None:
        return None
    affected: Any = import_module(_MODULE).Affected()
    for number, ends in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        affected.add(number, *ends)
    counting = Rectangles(low, high)
    blocks = Blocks.load(table_of(drawn))
    times, made, listed = [], 0, 0
    for some in batches_of(drawn.updates):
        messages = changed(blocks, some)
        start = time.process_time()
        ids, ends = affected.of_many(messages.rows)
        times.append((time.process_time() - start) / len(messages))
        assert np.array_equal(np.diff(ends), counting.of(messages.rows)), "not as many as there are"
        for at in np.random.default_rng(SEED).integers(0, len(messages), LOOKED_AT).tolist():
            expected = look(low, high, messages.rows[at])
            assert np.array_equal(np.sort(ids[ends[at] : ends[at + 1]]), expected), "not those"
        made, listed = made + len(messages), listed + len(ids)
    return Measured(len(low), made, median(times[1:]) * 1e6, listed / made)
