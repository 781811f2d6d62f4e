"""How do CloudEvents 1.0 come in and go out, and what do their filters mean here?

The envelope maps by name: `type`, `id`, `source`, `time`, and the extension `entered` for the stamp
an event got where it entered the system; `traceparent` and `tracestate` are its trace, and what is
none of these is left out. The object under `data` gives the attributes; an object
inside it is flattened with dots, an array is refused. Other extension attributes (and `subject`)
become attributes `ce_<name>`, so nothing is lost and nothing collides. JSON has no time, bytes or
NaN: they are written `{"@time": …}`, `{"@bytes": …}` and `{"@float": …}`.

An object with neither `specversion` nor `data` is no CloudEvent but an event as people write it by
hand: the attributes stand beside `type`, or all under `attributes`.

Filters are those of the CloudEvents Subscriptions API: `exact`, `prefix`, `suffix`, `all`, `any`,
`not` and `sql`. They speak of the envelope, and there an evaluation error is false, also below
`not`; in Kleene's logic that is `coalesce(condition, FALSE)`.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Any

from driftline.errors import InvalidValue, LanguageError, LimitExceeded
from driftline.language.limits import FILTERS_MAX, LENGTH_MAX
from driftline.language.sql import parse_condition
from driftline.model.event import Event
from driftline.model.expression import FALSE, TRUE, Attribute, Coalesce, Expression, Literal
from driftline.model.like import LikePattern
from driftline.model.predicate import (
    And,
    Between,
    Comparison,
    In,
    IsNull,
    Like,
    Not,
    Or,
    conjunction,
)
from driftline.model.text import read_timestamp, timestamp
from driftline.model.trace import headers_of, trace_of
from driftline.model.value import Value, admit, microseconds_of, show, time_of

SPEC_VERSION = "1.0"
_TRACING = ("traceparent", "tracestate")
_ENVELOPE = ("specversion", "id", "source", "type", "time", "entered", *_TRACING)
_CONTEXT = (*_ENVELOPE, "data", "data_base64")
# The clocks of many publishers count nanoseconds; when it happened is kept to the microsecond.
_EXCESS_DIGITS = re.compile(r"(\.[0-9]{6})[0-9]+")
_DEPTH_MAX = 32
_ATTRIBUTES_MAX = 65_535
"""So many can be said from broker to broker."""
_NAMES_MAX = 1 << 22
"""Letters of all names together. An object's name is repeated in those of all that is in it, so a
short text could say names that no memory has room for.
"""
_CONDITIONS = (Comparison, Between, In, Like, IsNull, Not, And, Or)
"""The nodes whose value is a truth, never a number or a string."""


def event_from(envelope: object) -> Event:
    """The event in a JSON object: a CloudEvent, or an event written by hand.

    >>> event_from({"specversion": "1.0", "type": "quote", "id": "7", "data": {"price": 9.5}})
    Event('quote', {'price': 9.5}, id='7')
    >>> event_from({"type": "quote", "firm": "IBM", "price": 9.5})
    Event('quote', {'firm': 'IBM', 'price': 9.5})
    """
    if not isinstance(envelope, Mapping):
        raise InvalidValue("event", "a JSON object", show(envelope))
    if not envelope.keys() & {"specversion", "data", "data_base64"}:
        envelope = _with_data(envelope)
    version = envelope.get("specversion", SPEC_VERSION)
    if version != SPEC_VERSION:
        raise InvalidValue("specversion", repr(SPEC_VERSION), show(version))
    attributes: dict[str, Value] = {}
    letters = 0
    for name, value in chain(_data(envelope), _extensions(envelope)):
        letters += len(name)
        if letters > _NAMES_MAX:
            raise InvalidValue("event", f"names of at most {_NAMES_MAX} letters", "longer ones")
        if len(attributes) == _ATTRIBUTES_MAX:
            raise InvalidValue("event", f"at most {_ATTRIBUTES_MAX} attributes", "more")
        if name in attributes:
            raise InvalidValue(f"attribute {name}", "it once", "it twice")
        attributes[name] = value
    event_type = envelope.get("type")
    if not isinstance(event_type, str):
        raise InvalidValue(
            "type", "a string", "nothing" if event_type is None else show(event_type)
        )
    return Event(
        event_type,
        attributes,
        time=_time(_to_microseconds(envelope.get("time")), "time"),
        id=envelope.get("id"),
        source=envelope.get("source"),
        entered=_time(envelope.get("entered"), "entered"),
        trace=trace_of(*map(envelope.get, _TRACING)),
    )


def _with_data(written: Mapping[str, Any]) -> Mapping[str, Any]:
    """An event written by hand, as a CloudEvent has it."""
    envelope = {name: value for name, value in written.items() if name in _ENVELOPE}
    rest = {name: value for name, value in written.items() if name not in _ENVELOPE}
    inner = rest.get("attributes")
    alone = len(rest) == 1 and isinstance(inner, Mapping)
    return {**envelope, "data": inner if alone else rest}


def event_to(event: Event) -> dict[str, Any]:
    """The event as a CloudEvents JSON object; `event_from` gives it back.

    One without an id or a source is none, and does not say that it is.
    """
    envelope: dict[str, Any] = {"type": event.type}
    if event.id is not None and event.source is not None:
        envelope = {"specversion": SPEC_VERSION, **envelope}
    if event.id is not None:
        envelope["id"] = event.id
    if event.source is not None:
        envelope["source"] = event.source
    if event.time is not None:
        envelope["time"] = timestamp(time_of(event.time))
    if event.entered is not None:
        envelope["entered"] = timestamp(time_of(event.entered))
    envelope |= headers_of(event.trace)
    data = {}
    for name, value in event.attributes.items():
        extension = name.removeprefix("ce_")
        if extension != name and extension and extension not in _CONTEXT:
            envelope[extension] = value_to(value)
        else:
            data[name] = value_to(value)
    envelope["data"] = data
    return envelope


def value_from(value: object, where: str) -> Value:
    """One JSON value; `@time`, `@bytes` and `@float` objects stand for what JSON cannot say."""
    if isinstance(value, float | int | str):
        return admit(value, where)
    if isinstance(value, Mapping) and len(value) == 1:
        ((tag, inner),) = value.items()
        if tag == "@time":
            stamp = _time(inner, where)
            if stamp is not None:
                return time_of(stamp)
        if tag == "@bytes" and isinstance(inner, str):
            try:
                return base64.b64decode(inner, validate=True)
            except (binascii.Error, ValueError):
                raise InvalidValue(where, "base64", show(inner)) from None
        if tag == "@float" and inner in ("NaN", "Infinity", "-Infinity"):
            return float(str(inner))
    if isinstance(value, Mapping | list):
        raise InvalidValue(where, "a string, number or boolean", show(value))
    return admit(value, where)


def value_to(value: Value | None) -> object:
    """The JSON value that `value_from` reads back as the same."""
    if isinstance(value, datetime):
        return {"@time": timestamp(value)}
    if isinstance(value, bytes):
        return {"@bytes": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"@float": "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"}
    return value


def _data(envelope: Mapping[str, object]) -> Iterator[tuple[str, Value]]:
    data = envelope.get("data")
    if data is not None and envelope.get("data_base64") is not None:
        raise InvalidValue("event", "data or data_base64", "both")
    if envelope.get("data_base64") is not None:
        yield "data", value_from({"@bytes": envelope["data_base64"]}, "data_base64")
    elif isinstance(data, Mapping):
        yield from _flatten(data, "", 0)
    elif data is not None:
        yield "data", value_from(data, "data")


def _extensions(envelope: Mapping[str, object]) -> Iterator[tuple[str, Value]]:
    for name, value in envelope.items():
        # That its data is JSON need not be said: it is.
        json_data = name == "datacontenttype" and _media(value) == "application/json"
        if name not in _CONTEXT and value is not None and not json_data:
            yield f"ce_{name}", value_from(value, f"ce_{name}")


def _media(value: object) -> str:
    """A content type without its parameters."""
    return value.partition(";")[0].strip().lower() if isinstance(value, str) else ""


def _flatten(data: Mapping[str, object], prefix: str, depth: int) -> Iterator[tuple[str, Value]]:
    if depth > _DEPTH_MAX:
        raise InvalidValue(prefix, f"data at most {_DEPTH_MAX} objects deep", "deeper data")
    for name, value in data.items():
        path = f"{prefix}{name}"
        if value is None:
            continue
        is_tagged = (
            isinstance(value, Mapping) and len(value) == 1 and str(next(iter(value)))[:1] == "@"
        )
        if isinstance(value, Mapping) and value and not is_tagged:
            yield from _flatten(value, f"{path}.", depth + 1)
        else:
            yield path, value_from(value, f"attribute {path}")


def _to_microseconds(value: object) -> object:
    return _EXCESS_DIGITS.sub(r"\1", value) if isinstance(value, str) else value


def _time(value: object, where: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidValue(where, "a time as text", show(value))
    try:
        return microseconds_of(read_timestamp(value))
    except ValueError as error:
        raise InvalidValue(where, str(error), show(value)) from None


def condition_from(filters: object) -> Expression:
    """The condition that a list of CloudEvents filters stands for: all must hold.

    >>> filters = [{"prefix": {"type": "com.example."}}, {"not": {"exact": {"id": "7"}}}]
    >>> print(condition_from(filters))
    ce_type LIKE 'com.example.%' AND NOT coalesce(ce_id = '7', FALSE)
    """
    if not isinstance(filters, list | tuple):
        raise LanguageError("a list of CloudEvents filters", show(filters))
    _check_size(filters)
    return _all([_filter(one, False, 0) for one in filters])


def _check_size(filters: list[object] | tuple[object, ...]) -> None:
    """Refuse more than one text can say before any of it is read."""
    left: list[object] = [filters]
    strings = letters = 0
    while left:
        one = left.pop()
        if isinstance(one, str):
            strings += 1
            letters += len(one)
            if strings > FILTERS_MAX:
                raise LimitExceeded(f"at most {FILTERS_MAX} filters", "more")
            if letters > LENGTH_MAX:
                raise LimitExceeded(f"at most {LENGTH_MAX} characters in filters", "more")
        elif isinstance(one, Mapping):
            left.extend(one.values())
        elif isinstance(one, list | tuple):
            left.extend(one)


def _filter(one: object, negated: bool, depth: int) -> Expression:
    if not isinstance(one, Mapping) or len(one) != 1:
        raise LanguageError("a CloudEvents filter with one dialect", show(one))
    if depth > _DEPTH_MAX:
        raise LanguageError(f"filters at most {_DEPTH_MAX} deep", "a deeper one")
    ((dialect, body),) = one.items()
    if dialect in ("all", "any"):
        if not isinstance(body, list | tuple) or not body:
            raise LanguageError(f"a list of filters for {dialect}", show(body))
        parts = [_filter(inner, negated, depth + 1) for inner in body]
        return _all(parts) if dialect == "all" or len(parts) == 1 else Or(tuple(parts))
    if dialect == "not":
        return Not(_filter(body, True, depth + 1))
    if dialect == "sql":
        if not isinstance(body, str):
            raise LanguageError("a condition in SQL for sql", show(body))
        return _or_false(_of_envelope(parse_condition(body)), negated)
    if dialect in ("exact", "prefix", "suffix"):
        if not isinstance(body, Mapping) or not body:
            raise LanguageError(f"attributes and strings for {dialect}", show(body))
        parts = [_or_false(_leaf(dialect, name, text), negated) for name, text in body.items()]
        return _all(parts)
    raise LanguageError("exact, prefix, suffix, all, any, not or sql", show(dialect))


def _leaf(dialect: str, name: object, text: object) -> Expression:
    if not isinstance(name, str) or not isinstance(text, str) or not name or not text:
        raise LanguageError(
            f"an attribute and a string that is not empty for {dialect}", show(text)
        )
    attribute = Attribute("ce_" + str(admit(name, "name")))
    admit(text, "text")
    if dialect == "exact":
        return Comparison("=", attribute, Literal(text))
    escaped = "".join(f"\\{c}" if c in "%_\\" else c for c in text)
    return Like(attribute, LikePattern(f"{escaped}%" if dialect == "prefix" else f"%{escaped}"))


def _of_envelope(node: Expression) -> Expression:
    """CloudEvents SQL names the envelope's attributes without a prefix."""
    if isinstance(node, Attribute):
        return node if node.name.startswith("ce_") else Attribute(f"ce_{node.name}")
    return node.rebuilt(tuple(_of_envelope(child) for child in node.children()))


def _or_false(condition: Expression, negated: bool) -> Expression:
    if not negated:
        return condition
    if not isinstance(condition, _CONDITIONS):
        # A value that is no boolean is an error too; beside TRUE it is unknown, as it should be.
        condition = And((condition, TRUE))
    return Coalesce((condition, FALSE))


def _all(parts: list[Expression]) -> Expression:
    return conjunction(tuple(parts))
