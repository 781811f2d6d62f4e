"""How do many events of one broker look on a link, in forms that are said once?

A bundle says what is common to all of them, and has their notices (see `notices`), numbered and for
nobody in particular: as they lie at one broker they go to the next.

    offset  bytes  field
         0      4  events    how many
         4      1  hops      the links they crossed
         5      1  0
         6      2  origin    its length
         8      2  stamps    their length
        10      2  forms     how many
        12         origin, stamps (named values, as `values` says), then each form: its length (4)
                   and what `asking.encode_form` makes of it
                   notices   up to the end; numbers rise
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from driftline.errors import InvalidValue
from driftline.model.value import Value
from driftline.wire.asking import decode_form, encode_form
from driftline.wire.compact import split_records
from driftline.wire.forms import Form, check_form
from driftline.wire.refusal import refused, utf8
from driftline.wire.values import read_values, write_values

_HEAD = struct.Struct("<IBBHHH")
_SIZE = struct.Struct("<I")
_SHORT = struct.Struct("<H")
BYTES_AIM = 1 << 20
"""More bytes of notices, or of forms, than this go into several bundles."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Events on their way, as they go on a link."""

    payload: bytes

    @property
    def events(self) -> int:
        """How many."""
        events: int = _SIZE.unpack_from(self.payload)[0]
        return events


class Opened(NamedTuple):
    """What a bundle says of its events, and their notices."""

    events: int
    hops: int
    origin: str
    stamps: Mapping[str, Value]
    forms: dict[int, Form]
    notices: memoryview


def bundled(
    notices: memoryview,
    events: int,
    forms: Iterable[tuple[int, Form]],
    origin: str,
    hops: int,
    stamps: bytes,
) -> Iterator[Bundle]:
    """Notices as bundles: one, or as many as are needed. `stamps` are named values."""
    said = {number: encode_form(number, form) for number, form in forms}
    name = utf8(origin, "origin")
    for count, used, some in _cut(notices, events, said):
        head = _HEAD.pack(count, hops, 0, len(name), len(stamps), len(used))
        written = (_SIZE.pack(len(said[number])) + said[number] for number in used)
        yield Bundle(b"".join((head, name, stamps, *written, some)))


def _cut(
    notices: memoryview, events: int, forms: Mapping[int, bytes]
) -> Iterator[tuple[int, Collection[int], memoryview]]:
    """So many notices, the forms that they use, and the notices."""
    if len(notices) <= BYTES_AIM and sum(map(len, forms.values())) <= BYTES_AIM:
        yield events, forms, notices
        return
    begun = at = count = size = 0
    used: dict[int, None] = {}
    for one in split_records(notices):
        (number,) = _SHORT.unpack_from(one, 4)
        more = 0 if number in used else len(forms[number])
        if count and (at + len(one) - begun > BYTES_AIM or size + more > BYTES_AIM):
            yield count, used, notices[begun:at]
            begun, count, size, more, used = at, 0, 0, len(forms[number]), {}
        used[number] = None
        size += more
        at += len(one)
        count += 1
    yield count, used, notices[begun:]


def stamps_of(values: Mapping[str, Value]) -> bytes:
    """The environment, as a bundle has it."""
    return b"".join(write_values(values))


def open_bundle(payload: bytes) -> Opened:
    """What is in a bundle; `FrameRefused` if it is none. Notices are not looked into."""
    if len(payload) < _HEAD.size:
        raise refused("bundle", f"a head of {_HEAD.size} bytes", f"{len(payload)}")
    events, hops, nothing, name, stamps, count = _HEAD.unpack_from(payload)
    if nothing:
        raise refused("bundle", "0", f"{nothing}")
    at = _HEAD.size + name + stamps
    if at > len(payload):
        raise refused("bundle", f"{at} bytes, as its head says", f"{len(payload)}")
    try:
        origin = payload[_HEAD.size : _HEAD.size + name].decode()
    except UnicodeDecodeError as error:
        raise refused("bundle, origin", "UTF-8", error.reason) from None
    forms: dict[int, Form] = {}
    for _ in range(count):
        size = _SIZE.unpack_from(payload, at)[0] if at + _SIZE.size <= len(payload) else -1
        at += _SIZE.size
        if not 0 <= size <= len(payload) - at:
            raise refused("bundle", "a whole form", f"{len(payload) - at} bytes")
        number, form = decode_form(payload[at : at + size])
        at += size
        try:
            forms[number] = check_form(form)
        except InvalidValue as problem:
            raise refused("bundle", "forms that events can have", str(problem)) from None
    return Opened(
        events,
        hops,
        origin,
        read_values(payload[_HEAD.size + name : _HEAD.size + name + stamps], "bundle, stamps"),
        forms,
        memoryview(payload)[at:],
    )
