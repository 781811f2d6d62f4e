"""Is what OpenAPI and AsyncAPI say whole: all that there is, and nothing that leads nowhere?"""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from driftline.gateway import talk
from driftline.gateway.asyncapi import SOCKET, asyncapi
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
    kinds = [*talk.Said.__args__, *SOCKET]
    assert set(sent) == {kind.__name__ for kind in kinds}
    schemas = asyncapi()["components"]["schemas"]
    for kind in talk.Said.__args__:
        schema = schemas[kind.__name__]
        assert kind.__name__.lower() in talk.Verb.__args__
        assert schema["properties"]["do"] == {"enum": [kind.__name__.lower()]}
        assert {"do", "id"} <= set(schema["required"])


def test_what_is_told_is_as_it_is_described():
    description = asyncapi()
    schema = {"$ref": "#/components/schemas/Told", "components": description["components"]}
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    event = Event("quote", {"price": 9.5}, id="7", source="/feed", time=1, trace=trace)
    told = [
        Notification(NotificationKind.EVENT, {"price": 9.5}, 1, 0, event, number=7),
        Notification(NotificationKind.GAP, {}, 0, 3, lost=5),
        Notification(NotificationKind.PATTERN, {"price": 1}, 1, 0, event, (event, event)),
        Notification(NotificationKind.CHANGE, {"x": None}, 1, 0, old={"x": 1}, key="a", last=True),
        Notification(NotificationKind.SNAPSHOT, {"x": b"y"}, 1, 0, number=9, more=True),
    ]
    for one in told:
        jsonschema_rs.validate(schema, notification_to(one))


def test_every_array_says_what_is_in_it():
    def arrays(said: Any):
        if isinstance(said, dict):
            if said.get("type") == "array":
                yield said
            for one in said.values():
                yield from arrays(one)
        elif isinstance(said, list):
            for one in said:
                yield from arrays(one)

    for one in DESCRIPTIONS:
        found = [*arrays(one)]
        assert found
        assert all("items" in array for array in found)


def test_the_ways_in_which_an_event_may_be_said_are_described():
    said = openapi(True)["paths"]["/v1/events"]["post"]
    headers = {one["name"] for one in said["parameters"] if one["in"] == "header"}
    assert {"ce-specversion", "ce-type", "ce-id", "ce-source", "traceparent"} <= headers
    assert {"application/json", "text/plain"} <= said["requestBody"]["content"].keys()
    assert "binary mode" in said["description"]


def test_what_never_comes_is_not_described():
    paths = openapi(True)["paths"]
    for path, known in paths.items():
        for said in known.values():
            assert "421" in said["responses"]
            if path.endswith("stream"):
                assert not said["responses"].keys() & {"410", "504"}
    # What can only be said when it has begun is an event.
    channels, said = asyncapi()["channels"], {"Told", "Partial", "End"}
    assert set(channels["stream"]["messages"]) == said
    assert set(channels["durable"]["messages"]) == said | {"Suspended"}


def test_limits_are_said_where_they_are():
    schemas = openapi(True)["components"]["schemas"]
    assert schemas["Parameters"]["properties"]["params"]["propertyNames"] == {"maxLength": 16383}
    assert schemas["Declared"]["properties"]["ticks"]["propertyNames"] == {"maxLength": 16383}
    assert schemas["AfterLetter"]["properties"]["after"]["maxLength"] == 200
    (ids, _) = schemas["Which"]["properties"]["ids"]["anyOf"]
    assert (ids["maxItems"], ids["items"]["maxLength"]) == (10_000, 200)
