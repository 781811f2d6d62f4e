"""What has a load driver received: how many messages, of which events, and for whom?

The driver of the benchmark of brokers has many connections, and hands what came on all of them to
one kernel call. Such a kernel knows the protocol of one broker; where bytes wait and what is
counted is the same for all. Which pairs of event and subscription were told is kept as a sum per
connection, which does not depend on their order (`driftline.bench.broker_job.mixed` says the same
in NumPy).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftline.kernels.jit import inlined

MESSAGES, USEFUL, MATCHES, REFUSED = range(4)
"""The columns of `Tally.counts` (without the last) and the words of `Tally.totals`."""


class Inbox(NamedTuple):
    """Bytes that came and are not read yet: a row per connection."""

    bytes: NDArray[np.uint8]
    filled: NDArray[np.int64]
    """How many bytes of each row."""
    ready: NDArray[np.int64]
    """Connections to which something came since the last call."""
    came_ns: NDArray[np.int64]
    """When, for each of those."""


class Tally(NamedTuple):
    """What was received."""

    counts: NDArray[np.int64]
    """By connection: messages, those that some subscription wants, matching subscriptions."""
    sums: NDArray[np.uint64]
    """By connection, of the pairs that match."""
    totals: NDArray[np.int64]
    """Of all connections; at `REFUSED`, 1 + the connection on which something else came."""
    numbers: NDArray[np.int64]
    """The events of useful messages, as far as there is room."""
    received_ns: NDArray[np.int64]
    """When each of these came."""


_PLACE = np.uint64(20)
_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_SHIFT, _LAST = np.uint64(29), np.uint64(32)


@inlined
def note_match(tally: Tally, connection: int, number: int, subscription: int) -> None:
    """A subscription of the connection wants the event."""
    word = (np.uint64(number) << _PLACE | np.uint64(subscription)) * _FIRST
    word = (word ^ word >> _SHIFT) * _SECOND
    tally.sums[connection] += word ^ word >> _LAST
    tally.counts[connection, MATCHES] += 1
    tally.totals[MATCHES] += 1


@inlined
def note_message(tally: Tally, connection: int, number: int, useful: bool, at_ns: int) -> None:
    """A message has been read, after its matches were noted."""
    tally.counts[connection, MESSAGES] += 1
    tally.totals[MESSAGES] += 1
    if useful:
        place = tally.totals[USEFUL]
        if place < len(tally.numbers):
            tally.numbers[place] = number
            tally.received_ns[place] = at_ns
        tally.counts[connection, USEFUL] += 1
        tally.totals[USEFUL] += 1


@inlined
def keep_rest(inbox: Inbox, connection: int, start: int) -> None:
    """What begins at `start` is no whole message yet: it waits at the front of the row."""
    row = inbox.bytes[connection]
    rest = inbox.filled[connection] - start
    if start > 0:
        for at in range(rest):
            row[at] = row[start + at]
    inbox.filled[connection] = rest
