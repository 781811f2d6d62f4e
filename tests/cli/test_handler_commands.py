"""`durable`: does the handbook of handlers bring a webhook to its receiver, and letters back?"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import driftline as dl
from tests.processes import served, until

HANDBOOK = Path(__file__).parents[2] / "docs" / "howto" / "handlers.md"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """Runs blocks of the handbook as they stand there, but for the ports, in one folder."""
    folder = tmp_path_factory.mktemp("handlers")
    tools = folder / "bin"
    tools.mkdir()
    command = tools / "driftline"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m driftline "$@"\n')
    command.chmod(0o755)
    ports = {"7400": str(free_port()), "8080": str(free_port())}
    page = HANDBOOK.read_text()
    for before, after in ports.items():
        page = page.replace(before, after)
    path = f"{tools}:{os.environ['PATH']}"
    env = os.environ | {
        "PATH": path,
        "DRIFTLINE_ADDRESS": f"driftline://127.0.0.1:{ports['7400']}",
        "COLUMNS": "200",
    }

    def run(block: str) -> str:
        ran = subprocess.run(
            ["bash", "-e", "-c", block],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    run.folder = folder
    run.port = ports["7400"]
    run.blocks = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
    (run.receiver,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    return run


@pytest.fixture(scope="module")
def london(shell):
    steps, serve = shell.blocks[0].rstrip().rsplit("\n", 1)
    assert serve == "driftline serve --config london.toml"
    assert "london can begin" in shell(steps)
    words = ("--config", shell.folder / "london.toml", "--listen", f"127.0.0.1:{shell.port}")
    with served(shell.folder, *words) as (process, address):
        yield process, address


class Receiving:
    """The receiver of the handbook, as a process."""

    def __init__(self, folder: Path) -> None:
        self._out = folder / "receiver.out"
        with open(self._out, "wb") as out, open(folder / "receiver.err", "wb") as errors:
            command = [sys.executable, "receiver.py"]
            self.process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=errors)

    @property
    def lines(self) -> list[str]:
        return self._out.read_text().splitlines()


@pytest.fixture(scope="module")
def receiver(shell):
    (shell.folder / "receiver.py").write_text(shell.receiver)
    running = Receiving(shell.folder)
    yield running
    running.process.kill()
    running.process.wait()


def test_the_handbook_step_by_step(shell, london, receiver, driftline, monkeypatch):
    process, address = london
    said = shell(shell.blocks[1])
    assert "/in/cheap" in said
    shell(shell.blocks[2])
    until(lambda: receiver.lines == ["{'symbol': 'IBM', 'price': 9.5}"])

    def cheap() -> dict:
        return driftline("durable", "show", address, "cheap", "--json").data

    until(lambda: cheap()["kept"] == 0)
    one = cheap()
    assert (one["failing"], one["dead"], one["params"]) == ("", 0, {"limit": 10})
    # A receiver whose secret is too old refuses what comes: a dead letter, once it is right again.
    for _ in range(2):
        driftline("durable", "secret", address, "cheap", "--renew")
    driftline("pub", address, "quote", "symbol=IBM", "price=8")
    until(lambda: cheap()["dead"] == 1)
    ran = driftline("durable", "dead", address, "cheap", "--json")
    (letter,) = ran.data
    assert letter["why"] == "the receiver answered 401"
    assert letter["event"]["data"]["values"] == {"price": 8, "symbol": "IBM"}
    assert "the receiver answered 401" in driftline("durable", "dead", address, "cheap").out
    secret = driftline("durable", "secret", address, "cheap").out
    assert secret.startswith("whsec_")
    (shell.folder / "cheap.secret").write_text(secret)
    said = shell(shell.blocks[3])
    assert "1 to be delivered again" in said
    until(lambda: len(receiver.lines) == 2)
    until(lambda: cheap()["dead"] == 0)
    assert receiver.lines[1] == "{'symbol': 'IBM', 'price': 8}"
    master = (shell.folder / "webhooks.secret").read_text().strip()
    assert secret.strip() not in process.err
    assert master not in process.err
    assert "/in/cheap" not in process.err  # An address may be a secret too.


def test_each_command_says_what_it_did(london, driftline):
    _, address = london
    ran = driftline("durable", "keep", address, "x", "SELECT * FROM q WHERE a < :b", "-p", "b=1")
    assert (ran.code, ":b is 1" in ran.out) == (0, True)
    driftline("pub", address, "q", "a=0")
    for command, told in (("suspend", "suspended"), ("resume", "to nobody")):
        assert told in driftline("durable", command, address, "x").out
    ran = driftline("durable", "list", address, "--json")
    found = {one["name"]: one for one in ran.data}
    assert (found["x"]["kept"], found["x"]["next"].isdigit()) == (1, True)
    assert "x" in driftline("durable", "list", address).out
    ran = driftline("durable", "redirect", address, "x", "https://elsewhere.example/in/")
    assert (ran.code, "may go to from here" in ran.err) == (4, True)
    ran = driftline("durable", "redirect", address, "x", "mailto:me@example.org")
    assert (ran.code, "no e-mail is sent from this broker: it has no [email]" in ran.err) == (
        3,
        True,
    )
    assert driftline("durable", "redirect", address, "x", "--json").data["handler"] == ""
    assert driftline("durable", "redeliver", address, "x").code == 2
    assert driftline("durable", "redeliver", address, "x", "--all").code == 4
    assert driftline("durable", "discard", address, "x", "7", "--json").data == {"letters": 0}
    assert "0 thrown away" in driftline("durable", "discard", address, "x", "--all").out
    assert driftline("durable", "drop", address, "x", "--json").data["dropped"] is True
    ran = driftline("durable", "show", address, "x")
    assert (ran.code, "the name of a durable subscription" in ran.err) == (4, True)


def test_without_async_all_of_it_is_there_too(london):
    _, address = london
    with dl.connect(address) as client:
        assert client.durables.keep("y", "SELECT * FROM q")
        client.publish(dl.Event("q", {"a": 1}))
        with client.attach("y", ack="manual") as s:
            told = s.next(10)
            assert told.values == {"a": 1}
        client.durables.had("y", told.number)
        assert client.durables.get("y").kept == 0
        client.durables.suspend("y")
        assert [one.suspended for one in client.durables.all() if one.name == "y"] == [True]
        client.durables.resume("y")
        client.durables.redirect("y", "")
        assert client.durables.dead("y") == []
        assert client.durables.discard("y") == 0
        assert client.durables.secret("y") != client.durables.secret("y", renew=True)
        with pytest.raises(dl.DriftlineError):
            client.durables.redeliver("y")
        client.durables.drop("y")


def test_tables_that_do_not_hold_keep_a_broker_from_beginning(driftline, tmp_path, monkeypatch):
    monkeypatch.delenv("DRIFTLINE_WEBHOOKS_SECRET", raising=False)
    file = tmp_path / "b.toml"
    file.write_text('[webhooks]\nallow = ["https://hooks.example.org/"]\n')
    ran = driftline("serve", "--config", file)
    assert (ran.code, "DRIFTLINE_WEBHOOKS_SECRET" in ran.err) == (4, True)
