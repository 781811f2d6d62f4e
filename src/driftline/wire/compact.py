"""How does an event look on a client's connection?

As the number of its form (see `forms`), and its values. All numbers are little-endian; texts are
UTF-8.

    offset  bytes  field
         0      4  length    of the whole record
         4      2  form      NO_FORM: the type and the names stand in the record itself
         6      1  flags     what is there: 1 time, 2 id, 4 source, 8 trace, 16 entered
         7      1  0
         8         time (8 bytes); id, source and trace (2 bytes of length, then the text);
                   entered (8); then the values in the order of the form: 8 bytes for the kinds up
                   to 15 (see `values`), otherwise a length (4 bytes) and as many bytes.
                   Without a form: the type (2 bytes of length), then named values as in `values`.

    >>> from driftline.wire.forms import form_of
    >>> event = Event("quote", {"firm": "IBM", "price": 9.5})
    >>> form = form_of(event)
    >>> record = write_record(event, 3, form)
    >>> len(record), read_record(record, {3: form}) == event
    (23, True)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from driftline.errors import InvalidValue
from driftline.model.event import EARLIEST_US, ENVELOPE, LATEST_US, Event
from driftline.model.trace import is_trace
from driftline.model.value import Value, microseconds_of, time_of
from driftline.wire.forms import NO_FORM, Form
from driftline.wire.limits import FRAME_BYTES_MAX
from driftline.wire.refusal import refused, utf8
from driftline.wire.values import (
    BOOLEAN,
    BYTES,
    FIXED_MAX,
    FLOAT,
    INTEGER,
    STRING,
    TIME,
    read_values,
    write_values,
)

Bytes: TypeAlias = bytes | bytearray | memoryview

HAS_TIME, HAS_ID, HAS_SOURCE, HAS_TRACE, HAS_ENTERED = 1, 2, 4, 8, 16
ENVELOPE_FLAGS = 31
HEAD_BYTES = 8
RECORD_BYTES_MAX = FRAME_BYTES_MAX - (1 << 17)
"""What a frame has room for, with a good deal to spare for whom it is told to."""

HEAD = struct.Struct("<IHBB")
WORD = struct.Struct("<q")
SIZE = struct.Struct("<I")
_DOUBLE = struct.Struct("<d")
_SHORT = struct.Struct("<H")


def write_record(event: Event, number: int, form: Form) -> bytes:
    """The record of an event in its form, which goes by this number."""
    flags, body = write_body(event, number, form)
    length = HEAD_BYTES + len(body)
    if length > RECORD_BYTES_MAX:
        raise InvalidValue("event", f"at most {RECORD_BYTES_MAX} bytes", f"{length}")
    return HEAD.pack(length, number, flags, 0) + body


def write_body(event: Event, number: int, form: Form, *, entered: bool = True) -> tuple[int, bytes]:
    """What stands behind the head of a record, and its flags."""
    parts: list[bytes] = []
    flags = 0
    if event.time is not None:
        parts.append(WORD.pack(event.time))
        flags |= HAS_TIME
    texts = ((HAS_ID, event.id), (HAS_SOURCE, event.source), (HAS_TRACE, event.trace))
    for flag, text in texts:
        if text is not None:
            parts.append(_short(text, "envelope"))
            flags |= flag
    if entered and event.entered is not None:
        parts.append(WORD.pack(event.entered))
        flags |= HAS_ENTERED
    if number == NO_FORM:
        parts.append(_short(event.type, "event type"))
        parts += write_values(event.attributes)
    else:
        for (_, kind), value in zip(form.fields, event.attributes.values(), strict=True):
            parts.append(_value(kind, value))
    return flags, b"".join(parts)


def _short(text: str, where: str) -> bytes:
    raw = utf8(text, where)
    return _SHORT.pack(len(raw)) + raw


def _value(kind: int, value: Any) -> bytes:
    if kind == FLOAT:
        return _DOUBLE.pack(value)
    if kind == STRING:
        raw: bytes = value.encode()
        return SIZE.pack(len(raw)) + raw
    if kind == TIME:
        return WORD.pack(microseconds_of(value))
    if kind == BYTES:
        return SIZE.pack(len(value)) + bytes(value)
    return WORD.pack(value)


def read_record(raw: Bytes, forms: Mapping[int, Form], where: str = "record") -> Event:
    """The event of one whole record; `FrameRefused` for anything else."""
    whole = bytes(raw)
    number, flags, nothing = read_head(whole, where)
    if nothing or flags & ~ENVELOPE_FLAGS:
        raise refused(where, "flags that are known", f"{flags:#x} and {nothing}")
    return read_body(Cursor(whole, HEAD_BYTES, where), number, flags, forms, None)


def read_head(whole: bytes, where: str) -> tuple[int, int, int]:
    """The form's number, the flags and the last byte of a record's head."""
    if len(whole) < HEAD_BYTES:
        raise refused(where, f"at least {HEAD_BYTES} bytes", f"{len(whole)}")
    length, number, flags, last = HEAD.unpack_from(whole)
    if length != len(whole):
        raise refused(where, f"{length} bytes, as its head says", f"{len(whole)}")
    return number, flags, last


class Cursor:
    """A place in some bytes, from which parts are read; what is missing is refused."""

    __slots__ = ("at", "raw", "where")

    def __init__(self, raw: bytes, at: int, where: str) -> None:
        self.raw = raw
        self.at = at
        self.where = where

    def take(self, one: struct.Struct) -> Any:
        """One number."""
        end = self.at + one.size
        if end > len(self.raw):
            raise refused(self.where, f"{one.size} more bytes", f"{len(self.raw) - self.at}")
        (found,) = one.unpack_from(self.raw, self.at)
        self.at = end
        return found

    def bytes(self, size: int) -> bytes:
        """So many bytes."""
        end = self.at + size
        if end > len(self.raw):
            raise refused(self.where, f"{size} more bytes", f"{len(self.raw) - self.at}")
        self.at, begun = end, self.at
        return self.raw[begun:end]

    def text(self, size: int) -> str:
        """A text of so many bytes."""
        try:
            return self.bytes(size).decode()
        except UnicodeDecodeError as error:
            raise refused(self.where, "UTF-8", f"{error.reason} in a text") from None

    def short(self) -> str:
        """A text behind its length, which is not empty."""
        text = self.text(self.take(_SHORT))
        if not text:
            raise refused(self.where, "a text that is not empty", "an empty one")
        return text

    def stamp(self) -> int:
        """A time in microseconds."""
        stamp: int = self.take(WORD)
        if not EARLIEST_US <= stamp <= LATEST_US:
            raise refused(self.where, "microseconds between the years 1 and 9999", f"{stamp}")
        return stamp

    def value(self, kind: int) -> Value:
        """A value of a kind."""
        if kind == FLOAT:
            return self.take(_DOUBLE)  # type: ignore[no-any-return]
        if kind == TIME:
            return time_of(self.stamp())
        if kind <= FIXED_MAX:
            word: int = self.take(WORD)
            if kind == BOOLEAN:
                if word not in (0, 1):
                    raise refused(self.where, "a boolean, 0 or 1", f"{word}")
                return word == 1
            assert kind == INTEGER
            return word
        size: int = self.take(SIZE)
        return self.text(size) if kind == STRING else self.bytes(size)


def read_body(
    cursor: Cursor, number: int, flags: int, forms: Mapping[int, Form], entered: int | None
) -> Event:
    """The event that stands behind the head of a record, up to its end.

    A trace that is none is left out: nobody is to lose an event for it.
    """
    time = cursor.stamp() if flags & HAS_TIME else None
    id = cursor.short() if flags & HAS_ID else None
    source = cursor.short() if flags & HAS_SOURCE else None
    trace = cursor.short() if flags & HAS_TRACE else None
    if trace is not None and not is_trace(trace):
        trace = None
    if flags & HAS_ENTERED:
        entered = cursor.stamp()
    values: dict[str, Value]
    if number == NO_FORM:
        type = cursor.short()
        values = read_values(cursor.raw[cursor.at :], cursor.where)
        if not values.keys().isdisjoint(("", *ENVELOPE)):
            raise refused(cursor.where, "names that are not empty or the envelope's", "one that is")
    else:
        form = forms.get(number)
        if form is None:
            raise refused(cursor.where, "a form that was said before", f"form {number}")
        type = form.type
        values = {name: cursor.value(kind) for name, kind in form.fields}
        if cursor.at != len(cursor.raw):
            left = len(cursor.raw) - cursor.at
            raise refused(cursor.where, f"nothing after {len(values)} values", f"{left} bytes")
    return Event.of_parts(type, values, time, id, source, entered, trace)


def read_name(raw: Bytes, where: str = "record") -> tuple[str | None, str | None]:
    """The source and the id of a whole record, and nothing else of it."""
    _, flags, _ = read_head(whole := bytes(raw), where)
    cursor = Cursor(whole, HEAD_BYTES, where)
    if flags & HAS_TIME:
        cursor.take(WORD)
    id = cursor.short() if flags & HAS_ID else None
    return (cursor.short() if flags & HAS_SOURCE else None), id


def split_records(raw: Bytes, where: str = "events") -> Iterator[memoryview]:
    """The records, or notices, that lie one behind the other, not looked into."""
    view = memoryview(raw)
    at = 0
    while at < len(view):
        left = len(view) - at
        length = SIZE.unpack_from(view, at)[0] if left >= HEAD_BYTES else 0
        if not HEAD_BYTES <= length <= left:
            raise refused(where, f"a record of {HEAD_BYTES} to {left} bytes", f"one of {length}")
        yield view[at : at + length]
        at += length
