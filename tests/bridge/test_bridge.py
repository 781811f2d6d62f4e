"""Does everything pass between a broker and MQTT, whatever is killed? With a real Mosquitto."""

from __future__ import annotations

import asyncio
import json
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import driftline as dl
from driftline.bridge import mqtt as session
from driftline.bridge.config import MqttConfig
from tests.bridge.mosquitto import SOON, Mosquitto, Person, needs_mosquitto
from tests.net.cutting import Cutting
from tests.net.processes import Brokers
from tests.processes import Running, until

pytestmark = needs_mosquitto

CLOUD = "application/cloudevents+json"


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    with Mosquitto(tmp_path) as found:
        yield found


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Brokers]:
    with Brokers(tmp_path) as found:
        yield found


class Bridged:
    """A bridge as a process that can be killed and run again."""

    def __init__(
        self, folder: Path, broker: Any, mosquitto: Mosquitto, *, more: str = "", **other: str
    ) -> None:
        session, come = other.get("session", "bridge"), other.get("come", "")
        address = other.get("at", broker.address)
        self._folder = folder
        self._file = folder / "bridge.toml"
        self._file.write_text(
            f"""
[broker]
address = "{address}"

[mqtt]
address = "{mosquitto.address}"
session = "{session}"
refused = "refused"
{more}

[[in]]
topic = "sensors/+/temperature"
type = "reading"
{come}

[[in]]
topic = "alerts/#"
type = "heard"

[[out]]
subscription = "hot"
text = "SELECT * FROM reading WHERE value > :limit"
params = {{ limit = 30 }}
topic = "alerts/{{room}}"

[[out]]
subscription = "plain"
text = "SELECT room, value FROM reading WHERE value > 50"
topic = "plain"
form = "values"
"""
        )

    def say(self, more: str) -> None:
        """Say more at the end of its file."""
        with self._file.open("a") as file:
            file.write(f"\n{more}")

    def start(self, more: tuple[str, ...] = (), **env: str) -> Running:
        running = Running(self._folder, "bridge", self._file, "--json", *more, **env)
        running.facts = running.object()  # type: ignore[attr-defined]
        return running


def reading(n: int, value: float = 40.0) -> str:
    data = {"room": "attic", "value": value, "n": n}
    said = {"specversion": "1.0", "type": "reading", "source": "/sensor", "id": f"{n}"}
    return json.dumps({**said, "data": data})


def passed_by(running: Running) -> Any:
    """End it, and what it says has passed."""
    running.process.terminate()
    while (found := running.object()).pop("status") != "ended":
        pass
    assert running.wait() == 0
    return found


def values_of(message: Any) -> Any:
    return json.loads(message.payload)["data"]["values"]


def test_messages_are_published_and_what_is_told_goes_to_topics(tmp_path, mosquitto, brokers):
    broker = brokers.start("b")
    running = Bridged(tmp_path, broker, mosquitto).start()
    assert running.facts["out"] == ["hot", "plain"]
    with (
        Person(mosquitto, "alerts/#", "plain", "refused") as person,
        dl.connect(broker.address) as client,
        client.subscribe("SELECT * FROM reading") as seen,
        client.subscribe("SELECT * FROM heard") as looped,
    ):
        person.publish("sensors/attic/temperature", '{"room": "attic/left", "value": 31}')
        alert = person.next()
        assert alert.topic == "alerts/attic%2Fleft"
        assert alert.properties.ContentType == CLOUD
        assert dict(alert.properties.UserProperty)["kind"] == "event"
        assert values_of(alert)["mqtt_topic"] == "sensors/attic/temperature"
        assert seen.next(SOON).values["value"] == 31
        # Not over the limit; then it moves, under a bridge that runs.
        person.publish("sensors/attic/temperature", '{"room": "attic", "value": 25}')
        assert seen.next(SOON).values["value"] == 25
        client.set("hot", {"limit": 20})
        person.publish("sensors/attic/temperature", "26")
        assert seen.next(SOON).values["value"] == 26
        alert = person.next()
        assert (alert.topic, values_of(alert)["value"]) == ("alerts/", 26)
        # What cannot be an event is not lost, and holds up nothing.
        person.publish("sensors/attic/temperature", "[1, 2]", traceparent="none")
        refused = person.next()
        assert (refused.topic, refused.payload) == ("refused", b"[1, 2]")
        said = dict(refused.properties.UserProperty)
        assert said["topic"] == "sensors/attic/temperature"
        assert "wanted" in said["why"]
        wide = json.dumps(dict.fromkeys((f"a{at}" for at in range(70_000)), 1))
        person.publish("sensors/attic/temperature", wide)
        refused = person.next()
        assert (refused.topic, refused.payload) == ("refused", wide.encode())
        person.publish("sensors/attic/temperature", '{"room": "attic", "value": 51}')
        both = {person.next().topic: None, person.next().topic: None}
        assert both.keys() == {"alerts/attic", "plain"}
        # What the bridge itself has published does not come back to it.
        with pytest.raises(TimeoutError):
            looped.next(0.5)
        person.publish("alerts/mine", "1")
        assert looped.next(SOON).values["mqtt_topic"] == "alerts/mine"
    assert passed_by(running) == {"published": 5, "refused": 2, "told": 4, "lost": 0}
    assert "not published" in running.err


def test_when_it_is_ready_whoever_is_to_be_told_of_something_is(tmp_path, mosquitto, brokers):
    broker = brokers.start("b")
    bridged = Bridged(tmp_path, broker, mosquitto)
    for at in range(50):
        bridged.say(f"""
[[out]]
subscription = "s{at}"
text = "SELECT * FROM heard"
topic = "told/{at}"
""")
    with dl.connect(broker.address) as client:
        running = bridged.start()
        assert client.durables.get("s49").text == "SELECT * FROM heard"
        assert running.end() == 0


def test_what_the_bridge_has_not_said_that_it_had_comes_again(tmp_path, mosquitto, brokers):
    """kill -9 of the bridge, in turns with messages; each arrives, once by source and id."""
    broker = brokers.start("b")
    bridged = Bridged(tmp_path, broker, mosquitto)
    bridged.start().end()  # Both sides know of it now.
    heard: dict[int, int] = {}
    ids: dict[str, int] = {}
    with (
        Person(mosquitto, "alerts/#") as person,
        dl.connect(broker.address) as client,
        client.subscribe("SELECT n FROM reading", durable="all") as seen,
    ):
        for n in range(0, 60, 20):
            running = bridged.start() if n else None  # At first nobody is there to hear.
            for one in range(n, n + 20):
                person.publish("sensors/attic/temperature", reading(one), CLOUD)
            if running is not None:
                running.end(signal.SIGKILL)
        running = bridged.start()
        while len(heard) < 60:
            message = person.next()
            n = values_of(message)["n"]
            heard[n] = heard.get(n, 0) + 1
            ids.setdefault(dict(message.properties.UserProperty)["id"], n)
        assert sorted(heard) == [*range(60)]
        # What came twice has the id that it had: one each.
        assert sorted(ids.values()) == [*range(60)]
        # And our broker was told of each once, by source and id, in order.
        told = [seen.next(SOON).values["n"] for _ in range(60)]
        assert told == [*range(60)]
        with pytest.raises(TimeoutError):
            seen.next(0.3)
        assert running.end() == 0


def test_parts_of_what_was_cut_off_in_the_middle_come_again_under_their_ids(
    tmp_path, mosquitto, brokers
):
    broker = brokers.start("b")
    with (
        Cutting(int(broker.address.rpartition(":")[2])) as line,
        Person(mosquitto, "kinds") as person,
        dl.connect(broker.address) as client,
    ):
        client.declare("box", "k")
        client.publish_many(dl.Event("box", {"k": k, "x": f"{k}" * 200_000}) for k in range(10))
        bridged = Bridged(tmp_path, broker, mosquitto, at=f"driftline://127.0.0.1:{line.port}")
        bridged.say("""
[[out]]
subscription = "kinds"
text = "SELECT DISTINCT x FROM box WHERE k < :limit"
params = { limit = 0 }
topic = "kinds"
""")
        running = bridged.start()
        line.cut_after(1_000_000)
        client.set("kinds", {"limit": 10})
        heard: dict[str, set[str]] = {}
        while len(heard) < 10:
            message = person.next()
            said = heard.setdefault(dict(message.properties.UserProperty)["id"], set())
            said.add(values_of(message)["x"][0])
        assert line.cut.is_set()
        assert sorted(heard.values(), key=min) == [{f"{k}"} for k in range(10)]
        assert person.heard.empty()
        assert running.end() == 0


def test_of_very_much_that_waited_what_has_gone_does_not_come_again(tmp_path, mosquitto, brokers):
    broker = brokers.start("b")
    bridged = Bridged(tmp_path, broker, mosquitto)
    bridged.start().end()  # Both sides know of it now.
    with Person(mosquitto, "alerts/#") as person, dl.connect(broker.address) as client:
        data = {"room": "attic", "value": 40.0}
        client.publish_many(dl.Event("reading", {**data, "n": n}) for n in range(5_000))
        running = bridged.start()
        heard = [values_of(person.next())["n"] for _ in range(500)]
        running.end(signal.SIGKILL)
        while not person.heard.empty():
            heard.append(values_of(person.next())["n"])
        assert heard == [*range(len(heard))]
        # What was on its way, and no more.
        until(lambda: client.durables.get("hot").kept <= 5_000 - len(heard) + 300)


def test_a_device_cannot_let_anothers_message_be_passed_over(tmp_path, mosquitto, brokers):
    """By whatever source and id it calls its own: topics are what an MQTT broker guards."""
    broker = brokers.start("b")
    bridged = Bridged(tmp_path, broker, mosquitto)
    running = bridged.start()
    topics = ("sensors/cellar/temperature", "sensors/attic/temperature")
    with (
        Person(mosquitto) as person,
        dl.connect(broker.address) as client,
        client.subscribe("SELECT mqtt_topic FROM reading", durable="all") as seen,
    ):
        for topic in topics:
            person.publish(topic, reading(1), CLOUD)
        assert [seen.next(SOON).values["mqtt_topic"] for _ in topics] == [*topics]
        # What comes again by its own topic is passed over still, whoever has been killed since.
        running.end(signal.SIGKILL)
        broker.kill()
        broker.restart()
        running = bridged.start()
        for topic in (*topics, "sensors/hall/temperature"):
            person.publish(topic, reading(1), CLOUD)
        assert seen.next(SOON).values["mqtt_topic"] == "sensors/hall/temperature"
        with pytest.raises(TimeoutError):
            seen.next(0.3)
    assert running.end() == 0


def test_both_brokers_go_and_come_back(tmp_path, mosquitto, brokers):
    broker = brokers.start("b")
    bridged = Bridged(tmp_path, broker, mosquitto)
    running = bridged.start()
    with Person(mosquitto, "alerts/#") as person:
        person.publish("sensors/attic/temperature", reading(1), CLOUD)
        assert values_of(person.next())["n"] == 1
        broker.kill()
        # It waits at the bridge, and at the MQTT broker.
        person.publish("sensors/attic/temperature", reading(2), CLOUD)
        broker.restart()
        assert values_of(person.next())["n"] == 2
    mosquitto.end()
    with dl.connect(broker.address) as client:
        # It waits in the durable subscription.
        client.publish(dl.Event("reading", {"room": "attic", "value": 40, "n": 3}))
        mosquitto.start()
        with Person(mosquitto, "alerts/#") as person:
            # It may have gone before we were there to hear it.
            client.publish(dl.Event("reading", {"room": "attic", "value": 40, "n": 4}))
            seen = set()
            while 4 not in seen:
                seen.add(values_of(person.next())["n"])
            person.publish("sensors/attic/temperature", reading(5), CLOUD)
            while 5 not in seen:
                seen.add(values_of(person.next())["n"])
            until(lambda: not client.durables.get("hot").kept)
    assert passed_by(running)["told"] >= 5


def test_what_several_filters_fit_is_published_once_by_the_first(tmp_path, mosquitto, brokers):
    broker = brokers.start("b")
    bridged = Bridged(tmp_path, broker, mosquitto)
    bridged.say('[[in]]\ntopic = "sensors/#"\ntype = "any"\n')
    running = bridged.start()
    with (
        Person(mosquitto) as person,
        dl.connect(broker.address) as client,
        client.subscribe("SELECT * FROM reading") as first,
        client.subscribe("SELECT * FROM any") as second,
    ):
        person.publish("sensors/attic/temperature", '{"n": 1}')
        person.publish("sensors/attic/light", '{"n": 2}')
        assert second.next(SOON).values["n"] == 2
        assert first.next(SOON).values["n"] == 1
        person.publish("sensors/attic/temperature", '{"n": 3}', retain=True)
        assert first.next(SOON).values["n"] == 3
        until(lambda: mosquitto.acknowledged() == 5)  # With both copies of what has some.
        assert passed_by(running)["published"] == 3
        # And so for what waited while nobody was there.
        person.publish("sensors/attic/temperature", '{"n": 4}')
        running = bridged.start()
        assert first.next(SOON).values["n"] == 4
        person.publish("sensors/attic/light", '{"n": 5}')
        assert second.next(SOON).values["n"] == 5
        until(lambda: mosquitto.acknowledged() == 8)
        assert passed_by(running)["published"] == 2


def test_what_is_retained_is_published_when_a_subscription_is_new_or_never(
    tmp_path, mosquitto, brokers
):
    broker = brokers.start("b")
    bridged = Bridged(tmp_path, broker, mosquitto)
    with Person(mosquitto) as person, dl.connect(broker.address) as client:
        seen = client.subscribe("SELECT n, mqtt_retained FROM reading")
        with seen:
            person.publish("sensors/attic/temperature", '{"n": 1}', retain=True)
            running = bridged.start()
            assert seen.next(SOON).values == {"n": 1, "mqtt_retained": True}
            # It is no news: neither to another connection nor to another process.
            mosquitto.end()
            mosquitto.start()
            until(lambda: running.err.count("connected to the MQTT broker") == 2)
            person.publish("sensors/attic/temperature", '{"n": 2}', retain=True)
            assert seen.next(SOON).values == {"n": 2, "mqtt_retained": None}
            until(lambda: mosquitto.acknowledged() == 2)
            assert passed_by(running)["published"] == 2
            running = bridged.start()
            person.publish("sensors/attic/temperature", '{"n": 3}')
            assert seen.next(SOON).values == {"n": 3, "mqtt_retained": None}
            until(lambda: mosquitto.acknowledged() == 3)
            assert passed_by(running)["published"] == 1
    # A session that ends with its connection has only new ones.
    for said, wanted in (("", [2, 4]), ("retained = false", [4])):
        again = Bridged(tmp_path, broker, mosquitto, more="keep = 0", come=said, session="brief")
        with (
            Person(mosquitto) as person,
            dl.connect(broker.address) as client,
            client.subscribe("SELECT n FROM reading") as seen,
        ):
            running = again.start()
            person.publish("sensors/cellar/temperature", '{"n": 4}')
            assert [seen.next(SOON).values["n"] for _ in wanted] == wanted
            assert running.end() == 0


def status_until(running: Running, status: str) -> Any:
    """What it says of itself when that is so."""
    while (found := running.object())["status"] != status:
        pass
    return found


@pytest.mark.parametrize("how", ["killed", "silent"])
def test_while_our_broker_is_away_it_says_so_and_nothing_is_acknowledged(
    tmp_path, mosquitto, brokers, how
):
    broker = brokers.start("b")
    running = Bridged(tmp_path, broker, mosquitto).start()
    with Person(mosquitto, "alerts/#") as person:
        person.publish("sensors/attic/temperature", reading(0), CLOUD)
        assert values_of(person.next())["n"] == 0
        until(lambda: mosquitto.acknowledged() == 1)
        (broker.kill if how == "killed" else broker.pause)()
        for n in range(1, 601):
            person.publish("sensors/attic/temperature", reading(n), CLOUD)
        said = status_until(running, "waiting")
        assert said["waits_for"] == ["broker"]
        assert "waits for broker" in running.err
        # The MQTT broker keeps what is more than it may send.
        until(lambda: mosquitto.log.count("Sending PUBLISH to bridge") == 501)
        assert mosquitto.acknowledged() == 1
        (broker.restart if how == "killed" else broker.resume)()
        heard = [values_of(person.next())["n"] for _ in range(600)]
        assert sorted(heard) == [*range(1, 601)]
        status_until(running, "passing")
        assert "everything passes again" in running.err
        until(lambda: mosquitto.acknowledged() == 601)
    assert passed_by(running)["published"] == 601


def test_what_our_broker_cannot_keep_now_is_published_later(tmp_path, mosquitto, brokers):
    broker = brokers.start("b")
    running = Bridged(tmp_path, broker, mosquitto).start()
    with Person(mosquitto, "alerts/#", "refused") as person:
        person.publish("sensors/attic/temperature", reading(0), CLOUD)
        assert values_of(person.next())["n"] == 0
        until(lambda: mosquitto.acknowledged() == 1)
        # As on a full disk: it can write nothing.
        most, hard = resource.prlimit(broker.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (1, hard))
        person.publish("sensors/attic/temperature", reading(1), CLOUD)
        assert status_until(running, "waiting")["waits_for"] == ["broker"]
        assert mosquitto.acknowledged() == 1
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (most, hard))
        assert values_of(person.next())["n"] == 1
        until(lambda: mosquitto.acknowledged() == 2)
    assert passed_by(running)["published"] == 2


def test_it_says_how_much_has_passed_as_often_as_is_asked(tmp_path, mosquitto, brokers):
    broker = brokers.start("b")
    running = Bridged(tmp_path, broker, mosquitto).start(more=("--every", "0.1"))
    with Person(mosquitto) as person:
        person.publish("sensors/attic/temperature", "1")
        while (found := running.object())["published"] < 1:
            assert found["status"] == "passing"
        assert found["waits_for"] == []
        assert found["lost"] == 0
        mosquitto.end()
        assert status_until(running, "waiting")["waits_for"] == ["mqtt"]
        mosquitto.start()
        status_until(running, "passing")
    assert passed_by(running) == {"published": 1, "refused": 0, "told": 0, "lost": 0}


def test_what_is_configured_no_longer_is_subscribed_to_no_longer(tmp_path, mosquitto, brokers):
    broker = brokers.start("b")
    bridged = Bridged(tmp_path, broker, mosquitto)
    bridged.say('[[in]]\ntopic = "old/+/x"\ntype = "old"\n')
    bridged.say('[[in]]\ntopic = "sensors/#"\ntype = "any"\n')
    assert bridged.start().end() == 0
    Bridged(tmp_path, broker, mosquitto)  # Without these.
    running = bridged.start()
    with (
        Person(mosquitto, "refused") as person,
        dl.connect(broker.address) as client,
        client.subscribe("SELECT * FROM reading") as seen,
    ):
        person.publish("old/attic/x", "1")
        assert person.next().payload == b"1"
        person.publish("sensors/attic/light", "2")
        assert person.next().payload == b"2"
        until(lambda: "\told/+/x" in mosquitto.log and "\tsensors/#" in mosquitto.log)
        until(lambda: mosquitto.acknowledged() == 2)
        person.publish("old/attic/x", "3")
        person.publish("sensors/attic/light", "4")
        person.publish("sensors/attic/temperature", reading(5), CLOUD)
        assert seen.next(SOON).values["n"] == 5
        until(lambda: mosquitto.acknowledged() == 3)
        assert mosquitto.log.count("Sending PUBLISH to bridge") == 3
    assert passed_by(running)["refused"] == 2
    assert "unsubscribed from what is not configured" in running.err


def test_who_may_not_is_told_so(tmp_path, brokers):
    passwords = tmp_path / "passwords"
    passwords.write_text("bridge:geheim\nperson:offen\n")
    subprocess.run(["mosquitto_passwd", "-U", passwords], check=True)
    acl = tmp_path / "acl"
    acl.write_text("user person\ntopic readwrite #\nuser bridge\ntopic readwrite #\n")
    settings = ("allow_anonymous false", f"password_file {passwords}", f"acl_file {acl}")
    with Mosquitto(tmp_path, *settings) as mosquitto:
        broker = brokers.start("b")
        bridged = Bridged(tmp_path, broker, mosquitto, more='user = "bridge"')
        wrong = Running(
            tmp_path, "bridge", tmp_path / "bridge.toml", DRIFTLINE_MQTT_PASSWORD="falsch"
        )
        assert wrong.wait() == 6
        assert "not proven" in wrong.err
        assert "falsch" not in wrong.err
        running = bridged.start(DRIFTLINE_MQTT_PASSWORD="geheim")
        with Person(mosquitto, "alerts/#", user="person", password="offen") as person:
            person.publish("sensors/attic/temperature", reading(1), CLOUD)
            assert values_of(person.next())["n"] == 1
        assert running.end() == 0
        assert "geheim" not in running.err


def test_nobody_there(tmp_path, mosquitto, brokers):
    broker = brokers.start("b")
    Bridged(tmp_path, broker, mosquitto)
    mosquitto.end()
    alone = Running(tmp_path, "bridge", tmp_path / "bridge.toml")
    assert alone.wait() == 5
    assert mosquitto.address in alone.err
    mosquitto.start()


def test_a_flood_that_nobody_sends_again_is_bounded(mosquitto):
    """Messages of quality 0: what there is no room for is counted, not kept."""

    async def test() -> tuple[int, int]:
        one = session.Mqtt(MqttConfig(mosquitto.address, "flooded"), [session.Wanted("flood", 1)])
        async with await one.open(SOON):
            with Person(mosquitto) as person:
                for _ in range(session.UNSURE_MOST + 50):
                    person._client.publish("flood", b"x", qos=0)
                person.publish("flood", b"last")
                while not one.heard.qsize() > session.UNSURE_MOST:
                    await asyncio.sleep(0.05)
            return one.heard.qsize(), one.lost

    kept, lost = asyncio.run(asyncio.wait_for(test(), 60))
    assert kept == 10_001
    assert lost == 50
