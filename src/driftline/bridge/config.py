"""What is bridged, and between whom? Said in TOML.

    [broker]
    address = "driftline://127.0.0.1:7400"

    [mqtt]
    address = "mqtt://127.0.0.1:1883"   # mqtts:// with TLS
    session = "driftline-london"        # by this name the MQTT broker keeps what we have not had

    [[in]]
    topic = "sensors/+/temperature"     # a topic filter
    type = "reading"                    # of events from messages that are no CloudEvents

    [[out]]
    subscription = "hot"                # a durable subscription, made if it is not there
    text = "SELECT * FROM reading WHERE value > :limit"
    params = { limit = 30 }
    topic = "alerts/{room}"             # with what was told of `room`

Files are looked for from where the configuration is. Secrets are never in it: who we are is proven
to the broker by a token (`DRIFTLINE_TOKEN`, `DRIFTLINE_TOKEN_FILE`), to the MQTT broker by what
`password_file` or `DRIFTLINE_MQTT_PASSWORD` holds.
"""

from __future__ import annotations

import os
import ssl
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from driftline.bridge.messages import TEXT_BYTES_MAX, is_text, names_in
from driftline.broker.identity import ANYONE, durable_of
from driftline.client.address import BrokerAddress
from driftline.client.proof import authority_context
from driftline.errors import DriftlineError, FileRefused, InvalidValue
from driftline.language.cloudevents import value_from
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.value import Value, show
from driftline.net.address import Address
from driftline.net.secrets import secret_of
from driftline.net.tls import trusting

PASSWORD_VARIABLE = "DRIFTLINE_MQTT_PASSWORD"
_KEEP_END = 1 << 32
_PORTS = {"mqtt": 1883, "mqtts": 8883}
_WEEK = 7 * 86_400


class BrokerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The broker, and who must have signed its certificate."""

    address: str
    authority: str | None = None


class MqttConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The MQTT broker, and the session there; `keep` is for how many seconds it outlives us."""

    address: str
    session: str
    user: str | None = None
    password_file: str | None = None
    authority: str | None = None
    keep: int = _WEEK
    refused: str | None = None
    """A topic for what cannot pass, whichever way it goes; else it is only logged."""

    @property
    def server(self) -> Address:
        """Where it is."""
        wanted = "mqtt://host:port or mqtts://host:port, without a user"
        if "@" in self.address:
            # Before it is taken apart: what is wrong with it may hide a password, and is shown.
            raise InvalidValue("mqtt.address", wanted, "one with a user")
        try:
            parts = urlsplit(self.address)
            port = parts.port
        except ValueError:
            raise InvalidValue("mqtt.address", wanted, show(self.address)) from None
        if parts.scheme not in _PORTS or not parts.hostname or parts.path.strip("/"):
            raise InvalidValue("mqtt.address", wanted, show(self.address))
        return Address(parts.hostname, port or _PORTS[parts.scheme])

    def check(self) -> None:
        """Raise if no session can be begun with it; the files that it names are read, too."""
        server = self.server
        if not self.session:
            raise InvalidValue("mqtt.session", "a name that no other client there has", "none")
        for name, text in (("mqtt.session", self.session), ("mqtt.user", self.user)):
            if text is not None and not is_text(text):
                wanted = f"at most {TEXT_BYTES_MAX:,} bytes of UTF-8, none of them 0"
                raise InvalidValue(name, wanted, show(text))
        if not 0 <= self.keep < _KEEP_END:
            wanted = f"a number of seconds from 0 to {_KEEP_END - 1}, which is forever"
            raise InvalidValue("mqtt.keep", wanted, show(self.keep))
        if self.user is None and self.password_file is not None:
            raise InvalidValue("mqtt.user", "whose the password is", "nobody")
        is_open = not self.address.startswith("mqtts://") and not server.is_loopback
        if self.user is not None and is_open:
            wanted = "mqtts://, unless the server is on this machine: anybody could read a password"
            raise InvalidValue("mqtt.address", wanted, self.address)
        if self.refused is not None:
            _check_topic("mqtt.refused", self.refused)
        if self.authority is not None:
            trusting(Path(self.authority))

    @property
    def tls(self) -> ssl.SSLContext | None:
        """Which server is believed; None: it is not asked who it is."""
        if not self.address.startswith("mqtts://"):
            return None
        return trusting(None if self.authority is None else Path(self.authority))

    def password(self, environment: Mapping[str, str] | None = None) -> str | None:
        """What proves who we are; None: nothing does."""
        path = None if self.password_file is None else Path(self.password_file)
        words = os.environ if environment is None else environment
        found = secret_of(path, PASSWORD_VARIABLE, words)
        try:
            return None if found is None else found.decode()
        except UnicodeDecodeError:
            raise InvalidValue("mqtt.password_file", "UTF-8", "something else") from None


class InConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Messages that are published: by which topics they come, and of what type they are."""

    topic: str
    type: str
    retained: bool = True
    """Also what was retained there before, when the session has not subscribed to it yet?"""


class OutConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a durable subscription is told, and the topic where that goes."""

    subscription: str
    text: str
    topic: str
    params: dict[str, Any] = {}
    form: Literal["cloudevent", "values"] = "cloudevent"
    retain: bool = False

    @property
    def values(self) -> dict[str, Value]:
        """Its parameters."""
        return {name: value_from(one, f":{name}") for name, one in self.params.items()}


class BridgeConfig(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"come": "in", "go": "out"}
):
    """All of it."""

    broker: BrokerConfig
    mqtt: MqttConfig
    come: list[InConfig] = []
    go: list[OutConfig] = []

    def check(self) -> BridgeConfig:
        """Itself, if it can be run; DriftlineError if not."""
        if not self.come and not self.go:
            raise InvalidValue("bridge", "at least one [[in]] or [[out]]", "none")
        BrokerAddress.of(self.broker.address)
        authority_context(self.broker.authority)
        self.mqtt.check()
        for one in self.come:
            check_filter(one.topic)
            Event(one.type)
        for out in self.go:
            if not out.subscription:
                raise InvalidValue("out.subscription", "a name", "none")
            durable_of(ANYONE, out.subscription)
            Standing.of(parse(out.text), out.values)
            names_in(out.topic)
            _check_topic("out.topic", out.topic)
        topics = [one.topic for one in self.come]
        if len(set(topics)) < len(topics):
            raise InvalidValue("in.topic", "each topic filter once", ", ".join(topics))
        names = [out.subscription for out in self.go]
        if len(set(names)) < len(names):
            raise InvalidValue("out.subscription", "each name once", ", ".join(names))
        return self


def check_filter(topic: str) -> None:
    """Raise if it is no topic filter of MQTT: `+` is a whole level, `#` all that are left."""
    levels = topic.split("/")
    is_sound = "#" not in levels[:-1] and all(
        level in ("+", "#") or not set("+#") & set(level) for level in levels
    )
    if not topic or not is_text(topic) or not is_sound:
        wanted = "a topic filter such as sensors/+/temperature or sensors/#"
        raise InvalidValue("in.topic", wanted, show(topic))
    if levels[0] == "$share":
        # Of what others had in its place nobody would know, and messages come by other topics than
        # this says.
        wanted = "a topic filter that is not shared: a bridge has a session of its own"
        raise InvalidValue("in.topic", wanted, show(topic))


def _check_topic(where: str, topic: str) -> None:
    if not topic or not is_text(topic) or set("+#") & set(topic) or topic.startswith("$"):
        wanted = "a topic without + and #, which does not begin with $"
        raise InvalidValue(where, wanted, show(topic))


def read_config(path: Path) -> BridgeConfig:
    """The configuration in a file; `FileRefused` if it cannot be run."""
    try:
        said = tomllib.loads(path.read_text())
        config = msgspec.convert(said, BridgeConfig)
        return _seen_from(config, path.parent).check()
    except OSError as problem:
        raise FileRefused(str(path), None, problem.strerror or str(problem)) from None
    except FileRefused:
        raise  # It is another one that is wrong.
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise FileRefused(str(path), None, f"no TOML: {problem}") from None
    except RecursionError:
        raise FileRefused(str(path), None, "no TOML: lists in lists, too deep") from None
    except (msgspec.ValidationError, DriftlineError) as problem:
        raise FileRefused(str(path), None, str(problem)) from None


def _seen_from(config: BridgeConfig, base: Path) -> BridgeConfig:
    def at(name: str | None) -> str | None:
        return None if name is None else str(base / name)

    broker, mqtt = config.broker, config.mqtt
    replace = msgspec.structs.replace
    return replace(
        config,
        broker=replace(broker, authority=at(broker.authority)),
        mqtt=replace(mqtt, authority=at(mqtt.authority), password_file=at(mqtt.password_file)),
    )
