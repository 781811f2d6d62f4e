"""How do events come in over HTTP?

As CloudEvents, one (`application/cloudevents+json`) or several (`…-batch+json`), or with the
envelope in headers `ce-…` (see `binary`); or as people write them by hand (`application/json`), one
or several. Those who publish several are told of each that was refused; the others have been
published. Where it is not known what became of some, that is said, and nothing else.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
from starlette.responses import Response

from driftline.client.client import Client
from driftline.errors import DriftlineError, InvalidValue, JournalError, Unreachable
from driftline.gateway.asked import JSON, STRUCTURED, Asked, answer, said
from driftline.gateway.binary import data_of, envelope_of
from driftline.gateway.bodies import Published, Refusal, read_json
from driftline.gateway.problems import Refused, problem_of
from driftline.gateway.turns import Turns
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
_TOGETHER = 1_000
_LETTERS = 1 << 22
"""So many events are read and published together, and so many letters may their names have."""
_UNSAID = InvalidValue("event", "fewer that are refused, to say why", "more")
_LINE = re.compile(rb"\S[^\r\n]*")
"""A line that is not blank."""


async def publish(asked: Asked) -> Response:
    """Publish events; done when the broker has acknowledged them."""
    envelope = envelope_of(asked.request.headers)
    if not (asked.media in MEDIA or (envelope and not asked.media.startswith(_STRUCTURED))):
        came = show(asked.media) if asked.media else "no content type"
        raise Refused(415, f"body: wanted {', '.join(MEDIA)}, came {came}")
    if asked.gateway.trouble:
        raise Refused(503, "nothing can be stored just now", headers={"Retry-After": "5"})
    once = _once(asked.query("once").get("once", "false"))
    written, alone = _written(asked, envelope, await asked.raw())
    if len(written) > EVENTS_MOST:
        raise Refused(413, f"body: wanted at most {EVENTS_MOST} events, came more", "too-large")
    headers = asked.request.headers
    trace = trace_of(headers.get("traceparent"), headers.get("tracestate"))
    try:
        async with asyncio.timeout(ACKNOWLEDGED):
            problems = await published(asked.client, asked.turns, written, trace, once=once)
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
    client: Client,
    turns: Turns,
    written: Sequence[Any],
    trace: str | None = None,
    *,
    once: bool = False,
) -> dict[int, DriftlineError]:
    """Publish events as they were written, in order; those that were refused, by their places.

    An event that says no trace of its own belongs to that of the request. Only some at a time are
    read and on their way: all of them may take very much memory.
    """
    problems: dict[int, DriftlineError] = {}
    at = 0
    while at < len(written):
        events: dict[int, Event] = {}
        room = _LETTERS
        async with turns.turn() as turn:
            while at < len(written) and len(events) < _TOGETHER and room > 0:
                try:
                    event = event_from(_read(written[at]))
                    events[at] = event.with_trace(trace) if trace and not event.trace else event
                    room -= sum(map(len, event.attributes))
                except DriftlineError as problem:
                    _keep(problems, at, problem)
                at += 1
                await turn.rest()
        found = await client.publish_each(events.values(), once=once)
        for place, refused in zip(events, found, strict=True):
            if refused is not None:
                _keep(problems, place, refused)
    return problems


def _read(written: Any) -> Any:
    """What an event says that was left as it lay in the body: an element, or a line. What it says
    wrong is nothing the others need suffer from.
    """
    return read_json(written) if isinstance(written, bytes | msgspec.Raw) else written


def _keep(problems: dict[int, DriftlineError], at: int, problem: DriftlineError) -> None:
    """Remember what is to be said of it, and not where it was noticed, which holds what was read
    there. Of very many only the first are said.
    """
    if len(problems) >= REFUSALS_MOST and not _is_unknown(problem):
        problem = _UNSAID
    else:
        problem.__traceback__ = problem.__context__ = problem.__cause__ = None
    problems[at] = problem


def check_known(client: Client, problems: Mapping[int, DriftlineError]) -> None:
    """`Refused` if nobody knows what became of some, because it was not acknowledged: they may
    have been published, and those that have an id may be published again `once`.
    """
    for one in problems.values():
        # What ended the connection, a token that expired, is the problem of all that waited then.
        if client.is_over or _is_unknown(one):
            said = problem_of(one).detail
            why = f"not acknowledged: some of it may have been published ({said})"
            raise Refused(503, why, headers={"Retry-After": "5"}) from one


def _is_unknown(problem: DriftlineError) -> bool:
    return isinstance(problem, Unreachable | JournalError)


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
    for at in sorted(problems)[:REFUSALS_MOST]:
        known = problem_of(problems[at])
        said = known.body()
        found.append(Refusal(at, said["type"], said["detail"]))
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
        lines = islice(_LINE.finditer(raw), EVENTS_MOST + 1)
        return [line[0] for line in lines], False
    if asked.media == BATCH or (asked.media == JSON and raw.lstrip()[:1] == b"["):
        found = said(raw, list[msgspec.Raw])
        assert isinstance(found, list)
        return found, False
    return [said(raw)], True


def _some_refused(problems: dict[int, DriftlineError], written: int) -> Refused:
    """Several were published, and some of them refused."""
    said = outcome(problems, written)
    first = said["refused"][0]
    detail = f"{len(problems)} refused, the first at {first.index}: {first.detail}"
    return Refused(422, detail, "some-refused", said)
