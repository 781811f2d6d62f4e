"""Very many small batches of events are taken as one, and in their order."""

from __future__ import annotations

from random import Random

import pytest

from driftline.net.gathering import Gathering
from driftline.wire.publishing import batch
from driftline.wire.stream import HEAD_BYTES, Kind, frame


@pytest.mark.parametrize("seed", range(20))
def test_it_ends_where_another_frame_begins(seed):
    draw = Random(seed)
    gathering = Gathering(1 << 16)
    data, plain, records, events = b"", 0, b"", 0
    for _ in range(draw.randrange(1, 50)):
        some = draw.randbytes(draw.randrange(40))
        count = draw.randrange(5)
        data += frame(Kind.EVENTS, batch(0, count, 0, some))
        records += some
        events += count
        plain = len(data)
    data += draw.choice(
        (
            b"",
            frame(Kind.PING, b"x"),
            frame(Kind.EVENTS, batch(7, 1, 0, b"x")),
            frame(Kind.EVENTS, batch(0, 1, 1 << 40, b"x")),
            frame(Kind.EVENTS, b"too short"),
            frame(Kind.EVENTS, batch(0, 1, 0, b"cut"))[:-1],
            frame(Kind.EVENTS, batch(0, 1, 0, bytes(1 << 17))),
            b"\xd2\x01",
        )
    )
    found, end = gathering.gather(memoryview(bytearray(data)), 0)
    assert end == plain
    assert (found.request, found.number, found.events) == (0, 0, events)
    assert bytes(found.records) == records


def test_it_never_takes_more_than_there_is_room_for():
    gathering = Gathering(1 << 10)
    one = frame(Kind.EVENTS, batch(0, 1, 0, bytes(1000)))
    data = memoryview(bytearray(one * 400))
    at, events = 0, 0
    while at < len(data):
        found, at = gathering.gather(data, at)
        events += found.events
        assert len(found.records) <= 1 << 18
    assert events == 400
    assert HEAD_BYTES == 8
