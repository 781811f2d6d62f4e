"""What do a client and its broker say to one another, apart from events?

MessagePack, as arrays: the name of the message and its fields in the order given here. A request
has a number of the client's choice, which the reply repeats. A value is a string, integer, float,
boolean, bytes or nil; a time is ["@", microseconds since 1970].

A *handle* is what the client calls one of its subscriptions on this connection; that of a durable
one is also the channel on which its notices come.

    >>> sent = encode(Set(7, 1, {"limit": 9.5}))
    >>> decode_request(sent)
    Set(request=7, handle=1, params={'limit': 9.5}, within=10000000, rebase=False, durable='')
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, ValidationError

import driftline.errors
from driftline.errors import DriftlineError
from driftline.model.value import Value, admit, microseconds_of, time_of
from driftline.wire.by_name import ByName
from driftline.wire.fields import Epoch, Handle, Message, Name, Number, Params, Text
from driftline.wire.forms import Form
from driftline.wire.limits import ATTRIBUTES_MAX
from driftline.wire.refusal import refused
from driftline.wire.stream import PAYLOAD_BYTES_MAX

PROTOCOL = 1
HANDLES_MAX = 200
"""So many subscriptions can be named in one request."""
SECOND = 1_000_000
WITHIN = 10 * SECOND
WITHIN_MOST = 600 * SECOND
"""So long all brokers have at most to say that they know of something."""

# Greetings


class Hello(Message):
    """A client says who it is. `client` is a name it keeps when it connects again; `life` is
    higher each time it begins to count anew what it publishes.
    """

    client: Name
    token: str = ""
    life: Number = 0
    protocol: int = PROTOCOL


class Welcome(Message):
    """The broker says who it is, and what it allows."""

    broker: Name
    incarnation: Number
    protocol: int
    frame_bytes: Number
    subscriptions: Number
    now: Number
    attributes: Number = ATTRIBUTES_MAX


class Link(Message):
    """A broker says that this connection is a link, what the other end is to it, and its name."""

    broker: Name
    role: Name
    incarnation: Number
    advertised: bool
    stamped: bool
    token: str = ""


# Requests


class Subscribe(Message):
    """Tell me of what satisfies this text. Not before it is in effect everywhere, `within` so many
    microseconds, is it replied to; 0: at once. With a name it is durable: it goes on while nobody
    is connected, and is told from behind the number `after`.
    """

    request: Number
    handle: Handle
    text: Text
    params: Params = {}
    within: Number = WITHIN
    rows: bool = False
    quietly: bool = False
    durable: Name = ""
    after: Number = 0
    policy: dict[Name, Any] = {}
    epoch: Epoch = 0
    again: bool = False
    """I had it on a connection before: if another has moved it since `epoch`, that stands."""
    as_it_is: bool = False
    """Whatever it asks for by now stands; it must be there."""


class Set(Message):
    """Let all parameters have these values. With a name, those of the durable subscription that
    goes by it, whoever is attached to it: it stays where it is, and hears of it by `Moved`.
    """

    request: Number
    handle: Handle
    params: Params
    within: Number = WITHIN
    rebase: bool = False
    durable: Name = ""


class Restate(Message):
    """Ask for something else in its place, with values for parameters that are new in it."""

    request: Number
    handle: Handle
    text: Text
    params: Params = {}
    within: Number = WITHIN


class Cancel(Message):
    """End a subscription; one that is durable, for good."""

    request: Number
    handle: Handle


class Detach(Message):
    """Tell me no longer of a durable subscription; it goes on."""

    request: Number
    handle: Handle


class Told(Message):
    """Of a durable subscription I have had everything up to this number."""

    request: Number
    handle: Handle
    number: Number


class Advertise(Message):
    """I shall publish such events; and say whether anybody wants them, now and when it changes."""

    request: Number
    id: Name
    text: Text
    watch: bool = False


class Unadvertise(Message):
    """I shall not any more."""

    request: Number
    id: Name


class Interested(Message):
    """Does anybody want some of what this advertises?"""

    request: Number
    text: Text
    within: Number = WITHIN


class Declare(Message):
    """Events of this type are rows of a table, which is kept by this broker."""

    request: Number
    table: Name
    key: Name
    ticks: dict[Name, str] = {}


class Delete(Message):
    """Remove a row of a table, wherever it is kept."""

    request: Number
    table: Name
    key: Any


class Observe(Message):
    """A variable of the environment has this value now, nil: nobody knows."""

    request: Number
    name: Name
    value: Any


class Confirm(Message):
    """Reply when all I asked for before is in effect everywhere."""

    request: Number
    within: Number = WITHIN


class Explain(Message):
    """Why does an event, as a record without a form, match a subscription of mine, or not? With a
    name, the durable subscription that goes by it.
    """

    request: Number
    handle: Handle
    event: bytes
    durable: Name = ""


class Status(Message):
    """What is there, and how busy is it? With my subscriptions, if I ask for these, the first of
    them: or with some of them alone, or with those of my other connections and durable ones.
    """

    request: Number
    subscriptions: bool = False
    handle: Handle = 0
    others: bool = False
    handles: Annotated[list[Handle], Meta(max_length=HANDLES_MAX)] = []


class Metrics(Message):
    """How busy is it, as Prometheus reads that?"""

    request: Number


class Peer(Message):
    """Be linked to a broker at this address, which is this to you; no role: no longer."""

    request: Number
    broker: Name
    address: Name
    role: Name


Asked: TypeAlias = (
    Subscribe
    | Set
    | Restate
    | Cancel
    | Detach
    | Told
    | Advertise
    | Unadvertise
    | Interested
    | Declare
    | Delete
    | Observe
    | Confirm
    | Explain
    | Status
    | Metrics
    | Peer
    | ByName
)


# What a broker says


class Reply(Message):
    """What became of a request: what it gave, or the name of an error and its facts."""

    request: Number
    value: Any = None
    error: str = ""
    facts: list[Any] = []


class Notification(Message):
    """What a subscription is told that is no plain event. Events are records without forms.

    `number` is 0 unless it is durable; `more` says that what follows has the same. `trace` is that
    of the event which caused it, where that is not told.
    """

    handle: Handle
    number: Number
    kind: str
    values: dict[str, Any]
    time: int
    epoch: Number
    event: bytes = b""
    events: list[bytes] = []
    old: dict[str, Any] | None = None
    key: Any = None
    last: bool = False
    lost: Number = 0
    more: bool = False
    trace: Name = ""


class Detached(Message):
    """A durable subscription is told to another connection from now on."""

    handle: Handle
    why: str


class Moved(Message):
    """Another has moved the parameters of a durable subscription."""

    handle: Handle
    params: Params
    epoch: Number


class Interest(Message):
    """Somebody wants, or nobody wants any longer, what was advertised by this id."""

    id: Name
    interested: bool


class Goodbye(Message):
    """The connection ends: why, and is there a point in coming back, after so many microseconds?

    `error` is the name of an error whose only fact is the reason, if it is more than lost.
    """

    why: str
    again: bool = True
    after: Number = 0
    error: Name = ""


Said: TypeAlias = Notification | Detached | Moved | Interest

_encoder = msgspec.msgpack.Encoder()
_REQUEST: msgspec.msgpack.Decoder[Asked] = msgspec.msgpack.Decoder(Asked)
_SAID: msgspec.msgpack.Decoder[Said] = msgspec.msgpack.Decoder(Said)
_HELLO = msgspec.msgpack.Decoder(Hello)
_WELCOME = msgspec.msgpack.Decoder(Welcome)
_LINK = msgspec.msgpack.Decoder(Link)
_REPLY = msgspec.msgpack.Decoder(Reply)
_GOODBYE = msgspec.msgpack.Decoder(Goodbye)
_FORM = msgspec.msgpack.Decoder(
    tuple[
        Annotated[int, Meta(ge=0, le=0xFFFE)],
        str,
        Annotated[list[tuple[str, int]], Meta(max_length=ATTRIBUTES_MAX)],
    ]
)


def encode(message: Message) -> bytes:
    """The payload of a message."""
    payload = _encoder.encode(message)
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise driftline.errors.InvalidValue(
            type(message).__name__.lower(), f"at most {PAYLOAD_BYTES_MAX} bytes", f"{len(payload)}"
        )
    return payload


def _decode(decoder: msgspec.msgpack.Decoder[Any], payload: bytes, what: str) -> Any:
    try:
        return decoder.decode(payload)
    except (ValidationError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise refused(what, "a message that is known", str(error)) from None
    except RecursionError:
        raise refused(what, "arrays less deep in one another", "deeper ones") from None


def decode_request(payload: bytes) -> Asked:
    """A request of a client; `FrameRefused` for anything else."""
    asked: Asked = _decode(_REQUEST, payload, "request")
    return asked


def decode_said(payload: bytes) -> Said:
    """Something a broker says by itself; `FrameRefused` for anything else."""
    said: Said = _decode(_SAID, payload, "message")
    return said


def decode_hello(payload: bytes) -> Hello:
    """A client's greeting."""
    hello: Hello = _decode(_HELLO, payload, "hello")
    return hello


def decode_welcome(payload: bytes) -> Welcome:
    """A broker's greeting."""
    welcome: Welcome = _decode(_WELCOME, payload, "welcome")
    return welcome


def decode_link(payload: bytes) -> Link:
    """The greeting of a broker that wants a link."""
    link: Link = _decode(_LINK, payload, "link")
    return link


def decode_reply(payload: bytes) -> Reply:
    """A reply."""
    reply: Reply = _decode(_REPLY, payload, "reply")
    return reply


def decode_goodbye(payload: bytes) -> Goodbye:
    """A farewell."""
    goodbye: Goodbye = _decode(_GOODBYE, payload, "goodbye")
    return goodbye


# Forms


def encode_form(number: int, form: Form) -> bytes:
    """A form, and the number that it goes by on a connection."""
    return _encoder.encode((number, form.type, form.fields))


def decode_form(payload: bytes) -> tuple[int, Form]:
    """The inverse of `encode_form`."""
    number, type, fields = _decode(_FORM, payload, "form")
    return number, Form(type, tuple((name, kind) for name, kind in fields))


# Values and errors


def pack(value: object) -> object:
    """A value, or None, as it is said."""
    if isinstance(value, datetime):
        return ["@", microseconds_of(value)]
    if isinstance(value, tuple):
        return [pack(one) for one in value]
    return value


def unpack(said: object, where: str) -> Value | None:
    """The inverse of `pack`; `FrameRefused` for what is no value."""
    if said is None:
        return None
    try:
        if isinstance(said, list) and len(said) == 2 and said[0] == "@":
            return time_of(said[1])
        return admit(said, where)
    except (DriftlineError, OverflowError, TypeError, ValueError) as problem:
        raise refused(where, "a value", str(problem)) from None


def pack_all(values: dict[str, Value | None] | dict[str, Value]) -> dict[str, object]:
    """Named values as they are said."""
    return {name: pack(value) for name, value in values.items()}


def unpack_all(said: dict[str, Any], where: str) -> dict[str, Value | None]:
    """The inverse of `pack_all`."""
    return {name: unpack(value, f"{where} {name}") for name, value in said.items()}


def refusal(request: int, problem: DriftlineError) -> Reply:
    """The reply to a request that was refused."""
    facts = [list(one) if isinstance(one, tuple) else one for one in problem.args]
    return Reply(request, None, type(problem).__name__, facts)


def problem_of(error: str, facts: list[Any]) -> DriftlineError:
    """The error that somebody else has raised."""
    kind = getattr(driftline.errors, error, None)
    args = [tuple(one) if isinstance(one, list) else one for one in facts]
    if isinstance(kind, type) and issubclass(kind, DriftlineError):
        try:
            return kind(*args)
        except TypeError:
            pass
    return DriftlineError(f"{error}: {', '.join(map(str, args))}")
