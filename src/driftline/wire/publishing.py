"""How does a batch of events that a client publishes look?

offset  bytes  field
0      4  request   0: no reply is wanted
4      8  number    of the first event, if the client counts what it publishes, else 0
12         records, one behind the other, as `compact` says

>>> split_batch(batch(7, 1, b"..."))
(7, 1, b'...')
"""

from __future__ import annotations

import struct

from driftline.wire.refusal import refused

HEAD = struct.Struct("<IQ")


def batch(request: int, number: int, records: bytes) -> bytes:
    """The payload."""
    return HEAD.pack(request, number) + records


def split_batch(payload: bytes) -> tuple[int, int, bytes]:
    """Its parts; `FrameRefused` if it is too short."""
    if len(payload) < HEAD.size:
        raise refused("events", f"a head of {HEAD.size} bytes", f"{len(payload)}")
    request, number = HEAD.unpack_from(payload)
    return request, number, payload[HEAD.size :]
