"""How do events come in over HTTP?

As CloudEvents, one (`application/cloudevents+json`) or several (`…-batch+json`), or with the
envelope in headers `ce-…` (see `binary`); or as people write them by hand (`application/json`), one
or several. Those who publish several are told of each that was refused; the others have been
published. Where it is not known what became of some, that is said, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from starlette.responses import Response

from driftline.client.client import Client
from driftline.errors import DriftlineError, JournalError, Unreachable
from driftline.gateway.asked import JSON, STRUCTURED, Asked, answer, said
from driftline.gateway.binary import data_of, envelope_of
from driftline.gateway.bodies import Published, Refusal, read_json
from driftline.gateway.problems import Refused, problem_of
from driftline.language.cloudevents import event_from
from driftline.model.event import Event
from driftline.model.trace import trace_of
from driftline.model.value import show

BATCH = "application/cloudevents-batch+json"
LINES = "application/x-ndjson"
_STRUCTURED = "application/cloudevents"
"""What content types begin with that say that the envelope is in the body, whatever headers say."""
MEDIA = (JSON, STRUCTURED, BATCH, LINES)
EVENTS_MOST = 100_000
REFUSALS_MOST = 1_000
ACKNOWLEDGED = 60.0
"""So many seconds the broker has to acknowledge what is published."""
_BREATH = 500


async def publish(asked: Asked) -> Response:
    """Publish events; done when the broker has acknowledged them."""
    envelope = envelope_of(asked.request.headers)
    if not (asked.media in MEDIA or (envelope and not asked.media.startswith(_STRUCTURED))):
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
        refused = problem_of(problems[0])
        # Of one alone 503 says as much, and why.
        if refused.status != 503:
            check_known(asked.client, problems)
        raise refused
    check_known(asked.client, problems)
    if problems:
        raise _some_refused(problems, len(written))
    return answer(Published(len(written)))


async def published(
    client: Client, written: Iterable[Any], trace: str | None = None, *, once: bool = False
) -> dict[int, DriftlineError]:
    """Publish events as they were written, in order; those that were refused, by their places.

    An event that says no trace of its own belongs to that of the request. What could not be read
    is in its place as the problem that it is.
    """
    events: dict[int, Event] = {}
    problems: dict[int, DriftlineError] = {}
    for at, one in enumerate(written):
        if not at % _BREATH:
            await asyncio.sleep(0)  # Others are waiting, too.
        if isinstance(one, DriftlineError):
            problems[at] = one
            continue
        try:
            event = event_from(one)
            events[at] = event.with_trace(trace) if trace and event.trace is None else event
        except DriftlineError as problem:
            problems[at] = problem
    found = await client.publish_each(events.values(), once=once)
    refused = zip(events, found, strict=True)
    return problems | {at: problem for at, problem in refused if problem is not None}


def check_known(client: Client, problems: Mapping[int, DriftlineError]) -> None:
    """`Refused` if nobody knows what became of some, because it was not acknowledged: they may
    have been published, and those that have an id may be published again `once`.
    """
    for one in problems.values():
        # What ended the connection, a token that expired, is the problem of all that waited then.
        if client.is_over or isinstance(one, Unreachable | JournalError):
            why = f"not acknowledged: some of it may have been published ({one})"
            raise Refused(503, why, headers={"Retry-After": "5"}) from one


def outcome(problems: Mapping[int, DriftlineError], written: int) -> dict[str, Any]:
    """How many were published of so many, and which were not: the first of these by their places,
    and how many others there are.
    """
    said: dict[str, Any] = {"published": written - len(problems)}
    if problems:
        said["refused"] = _refusals(problems)
    if len(problems) > REFUSALS_MOST:
        said["left_off"] = len(problems) - REFUSALS_MOST
    return said


def _refusals(problems: Mapping[int, DriftlineError]) -> list[Refusal]:
    found = []
    for at, problem in sorted(problems.items())[:REFUSALS_MOST]:
        known = problem_of(problem)
        found.append(Refusal(at, f"urn:driftline:problem:{known.kind}", known.detail))
    return found


def _once(said: str) -> bool:
    if said not in ("true", "false"):
        raise Refused(422, f"once: wanted true or false, came {show(said)}", "invalid-value")
    return said == "true"


def _written(asked: Asked, envelope: dict[str, Any], raw: bytes) -> tuple[Sequence[Any], bool]:
    """The events as they were written; is it one that stands for itself?"""
    if envelope and not asked.media.startswith(_STRUCTURED):
        kind = asked.request.headers.get("content-type", "")
        return [{**envelope, **data_of(kind, raw)}], True
    if asked.media == LINES:
        return [_line(line) for line in raw.splitlines() if line.strip()], False
    if asked.media == BATCH:
        found = said(raw, list[Any])
        assert isinstance(found, list)
        return found, False
    found = said(raw)
    if isinstance(found, list) and asked.media == JSON:
        return found, False
    return [found], True


def _line(line: bytes) -> Any:
    """What a line says, or why it says nothing: that is nothing the others need suffer from."""
    try:
        return read_json(line)
    except DriftlineError as problem:
        return problem


def _some_refused(problems: dict[int, DriftlineError], written: int) -> Refused:
    """Several were published, and some of them refused."""
    said = outcome(problems, written)
    first = said["refused"][0]
    detail = f"{len(problems)} refused, the first at {first.index}: {first.detail}"
    return Refused(422, detail, "some-refused", said)
