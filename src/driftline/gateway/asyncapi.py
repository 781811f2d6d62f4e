"""What does AsyncAPI 3.0 say of what is told, on streams and on WebSockets? Written from `talk`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from driftline.gateway import bodies, talk
from driftline.gateway.visitors import PROTOCOL
from driftline.model.notification import NotificationKind

_REF = "#/components/schemas/{name}"


class Told(msgspec.Struct):
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


@lru_cache(maxsize=1)
def asyncapi() -> dict[str, Any]:
    """The whole description."""
    said = talk.Said.__args__
    _, components = msgspec.json.schema_components([*said, Told, bodies.Problem], ref_template=_REF)
    sent = {kind.__name__: _message(kind) for kind in said}
    told = {"Told": _message(Told)}
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Driftline", "version": "1", "description": talk.__doc__},
        "defaultContentType": "application/json",
        "channels": {
            "socket": {
                "address": "/v1/socket",
                "description": f"A WebSocket that speaks {PROTOCOL}.",
                "messages": {**sent, **told},
            },
            "stream": {
                "address": "/v1/stream",
                "description": "Server-Sent Events: the kind is the event's name, the "
                "notification its data; of a durable subscription the number is its id.",
                "messages": told,
            },
        },
        "operations": {
            "say": {
                "action": "receive",
                "channel": {"$ref": "#/channels/socket"},
                "messages": [{"$ref": f"#/channels/socket/messages/{name}"} for name in sent],
            },
            "tell": {
                "action": "send",
                "channel": {"$ref": "#/channels/socket"},
                "messages": [{"$ref": "#/channels/socket/messages/Told"}],
            },
            "stream": {
                "action": "send",
                "channel": {"$ref": "#/channels/stream"},
                "messages": [{"$ref": "#/channels/stream/messages/Told"}],
            },
        },
        "components": {"schemas": components},
    }


def _message(kind: type[Any]) -> dict[str, Any]:
    return {
        "name": kind.__name__.lower(),
        "summary": (kind.__doc__ or "").strip().partition("\n")[0],
        "payload": {"$ref": _REF.format(name=kind.__name__)},
    }
