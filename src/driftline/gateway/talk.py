"""What is said on a WebSocket? Each message is one JSON object.

A client says what it does, `{"do": "subscribe", "id": "a", "sql": …}`; the `id` is a name of its
choice for what it asks for. It is answered by `{"did": "subscribe", "id": "a", …}` or by
`{"failed": "subscribe", "id": "a", "problem": {…}}`, and told `{"told": "a", "kind": …}`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from driftline.gateway.bodies import NAME, NAME_MAX, Number, Params, Seconds, Streaming

Id: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=200, description="What the client calls it")
]


class _Said(Struct, tag_field="do", tag=str.lower, forbid_unknown_fields=True):
    """Something that a client does."""


class Subscribe(Streaming, tag_field="do", tag="subscribe", kw_only=True):
    """Be told: of what a text asks for, and with a name durably."""

    id: Id
    name: Annotated[
        str,
        Meta(
            max_length=NAME_MAX,
            pattern=NAME.replace("+$", "*$"),
            description="Of a durable subscription; empty: it is none",
        ),
    ] = ""
    after: Number = "0"


class Attach(_Said):
    """Be told of a durable subscription as it stands, behind a number."""

    id: Id
    name: Annotated[str, Meta(min_length=1, max_length=NAME_MAX, pattern=NAME)]
    after: Number = "0"


class Set(_Said):
    """Set all parameters of a subscription at once."""

    id: Id
    params: Params
    within: Seconds = 10.0


class Acknowledge(_Said):
    """Everything up to a number was dealt with."""

    id: Id
    number: Number


class Detach(_Said):
    """Be told of a durable subscription no longer; it goes on."""

    id: Id


class Cancel(_Said):
    """End a subscription or an advertisement; a durable one for good."""

    id: Id


class Publish(_Said):
    """Publish events; answered when they are acknowledged."""

    id: Id
    events: Annotated[list[Any], Meta(max_length=10_000)]
    once: bool = False


class Advertise(_Said):
    """Say what will be published; told `{"interest": id, "interested": …}` as that changes."""

    id: Id
    advertisement: Annotated[str, Meta(max_length=1 << 20)]


Said: TypeAlias = Subscribe | Attach | Set | Acknowledge | Detach | Cancel | Publish | Advertise
Verb: TypeAlias = Literal[
    "subscribe", "attach", "set", "acknowledge", "detach", "cancel", "publish", "advertise"
]
"""What is answered says what was done by these."""
