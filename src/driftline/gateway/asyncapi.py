"""What does AsyncAPI 3.0 say of what is told, on streams and on WebSockets? Written from `talk`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from driftline.gateway import bodies, talk
from driftline.gateway.openapi import with_items
from driftline.gateway.visitors import PROTOCOL
from driftline.model.notification import NotificationKind

_REF = "#/components/schemas/{name}"


class Told(msgspec.Struct, forbid_unknown_fields=True):
    """A notification: what a subscription was told."""

    kind: NotificationKind
    values: dict[str, Any]
    epoch: int
    type: str | None = None
    id: str | None = None
    source: str | None = None
    key: Any = None
    old: dict[str, Any] | None = None
    events: list[dict[str, Any]] = []
    time: int = 0
    last: bool = False
    lost: int = 0
    repeated: bool = False
    number: str | None = None
    more: bool = False
    traceparent: str | None = None
    tracestate: str | None = None


class Tells(Told, kw_only=True):
    """A notification on a WebSocket, where `told` says of which subscription."""

    told: talk.Id


class Did(msgspec.Struct, forbid_unknown_fields=True):
    """What was asked for is done, and what came of it."""

    did: talk.Verb
    id: talk.Id
    epoch: int | UnsetType = UNSET
    resumed: bool | UnsetType = UNSET
    suspended: bool | UnsetType = UNSET
    silent: list[str] | UnsetType = UNSET
    published: int | UnsetType = UNSET
    refused: list[bodies.Refusal] | UnsetType = UNSET
    left_off: int | UnsetType = UNSET
    interested: bool | UnsetType = UNSET


class Failed(msgspec.Struct, forbid_unknown_fields=True):
    """What was asked for is not done; null: what that was could not be read."""

    failed: talk.Verb | None
    problem: bodies.Problem
    id: talk.Id | UnsetType = UNSET


class Ended(msgspec.Struct, forbid_unknown_fields=True):
    """A subscription is told no more."""

    ended: talk.Id
    problem: bodies.Problem


class Interest(msgspec.Struct, forbid_unknown_fields=True):
    """Whether anybody wants what was advertised has changed."""

    interest: talk.Id
    interested: bool


class Partial(msgspec.Struct, forbid_unknown_fields=True):
    """These brokers have not said yet that they know of the subscription."""

    silent: list[str]


class Suspended(msgspec.Struct, forbid_unknown_fields=True):
    """Nothing is told until it is resumed; all is kept."""

    suspended: bool


SOCKET = (Tells, Did, Failed, Ended, Interest)
"""What comes on a WebSocket."""
_KINDS = ", ".join(str(kind) for kind in NotificationKind)
_EVENTS = f"""Server-Sent Events. The event's name says which message its data is: {_KINDS} are
notifications, partial, suspended and end are what they say; end is the last. Lines that
begin with a colon say only that it is still there."""


@lru_cache(maxsize=1)
def asyncapi() -> dict[str, Any]:
    """The whole description."""
    said = talk.Said.__args__
    kinds = [*said, *SOCKET, Told, Partial, Suspended, bodies.Problem]
    _, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    sent = {kind.__name__: _message(kind) for kind in said}
    came = {kind.__name__: _message(kind) for kind in SOCKET}
    events = {kind.__name__: _message(kind) for kind in (Told, Partial)}
    events["End"] = {**_message(bodies.Problem), "name": "end", "summary": "Why it ends."}
    durable = {**events, "Suspended": _message(Suspended)}
    name = {"description": "Of the durable subscription, percent-encoded"}
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Driftline", "version": "1", "description": talk.__doc__},
        "defaultContentType": "application/json",
        "channels": {
            "socket": {
                "address": "/v1/socket",
                "description": f"A WebSocket that speaks {PROTOCOL}.",
                "messages": {**sent, **came},
            },
            "stream": {
                "address": "/v1/stream",
                "description": _EVENTS,
                "messages": events,
            },
            "durable": {
                "address": "/v1/subscriptions/{name}/stream",
                "description": f"{_EVENTS} What is told whole has an id, to go on behind.",
                "parameters": {"name": name},
                "messages": durable,
            },
        },
        "operations": {
            "say": _operation("receive", "socket", sent),
            "tell": _operation("send", "socket", came),
            "stream": _operation("send", "stream", events),
            "durable": _operation("send", "durable", durable),
        },
        "components": {"schemas": with_items(components)},
    }


def _operation(action: str, channel: str, messages: dict[str, Any]) -> dict[str, Any]:
    at = f"#/channels/{channel}"
    return {
        "action": action,
        "channel": {"$ref": at},
        "messages": [{"$ref": f"{at}/messages/{name}"} for name in messages],
    }


def _message(kind: type[Any]) -> dict[str, Any]:
    return {
        "name": kind.__name__.lower(),
        "summary": (kind.__doc__ or "").strip().partition("\n")[0],
        "payload": {"$ref": _REF.format(name=kind.__name__)},
    }
