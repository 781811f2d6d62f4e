r"""How does what a broker keeps look as bytes?

An entry is a key, texts of which the first names its kind, and a value. `docs/reference/journal.md`
has the layout of each kind. Events, filters and advertisements look as on the wire, statements as
the language writes them, the rest is MessagePack. Nothing is pickled: a journal is read by those
who know its format, whatever their code looks like by then.

    >>> encode(("seen", "a"), 7), decode(("seen", "a"), b"\x07")
    (b'\x07', 7)
    >>> encode(("kept", "p", "9"), b"a batch")
    b'a batch'
    >>> encode(("sene", "a"), 7)
    Traceback (most recent call last):
    driftline.errors.InvalidValue: journal key ('sene', 'a'): wanted one of advertised, bundle, ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from msgspec import MsgspecError, json, msgpack

from driftline.broker.effects import Deliver, Key
from driftline.broker.letters import Letter
from driftline.broker.links import Role
from driftline.broker.restated import Former, Restated
from driftline.errors import InvalidValue
from driftline.model.advertisement import Advertisement
from driftline.model.event import Event
from driftline.model.filter import Filter
from driftline.model.message import Neighbours, Parcel, Sequence
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.model.value import KIND_OF, show
from driftline.net.journal.statements import (
    read_standing,
    read_statement,
    write_standing,
    write_statement,
)
from driftline.net.journal.tellings import (
    read_delivery,
    read_event,
    write_delivery,
    write_event,
)
from driftline.stateful.value_based.address import Relabelling
from driftline.wire.bundles import Bundle
from driftline.wire.codec import decode_control, encode_control
from driftline.wire.filters import Reader, Writer
from driftline.wire.forms import Form
from driftline.wire.records import decode_parcel, encode_parcel

FORMAT = 2
"""Counts up with each change to what is described here; older ones go on being read."""

T = TypeVar("T")

_pack = msgpack.Encoder().encode
_unpack: Callable[[bytes], Any] = msgpack.Decoder().decode
_write_key = json.Encoder().encode
_read_key = json.Decoder(tuple[str, ...]).decode


def encode_key(key: Key) -> str:
    """A key as text that a person can read and a database can compare: a JSON array."""
    return _write_key(key).decode()


def decode_key(text: str) -> Key:
    """The inverse of `encode_key`."""
    return _read_key(text)


def encode(key: Key, value: object) -> bytes:
    """What is kept under a key, as bytes; InvalidValue if it is nothing that is kept there."""
    form = _form_of(key)
    try:
        return form.write(value)
    except InvalidValue as problem:
        raise InvalidValue(
            f"journal key {key}, {problem.where}", problem.wanted, problem.came
        ) from (problem)
    except (AttributeError, MsgspecError, OverflowError, TypeError, ValueError) as problem:
        raise InvalidValue(f"journal key {key}", "what is kept there", f"{problem}") from problem


def decode(key: Key, data: bytes) -> object:
    """The inverse of `encode`. Raises whatever it stumbles over: the data is what was written."""
    return _form_of(key).read(data)


@dataclass(frozen=True, slots=True)
class _Form:
    """How the values of a kind are written and read."""

    write: Callable[[Any], bytes]
    read: Callable[[bytes], object]


def _form_of(key: Key) -> _Form:
    kind = "/".join(key[:2]) if key and key[0] == "mesh" else "".join(key[:1])
    form = _FORMS.get(kind)
    if form is None:
        raise InvalidValue(f"journal key {key}", f"one of {', '.join(_FORMS)}", show(kind))
    return form


def _packed(*types: type, then: Callable[[Any], object] = lambda value: value) -> _Form:
    """What MessagePack writes by itself, of exactly these types."""

    def write(value: object) -> bytes:
        if type(value) not in types:
            raise TypeError(f"{show(value)} ({type(value).__name__})")
        return _pack(value)

    return _Form(write, lambda data: then(_unpack(data)))


def _each(wanted: type[T], write: Callable[[T], bytes], read: Callable[[bytes], object]) -> _Form:
    """Values of one type."""

    def checked(value: object) -> bytes:
        if not isinstance(value, wanted):
            raise TypeError(f"{show(value)} ({type(value).__name__})")
        return write(value)

    return _Form(checked, read)


def _write_wanted(one: Filter | Sequence) -> bytes:
    writer = Writer("a wanted filter")
    if isinstance(one, Sequence):
        return _pack(["sequence", writer.sequence(one)])
    return _pack(["filter", writer.filter(one)])


def _read_wanted(data: bytes) -> Filter | Sequence:
    kind, array = _unpack(data)
    reader = Reader("a wanted filter")
    return reader.sequence(array) if kind == "sequence" else reader.filter(array)


def _write_declaration(one: TableDeclaration) -> bytes:
    return _pack([one.name, one.key, {name: str(tick) for name, tick in one.ticks.items()}])


def _read_declaration(data: bytes) -> TableDeclaration:
    name, key, ticks = _unpack(data)
    return TableDeclaration(name, key, {one: Decimal(tick) for one, tick in ticks.items()})


def _write_labels(value: tuple[Any, tuple[Relabelling, ...]]) -> bytes:
    key, known = value
    return _pack([key, [[*one] for one in known]])


def _read_labels(data: bytes) -> tuple[Any, tuple[Relabelling, ...]]:
    key, known = _unpack(data)
    return key, tuple([Relabelling(*one) for one in known])


def _write_partial(found: tuple[Event, ...]) -> bytes:
    return _pack([*map(write_event, found)])


def _write_owned(value: tuple[str, Standing, int, Restated]) -> bytes:
    party, standing, handle, restated = value
    before = [[one.since, write_statement(one.statement)] for one in restated.before]
    return _pack([party, write_standing(standing), handle, restated.since, before])


def _read_owned(data: bytes) -> tuple[str, Standing, int, Restated]:
    party, written, handle, *more = _unpack(data)
    standing = read_standing(written)
    if not more:  # Of format 1: what it asked for under earlier epochs is not known.
        return party, standing, handle, Restated(standing.epoch)
    since, before = more
    formers = [Former(from_epoch, read_statement(one)) for from_epoch, one in before]
    return party, standing, handle, Restated(since, tuple(formers))


def _write_form(form: Form) -> bytes:
    return _pack([form.type, form.fields])


def _read_form(data: bytes) -> Form:
    type, fields = _unpack(data)
    return Form(type, tuple([(name, kind) for name, kind in fields]))


def _write_listening(value: tuple[Standing, str]) -> bytes:
    return _pack([write_standing(value[0]), value[1]])


def _read_listening(data: bytes) -> tuple[Standing, str]:
    standing, since = _unpack(data)
    return read_standing(standing), since


def _write_letter(one: Letter) -> bytes:
    made_from = [write_statement(each) for each in one.made_from]
    return _pack([one.id, one.why, one.attempts, one.time, one.data, one.again, made_from])


def _read_letter(data: bytes) -> Letter:
    id, why, attempts, time, body, again, *more = _unpack(data)
    # One of format 1 does not say what it was made from.
    made_from = tuple([read_statement(each) for some in more for each in some])
    return Letter(id, why, attempts, time, body, again, made_from)


def _as_is(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"{show(value)} ({type(value).__name__})")
    return value


_NUMBER = _packed(int)
_FLAG = _packed(bool)
_PAIR = _packed(tuple, then=tuple)
_WANTED = _Form(_write_wanted, _read_wanted)
_OFFERED = _each(
    Advertisement,
    lambda one: _pack(Writer("an advertisement").advertisement(one)),
    lambda data: Reader("an advertisement").advertisement(_unpack(data)),
)

_FORMS: dict[str, _Form] = {
    "advertised": _OFFERED,
    "bundle": _each(Bundle, lambda one: one.payload, Bundle),
    "born": _NUMBER,
    "cut": _FLAG,
    "dead": _each(Letter, _write_letter, _read_letter),
    "deliver": _each(
        Deliver,
        lambda one: _pack(write_delivery(one)),
        lambda data: read_delivery(_unpack(data)),
    ),
    "evenly": _NUMBER,
    "env": _packed(*KIND_OF),
    "forgotten": _NUMBER,
    "form": _each(Form, _write_form, _read_form),
    "generation": _NUMBER,
    "had": _NUMBER,
    "handler": _packed(str),
    "home": _NUMBER,
    "kept": _Form(_as_is, lambda data: data),
    "labels": _Form(_write_labels, _read_labels),
    "latest": _NUMBER,
    "link": _Form(lambda role: _pack(Role(role).value), lambda data: Role(_unpack(data))),
    "listens": _Form(_write_listening, _read_listening),
    "mesh/home": _NUMBER,
    "mesh/links": _each(Neighbours, encode_control, decode_control),
    "mesh/offer": _OFFERED,
    "mesh/want": _WANTED,
    "offer": _OFFERED,
    "once": _Form(_as_is, lambda data: data),
    "out": _each(Parcel, encode_parcel, decode_parcel),
    "partial": _Form(_write_partial, lambda data: tuple(map(read_event, _unpack(data)))),
    "published": _PAIR,
    "resync": _PAIR,
    "row": _each(Event, write_event, read_event),
    "seen": _NUMBER,
    "sequence": _NUMBER,
    "short": _FLAG,
    "sub": _Form(_write_owned, _read_owned),
    "suspended": _FLAG,
    "table": _each(TableDeclaration, _write_declaration, _read_declaration),
    "want": _WANTED,
}
