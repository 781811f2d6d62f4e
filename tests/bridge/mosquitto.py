"""How do tests come by an MQTT broker? Mosquitto, as a process of its own, which keeps sessions.

with Mosquitto(folder) as mosquitto:
    mosquitto.kill(); mosquitto.start()     # on the same port, with what it had stored
"""

from __future__ import annotations

import queue
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

SERVER = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
needs_mosquitto = pytest.mark.skipif(
    SERVER is None, reason="no mosquitto here, and scripts/servers.sh could not install one"
)
SOON = 20.0


class Mosquitto:
    """One MQTT broker."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        lines = [
            f"listener {self.port} 127.0.0.1",
            "persistence true",
            f"persistence_location {folder}/",
            # As root it would become somebody else, who may not write there.
            "user root",
            "autosave_on_changes true",
            "autosave_interval 1",
            *(settings or ("allow_anonymous true",)),
        ]
        self._config = folder / "mosquitto.conf"
        self._config.write_text("\n".join(lines) + "\n")

    def start(self) -> None:
        assert SERVER is not None
        with (self._folder / "mosquitto.log").open("ab") as log:
            self._process = subprocess.Popen(
                [SERVER, "-v", "-c", self._config], stdout=log, stderr=log
            )
        deadline = time.monotonic() + SOON
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < deadline, self.log
                time.sleep(0.02)

    def say(self, *settings: str) -> None:
        """Say more in its configuration, for when it starts again."""
        with self._config.open("a") as config:
            config.write("\n".join(settings) + "\n")

    @property
    def log(self) -> str:
        return (self._folder / "mosquitto.log").read_text()

    def acknowledged(self, session: str = "bridge") -> int:
        """So many messages a session has said that it had."""
        return self.log.count(f"Received PUBACK from {session} ")

    @property
    def address(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """Let it end in peace: it stores what it keeps."""
        self._process.terminate()
        self._process.wait(SOON)

    def __enter__(self) -> Mosquitto:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class Person:
    """Somebody who speaks MQTT with an ordinary library."""

    def __init__(self, mosquitto: Mosquitto, *topics: str, user: str = "", password: str = ""):
        self.heard: queue.Queue[Any] = queue.Queue()
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        self._client.on_message = lambda _, __, message: self.heard.put(message)
        if user:
            self._client.username_pw_set(user, password)
        self._client.on_connect = lambda *_: [
            self._client.subscribe(topic, qos=1) for topic in topics
        ]
        ready: queue.Queue[None] = queue.Queue()
        self._client.on_subscribe = lambda *_: ready.put(None)
        self._client.connect("127.0.0.1", mosquitto.port)
        self._client.loop_start()
        for _ in topics:
            ready.get(timeout=SOON)

    def publish(
        self,
        topic: str,
        payload: bytes | str,
        content_type: str = "",
        retain: bool = False,
        **said: str,
    ) -> None:
        """Publish, and wait until it was taken."""
        properties: Any = Properties(PacketTypes.PUBLISH)
        if content_type:
            properties.ContentType = content_type
        properties.UserProperty = list(said.items())
        sent = self._client.publish(topic, payload, 1, retain, properties)
        sent.wait_for_publish(SOON)
        assert sent.is_published()

    def next(self, within: float = SOON) -> Any:
        return self.heard.get(timeout=within)

    def __enter__(self) -> Person:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()
