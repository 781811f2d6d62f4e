"""How is a subscription told by Server-Sent Events, and how does somebody go on who was cut off?

What a durable subscription is told has an id: by what the subscription is known that no other ever
was, and the number. Whoever comes back with it as `Last-Event-ID`, as browsers do by themselves,
has had everything up to there, and is told what follows. An id of another subscription, or of one
that had its name before, is refused: what was had by it was never told here, and would be thrown
away. What belongs together has its id at its end only, so that nobody goes on in the middle. A
stream without a durable subscription has no ids: what was missed is gone, and a new one begins.

What is wrong with what was asked for is an answer of its own. But it may take long until all
brokers know of a subscription: the stream begins beforehand, says that it is there, and tells what
comes from those that do.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from driftline.broker.identity import stable_id
from driftline.client.client import Client
from driftline.client.subscription import Subscription
from driftline.errors import DriftlineError, NotEffective
from driftline.gateway.asked import Asked, said
from driftline.gateway.bodies import EVENT_ID, Streaming
from driftline.gateway.connection import STALLED
from driftline.gateway.problems import Refused, problem_of
from driftline.language.notified import notification_to
from driftline.model.notification import Notification
from driftline.model.value import show

MEDIA = "text/event-stream"
NUMBER_MAX = 2**63 - 1
_ID = re.compile(EVENT_ID)
AT_ONCE = 1.0
"""Seconds for a subscription to begin until its stream does so before it; what this broker itself
refuses is refused long before."""
# JSON may have them as they are, and some who read lines take them for ends.
_ESCAPED = ((0x85, b"\\u0085"), (0x2028, b"\\u2028"), (0x2029, b"\\u2029"))
_LINE_ENDS = tuple((chr(code).encode(), escaped) for code, escaped in _ESCAPED)
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
Look = Callable[[Client], Awaitable[Any]]
Begin = Callable[[Client], Awaitable[Subscription]]
"""A subscription that has begun at this broker."""
_BEGINS, _IS_HERE = b": about to begin\n\n", b": still here\n\n"
_HERE, _EVERYWHERE = b": in effect at this broker\n\n", b": in effect everywhere\n\n"


async def passing(asked: Asked) -> Response:
    """A subscription for as long as somebody listens."""
    if asked.request.method == "POST":
        body = await asked.body(Streaming)
    else:
        body = _of_query(asked)
    statement = await asked.statement(body)
    values, policy = body.values(), body.checked_policy()

    async def begin(client: Client) -> Subscription:
        return await client.subscribe(
            statement,
            values,
            rows=body.rows,
            on_change=body.on_change,
            policy=policy,
            within=0.0,
        )

    return EventStream(asked, begin, begin, body.within)


async def durable(asked: Asked) -> Response:
    """What a durable subscription is told, from where its subscriber has come."""
    after = asked.query("after").get("after", "")
    last = asked.request.headers.get("last-event-id") or after
    if not _ID.fullmatch(last):
        raise _no_id(last)
    mark, _, said = last.partition("-")
    number = number_of(said)

    async def begin(client: Client) -> Subscription:
        await look(client)
        # It is in effect, or will be: nobody need be asked.
        return await client.attach(asked.name, ack="manual", after=number, within=0.0)

    async def look(client: Client) -> None:
        # Whoever is told of it goes on being told.
        known = await client.durables.get(asked.name)
        if last and mark != known.mark:
            raise _no_id(last)

    return EventStream(asked, begin, look, 0.0)


async def silent_of(client: Client, within: float) -> list[str]:
    """The brokers that have not said in time that they know of what was asked for: there it counts
    when they are reached.
    """
    try:
        await client.confirm(within)
    except NotEffective as problem:
        return sorted(problem.silent)
    return []


def _no_id(text: str) -> Refused:
    wanted = "the id of an event that this subscription was told"
    return Refused(422, f"Last-Event-ID: wanted {wanted}, came {show(text)}")


def number_of(text: str) -> int:
    """The number of a notification; empty: before all of them."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(NUMBER_MAX))
    if text and not (is_number and int(text) <= NUMBER_MAX):
        raise Refused(422, f"after: wanted the number of a notification, came {show(text)}")
    return int(text or 0)


def _of_query(asked: Asked) -> Streaming:
    """A subscription that an address asks for; what is no text in it is JSON."""
    given = {}
    for name, text in asked.query(*Streaming.__struct_fields__).items():
        is_text = name in ("sql", "on_change")
        given[name] = text if is_text else said(text.encode(), where=f"query, {name}")
    try:
        return msgspec.convert(given, Streaming)
    except msgspec.ValidationError as problem:
        raise Refused(422, f"query: {problem}", "invalid-value") from None


class EventStream(Response):
    """The answer that goes on."""

    def __init__(self, asked: Asked, begin: Begin, look: Look, within: float) -> None:
        super().__init__(headers=_HEADERS, media_type=MEDIA)
        self._asked = asked
        self._begin = begin
        self._look = look
        """What is refused as it would be if it began."""
        self._within = within
        """So many seconds all brokers have to say that they know of it; 0: nobody is asked."""
        self._began = False

    async def head(self) -> Response:
        """How it would begin, for whoever asks for no more than that."""
        async with self._asked.gateway.visitors.stream(self._asked.proof) as client:
            with suppress(TimeoutError):
                async with asyncio.timeout(AT_ONCE):
                    await self._look(client)
        return Response(headers=_HEADERS, media_type=MEDIA)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell until it ends, or until nobody listens any more."""
        telling = asyncio.create_task(self._tell(send))
        listening = asyncio.create_task(_until_gone(receive))
        try:
            await asyncio.wait((telling, listening), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (telling, listening):
                task.cancel()
            found = await asyncio.gather(telling, listening, return_exceptions=True)
        problem = found[0]
        if isinstance(problem, Refused) and not self._began:
            await problem.response()(scope, receive, send)
        elif isinstance(problem, Exception) and not isinstance(problem, TimeoutError):
            raise problem

    async def _tell(self, send: Send) -> None:
        asked = self._asked
        try:
            async with asked.gateway.visitors.stream(asked.proof) as client:
                subscription = await self._begun(send, client)
                if subscription.suspended:
                    await self._put(send, block("suspended", b'{"suspended":true}'))
                knowing = asyncio.ensure_future(self._known(send, client))
                try:
                    # What comes soon is told behind that.
                    await asyncio.wait((knowing,), timeout=AT_ONCE)
                    await self._tell_all(send, subscription, knowing)
                finally:
                    knowing.cancel()
                    await asyncio.gather(knowing, return_exceptions=True)
                why = Refused(410, "the subscription was ended", "ended")
        except DriftlineError as problem:
            why = problem_of(problem)
        if not self._began:
            raise why
        # A code of its own, or a browser would take it for a lost connection and say nothing.
        await self._put(send, block("end", msgspec.json.encode(why.body())), more=False)

    async def _begun(self, send: Send, client: Client) -> Subscription:
        """The subscription; while it begins that is said, so that nobody thinks it was lost."""
        beginning = asyncio.ensure_future(self._begin(client))
        wait = AT_ONCE
        try:
            while not (await asyncio.wait((beginning,), timeout=wait))[0]:
                if not self._began:
                    await self._start(send)
                await self._put(send, _BEGINS)
                wait = self._asked.gateway.http.heartbeat
            found = beginning.result()
        finally:
            beginning.cancel()
            await asyncio.gather(beginning, return_exceptions=True)
        if not self._began:
            await self._start(send)
        return found

    async def _known(self, send: Send, client: Client) -> None:
        """Say where it is in effect, when that is known."""
        if not self._within:
            await self._put(send, _HERE)
            return
        try:
            silent = await silent_of(client, self._within)
        except DriftlineError:
            return  # What ends the stream says why.
        partial = block("partial", msgspec.json.encode({"silent": silent}))
        await self._put(send, partial if silent else _EVERYWHERE)

    async def _start(self, send: Send) -> None:
        self._began = True
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                # It has no length.
                "headers": [one for one in self.raw_headers if one[0] != b"content-length"],
            }
        )

    async def _tell_all(
        self, send: Send, subscription: Subscription, knowing: asyncio.Future[None]
    ) -> None:
        heartbeat = self._asked.gateway.http.heartbeat
        while True:
            try:
                first = await subscription.next(heartbeat)
            except TimeoutError:
                await self._put(send, _IS_HERE if knowing.done() else _BEGINS)
                continue
            except StopAsyncIteration:
                return
            told = [first, *subscription.pending()]
            await self._put(send, b"".join(event_of(one, subscription.mark) for one in told))

    async def _put(self, send: Send, data: bytes, *, more: bool = True) -> None:
        async with asyncio.timeout(STALLED):
            await send({"type": "http.response.body", "body": data, "more_body": more})


def event_of(told: Notification, mark: str = "") -> bytes:
    """A notification as an event; only where all of its number is told it has an id."""
    id = stable_id(mark, str(told.number)) if told.number and not told.more else ""
    return block(str(told.kind), msgspec.json.encode(notification_to(told)), id)


def block(kind: str, data: bytes, id: str = "") -> bytes:
    """One event, on one line for whatever anybody takes for the end of one."""
    for end, escaped in _LINE_ENDS:
        data = data.replace(end, escaped)
    head = f"id: {id}\n" if id else ""
    return f"{head}event: {kind}\ndata: ".encode() + data + b"\n\n"


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
