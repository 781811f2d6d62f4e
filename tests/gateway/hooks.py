"""What must schemathesis know so that not everything is refused? Texts, names, and parameters."""

from __future__ import annotations

import zlib
from typing import Any

import schemathesis
from hypothesis import strategies as st
from schemathesis import GenerationMode, openapi
from schemathesis.core.parameters import ParameterLocation

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
def map_case(context: Any, case: schemathesis.Case) -> schemathesis.Case:
    """Mend what fits the description. What does not is left alone: it has to be refused."""
    if _fits(case, ParameterLocation.BODY):
        case.body = _with_parameters(case.body)
    if _fits(case, ParameterLocation.PATH):
        case.path_parameters = _of_few(case.path_parameters)
    if _fits(case, ParameterLocation.HEADER):
        case.headers = _said_in_the_body(case.headers)
    return case


def _fits(case: schemathesis.Case, where: ParameterLocation) -> bool:
    known = None if case.meta is None else case.meta.components.get(where)
    return known is not None and known.mode is GenerationMode.POSITIVE


def _with_parameters(body: Any) -> Any:
    """Give every second text the parameters that it has."""
    if not isinstance(body, dict) or not isinstance(body.get("sql"), str):
        return body
    if zlib.crc32(body["sql"].encode("utf-8", "replace")) % 2:
        return body
    try:
        names = parse(body["sql"]).variables().parameters
    except DriftlineError:
        return body
    return {"sql": body["sql"], "params": dict.fromkeys(sorted(names), 10)}


def _of_few(path_parameters: Any) -> Any:
    """Let some of those who speak of a subscription speak of the same."""
    if not isinstance(path_parameters, dict) or not isinstance(path_parameters.get("name"), str):
        return path_parameters
    name = path_parameters["name"]
    if zlib.crc32(name.encode("utf-8", "replace")) % 2:
        return path_parameters
    return {**path_parameters, "name": f"s{len(name) % 3}"}


def _said_in_the_body(headers: Any) -> Any:
    """Let most events be said in the body: what headers say of them at random is refused."""
    said = {name: text for name, text in headers.items() if str(name).lower().startswith("ce-")}
    if not zlib.crc32(repr(sorted(said.items())).encode("utf-8", "replace")) % 4:
        return headers
    for name in said:
        del headers[name]
    return headers
