r"""How does a control message look as bytes?

MessagePack, as arrays: the name of the message and its fields in the order given here.

    interest    reset, removed, added, sequences, updates
                                                    keys, and [key, filter, key, filter, …]
    set         updates                             an interest that has nothing else
    offer       reset, removed, added               keys, and [key, advertisement, …]
    neighbours  origin, version, links
    home        origin, version, base, removed, added, withdrawn, offered, updates
    ask         token, within, says                 an advertisement or nil
    answer      token, silent, interested
    resync      origin, number, table               a table's name, or empty

How filters, sequences and advertisements look is said in `filters`. They are read one by one, so
that a message that is refused in the middle was never in memory as a whole.

    >>> sent = encode_control(Answer("t7", ("b",)))
    >>> sent
    b'\x94\xa6answer\xa2t7\x91\xa1b\xc2'
    >>> decode_control(sent)
    Answer(token='t7', silent=('b',), interested=False)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypeVar

from msgspec import Meta, Raw
from msgspec.msgpack import Decoder, Encoder

from driftline.errors import InvalidValue
from driftline.model.advertisement import Advertisement
from driftline.model.filter import Filter
from driftline.model.message import (
    Answer,
    Ask,
    Control,
    Home,
    Interest,
    Neighbours,
    Offer,
    Resync,
    Sequence,
)
from driftline.model.value import Value, show
from driftline.wire.filters import Array, Reader, Writer
from driftline.wire.framing import PAYLOAD_BYTES_MAX
from driftline.wire.limits import ENTRIES_MAX, FIELDS_MAX, FILTER_BYTES_MAX, NAME_BYTES_MAX
from driftline.wire.memory import Memory
from driftline.wire.refusal import described, refused, utf8

Bytes: TypeAlias = bytes | bytearray | memoryview
T = TypeVar("T")

VERSION_MAX = 2**63 - 1
SET = "set"

_encode = Encoder().encode
_AS_ARRAY = Decoder(Annotated[list[Raw], Meta(min_length=1, max_length=FIELDS_MAX)])
_AS_ENTRIES = Decoder(Annotated[list[Raw], Meta(max_length=2 * ENTRIES_MAX)])
_AS_TEXTS = Decoder(Annotated[list[str], Meta(max_length=ENTRIES_MAX)])
_AS_TEXT = Decoder(str)
_AS_FLAG = Decoder(bool)
_AS_VERSION: Decoder[int] = Decoder(Annotated[int, Meta(ge=0, le=VERSION_MAX)])
_AS_IT_IS: Decoder[object] = Decoder()
_MEMORY = Memory()
_SHORT = 64


def encode_control(message: Control) -> bytes:
    """The payload of a control message; InvalidValue if it cannot be carried."""
    name = _NAMES_OF.get(type(message))
    if isinstance(message, Interest) and _only_moves(message):
        name = SET
    if name is None:
        wanted = f"one of {', '.join(_MESSAGES)}"
        raise InvalidValue("control message", wanted, type(message).__name__)
    _, forms = _MESSAGES[name]
    fields = [form.write(getattr(message, field), f"{name}, {field}") for field, form in forms]
    payload = _encode([name, *fields])
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise InvalidValue(name, f"at most {PAYLOAD_BYTES_MAX} bytes", f"{len(payload)}")
    return payload


def _only_moves(said: Interest) -> bool:
    """Is it updates and nothing else? They are many and small, and are written shortly."""
    return bool(said.updates) and not (said.reset or said.removed or said.added or said.sequences)


def decode_control(payload: Bytes) -> Control:
    """The message of a payload: the inverse of `encode_control`."""
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise refused("control message", f"at most {PAYLOAD_BYTES_MAX} bytes", f"{len(payload)}")
    try:
        return _decoded(payload)
    except RecursionError:
        # Deeper than any message is; or the stack was nearly full before.
        raise refused("control message", "arrays less deep in one another", "deeper ones") from None


def _decoded(payload: Bytes) -> Control:
    wanted = f"an array of 1 to {FIELDS_MAX}"
    first, *fields = _read(_AS_ARRAY, payload, "control message", wanted)
    name = _read_name(first, "control message, name")
    if name not in _MESSAGES:
        raise refused("control message", f"one of {', '.join(_MESSAGES)}", show(name))
    message, forms = _MESSAGES[name]
    if len(fields) != len(forms):
        raise refused(name, f"{len(forms)} fields", f"{len(fields)}")
    return message(
        **{
            field: form.read(raw, f"{name}, {field}")
            for raw, (field, form) in zip(fields, forms, strict=True)
        }
    )


def _read(decoder: Decoder[T], raw: Bytes | Raw, where: str, wanted: str) -> T:
    """What msgspec makes of the bytes; whatever it complains of is a refusal."""
    try:
        return decoder.decode(raw)
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        # All that msgspec raises of its own, and that Python raises of a text that is no UTF-8.
        raise refused(where, wanted, f"{type(error).__name__}: {error}") from None


# The forms a field may have


def _write_flag(flag: bool, where: str) -> bool:
    if type(flag) is not bool:
        raise InvalidValue(where, "a boolean", show(flag))
    return flag


def _read_flag(raw: Raw, where: str) -> bool:
    return _read(_AS_FLAG, raw, where, "a boolean")


def _write_version(number: int, where: str) -> int:
    if type(number) is not int or not 0 <= number <= VERSION_MAX:
        raise InvalidValue(where, f"a number from 0 to {VERSION_MAX}", show(number))
    return number


def _read_version(raw: Raw, where: str) -> int:
    return _read(_AS_VERSION, raw, where, f"a number from 0 to {VERSION_MAX}")


def _write_name(name: str, where: str) -> str:
    utf8(name, where)
    return name


def _read_name(raw: Raw, where: str) -> str:
    return _checked(_read(_AS_TEXT, raw, where, "a text"), where)


def _checked(name: str, where: str) -> str:
    if len(name) > _SHORT and len(name.encode()) > NAME_BYTES_MAX:
        raise refused(where, f"a text of at most {NAME_BYTES_MAX} bytes", described(name))
    return name


def _write_names(names: Iterable[str], where: str) -> list[str]:
    found = [_write_name(name, where) for name in names]
    if len(found) > ENTRIES_MAX:
        raise InvalidValue(where, f"at most {ENTRIES_MAX} texts", f"{len(found)}")
    return found


def _read_names(raw: Raw, where: str) -> tuple[str, ...]:
    found = _read(_AS_TEXTS, raw, where, f"an array of at most {ENTRIES_MAX} texts")
    return tuple([_checked(name, where) for name in found])


def _write_entries(
    entries: Mapping[str, T], where: str, write: Callable[[Writer, T], Array]
) -> list[str | Raw]:
    if len(entries) > ENTRIES_MAX:
        raise InvalidValue(where, f"at most {ENTRIES_MAX} entries", f"{len(entries)}")
    writer = Writer(where)
    found: list[str | Raw] = []
    for key, one in entries.items():
        known = _MEMORY.bytes_of(one)
        if known is not None and type(key) is str and len(key) <= _SHORT and key.isascii():
            # Most are such: nothing can be wrong with them, unless they are too many.
            writer.where = where
            writer.count(known[1])
            found += (key, Raw(known[0]))
            continue
        writer.where = f"{where} {show(key)}"
        before = writer.parts
        written = _encode(write(writer, one))
        if len(written) > FILTER_BYTES_MAX:
            wanted = f"at most {FILTER_BYTES_MAX} bytes"
            raise InvalidValue(writer.where, wanted, f"{len(written)}")
        _MEMORY.wrote(one, written, writer.parts - before)
        found += (_write_name(key, writer.where), Raw(written))
    return found


def _read_entries(raw: Raw, where: str, read: Callable[[Reader, Raw], T]) -> dict[str, T]:
    wanted = f"an array of at most {ENTRIES_MAX} keys with something behind each"
    items = _read(_AS_ENTRIES, raw, where, wanted)
    if len(items) % 2:
        raise refused(where, wanted, f"{len(items)} in all")
    reader = Reader(where)
    found: dict[str, T] = {}
    for at in range(0, len(items), 2):
        key = _read_name(items[at], where)
        reader.where = f"{where} {show(key)}"
        if key in found:
            raise reader.refused("each key once", "it again")
        found[key] = read(reader, items[at + 1])
    return found


def _write_offer(says: Advertisement | None, where: str) -> Raw | None:
    if says is None:
        return None
    written = _encode(Writer(where).advertisement(says))
    if len(written) > FILTER_BYTES_MAX:
        raise InvalidValue(where, f"at most {FILTER_BYTES_MAX} bytes", f"{len(written)}")
    return Raw(written)


def _read_offer(raw: Raw, where: str) -> Advertisement | None:
    reader = Reader(where)
    array = _read_item(reader, raw)
    return None if array is None else reader.advertisement(array)


def _read_filter(reader: Reader, raw: Raw) -> Filter:
    short = bytes(raw)
    known = _MEMORY.filter_of(short)
    if known is not None:
        reader.count(known[1])
        return known[0]
    before = reader.parts
    one = reader.filter(_read_item(reader, raw))
    _MEMORY.read(one, short, reader.parts - before)
    return one


def _read_advertisement(reader: Reader, raw: Raw) -> Advertisement:
    return reader.advertisement(_read_item(reader, raw))


def _read_sequence(reader: Reader, raw: Raw) -> Sequence:
    return reader.sequence(_read_item(reader, raw))


def _read_update(reader: Reader, raw: Raw) -> dict[int, Value]:
    return reader.update(_read_item(reader, raw))


def _read_item(reader: Reader, raw: Raw) -> object:
    size = memoryview(raw).nbytes
    if size > FILTER_BYTES_MAX:
        raise reader.refused(f"at most {FILTER_BYTES_MAX} bytes", f"{size}")
    return _read(_AS_IT_IS, raw, reader.where, "MessagePack")


@dataclass(frozen=True, slots=True)
class _Form:
    """How a field is written and read; each is told where, for its errors."""

    write: Callable[[Any, str], object]
    read: Callable[[Raw, str], Any]


_FLAG = _Form(_write_flag, _read_flag)
_VERSION = _Form(_write_version, _read_version)
_NAME = _Form(_write_name, _read_name)
_NAMES = _Form(_write_names, _read_names)
_FILTERS = _Form(
    lambda entries, where: _write_entries(entries, where, Writer.filter),
    lambda raw, where: _read_entries(raw, where, _read_filter),
)
_OFFERS = _Form(
    lambda entries, where: _write_entries(entries, where, Writer.advertisement),
    lambda raw, where: _read_entries(raw, where, _read_advertisement),
)
_SEQUENCES = _Form(
    lambda entries, where: _write_entries(entries, where, Writer.sequence),
    lambda raw, where: _read_entries(raw, where, _read_sequence),
)
_UPDATES = _Form(
    lambda entries, where: _write_entries(entries, where, Writer.update),
    lambda raw, where: _read_entries(raw, where, _read_update),
)
_OFFER = _Form(_write_offer, _read_offer)

_MESSAGES: dict[str, tuple[type[Control], tuple[tuple[str, _Form], ...]]] = {
    "interest": (
        Interest,
        (
            ("reset", _FLAG),
            ("removed", _NAMES),
            ("added", _FILTERS),
            ("sequences", _SEQUENCES),
            ("updates", _UPDATES),
        ),
    ),
    SET: (Interest, (("updates", _UPDATES),)),
    "offer": (Offer, (("reset", _FLAG), ("removed", _NAMES), ("added", _OFFERS))),
    "neighbours": (Neighbours, (("origin", _NAME), ("version", _VERSION), ("links", _NAMES))),
    "home": (
        Home,
        (
            ("origin", _NAME),
            ("version", _VERSION),
            ("base", _VERSION),
            ("removed", _NAMES),
            ("added", _FILTERS),
            ("withdrawn", _NAMES),
            ("offered", _OFFERS),
            ("updates", _UPDATES),
        ),
    ),
    "ask": (Ask, (("token", _NAME), ("within", _VERSION), ("says", _OFFER))),
    "answer": (Answer, (("token", _NAME), ("silent", _NAMES), ("interested", _FLAG))),
    "resync": (Resync, (("origin", _NAME), ("number", _VERSION), ("table", _NAME))),
}
_NAMES_OF = {message: name for name, (message, _) in _MESSAGES.items() if name != SET}
