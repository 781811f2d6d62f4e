"""What can be asked for over HTTP? The addresses, what they take and give, and who does it.

OpenAPI is written from this table, and so is what answers: neither can say what the other does not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from driftline.gateway import bodies, commands, durables, handling, publishing, streams
from driftline.gateway.asked import JSON, Asked

V = "/v1"
SOCKET = f"{V}/socket"
"""Where a WebSocket is; what is said on it, AsyncAPI says."""


@dataclass(frozen=True, slots=True)
class Route:
    """One thing that can be asked for."""

    method: str
    path: str
    does: Callable[[Asked], Awaitable[Response]]
    takes: Any = None
    """The kind of its body; None: it has none."""
    media: tuple[str, ...] = (JSON,)
    """What kinds of content its body may have."""
    query: Any = None
    """The fields of its address behind the question mark."""
    gives: Any = None
    """The kind of the answer; None: it has no body."""
    gives_media: str = JSON
    status: tuple[int, ...] = (200,)
    problems: tuple[int, ...] = ()
    """Beside those that every request may end with."""
    streams: bool = False

    @property
    def name(self) -> str:
        """What it is called, for programs: of all that there is, only this."""
        group = self.does.__module__.rpartition(".")[2]
        # What can be asked for in an address can be asked for in a body, too.
        twice = "_by_body" if self.streams and self.takes is not None else ""
        return f"{group}_{self.does.__name__}{twice}"

    @property
    def summary(self) -> str:
        """What it does, in a line."""
        return (self.does.__doc__ or "").strip().partition("\n")[0]


_ONE = f"{V}/subscriptions/{{name}}"

ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        f"{V}/events",
        publishing.publish,
        query=bodies.Publishing,
        takes=Any,
        media=publishing.MEDIA,
        gives=bodies.Published,
        problems=(409, 413, 415, 422),
    ),
    Route(
        "GET",
        f"{V}/stream",
        streams.passing,
        query=bodies.Streaming,
        problems=(422,),
        streams=True,
    ),
    Route(
        "POST",
        f"{V}/stream",
        streams.passing,
        takes=bodies.Streaming,
        problems=(413, 415, 422),
        streams=True,
    ),
    Route("GET", f"{V}/subscriptions", durables.every, gives=bodies.Listed),
    Route(
        "PUT",
        _ONE,
        durables.keep,
        takes=bodies.Subscribing,
        gives=bodies.Kept,
        status=(200, 201),
        problems=(413, 415, 422, 504),
    ),
    Route("GET", _ONE, durables.show, gives=bodies.Described, problems=(404, 422)),
    Route("DELETE", _ONE, durables.drop, status=(204,), problems=(404, 422)),
    Route(
        "PUT",
        f"{_ONE}/parameters",
        durables.move,
        takes=bodies.Parameters,
        gives=bodies.Moved,
        problems=(404, 413, 415, 422, 504),
    ),
    Route(
        "GET",
        f"{_ONE}/stream",
        streams.durable,
        query=bodies.After,
        problems=(404, 422),
        streams=True,
    ),
    Route(
        "POST",
        f"{_ONE}/acknowledged",
        durables.acknowledge,
        takes=bodies.Acknowledged,
        status=(204,),
        problems=(404, 413, 415, 422),
    ),
    Route(
        "POST",
        f"{_ONE}/explain",
        durables.explain,
        takes=Any,
        media=durables.EXPLAINED,
        gives=bodies.Explained,
        problems=(404, 413, 415, 422),
    ),
    Route("POST", f"{_ONE}/suspend", durables.suspend, status=(204,), problems=(404, 422)),
    Route("POST", f"{_ONE}/resume", durables.resume, status=(204,), problems=(404, 422)),
    Route(
        "PUT",
        f"{_ONE}/handler",
        handling.redirect,
        takes=bodies.Handler,
        status=(204,),
        problems=(404, 413, 415, 422),
    ),
    Route("DELETE", f"{_ONE}/handler", handling.withdraw, status=(204,), problems=(404, 422)),
    Route(
        "POST",
        f"{_ONE}/secret",
        handling.secret,
        takes=bodies.Renewing,
        gives=bodies.Secret,
        problems=(404, 413, 415, 422),
    ),
    Route(
        "GET",
        f"{_ONE}/dead-letters",
        handling.letters,
        query=bodies.AfterLetter,
        gives=bodies.Letters,
        problems=(404, 422),
    ),
    Route(
        "POST",
        f"{_ONE}/dead-letters/redeliver",
        handling.redeliver,
        takes=bodies.Which,
        gives=bodies.Counted,
        problems=(404, 413, 415, 422),
    ),
    Route(
        "POST",
        f"{_ONE}/dead-letters/discard",
        handling.discard,
        takes=bodies.Which,
        gives=bodies.Counted,
        problems=(404, 413, 415, 422),
    ),
    Route(
        "PUT",
        f"{V}/tables/{{name}}",
        commands.declare,
        takes=bodies.Declared,
        status=(204,),
        problems=(409, 413, 415, 422, 504),
    ),
    Route(
        "POST",
        f"{V}/tables/{{name}}/delete",
        commands.delete,
        takes=bodies.Deleting,
        status=(204,),
        problems=(409, 413, 415, 422),
    ),
    Route(
        "PUT",
        f"{V}/environment/{{name}}",
        commands.observe,
        takes=bodies.Observed,
        status=(204,),
        problems=(413, 415, 422),
    ),
    Route(
        "POST",
        f"{V}/interest",
        commands.interest,
        takes=bodies.Advertising,
        gives=bodies.Wanted,
        problems=(413, 415, 422),
    ),
    Route("GET", f"{V}/status", commands.status, gives=dict[str, Any]),
    Route("GET", "/metrics", commands.metrics, gives=str, gives_media="text/plain"),
)
ALWAYS = (400, 401, 403, 405, 408, 421, 429, 431, 500, 503)
"""What every request may end with."""
