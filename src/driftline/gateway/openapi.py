"""What does OpenAPI 3.1 say of what can be asked? Written from `routes` and `bodies`."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import Any

import msgspec

from driftline.gateway import bodies
from driftline.gateway.asked import JSON
from driftline.gateway.bodies import NAME, NAME_MAX
from driftline.gateway.problems import MEDIA as PROBLEM
from driftline.gateway.publishing import BATCH, LINES
from driftline.gateway.routes import ALWAYS, ROUTES, Route
from driftline.gateway.streams import MEDIA as STREAM

_BINARY = ("text/plain", "application/octet-stream")
"""Of all kinds of content that data may have whose event is in headers."""
_BINARY_MODE = """CloudEvents in each of their modes, or events written by hand. In the binary mode
headers `ce-…` are the envelope, extensions among them, and the body is the data, of any type of
content: JSON and what ends in +json is JSON, text/* and XML is a text, all else are bytes. What is
no ASCII in a header is UTF-8 with percents."""
_HEADERS = {
    "ce-specversion": "Binary mode: 1.0; with it the headers are the envelope",
    "ce-type": "Binary mode: the type of the event",
    "ce-id": "Binary mode: its id",
    "ce-source": "Binary mode: where it comes from",
    "ce-time": "Binary mode: when it happened",
    "ce-subject": "Binary mode: whom it is about",
    "traceparent": "The trace of the events that say none of their own (W3C Trace Context)",
    "tracestate": "What others say of that trace",
}
_REF = "#/components/schemas/{name}"


@lru_cache(maxsize=2)
def openapi(is_closed: bool) -> dict[str, Any]:
    """The whole description; of a broker that is closed, everything needs a token."""
    kinds = [one for route in ROUTES for one in (route.takes, route.gives, route.query)]
    structs = [one for one in dict.fromkeys(kinds) if _is_struct(one)]
    _, components = msgspec.json.schema_components([*structs, bodies.Problem], ref_template=_REF)
    for one in (bodies.Subscribing, bodies.Streaming):
        components[one.__name__]["oneOf"] = [{"required": ["sql"]}, {"required": ["filters"]}]
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Driftline",
            "version": "1",
            "description": "Publish/subscribe for interests that move: events in, "
            "subscriptions and their parameters, and streams of what is told.",
        },
        "paths": paths,
        "components": {
            "schemas": with_items(components),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}] if is_closed else [],
    }


def with_items(schema: Any) -> Any:
    """A schema whose arrays all say what is in them, as some who read it want: here, anything."""
    if isinstance(schema, list):
        return [with_items(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: with_items(one) for name, one in schema.items()}
    if found.get("type") == "array":
        found.setdefault("items", {})
    return found


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _schema(kind: Any) -> dict[str, Any]:
    if _is_struct(kind):
        return {"$ref": _REF.format(name=kind.__name__)}
    return {} if kind is Any else {"type": "string" if kind is str else "object"}


def _operation(route: Route, components: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": with_items([*_parameters(route, components)]),
        "responses": _responses(route),
    }
    if route.gives is bodies.Published:
        found["description"] = _BINARY_MODE
    if route.takes is not None:
        medias = [*route.media, *(_BINARY if route.gives is bodies.Published else ())]
        content = {media: {"schema": _taken(route, media)} for media in medias}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _taken(route: Route, media: str) -> dict[str, Any]:
    if route.takes is not Any:
        return _schema(route.takes)
    if media in _BINARY:
        return {"type": "string", "format": "binary"}
    if media == LINES:
        return {"type": "string"}
    several = {"type": "array", "items": {"type": "object"}}
    if media == BATCH:
        return several
    one = {"type": "object"}
    return {"anyOf": [one, several]} if route.gives is bodies.Published and media == JSON else one


def _parameters(route: Route, components: dict[str, Any]) -> Any:
    if "{name}" in route.path:
        schema = {"type": "string", "minLength": 1, "maxLength": NAME_MAX, "pattern": NAME}
        yield {"name": "name", "in": "path", "required": True, "schema": schema}
    if route.query is not None:
        known = components[route.query.__name__]
        for name, schema in known["properties"].items():
            # What is no text is JSON in the address.
            is_text = name in ("sql", "on_change", "after", "once")
            wanted: dict[str, Any] = {"schema": schema}
            if not is_text:
                wanted = {"content": {"application/json": wanted}}
            yield {"name": name, "in": "query", "required": False, **wanted}
    if route.gives is bodies.Published:
        for name, what in _HEADERS.items():
            said = {"description": what, "schema": {"type": "string"}}
            yield {"name": name, "in": "header", "required": False, **said}
    if route.streams and "{name}" in route.path:
        schema = {"type": "string", "pattern": bodies.EVENT_ID}
        yield {"name": "Last-Event-ID", "in": "header", "required": False, "schema": schema}


def _links(kept: Route) -> dict[str, Any]:
    """What can be done with what there is now."""
    others = [one for one in ROUTES if one.path.startswith(kept.path) and one is not kept]
    name = {"name": "$response.body#/name"}
    return {one.name: {"operationId": one.name, "parameters": name} for one in others}


def _responses(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status in route.status:
        said: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if route.streams:
            said["content"] = {STREAM: {"schema": {"type": "string"}}}
        elif route.gives is not None:
            said["content"] = {route.gives_media: {"schema": _schema(route.gives)}}
        if route.gives is bodies.Kept:
            said["links"] = _links(route)
        found[str(status)] = said
    problem = {PROBLEM: {"schema": _schema(bodies.Problem)}}
    for status in sorted({*ALWAYS, *route.problems}):
        found[str(status)] = {"description": HTTPStatus(status).phrase, "content": problem}
    return found
