"""How does one speak with an MQTT broker, whatever becomes of connections?

The session there goes on under its name: what was published for us and not acknowledged comes
again. paho-mqtt speaks the protocol, in a thread of its own, and connects again by itself; what it
calls back with is handed to our loop.

Which way it may err: a message may come twice, never not at all, if it was published with a quality
of service of 1 or 2 and the session was not lost. One of quality 0 is lost when there is no room.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from driftline.bridge.config import MqttConfig
from driftline.bridge.messages import PACKET_MOST, Message, why_never
from driftline.errors import NotAllowed, NotAuthenticated, NotSupported, Unreachable
from driftline.net.logs import Log

if TYPE_CHECKING:
    from paho.mqtt.client import Client

log = Log("driftline.bridge")

UNHAD_MOST = 500
"""So many messages may have come that were not acknowledged; the MQTT broker waits with more."""
UNSURE_MOST = 10_000
"""So many that nobody will send again wait to be published; then the next are lost, and counted."""
_SENT_MOST = 20
"""So many messages are on their way to the MQTT broker at a time, if it takes as many."""
_LEFT_MOST = 8
"""So many topic filters are unsubscribed from together: some brokers take no more."""
_ALIVE = 30
"""Seconds after which each end asks whether the other is there."""
_AGAIN_MOST = 30
"""Seconds between two attempts to connect, at most."""


_NEVER = frozenset({0x87, 0x90, 0x95, 0x99})
"""Not authorized, no topic, too large, no such payload: the same is answered however often."""


class Heard(NamedTuple):
    """A message that came, and what its acknowledgement must say."""

    message: Message
    number: int
    quality: int
    life: int
    """Of the connection that it came by: it is acknowledged there or, as it comes again, later."""
    came_by: tuple[int, ...] = ()
    """The numbers of the subscriptions that it was sent for, if the MQTT broker says them."""


class Wanted(NamedTuple):
    """What is subscribed to."""

    topic: str
    called: int
    """The number by which what comes by it says so."""
    retained: bool = True
    """Also what was retained there before, if the session has not subscribed to it?"""


class _Takes(NamedTuple):
    """What an MQTT broker takes, as it says when we connect: it may be another each time."""

    packet_most: int = PACKET_MOST
    at_once: int = _SENT_MOST
    retains: bool = True

    @classmethod
    def of(cls, said: Any) -> _Takes:
        return cls(
            getattr(said, "MaximumPacketSize", PACKET_MOST),
            min(_SENT_MOST, getattr(said, "ReceiveMaximum", _SENT_MOST)),
            bool(getattr(said, "RetainAvailable", 1)),
        )

    def why_never(self, message: Message, properties: bytes) -> str:
        """Why it will not take a message; "": it may."""
        if message.retain and not self.retains:
            return "it is to be retained, and the broker retains nothing"
        return why_never(message, properties, self.packet_most)


class Sent(NamedTuple):
    """What became of a message that was to be published."""

    why: str = ""
    """Why it was not taken; "": it was."""
    is_never: bool = False
    """Will it never be?"""


class Mqtt:
    """A session with an MQTT broker. `heard` are the messages that have come, in their order."""

    def __init__(self, config: MqttConfig, wanted: Sequence[Wanted]) -> None:
        self._config = config
        self._wanted = wanted
        self._asked: dict[int, str] = {}
        """The subscriptions of this connection that are not answered."""
        self.heard: asyncio.Queue[Heard] = asyncio.Queue()
        self.lost = 0
        """Messages of quality 0 for which there was no room."""
        self.denied: set[str] = set()
        """What we were let subscribe to once, and then not any more."""
        self._client = self._made()
        self._loop = asyncio.get_running_loop()
        self._up: asyncio.Future[None] = self._loop.create_future()
        self._problem = "it does not answer"
        self._sent: dict[int, asyncio.Future[Sent]] = {}
        self._takes = _Takes()
        # A number may mean another message on the next connection, so nobody may acknowledge while
        # connections change.
        self._changing = threading.Lock()
        self._life = 0

    def _made(self) -> Client:
        try:
            from paho.mqtt.client import Client, MQTTv5
            from paho.mqtt.enums import CallbackAPIVersion
        except ImportError:
            raise NotSupported("MQTT", "it needs paho-mqtt: pip install driftline[mqtt]") from None

        _read_all_answers()
        config = self._config
        client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=config.session,
            protocol=MQTTv5,
            manual_ack=True,
        )
        if config.user is not None:
            client.username_pw_set(config.user, config.password())
        if (tls := config.tls) is not None:
            client.tls_set_context(tls)
        client.reconnect_delay_set(1, _AGAIN_MOST)
        client.on_connect = self._connected
        client.on_connect_fail = self._not_connected
        client.on_disconnect = self._disconnected
        client.on_subscribe = self._subscribed
        client.on_message = self._came
        client.on_publish = self._taken
        return client

    async def open(self, within: float) -> Mqtt:
        """Connect; `Unreachable` if nobody answers in time, `NotAuthenticated` if we may not."""
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties: Any = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = self._config.keep
        properties.ReceiveMaximum = UNHAD_MOST
        server = self._config.server
        self._client.connect_async(
            server.host, server.port, _ALIVE, clean_start=False, properties=properties
        )
        self._client.loop_start()
        try:
            async with asyncio.timeout(within):
                await asyncio.shield(self._up)
        except TimeoutError:
            await self.close()
            raise Unreachable(self._config.address, self._problem) from None
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """End the connection; the session goes on."""
        self._client.disconnect()
        await self._loop.run_in_executor(None, self._client.loop_stop)

    async def __aenter__(self) -> Mqtt:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # From our loop

    @property
    def is_up(self) -> bool:
        """Is there a connection just now?"""
        return self._client.is_connected()

    def acknowledge(self, heard: Heard) -> None:
        """It was dealt with, and need not come again."""
        if not heard.quality:
            return
        with self._changing:
            if heard.life == self._life:
                self._client.ack(heard.number, heard.quality)

    def is_stale(self, heard: Heard) -> bool:
        """Will it come again, whatever is done with it now?"""
        return heard.quality > 0 and heard.life != self._life

    def leave(self, topics: Sequence[str]) -> None:
        """Subscribe to these topic filters no longer, if the session does."""
        for at in range(0, len(topics), _LEFT_MOST):
            self._client.unsubscribe([*topics[at : at + _LEFT_MOST]])

    def publish(self, message: Message) -> asyncio.Future[Sent]:
        """Publish; the future says when it was taken, or why it was not."""
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties: Any = Properties(PacketTypes.PUBLISH)
        properties.ContentType = message.content_type
        properties.UserProperty = list(message.properties)
        found: asyncio.Future[Sent] = self._loop.create_future()
        try:
            # Before the library has it: that would send it again on each connection.
            if why := self._takes.why_never(message, properties.pack()):
                raise ValueError(why)
            sent = self._client.publish(
                message.topic, message.payload, 1, message.retain, properties
            )
        except (ValueError, struct.error) as problem:
            found.set_result(Sent(str(problem), is_never=True))
            return found
        self._sent[sent.mid] = found
        return found

    # From the thread of the library

    def _later(self, what: Callable[..., None], *given: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(what, *given)

    def _connected(self, client: Client, _: object, flags: Any, code: Any, said: Any) -> None:
        if code.is_failure:
            self._later(self._refused, str(code))
            return
        self._takes = _Takes.of(said)
        self._sort_out(client)
        with self._changing:
            self._life += 1
            is_first = self._life == 1
        if not is_first and not flags.session_present and self._wanted:
            log.warning("the session was lost, and what was published meanwhile with it")
        if not self._wanted:
            self._later(self._ready)
            return
        self._asked.clear()
        has_numbers = bool(getattr(said, "SubscriptionIdentifierAvailable", 1))
        if not has_numbers and len(self._wanted) > 1:
            log.warning("the MQTT broker names no subscriptions: what fits several may come twice")
        for one in self._wanted:
            self._subscribe(one, has_numbers)

    def _sort_out(self, client: Client) -> None:
        """Keep back what is about to be sent again, and this broker does not take, or not at once.

        It would end the connection, and the next ones for the same. What is published right now, by
        what was taken before, may do so once.
        """
        from paho.mqtt.enums import MessageState

        with client._out_message_mutex:
            # On a new connection the library sends all at once, however many may be on their way.
            client._max_inflight_messages = self._takes.at_once
            at_once = 0
            for number, one in [*client._out_messages.items()]:
                message = Message(one.topic, bytes(one.payload), retain=one.retain)
                packed = b"\0" if one.properties is None else one.properties.pack()
                if why := self._takes.why_never(message, packed):
                    del client._out_messages[number]
                    self._later(self._sent_was, number, Sent(why, is_never=True))
                    continue
                if at_once >= self._takes.at_once:
                    one.state = MessageState.MQTT_MS_QUEUED
                at_once += 1

    def _subscribe(self, wanted: Wanted, has_numbers: bool) -> None:
        """Subscribe to one: a number is for all that is subscribed to together."""
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties
        from paho.mqtt.subscribeoptions import SubscribeOptions

        # Not what we publish ourselves. What is retained is no news each time that we come back;
        # and only what is sent for that reason says that it was retained.
        first, never = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB, SubscribeOptions.RETAIN_DO_NOT_SEND
        options = SubscribeOptions(
            qos=1,
            noLocal=True,
            retainAsPublished=False,
            retainHandling=first if wanted.retained else never,
        )
        properties: Any = Properties(PacketTypes.SUBSCRIBE)
        if has_numbers:
            properties.SubscriptionIdentifier = wanted.called
        _, number = self._client.subscribe(wanted.topic, options=options, properties=properties)
        if number is not None:  # There is a connection still.
            self._asked[number] = wanted.topic

    def _not_connected(self, client: Client, _: object) -> None:
        self._later(self._note, "it cannot be reached")

    def _disconnected(self, client: Client, _: object, __: Any, code: Any, ___: object) -> None:
        with self._changing:
            self._life += 1
        if code.is_failure:
            log.warning("connection to the MQTT broker lost", why=str(code))

    def _subscribed(
        self, client: Client, _: object, number: int, codes: Sequence[Any], __: object
    ) -> None:
        topic = self._asked.pop(number, None)
        if topic is None:
            return
        if any(code.is_failure for code in codes):
            self._later(self._denied, topic)
        elif not self._asked:
            self._later(self._ready)

    def _came(self, client: Client, _: object, came: Any) -> None:
        properties = came.properties
        try:
            message = Message(
                came.topic,
                bytes(came.payload),
                getattr(properties, "ContentType", ""),
                tuple(getattr(properties, "UserProperty", ())),
                bool(came.retain),
            )
        except UnicodeDecodeError:
            return  # No broker lets such a topic pass.
        came_by = tuple(getattr(properties, "SubscriptionIdentifier", ()))
        self._later(self._hear, Heard(message, came.mid, came.qos, self._life, came_by))

    def _taken(self, client: Client, _: object, number: int, code: Any, __: object) -> None:
        sent = Sent(str(code), code.value in _NEVER) if code.is_failure else Sent()
        self._later(self._sent_was, number, sent)

    # On our loop again

    def _ready(self) -> None:
        if not self._up.done():
            self._up.set_result(None)
        log.info("connected to the MQTT broker", address=self._config.address)

    def _refused(self, why: str) -> None:
        self._problem = why
        if not self._up.done():
            self._up.set_exception(NotAuthenticated(why))
        else:
            log.warning("the MQTT broker refuses us", why=why)

    def _denied(self, topic: str) -> None:
        if not self._up.done():
            what = f"subscribe to {topic}"
            self._up.set_exception(NotAllowed(self._config.user or self._config.session, what))
        else:
            self.denied.add(topic)
            log.error("the MQTT broker does not let us subscribe any more", topic=topic)

    def _note(self, problem: str) -> None:
        self._problem = problem

    def _hear(self, heard: Heard) -> None:
        if not heard.quality and self.heard.qsize() >= UNSURE_MOST:
            if not self.lost:
                log.warning("messages of quality 0 are lost: they come faster than they are taken")
            self.lost += 1
            return
        self.heard.put_nowait(heard)

    def _sent_was(self, number: int, sent: Sent) -> None:
        found = self._sent.pop(number, None)
        if found is not None and not found.done():
            found.set_result(sent)


def _read_all_answers() -> None:
    """Let the library take every answer to a message that it knows as an answer to something.

    Mosquitto says that a packet is too large, which is no answer to a message [MQTT 5 §3.4.2.1].
    The library would end the connection, and send the message again on the next, for ever.
    """
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.reasoncodes import ReasonCode

    for code, names in ReasonCode.names.items():
        kinds = [*names.values()]
        if code >= 0x80 and not any(PacketTypes.PUBACK in each for each in kinds):
            kinds[0].append(PacketTypes.PUBACK)
