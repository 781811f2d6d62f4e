"""How does a batch of events look as bytes that a kernel can read as they lie?

A count (4 bytes), the bytes of all records (4), and the records one after another, one for each
parcel; `records` says how these look. All numbers are little-endian. `split` and `join` go by the
lengths of the records, so that a broker can pass on what it need not understand.

    >>> from driftline.model.event import Event
    >>> from driftline.wire.records import rerouted, route_of
    >>> parcel = Parcel("a", 7, Event("quote", {"price": 9.5}), homes=("b", "c"))
    >>> (record,) = split(encode_batch([parcel]))
    >>> route_of(record)
    Route(origin='a', number=7, hops=0, homes=('b', 'c'))
    >>> decode_batch(join([rerouted(record, hops=1, homes=("c",))]))[0].homes
    ('c',)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from driftline.errors import InvalidValue
from driftline.model.message import Parcel
from driftline.model.value import show
from driftline.wire.framing import PAYLOAD_BYTES_MAX
from driftline.wire.limits import RECORDS_MAX
from driftline.wire.records import HEAD_BYTES, Bytes, decode_parcel, encode_parcel
from driftline.wire.refusal import refused

_BATCH = struct.Struct("<II")
_SIZE = struct.Struct("<I")


def encode_batch(parcels: Iterable[Parcel]) -> bytes:
    """The parcels as one batch; InvalidValue if one cannot be carried, or all are too much."""
    return join([encode_parcel(parcel) for parcel in parcels])


def decode_batch(batch: Bytes) -> list[Parcel]:
    """The parcels of a batch: the inverse of `encode_batch`."""
    return [decode_parcel(record, f"parcel {at}") for at, record in enumerate(split(batch))]


def split(batch: Bytes) -> list[memoryview]:
    """The records of a batch, not looked into and not copied."""
    view = memoryview(batch)
    if not _BATCH.size <= len(view) <= PAYLOAD_BYTES_MAX:
        wanted = f"{_BATCH.size} to {PAYLOAD_BYTES_MAX} bytes"
        raise refused("batch", wanted, f"{len(view)}")
    count, total = _BATCH.unpack_from(view)
    if total != len(view) - _BATCH.size:
        raise refused("batch", f"{total} bytes of records, as its head says", f"{len(view) - 8}")
    if count > RECORDS_MAX:
        raise refused("batch", f"at most {RECORDS_MAX} parcels", f"{count}")
    records = []
    at = _BATCH.size
    for number in range(count):
        left = len(view) - at
        length = _SIZE.unpack_from(view, at)[0] if left >= _SIZE.size else 0
        if not HEAD_BYTES <= length <= left:
            wanted = f"a record of {HEAD_BYTES} to {left} bytes"
            raise refused(f"parcel {number}", wanted, f"one of {length}")
        records.append(view[at : at + length])
        at += length
    if at != len(view):
        raise refused("batch", f"nothing after {count} parcels", f"{len(view) - at} bytes")
    return records


def join(records: Iterable[Bytes]) -> bytes:
    """One batch of these records, wherever they came from: the inverse of `split`."""
    parts = list(records)
    if len(parts) > RECORDS_MAX:
        raise InvalidValue("batch", f"at most {RECORDS_MAX} parcels", f"{len(parts)}")
    for part in parts:
        if len(part) < HEAD_BYTES or _SIZE.unpack_from(part)[0] != len(part):
            raise InvalidValue("batch", "whole records", show(bytes(part[:16])))
    body = b"".join(parts)
    if len(body) > PAYLOAD_BYTES_MAX - _BATCH.size:
        raise InvalidValue("batch", f"at most {PAYLOAD_BYTES_MAX} bytes", f"{len(body)} and a head")
    return _BATCH.pack(len(parts), len(body)) + body
