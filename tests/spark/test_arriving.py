"""Does what comes from a broker get into files once, and is what is missing told? Without Spark."""

from __future__ import annotations

import logging
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

import driftline as dl
from driftline.errors import (
    FileRefused,
    InvalidValue,
    NotAllowed,
    NotAuthenticated,
    PipelineFailed,
    Unreachable,
)
from driftline.language.cloudevents import event_from
from driftline.model.event import Event
from driftline.model.notification import Notification, NotificationKind
from driftline.recorded.config import (
    EventsConfig,
    InputConfig,
    OutConfig,
    OutputConfig,
    PipelineConfig,
    read_config,
)
from driftline.spark.arriving import Arriving, arrived
from driftline.spark.taking import Taken, Taking
from driftline.spark.telling import Telling
from tests.net.processes import Brokers
from tests.net.secured import Authority
from tests.processes import until

KEPT = 20
TEXT = "SELECT * FROM quote WHERE n >= 0"


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    with Brokers(tmp_path_factory.mktemp("broker")) as brokers:
        yield brokers.start("b", limits={"kept": KEPT}).address


def pipeline(root: Path, address: str, name: str, text: str = TEXT, **more) -> PipelineConfig:
    come = InputConfig(address, name, text, **more)
    made = PipelineConfig(
        EventsConfig(str(root / "events"), broker=come), OutConfig(str(root / "out"))
    )
    made.checkpoint.mkdir(parents=True, exist_ok=True)
    return made.check()


def quote(n: int, **envelope) -> Event:
    return Event("quote", {"n": n, "price": n / 2}, **envelope)


def attach(address: str, name: str, text: str = TEXT) -> None:
    with dl.connect(address) as client:
        client.subscribe(text, durable=name).detach()


def publish(address: str, *events: Event) -> None:
    with dl.connect(address) as client:
        for event in events:
            client.publish(event)


def taken(config: PipelineConfig) -> list[Event]:
    """All that is in files, when all was taken that is kept."""
    arriving = Arriving(config)
    arriving.take_all()
    arriving.close()
    return in_files(config)


def in_files(config: PipelineConfig) -> list[Event]:
    files = sorted(Path(config.events.path).glob("[!.]*"))
    lines = [line for file in files for line in file.read_bytes().splitlines()]
    return [event_from(msgspec.json.decode(line)) for line in lines]


def test_a_gap_is_told_once_and_stays_known(tmp_path, address, caplog):
    config = pipeline(tmp_path, address, "small")
    attach(address, "small")
    publish(address, *map(quote, range(KEPT + 10)))
    with caplog.at_level(logging.WARNING):
        found = taken(config)
    assert [event.attributes["n"] for event in found] == list(range(10, KEPT + 10))
    state = arrived(config)
    assert state is not None
    assert len(state.gaps) == 1
    assert state.gaps[0].number <= state.number
    assert "something is missing before number" in caplog.text
    publish(address, quote(99))
    assert len(taken(config)) == KEPT + 1
    assert arrived(config).gaps == state.gaps


def test_a_gap_and_what_comes_behind_it_under_the_same_number_are_one(tmp_path, address):
    """They are two messages: the second may not have come when the first is taken."""
    with Taking(address) as taking:
        taking.attach("parts", pipeline(tmp_path, address, "parts").events.broker.standing)
        taking._put(Notification(NotificationKind.GAP, number=5, more=True))
        assert not taking.take(9)
        assert taking.reached == 0
        event = quote(1)
        taking._put(Notification(NotificationKind.EVENT, {}, event=event, number=5))
        assert taking.take(9) == [Taken(5, event, True)]


def test_a_subscription_that_the_broker_has_lost_is_a_gap(tmp_path, address):
    config = pipeline(tmp_path, address, "lost")
    attach(address, "lost")
    publish(address, quote(1))
    assert len(taken(config)) == 1
    with dl.connect(address) as client:
        client.subscribe(TEXT, durable="lost").cancel()
    arriving = Arriving(config)
    publish(address, quote(2), quote(3))
    while len(in_files(config)) < 3:
        arriving.take()
    arriving.close()
    assert len(arrived(config).gaps) == 1


def test_one_that_was_ended_and_made_again_while_nobody_read_is_a_gap(tmp_path, address):
    config = pipeline(tmp_path, address, "again")
    attach(address, "again")
    publish(address, quote(1))
    assert len(taken(config)) == 1
    publish(address, quote(2))
    with dl.connect(address) as client:
        client.durables.drop("again")
        client.durables.keep("again", TEXT)
    assert len(taken(config)) == 1  # Nothing comes, and that is not forgotten.
    publish(address, quote(3))
    assert len(taken(config)) == 2
    publish(address, quote(4))
    assert len(taken(config)) == 3
    found = arrived(config)
    assert (len(found.gaps), found.missing) == (1, 0)


def until_taken(arriving: Arriving, config: PipelineConfig, count: int) -> list[Event]:
    """What is in files when there are so many of them."""

    def is_there() -> bool:
        arriving.take()
        return len(in_files(config)) >= count

    until(is_there)
    return in_files(config)


def test_one_that_was_ended_while_it_was_read_is_made_again_behind_a_gap(tmp_path, address):
    config = pipeline(tmp_path, address, "ended")
    arriving = Arriving(config)
    publish(address, quote(1))
    until_taken(arriving, config, 1)
    with dl.connect(address) as client:
        client.durables.drop("ended")

        def is_there() -> bool:
            arriving.take()
            return "ended" in [one.name for one in client.durables.all()]

        until(is_there)
    # Whoever comes next hears of it too, though nothing has come since.
    assert arrived(config).missing
    arriving.close()
    arriving = Arriving(config)
    publish(address, quote(2))
    found = until_taken(arriving, config, 2)
    arriving.close()
    assert [one.attributes["n"] for one in found] == [1, 2]
    state = arrived(config)
    assert (len(state.gaps), state.missing) == (1, 0)
    assert state.gaps[0].number == state.number


def test_a_broker_that_began_anew_with_nothing_is_a_gap(tmp_path):
    """It has lost its journal while somebody reads, who is told what comes from then on."""
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b")
        config = pipeline(tmp_path, broker.address, "anew")
        arriving = Arriving(config)
        publish(broker.address, quote(1))
        until_taken(arriving, config, 1)
        broker.kill()
        for file in tmp_path.glob("b.journal*"):
            file.unlink()
        broker.restart()

        def is_attached() -> bool:
            arriving.take()
            with dl.connect(broker.address) as client:
                return any(one.attached for one in client.durables.all())

        until(is_attached)
        publish(broker.address, quote(2))
        until_taken(arriving, config, 2)
        arriving.close()
        assert len(arrived(config).gaps) == 1


def test_one_that_another_has_taken_over_is_said_and_is_a_gap(tmp_path, address):
    """What the other one is told does not come here: that is nothing to be silent about."""
    config = pipeline(tmp_path, address, "taken")
    arriving = Arriving(config)
    with dl.connect(address) as other:
        told = other.subscribe(TEXT, durable="taken")
        with pytest.raises(PipelineFailed, match="another connection has it"):
            until_taken(arriving, config, 1)
        arriving.close()
        other.publish(quote(1))
        assert told.next(10).event.attributes["n"] == 1
        told.pending()  # It asks for more: what it had was dealt with.
        told.detach()
    arriving = Arriving(config)
    publish(address, quote(2))
    until_taken(arriving, config, 1)
    arriving.close()
    assert len(arrived(config).gaps) == 1


def test_one_that_is_suspended_is_said_and_goes_on_when_it_is_resumed(
    tmp_path, address, caplog, monkeypatch
):
    monkeypatch.setattr("driftline.spark.taking.LOOK_EVERY", 0.05)
    config = pipeline(tmp_path, address, "suspended")
    arriving = Arriving(config)
    with dl.connect(address) as client:
        client.durables.suspend("suspended")
        client.publish(quote(1))

        def is_said() -> bool:
            arriving.take()
            return "suspended is suspended" in caplog.text

        with caplog.at_level(logging.WARNING):
            until(is_said)
        assert in_files(config) == []
        client.durables.resume("suspended")
    until_taken(arriving, config, 1)
    arriving.close()
    assert caplog.text.count("suspended is suspended") == 1
    assert arrived(config).gaps == ()


def test_one_that_was_lost_before_anything_came_is_a_gap_to_whoever_comes_next(tmp_path, address):
    config = pipeline(tmp_path, address, "early")
    assert taken(config) == []
    with dl.connect(address) as client:
        client.durables.drop("early")
    assert taken(config) == []  # It is made again, and nothing comes.
    publish(address, quote(1))
    assert len(taken(config)) == 1
    assert len(arrived(config).gaps) == 1


def test_what_is_selected_comes_with_its_envelope(tmp_path, address):
    text = "SELECT n, price * 2 AS double, ce_id FROM quote WHERE n = 5"
    config = pipeline(tmp_path, address, "some", text)
    attach(address, "some", text)
    publish(address, quote(5, id="e5", source="feed", time=7_000_000), quote(6))
    (found,) = taken(config)
    assert (found.attributes, found.id, found.source, found.time) == (
        {"n": 5, "double": 5.0},
        "e5",
        "feed",
        7_000_000,
    )


@pytest.mark.parametrize(
    ("distinct", "wanted"), [(100, [1, 2, 3, 3, 4]), (0, [1, 2, 1, 3, 3, 1, 4])]
)
def test_what_was_published_twice_comes_once_if_that_is_wanted(tmp_path, address, distinct, wanted):
    """By source and id: what has none of them comes each time. Also behind a new beginning."""
    name = f"twice{distinct}"
    config = pipeline(tmp_path, address, name, distinct=distinct)
    attach(address, name)

    def feed(n: int) -> Event:
        return quote(n, id=f"{n}", source="feed")

    publish(address, feed(1), feed(2), feed(1), quote(3), quote(3))
    taken(config)
    publish(address, feed(1), feed(4))
    assert [event.attributes["n"] for event in taken(config)] == wanted
    assert arrived(config).repeated == 7 - len(wanted)


def test_files_alone_say_how_far_it_is_and_halves_of_files_go(tmp_path, address):
    config = pipeline(tmp_path, address, "files")
    attach(address, "files")
    publish(address, quote(1), quote(2))
    taken(config)
    (file,) = Path(config.events.path).iterdir()
    half = file.with_name(f".{file.name[:-7]}9.jsonl")
    half.write_bytes(b'{"half')
    (config.checkpoint / "arrived.json").unlink()
    publish(address, quote(3))
    assert Counter(event.attributes["n"] for event in taken(config)) == {1: 1, 2: 1, 3: 1}
    assert not half.exists()


def test_a_broker_that_is_not_there_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("driftline.spark.taking.WITHIN", 0.2)
    with pytest.raises(Unreachable):
        Arriving(pipeline(tmp_path, "driftline://127.0.0.1:1", "none"))


ACCESS = """
[[grants]]
who = ["feed"]
may = ["publish"]
on = ["quote"]
attributes = ["*"]

[[grants]]
who = ["pipeline"]
may = ["subscribe", "set"]
on = ["quote"]
attributes = ["n"]

[[grants]]
who = ["pipeline"]
may = ["publish"]
on = ["alert"]
attributes = ["*"]
"""


def test_a_pipeline_proves_who_it_is_by_a_token_in_a_file_over_tls(tmp_path, monkeypatch):
    """It sees what it may see, and publishes what it may publish, once."""
    authority = Authority(tmp_path / "keys")
    access = tmp_path / "access.toml"
    access.write_text(ACCESS)
    token = tmp_path / "token"
    monkeypatch.setenv("DRIFTLINE_TOKEN_FILE", str(token))
    said = {"tls": authority.tls("b"), "tokens": authority.tokens(), "access": str(access)}
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b", **said)
        address = broker.address.replace("driftline://", "driftlines://")
        more = {"authority": str(authority.folder / "ca.pem")}
        config = pipeline(tmp_path, address, "mine", **more)
        token.write_text(authority.token("pipeline"))
        assert taken(config) == []
        with dl.connect(address, token=authority.token("feed"), tls=authority.trust()) as feed:
            feed.publish(quote(5, id="e5", source="feed"))
        (found,) = taken(config)
        assert found.attributes == {"n": 5}, "the price is not for it"
        told = OutputConfig(address, "alert", str(authority.folder / "ca.pem"))
        out = OutConfig(config.out.path, broker=told)
        telling = Telling(msgspec.structs.replace(config, out=out))
        telling._publish([Event("alert", {"n": 5}, source="s", id="1")] * 2)
        said = [Event("quote", {"n": 5}, source="s", id="2"), Event("alert", source="s", id="3")]
        (letter,) = telling._publish(said)
        assert (letter.id, letter.why) == ("2", "pipeline may not publish quote")
        telling.close()
        token.write_text("no token")
        with pytest.raises(NotAuthenticated):
            taken(config)


def test_a_grant_that_is_withdrawn_is_said_and_what_came_until_it_is_given_back_comes_then(
    tmp_path, monkeypatch
):
    authority = Authority(tmp_path / "keys")
    access = tmp_path / "access.toml"
    access.write_text(ACCESS)
    monkeypatch.setenv("DRIFTLINE_TOKEN", authority.token("pipeline"))
    with Brokers(tmp_path) as brokers:
        broker = brokers.start("b", tokens=authority.tokens(), access=str(access))
        config = pipeline(tmp_path, broker.address, "mine")

        def feed(n: int) -> None:
            with dl.connect(broker.address, token=authority.token("feed")) as client:
                client.publish(quote(n))

        arriving = Arriving(config)
        feed(1)
        until_taken(arriving, config, 1)
        access.write_text(ACCESS.replace('["subscribe", "set"]', '["set"]'))
        os.kill(broker.pid, signal.SIGHUP)
        with pytest.raises(NotAllowed):
            until_taken(arriving, config, 2)
        arriving.close()
        with pytest.raises(NotAllowed):
            Arriving(config)
        feed(2)
        access.write_text(ACCESS)
        os.kill(broker.pid, signal.SIGHUP)

        def is_back() -> bool:
            with suppress(NotAllowed):
                Arriving(config).close()
                return True
            return False

        until(is_back)
        arriving = Arriving(config)
        feed(3)
        found = until_taken(arriving, config, 3)
        arriving.close()
        assert [one.attributes["n"] for one in found] == [1, 2, 3]
        assert arrived(config).gaps == ()


SAID = """
[events]
path = "events"
{events}
[out]
path = "out"
{out}
"""
WRONG = {
    "address": ("[events.broker]\naddress='x:y:z'\nsubscription='a'\ntext='SELECT * FROM q'", ""),
    "name": ("[events.broker]\naddress='b'\nsubscription='a#b'\ntext='SELECT * FROM q'", ""),
    "no name": ("[events.broker]\naddress='b'\nsubscription=''\ntext='SELECT * FROM q'", ""),
    "text": ("[events.broker]\naddress='b'\nsubscription='a'\ntext='SELECT MIN(x) FROM q'", ""),
    "params": ("[events.broker]\naddress='b'\nsubscription='a'\ntext='SELECT * WHERE x > :p'", ""),
    "a token": ("[events.broker]\naddress='b'\nsubscription='a'\ntext='SELECT *'\ntoken='t'", ""),
    "both": (
        "format='rate'\n[events.broker]\naddress='b'\nsubscription='a'\ntext='SELECT *'",
        "",
    ),
    "no events": (
        "[events.broker]\naddress='b'\nsubscription='a'\ntext='SELECT *'\ndistinct=-1",
        "",
    ),
    "interval": ("", "[run]\ninterval=-1"),
    "no number": ("", "[run]\ninterval=nan"),
    "out": ("", "[out.broker]\naddress='b'\ntype='$mine'"),
    "out address": ("", "[out.broker]\naddress='http://b'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_meant_is_refused_when_it_is_read(tmp_path, what):
    events, out = WRONG[what]
    (tmp_path / "pipeline.toml").write_text(SAID.format(events=events, out=out))
    with pytest.raises(FileRefused):
        read_config(tmp_path / "pipeline.toml")


def test_what_is_said_is_read_and_paths_are_seen_from_its_file(tmp_path):
    events = """[events.broker]
address = "driftlines://b:7400"
subscription = "mine"
text = "SELECT * FROM q WHERE x > :p AND t > :t"
params = { p = 3, t = 2026-01-01T00:00:00Z }
authority = "ca.pem"
"""
    out = "[out.broker]\naddress = 'driftlines://b'\nauthority = 'ca.pem'"
    (tmp_path / "pipeline.toml").write_text(SAID.format(events=events, out=out))
    found = read_config(tmp_path / "pipeline.toml")
    assert found.events.broker.authority == str(tmp_path / "ca.pem")
    assert found.events.broker.standing.params["p"] == 3
    assert found.out.broker == OutputConfig(
        "driftlines://b", "notification", str(tmp_path / "ca.pem")
    )
    with pytest.raises(InvalidValue, match="that is told events"):
        _ = InputConfig("b", "a", "SELECT * FROM q WHERE moved(x, by => 1)").standing
