"""What is a message as an event, and where does a notification go?"""

from __future__ import annotations

import json

import pytest

import driftline as dl
from driftline.bridge.messages import (
    JSON,
    PACKET_MOST,
    STRUCTURED,
    Message,
    event_of,
    message_of,
    topic_of,
    why_never,
)
from driftline.errors import InvalidValue
from driftline.handlers.outgoing import Incoming
from driftline.model.notification import Notification, NotificationKind

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def event(payload: bytes | str, media: str = "", retain: bool = False, **said: str) -> dl.Event:
    raw = payload.encode() if isinstance(payload, str) else payload
    return event_of(Message("rooms/attic", raw, media, tuple(said.items()), retain), "reading")


@pytest.mark.parametrize(
    ("payload", "attributes"),
    [
        ('{"value": 21.5, "unit": "C"}', {"value": 21.5, "unit": "C"}),
        ('{"type": "indoor", "id": 7, "time": 3}', {"type": "indoor", "id": 7, "time": 3}),
        ('{"at": {"x": 1, "y": 2}}', {"at.x": 1, "at.y": 2}),
        ("21.5", {"value": 21.5}),
        ("true", {"value": True}),
        ('"warm"', {"value": "warm"}),
        ("warm", {"value": "warm"}),
        ("NaN", {"value": "NaN"}),
        ("", {"value": ""}),
        (b"\xff\x00", {"value": b"\xff\x00"}),
        ("9007199254740993", {"value": 9007199254740993}),
    ],
)
def test_a_message_that_says_nothing_about_itself(payload, attributes):
    found = event(payload)
    assert (found.type, found.id, found.source) == ("reading", None, None)
    assert dict(found.attributes) == {**attributes, "mqtt_topic": "rooms/attic"}


@pytest.mark.parametrize("payload", ["[1, 2]", "null", '{"values": [1]}', "[" * 5000, "1" * 400])
def test_what_no_event_can_say_is_refused_or_a_text(payload):
    try:
        found = event(payload)
    except InvalidValue:
        return
    assert found.attributes.get("value", payload) == payload


def test_a_cloud_event_in_the_payload():
    said = {"specversion": "1.0", "type": "quote", "id": "7", "source": "/s", "data": {"price": 9}}
    found = event(json.dumps(said), f"{STRUCTURED}; charset=utf-8", retain=True)
    assert (found.type, found.id, found.source) == ("quote", "7", "/s")
    assert dict(found.attributes) == {
        "price": 9,
        "mqtt_topic": "rooms/attic",
        "mqtt_retained": True,
    }


@pytest.mark.parametrize("payload", ["", "[]", "{}", '{"type": "quote"}', '{"specversion": "2"}'])
def test_what_says_that_it_is_a_cloud_event_must_be_one(payload):
    with pytest.raises(InvalidValue):
        event(payload, STRUCTURED)


def test_a_cloud_event_whose_envelope_is_in_user_properties():
    said = {"specversion": "1.0", "type": "quote", "id": "7", "source": "/s", "subject": "IBM"}
    found = event('{"price": 9}', JSON, **said, traceparent=TRACE)
    assert (found.type, found.id, found.source, found.trace) == ("quote", "7", "/s", TRACE)
    assert found.attributes["ce_subject"] == "IBM"
    assert found.attributes["price"] == 9
    raw = event(b"\xff", "image/png", **said)
    assert raw.attributes["data"] == b"\xff"
    assert raw.attributes["ce_datacontenttype"] == "image/png"
    with pytest.raises(InvalidValue):
        event("{", JSON, **said)
    with pytest.raises(InvalidValue):
        event("{}", JSON, **said, data="x")


def test_a_trace_comes_along():
    assert event("1", traceparent=TRACE).trace == TRACE


def test_where_something_goes_is_what_was_told():
    values = {"room": "a/b+c#d%", "n": 2, "open": True}
    assert topic_of("x/{room}/{n}/{open}/{nothing}/y", values) == "x/a%2Fb%2Bc%23d%25/2/true//y"


@pytest.mark.parametrize("form", ["cloudevent", "values"])
def test_a_trace_goes_out_beside_the_payload_in_every_form(form):
    values = {"room": "attic"}
    for trace, said in (
        (f"{TRACE} vendor=7", (("traceparent", TRACE), ("tracestate", "vendor=7"))),
        (TRACE, (("traceparent", TRACE),)),
        (None, ()),
    ):
        told = Notification(NotificationKind.EVENT, values, number=5, trace=trace)
        (going,) = Incoming("hot", "/b").feed(told)
        found = message_of(going, "alerts", form, False)
        assert found.properties == (("kind", "event"), ("id", "hot-5"), *said)
        # Whoever bridges it back gets it again.
        if form == "values":
            assert event(found.payload, found.content_type, **dict(found.properties)).trace == trace


@pytest.mark.parametrize("topic", ["x", "x/$", "é" * 32_767, "/"])
def test_a_topic_that_may_be_taken(topic):
    assert why_never(Message(topic, b""), b"\0", PACKET_MOST) == ""


@pytest.mark.parametrize("topic", ["", "$", "$SYS/x", "x" * 65_536, "é" * 32_768, "a\0b", "\ud800"])
def test_a_topic_that_no_broker_takes(topic):
    assert "its topic" in why_never(Message(topic, b""), b"\0", PACKET_MOST)


def test_a_notification_as_a_cloud_event_and_as_values():
    told = Notification(NotificationKind.EVENT, {"room": "attic", "value": 31}, number=5)
    (going,) = Incoming("hot", "/b").feed(told)
    whole = message_of(going, "alerts/{room}", "cloudevent", False)
    assert (whole.topic, whole.content_type) == ("alerts/attic", STRUCTURED)
    assert json.loads(whole.payload)["data"]["values"] == {"room": "attic", "value": 31}
    assert whole.properties == (("kind", "event"), ("id", "hot-5"))
    plain = message_of(going, "alerts/{room}", "values", True)
    assert (plain.content_type, plain.retain) == (JSON, True)
    assert json.loads(plain.payload) == {"room": "attic", "value": 31}
