"""How do events come in over HTTP?

As CloudEvents, one (`application/cloudevents+json`) or several (`…-batch+json`), or with the
envelope in headers `ce-…`; or as people write them by hand (`application/json`), one or several.
Those who publish several are told of each that was refused; the others have been published.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from starlette.responses import Response

from driftline.client.client import Client
from driftline.errors import DriftlineError
from driftline.gateway.asked import JSON, Asked, answer, said
from driftline.gateway.bodies import Published, Refusal
from driftline.gateway.problems import Refused, problem_of
from driftline.language.cloudevents import SPEC_VERSION, event_from
from driftline.model.event import Event
from driftline.model.trace import trace_of
from driftline.model.value import show

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
LINES = "application/x-ndjson"
MEDIA = (JSON, STRUCTURED, BATCH, LINES)
EVENTS_MOST = 100_000
REFUSALS_MOST = 1_000
ACKNOWLEDGED = 60.0
"""So many seconds the broker has to acknowledge what is published."""
_BREATH = 500


async def publish(asked: Asked) -> Response:
    """Publish events; done when the broker has acknowledged them."""
    envelope = _envelope(asked.request.headers)
    if not (asked.media in MEDIA or (envelope and _is_data(asked.media))):
        came = asked.media or "no content type"
        raise Refused(415, f"body: wanted {', '.join(MEDIA)}, came {came}")
    if asked.gateway.server.trouble:
        raise Refused(503, "nothing can be stored just now", headers={"Retry-After": "5"})
    written, alone = _written(asked, envelope, await asked.raw())
    if len(written) > EVENTS_MOST:
        raise Refused(413, f"body: wanted at most {EVENTS_MOST} events, came {len(written)}")
    headers = asked.request.headers
    trace = trace_of(headers.get("traceparent"), headers.get("tracestate"))
    once = _once(asked.request.query_params.get("once", "false"))
    try:
        async with asyncio.timeout(ACKNOWLEDGED):
            problems = await published(asked.client, written, trace, once=once)
    except TimeoutError:
        why = f"not acknowledged in {ACKNOWLEDGED:g} s: it may have been published"
        raise Refused(503, why, headers={"Retry-After": "5"}) from None
    if problems and alone:
        raise problem_of(problems[0])
    if problems:
        raise _some_refused(problems, len(written) - len(problems))
    return answer(Published(len(written)))


async def published(
    client: Client, written: Iterable[Any], trace: str | None = None, *, once: bool = False
) -> dict[int, DriftlineError]:
    """Publish events as they were written, in order; those that were refused, by their places.

    An event that says no trace of its own belongs to that of the request.
    """
    events: dict[int, Event] = {}
    problems: dict[int, DriftlineError] = {}
    for at, one in enumerate(written):
        if not at % _BREATH:
            await asyncio.sleep(0)  # Others are waiting, too.
        try:
            event = event_from(one)
            events[at] = event.with_trace(trace) if trace and event.trace is None else event
        except DriftlineError as problem:
            problems[at] = problem
    found = await client.publish_each(events.values(), once=once)
    refused = zip(events, found, strict=True)
    return problems | {at: problem for at, problem in refused if problem is not None}


def refusals(problems: Mapping[int, DriftlineError]) -> list[Refusal]:
    """Those that were refused, as it is said."""
    found = []
    for at, problem in sorted(problems.items()):
        known = problem_of(problem)
        found.append(Refusal(at, f"urn:driftline:problem:{known.kind}", known.detail))
    return found[:REFUSALS_MOST]


def _once(said: str) -> bool:
    if said not in ("true", "false"):
        raise Refused(422, f"once: wanted true or false, came {show(said)}", "invalid-value")
    return said == "true"


def _is_data(media: str) -> bool:
    """Can it be the data of an event whose envelope is in headers? It may have none at all."""
    return not media or (media.startswith("application/") and media.endswith("+json"))


def _written(asked: Asked, envelope: dict[str, str], raw: bytes) -> tuple[list[Any], bool]:
    """The events as they were written; is it one that stands for itself?"""
    if envelope and asked.media not in (STRUCTURED, BATCH, LINES):
        return [{**envelope, "data": said(raw) if raw else None}], True
    if asked.media == LINES:
        return [said(line) for line in raw.splitlines() if line.strip()], False
    if asked.media == BATCH:
        return said(raw, list[Any]), False
    found = said(raw)
    if isinstance(found, list) and asked.media == JSON:
        return found, False
    return [found], True


def _envelope(headers: Mapping[str, str]) -> dict[str, str]:
    """What headers say of an event whose body is its data (the binary mode of CloudEvents)."""
    found = {
        name.removeprefix("ce-"): unquote(value)
        for name, value in headers.items()
        if name.startswith("ce-")
    }
    if found and "specversion" not in found:
        raise Refused(422, f"header ce-specversion: wanted {SPEC_VERSION!r}, came nothing")
    if "data" in found or "data_base64" in found:
        raise Refused(422, "header ce-data: wanted the data in the body, came it in a header")
    return found


def _some_refused(problems: dict[int, DriftlineError], published: int) -> Refused:
    """Several were published, and some of them refused."""
    said = refusals(problems)
    detail = f"{len(problems)} refused, the first at {said[0].index}: {said[0].detail}"
    return Refused(422, detail, "some-refused", {"published": published, "refused": said})
