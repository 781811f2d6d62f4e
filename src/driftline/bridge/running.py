"""How do both directions run, and what is said before something counts as had?

What came is acknowledged at the MQTT broker when our broker has acknowledged it as published; what
was told is acknowledged at our broker when the MQTT broker has taken it. So whatever is killed, the
bridge or either broker, nothing is lost, and what comes twice is known by its id: a CloudEvent that
came is published once by each topic, what goes has the same id each time.

What can never pass, in either direction, holds up nothing: it is set aside, and counts as had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby, takewhile
from typing import Any

from driftline.bridge.config import BridgeConfig, OutConfig
from driftline.bridge.filters import Filters
from driftline.bridge.messages import TOPIC, Message, event_of, is_text, message_of
from driftline.bridge.mqtt import Heard, Mqtt, Wanted
from driftline.bridge.watching import Facts, Passed, watch
from driftline.client.client import Client
from driftline.client.proof import authority_context, token
from driftline.client.subscription import Subscription
from driftline.connecting import connect
from driftline.errors import (
    DriftlineError,
    InvalidValue,
    JournalError,
    NotAuthenticated,
    NotEffective,
    Unreachable,
)
from driftline.handlers.outgoing import Incoming
from driftline.language.notified import source_of
from driftline.model.event import Event
from driftline.net.logs import Log

log = Log("driftline.bridge")

WITHIN = 10.0
"""So many seconds either broker has to answer for the first time."""
_TAKEN_MOST = 500
"""So many messages are published at our broker together."""
_LEFT_MOST = 10_000
"""So many topics are remembered by which nothing more is to come."""
_TOLD_MOST = 100
"""So many notifications are on their way to the MQTT broker at a time."""
_AGAIN_FIRST, _AGAIN_LAST = 1.0, 60.0
"""Seconds until it is tried again what the MQTT broker did not take."""

_SHOWN = 1000
"""So many characters of why, or of a topic that is none, are said beside what is refused."""

_NOT_REFUSALS = (JournalError, NotAuthenticated, Unreachable)
"""They say nothing of the event: it was not taken, and comes again to the bridge that runs next."""


class Bridge:
    """One bridge. `run` it until `stop` is set."""

    def __init__(self, config: BridgeConfig) -> None:
        self._config = config
        self._filters = Filters([one.topic for one in config.come])
        self._passed = Passed()
        self._taking = 0
        """So many messages are with our broker, which has not answered ..."""
        self._since = 0.0
        """... since then."""
        self._left: set[tuple[int, str]] = set()
        """Connections, and topics by which nothing more is to come there."""
        self._not_now: set[str] = set()
        """Subscriptions of which the MQTT broker takes nothing now, though it is there."""
        self._saying: set[asyncio.Task[None]] = set()
        """What is being said of what cannot pass: until then it counts as not had."""
        self.stop = asyncio.Event()

    async def run(self, say: Callable[[Facts], None], every: float | None = None) -> None:
        """Connect to both, let things pass, and say how that goes; see `watching`."""
        config = self._config
        tls = authority_context(config.broker.authority)
        # A token is asked for anew when the last has expired: a bridge runs longer than it.
        made = connect(config.broker.address, token=token, tls=tls, within=WITHIN)
        async with made as client:
            self._client = client
            self._mqtt = Mqtt(config.mqtt, self._wanted())
            async with await self._mqtt.open(WITHIN):
                # Before anything is published, somebody is to be told of it.
                beginning = asyncio.create_task(self._begin(client))
                stopping = asyncio.create_task(self.stop.wait())
                passing: list[asyncio.Task[Any]] = []
                first = asyncio.FIRST_COMPLETED
                try:
                    await asyncio.wait([beginning, stopping], return_when=first)
                    if not stopping.done():
                        for out, told in zip(config.go, beginning.result(), strict=True):
                            passing.append(asyncio.create_task(self._tell(out, told)))
                        # If nothing is to come, something may from what was configured before.
                        passing.append(asyncio.create_task(self._take(client)))
                        say(self._facts(client))
                        passing.append(asyncio.create_task(watch(self, say, every)))
                        await asyncio.wait([*passing, stopping], return_when=first)
                finally:
                    for task in (beginning, *passing, stopping, *self._saying):
                        task.cancel()
                    found = await asyncio.gather(*passing, return_exceptions=True)
                for one in found:
                    if isinstance(one, Exception):
                        raise one

    def _wanted(self) -> list[Wanted]:
        numbers = self._filters.numbers
        return [
            Wanted(one.topic, number, one.retained)
            for one, number in zip(self._config.come, numbers, strict=True)
        ]

    def _facts(self, client: Client) -> Facts:
        return {
            "status": "ready",
            "broker": client.broker,
            "mqtt": self._config.mqtt.address,
            "in": [one.topic for one in self._config.come],
            "out": [one.subscription for one in self._config.go],
        }

    # To be looked at

    @property
    def passed(self) -> Passed:
        """What has passed."""
        return replace(self._passed, lost=self._mqtt.lost)

    @property
    def held(self) -> int:
        """So many messages have come that were not dealt with."""
        return self._mqtt.heard.qsize() + self._taking

    def waits_for(self, slow: float) -> list[str]:
        """Which brokers do not take anything now."""
        late = asyncio.get_running_loop().time() - self._since
        is_slow = self._taking > 0 and late > slow
        found = ["broker"] if is_slow or not self._client.is_connected else []
        return found if self._mqtt.is_up and not self._not_now else [*found, "mqtt"]

    # From the MQTT broker

    async def _take(self, client: Client) -> None:
        mqtt = self._mqtt
        while True:
            some = [await mqtt.heard.get()]
            while len(some) < _TAKEN_MOST and not mqtt.heard.empty():
                some.append(mqtt.heard.get_nowait())
            for named, events in groupby(self._events(some), lambda one: _is_named(one[1])):
                await self._publish(client, [*events], once=named)

    def _events(self, some: list[Heard]) -> Iterator[tuple[Heard, Event]]:
        for one in some:
            if self._mqtt.is_stale(one):
                continue
            place = self._filters.first(one.message.topic)
            if place is None or self._filters.is_foreign(one.came_by):
                self._leave(one)
            if self._is_copy(place, one):
                self._mqtt.acknowledge(one)
                continue
            try:
                if place is None:
                    # The session has subscriptions from a configuration that it had before.
                    raise InvalidValue("topic", "one that is configured", one.message.topic)
                yield one, event_of(one.message, self._config.come[place].type)
            except DriftlineError as problem:
                self._refuse(one, problem)

    def _is_copy(self, place: int | None, heard: Heard) -> bool:
        if place is None or self._filters.topics[place] in self._mqtt.denied:
            return False  # Nothing may come by the first.
        return self._filters.is_copy(place, heard.came_by)

    def _leave(self, heard: Heard) -> None:
        """End the subscription that it came by, which the session has from another configuration.

        Of what had come by it before, some may still come.
        """
        asked, topic = (heard.life, heard.message.topic), heard.message.topic
        if asked in self._left:
            return
        if len(self._left) >= _LEFT_MOST:
            self._left.clear()
        self._left.add(asked)
        others = self._filters.others(topic)
        if others:
            log.stranger("unsubscribed from what is not configured", topic=topic)
            self._mqtt.leave(others)
        else:
            log.stranger("what is not configured comes, by a topic of many levels", topic=topic)

    async def _publish(
        self, client: Client, some: list[tuple[Heard, Event]], *, once: bool
    ) -> None:
        # Devices call their messages what they like; topics are what an MQTT broker guards.
        apart = TOPIC if once else ""
        # While a broker cannot keep it, it does not answer.
        self._since, self._taking = asyncio.get_running_loop().time(), len(some)
        events = [event for _, event in some]
        problems = await client.publish_each(events, once=once, apart=apart)
        self._taking = 0
        for (heard, _), problem in zip(some, problems, strict=True):
            if problem is None:
                self._passed.published += 1
                self._mqtt.acknowledge(heard)
            elif isinstance(problem, _NOT_REFUSALS):
                raise problem
            else:
                self._refuse(heard, problem)

    def _refuse(self, heard: Heard, problem: DriftlineError) -> None:
        """It can never be published: it must not hold up what follows."""
        self._passed.refused += 1
        log.stranger("a message is not published", topic=heard.message.topic, why=str(problem))
        saying = asyncio.create_task(self._say_refused(heard.message, str(problem)))

        def said(saying: asyncio.Task[None]) -> None:
            self._saying.discard(saying)
            if not saying.cancelled():
                self._mqtt.acknowledge(heard)

        self._saying.add(saying)
        saying.add_done_callback(said)

    # To the MQTT broker

    async def _begin(self, client: Client) -> list[Subscription]:
        return [await self._begun(client, one) for one in self._config.go]

    async def _tell(self, out: OutConfig, told: Subscription) -> None:
        incoming = Incoming(out.subscription, source_of(self._client.broker))
        begun_again = 0
        async with told:
            while True:
                first = await told.next()
                if told.begun_again != begun_again:
                    begun_again = told.begun_again
                    incoming.begin_again()
                some = [first, *told.pending()]
                for at in range(0, len(some), _TOLD_MOST):
                    part = some[at : at + _TOLD_MOST]
                    going = [each for one in part for each in incoming.feed(one)]
                    await self._send(
                        out, [message_of(one, out.topic, out.form, out.retain) for one in going]
                    )
                    # Very much may have waited: not all of it is to come again.
                    if part[-1].number:
                        await told.ack(part[-1])

    async def _begun(self, client: Client, out: OutConfig) -> Subscription:
        """Its subscription, when it has begun, whatever becomes of connections meanwhile."""
        while True:
            found = client.subscribe(out.text, out.values, durable=out.subscription, ack="manual")
            try:
                return await found
            except NotEffective as problem:
                # It counts, and is in effect there too when they are reached.
                log.warning(
                    "not in effect everywhere", subscription=out.subscription, why=str(problem)
                )
                return found
            except Unreachable:
                if client.is_over:
                    raise
                await asyncio.sleep(_AGAIN_FIRST)

    async def _send(self, out: OutConfig, messages: list[Message]) -> None:
        """Send until all were taken, or never will be, in order.

        Behind one that was not taken now, all go again.
        """
        pause = _AGAIN_FIRST
        while True:
            each = await asyncio.gather(*map(self._mqtt.publish, messages))
            now = [*takewhile(lambda one: one.is_never or not one.why, each)]
            for message, sent in zip(messages, now, strict=False):
                if sent.is_never:
                    await self._set_aside(out, message, sent.why)
                else:
                    self._passed.told += 1
            failed = len(now)
            if failed == len(messages):
                self._not_now.discard(out.subscription)
                return
            self._not_now.add(out.subscription)
            log.warning(
                "not taken, and tried again",
                subscription=out.subscription,
                topic=messages[failed].topic,
                why=each[failed].why,
            )
            messages = messages[failed:]
            await asyncio.sleep(pause)
            pause = min(2 * pause, _AGAIN_LAST)

    async def _set_aside(self, out: OutConfig, message: Message, why: str) -> None:
        """The MQTT broker will never take it: it must not hold up what follows."""
        self._passed.refused += 1
        # Whoever publishes can cause it, as often as they like.
        log.stranger(
            "a notification is not sent",
            subscription=out.subscription,
            topic=message.topic,
            why=why,
        )
        await self._say_refused(message, why)

    async def _say_refused(self, message: Message, why: str) -> None:
        """Send what cannot pass to where such things go, if there is such a topic."""
        to = self._config.mqtt.refused
        if to is None:
            return
        # If it is too large for there too, it is at least said there.
        without = replace(message, payload=b"")
        for one in (message, without, replace(without, properties=())):
            pause = _AGAIN_FIRST
            while (sent := await self._mqtt.publish(_refused(to, one, why))).why:
                if sent.is_never:
                    break
                await asyncio.sleep(pause)
                pause = min(2 * pause, _AGAIN_LAST)
            else:
                return
        log.error("not taken as refused either: lost", why=sent.why)


def _refused(to: str, message: Message, why: str) -> Message:
    """What is said of a message that cannot pass, with all of it."""
    # The topic may be what is wrong: a property has no more room than a topic.
    topic = message.topic if is_text(message.topic) else message.topic[:_SHOWN]
    said = (*message.properties, ("topic", topic), ("why", why[:_SHOWN]))
    return Message(to, message.payload, message.content_type, said)


def _is_named(event: Event) -> bool:
    """Can it be known when it comes again?"""
    return event.id is not None and event.source is not None
