"""Does what MQTT will never take hold up nothing, and is it said why? With a real Mosquitto."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

import driftline as dl
from driftline.bridge import running as bridge_running
from driftline.bridge.config import BridgeConfig, BrokerConfig, MqttConfig
from driftline.bridge.messages import Message
from driftline.bridge.mqtt import Heard, Mqtt, Sent
from driftline.bridge.running import Bridge
from driftline.errors import InvalidValue
from tests.bridge.mosquitto import SOON, Mosquitto, Person, needs_mosquitto
from tests.net.processes import Brokers
from tests.processes import Running


def bridged(folder: Path, broker: Any, mosquitto: Mosquitto, topic: str, refused: str) -> Running:
    file = folder / "bridge.toml"
    file.write_text(
        f"""
[broker]
address = "{broker.address}"

[mqtt]
address = "{mosquitto.address}"
session = "bridge"
{refused}

[[in]]
topic = "in/#"
type = "heard"

[[out]]
subscription = "rooms"
text = "SELECT * FROM reading"
topic = "{topic}"
form = "values"

[[out]]
subscription = "other"
text = "SELECT * FROM other"
topic = "other"
form = "values"
"""
    )
    running = Running(folder, "bridge", file, "--json")
    running.object()
    return running


def passed_by(running: Running) -> Any:
    running.process.terminate()
    while (found := running.object()).pop("status") != "ended":
        pass
    assert running.wait() == 0
    return found


def reading(n: int, **said: Any) -> dl.Event:
    return dl.Event("reading", {"n": n, **said})


def n_of(message: Any) -> Any:
    return json.loads(message.payload)["n"]


def until(client: Any, name: str = "rooms") -> None:
    """Wait until all was had."""

    async def none() -> None:
        while (await asyncio.to_thread(client.durables.get, name)).kept:
            await asyncio.sleep(0.05)

    asyncio.run(asyncio.wait_for(none(), SOON))


@needs_mosquitto
@pytest.mark.parametrize("refused", ["", 'refused = "refused"'], ids=["logged", "sent"])
def test_what_no_broker_takes_is_set_aside_and_the_others_go_on_in_order(tmp_path, refused):
    settings = ("allow_anonymous true", "max_packet_size 20000")
    with Mosquitto(tmp_path, *settings) as mosquitto, Brokers(tmp_path) as brokers:
        broker = brokers.start("b")
        # Nothing of a room leaves the whole topic empty.
        running = bridged(tmp_path, broker, mosquitto, "{room}", refused)
        with (
            Person(mosquitto, "+") as person,
            dl.connect(broker.address) as client,
            client.subscribe("SELECT * FROM heard") as heard,
        ):
            client.publish_many(
                [
                    reading(1, room="a"),
                    reading(2),
                    reading(3, room="$SYS"),
                    reading(4, room="x" * 70_000),
                    reading(5, room="a", text="x" * 30_000),
                    reading(6, room="b"),
                ]
            )
            client.publish(dl.Event("other", {"n": 7}))
            taken: dict[str, list[int]] = {"rooms": [], "other": []}
            why: dict[str, dict[str, str]] = {}
            while len(taken["rooms"]) < 2 or not taken["other"] or len(why) < (4 if refused else 0):
                message = person.next()
                if message.topic == "refused":
                    said = dict(message.properties.UserProperty)
                    assert (said["kind"], said["id"].partition("-")[0]) == ("event", "rooms")
                    why[said["topic"]] = said
                    if message.payload:
                        assert n_of(message) in (2, 3)
                else:
                    taken["other" if message.topic == "other" else "rooms"].append(n_of(message))
            assert taken == {"rooms": [1, 6], "other": [7]}
            if refused:
                # Of one that is too long not all can be said.
                assert why.keys() == {"", "$SYS", "x" * 1000, "a"}
                assert "empty" in why[""]["why"]
                assert "begins with $" in why["$SYS"]["why"]
                assert "65,535" in why["x" * 1000]["why"]
                assert "20,000" in why["a"]["why"]
            until(client)
            # And the other direction goes on, too.
            person.publish("in/x", "1")
            assert heard.next(SOON).values["value"] == 1
        assert passed_by(running) == {"published": 1, "refused": 4, "told": 3, "lost": 0}
        assert "not sent" in running.err


@needs_mosquitto
def test_what_comes_and_is_refused_is_said_though_with_the_reason_it_is_too_large(tmp_path):
    settings = ("allow_anonymous true", "max_packet_size 20000")
    with Mosquitto(tmp_path, *settings) as mosquitto, Brokers(tmp_path) as brokers:
        broker = brokers.start("b")
        running = bridged(tmp_path, broker, mosquitto, "t", 'refused = "refused"')
        with Person(mosquitto, "refused") as person:
            cloud = "application/cloudevents+json"
            person.publish("in/1", "x" * 100, cloud, a="b")
            person.publish("in/2", "x" * 19_900, cloud, a="b")
            person.publish("in/3", "x", cloud, a="b" * 19_850)
            for n, size, others in ((1, 100, ["a"]), (2, 0, ["a"]), (3, 0, [])):
                message = person.next()
                said = dict(message.properties.UserProperty)
                assert (len(message.payload), said["topic"]) == (size, f"in/{n}")
                assert [*said] == [*others, "topic", "why"]
        assert passed_by(running) == {"published": 0, "refused": 3, "told": 0, "lost": 0}
        assert mosquitto.acknowledged() == 3
        assert "lost" not in running.err


def test_what_is_refused_and_not_taken_just_now_is_said_later(monkeypatch):
    """Nor is it acknowledged before: it would be nowhere."""

    class Busy:
        """An MQTT broker that takes nothing at first."""

        def __init__(self) -> None:
            self.answers = [Sent("Quota exceeded"), Sent("Quota exceeded"), Sent()]
            self.had: list[Heard] = []

        def publish(self, message: Message) -> asyncio.Future[Sent]:
            assert (message.topic, message.payload) == ("refused", b"no event")
            assert not self.had
            found: asyncio.Future[Sent] = asyncio.get_running_loop().create_future()
            found.set_result(self.answers.pop(0))
            return found

        def acknowledge(self, heard: Heard) -> None:
            self.had.append(heard)

    async def test() -> None:
        mqtt = MqttConfig("mqtt://127.0.0.1", "x", refused="refused")
        bridge = Bridge(BridgeConfig(BrokerConfig("driftline://127.0.0.1"), mqtt))
        busy: Any = Busy()
        bridge._mqtt = busy
        heard = Heard(Message("in/x", b"no event"), 1, 1, 1)
        bridge._refuse(heard, InvalidValue("event", "one", "none"))
        await asyncio.wait_for(asyncio.gather(*bridge._saying), 10)
        await asyncio.sleep(0)
        assert busy.had == [heard]
        busy.answers = [Sent("Quota exceeded"), Sent()]
        busy.had.clear()
        await bridge._say_refused(heard.message, "it is none")
        assert not busy.answers

    monkeypatch.setattr(bridge_running, "_AGAIN_FIRST", 0.01)
    asyncio.run(test())


@needs_mosquitto
def test_what_this_broker_answers_that_it_never_takes_is_not_sent_again(tmp_path):
    acl = tmp_path / "acl"
    acl.write_text("topic readwrite ok/#\ntopic readwrite refused\ntopic readwrite other\n")
    # Of this limit it says nothing beforehand.
    settings = ("allow_anonymous true", f"acl_file {acl}", "message_size_limit 5000")
    with Mosquitto(tmp_path, *settings) as mosquitto, Brokers(tmp_path) as brokers:
        broker = brokers.start("b")
        running = bridged(tmp_path, broker, mosquitto, "{room}/t", 'refused = "refused"')
        with (
            Person(mosquitto, "ok/#", "refused") as person,
            dl.connect(broker.address) as client,
        ):
            client.publish_many(
                [
                    reading(1, room="ok"),
                    reading(2, room="no"),
                    reading(3, room="ok", text="x" * 9_000),
                    reading(4, room="ok"),
                ]
            )
            taken, why = [], {}
            while len(taken) < 2 or len(why) < 2:
                message = person.next()
                if message.topic == "refused":
                    said = dict(message.properties.UserProperty)
                    why[said["topic"]] = said["why"]
                else:
                    taken.append(n_of(message))
            assert taken == [1, 4]
            assert why == {"no/t": "Not authorized", "ok/t": "Packet too large"}
            until(client)
        assert passed_by(running) == {"published": 0, "refused": 2, "told": 2, "lost": 0}


@needs_mosquitto
def test_a_packet_is_as_large_as_is_said_to_the_byte(tmp_path):
    """One byte more than a broker takes would end the connection, and again each time."""

    async def test() -> None:
        config = MqttConfig(mosquitto.address, "sizes")
        async with await Mqtt(config, []).open(SOON) as one:
            for topic, properties in (("x", ()), ("é/y", (("a", "b" * 200), ("c", "d")))):
                empty = Message(topic, b"", "application/json", properties)
                least, most = 0, 20_000
                while least < most:  # The largest that is not refused by ourselves.
                    size = (least + most + 1) // 2
                    sent = await one.publish(Message(topic, bytes(size), "x", properties))
                    least, most = (least, size - 1) if sent.is_never else (size, most)
                assert 19_000 < least < 20_000
                assert await one.publish(empty) == Sent()
        assert "oversize" not in mosquitto.log.lower()
        assert mosquitto.log.count("New client connected") == 1

    settings = ("allow_anonymous true", "max_packet_size 20000")
    with Mosquitto(tmp_path, *settings) as mosquitto:
        asyncio.run(asyncio.wait_for(test(), 60))


@needs_mosquitto
@pytest.mark.parametrize(
    ("setting", "why"),
    [("max_packet_size 20000", "20,000"), ("retain_available false", "retains nothing")],
)
def test_what_a_broker_that_came_back_takes_no_longer_is_set_aside(tmp_path, setting, why):
    """It would end each connection on which it is sent again."""

    async def test(mosquitto: Mosquitto) -> None:
        kept = Message("x", b"kept")
        large = Message("x", bytes(30_000), retain=True)
        config = MqttConfig(mosquitto.address, "sizes", keep=3600)
        async with await Mqtt(config, []).open(SOON) as one:
            assert await one.publish(large) == Sent()
            mosquitto.end()
            while one.is_up:
                await asyncio.sleep(0.05)
            waiting = [one.publish(each) for each in (kept, large, kept, large, kept)]
            mosquitto.say(setting)
            mosquitto.start()
            sent = await asyncio.gather(*waiting)
            assert [each.is_never for each in sent] == [False, True, False, True, False]
            assert sent[0] == sent[2] == sent[4] == Sent()
            assert why in sent[1].why
            assert (await one.publish(large)).why == sent[1].why
            assert await one.publish(kept) == Sent()
        assert mosquitto.log.count("New client connected") == 2

    with Mosquitto(tmp_path) as mosquitto:
        asyncio.run(asyncio.wait_for(test(mosquitto), 60))


def test_no_more_is_sent_at_once_than_the_broker_takes():
    """Neither of what is new nor of what goes again: a strict broker would end the connection."""

    async def packet(reader: asyncio.StreamReader) -> tuple[int, bytes]:
        kind, size, shift = (await reader.readexactly(1))[0] >> 4, 0, 0
        while True:
            (byte,) = await reader.readexactly(1)
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return kind, await reader.readexactly(size)

    lives: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lives.append(0)
        assert (await packet(reader))[0] == 1
        # It takes two at once.
        writer.write(bytes((0x20, 6, 0, 0, 3, 0x21, 0, 2)))
        waiting: list[bytes] = []
        most = 0
        while not (len(lives) == 1 and lives[0] >= 10):
            # Nothing is said before all have come that come by themselves.
            try:
                async with asyncio.timeout(0.3 if waiting else SOON):
                    kind, said = await packet(reader)
            except TimeoutError:
                number = waiting.pop(0)
                lives[-1] += 1
                writer.write(bytes((0x40, 2)) + number)
                continue
            except asyncio.IncompleteReadError:
                break
            if kind == 3:
                at = 2 + int.from_bytes(said[:2], "big")
                waiting.append(said[at : at + 2])
                most = max(most, len(waiting))
                at_once.append(most)
            elif kind == 14:
                break
        writer.close()

    at_once: list[int] = []

    async def test() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            config = MqttConfig(f"mqtt://127.0.0.1:{port}", "many")
            async with await Mqtt(config, []).open(SOON) as one:
                waiting = [one.publish(Message("x", b"%d" % n)) for n in range(25)]
                assert await asyncio.gather(*waiting) == [Sent()] * 25
        assert len(lives) == 2
        assert max(at_once) == 2

    asyncio.run(asyncio.wait_for(test(), 60))


@pytest.mark.parametrize(
    ("code", "is_never"),
    [(0x87, True), (0x90, True), (0x95, True), (0x99, True), (0x80, False), (0x97, False)],
)
def test_which_answers_will_never_be_others(code, is_never):
    async def test() -> None:
        one = Mqtt(MqttConfig("mqtt://127.0.0.1", "x"), [])
        sent = one.publish(Message("t", b""))
        (number,) = one._sent
        said: Any = ReasonCode(PacketTypes.PUBACK, identifier=code)
        one._taken(one._client, None, number, said, None)
        assert await asyncio.wait_for(sent, 5) == Sent(str(said), is_never)

    asyncio.run(test())


@pytest.mark.parametrize(
    "message",
    [
        Message("t/+", b""),
        Message("t", b"", "x" * 70_000),
        Message("t", b"", "", (("a", "x" * 70_000),)),
        Message("t", b"", "", (("a", "\ud800"),)),
    ],
    ids=["topic", "type", "property", "surrogate"],
)
def test_what_the_library_cannot_say_is_never_said(message):
    async def test() -> None:
        one = Mqtt(MqttConfig("mqtt://127.0.0.1", "x"), [])
        sent = await asyncio.wait_for(one.publish(message), 5)
        assert sent.is_never
        assert sent.why
        # It must not be what is sent first on the next connection.
        assert not one._client._out_messages

    asyncio.run(test())
