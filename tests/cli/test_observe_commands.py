"""`top`, `/metrics`, traces and logs at a terminal: does the handbook say what happens?"""

from __future__ import annotations

import json
import re
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.processes import Running, served, until

DOCS = Path(__file__).parents[2] / "docs"
HANDBOOK = (DOCS / "howto" / "observe.md").read_text()
REFERENCE = (DOCS / "reference" / "observability.md").read_text()
NAME = re.compile(r"driftline_[a-z_]+[a-z]")
SUFFIXES = re.compile(r"_(bucket|sum|count|created)$")


def fetch(url: str, token: str = "") -> tuple[int, str]:
    asked = urllib.request.Request(url)
    if token:
        asked.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as problem:
        return problem.code, problem.read().decode()


@pytest.fixture(scope="module")
def london(tmp_path_factory):
    """As the handbook starts it, with a journal: its address, and its health."""
    folder = tmp_path_factory.mktemp("observed")
    (steps,) = re.findall(r"```bash\n(.*?)```", HANDBOOK, re.DOTALL)
    words = steps.split()[2:]
    assert steps.startswith("driftline serve ")
    words[words.index("127.0.0.1:7480")] = "127.0.0.1:0"
    journal = ("--journal", folder / "journal", "--log-format", "json")
    # With all there is to be counted.
    config = folder / "london.toml"
    config.write_text(
        '[http]\nlisten = "127.0.0.1:0"\n[webhooks]\nallow = ["https://example.org/"]\n'
    )
    doors = ("--config", config)
    secret = {"DRIFTLINE_WEBHOOKS_SECRET": "m" * 32}
    listen = ("--listen", "127.0.0.1:0")
    running = Running(folder, "serve", "--json", *doors, *listen, *words, *journal, **secret)
    try:
        facts = running.object()
        yield facts["address"], facts["health"].removesuffix("/health")
    finally:
        running.kill()


def test_every_metric_is_explained_and_every_one_explained_is_there(london):
    code, body = fetch(f"{london[1]}/metrics")
    assert code == 200
    there = set(re.findall(r"^# TYPE (driftline_[a-z_]+)", body, re.M))
    explained = {re.sub(r"\{.*", "", name) for name in NAME.findall(REFERENCE)}
    assert there == explained
    used = {SUFFIXES.sub("", name) for name in NAME.findall(HANDBOOK)}
    assert len(used) > 10
    assert used <= there


def test_every_event_of_the_logs_that_is_explained_is_said_somewhere():
    table = REFERENCE[REFERENCE.index("| event | level |") :].partition("\n\n")[0]
    source = "".join(
        path.read_text()
        for package in ("net", "gateway", "handlers", "cli")
        for path in (DOCS.parent / "src/driftline" / package).glob("*.py")
    )
    events = re.findall(r"`([^`]+)`", table)
    assert len(events) > 15
    assert [one for one in events if f'"{one}"' not in source] == []


def test_why_a_broker_cannot_begin_is_in_its_log_as_json_too(driftline, london):
    taken = london[0].removeprefix("driftline://")
    ran = driftline("serve", "--name", "paris", "--listen", taken, "--log-format", "json")
    *_, last = (json.loads(line) for line in ran.err.splitlines())
    assert (ran.code, last["event"], last["broker"]) == (1, "has failed", "paris")
    assert last["problem"] == f"cannot listen on {taken}: address already in use"


@pytest.mark.parametrize("form", ["text", "json"])
def test_where_a_broker_answers_is_whole_in_its_log(tmp_path, form):
    words = ("--listen", "127.0.0.1:0", "--health", "127.0.0.1:0", "--log-format", form)
    running = Running(tmp_path, "serve", "--json", *words)
    try:
        place = running.object()["health"].removesuffix("/health")
        until(lambda: "ready" in running.err)
        assert place in running.err
        assert "***" not in running.err
    finally:
        running.kill()


def test_a_trace_is_shown_where_it_is_told(driftline, tmp_path, london):
    address, _ = london
    said = re.search(r"--trace (\S+)", HANDBOOK)
    assert said is not None
    text = "SELECT * FROM quote"
    assert driftline("sub", address, text, "--durable", "later", "--for", "0").code == 0
    sub = Running(tmp_path, "sub", address, text, "--count", "1")
    try:
        until(lambda: "subscribed at" in sub.err)
        words = ("quote", "firm=IBM", "price=9.5", "--trace", said[1])
        assert driftline("pub", address, *words).code == 0
        assert f"\n{sub.line()}\n" in HANDBOOK
    finally:
        sub.kill()
    words = ("--durable", "later", "--count", "1", "--for", "30", "--json", "--forget")
    assert driftline("sub", address, text, *words).data["traceparent"] == said[1]
    ran = driftline("pub", address, "quote", "price=1", "--trace", "00-nonsense")
    assert (ran.code, "a traceparent" in ran.err) == (4, True)


def test_the_python_of_the_handbook_can_be_read():
    for block in re.findall(r"```python\n(.*?)```", HANDBOOK, re.DOTALL):
        compile(block, "observe.md", "exec")


def test_an_operator_sees_a_broker_with_tls_and_a_token(driftline, tmp_path, monkeypatch):
    keys = tmp_path / "keys"
    assert driftline("secure", "init", keys).code == 0
    assert driftline("secure", "broker", keys, "london", "--host", "127.0.0.1").code == 0
    granted = re.findall(r"```toml\n(\[\[grants\]\].*?)```", HANDBOOK, re.DOTALL)[0]
    alice = '\n[[grants]]\nwho = ["alice"]\nmay = ["subscribe"]\non = ["q"]\nattributes = ["*"]\n'
    (tmp_path / "access.toml").write_text(granted + alice)
    file = tmp_path / "london.toml"
    file.write_text(
        'name = "london"\naccess = "access.toml"\nhealth = "127.0.0.1:0"\n'
        '[tls]\ncertificate = "keys/broker-london.pem"\nkey = "keys/broker-london.key"\n'
        'authority = "keys/ca.pem"\n[tokens]\nkey = "keys/tokens.pub"\n'
    )
    authority = ("--authority", keys / "ca.pem")
    tokens = {
        who: driftline("secure", "token", keys, who, "--hours", "2160").out.strip()
        for who in ("prometheus", "alice")
    }
    running = Running(tmp_path, "serve", "--json", "--listen", "127.0.0.1:0", "--config", file)
    try:
        facts = running.object()
        health, address = facts["health"], facts["address"]
        where = health.removesuffix("/health") + "/metrics"
        assert [fetch(where, one)[0] for one in ("", tokens["alice"], tokens["prometheus"])] == [
            *(401, 403, 200),
        ]
        monkeypatch.setenv("DRIFTLINE_TOKEN", tokens["alice"])
        words = ("sub", address, "SELECT * FROM q", "--durable", "d", "--for", "0", *authority)
        assert driftline(*words).code == 0
        ran = driftline("top", address, "--once", "--every", "0.1", "--json", *authority)
        (mine,) = ran.data["subscriptions"]
        assert (mine["durable"], mine["evaluated"], mine["sent"]) == ("d", 0, 0)
        assert ran.data["brokers"][0]["operated"] is False
        monkeypatch.setenv("DRIFTLINE_TOKEN", tokens["prometheus"])
        ran = driftline("top", address, "--once", "--every", "0.1", "--json", *authority)
        (one,) = ran.data["brokers"]
        assert (one["operated"], one["subscriptions"], ran.data["subscriptions"]) == (True, 1, [])
        assert one["bytes_in_per_second"] > 0
        assert "SELECT" not in ran.out
        assert running.end(signal.SIGTERM) == 0
        assert all(token not in running.err for token in tokens.values())
    finally:
        running.kill()


def test_top_shows_links_and_who_is_slow(driftline, tmp_path):
    text = "SELECT n FROM slow WHERE n >= :least"
    words = ("-p", "least=0", "--policy", "min_interval=600", "--policy", "limit=7")
    with (
        served(tmp_path, "--name", "alone") as (_, alone),
        served(tmp_path, "--name", "london", "--peer", "paris") as (_, address),
    ):
        sub = Running(tmp_path, "sub", alone, text, *words)
        try:
            until(lambda: "subscribed at" in sub.err)
            lines = tmp_path / "events.jsonl"
            lines.write_text("".join(f'{{"type": "slow", "n": {n}}}\n' for n in range(20)))
            assert driftline("pub", alone, "--file", lines).code == 0
            ran = driftline("top", alone, address, "--once", "--every", "0.1", "--json")
            slow, mine = ran.data["slow"], ran.data["subscriptions"]
            assert [one["broker"] for one in slow] == ["alone"]
            (one,) = [each for each in mine if each["text"] == text]
            counted = [one[name] for name in ("evaluated", "matched", "suppressed", "sent")]
            assert (counted, one["waiting"]) == ([20, 20, 12, 1], 7)
            shown = driftline("top", alone, address, "--once", "--every", "0.1").out
            assert text in shown
            assert "least=0" in shown
            assert "Slowest consumers" in shown
            assert re.search(r"london +paris +down: nobody has come", shown)
        finally:
            sub.kill()
