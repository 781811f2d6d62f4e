"""Is what OpenAPI and AsyncAPI say whole: all that there is, and nothing that leads nowhere?"""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from driftline.gateway import talk
from driftline.gateway.asyncapi import Told, asyncapi
from driftline.gateway.openapi import openapi
from driftline.gateway.routes import ROUTES
from driftline.language.notified import notification_to
from driftline.model.event import Event
from driftline.model.notification import Notification, NotificationKind

DESCRIPTIONS = [openapi(False), openapi(True), asyncapi()]


def references(said: Any):
    if isinstance(said, dict):
        if isinstance(said.get("$ref"), str):
            yield said["$ref"]
        for one in said.values():
            yield from references(one)
    elif isinstance(said, list):
        for one in said:
            yield from references(one)


@pytest.mark.parametrize("said", DESCRIPTIONS, ids=["open", "closed", "async"])
def test_every_reference_leads_somewhere(said):
    json.dumps(said)
    found = set(references(said))
    assert found
    for one in found:
        at: Any = said
        for part in one.removeprefix("#/").split("/"):
            at = at[part]


def test_every_route_is_described_and_has_a_name_of_its_own():
    paths = openapi(True)["paths"]
    assert {(path, verb.upper()) for path, known in paths.items() for verb in known} == {
        (route.path, route.method) for route in ROUTES
    }
    names = [one["operationId"] for known in paths.values() for one in known.values()]
    assert len(names) == len(set(names))
    assert all(one["summary"] for known in paths.values() for one in known.values())


def test_only_a_closed_broker_asks_for_a_token():
    assert openapi(True)["security"] == [{"token": []}]
    assert openapi(False)["security"] == []


def test_every_message_of_a_client_is_described():
    sent = asyncapi()["channels"]["socket"]["messages"]
    assert set(sent) == {kind.__name__ for kind in talk.Said.__args__} | {Told.__name__}
    schemas = asyncapi()["components"]["schemas"]
    for kind in talk.Said.__args__:
        schema = schemas[kind.__name__]
        assert schema["properties"]["do"] == {"enum": [kind.__name__.lower()]}
        assert {"do", "id"} <= set(schema["required"])


def test_what_is_told_is_as_it_is_described():
    description = asyncapi()
    schema = {"$ref": "#/components/schemas/Told", "components": description["components"]}
    event = Event("quote", {"price": 9.5}, id="7", source="/feed", time=1)
    told = [
        Notification(NotificationKind.EVENT, {"price": 9.5}, 1, 0, event, number=7),
        Notification(NotificationKind.GAP, {}, 0, 3, lost=5),
        Notification(NotificationKind.PATTERN, {"price": 1}, 1, 0, event, (event, event)),
        Notification(NotificationKind.CHANGE, {"x": None}, 1, 0, old={"x": 1}, key="a", last=True),
        Notification(NotificationKind.SNAPSHOT, {"x": b"y"}, 1, 0, number=9, more=True),
    ]
    for one in told:
        jsonschema_rs.validate(schema, notification_to(one))
