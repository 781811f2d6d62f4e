"""How many messages leave the server, and how many would with one for each who is affected?

The paper's Tables 2 and 3 [DBNET §5.5.1], beside ours. *S-CN* sends the messages of the rule into a
network that matches them; how many does not depend on who listens. *kept* are those that the server
still sends if it knows the ranges that are asked for, though not by whom, and drops what no range
wants [§2.4.1]. *Unicast* sends one to each subscription whose result changed.

The paper gives neither the walk's step nor a spike's depth, so a sweep says what depends on them.
There an update is *ignorable* if no range at all could change by it: another tuple with the same x
has as small a y, which needs tuples that share their x; and *unheard* if nobody who is there does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from driftline.bench.views_count import Rectangles
from driftline.bench.views_update import changed, table_of
from driftline.stateful.range_min.blocks import Blocks, Messages
from driftline.workload.stocks import AS_PUBLISHED, Walk, ranges, stocks

PAPER_TUPLES = {
    20_000: (2.10, 726),
    40_000: (2.15, 671),
    60_000: (2.18, 678),
    80_000: (2.20, 655),
    100_000: (2.22, 654),
}
"""Table 2: S-CN and unicast with 500,000 subscriptions, by tuples."""
PAPER_SUBSCRIPTIONS = {
    200_000: (2.08, 303),
    400_000: (2.08, 616),
    600_000: (2.08, 909),
    800_000: (2.08, 1218),
    1_000_000: (2.08, 1441),
}
"""Table 3: the same with 10,000 tuples, by subscriptions."""
TUPLES, SUBSCRIPTIONS = 10_000, 500_000

UPDATES = 200_000
SWEPT = 40_000

SWEEP = (
    *(("step", f"{step:g}", Walk(step=step)) for step in (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)),
    *(("depth", f"{depth:g}", Walk(depth=depth)) for depth in (0.5, 0.3, 0.1, 0.01)),
    *(("spikes", f"{share:.1%}", Walk(spikes=share)) for share in (0.0, 0.001, 0.005, 0.02, 0.05)),
    *(("places", f"{places:,}", Walk(places=places)) for places in (41, 1_000, 10_000, 100_000)),
)
"""What varies, and from what: the rest is as the stocks are by default."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Messages an update, of each kind; and the shares of updates without any."""

    tuples: int
    subscriptions: int
    messages: float
    kept: float
    unicast: float
    ignorable: float
    unheard: float


def by_subscriptions(tuples: int, sizes: Sequence[int], updates: int) -> list[Sent]:
    """The same messages, and more and more who listen."""
    messages = _made(tuples, updates, AS_PUBLISHED)
    low, high = ranges(max(sizes))
    return [_sent(tuples, messages, Rectangles(low[:size], high[:size]), size) for size in sizes]


def by_tuples(sizes: Sequence[int], subscriptions: int, updates: int) -> list[Sent]:
    """As many who listen to larger and larger tables."""
    listening = Rectangles(*ranges(subscriptions))
    return [
        _sent(size, _made(size, updates, AS_PUBLISHED), listening, subscriptions) for size in sizes
    ]


def swept(tuples: int, subscriptions: int, updates: int) -> list[tuple[str, str, Sent]]:
    """One after the other is varied."""
    listening = Rectangles(*ranges(subscriptions))
    return [
        (varies, at, _sent(tuples, _made(tuples, updates, walk), listening, subscriptions))
        for varies, at, walk in SWEEP
    ]


def _made(tuples: int, updates: int, walk: Walk) -> Messages:
    drawn = stocks(tuples, updates, walk)
    return changed(Blocks.load(table_of(drawn)), drawn.updates)


def _sent(tuples: int, messages: Messages, listening: Rectangles, subscriptions: int) -> Sent:
    counts = listening.of(messages.rows)
    updates = len(messages.ends) - 1
    per_update = np.diff(np.concatenate(([0], np.cumsum(counts)))[messages.ends])
    return Sent(
        tuples,
        subscriptions,
        len(messages) / updates,
        float((counts > 0).sum()) / updates,
        float(counts.sum()) / updates,
        float((np.diff(messages.ends) == 0).mean()),
        float((per_update == 0).mean()),
    )
