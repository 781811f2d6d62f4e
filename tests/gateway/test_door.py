"""Does a broker look after the process that answers HTTP for it, whatever becomes of either?"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

import driftline as dl
from driftline.gateway.door import HttpDoor
from driftline.gateway.line import Begin, Busy, Leave, Line, Said, Trouble, Unproven
from driftline.net.config import Config
from driftline.net.tls import Tls
from driftline.net.tokens import Tokens
from tests.net.here import eventually, http, served
from tests.net.processes import BrokerProcess, Brokers
from tests.net.secured import Authority

HTTP = {"listen": "127.0.0.1:0"}
EVENT = {"type": "tick", "n": 1}
GRANT = "[[grants]]\nwho = ['{}']\nmay = ['publish']\non = ['tick']\nattributes = ['*']"


def answers(broker: BrokerProcess, **said: object) -> int:
    """By what process: this is asked until one answers."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with suppress(httpx.HTTPError):
            if httpx.post(f"{broker.http}/v1/events", json=EVENT, timeout=20).is_success:
                break
    else:
        raise AssertionError(f"nobody answers: {broker.errors}")
    (found,) = broker.ask("http")
    assert isinstance(found, int)
    return found


def ends(process: int, within: float = 10.0) -> None:
    """Wait until there is no such process."""
    deadline = time.monotonic() + within
    while Path(f"/proc/{process}").exists():
        # One that nobody has asked about yet has ended, too.
        if "State:\tZ" in Path(f"/proc/{process}/status").read_text():
            return
        assert time.monotonic() < deadline, f"{process} goes on"
        time.sleep(0.01)


def test_it_is_begun_again_when_it_crashes_and_the_broker_goes_on(tmp_path):
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b", http=HTTP)
        with dl.connect(broker.address) as client, client.subscribe("SELECT * FROM tick") as told:
            for n in range(3):
                crashed = answers(broker)
                assert told.next(10).values == {"n": 1}
                os.kill(crashed, signal.SIGKILL)
                # Whoever connects now waits until it is there again, and is not refused.
                client.publish(dl.Event("tick", {"n": n}))
                assert told.next(10).values == {"n": n}
                ends(crashed)
                assert httpx.get(f"{broker.http}/v1/openapi.json", timeout=20).is_success
                assert answers(broker) != crashed
                assert told.next(10).values == {"n": 1}
            found = client.metrics()
        assert "driftline_http_restarts_total 3.0" in found
        assert broker.errors.count("b: what answers HTTP is begun again") == 3
        # Its end is taken note of once, by whoever waits for it.
        assert "Unknown child process" not in broker.errors
        assert broker.end() == 0


def test_it_ends_with_its_broker_and_leaves_the_address_to_the_next(tmp_path):
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b", http=HTTP)
        before = answers(broker)
        broker.kill()
        broker.restart()
        after = answers(broker)
        assert after != before
        ends(before)
        assert broker.end() == 0
        ends(after)
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", broker.http_port))


def test_streams_are_told_that_the_broker_ends(tmp_path):
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b", http=HTTP)
        where = f"{broker.http}/v1/stream?sql=SELECT%20*%20FROM%20tick"
        with httpx.stream("GET", where, timeout=20) as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith(":")
            assert broker.end() == 0
            *_, end, said, _ = lines
        assert end == "event: end"
        found = json.loads(said.removeprefix("data: "))
        assert (found["status"], found["detail"]) == (503, "the broker ends")


def test_what_was_asked_when_the_broker_ends_is_still_answered(tmp_path):
    body = json.dumps(EVENT).encode()
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b", http=HTTP)
        with socket.create_connection(("127.0.0.1", broker.http_port), timeout=20) as asking:
            head = (
                "POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            asking.sendall(head.encode() + body[:5])
            time.sleep(0.5)
            os.kill(broker.pid, signal.SIGTERM)
            time.sleep(0.5)
            asking.sendall(body[5:])
            assert asking.recv(1000).startswith(b"HTTP/1.1 200")
        assert broker.end() == 0


def test_a_signal_for_all_processes_of_a_terminal_is_for_the_broker(tmp_path):
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b", http=HTTP)
        process = answers(broker)
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(process, one)
        time.sleep(0.2)
        assert answers(broker) == process
        assert broker.end() == 0


def children(process: int) -> list[int]:
    """Those that a process has begun and that go on."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == process and state != "Z":
                found.append(int(path.parent.name))
    return found


def test_such_a_signal_is_for_the_broker_also_while_what_answers_begins(tmp_path):
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b", http=HTTP)
        before = answers(broker)
        os.kill(before, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while not (others := [one for one in children(broker.pid) if one != before]):
            assert time.monotonic() < deadline
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(others[0], one)
        assert answers(broker) == others[0]
        assert broker.errors.count("is begun again") == 1
        # The broker itself hears them as before.
        assert broker.end() == 0


def test_files_where_the_broker_was_begun_are_not_taken_for_pythons_own(tmp_path, monkeypatch):
    (tmp_path / "token.py").write_text("raise SystemExit('this is no part of Python')")
    monkeypatch.chdir(tmp_path)
    with Brokers(tmp_path) as brokers:
        answers(brokers.start("b", http=HTTP))


def test_it_is_tried_again_until_there_are_files_for_it(tmp_path):
    resource = pytest.importorskip("resource")
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b", http=HTTP)
        process = answers(broker)
        before = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
        # So many as it has without the line.
        most = len(os.listdir(f"/proc/{broker.pid}/fd")) - 2
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (most, before[1]))
        os.kill(process, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while "no process" not in broker.errors:
            assert time.monotonic() < deadline, broker.errors
            time.sleep(0.05)
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, before)
        assert answers(broker) != process
        assert broker.end() == 0


@pytest.mark.parametrize("door", ["http", "broker"])
def test_when_there_are_no_files_left_those_go_who_ask_for_nothing(tmp_path, door):
    resource = pytest.importorskip("resource")
    said = {"http": {**HTTP, "patience": 100.0}, "limits": {"greeting": 100.0}}
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b", **said)
        process = answers(broker)
        crowded, port = (process, broker.http_port) if door == "http" else (broker.pid, broker.port)
        before = resource.prlimit(crowded, resource.RLIMIT_NOFILE)
        most = max(map(int, os.listdir(f"/proc/{crowded}/fd"))) + 40
        resource.prlimit(crowded, resource.RLIMIT_NOFILE, (most, before[1]))
        idle = []
        for _ in range(80):
            idle.append(socket.create_connection(("127.0.0.1", port), timeout=20))
            idle[-1].send(b"G")
        if door == "http":
            assert answers(broker) == process
        else:
            with dl.connect(broker.address) as client:
                client.publish(dl.Event("tick", {"n": 1}))
        resource.prlimit(crowded, resource.RLIMIT_NOFILE, before)
        for one in idle:
            one.close()
        assert broker.end() == 0


def test_it_is_tried_again_until_there_is_a_thread_that_waits_for_it(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import threading\n"
        "start, begun = threading.Thread.start, []\n"
        "def other(thread):\n"
        "    begun.extend(['waits'] if 'waitpid' in thread.name else [])\n"
        "    if 'waitpid' in thread.name and len(begun) == 2:\n"
        '        raise RuntimeError("can\'t start new thread")\n'
        "    start(thread)\n"
        "threading.Thread.start = other\n"
    )
    with Brokers(tmp_path) as brokers:
        source = os.pathsep.join([str(tmp_path), *sys.path])
        broker = brokers.define("b", http=HTTP, prefix=["env", f"PYTHONPATH={source}"])
        broker.launch()
        process = answers(broker.ready())
        os.kill(process, signal.SIGKILL)
        assert answers(broker) != process
        if sys.version_info < (3, 12):  # Later ones need no thread.
            assert "no process: can't start new thread" in broker.errors
        assert broker.end() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody sees another's environment")
def test_it_does_not_know_the_password_of_the_journal(tmp_path, monkeypatch):
    for name in ("DRIFTLINE_JOURNAL", "PGPASSWORD", "DRIFTLINE_LOGS_LEVEL"):
        monkeypatch.setenv(name, "geheim")
    with Brokers(tmp_path) as brokers:
        process = answers(brokers.start("b", http=HTTP))
        said = Path(f"/proc/{process}/environ").read_text()
    assert "DRIFTLINE_LOGS_LEVEL=geheim" in said
    assert said.count("geheim") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends when it hears of it")
def test_one_that_stands_still_ends_with_a_broker_that_is_killed(tmp_path):
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b", http=HTTP)
        process = answers(broker)
        os.kill(process, signal.SIGSTOP)
        broker.kill()
        ends(process)
        broker.restart()
        answers(broker)


def sooner(folder: Path) -> list[str]:
    """Begins a broker that looks sooner whether what answers HTTP stands still."""
    # In the broker's process, too.
    (folder / "sitecustomize.py").write_text(
        "import driftline.gateway.front\ndriftline.gateway.front.SILENCE = 6.0\n"
    )
    return ["env", f"PYTHONPATH={os.pathsep.join([str(folder), *sys.path])}"]


def test_one_that_stands_still_is_ended_and_another_begun(tmp_path):
    with Brokers(tmp_path) as brokers:
        broker = brokers.define("b", http=HTTP, prefix=sooner(tmp_path))
        broker.launch()
        process = answers(broker.ready())
        os.kill(process, signal.SIGSTOP)
        # Whoever has connected waits for the next one.
        assert httpx.get(f"{broker.http}/v1/openapi.json", timeout=60).is_success
        assert answers(broker) != process
        ends(process)
        assert broker.errors.count("is begun again") == 1
        assert broker.end() == 0


def test_one_that_stood_still_with_its_broker_goes_on_with_it(tmp_path):
    """As when both are stopped at a terminal, or the machine is."""
    with Brokers(tmp_path) as brokers:
        broker = brokers.define("b", http=HTTP, prefix=sooner(tmp_path))
        broker.launch()
        process = answers(broker.ready())
        for one in (broker.pid, process):
            os.kill(one, signal.SIGSTOP)
        time.sleep(8)
        for one in (broker.pid, process):
            os.kill(one, signal.SIGCONT)
        assert answers(broker) == process
        time.sleep(1)
        assert answers(broker) == process
        assert broker.end() == 0


def test_one_that_stands_still_while_it_begins_keeps_no_other_from_answering(tmp_path):
    """Who may do what changes then: it is not waited for any more, and not for a minute either."""
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b", http=HTTP)
        before = answers(broker)
        os.kill(before, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while not (others := [one for one in children(broker.pid) if one != before]):
            assert time.monotonic() < deadline
        # Until it is a process of its own the broker stands still with it.
        while b"driftline.gateway" not in Path(f"/proc/{others[0]}/cmdline").read_bytes():
            assert time.monotonic() < deadline
        os.kill(others[0], signal.SIGSTOP)
        time.sleep(0.2)  # So that it is asked to answer.
        os.kill(broker.pid, signal.SIGHUP)
        assert answers(broker) not in (before, others[0])
        ends(others[0])
        assert broker.end() == 0


def test_one_that_stands_still_keeps_no_broker_from_its_end(tmp_path):
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b", http=HTTP)
        process = answers(broker)
        os.kill(process, signal.SIGSTOP)
        assert broker.end() == 0
        ends(process)


def test_another_answers_when_certificates_are_read_anew(tmp_path):
    authority = Authority(tmp_path / "keys")
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b", http=HTTP, tls=authority.tls("b"))
        at = broker.http.replace("http", "https")
        with httpx.Client(base_url=at, verify=authority.trust(), timeout=20) as client:
            (before,) = broker.ask("http")
            assert client.post("/v1/events", json=EVENT).is_success
            os.kill(broker.pid, signal.SIGHUP)
            ends(before)
            assert client.post("/v1/events", json=EVENT).is_success
            (after,) = broker.ask("http")
            assert after not in (before, None)
        assert "is begun again" not in broker.errors
        assert broker.end() == 0


def test_what_was_counted_counts_on_while_another_begins():
    """What only grows must never be less: Prometheus would take it for counted anew."""

    async def test():
        async with served(http=HTTP) as server:
            (door,) = [one for one in server.doors if isinstance(one, HttpDoor)]
            async with httpx.AsyncClient(base_url=http(server)) as client:
                assert (await client.get("/v1/openapi.json")).is_success
            await eventually(lambda: door.busy.requests == 1)
            before = door._front
            server.reload(server.config)
            while door._front in (None, before) or door._ending:
                assert door.busy.requests == 1
                await asyncio.sleep(0)
            assert door.busy.requests == 1

    run(test())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it reads the files")
def test_one_that_is_begun_again_goes_by_what_the_broker_has_read(tmp_path):
    """By nothing that has come into these files since: nobody has asked for that to be read."""
    authority, another = Authority(tmp_path / "keys"), Authority(tmp_path / "others")
    access = tmp_path / "access.toml"
    access.write_text(GRANT.format("alice"))
    tls, tokens = authority.tls("b"), authority.tokens()
    ours, theirs = authority.token("alice"), another.token("alice")
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b", http=HTTP, tls=tls, tokens=tokens, access=str(access))
        at = broker.http.replace("http", "https")

        def publish(token: str, trust: ssl.SSLContext) -> int:
            headers = {"Authorization": f"Bearer {token}"}
            said = httpx.post(
                f"{at}/v1/events", json=EVENT, headers=headers, verify=trust, timeout=20
            )
            return said.status_code

        assert [publish(one, authority.trust()) for one in (ours, theirs)] == [200, 401]
        Path(tokens["key"]).write_bytes(Path(another.tokens()["key"]).read_bytes())
        Path(tls["key"]).write_bytes(b"nothing")
        Path(tls["certificate"]).unlink()
        access.write_text("[[grants]]")
        (before,) = broker.ask("http")
        os.kill(before, signal.SIGKILL)
        ends(before)
        assert [publish(one, authority.trust()) for one in (ours, theirs)] == [200, 401]
        # When it is told to, and all is sound again, it goes by what is there then.
        renewed = another.tls("b")
        for name in ("key", "certificate", "authority"):
            Path(tls[name]).write_bytes(Path(renewed[name]).read_bytes())
        access.write_text(GRANT.format("bob"))
        os.kill(broker.pid, signal.SIGHUP)
        deadline = time.monotonic() + 30
        while True:
            with suppress(httpx.HTTPError):
                if publish(theirs, another.trust()) == 403:
                    break
            assert time.monotonic() < deadline, broker.errors
            time.sleep(0.1)
        assert publish(ours, another.trust()) == 401
        assert broker.end() == 0


# The line


class End:
    """One end of a line, and what came by it."""

    def __init__(self, end: socket.socket) -> None:
        self.heard: list[Said] = []
        self.handed: list[socket.socket] = []
        self.lost = 0
        self.line = Line(end, heard=self.heard.append, lost=self.lose, handed=self.handed.append)

    def lose(self) -> None:
        self.lost += 1


def run(test):
    asyncio.run(asyncio.wait_for(test, 30))


def test_what_is_said_comes_in_order_with_sockets_in_between_however_much_it_is():
    async def test():
        one, two = map(End, socket.socketpair())
        said: list[Said] = []
        for n in range(2000):
            what = Unproven(f"peer {n}", "x" * (n * 7 % 1000)) if n % 2 else Busy(n)
            said.append(what)
            one.line.say(what)
            if n % 20 == 0:
                ours, theirs = socket.socketpair()
                ours.sendall(b"%d" % n)
                ours.close()
                one.line.hand(theirs)
        two.line.say(Leave(at_once=True))
        assert one.line._out, "it waits for nobody"
        await eventually(lambda: len(two.heard) == 2000 and len(two.handed) == 100)
        assert two.heard == said
        assert [int(sock.recv(10)) for sock in two.handed] == [*range(0, 2000, 20)]
        assert not any(sock.get_inheritable() for sock in two.handed)
        assert one.heard == [Leave(at_once=True)]
        for sock in two.handed:
            sock.close()
        one.line.close()
        await eventually(lambda: two.lost == 1)
        # Nobody hears it, and nothing fails.
        two.line.say(Trouble("x"))
        left, right = socket.socketpair()
        two.line.hand(left)
        assert left.fileno() == -1
        right.close()

    run(test())


def test_names_of_files_that_are_no_text_are_said_as_they_are():
    async def test():
        one, two = map(End, socket.socketpair())
        file = Path(os.fsdecode(b"/etc/b\xfcro/access.toml"))
        said = Begin(
            Config(access=file, tokens=Tokens(file), tls=Tls(file, file)), [b"\xff\0", None], ""
        )
        one.line.say(said)
        await eventually(lambda: two.heard == [said])
        one.line.close()
        two.line.close()

    run(test())


def test_a_socket_for_which_there_is_no_room_is_lost_alone():
    """Of one for which the other process has no number left nobody hears but who has its end."""
    resource = pytest.importorskip("resource")

    async def test():
        one, two = map(End, socket.socketpair())
        ours, theirs = socket.socketpair()
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        one.line.hand(theirs)
        try:
            lowest = os.dup(0)
            os.close(lowest)
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, before[1]))
            await asyncio.sleep(0.05)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        one.line.say(Busy(1))
        await eventually(lambda: two.heard == [Busy(1)])
        assert not two.handed
        ours.settimeout(5)
        assert ours.recv(1) == b""
        ours.close()
        one.line.close()
        two.line.close()

    run(test())
