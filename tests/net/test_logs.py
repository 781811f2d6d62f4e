"""What does a broker log: can a program read it, are secrets out of it, can strangers fill it?"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import sys
from pathlib import Path

import pytest

from driftline.errors import InvalidValue, JournalUnavailable
from driftline.net import logs
from driftline.net.config import config_of, read_config
from driftline.net.logs import Log, Logs, without_secrets
from tests.net.here import served
from tests.net.secured import Authority, client_of, closed
from tests.net.serving import run
from tests.processes import served as serving

TOKEN = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl-_"
PASSWORD = "g3heim"
LEAKS = (
    f"token {TOKEN} has expired",
    f"Authorization: Bearer {TOKEN}",
    "Authorization: Basic YTpiZzNoZWlt",
    f'connection to "postgresql://b:{PASSWORD}@db.example.org/x" failed',
    f"postgres://b:a@{PASSWORD}@db/x",
    f"host=db user=b password={PASSWORD} dbname=x",
    f"{{'password': '{PASSWORD}', 'token': '{TOKEN}'}}",
    f"it cannot be told through https://hooks.example.org:8443/in/{PASSWORD}",
    f"came 'https://hooks.example.org?key={PASSWORD}'",
    f"of (https://hooks.example.org/in('a')/{PASSWORD}), and more",
    f"HTTP://x@hooks.example.org/{PASSWORD}",
)


class Lines(logging.Handler):
    """What would be written."""

    def __init__(self, format: str) -> None:
        super().__init__()
        self.setFormatter(logs._json_formatter() if format == "json" else logs._Text())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture(params=["text", "json"])
def lines(request: pytest.FixtureRequest) -> object:
    """Everything that is logged meanwhile."""
    handler, root = Lines(request.param), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(before)


@pytest.mark.parametrize("leak", LEAKS)
def test_no_secret_is_written_whoever_logs_it(leak: str, lines: Lines) -> None:
    log = Log("driftline.broker").bind(broker="b")
    log.info("said", problem=leak, facts={"inner": [leak]}, token=TOKEN, password=PASSWORD)
    log.warning(leak)
    logging.getLogger("somebody.else").error("it says %s", leak)
    try:
        raise JournalUnavailable(leak, leak)
    except JournalUnavailable:
        logging.getLogger("asyncio").exception("uncaught")
    text = "\n".join(lines.lines)
    assert len(lines.lines) == 4
    assert "***" in text
    for secret in (TOKEN, PASSWORD, "YTpiZzNoZWlt", TOKEN.split(".")[1]):
        assert secret not in text


def test_handlers_of_others_get_the_facts_and_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    Log("driftline.broker").bind(broker="b").warning("said", token=TOKEN, why="a b", n=7)
    assert caplog.messages == ['b: said token=*** why="a b" n=7']


@pytest.mark.parametrize(
    "plain",
    [
        "a token of three seconds",
        "driftline://host:7400/x",
        "14:30:00",
        "http=http://127.0.0.1:8080 and 'https://[::1]:8443/'",
    ],
)
def test_what_is_no_secret_stays(plain: str) -> None:
    assert without_secrets(plain) == plain


def test_nobody_writes_lines_of_their_own(lines: Lines) -> None:
    Log("driftline.broker").warning("said", peer="1.2.3.4\n2026-01-01 00:00:00 ERROR   fake\x1b[2J")
    assert len(lines.lines[0].splitlines()) == 1
    assert "\x1b" not in lines.lines[0]


def test_what_strangers_cause_is_said_seldom_and_counted(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with served() as server:
            for _ in range(100):
                with socket.create_connection((server.address.host, server.address.port)) as one:
                    one.sendall(b"GET / HTTP/1.1\r\n\r\n")
                await asyncio.sleep(0)
            while server.connections:
                await asyncio.sleep(0.01)
            said = [one for one in lines.lines if "no greeting that is known" in one]
            assert len(said) == logs.SAME_MOST
            monkeypatch.setattr(logs, "SAME_WITHIN", 0.0)
            server.log.own_up()
            assert "passed_over" in lines.lines[-1]
            assert "80" in lines.lines[-1]
            server.log.own_up()
            assert "passed_over" not in lines.lines[-2]

    run(test)


def test_a_client_is_known_by_its_party_and_its_token_is_not_said(
    lines: Lines, tmp_path: Path
) -> None:
    access = '[[grants]]\nwho = ["alice"]\nmay = ["operate"]\n'

    async def test() -> None:
        authority = Authority(tmp_path)
        token = authority.token("alice")
        async with closed(authority, access) as server:
            async with client_of(server, token, name="laptop"):
                pass
            with pytest.raises(Exception, match="proven"):
                async with client_of(server, token[:-2]):
                    pass
        text = "\n".join(lines.lines)
        assert "alice~laptop" in text
        assert "not proven who it is" in text
        assert token not in text
        assert token[:-2] not in text

    run(test)


def test_a_process_says_json_and_nothing_else_on_standard_error(tmp_path: Path) -> None:
    with serving(tmp_path, "--name", "london", "--log-format", "json") as (broker, address):
        host, _, port = address.rpartition("/")[2].rpartition(":")
        with socket.create_connection((host, int(port))) as one:
            one.sendall(b"\x00" * 64)
            one.recv(4096)
        assert broker.end(signal.SIGTERM) == 0
        found = [json.loads(line) for line in broker.err.splitlines()]
    events = [one["event"] for one in found]
    assert [one for one in events if one in ("listens", "ready")] == ["listens", "ready"]
    assert events[-1] == "has ended"
    assert all({"time", "level", "event"} <= one.keys() for one in found)
    assert {one["broker"] for one in found if "broker" in one} == {"london"}
    (ready,) = [one for one in found if one["event"] == "ready"]
    assert ready["address"] == address
    assert "_line" not in ready
    (bad,) = [one for one in found if one["event"] == "no greeting that is known"]
    assert (bad["level"], bad["peer"].split(":")[0]) == ("warning", "127.0.0.1")


def test_it_is_configured_as_everything_is(tmp_path: Path) -> None:
    file = tmp_path / "b.toml"
    file.write_text('[logs]\nformat = "json"\nlevel = "warning"\n')
    assert read_config(file, environment={}).logs == Logs("json", "warning")
    said = {"DRIFTLINE_LOGS_LEVEL": "debug"}
    assert read_config(file, environment=said).logs == Logs("json", "debug")
    assert read_config(file, {"logs.format": "text"}, said).logs == Logs("text", "debug")
    with pytest.raises(InvalidValue, match=r"^logs.level: wanted one of debug"):
        config_of({"logs": {"level": "loud"}})


def test_without_structlog_text_is_written_and_json_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "structlog.stdlib", None)
    assert Lines("text").lines == []
    with pytest.raises(InvalidValue, match="pip install"):
        logs._json_formatter()
