"""What must schemathesis know so that not everything is refused? Texts, names, and parameters."""

from __future__ import annotations

import zlib
from typing import Any

import schemathesis
from hypothesis import strategies as st
from schemathesis import openapi

from driftline.errors import DriftlineError
from driftline.language.sql import parse
from driftline.testing import strategies

TEXTS = (
    "SELECT * FROM quote",
    "SELECT * FROM quote WHERE price < :limit",
    "SELECT MIN(price) FROM quote WHERE price BETWEEN :low AND :high",
    "SELECT * FROM quote WHERE moved(price, by => 1)",
    "SELECT * FROM quote THEN SELECT * FROM quote WITHIN 60",
)

openapi.format("driftline-sql", st.sampled_from(TEXTS) | strategies.statements().map(str))


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """Give every second text the parameters that it has."""
    if not isinstance(body, dict) or not isinstance(body.get("sql"), str):
        return body
    if zlib.crc32(body["sql"].encode("utf-8", "replace")) % 2:
        return body
    try:
        names = parse(body["sql"]).variables().parameters
    except DriftlineError:
        return body
    sound = {"sql": body["sql"], "params": dict.fromkeys(sorted(names), 10)}
    return sound


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: Any) -> Any:
    """Let some of those who speak of a subscription speak of the same."""
    if not isinstance(path_parameters, dict) or not isinstance(path_parameters.get("name"), str):
        return path_parameters
    name = path_parameters["name"]
    if zlib.crc32(name.encode("utf-8", "replace")) % 2:
        return path_parameters
    return {**path_parameters, "name": f"s{len(name) % 3}"}


@schemathesis.hook
def map_headers(context: Any, headers: Any) -> Any:
    """Let most events be said in the body: what headers say of them at random is refused."""
    if not isinstance(headers, dict):
        return headers
    said = {name: text for name, text in headers.items() if str(name).lower().startswith("ce-")}
    if not zlib.crc32(repr(sorted(said.items())).encode("utf-8", "replace")) % 4:
        return headers
    return {name: text for name, text in headers.items() if name not in said}
