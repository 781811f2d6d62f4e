"""Is what cannot be bridged refused before anything is, and are secrets where they belong?"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from driftline.bridge.config import read_config
from driftline.errors import FileRefused
from tests.net.secured import Authority

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
        ("mqtt://127.0.0.1", "mqtt://[::1", "mqtt.address"),
        ("mqtt://127.0.0.1", "mqtt://u:geheim@[::1", "without a user"),
        ("mqtt://127.0.0.1", "mqtts://mqtt.example.org/x", "mqtt.address"),
        ('session = "house"', 'session = "a\\u0000b"', "mqtt.session: wanted at most 65,535 bytes"),
        ('session = "house"', f'session = "{"é" * 32_768}"', "mqtt.session"),
        ('user = "bridge"', 'user = "a\\u0000b"', "mqtt.user"),
        ('session = "house"', 'session = "house"\nkeep = -1', "mqtt.keep"),
        ('session = "house"', 'session = "house"\nkeep = 4294967296', "mqtt.keep"),
        ('session = "house"', 'session = "house"\nauthority = "none.pem"', "none.pem"),
        ("7400", '7400"\nauthority = "none.pem', "none.pem"),
        ('session = "house"', 'session = "house"\nrefused = "$SYS/x"', "mqtt.refused"),
        ("sensors/+/temperature", "$share/g/sensors/+", "not shared"),
        ("alerts/{room}", "$SYS/{room}", "out.topic"),
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


def test_a_session_may_be_kept_forever_or_not_at_all_and_have_a_long_name(tmp_path):
    for keep in (0, 4_294_967_295):
        text = GOOD.replace('session = "house"', f'session = "{"s" * 65_535}"\nkeep = {keep}')
        assert read_config(write(tmp_path, text)).mqtt.keep == keep


def test_an_authority_must_be_one_before_anything_begins(tmp_path):
    for address in ("mqtt://127.0.0.1", "mqtts://127.0.0.1"):
        text = GOOD.replace("mqtt://127.0.0.1", address)
        path = write(tmp_path, text.replace("session =", 'authority = "ca.pem"\nsession ='))
        (tmp_path / "ca.pem").write_text("none")
        with pytest.raises(FileRefused, match=r"ca\.pem: no certificate"):
            read_config(path)
        ca = Authority(tmp_path / f"keys-{address.partition(':')[0]}").folder / "ca.pem"
        (tmp_path / "ca.pem").write_bytes(ca.read_bytes())
        assert read_config(path).mqtt.authority == str(tmp_path / "ca.pem")


def test_something_must_be_bridged(tmp_path):
    with pytest.raises(FileRefused, match="at least one"):
        read_config(write(tmp_path, GOOD.partition("[[in]]")[0]))
    with pytest.raises(FileRefused, match="each topic filter once"):
        read_config(
            write(tmp_path, GOOD + "[[in]]" + GOOD.partition("[[in]]")[2].partition("[[")[0])
        )
    with pytest.raises(FileRefused, match="each name once"):
        read_config(write(tmp_path, GOOD + "[[out]]" + GOOD.partition("[[out]]")[2]))


def test_no_file(tmp_path):
    with pytest.raises(FileRefused):
        read_config(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"x = {'[' * 3000}", "no TOML: lists in lists, too deep"),
        (
            '[broker]\naddress = "driftline://h"\nauthority = "a\\u0000b"\n'
            '[mqtt]\naddress = "mqtt://h"\nsession = "s"\n[[in]]\ntopic = "a"\ntype = "b"\n',
            "embedded null byte",
        ),
    ],
)
def test_what_no_file_can_say_or_be_called_is_refused(tmp_path, text, why):
    path = tmp_path / "odd.toml"
    path.write_text(text)
    with pytest.raises(FileRefused, match=why):
        read_config(path)
