"""How is a notification said in JSON, and as a CloudEvent?

>>> from driftline.model.notification import NotificationKind
>>> told = Notification(NotificationKind.EVENT, {"price": 9.5}, epoch=2, number=7)
>>> notification_to(told)
{'kind': 'event', 'values': {'price': 9.5}, 'epoch': 2, 'number': '7'}
>>> notification_event(told, "alerts", "/broker/alice")["id"]
'alerts-7'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from driftline.language.cloudevents import SPEC_VERSION, event_to, value_to
from driftline.model.notification import Notification
from driftline.model.text import timestamp
from driftline.model.trace import headers_of
from driftline.model.value import Value, time_of

_ALWAYS = ("kind", "values", "epoch")
_SEGMENT = "!$&'()*+,;=:@"
"""What may stand in a segment of a path as it is, beside letters, digits and -._~ [RFC 3986]."""


def notification_to(told: Notification) -> dict[str, Any]:
    """What was told, as JSON; what is empty is left out.

    `type`, `id` and `source` are those of the event that it tells of: (source, id) is what the same
    event is known by, wherever and however often it comes.
    """
    event, key = told.event, told.key
    found: dict[str, Any] = {
        "kind": str(told.kind),
        "type": None if event is None else event.type,
        "id": None if event is None else event.id,
        "source": None if event is None else event.source,
        "key": [value_to(one) for one in key] if isinstance(key, tuple) else value_to(key),
        "values": _values(told.values),
        "old": None if told.old is None else _values(told.old),
        "events": [event_to(one) for one in told.events],
        "time": told.time,
        "epoch": told.epoch,
        "last": told.last,
        "lost": told.lost,
        "repeated": told.repeated,
        # A text: it is more than readers of JSON that know only floats can tell apart.
        "number": str(told.number) if told.number else None,
        "more": told.more,
        **headers_of(told.trace),
    }
    # A key may be 0 or an empty text, and an old row may have had no columns.
    told_apart = {"key": key is not None, "old": told.old is not None}
    return {
        name: value
        for name, value in found.items()
        if name in _ALWAYS or told_apart.get(name, bool(value))
    }


def source_of(*names: str) -> str:
    """Where CloudEvents of ours come from: a URI-reference, whatever brokers and people are called.

    >>> source_of("b", "alice"), source_of("west 1", "https://id.example.org/é")
    ('/b/alice', '/west%201/https:%2F%2Fid.example.org%2F%C3%A9')
    """
    return "".join(f"/{quote(name, safe=_SEGMENT)}" for name in names)


def notification_event(told: Notification, subscription: str, source: str) -> dict[str, Any]:
    """What a durable subscription was told, as a CloudEvent of its own.

    The same notification has the same id, however often it is sent.
    """
    envelope: dict[str, Any] = {
        "specversion": SPEC_VERSION,
        "id": f"{subscription}-{told.number}",
        "source": source,
        "type": f"driftline.{told.kind}",
        "subject": subscription,
        "datacontenttype": "application/json",
    }
    if told.time:
        envelope["time"] = timestamp(time_of(told.time))
    envelope |= headers_of(told.trace)
    return {**envelope, "data": notification_to(told)}


def _values(values: Mapping[str, Value | None]) -> dict[str, Any]:
    return {name: value_to(value) for name, value in values.items()}
