"""What does a configuration say, which of its sources counts, and what is refused?"""

from __future__ import annotations

import os
import re
from dataclasses import fields
from pathlib import Path

import pytest

from driftline.broker.links import Role
from driftline.errors import DriftlineError, FileRefused, InvalidValue
from driftline.net import configured
from driftline.net.access_file import read_grants
from driftline.net.address import Address
from driftline.net.config import TABLES, Peer, config_of, read_config
from driftline.net.limits import Limits

TLS = "[tls]\ncertificate = 'b.pem'\nkey = 'b.key'\n"


@pytest.fixture
def write(tmp_path):
    def put(text: str) -> Path:
        file = tmp_path / "there" / "broker.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return file

    return put


# Whole numbers


@pytest.mark.parametrize("name", [one.name for one in fields(Limits) if one.type == "int"])
def test_what_is_counted_is_a_whole_number_whoever_says_it(write, name):
    variable = f"DRIFTLINE_LIMITS_{name.upper()}"
    for found in (
        read_config(write(f"[limits]\n{name} = 1e5"), environment={}),
        read_config(None, environment={variable: "1e5"}),
        read_config(None, {f"limits.{name}": 1e5}, {}),
    ):
        value = getattr(found.limits, name)
        assert (value, type(value)) == (100_000, int)
    for refused in (
        lambda: read_config(write(f"[limits]\n{name} = 1000.5"), environment={}),
        lambda: read_config(None, environment={variable: "1000.5"}),
        lambda: read_config(None, {f"limits.{name}": 1000.5}, {}),
    ):
        with pytest.raises(DriftlineError, match=rf"limits\.{name}: wanted a whole number, came 1"):
            refused()


@pytest.mark.parametrize("table", TABLES)
def test_so_is_every_count_of_every_table(table):
    counts = [one.name for one in fields(TABLES[table]) if one.type == "int"]
    needed = {
        "http": {"listen": "127.0.0.1:0"},
        "webhooks": {"allow": ["https://h/"]},
        "email": {"host": "h", "sender": "a@b", "allow": ["*@b"]},
    }
    for name in counts:
        said = {**needed.get(table, {}), name: 1000.0}
        assert type(getattr(getattr(config_of({table: said}), table), name)) is int
        for odd in (1000.5, float("nan"), float("inf"), True, "1000"):
            with pytest.raises(InvalidValue, match=rf"{table}\.{name}: wanted a whole number"):
                config_of({table: {**said, name: odd}})


def test_as_many_forms_may_be_said_as_any_client_says():
    assert config_of({"limits": {"forms": 1000}}).limits.forms == 1000
    with pytest.raises(InvalidValue, match=r"limits\.forms: wanted a whole number, 1000 or more"):
        config_of({"limits": {"forms": 999}})


def test_seconds_are_numbers_and_finite():
    assert config_of({"limits": {"greeting": 2.5}}).limits.greeting == 2.5
    for odd in (float("nan"), float("inf"), True, "2"):
        with pytest.raises(InvalidValue, match=r"limits\.greeting: wanted a number"):
            config_of({"limits": {"greeting": odd}})


# What is empty


@pytest.mark.parametrize("said", ["", 0, False, [], " ", ":7400", "[]:7400"])
def test_a_broker_listens_somewhere(said):
    with pytest.raises(InvalidValue, match=r"listen: wanted (a )?host"):
        config_of({"listen": said})


def test_an_empty_word_of_the_environment_is_no_address():
    with pytest.raises(InvalidValue, match="listen: wanted host:port, came ''"):
        read_config(None, environment={"DRIFTLINE_LISTEN": ""})


def test_only_health_may_be_nowhere(write):
    file = write('health = "127.0.0.1:7480"')
    assert read_config(file, environment={}).health == Address("127.0.0.1", 7480)
    assert read_config(file, environment={"DRIFTLINE_HEALTH": ""}).health is None
    assert config_of({"health": ""}).health is None
    for odd in (0, False, []):
        with pytest.raises(InvalidValue, match="health: wanted host:port"):
            config_of({"health": odd})


@pytest.mark.parametrize(
    "said",
    [
        {"journal": ""},
        {"journal": "a\0b"},
        {"journal": 7},
        {"access": ""},
        {"access": "a\0b"},
        {"tls": {"certificate": "", "key": "b.key"}},
        {"tokens": {"key": "a\0b"}},
    ],
)
def test_what_can_be_no_file_is_refused(said):
    with pytest.raises(InvalidValue, match="wanted the name of a file"):
        config_of(said)


# Where files are


def test_a_file_counts_from_where_it_was_said(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = write(f"journal = 'b.journal'\naccess = 'access.toml'\n{TLS}")
    there = file.parent

    def files(given: dict[str, object], environment: dict[str, str]) -> list[Path]:
        found = read_config(file.relative_to(tmp_path), given, environment)
        assert found.access is not None
        assert found.tls is not None
        said = (found.journal, found.access, found.tls.certificate, found.tls.key)
        return [Path(os.path.abspath(one)) for one in said]

    names = ("b.journal", "access.toml", "b.pem", "b.key")
    assert files({}, {}) == [there / one for one in names]
    environment = {
        "DRIFTLINE_JOURNAL": "b.journal",
        "DRIFTLINE_ACCESS": "access.toml",
        "DRIFTLINE_TLS_KEY": "b.key",
    }
    here = [tmp_path / "b.journal", tmp_path / "access.toml", there / "b.pem", tmp_path / "b.key"]
    assert files({}, environment) == here
    given = {"journal": "b.journal", "access": "access.toml", "tls.key": "b.key"}
    assert files(given, {}) == here
    assert files({"journal": str(there / "c.journal")}, {})[0] == there / "c.journal"


@pytest.mark.parametrize("journal", ["memory:", "postgresql://host/db", "sqlite:///b.journal"])
def test_what_is_no_name_of_a_file_stays_as_it_is(write, journal):
    assert read_config(write(f"journal = '{journal}'"), environment={}).journal == journal


# Names and hosts


@pytest.mark.parametrize(
    ("peer", "why"),
    [
        ({"name": ""}, "peers.name: wanted 1 to 255 bytes that can be printed, came ''"),
        ({"name": "a\nb", "address": "x y:1"}, r"came 'a\\nb'"),
        ({"name": "\x1b[2J"}, "bytes that can be printed"),
        ({"name": "é" * 128}, "1 to 255 bytes"),
        ({"name": 3}, "peers.name: wanted a text, came 3"),
        ({"name": "b", "certificate": 3}, "peers.certificate: wanted a text, came 3"),
        ({"name": "b", "address": 4}, r"peers\.b\.address: wanted host:port, came 4"),
        ({"name": "b", "adress": "h:1"}, r"came adress \(perhaps address\?\)"),
        ({"address": "h:1"}, "peers: wanted a name"),
        ("b", "peers: wanted a name"),
    ],
)
def test_a_peer_is_known_by_a_name_that_can_be_shown(peer, why):
    with pytest.raises(InvalidValue, match=why) as refused:
        config_of({"peers": [peer]})
    assert str(refused.value).isprintable()


def test_so_is_one_that_a_program_names():
    with pytest.raises(InvalidValue, match=r"peers\.name"):
        Peer("", Role.PEER)


@pytest.mark.parametrize(
    "said",
    [
        "a b:7400",
        " 127.0.0.1:7400",
        "a\nb:7400",
        "a\tb",
        "\x1b[2J:7400",
        "a\u00a0b:7400",
        "a:" + "9" * 5000,
        "a:65536",
        "a:-1",
    ],
)
def test_a_host_is_a_word_and_a_port_a_number(said):
    with pytest.raises(InvalidValue) as refused:
        config_of({"listen": said})
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 200


# What is not known


@pytest.mark.parametrize(
    ("said", "came"),
    [
        ({"lisen": "127.0.0.1:1"}, "came lisen (perhaps listen?)"),
        ({"limits": {"rat": 3}}, "came rat (perhaps rate?)"),
        ({"limits": {"zzz": 3, "kep": 4}}, "came kep, zzz (perhaps kept?)"),
        ({"zzz": 3}, "came zzz"),
        ({"a\nb": 3}, "came 'a\\nb'"),
    ],
)
def test_what_nobody_knows_is_refused_with_what_was_perhaps_meant(said, came):
    with pytest.raises(InvalidValue, match="wanted only ") as refused:
        config_of(said)
    assert str(refused.value).endswith(came)


def test_a_variable_that_means_nothing_may_have_been_meant():
    found = configured.doubts(config_of({}), {"DRIFTLINE_LIMITS_RAET": "5", "DRIFTLINE_QQ": "1"})
    means_nothing = "is in the environment, and means nothing"
    assert f"DRIFTLINE_LIMITS_RAET {means_nothing}: perhaps DRIFTLINE_LIMITS_RATE?" in found
    assert f"DRIFTLINE_QQ {means_nothing}" in found


def test_every_variable_that_the_documents_name_means_something():
    root = Path(__file__).parents[2]
    pages = [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md")]
    text = " ".join(page.read_text() for page in pages)
    named = dict.fromkeys(re.findall(r"DRIFTLINE_[A-Z_]+[A-Z]\b", text), "x")
    assert len(named) > 10
    found = configured.doubts(config_of({}), named)
    assert not [one for one in found if "means nothing" in one]


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ({"health": "127.0.0.1"}, "health"),  # Its port is the one that brokers listen on.
        ({"http": {"listen": "127.0.0.1:7400"}}, "http.listen"),
        ({"listen": "0.0.0.0:7480", "health": "127.0.0.1:7480"}, "health"),
        ({"http": {"listen": "127.0.0.1:7480"}, "health": "127.0.0.1:7480"}, "health"),
    ],
)
def test_two_doors_are_not_at_one_address(said, where):
    with pytest.raises(InvalidValue, match=f"^{where}: wanted an address that is not that of "):
        configured.check(config_of(said))
    configured.check(config_of({"listen": "127.0.0.1:0", "health": "127.0.0.1:0"}))


@pytest.mark.parametrize("prefix", ["", "sqlite:///"])
def test_a_journal_is_a_file_in_a_folder_that_is_there(tmp_path, prefix):
    configured.check(config_of({"journal": f"{prefix}{tmp_path}/b.journal"}))
    for journal, why in ((tmp_path, "came a folder"), (tmp_path / "no" / "b", "no such folder")):
        with pytest.raises(FileRefused, match=why):
            configured.check(config_of({"journal": f"{prefix}{journal}"}))


def test_that_nobody_can_prove_who_they_are_was_perhaps_not_meant():
    why = "nobody can prove who they are: there are neither [tokens] nor tls.authority"
    assert why in configured.doubts(config_of({"access": "access.toml"}), {})
    closed = {"access": "access.toml", "tokens": {"key": "tokens.pub"}}
    assert why not in configured.doubts(config_of(closed), {})


@pytest.mark.parametrize("said", ["tls = 'b.key'", "tls = false", "limits = []"])
def test_a_table_stays_one_when_the_environment_adds_to_it(write, said):
    environment = {"DRIFTLINE_TLS_KEY": "b.key", "DRIFTLINE_LIMITS_RATE": "5"}
    with pytest.raises(FileRefused, match="wanted a table"):
        read_config(write(said), environment=environment)


def test_a_flag_of_the_environment_is_refused_by_its_name():
    with pytest.raises(InvalidValue, match="advertised: wanted true or false, came 'yes'"):
        read_config(None, environment={"DRIFTLINE_ADVERTISED": "yes"})


@pytest.mark.parametrize(
    ("name", "word"), [("listen", "h:x"), ("advertised", "yes"), ("limits.rate", "a")]
)
def test_what_is_wrong_is_named_where_it_was_said(write, name, word):
    variable = f"DRIFTLINE_{name.upper().replace('.', '_')}"
    table, _, inner = name.rpartition(".")
    file = write(f"[{table}]\n{inner} = '{word}'" if table else f"{inner} = '{word}'")
    with pytest.raises(FileRefused, match=f"broker.toml: {name}: wanted"):
        read_config(file, environment={})
    with pytest.raises(InvalidValue, match=f"^{variable}: {name}: wanted"):
        read_config(file, environment={variable: word})
    with pytest.raises(InvalidValue, match=f"^{name}: wanted"):
        read_config(file, {name: word}, {variable: word})


@pytest.mark.parametrize(
    ("peer", "where"), [({"role": "boss"}, "role"), ({"address": "h:x"}, "address")]
)
def test_what_is_wrong_with_a_peer_is_named_with_it(write, peer, where):
    said = "".join(f"{name} = '{value}'\n" for name, value in peer.items())
    with pytest.raises(FileRefused, match=rf"broker.toml: peers\.paris\.{where}: wanted"):
        read_config(write(f"[[peers]]\nname = 'paris'\n{said}"), environment={})
    with pytest.raises(InvalidValue, match=rf"^peers\.paris\.{where}: wanted"):
        read_config(write(""), {"peers": [{"name": "paris", **peer}]}, {})


def test_lists_in_lists_without_an_end_are_refused(write):
    file = write("name = " + "[" * 100_000)
    with pytest.raises(FileRefused, match="too deep"):
        read_config(file, environment={})
    with pytest.raises(FileRefused, match="too deep"):
        read_grants(file)
