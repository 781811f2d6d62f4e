"""`secure`, `config`: does the handbook make a broker that is closed, step by step?"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import SOON, Running, served, until

HANDBOOK = Path(__file__).parents[2] / "docs" / "howto" / "secure.md"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def handbook(tmp_path_factory):
    """A folder in which the first steps of the handbook were taken, as they stand there."""
    folder = tmp_path_factory.mktemp("secure")
    tools = folder / "bin"
    tools.mkdir()
    command = tools / "driftline"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m driftline "$@"\n')
    command.chmod(0o755)
    block = re.findall(r"```bash\n(.*?)```", HANDBOOK.read_text(), re.DOTALL)[0]
    steps, serve = block.rstrip().rsplit("\n", 1)
    assert serve == "driftline serve --config london.toml"
    port = str(free_port())
    path = f"{tools}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-e", "-c", steps.replace("7400", port)],
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "london can begin, and is for those who prove who they are" in ran.stdout
    return folder


@pytest.fixture(scope="module")
def london(handbook):
    with served(handbook, "--config", handbook / "london.toml") as (process, address):
        yield process, address.replace("driftline://", "driftlines://")


@pytest.fixture
def token(driftline, handbook, monkeypatch):
    def become(who: str) -> str:
        signed = driftline("secure", "token", handbook / "keys", who).out.strip()
        monkeypatch.setenv("DRIFTLINE_TOKEN", signed)
        return signed

    return become


def test_alice_is_told_what_she_may_see(driftline, handbook, london, token, tmp_path):
    process, address = london
    authority = ("--authority", handbook / "keys" / "ca.pem")
    shown = token("alice")
    text = "SELECT * FROM quote WHERE price < :limit"
    words = ("sub", address, text, "-p", "limit=10", "--json", *authority)
    sub = Running(tmp_path, *words, DRIFTLINE_TOKEN=shown)
    try:
        until(lambda: "subscribed at" in sub.err or sub.process.poll() is not None)
        token("feed")
        words = ("quote", "symbol=IBM", "price=9.5", "volume=700")
        assert driftline("pub", address, *words, *authority).code == 0
        assert json.loads(sub.line())["values"] == {"symbol": "IBM", "price": 9.5}
        ran = driftline("pub", address, "trade", "symbol=IBM", *authority)
        assert (ran.code, "feed may not publish trade" in ran.err) == (6, True)
        token("alice")
        asks = "SELECT * FROM quote WHERE volume > 500"
        ran = driftline("sub", address, asks, *authority)
        assert (ran.code, "be told of quote with volume" in ran.err) == (6, True)
        ran = driftline("top", address, "--once", "--every", 0.1, *authority)
        assert "you may not operate london: only what is your own is shown" in ran.out
        assert "Brokers" not in ran.out
        assert text in ran.out
        assert sub.end(signal.SIGINT) == 0
        assert shown not in process.err
    finally:
        sub.kill()


@pytest.mark.parametrize("command", ["sub", "top"])
def test_what_the_token_file_holds_now_is_shown_when_a_connection_is_made_again(
    driftline, handbook, london, tmp_path, command
):
    process, address = london
    words = {"sub": ("SELECT * FROM quote",), "top": ("--every", 0.1, "--json")}[command]
    authority = ("--authority", handbook / "keys" / "ca.pem")
    file = tmp_path / "token"
    file.write_text(driftline("secure", "token", handbook / "keys", "alice").out)
    shown = {"DRIFTLINE_TOKEN_FILE": str(file)}
    running = Running(tmp_path, command, address, *words, *authority, **shown)
    try:
        if command == "sub":
            until(lambda: "subscribed at" in running.err or running.process.poll() is not None)
        else:
            assert running.object()["brokers"][0]["up"]
        file.write_text("no token any more")
        process.process.send_signal(signal.SIGHUP)  # Everybody connects again.
        if command == "sub":
            assert running.wait() == 6, running.err
        else:
            end = time.monotonic() + SOON
            while running.object()["brokers"][0]["up"]:
                assert time.monotonic() < end, "it shows what the file held once"
    finally:
        running.kill()


def test_the_other_terminals_of_the_handbook_do_what_it_says(handbook, london, tmp_path):
    _, address = london
    text = HANDBOOK.read_text().replace("driftlines://127.0.0.1:7400", address)
    sub = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)[1].replace(
        "driftline sub", "exec driftline sub"
    )
    (pub,) = re.findall(r"\n    (DRIFTLINE_TOKEN=.*?\n.*?)\n", text)
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (party,) = re.findall(r"`(driftline secure party [^`]*)`", text)
    path = f"{handbook / 'bin'}:{os.environ['PATH']}"
    at = {"cwd": handbook, "env": os.environ | {"PATH": path}, "text": True}
    with open(tmp_path / "told", "w") as told, open(tmp_path / "err", "w") as err:
        alice = subprocess.Popen(["bash", "-e", "-c", sub], stdout=told, stderr=err, **at)
    try:
        until(lambda: "subscribed at" in (tmp_path / "err").read_text())
        words = f"export DRIFTLINE_ADDRESS={address}\n{pub}\n{party}"
        ran = subprocess.run(["bash", "-e", "-c", words], capture_output=True, check=False, **at)
        assert ran.returncode == 0, ran.stderr
        until(lambda: "quote symbol='IBM' price=9.5" in (tmp_path / "told").read_text())
        assert "volume" not in (tmp_path / "told").read_text()
    finally:
        alice.send_signal(signal.SIGINT)
        alice.wait()
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, timeout=60, **at
    )
    assert (ran.stdout, ran.returncode) == ("london\n", 0), ran.stderr


def test_who_shows_nothing_is_turned_away(driftline, handbook, london, monkeypatch):
    _, address = london
    monkeypatch.delenv("DRIFTLINE_TOKEN", raising=False)
    authority = ("--authority", handbook / "keys" / "ca.pem")
    ran = driftline("pub", address, "quote", "price=1", *authority)
    assert ran.code == 6
    assert "a token is needed" in ran.err
    monkeypatch.setenv("DRIFTLINE_TOKEN_FILE", str(handbook / "missing"))
    assert driftline("pub", address, "quote", "price=1", *authority).code == 4


def test_lists_are_read_anew_on_sighup(driftline, handbook, london, token):
    process, address = london
    authority = ("--authority", handbook / "keys" / "ca.pem")
    token("feed")
    words = ("pub", address, "trade", "symbol=IBM", *authority)
    assert driftline(*words).code == 6
    file = handbook / "access.toml"
    before = file.read_text()
    file.write_text(
        before.replace(
            'on = ["quote"]\nattributes = ["symbol", "price", "v',
            'on = ["trade"]\nattributes = ["symbol", "price", "v',
        )
    )
    process.process.send_signal(signal.SIGHUP)
    until(lambda: driftline(*words).code == 0)
    file.write_text(before)
    process.process.send_signal(signal.SIGHUP)
    until(lambda: driftline(*words).code == 6)


def test_on_sighup_what_cannot_change_is_refused_with_all_beside_it(
    driftline, handbook, london, token
):
    process, address = london
    token("feed")
    words = ("pub", address, "quote", "price=1", "--authority", handbook / "keys" / "ca.pem")
    file, access = handbook / "london.toml", handbook / "access.toml"
    before, grants = file.read_text(), access.read_text()
    access.write_text("")
    file.write_text(before.replace("[tls]", "[limits]\nrate = 5\n[tls]"))
    process.process.send_signal(signal.SIGHUP)
    until(lambda: "goes on as before" in process.err)
    assert "limits.rate: wanted what this broker began with" in process.err
    assert driftline(*words).code == 0
    file.write_text(before)
    access.write_text(grants)


def test_every_setting_is_shown_with_where_it_comes_from(driftline, handbook, monkeypatch):
    monkeypatch.setenv("DRIFTLINE_LIMITS_RATE", "500")
    monkeypatch.setenv("DRIFTLINE_JOURNAL", "postgresql://me:secret@host/db")
    monkeypatch.setenv("DRIFTLINE_LIMITS_RAET", "500")
    file = handbook / "london.toml"
    ran = driftline("config", "show", file, "--json")
    found = {one["name"]: (one["value"], one["origin"]) for one in ran.data}
    assert found["name"] == ("london", "file")
    assert found["limits.rate"] == (500, "DRIFTLINE_LIMITS_RATE")
    assert found["journal"] == ("postgresql://me:***@host/db", "DRIFTLINE_JOURNAL")
    assert found["tokens.algorithm"] == ("EdDSA", "default")
    assert found["tls.key"][1] == "file"
    assert "secret" not in ran.out
    options = ("--name", "paris", "--journal", "p.journal", "--peer", "x", "--log-level", "debug")
    ran = driftline("config", "show", file, *options, "--json")
    found = {one["name"]: (one["value"], one["origin"]) for one in ran.data}
    for name, value in (("name", "paris"), ("journal", "p.journal"), ("logs.level", "debug")):
        assert found[name] == (value, "command line")
    assert found["peers.x"][1] == "command line"
    assert found["listen"][1] == "file"
    ran = driftline("config", "check", file, "--health", "127.0.0.1:7400", "--listen", "127.0.0.1")
    assert (ran.code, "health: wanted an address" in ran.err) == (4, True)
    ran = driftline("config", "check", file, "--json")
    assert ran.data["closed"] is True
    assert any("DRIFTLINE_LIMITS_RAET" in one for one in ran.data["doubts"])


WRONG = [
    ("access = 'missing.toml'", "No such file"),
    ("[tls]\ncertificate = 'a.pem'", "at least certificate, key"),
    ("[tls]\ncertificate = 'a.pem'\nkey = 'a.key'", "a.key: No such file"),
    ("[tokens]\nkey = 'a.pub'\nalgorithm = 'none'", "one of EdDSA"),
    ("[tokens]\nkey = 7", "the name of a file"),
    ("[tokens]\nkey = 'a.pub'\naudience = 7", "a text"),
    ("listen = '0.0.0.0:1'\naccess = 'missing.toml'", "anybody on the way"),
    ("[limits]\nrate = 'many'", "a whole number"),
    ("[limits]\nconnections = 1.5", "limits.connections: wanted a whole number, came 1.5"),
    ("jurnal = 'x'", "came jurnal (perhaps journal?)"),
    ("listen = ''", "listen: wanted host:port, came ''"),
    ("listen = 0", "listen: wanted host:port, came 0"),
    ("listen = false", "listen: wanted host:port, came False"),
    ("journal = ''", "journal: wanted the name of a file"),
    ("[[peers]]\nname = ''", "peers.name: wanted 1 to 255 bytes"),
    ('[[peers]]\nname = "a\\nb"', r"came 'a\nb'"),
    ('"a\\nb" = 1', r"came 'a\nb'"),
    ("journal = 'postgresql://me:#secret@host/db'", "no password"),
    ("journal = 'postgresql://me:?secret@host/db'", "no password"),
    ("journal = 'postgresql://me:/secret@host/db'", "no password"),
    ("journal = 'postgresql://me:secret@host/db'", "no password"),
]


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_a_configuration_that_does_not_hold_is_refused(driftline, tmp_path, text, why):
    file = tmp_path / "broker.toml"
    file.write_text(text)
    for command in (("config", "check", file), ("serve", "--config", file)):
        ran = driftline(*command)
        assert ran.code == 4
        assert why in ran.err.splitlines()[-1]
        assert "secret" not in ran.err


@pytest.mark.parametrize(
    ("password", "checked", "served"),
    [
        ("ge%2Fheim", 0, 1),
        ("ge#heim", 0, 1),
        ("ge?heim", 0, 1),
        ("ge/heim", 4, 4),
        ("12/heim", 4, 4),
        ("12/ge?heim", 4, 4),
        ("ge@heim", 4, 4),
    ],
)
def test_a_journals_password_is_nowhere_shown(driftline, monkeypatch, password, checked, served):
    pytest.importorskip("psycopg")
    monkeypatch.setenv("DRIFTLINE_JOURNAL", f"postgresql://bob:{password}@127.0.0.1:1/db")
    for code, words in (
        (0, ("config", "show")),
        (0, ("config", "show", "--json")),
        (checked, ("config", "check")),
        (served, ("serve", "--listen", "127.0.0.1:0")),
    ):
        ran = driftline(*words)
        assert ran.code == code
        assert "heim" not in ran.out + ran.err
        if code == 0 and "show" in words:
            assert "postgresql://bob:***@127.0.0.1:1/db" in ran.out
        if code == 4:
            assert "written %40 and %2F, came postgresql://bob:***@127.0.0.1:1/db" in ran.err


def test_a_secret_in_a_pipe_is_not_waited_for(driftline, tmp_path):
    os.mkfifo(tmp_path / "secret", 0o600)
    file = tmp_path / "broker.toml"
    file.write_text('[webhooks]\nallow = ["https://h/"]\nsecret_file = "secret"\n')
    ran = driftline("config", "check", file)
    assert (ran.code, "ordinary file" in ran.err) == (4, True)


def test_a_broker_that_is_to_listen_nowhere_is_refused(driftline, monkeypatch):
    ran = driftline("serve", "--listen", "")
    assert (ran.code, ran.err) == (4, "driftline: listen: wanted host:port, came ''\n")
    monkeypatch.setenv("DRIFTLINE_LISTEN", "")
    for words in (("config", "check"), ("config", "show", "--json"), ("serve",)):
        assert driftline(*words).code == 4


def test_files_of_the_command_line_are_where_one_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "b.toml").write_text('journal = "file.journal"\nlisten = "127.0.0.1:0"\n')
    words = ("--config", "there/b.toml")
    for more, made in (
        ((), tmp_path / "there" / "file.journal"),
        (("--journal", "flag.journal"), tmp_path / "flag.journal"),
    ):
        with served(tmp_path, *words, *more) as (process, _):
            assert made.exists()
            assert process.end() == 0


def test_an_authority_is_made_once_and_its_secrets_are_its_own(driftline, tmp_path):
    keys = tmp_path / "keys"
    assert driftline("secure", "init", keys).code == 0
    again = driftline("secure", "init", keys)
    assert (again.code, "already" in again.err) == (4, True)
    assert driftline("secure", "broker", keys, "b", "--host", "not a host").code == 4
    assert driftline("secure", "party", keys, "alice", "--json").data["key"].endswith(".key")
    for secret in keys.glob("*.key"):
        assert secret.stat().st_mode & 0o077 == 0
    (keys / "tokens.key").chmod(0o644)
    ran = driftline("secure", "token", keys, "alice")
    assert (ran.code, "others can read" in ran.err) == (4, True)


@pytest.mark.parametrize("kind", ["broker", "party"])
def test_who_has_a_certificate_already_is_named_and_how_it_is_renewed(driftline, tmp_path, kind):
    keys = tmp_path / "keys"
    driftline("secure", "init", keys)
    words = ("secure", kind, keys, "Zoë")
    certificate = Path(driftline(*words, "--json").data["certificate"])
    before = certificate.read_bytes()
    again = driftline(*words)
    assert again.code == 4
    assert f"{kind} Zoë has a certificate already: --renew" in again.err
    assert certificate.read_bytes() == before
    assert driftline(*words, "--renew").code == 0
    assert certificate.read_bytes() != before
