"""Is what cannot be bridged refused before anything is, and are secrets where they belong?"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from driftline.bridge.config import read_config
from driftline.errors import FileRefused

GOOD = """
[broker]
address = "driftline://127.0.0.1:7400"

[mqtt]
address = "mqtt://127.0.0.1"
session = "house"
user = "bridge"
password_file = "password"

[[in]]
topic = "sensors/+/temperature"
type = "reading"

[[out]]
subscription = "hot"
text = "SELECT * FROM reading WHERE value > :limit"
params = { limit = 30 }
topic = "alerts/{room}"
"""


def write(folder: Path, text: str) -> Path:
    tomllib.loads(text)
    path = folder / "bridge.toml"
    path.write_text(text)
    return path


def test_a_configuration_that_holds(tmp_path, monkeypatch):
    config = read_config(write(tmp_path, GOOD))
    assert (config.mqtt.server.host, config.mqtt.server.port) == ("127.0.0.1", 1883)
    secret = tmp_path / "password"
    secret.write_text("geheim\n")
    secret.chmod(0o600)
    assert config.mqtt.password() == "geheim"
    secret.chmod(0o644)
    with pytest.raises(FileRefused, match="others can read"):
        config.mqtt.password()
    without = read_config(write(tmp_path, GOOD.replace('password_file = "password"\n', "")))
    monkeypatch.setenv("DRIFTLINE_MQTT_PASSWORD", "leise")
    assert without.mqtt.password() == "leise"


@pytest.mark.parametrize(
    ("was", "instead", "why"),
    [
        ('session = "house"', 'session = ""', "mqtt.session"),
        ("mqtt://127.0.0.1", "http://127.0.0.1", "mqtt.address"),
        ("mqtt://127.0.0.1", "mqtt://u:geheim@127.0.0.1", "without a user"),
        ("mqtt://127.0.0.1", "mqtt://127.0.0.1:99999", "mqtt.address"),
        ("mqtt://127.0.0.1", "mqtt://mqtt.example.org", "mqtts://"),
        ('user = "bridge"\n', "", "mqtt.user"),
        ("sensors/+/temperature", "sensors/a+/b", "topic filter"),
        ("sensors/+/temperature", "sensors/#/b", "topic filter"),
        ("sensors/+/temperature", "", "topic filter"),
        ('type = "reading"', 'type = ""', "event type"),
        ("alerts/{room}", "alerts/#", "without"),
        ("alerts/{room}", "alerts/{}", "places"),
        ("alerts/{room}", "alerts/{room", "places"),
        ("WHERE value > :limit", "WHERE value >", "wanted"),
        ("{ limit = 30 }", "{}", "limit"),
        ('subscription = "hot"', 'subscription = ""', "out.subscription"),
        ("[[in]]", "[[ins]]", "ins"),
        ("driftline://", "ftp://", "address"),
        ('session = "house"', 'session = "house"\npassword = "geheim"', "password"),
    ],
)
def test_what_does_not_hold_is_refused_and_says_why(tmp_path, was, instead, why):
    assert was in GOOD
    with pytest.raises(FileRefused, match=why) as found:
        read_config(write(tmp_path, GOOD.replace(was, instead)))
    assert "geheim" not in str(found.value)


def test_something_must_be_bridged(tmp_path):
    with pytest.raises(FileRefused, match="at least one"):
        read_config(write(tmp_path, GOOD.partition("[[in]]")[0]))
    with pytest.raises(FileRefused, match="each name once"):
        read_config(write(tmp_path, GOOD + "[[out]]" + GOOD.partition("[[out]]")[2]))


def test_no_file(tmp_path):
    with pytest.raises(FileRefused):
        read_config(tmp_path / "none.toml")
