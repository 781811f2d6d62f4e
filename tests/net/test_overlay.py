"""Does one file start, look after and end several brokers, as the README says it?"""

import os
import re
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

import driftline as dl
from driftline.errors import FileRefused, NotAuthenticated
from driftline.net.authority import create, sign_broker, sign_token
from driftline.net.config import read_config
from driftline.net.overlay import read_plan, toml_of
from driftline.net.overlay_state import is_up, read_state
from tests.processes import ENVIRONMENT, READY, SOON, Running, until

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "overlay.toml"


def test_the_example_is_five_brokers_without_a_circle():
    plan = read_plan(EXAMPLE)
    assert list(plan.brokers) == ["london", "paris", "rome", "newyork", "amsterdam"]
    assert len(plan.links) == 4


def test_what_is_written_for_a_broker_is_what_it_reads(tmp_path):
    plan = read_plan(EXAMPLE)
    for name, said in plan.brokers.items():
        path = tmp_path / f"{name}.toml"
        path.write_text(toml_of(said))
        config = read_config(path, environment={})
        assert (config.name, str(config.listen)) == (name, said["listen"])
        assert [peer.name for peer in config.peers] == [one["name"] for one in said["peers"]]


def test_ports_that_are_not_said_are_free_and_not_the_same(tmp_path):
    path = tmp_path / "many.toml"
    path.write_text("".join(f"[brokers.b{n}]\n" for n in range(50)))
    listens = {one["listen"] for one in read_plan(path).brokers.values()}
    assert len(listens) == 50


TWO = "[brokers.a]\n[brokers.b]\n"
LINK = '[[links]]\nbetween = ["{}", "{}"]\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "tables [brokers.NAME]"),
        ("x = ", "no TOML"),
        (f"x = {'[' * 3000}", "no TOML: lists in lists, too deep"),
        ("x = 1\n" + TWO, "only access, advertised"),
        ("journals = 1\n" + TWO, "journals"),
        ("[brokers]\na = 1", "brokers.a"),
        ("[brokers.'a/b']", "names of letters"),
        ("[brokers.a]\npeers = []", "see links"),
        ("[brokers.a]\nport = 1", "configuration"),
        ("[brokers.a]\njournal = 'postgresql://me:secret@h/db'", "a.journal: wanted no password"),
        ("[brokers.a.tls]", "brokers.a.tls: wanted at least certificate, key"),
        ("[tokens]\n[brokers.a]", "brokers.a.tokens: wanted at least key"),
        ("[tls.certificate]\nx = 1\n[brokers.a.tls]\nkey = 'k'", "a.tls.certificate: wanted the"),
        ("[brokers.a.tls]\ncertificate = 7\nkey = 'k'", "a.tls.certificate: wanted the name"),
        (TWO + LINK.format("a", "c"), "two of a, b"),
        (TWO + LINK.format("a", "a"), "two of a, b"),
        (TWO + LINK.format("a", "b") + 'role = "boss"', "role"),
        (TWO + LINK.format("a", "b") * 2, "one between two"),
        (
            TWO + "[brokers.c]\n" + LINK.format("a", "b") + LINK.format("b", "c")
            + LINK.format("c", "a"),
            "no circle",
        ),
    ],
)  # fmt: skip
def test_a_file_that_says_no_overlay_is_refused_with_the_reason(tmp_path, text, problem):
    path = tmp_path / "overlay.toml"
    path.write_text(text)
    with pytest.raises(FileRefused) as refused:
        read_plan(path)
    assert problem in str(refused.value)


def test_what_is_written_comes_back_whatever_letters_it_has(tmp_path):
    folder = tmp_path / "\N{PERSONAL COMPUTER} \x7f"
    folder.mkdir()
    path = folder / "overlay.toml"
    path.write_text('journals = "\N{FIRE}"\n[brokers.a]\nlisten = "0.0.0.0:7400"')
    said = read_plan(path).brokers["a"]
    path.write_text(toml_of(said))
    config = read_config(path, environment={})
    assert config.journal == str(folder / "\N{FIRE}" / "a.journal")


def test_a_broker_that_listens_everywhere_is_dialled_on_this_machine(tmp_path):
    path = tmp_path / "overlay.toml"
    path.write_text("[brokers.a]\n[brokers.b]\nlisten = '0.0.0.0:7400'\n" + LINK.format("a", "b"))
    (peer,) = read_plan(path).brokers["a"]["peers"]
    assert peer["address"] == "127.0.0.1:7400"


def readme_program():
    text = (ROOT / "README.md").read_text()
    (found,) = re.findall(r"```python\n(import driftline as dl\n.*?)```", text, re.DOTALL)
    printed = re.search(r"It prints\s+((?:    .*\n)+)", text)
    return found, [line.strip() for line in printed[1].splitlines()]


@pytest.fixture(scope="module")
def overlay(tmp_path_factory):
    """The example, with other ports: those of the README may be somebody's."""
    folder = tmp_path_factory.mktemp("overlay")
    file = folder / "overlay.toml"
    text = EXAMPLE.read_text()
    free = read_plan(_portless(text, folder)).brokers.values()
    ports = [one["listen"].rpartition(":")[2] for one in free]
    said = sorted(set(re.findall(r"127\.0\.0\.1:(\d+)", text)))
    moved = dict(zip(said, ports, strict=False))
    file.write_text(_moved(text, moved))
    running = Running(folder, "overlay", "up", file, "--json")
    try:
        up = running.object()
        yield file, up, moved
    finally:
        running.process.send_signal(signal.SIGINT)
        code = running.wait()
        assert code == 0, running.err
        assert not is_up(file.with_suffix(".run"))


def _portless(text, folder):
    path = folder / "ports.toml"
    path.write_text(re.sub(r"(?m)^listen.*$", "", text))
    return path


def _moved(text, ports):
    return re.sub(
        r"127\.0\.0\.1:(\d+)", lambda found: f"127.0.0.1:{ports.get(found[1], found[1])}", text
    )


def at(up, name):
    return next(one for one in up["brokers"] if one["name"] == name)


def test_all_brokers_and_links_are_up(overlay):
    file, up, _ = overlay
    assert up["ready"]
    assert all(one["up"] for one in (*up["brokers"], *up["links"]))
    assert len({one["process"] for one in up["brokers"]}) == 5
    assert read_state(file.with_suffix(".run"))["brokers"] == up["brokers"]


def test_nobody_else_looks_into_the_folder_of_journals(overlay):
    file, _, _ = overlay
    assert (file.parent / "overlay.run" / "journals").stat().st_mode & 0o777 == 0o700


def test_the_program_of_the_readme_does_what_the_readme_says(overlay, tmp_path):
    _, _, ports = overlay
    program, printed = readme_program()
    assert len([line for line in program.splitlines() if line]) == 10
    path = tmp_path / "program.py"
    path.write_text(_moved(program, ports))
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, timeout=READY, env=ENVIRONMENT
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == printed


def test_a_broker_that_is_killed_is_started_again_and_subscriptions_go_on(overlay):
    file, up, _ = overlay
    state = file.with_suffix(".run")
    rome, newyork = at(up, "rome")["address"], at(up, "newyork")["address"]
    with dl.connect(rome) as there, dl.connect(newyork) as here:
        s = there.subscribe("SELECT * FROM quote WHERE price < :limit", {"limit": 10}, durable="d")
        here.publish(dl.Event("quote", {"price": 9}))
        assert s.next(SOON).values == {"price": 9}
        # It lies between the two.
        paris = at(read_state(state), "paris")
        os.kill(paris["process"], signal.SIGKILL)
        until(lambda: at(read_state(state), "paris")["restarts"] > paris["restarts"], READY)
        until(lambda: all(one["up"] for one in read_state(state)["links"]), READY)
        assert at(read_state(state), "paris")["process"] != paris["process"]
        there.confirm(SOON)
        here.publish(dl.Event("quote", {"price": 8}))
        assert s.next(SOON).values == {"price": 8}
        s.set(limit=7)
        here.publish(dl.Event("quote", {"price": 8}))
        here.publish(dl.Event("quote", {"price": 6}))
        assert s.next(SOON).values == {"price": 6}
        s.cancel()


def test_a_second_one_of_the_same_file_is_refused_and_top_finds_all(overlay, tmp_path):
    file, up, _ = overlay
    second = Running(tmp_path, "overlay", "up", file)
    assert second.wait() == 4
    assert "up already" in second.err
    until(lambda: all(one["up"] for one in read_state(file.with_suffix(".run"))["links"]))
    shown = Running(tmp_path, "overlay", "status", file, "--json")
    assert len(shown.object()["brokers"]) == 5
    assert shown.wait() == 0
    top = Running(tmp_path, "top", file, "--once", "--json", "--every", "0.1")
    assert {one["broker"] for one in top.object()["brokers"]} == {
        one["name"] for one in up["brokers"]
    }
    assert top.wait() == 0


def test_one_that_is_detached_goes_on_until_it_is_ended(tmp_path):
    file = tmp_path / "two.toml"
    file.write_text(TWO + LINK.format("a", "b"))
    up = Running(tmp_path, "overlay", "up", file, "--detach", "--json")
    try:
        found = up.object()
        assert up.wait() == 0
        with dl.connect(found["brokers"][0]["address"]) as client:
            assert client.broker == "a"
    finally:
        down = Running(tmp_path, "overlay", "down", file)
        code = down.wait()
    assert code == 0, down.err
    for one in found["brokers"]:
        with pytest.raises(ProcessLookupError):
            os.kill(one["process"], 0)
    again = Running(tmp_path, "overlay", "down", file)
    assert again.wait() == 4
    assert "not up" in again.err


def test_the_status_of_an_overlay_that_is_not_up_says_so_and_ends_with_1(driftline, tmp_path):
    file = tmp_path / "two.toml"
    file.write_text(TWO + LINK.format("a", "b"))
    ran = driftline("overlay", "status", file)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.strip() == f"{file}: the overlay is not up: driftline overlay up starts it"
    ran = driftline("overlay", "status", file, "--json")
    assert (ran.code, ran.data["ready"], ran.data["brokers"]) == (1, False, [])
    ran = driftline("overlay", "status", tmp_path / "three.toml")
    assert (ran.code, "three.toml: No such file" in ran.err) == (4, True)


def test_brokers_end_when_their_supervisor_is_killed(tmp_path):
    file = tmp_path / "one.toml"
    file.write_text("[brokers.a]\n")
    up = Running(tmp_path, "overlay", "up", file, "--json")
    try:
        (broker,) = up.object()["brokers"]
    finally:
        up.process.kill()
        up.wait()
    end = time.monotonic() + SOON
    while Path(f"/proc/{broker['process']}").exists() and not _is_zombie(broker["process"]):
        assert time.monotonic() < end
        time.sleep(0.05)


CLOSED = """
journals = "journals"
access = "access.toml"

[tls]
authority = "keys/ca.pem"

[tokens]
key = "keys/tokens.pub"

[brokers.a.tls]
certificate = "keys/broker-a.pem"
key = "keys/broker-a.key"

[brokers.b.tls]
certificate = "keys/broker-b.pem"
key = "keys/broker-b.key"

[[links]]
between = ["a", "b"]
"""
GRANTS = """
[[grants]]
who = ["alice"]
may = ["publish", "subscribe"]
on = ["quote"]
attributes = ["*"]
[[grants]]
who = ["watch"]
may = ["operate"]
"""


def closed_overlay(folder, name="overlay.toml"):
    """A file whose brokers want proofs from everybody, and the folder of who signs them."""
    keys = folder / "keys"
    create(keys)
    for one in "ab":
        sign_broker(keys, one, ["127.0.0.1"])
    (folder / "access.toml").write_text(GRANTS)
    file = folder / name
    file.write_text(CLOSED)
    return file, keys


def test_closed_brokers_are_joined_and_looked_after_like_any(tmp_path):
    file, keys = closed_overlay(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    up = Running(tmp_path, "overlay", "up", file, "--json", cwd=elsewhere)
    try:
        found = up.object()
        assert all(one["up"] for one in (*found["brokers"], *found["links"]))
        here, there = (one["address"] for one in found["brokers"])
        assert here.startswith("driftlines://")
        trust = ssl.create_default_context(cafile=keys / "ca.pem")
        alice = {"tls": trust, "token": sign_token(keys, "alice", time.time())}
        with dl.connect(here, **alice) as at_a, dl.connect(there, **alice) as at_b:
            s = at_b.subscribe("SELECT * FROM quote WHERE price < 10")
            at_a.publish(dl.Event("quote", {"price": 9}))
            assert s.next(SOON).values == {"price": 9}
        with pytest.raises(NotAuthenticated), dl.connect(here, tls=trust):
            pass
        # What is looked at to know whether links are up is not open to everybody either.
        with pytest.raises(HTTPError, match="401"):
            urlopen(found["brokers"][0]["health"])
        watch = sign_token(keys, "watch", time.time())
        words = ("top", file, "--once", "--json", "--every", "0.1", "--authority", keys / "ca.pem")
        top = Running(tmp_path, *words, DRIFTLINE_TOKEN=watch)
        assert [one["up"] for one in top.object()["brokers"]] == [True, True]
        assert top.wait() == 0, top.err
        state = file.with_suffix(".run")
        os.kill(at(found, "b")["process"], signal.SIGKILL)
        until(lambda: not all(one["up"] for one in read_state(state)["links"]))
        until(lambda: at(read_state(state), "b")["restarts"] == 1, READY)
        until(lambda: all(one["up"] for one in read_state(state)["links"]), READY)
    finally:
        code = up.end()
    assert code == 0, up.err
    assert "Traceback" not in up.err


def test_what_all_brokers_are_told_and_what_one_is_told_add_up(tmp_path):
    file, keys = closed_overlay(tmp_path)
    more = "[limits]\nrate = 5\ndurable = 7\n[brokers.b.limits]\nrate = 6\n"
    file.write_text(CLOSED + more)
    brokers = read_plan(file).brokers
    assert brokers["a"]["limits"] == {"rate": 5, "durable": 7}
    assert brokers["b"]["limits"] == {"rate": 6, "durable": 7}
    for name, said in brokers.items():
        path = tmp_path / "elsewhere.toml"
        path.write_text(toml_of(said))
        config = read_config(path, environment={})
        assert config.access == tmp_path / "access.toml"
        assert config.tokens.key == keys / "tokens.pub"
        assert config.tls.certificate == keys / f"broker-{name}.pem"
        assert config.tls.authority == keys / "ca.pem"


def _is_zombie(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_broker_that_cannot_start_is_named_with_its_reason(tmp_path, form):
    file = tmp_path / "two.toml"
    logs = f'[logs]\nformat = "{form}"\n'
    file.write_text(f'{logs}[brokers.a]\n[brokers.b]\nlisten = "192.0.2.1:7400"\n')
    up = Running(tmp_path, "overlay", "up", file)
    assert up.wait() == 1
    assert "broker b did not start: driftline: cannot listen on 192.0.2.1:7400" in up.err
    assert "Traceback" not in up.err


def test_what_several_brokers_cannot_share_none_has_from_the_environment(tmp_path):
    file = tmp_path / "two.toml"
    file.write_text('journals = "kept"\n[brokers.a]\n[brokers.b]\n')
    words = {
        "DRIFTLINE_NAME": "other",
        "DRIFTLINE_LISTEN": "127.0.0.1:1",
        "DRIFTLINE_JOURNAL": "memory:",
        "DRIFTLINE_HEALTH": "127.0.0.1:1",
        "DRIFTLINE_HTTP_LISTEN": "127.0.0.1:1",
    }
    up = Running(tmp_path, "overlay", "up", file, "--json", **words)
    try:
        for name, address in ((one["name"], one["address"]) for one in up.object()["brokers"]):
            with dl.connect(address) as client:
                assert client.broker == name
        kept = sorted(one.name for one in (tmp_path / "kept").glob("*.journal"))
        assert kept == ["a.journal", "b.journal"]
    finally:
        up.process.send_signal(signal.SIGINT)
        assert up.wait() == 0, up.err


def test_no_folder_is_made_for_a_journal_that_is_no_file(tmp_path):
    file = tmp_path / "one.toml"
    file.write_text(f'[brokers.a]\njournal = "postgresql://b@/db?host={tmp_path}/nowhere"\n')
    up = Running(tmp_path, "overlay", "up", file, cwd=tmp_path)
    assert up.wait() == 1
    assert "broker a did not start: driftline: journal postgresql://" in up.err
    assert not [one for one in tmp_path.iterdir() if one.name.startswith("postgresql")]
