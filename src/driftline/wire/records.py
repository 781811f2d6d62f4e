"""How does one parcel look as bytes?

A record is a head of 48 bytes, eight sections whose lengths stand in the head, and the attributes
up to its end. All numbers are little-endian, unsigned unless said otherwise; texts are UTF-8.

    offset  bytes  field
         0      4  length      of the whole record, so that it can be skipped or copied
         4      1  flags       what is there: 1 entered, 2 time, 4 id, 8 source
         5      1  hops
         6      2  attributes  how many
         8      8  number
        16      8  entered     signed, microseconds since 1970; 0 where it is not there
        24      8  time        signed, the same
        32   8 × 2 bytes of each section: origin, publisher, type, id, source, homes, trace, stamps
        48         the sections in this order, then the attributes

A home is its length (2 bytes) and the text. Stamps and attributes are named values, as `values`
says. What is not there has 0 for its length or stamp, and anything else is refused: but for the
order of attributes and stamps, there is one way to write a parcel.

`route_of` and `rerouted` look at the head and the homes alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from driftline.errors import InvalidValue
from driftline.model.event import Event
from driftline.model.message import Parcel
from driftline.model.value import admit, show
from driftline.wire.framing import PAYLOAD_BYTES_MAX
from driftline.wire.limits import ATTRIBUTES_MAX, HOPS_MAX, NAME_BYTES_MAX
from driftline.wire.refusal import refused, utf8
from driftline.wire.values import read_values, write_values

Bytes: TypeAlias = bytes | memoryview

ENTERED, TIME, ID, SOURCE = 1, 2, 4, 8

_HEAD = struct.Struct("<IBBHQqq8H")
_LENGTH = struct.Struct("<H")

HEAD_BYTES = _HEAD.size
RECORD_BYTES_MAX = PAYLOAD_BYTES_MAX - 8
"""A batch has eight bytes before its records."""

_NUMBER_MAX = 2**64 - 1


class Route(NamedTuple):
    """What can be told of a record without looking at its event."""

    origin: str
    number: int
    hops: int
    homes: tuple[str, ...]


class _Head(NamedTuple):
    """The head of a record; the sections by their lengths."""

    length: int
    flags: int
    hops: int
    attributes: int
    number: int
    entered: int
    time: int
    origin: int
    publisher: int
    type: int
    id: int
    source: int
    homes: int
    trace: int
    stamps: int

    @property
    def homes_at(self) -> int:
        """Where the homes begin."""
        return HEAD_BYTES + self.origin + self.publisher + self.type + self.id + self.source


def encode_parcel(parcel: Parcel) -> bytes:
    """The record of one parcel; InvalidValue if it cannot be carried."""
    event = parcel.event
    stamps = {name: admit(value, f"stamp {name}") for name, value in parcel.stamps.items()}
    sections = (
        utf8(parcel.origin, "origin"),
        utf8(parcel.publisher, "publisher"),
        utf8(event.type, "event type"),
        b"" if event.id is None else utf8(event.id, "event id"),
        b"" if event.source is None else utf8(event.source, "event source"),
        _write_homes(parcel.homes),
        utf8(event.trace or "", "trace"),
        _section(b"".join(write_values(stamps)), "stamps"),
    )
    count = _counted(len(event.attributes), ATTRIBUTES_MAX, "attributes")
    body = b"".join((*sections, *write_values(event.attributes)))
    length = HEAD_BYTES + len(body)
    if length > RECORD_BYTES_MAX:
        raise InvalidValue("parcel", f"at most {RECORD_BYTES_MAX} bytes", f"{length}")
    flags = (
        ENTERED * (event.entered is not None)
        | TIME * (event.time is not None)
        | ID * (event.id is not None)
        | SOURCE * (event.source is not None)
    )
    head = _Head(
        length,
        flags,
        _counted(parcel.hops, HOPS_MAX, "hops"),
        count,
        _counted(parcel.number, _NUMBER_MAX, "number"),
        event.entered or 0,
        event.time or 0,
        *map(len, sections),
    )
    return _HEAD.pack(*head) + body


def decode_parcel(record: Bytes, where: str = "parcel") -> Parcel:
    """The parcel of a record: the inverse of `encode_parcel`."""
    # Slices of bytes are made much faster than those of a view, and there are many.
    raw = bytes(record)
    head = _head(raw, where)
    flags = head.flags
    sections = _sections(raw, head)
    origin = _text(next(sections), where, "origin")
    publisher = _text(next(sections), where, "publisher")
    type = _text(next(sections), where, "type")
    id = _text(next(sections), where, "id")
    source = _text(next(sections), where, "source")
    homes = _read_homes(next(sections), where)
    trace = _text(next(sections), where, "trace")
    stamps = read_values(next(sections), f"{where}, stamps")
    attributes = read_values(next(sections), f"{where}, attributes")
    if len(attributes) != head.attributes:
        wanted = f"{head.attributes} attributes, as its head says"
        raise refused(where, wanted, f"{len(attributes)}")
    try:
        event = Event(
            type,
            attributes,
            time=head.time if flags & TIME else None,
            id=id if flags & ID else None,
            source=source if flags & SOURCE else None,
            entered=head.entered if flags & ENTERED else None,
            trace=trace or None,
        )
    except InvalidValue as error:
        raise refused(f"{where}, {error.where}", error.wanted, error.came) from None
    return Parcel(origin, head.number, event, publisher, head.hops, homes, stamps)


def route_of(record: Bytes) -> Route:
    """Where a parcel came from and is meant for. Its event is not looked at."""
    raw = memoryview(record)
    head = _head(raw, "parcel")
    origin = _text(bytes(raw[HEAD_BYTES : HEAD_BYTES + head.origin]), "parcel", "origin")
    homes = _read_homes(bytes(raw[head.homes_at : head.homes_at + head.homes]), "parcel")
    return Route(origin, head.number, head.hops, homes)


def rerouted(record: Bytes, hops: int, homes: Iterable[str]) -> bytes:
    """The record of the same parcel with other hops and homes. Its event is copied as it lies."""
    raw = memoryview(record)
    head = _head(raw, "parcel")
    before = raw[HEAD_BYTES : head.homes_at]
    after = raw[head.homes_at + head.homes :]
    written = _write_homes(homes)
    length = head.length - head.homes + len(written)
    if length > RECORD_BYTES_MAX:
        raise InvalidValue("parcel", f"at most {RECORD_BYTES_MAX} bytes", f"{length}")
    hops = _counted(hops, HOPS_MAX, "hops")
    head = head._replace(length=length, hops=hops, homes=len(written))
    return b"".join((_HEAD.pack(*head), before, written, after))


def _head(raw: Bytes, where: str) -> _Head:
    """The head, once it is sure that it says what can be and that the sections lie within."""
    if len(raw) < HEAD_BYTES:
        raise refused(where, f"a head of {HEAD_BYTES} bytes", f"{len(raw)}")
    head = _Head._make(_HEAD.unpack_from(raw))
    if head.length != len(raw):
        raise refused(where, f"{head.length} bytes, as its head says", f"{len(raw)}")
    sections = HEAD_BYTES + sum(head[7:])
    if sections > len(raw):
        raise refused(where, f"{sections} bytes, as its sections say", f"{len(raw)}")
    flags = head.flags
    if flags & ~(ENTERED | TIME | ID | SOURCE):
        raise refused(where, "flags of 4 bits", f"{flags:#x}")
    # What is not there is written in one way only.
    untold = (
        (not flags & ENTERED and head.entered)
        or (not flags & TIME and head.time)
        or (not flags & ID and head.id)
        or (not flags & SOURCE and head.source)
    )
    if untold:
        raise refused(where, "nothing where the flags say so", f"{untold}")
    return head


def _sections(raw: bytes, head: _Head) -> Iterator[bytes]:
    """The sections, and last the attributes."""
    at = HEAD_BYTES
    for size in head[7:]:
        yield raw[at : at + size]
        at += size
    yield raw[at:]


def _text(raw: bytes, where: str, name: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        came = f"{error.reason} at its byte {error.start}"
        raise refused(f"{where}, {name}", "UTF-8", came) from None


def _write_homes(homes: Iterable[str]) -> bytes:
    names = [utf8(home, "home") for home in homes]
    return _section(b"".join(_LENGTH.pack(len(name)) + name for name in names), "homes")


def _read_homes(raw: bytes, where: str) -> tuple[str, ...]:
    homes = []
    at = 0
    while at < len(raw):
        left = len(raw) - at - _LENGTH.size
        length = _LENGTH.unpack_from(raw, at)[0] if left >= 0 else 0
        if not 0 <= length <= left:
            wanted = f"{_LENGTH.size} bytes of a length and {length} of a name"
            raise refused(f"{where}, homes", wanted, f"{len(raw) - at} in all")
        at += _LENGTH.size + length
        homes.append(_text(raw[at - length : at], where, "homes"))
    return tuple(homes)


def _section(raw: bytes, where: str) -> bytes:
    if len(raw) > NAME_BYTES_MAX:
        raise InvalidValue(where, f"at most {NAME_BYTES_MAX} bytes", f"{len(raw)}")
    return raw


def _counted(number: int, most: int, where: str) -> int:
    if type(number) is not int or not 0 <= number <= most:
        raise InvalidValue(where, f"a number from 0 to {most}", show(number))
    return number
