"""How does a batch of events that a client publishes look?

A head, and the records of the events one behind the other, as `compact` says.

    offset  bytes  field
         0      4  request   0: no reply is wanted
         4      4  count     of the events
         8      8  number    of the first event, if the client counts what it publishes, else 0
        16         records

    >>> HEAD.unpack_from(batch(7, 2, 1, b"..."))
    (7, 2, 1)
"""

from __future__ import annotations

import struct

HEAD = struct.Struct("<IIQ")


def batch(request: int, count: int, number: int, records: bytes) -> bytes:
    """The payload."""
    return HEAD.pack(request, count, number) + records
