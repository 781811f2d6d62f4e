r"""Which of the events that NATS delivered does a connection want?

What a client does, for many connections in one call: it takes messages out of the stream,

    MSG <subject> <number of the subscription> <length>\r\n<payload>\r\n

reads the payload, `{"n":17,"symbol":"S003","price":57.31,"volume":1200}`, and looks whether one of
its own subscriptions wants that symbol at that price. Only this order of the members is read: the
client is no part of what is measured, and must only be fast enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftline.kernels.bench_tally import (
    REFUSED,
    Inbox,
    Tally,
    keep_rest,
    note_match,
    note_message,
)
from driftline.kernels.jit import inlined, jit

_CR, _SPACE, _ZERO, _NINE, _POINT, _BRACE = (ord(one) for one in "\r 09.{")
_M, _P, _I = ord("M"), ord("P"), ord("I")
# Lengths of what stands before the numbers.
_N_AT = len('{"n":')
_SYMBOL_AT = len(',"symbol":"S')
_SYMBOL_DIGITS = 3
_PRICE_AT = len('","price":')


class Wants(NamedTuple):
    """The subscriptions of all connections, by connection and symbol."""

    symbols: int
    starts: NDArray[np.int64]
    """Those of connection c and symbol s are the rows from starts[c * symbols + s] to the next."""
    numbers: NDArray[np.int64]
    lows: NDArray[np.int64]
    highs: NDArray[np.int64]
    """The prices in cents, both included."""


@jit
def read_nats(inbox: Inbox, count: int, wants: Wants, tally: Tally) -> None:
    """Read all whole messages of the first `count` connections that are ready."""
    for turn in range(count):
        connection = inbox.ready[turn]
        row, end = inbox.bytes[connection], inbox.filled[connection]
        at = 0
        while True:
            line = _line_end(row, at, end)
            if line < 0:
                break
            if row[at] == _M:
                size = _last_number(row, line)
                payload = line + 2
                if payload + size + 2 > end:
                    break
                if not _read_event(row, payload, connection, wants, tally, inbox.came_ns[turn]):
                    tally.totals[REFUSED] = 1 + connection
                at = payload + size + 2
            else:
                # PING, PONG and INFO may come at any time and mean nothing here; an error does.
                if row[at] != _P and row[at] != _I:
                    tally.totals[REFUSED] = 1 + connection
                at = line + 2
        keep_rest(inbox, connection, at)


@inlined
def _line_end(row: NDArray[np.uint8], at: int, end: int) -> int:
    """Where the line break after `at` begins, -1 if it has not come."""
    while at + 1 < end:
        if row[at] == _CR:
            return at
        at += 1
    return -1


@inlined
def _last_number(row: NDArray[np.uint8], line: int) -> int:
    """The number before the line break."""
    number, unit = 0, 1
    at = line - 1
    while row[at] != _SPACE:
        number += (np.int64(row[at]) - _ZERO) * unit
        unit *= 10
        at -= 1
    return number


@inlined
def _read_event(
    row: NDArray[np.uint8],
    at: int,
    connection: int,
    wants: Wants,
    tally: Tally,
    at_ns: int,
) -> bool:
    """Count the event whose payload begins here; false if there is none."""
    if row[at] != _BRACE:
        return False
    at += _N_AT
    number = 0
    while _ZERO <= row[at] <= _NINE:
        number = number * 10 + np.int64(row[at]) - _ZERO
        at += 1
    at += _SYMBOL_AT
    symbol = 0
    for _ in range(_SYMBOL_DIGITS):
        symbol = symbol * 10 + np.int64(row[at]) - _ZERO
        at += 1
    at += _PRICE_AT
    price = 0
    while _ZERO <= row[at] <= _NINE:
        price = price * 10 + np.int64(row[at]) - _ZERO
        at += 1
    if row[at] != _POINT or symbol < 0 or symbol >= wants.symbols:
        return False
    # One or two digits: 57.3 is 57.30.
    price = price * 10 + np.int64(row[at + 1]) - _ZERO
    price *= 10
    if _ZERO <= row[at + 2] <= _NINE:
        price += np.int64(row[at + 2]) - _ZERO
    key = connection * wants.symbols + symbol
    useful = False
    for place in range(wants.starts[key], wants.starts[key + 1]):
        if wants.lows[place] <= price <= wants.highs[place]:
            note_match(tally, connection, number, wants.numbers[place])
            useful = True
    note_message(tally, connection, number, useful, at_ns)
    return True
