"""How do named values look as bytes?

A kind (1 byte), the length of the name (2), the name, and the value: 8 bytes for the kinds up to
15, otherwise a length (4) and as many bytes. Little-endian; texts are UTF-8.

    kind  1 integer, signed    2 float, IEEE 754   3 boolean, 0 or 1
          4 time, signed, microseconds since 1970
         16 string            17 bytes

So whoever looks for one name can pass over all others, whatever they hold. An integer has 64 bits,
as in the model; kind 18 is kept for longer ones.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from datetime import datetime

from driftline.model.event import EARLIEST_US, LATEST_US
from driftline.model.value import Value, microseconds_of, show, time_of
from driftline.wire.refusal import refused, utf8

INTEGER, FLOAT, BOOLEAN, TIME = 1, 2, 3, 4
STRING, BYTES = 16, 17
FIXED_MAX = 15
"""Kinds up to this one have a value of eight bytes."""

_LABEL = struct.Struct("<BH")
_SIZE = struct.Struct("<I")
_SIGNED = struct.Struct("<q")
_DOUBLE = struct.Struct("<d")


def write_values(values: Mapping[str, Value]) -> Iterator[bytes]:
    """The bytes of each, in their order. The values are admitted, as those of events are."""
    for name, value in values.items():
        label = utf8(name, "a name")
        size = len(label)
        if isinstance(value, str):
            text = value.encode()
            yield _LABEL.pack(STRING, size) + label + _SIZE.pack(len(text)) + text
        elif isinstance(value, float):
            yield _LABEL.pack(FLOAT, size) + label + _DOUBLE.pack(value)
        elif isinstance(value, bool):  # before the integers, of which Python makes it one
            yield _LABEL.pack(BOOLEAN, size) + label + _SIGNED.pack(value)
        elif isinstance(value, int):
            yield _LABEL.pack(INTEGER, size) + label + _SIGNED.pack(value)
        elif isinstance(value, datetime):
            yield _LABEL.pack(TIME, size) + label + _SIGNED.pack(microseconds_of(value))
        else:
            yield _LABEL.pack(BYTES, size) + label + _SIZE.pack(len(value)) + value


def read_values(raw: bytes, where: str) -> dict[str, Value]:
    """The named values in all of these bytes: the inverse of `write_values`."""
    found: dict[str, Value] = {}
    at = 0
    try:
        while at < len(raw):
            at = _read_value(raw, at, found)
    except UnicodeDecodeError as error:
        wanted, came = "UTF-8", f"{error.reason} at byte {error.start} of a text"
    except struct.error:
        wanted, came = "a name and its value", f"only {len(raw) - at} bytes"
    except _Wrong as wrong:
        wanted, came = wrong.args
    else:
        return found
    raise refused(f"{where}, value {len(found)}", wanted, came)


def _read_value(raw: bytes, at: int, found: dict[str, Value]) -> int:
    """Read one value into `found`, and say where the next begins."""
    kind, size = _LABEL.unpack_from(raw, at)
    at += _LABEL.size + size
    if at > len(raw):
        raise _Wrong(f"a name of {size} bytes", f"only {size - at + len(raw)}")
    name = raw[at - size : at].decode()
    if name in found:
        raise _Wrong("another name", f"{show(name)} again")
    if kind == FLOAT:
        (found[name],) = _DOUBLE.unpack_from(raw, at)
        return at + _DOUBLE.size
    if kind <= FIXED_MAX:
        (number,) = _SIGNED.unpack_from(raw, at)
        found[name] = number if kind == INTEGER else _meant(kind, number)
        return at + _SIGNED.size
    (size,) = _SIZE.unpack_from(raw, at)
    at += _SIZE.size + size
    if at > len(raw):
        raise _Wrong(f"a value of {size} bytes", f"only {size - at + len(raw)}")
    if kind == STRING:
        found[name] = raw[at - size : at].decode()
    elif kind == BYTES:
        found[name] = raw[at - size : at]
    else:
        raise _unknown(kind)
    return at


def _meant(kind: int, number: int) -> Value:
    if kind == BOOLEAN:
        if number not in (0, 1):
            raise _Wrong("a boolean, 0 or 1", f"{number}")
        return number == 1
    if kind == TIME:
        if not EARLIEST_US <= number <= LATEST_US:
            raise _Wrong("microseconds between the years 1 and 9999", f"{number}")
        return time_of(number)
    raise _unknown(kind)


def _unknown(kind: int) -> _Wrong:
    return _Wrong("a kind from 1 to 4, 16 or 17", f"kind {kind}")


class _Wrong(Exception):
    """What was wanted and what came; the place is added where it is known."""
