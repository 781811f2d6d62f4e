"""What becomes of events for a neighbour that is away for too long?"""

from __future__ import annotations

import pytest

from driftline import Event, parse
from driftline.broker.broker import Broker
from driftline.broker.effects import (
    MISSING,
    Deliver,
    Effect,
    Reopen,
    Send,
    SendBytes,
    SendParcels,
)
from driftline.broker.links import Role
from driftline.broker.outbox import Outbox
from driftline.broker.requests import Publish, Subscribe
from driftline.broker.settings import Settings
from driftline.broker.station import Station
from driftline.model.message import EVENTS, Interest, Parcel, Resync
from driftline.model.standing import Standing
from driftline.sim.faults import LinkFaults
from driftline.sim.overlay import Overlay
from driftline.sim.party import Party
from driftline.wire.bundles import Bundle
from driftline.wire.codec import encode_control
from driftline.wire.events import decode_batch
from driftline.wire.framing import (
    PAYLOAD_BYTES_MAX,
    Decoder,
    Frame,
    FrameKind,
    encode_frame,
)

SECOND = 1_000_000
X = Standing.of(parse("SELECT * FROM q WHERE x > 0"))
(WANTED,) = parse("SELECT * FROM q WHERE x > 0").filters()


def of(kind: type, effects: list[Effect]) -> list:
    return [effect for effect in effects if isinstance(effect, kind)]


def parcel(number: int, text: str = "") -> Parcel:
    return Parcel("a", number, Event("q", {"x": number, "text": text}).entering(0))


def outbox(limit: int, limit_bytes: int = 1 << 30) -> tuple[Outbox, dict]:
    journal: dict = {}
    counted = iter(range(1, 1 << 30))

    def put(key: tuple[str, ...], value: object) -> None:
        if value is None:
            journal.pop(key, None)
        else:
            journal[key] = value

    return Outbox(put, lambda: next(counted), limit, limit_bytes), journal


def test_of_more_than_fits_the_oldest_are_given_up() -> None:
    box, journal = outbox(4)
    for number in range(1, 5):
        assert isinstance(box.post("b", (parcel(number),)), SendParcels)
    assert not box.is_short("b")
    # Down to a half: the next one is not to be too many again.
    assert box.post("b", (parcel(5),)) == Reopen("b")
    assert isinstance(box.post("b", (parcel(6),)), SendParcels)
    assert box.is_short("b")
    (again,) = box.again("b")
    assert [one.number for _, one in again.parcels] == [4, 5, 6]
    box._check()
    restored, _ = outbox(4)
    restored.restore(journal)
    assert restored.is_short("b")
    assert restored.again("b") == [again]
    # Behind what says so: when something has arrived, that has.
    box.delivered("b", again.parcels[0][0])
    assert not box.is_short("b")
    assert journal.keys() == {("out", "b", "5"), ("out", "b", "6")}


def test_it_is_bounded_in_bytes_and_one_may_be_too_large() -> None:
    box, _ = outbox(100, limit_bytes=3000)
    for number in range(10):
        box.post("b", (parcel(number, "x" * 1000),))
        box._check()
        assert box.counts()["b"] in (1, 2)
    box.post("b", (parcel(10, "x" * 10_000),))
    assert box.counts() == {"b": 1}
    # Alone it is not too many, and nothing was given up for it.
    (again,) = box.again("b")
    box.delivered("b", again.parcels[0][0])
    assert isinstance(box.post("b", (parcel(11, "x" * 10_000),)), SendParcels)
    assert not box.is_short("b")


def test_what_fits_no_frame_is_given_up_and_the_others_go() -> None:
    station = Station("a")
    (hello,) = of(SendBytes, station.connect("b", Role.PEER, 0))
    mine = Decoder().feed(hello.data)[0].sender
    said = encode_control(Interest({"k": WANTED}))
    station.receive("b", encode_frame(Frame(FrameKind.CONTROL, said, 7, mine, 1)), 0)
    broker = station.broker
    items = (parcel(1), Bundle(bytes(PAYLOAD_BYTES_MAX + 1)), parcel(2), parcel(3))
    sent = station._carried([broker.outbox.post("b", items)], 0)
    assert broker.outbox.counts() == {"b": 3}
    assert broker.outbox.is_short("b")
    frames = [Decoder().feed(one.data)[0] for one in of(SendBytes, sent)]
    assert sum(len(decode_batch(one.payload)) for one in frames) == 3


def test_another_role_is_another_link_and_what_was_on_its_way_is_lost() -> None:
    broker = Broker("a", settings=Settings(outbox=2))
    broker.connect("b", Role.PEER, 0)
    broker.handle(Interest({"k": WANTED}), "b", 0)
    broker.handle(Subscribe("r", "s", X), "p", 0)
    broker.handle(Publish("r", Event("q", {"x": 1})), "p", 0)
    said = broker.connect("b", Role.CLIENT, 1)
    assert EVENTS in [one.message.table for one in of(Send, said) if hasattr(one.message, "table")]
    assert [one.gaps for one in of(Deliver, said)] == [("s",)]


def test_a_link_that_is_no_more_is_not_short() -> None:
    box, journal = outbox(1)
    box.post("b", (parcel(1), parcel(2)))
    box.forget("b")
    assert not box.is_short("b")
    assert not journal


def test_that_it_is_short_is_said_before_what_is_left_until_some_of_it_arrives() -> None:
    broker = Broker("a", settings=Settings(outbox=4))
    broker.connect("b", Role.PEER, 0)
    broker.handle(Interest({"k": WANTED}), "b", 0)
    for number in range(1, 6):
        broker.handle(Publish("r", Event("q", {"x": number})), "p", 0)
    numbers = []
    for _ in range(2):
        said = broker.connect("b", Role.PEER, 0)
        (resync,) = [one for one in of(Send, said) if isinstance(one.message, Resync)]
        (left,) = of(SendParcels, said)
        assert said.index(resync) < said.index(left)
        assert [one.event.attributes["x"] for _, one in left.parcels] == [4, 5]
        numbers.append(resync.message.number)
    assert numbers[0] < numbers[1]
    broker.delivered("b", left.parcels[0][0])
    said = broker.connect("b", Role.PEER, 0)
    assert not [one for one in of(Send, said) if isinstance(one.message, Resync)]
    broker._check()


def numbers(party: Party) -> list[object]:
    """What a party was told of, with gaps as such."""
    return ["gap" if one.event == MISSING else one.event.attributes["x"] for one in party.told]


@pytest.mark.parametrize("slow", [False, True])
def test_those_behind_the_link_are_told_of_a_gap_and_nobody_else(slow: bool) -> None:
    """p publishes at a; b and c are behind the link that is away, or whose end sleeps; d is not."""
    overlay = Overlay(settings=Settings(outbox=10))
    for name in "abcd":
        overlay.broker(name)
    for here, there in ("ab", "bc", "ad"):
        overlay.link(here, there, Role.PEER)
    told = {name: overlay.party(f"at {name}", name) for name in "abcd"}
    for party in told.values():
        overlay.ask(party, Subscribe("", f"s {party.name}", X))
    p = overlay.party("p", "a")
    overlay.run()
    for x in range(1, 4):
        overlay.ask(p, Publish("", Event("q", {"x": x})))
    overlay.run()
    if slow:
        overlay.pause("b", 60 * SECOND)
    else:
        overlay.cut("a", "b")
        overlay.cut("b", "a")
    for x in range(4, 40):
        overlay.ask(p, Publish("", Event("q", {"x": x})))
        overlay.run(overlay.now + SECOND // 2)
    assert 5 <= overlay.station("a").broker.outbox.counts()["b"] <= 10
    overlay.crash("a")
    if not slow:
        overlay.cut("a", "b", healed=True)
        overlay.cut("b", "a", healed=True)
    overlay.run(overlay.now + 120 * SECOND)
    overlay.run()
    for name in "ad":
        assert numbers(told[name]) == list(range(1, 40))
    for name in "bc":
        seen = numbers(told[name])
        gap = seen.index("gap")
        assert seen[:gap] == list(range(1, gap + 1))
        left = [one for one in seen[gap:] if one != "gap"]
        assert left == list(range(40 - len(left), 40))
        assert 5 <= len(left) <= 10
        assert seen.count("gap") < 4
    # It goes on as before, also when those who were told tell it again.
    overlay.crash("b")
    overlay.run()
    assert not any("gap" in numbers(told[name]) for name in "ad")
    overlay.ask(p, Publish("", Event("q", {"x": 50})))
    overlay.run()
    assert {numbers(party)[-1] for party in told.values()} == {50}
    for name in "abcd":
        overlay.station(name).broker._check()


def test_a_link_that_is_too_slow_costs_a_session_now_and_then() -> None:
    """Not with each event: most of what was sent is there before more is given up."""
    overlay = Overlay(settings=Settings(outbox=100))
    overlay.faults = LinkFaults(fastest=SECOND // 10, slowest=SECOND // 10)
    for name in "ab":
        overlay.broker(name)
    overlay.link("a", "b", Role.PEER)
    reader = overlay.party("reader", "b")
    overlay.ask(reader, Subscribe("", "s", X))
    p = overlay.party("p", "a")
    overlay.run()
    began = overlay.station("a")._links["b"].session.mine
    for x in range(1, 1001):
        overlay.ask(p, Publish("", Event("q", {"x": x})))
        overlay.run(overlay.now + SECOND // 1000)
    overlay.run()
    seen = [one for one in numbers(reader) if one != "gap"]
    assert seen == sorted(seen)
    assert seen[-1] == 1000
    sessions = overlay.station("a")._links["b"].session.mine - began
    assert 0 < sessions <= 20
    assert numbers(reader).count("gap") <= sessions
