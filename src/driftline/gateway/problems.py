"""What is said over HTTP when something cannot be done? `application/problem+json`, RFC 9457.

>>> from driftline.errors import LanguageError
>>> problem_of(LanguageError("a SELECT", "DROP", 1, 1)).body()["column"]
1
"""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response

from driftline.errors import (
    DriftlineError,
    FrameRefused,
    InvalidValue,
    JournalError,
    LanguageError,
    LimitReached,
    NotAdvertised,
    NotAllowed,
    NotAuthenticated,
    NotEffective,
    NotSupported,
    ParameterError,
    ReasonLeftOff,
    SubscriptionEnded,
    TableError,
    Unreachable,
)

MEDIA = "application/problem+json"
_DETAIL_MOST = 2_000
"""Letters of what is said of one problem."""
_STATUS: tuple[tuple[type[DriftlineError], int], ...] = (
    (NotAuthenticated, 401),
    (NotAllowed, 403),
    (NotAdvertised, 403),
    (TableError, 409),
    (SubscriptionEnded, 410),
    (LanguageError, 422),
    (InvalidValue, 422),
    (ParameterError, 422),
    (NotSupported, 422),
    (FrameRefused, 422),
    (LimitReached, 429),
    (JournalError, 503),
    (Unreachable, 503),
    (NotEffective, 504),
)


@dataclass
class Refused(Exception):
    """A request is answered with a problem."""

    status: int
    detail: str
    kind: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """The problem, as it is said."""
        kind = self.kind or HTTPStatus(self.status).phrase.lower().replace(" ", "-")
        return {
            "type": f"urn:driftline:problem:{kind}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": _cut(self.detail),
            **self.facts,
        }

    def response(self) -> Response:
        """The answer."""
        return Response(
            msgspec.json.encode(self.body()), self.status, self.headers, media_type=MEDIA
        )


def _cut(detail: str) -> str:
    """What somebody is to read; what came may be as long as a body."""
    return detail if len(detail) <= _DETAIL_MOST else f"{detail[:_DETAIL_MOST]}…"


def problem_of(error: DriftlineError) -> Refused:
    """What an error of the broker's means over HTTP."""
    if isinstance(error, InvalidValue) and error.where == "durable" and "name of" in error.wanted:
        # Whether nobody has it, or another: the same.
        return Refused(404, "there is no durable subscription of yours by this name", "unknown")
    if isinstance(error, ReasonLeftOff):
        return Refused(422, str(error), _kind(error.error))
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    facts: dict[str, Any] = {}
    if isinstance(error, LanguageError) and error.line is not None:
        facts = {"line": error.line, "column": error.column}
    elif isinstance(error, NotEffective):
        facts = {"silent": sorted(error.silent)}
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    elif status in (429, 503):
        headers["Retry-After"] = "1"
    # Which broker it is knows whoever asks; by which address it is reached from here is nothing to
    # them.
    why = error.why if isinstance(error, Unreachable) else str(error)
    return Refused(status, why, _kind(type(error).__name__), facts, headers)


def _kind(name: str) -> str:
    """`NotAllowed` as `not-allowed`."""
    return "".join(f"-{one.lower()}" if one.isupper() else one for one in name).lstrip("-")
