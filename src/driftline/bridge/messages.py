"""What does a message of MQTT say as an event, and a notification as a message?

A CloudEvent is one, in both forms of the CloudEvents binding for MQTT 5: all of it in the payload
(`application/cloudevents+json`), or the envelope in user properties and the data in the payload.
Anything else is an event of the type that the configuration says: the names and values of a JSON
object, or one attribute `value`, a number, a truth, a text, or bytes if it is neither of these.
Every event has the topic that it came by as `mqtt_topic`, and `mqtt_retained` if it was kept there.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from driftline.errors import InvalidValue
from driftline.handlers.outgoing import Outgoing
from driftline.language.cloudevents import SPEC_VERSION, event_from
from driftline.model.event import Event
from driftline.model.value import show

TEXT_BYTES_MAX = 65_535
"""So long may a text be in MQTT, and so a topic."""
PACKET_MOST = 268_435_460
"""Bytes of the largest packet that MQTT knows; a broker may take less."""
STRUCTURED = "application/cloudevents+json"
JSON = "application/json"
TOPIC = "mqtt_topic"
"""The attribute that says by which topic an event came."""
_TRACING = ("traceparent", "tracestate")
_NAMES = re.compile(r"\{([^{}]*)\}")
_IN_A_TOPIC = "".join(chr(c) for c in range(33, 127) if chr(c) not in "%/+#{}") + " "
"""What a value may say in a topic as it is; the rest is escaped as in a URL."""


@dataclass(frozen=True, slots=True)
class Message:
    """What was published at an MQTT broker, or is to be."""

    topic: str
    payload: bytes
    content_type: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    retain: bool = False


def event_of(message: Message, type: str) -> Event:
    """The event that a message is; `InvalidValue` if it is none."""
    event = event_from(_envelope(message, type)).with_attribute(TOPIC, message.topic)
    return event.with_attribute("mqtt_retained", True) if message.retain else event


def _envelope(message: Message, type: str) -> dict[str, Any]:
    media = message.content_type.partition(";")[0].strip().lower()
    if media == STRUCTURED:
        return _said(message.payload)
    properties = dict(message.properties)
    if "specversion" in properties:
        return {**_of_properties(properties), **_data(message.payload, media)}
    traced = {name: value for name, value in message.properties if name in _TRACING}
    return {"specversion": SPEC_VERSION, "type": type, **traced, "data": _plain(message.payload)}


def _of_properties(properties: Mapping[str, str]) -> dict[str, str]:
    if properties.keys() & {"data", "data_base64"}:
        raise InvalidValue("message", "the data as its payload", "it among the user properties")
    return {name: value for name, value in properties.items() if name != "datacontenttype"}


def _data(payload: bytes, media: str) -> dict[str, Any]:
    """The data of a CloudEvent, as it stands in the payload."""
    if not payload:
        return {}
    if not media or media == JSON or media.endswith("+json"):
        return {"data": _json(payload)}
    return {"datacontenttype": media, **_raw(payload)}


def _raw(payload: bytes) -> dict[str, Any]:
    return {"data_base64": base64.b64encode(payload).decode()}


def _plain(payload: bytes) -> dict[str, Any]:
    """The attributes of a message that says nothing about itself."""
    try:
        found = msgspec.json.decode(payload)
    except (msgspec.DecodeError, ValueError, RecursionError):
        try:
            return {"value": payload.decode()}
        except UnicodeDecodeError:
            return {"value": {"@bytes": _raw(payload)["data_base64"]}}
    return found if isinstance(found, dict) else {"value": found}


def _said(payload: bytes) -> dict[str, Any]:
    found = _json(payload)
    if not isinstance(found, dict) or "specversion" not in found:
        raise InvalidValue("message", "a CloudEvent, as its content type says", show(found))
    return found


def _json(payload: bytes) -> Any:
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, ValueError, RecursionError) as problem:
        raise InvalidValue("message", "JSON, as its content type says", str(problem)) from None


def message_of(going: Outgoing, topic: str, form: str, retain: bool) -> Message:
    """What is published for a notification, and where.

    Its kind, its id and its trace are user properties too, for who does not read the payload.
    """
    event = going.event()
    data = event["data"]
    if form == "values":
        payload, media = msgspec.json.encode(data["values"]), JSON
    else:
        payload, media = going.body, STRUCTURED
    marks = (("kind", str(data["kind"])), ("id", str(event["id"])), *going.trace().items())
    return Message(topic_of(topic, data["values"]), payload, media, marks, retain)


def is_text(text: str) -> bool:
    """Can it be said in MQTT?"""
    try:
        return len(text.encode()) <= TEXT_BYTES_MAX and "\0" not in text
    except UnicodeEncodeError:
        return False


def why_never(message: Message, properties: bytes, most: int) -> str:
    """Why a broker that takes packets of so many bytes will never take it; "": it may.

    Who sends such a packet loses the connection, and would again each time it is sent once more.
    `properties` is what is said of it, as it is sent.
    """
    topic = message.topic
    if not topic:
        return "its topic is empty: nothing was told of what the topic names"
    if topic.startswith("$"):
        return "its topic begins with $, as those of the broker itself do"
    if not is_text(topic):
        return f"its topic is longer than {TEXT_BYTES_MAX:,} bytes, or no text"
    rest = 2 + len(topic.encode()) + 2 + len(properties) + len(message.payload)
    # How long the rest is stands before it, in 7 bits to a byte.
    size = 1 + max(1, -(-rest.bit_length() // 7)) + rest
    return f"it has {size:,} bytes, and the broker takes {most:,}" if size > most else ""


def names_in(topic: str) -> list[str]:
    """The attributes that a topic has places for."""
    found: list[str] = _NAMES.findall(topic)
    if "" in found or set("{}") & set(_NAMES.sub("", topic)):
        raise InvalidValue("out.topic", "places such as {room}", show(topic))
    return found


def topic_of(topic: str, values: Mapping[str, Any]) -> str:
    """A topic with what was told in its places; what was not told leaves a level empty.

    >>> topic_of("alerts/{room}/{n}", {"room": "attic/left", "n": 2})
    'alerts/attic%2Fleft/2'
    """

    def said(match: re.Match[str]) -> str:
        value = values.get(match[1])
        if value is None:
            return ""
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        return quote(text, safe=_IN_A_TOPIC)

    return _NAMES.sub(said, topic)
