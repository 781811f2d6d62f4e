"""How does somebody talk with a broker over a WebSocket? See `talk` for what is said.

What is asked is done in order. What is told comes when it comes, and no faster than it is read:
whoever reads slowly has the broker's queue, with its policy.

What is asked may take long, until brokers far away know of it. It is read on meanwhile, or nobody
would notice that whoever asked has gone, nor that they are still there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from driftline.client.advertised import Advertised
from driftline.client.client import Client
from driftline.client.subscription import Subscription
from driftline.errors import DriftlineError, InvalidValue, LimitReached
from driftline.gateway import talk
from driftline.gateway.asked import checked_name, statement_of
from driftline.gateway.bodies import read_json, values_of
from driftline.gateway.connection import STALLED
from driftline.gateway.pages import check_page
from driftline.gateway.problems import Refused, problem_of
from driftline.gateway.publishing import check_known, outcome, published
from driftline.gateway.streams import AT_ONCE, number_of, silent_of
from driftline.gateway.turns import Turns
from driftline.gateway.visitors import PROTOCOL
from driftline.language.notified import notification_to
from driftline.model.notification import Notification, NotificationKind
from driftline.model.value import show

if TYPE_CHECKING:
    from driftline.gateway.gateway import Gateway

SUBSCRIPTIONS_MOST = 1_000
WAITING_MOST = 100
"""So much that was asked may wait for what was asked before, and"""
_WAITING_MESSAGES = 4
"""bytes of so many messages as long as they may be."""
_LEAVING = 1.0
"""So many seconds what was said before somebody left has to be done."""
_ENDS, _LATER = 1012, 1013


async def serve(gateway: Gateway, socket: WebSocket) -> None:
    """One WebSocket, from its beginning to its end."""
    try:
        proof = gateway.visitors.proven(socket)
        check_page(gateway, socket, proof)
        async with gateway.visitors.stream(proof) as client:
            wanted = socket.scope.get("subprotocols", ())
            await socket.accept(PROTOCOL if PROTOCOL in wanted else None)
            await _Talk(gateway, socket, client, gateway.visitors.turns(proof)).run()
    except Refused as page:
        await socket.send_denial_response(page.response())
    except _TooMuch as much:
        await _close(socket, _LATER, str(much))
    except DriftlineError as problem:
        refused = problem_of(problem)
        if socket.application_state.name == "CONNECTING":
            await socket.send_denial_response(refused.response())
        else:
            await _close(socket, _ENDS, refused.detail)
    except (WebSocketDisconnect, TimeoutError):
        pass


async def _close(socket: WebSocket, code: int, why: str) -> None:
    if socket.application_state.name == "CONNECTED":
        # Whoever is to be told may have gone meanwhile.
        with suppress(WebSocketDisconnect, RuntimeError):
            # A reason has at most 123 bytes.
            await socket.close(code, why.encode()[:120].decode(errors="ignore"))


class _TooMuch(Exception):
    """More was asked than is done, for too long."""


class _Waiting:
    """What was asked and is not done, the first first; who asks for more than it holds waits."""

    def __init__(self, bytes_most: int) -> None:
        self._bytes_most = bytes_most
        self._bytes = 0
        self._said: deque[bytes] = deque()
        self._changed = asyncio.Condition()

    async def put(self, raw: bytes) -> None:
        """One more, when there is room."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._has_room(len(raw)))
            self._said.append(raw)
            self._bytes += len(raw)
            self._changed.notify_all()

    def _has_room(self, size: int) -> bool:
        return len(self._said) < WAITING_MOST and self._bytes + size <= self._bytes_most

    @asynccontextmanager
    async def next(self) -> AsyncIterator[bytes]:
        """The first; it makes room when it is done."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._said)
        raw = self._said[0]
        yield raw
        async with self._changed:
            self._said.popleft()
            self._bytes -= len(raw)
            self._changed.notify_all()

    async def done(self) -> None:
        """Wait until nothing is left."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._said)


class _Talk:
    """What is said on one WebSocket."""

    def __init__(self, gateway: Gateway, socket: WebSocket, client: Client, turns: Turns) -> None:
        self._turns = turns
        self._waiting = _Waiting(_WAITING_MESSAGES * gateway.http.message_bytes)
        # Shorter than anybody who hears nothing of us takes to give us up.
        self._patience = gateway.http.heartbeat / 2
        self._gone = False
        self._telling = asyncio.Lock()
        self._socket = socket
        self._client = client
        self._known: dict[str, Subscription | Advertised] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._does: dict[type, Any] = {
            talk.Subscribe: self._subscribe,
            talk.Attach: self._attach,
            talk.Set: self._set,
            talk.Acknowledge: self._acknowledge,
            talk.Detach: self._detach,
            talk.Cancel: self._cancel,
            talk.Publish: self._publish,
            talk.Advertise: self._advertise,
        }
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Until one of the two ends it."""
        reading = asyncio.create_task(self._read())
        doing = asyncio.create_task(self._do_all())
        ends = (reading, doing, self._failed)
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for one in (self._failed, doing):
                if one.done():
                    one.result()
            reading.result()
            # Who says something and leaves need not have waited until it was done.
            self._gone = True
            with suppress(TimeoutError):
                async with asyncio.timeout(_LEAVING):
                    await self._waiting.done()
        finally:
            tasks = [reading, doing, *self._tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._failed.done():
                self._failed.exception()  # Nobody may have looked at it.

    async def _read(self) -> None:
        """Hand on what comes until nothing does any more."""
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            raw = message.get("bytes") or (message.get("text") or "").encode("utf-8", "replace")
            try:
                async with asyncio.timeout(self._patience):
                    await self._waiting.put(raw)
            except TimeoutError:
                raise _TooMuch("too much was asked while something takes long") from None

    async def _do_all(self) -> None:
        while True:
            async with self._waiting.next() as raw:
                await self._do_one(raw)

    async def _do_one(self, raw: bytes) -> None:
        try:
            said = read_json(raw, talk.Said)
        except DriftlineError as problem:
            # What it is about nobody can tell.
            await self._say({"failed": None, "problem": problem_of(problem).body()})
            return
        await self._do(said)

    async def _do(self, said: Any) -> None:
        verb = type(said).__name__.lower()
        try:
            found = await self._does[type(said)](said)
        except Refused as refused:
            await self._say({"failed": verb, "id": said.id, "problem": refused.body()})
            if isinstance(refused.__cause__, DriftlineError):
                self._check_there(refused.__cause__)
        except DriftlineError as problem:
            self._check_there(problem)
            await self._say({"failed": verb, "id": said.id, "problem": problem_of(problem).body()})
        else:
            await self._say({"did": verb, "id": said.id, **(found or {})})

    def _check_there(self, problem: DriftlineError) -> None:
        """What the broker ended ends the WebSocket; anything else was only refused."""
        if not self._client.is_connected:
            raise problem

    async def _say(self, said: dict[str, Any]) -> None:
        if self._gone:
            return
        try:
            async with asyncio.timeout(STALLED):
                await self._socket.send_text(msgspec.json.encode(said).decode())
        except RuntimeError:
            # It was closed meanwhile, for what it said or by its end.
            raise WebSocketDisconnect(1006) from None

    # Subscriptions

    async def _subscribe(self, said: talk.Subscribe) -> dict[str, Any]:
        self._check_free(said.id)
        if said.name:
            checked_name(said.name)
        asked = self._client.subscribe(
            await statement_of(self._turns, said),
            said.values(),
            rows=said.rows,
            on_change=said.on_change,
            durable=said.name,
            ack="manual",
            policy=said.checked_policy(),
            within=0.0,
            after=number_of(said.after),
        )
        known = asyncio.Event()
        found = self._begun(said.id, await asked, known)
        silent = await silent_of(self._client, said.within) if said.within else []
        known.set()
        return {**found, "silent": silent} if silent else found

    async def _attach(self, said: talk.Attach) -> dict[str, Any]:
        self._check_free(said.id)
        found = await self._client.attach(
            checked_name(said.name), ack="manual", after=number_of(said.after), within=0.0
        )
        return self._begun(said.id, found)

    def _check_free(self, id: str) -> None:
        if id in self._known:
            raise InvalidValue("id", "one that is not taken", show(id))
        if len(self._known) >= SUBSCRIPTIONS_MOST:
            raise LimitReached("subscriptions of a WebSocket", SUBSCRIPTIONS_MOST)

    def _begun(
        self, id: str, subscription: Subscription, known: asyncio.Event | None = None
    ) -> dict[str, Any]:
        self._known[id] = subscription
        self._spawn(id, self._tell(id, subscription, known))
        found = {"epoch": subscription.epoch, "resumed": subscription.resumed}
        return {**found, "suspended": True} if subscription.suspended else found

    async def _tell(self, id: str, subscription: Subscription, known: asyncio.Event | None) -> None:
        try:
            if known is not None:
                # Behind the answer, unless that takes long: it waits behind what is to be told.
                with suppress(TimeoutError):
                    async with asyncio.timeout(AT_ONCE):
                        await known.wait()
            while await subscription.until_told():
                # What waits for others to be told is not taken: so much and no more may wait.
                async with self._telling:
                    for told in subscription.pending():
                        await self._say({"told": id, **notification_to(told)})
        except DriftlineError as problem:
            self._check_there(problem)
            self._known.pop(id, None)
            self._tasks.pop(id, None)
            await self._say({"ended": id, "problem": problem_of(problem).body()})

    async def _set(self, said: talk.Set) -> dict[str, Any]:
        subscription = self._subscription(said.id)
        subscription.within = said.within
        return {"epoch": await subscription.set(**values_of(said.params))}

    async def _acknowledge(self, said: talk.Acknowledge) -> None:
        number = number_of(said.number)
        had = Notification(NotificationKind.EVENT, number=number)
        await self._subscription(said.id).ack(had)

    async def _detach(self, said: talk.Detach) -> None:
        subscription = self._subscription(said.id)
        if not subscription.durable:
            raise InvalidValue("id", "a durable subscription", show(said.id))
        self._forget(said.id)
        await subscription.detach()

    async def _cancel(self, said: talk.Cancel) -> None:
        known = self._known.get(said.id)
        if isinstance(known, Advertised):
            self._forget(said.id)
            await known.withdraw()
            return
        subscription = self._subscription(said.id)
        self._forget(said.id)
        await subscription.cancel()

    def _subscription(self, id: str) -> Subscription:
        known = self._known.get(id)
        if not isinstance(known, Subscription):
            raise InvalidValue("id", "one of your subscriptions", show(id))
        return known

    def _forget(self, id: str) -> None:
        del self._known[id]
        task = self._tasks.pop(id, None)
        if task is not None:
            task.cancel()

    # Events

    async def _publish(self, said: talk.Publish) -> dict[str, Any]:
        problems = await published(self._client, self._turns, said.events, once=said.once)
        check_known(self._client, problems)
        return outcome(problems, len(said.events))

    async def _advertise(self, said: talk.Advertise) -> dict[str, Any]:
        self._check_free(said.id)
        found = await self._client.advertise(said.advertisement)
        self._known[said.id] = found
        self._spawn(said.id, self._tell_interest(said.id, found))
        return {"interested": found.interested}

    async def _tell_interest(self, id: str, advertised: Advertised) -> None:
        async for interested in advertised:
            await self._say({"interest": id, "interested": interested})

    def _spawn(self, id: str, what: Coroutine[Any, Any, None]) -> None:
        task = self._tasks[id] = asyncio.create_task(what)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or self._failed.done():
            return
        problem = task.exception()
        if problem is not None:
            self._failed.set_exception(problem)
