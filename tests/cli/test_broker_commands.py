"""`serve`, `pub`, `sub`, `set`, `explain`, `top`: a broker as a process, and a person before it."""

import json
import math
import signal
import socket

import pytest

import driftline as dl
from driftline.cli.broker import named_values
from tests.processes import READY, Running, served, until

TEXT = "SELECT * FROM quote WHERE price < :limit"


@pytest.fixture(autouse=True)
def bounded():
    """A broker that begins where it should have been refused does not run for ever."""

    def late(number, frame):
        raise AssertionError("it did not end in time")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(int(READY))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def london(tmp_path_factory):
    folder = tmp_path_factory.mktemp("london")
    words = ("--name", "london", "--journal", folder / "journal", "--health", "127.0.0.1:0")
    with served(folder, *words) as (_, address):
        yield address


def subscribed(folder, address, *words):
    running = Running(folder, "sub", address, *words)
    until(lambda: "subscribed at" in running.err or running.process.poll() is not None)
    return running


def test_what_is_published_is_told_moved_and_explained(driftline, tmp_path, london):
    sub = subscribed(tmp_path, london, TEXT, "-p", "limit=10", "--durable", "cheap", "--json")
    try:
        ran = driftline("pub", london, "quote", "firm=IBM", "price=9.5", "--json")
        assert (ran.data["broker"], ran.data["published"]) == ("london", 1)
        told = json.loads(sub.line())
        assert told["kind"] == "event"
        assert told["values"] == {"firm": "IBM", "price": 9.5}
        assert told["epoch"] == 0
        ran = driftline("set", london, "cheap", "-p", "limit=9", "--json")
        assert ran.data == {
            "broker": "london",
            "durable": "cheap",
            "epoch": 1,
            "params": {"limit": 9},
        }
        for price in ("9.5", "8"):
            assert driftline("pub", london, "quote", "firm=IBM", f"price={price}").code == 0
        told = json.loads(sub.line())
        assert (told["values"]["price"], told["epoch"]) == (8, 1)
        ran = driftline("explain", london, "cheap", '{"type": "quote", "price": 9.5}')
        assert "does not match" in ran.out
        assert "price < :limit   [price is 9.5, :limit is 9] *" in ran.out
        assert driftline(
            "explain", london, "cheap", '{"type": "quote", "price": 8}', "--json"
        ).data["matches"]
        assert sub.end(signal.SIGINT) == 0
    finally:
        sub.kill()


def test_what_was_printed_is_not_told_again_and_what_came_meanwhile_is(
    driftline, tmp_path, london, monkeypatch
):
    monkeypatch.setenv("DRIFTLINE_ADDRESS", london)
    words = ("sub", "SELECT * FROM news", "--durable", "reader", "--json", "--for", "30")
    assert driftline(*words[:4], "--for", "0").code == 0
    for number in (1, 2, 3):
        driftline("pub", "news", f"n={number}")
    ran = driftline(*words, "--count", "2")
    assert [json.loads(line)["values"]["n"] for line in ran.out.splitlines()] == [1, 2]
    ran = driftline(*words, "--count", "1", "--forget")
    assert [json.loads(line)["values"]["n"] for line in ran.out.splitlines()] == [3]
    ran = driftline("set", "reader", "-p", "x=1")
    assert (ran.code, "reader" in ran.err) == (4, True)


def test_too_few_in_time_end_with_1(driftline, london):
    ran = driftline("sub", london, "SELECT * FROM nothing", "--count", "1", "--for", "0.1")
    assert (ran.code, ran.out) == (1, "")
    assert "0 of 1 came" in ran.err


def test_lines_say_what_was_told(driftline, tmp_path, london):
    sub = subscribed(tmp_path, london, "SELECT * FROM line WHERE x > 0", "--count", "1")
    try:
        driftline("pub", london, "line", "x=1", 'id="7"', "open=true", "firm=A B")
        assert sub.line() == "event     line x=1 id='7' open=True firm='A B'"
        assert sub.wait() == 0
    finally:
        sub.kill()


def test_who_interrupts_what_is_published_is_told_how_much_was(driftline, tmp_path, london):
    path = tmp_path / "events.jsonl"
    path.write_text("".join(f'{{"type": "cut", "n": {n}}}\n' for n in range(2000)))
    driftline("sub", london, "SELECT * FROM cut", "--durable", "cut", "--for", "0")
    pub = Running(tmp_path, "pub", london, "--file", path, "--rate", "40", "--json")

    def kept() -> int:
        return driftline("durable", "show", london, "cut", "--json").data["kept"]

    try:
        until(lambda: kept() > 4)
        pub.process.send_signal(signal.SIGINT)
        facts = pub.object()
        assert pub.wait() == 130
    finally:
        pub.kill()
    assert 4 < facts["published"] < 2000
    assert f"ended by Ctrl-C; {facts['published']} were published" in pub.err
    # What was on its way is not known of.
    assert facts["published"] <= kept() <= facts["published"] + 2


def test_many_are_published_from_a_file_and_what_is_no_event_is_named(driftline, tmp_path, london):
    path = tmp_path / "events.jsonl"
    path.write_text(
        '{"type": "many", "x": 1}\n{"type": "many", "x": []}\n{"type": "many", "x": 2}\n'
    )
    driftline("sub", london, "SELECT * FROM many", "--durable", "many", "--for", "0")
    ran = driftline("pub", london, "--file", path, "--rate", "100000", "--json")
    assert (ran.code, ran.data["published"], ran.data["refused"]) == (4, 2, 1)
    assert "line 2" in ran.err
    words = ("sub", london, "SELECT * FROM many", "--durable", "many", "--count", 2, "--json")
    ran = driftline(*words, "--for", 30, "--forget")
    assert [json.loads(line)["values"]["x"] for line in ran.out.splitlines()] == [1, 2]


def test_of_what_a_broker_refuses_every_event_is_counted(driftline, tmp_path, london):
    path = tmp_path / "rows.jsonl"
    # Rows without their key.
    rows = [f'{{"type": "{"t" if n % 4 else "many"}", "n": {n}}}\n' for n in range(2400)]
    path.write_text("".join(rows))
    with dl.connect(london) as client:
        client.declare("t", "k")
    ran = driftline("pub", london, "--file", path, "--json")
    assert (ran.code, ran.data["published"], ran.data["refused"]) == (4, 600, 1800)
    assert "line 2" in ran.err
    ran = driftline("pub", london, "t", "n=1")
    assert (ran.code, ran.out) == (4, "")


def test_top_says_what_a_broker_does(driftline, london):
    data = driftline("top", london, "--once", "--json", "--every", "0.1").data
    (one,) = data["brokers"]
    assert (one["up"], one["broker"]) == (True, "london")
    assert {"published_per_second", "told_per_second", "cpu_share", "links", "slow"} <= one.keys()
    assert "london" in driftline("top", london, "--once", "--every", "0.1").out
    ran = driftline("top", london, "127.0.0.1:1", "--once", "--json", "--every", "0.1")
    assert ran.code == 5
    assert [one["up"] for one in ran.data["brokers"]] == [True, False]


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("set", "nobody", "-p", "x=1"), 4, "nobody"),
        (("set", "nobody"), 4, "-p"),
        (("sub", "SELECT * FROM"), 3, "wanted"),
        (("sub", "SELECT * FROM q WHERE x < :a"), 4, "missing :a"),
        (("sub", "SELECT * FROM q", "--policy", "overflow=no"), 4, "policy.overflow"),
        (("pub", "quote", "price"), 4, "NAME=VALUE"),
        (("pub", "quote", "price=[1"), 4, "JSON"),
        (("pub", "quote", "price=1e999"), 4, "attribute price: wanted a number of 64 bits"),
        (("pub", "quote", "price=-1e999"), 4, "or a text in quotes ('\"…\"'), came -1e999"),
        (("pub", "quote", "price=9223372036854775808"), 4, "or a text in quotes"),
        (("set", "nobody", "-p", "x=1.5E+400"), 4, "-p x: wanted a number of 64 bits"),
        (("pub", "--file", "nothing.jsonl"), 4, "nothing.jsonl"),
        (("explain", "nobody", '{"type": "q"}'), 4, "nobody"),
        (("pub",), 2, "TYPE"),
        (("explain", "a", "b", "c"), 2, "DURABLE"),
        (("top", "nothing.toml"), 4, "not up"),
    ],
)
def test_what_is_wrong_is_one_line_and_a_code(driftline, london, monkeypatch, words, code, problem):
    monkeypatch.setenv("DRIFTLINE_ADDRESS", london)
    ran = driftline(*words)
    assert (ran.code, ran.out) == (code, "")
    assert problem in ran.err


def test_what_only_resembles_a_number_is_a_text():
    words = ["NaN", "Infinity", "-inf", "+5", "05", ".5", "0x10", "1_000", '"1e999"']
    found = named_values([f"{at}={word}" for at, word in enumerate(words)], "attribute")
    assert [*found.values()] == [*words[:-1], "1e999"]
    assert named_values(["x=1e-999", 'y={"@float": "Infinity"}'], "-p") == {"x": 0.0, "y": math.inf}


def test_nobody_there_ends_with_5_and_says_why(driftline):
    ran = driftline("pub", "127.0.0.1:1", "quote", "price=1", "--within", "0.5")
    assert (ran.code, ran.out) == (5, "")
    assert "no answer within 0.5 s: connection refused" in ran.err


def test_a_drained_broker_loses_nothing_that_it_acknowledged(driftline, tmp_path):
    journal = tmp_path / "journal"
    with served(tmp_path, "--journal", journal) as (broker, address):
        driftline("sub", address, "SELECT * FROM quote", "--durable", "all", "--for", "0")
        path = tmp_path / "events.jsonl"
        path.write_text("".join(f'{{"type": "quote", "n": {n}}}\n' for n in range(2000)))
        assert driftline("pub", address, "--file", path).code == 0
        assert broker.end() == 0
        assert "is ready at driftline://127.0.0.1:" in broker.err
        assert "broker: ends why=SIGTERM" in broker.err
        assert "Traceback" not in broker.err
    with served(tmp_path, "--journal", journal) as (_, address):
        words = ("sub", address, "SELECT * FROM quote", "--durable", "all", "--json")
        ran = driftline(*words, "--count", 2000, "--for", 60)
        told = [json.loads(line)["values"]["n"] for line in ran.out.splitlines()]
        assert told == list(range(2000))


def test_what_may_have_been_missed_is_a_line_too(driftline, tmp_path):
    with served(tmp_path) as (broker, address):
        sub = subscribed(tmp_path, address, "SELECT * FROM quote", "--count", "1")
        broker.end(signal.SIGKILL)
    place = address.partition("://")[2]
    try:
        with served(tmp_path, "--listen", place) as (_, address):
            assert sub.line() == "gap       something may not have been told"
            status = ("top", address, "--once", "--json", "--every", "0.1")
            until(lambda: driftline(*status).data["brokers"][0]["subscriptions"] == 1)
            driftline("pub", address, "quote", "price=1")
            assert sub.line() == "event     quote price=1"
            assert sub.wait() == 0
    finally:
        sub.kill()


def test_a_broker_is_refused_what_another_has(driftline, tmp_path):
    journal = tmp_path / "journal"
    with served(tmp_path, "--journal", journal) as (_, address):
        place = address.partition("://")[2]
        ran = driftline("serve", "--listen", place)
        assert (ran.code, ran.out) == (1, "")
        assert f"cannot listen on {place}: address already in use" in ran.err
        ran = driftline("serve", "--listen", "127.0.0.1:0", "--journal", journal)
        assert ran.code == 1
        assert "has it open" in ran.err
    ran = driftline("serve", "--listen", "127.0.0.1:0", "--journal", journal, "--name", "other")
    assert ran.code == 4
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("text", "words", "problem"),
    [
        ("name = ", (), "no TOML"),
        ("port = 1", (), "wanted only access, advertised"),
        ("listen = 'a:b'", (), "a port"),
        ("[limits]\nrate = -1", (), "limits.rate"),
        ("", ("--peer", "x="), "--peer"),
        ("", ("--peer", "x=a:1:boss"), "peers.x.address"),
        ("[tls]\ncertificate = 'a'\nkey = 'b'", ("--listen", "127.0.0.1:0"), "b: No such file"),
    ],
)
def test_a_bad_configuration_ends_with_4_and_one_line(driftline, tmp_path, text, words, problem):
    path = tmp_path / "broker.toml"
    path.write_text(text)
    ran = driftline("serve", "--config", path, *words)
    assert (ran.code, ran.out) == (4, "")
    assert problem in ran.err
    assert "Traceback" not in ran.err


def test_a_damaged_journal_is_refused(driftline, tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(b"no journal at all" * 1000)
    ran = driftline("serve", "--listen", "127.0.0.1:0", "--journal", path)
    assert ran.code == 4
    assert str(path) in ran.err
    assert "Traceback" not in ran.err


def test_the_health_address_may_be_in_use_too(driftline, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        journal = tmp_path / "journal"
        words = ("serve", "--listen", "127.0.0.1:0", "--health", place, "--journal", journal)
        ran = driftline(*words)
        assert ran.code == 1
        assert f"cannot listen on {place}" in ran.err
        # The journal was let go: it is not said to be in use now.
        assert f"cannot listen on {place}" in driftline(*words).err


def test_who_gives_one_address_to_two_doors_is_told_which(driftline):
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = f"127.0.0.1:{free.getsockname()[1]}"
    ran = driftline("serve", "--listen", place, "--health", place)
    assert (ran.code, f"cannot listen on {place}" in ran.err) == (1, True)


def test_help_of_every_command_has_an_example(driftline):
    for command in ("serve", "pub", "sub", "set", "top", "explain"):
        ran = driftline(command, "--help")
        assert f"driftline {command} " in ran.out
        assert "--json" in ran.out
