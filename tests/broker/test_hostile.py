"""Does a broker stay on its feet whatever neighbours and parties say?"""

from __future__ import annotations

import pytest

from driftline import Event, parse
from driftline.broker.broker import INCARNATIONS, Broker
from driftline.broker.effects import Deliver, Effect, Reply, SendParcels, Store
from driftline.broker.links import Role
from driftline.broker.requests import (
    Confirm,
    Declare,
    Interested,
    Observed,
    Publish,
    Subscribe,
)
from driftline.broker.settings import Settings
from driftline.broker.station import Station, _payloads
from driftline.errors import InvalidValue, NotSupported
from driftline.language.advertising import advertisement
from driftline.model.advertisement import Advertisement
from driftline.model.filter import Filter
from driftline.model.message import Home, Interest, Neighbours, Offer, Parcel, Sequence
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.model.value import time_of
from driftline.model.view import View
from driftline.wire import codec
from driftline.wire.codec import decode_control, encode_control
from driftline.wire.events import encode_batch
from driftline.wire.framing import Decoder, Frame, FrameKind, encode_frame


class Neighbour:
    """The other end of a station's link."""

    def __init__(self, role: Role = Role.PEER, settings: Settings | None = None) -> None:
        self.station = Station("a", 1, settings)
        (hello, *_) = of("SendBytes", self.station.connect("n", role, 0))
        (frame,) = Decoder().feed(hello.data)
        self._theirs = frame.sender
        self._said = 0
        self._put(FrameKind.HELLO, b"")

    def says(self, message) -> list[Effect]:
        return self._put(FrameKind.CONTROL, encode_control(message))

    def sends(self, *parcels: Parcel) -> list[Effect]:
        return self._put(FrameKind.EVENTS, encode_batch(parcels))

    def _put(self, kind: FrameKind, payload: bytes) -> list[Effect]:
        self._said += kind is not FrameKind.HELLO
        number = self._said if kind is not FrameKind.HELLO else 0
        frame = Frame(kind, payload, 100, self._theirs, number)
        return self.station.receive("n", encode_frame(frame), 0)


def of(kind: str, effects: list[Effect]) -> list:
    return [effect for effect in effects if type(effect).__name__ == kind]


def standing(text: str, **params: object) -> Standing:
    return Standing.of(parse(text), params)


def wanted(text: str) -> Filter:
    (one,) = parse(text).filters()
    return one


def test_an_event_without_a_time_gets_one_where_it_comes() -> None:
    neighbour = Neighbour(settings=Settings(advertised=True))
    f, g = wanted("SELECT * FROM f"), wanted("SELECT * FROM g")
    neighbour.station.ask(
        "p", Subscribe("r", "s", standing("SELECT * FROM f THEN SELECT * FROM g")), 0
    )
    neighbour.says(Interest(sequences={"s1": Sequence(((f,), (g,)))}))
    for number, type in enumerate("fg", 1):
        effects = neighbour.sends(Parcel("n", number, Event(type, {"x": 1})))
    neighbour.station.broker._check()
    assert not of("Deliver", effects)  # Both came at once: neither is later.


def test_a_filter_with_a_parameter_of_somebody_elses_is_refused() -> None:
    neighbour = Neighbour()
    for bad in (
        Interest({"k": wanted("SELECT * FROM q WHERE x > :p")}),
        Interest({"k": wanted("SELECT * FROM q WHERE x > y + :p")}),
        Interest(sequences={"k": Sequence(((wanted("SELECT * WHERE x = :p"),), (Filter(None),)))}),
    ):
        assert not of("Store", neighbour.says(bad))
    assert neighbour.station.refused == 3
    journal: dict = {}
    for store in of("Store", neighbour.says(Interest({"k": wanted("SELECT * FROM q")}))):
        journal.update(store.values)
    Broker("a", 2, None, journal)._check()


def test_a_member_of_a_mesh_is_refused_likewise() -> None:
    neighbour = Neighbour(Role.MESH)
    neighbour.says(Neighbours("n", 1, ("a",)))
    bad = Home("n", 1, 0, {"k": wanted("SELECT * FROM q WHERE x > :p")})
    assert not of("Store", neighbour.says(bad))
    assert neighbour.station.refused == 1


def test_an_update_cannot_make_what_the_wire_would_refuse() -> None:
    neighbour = Neighbour()
    zone = wanted("SELECT * FROM q WHERE hour(at, 'Europe/Berlin') = 3")
    neighbour.says(Interest({"k": zone}))
    for moved in ({0: "nowhere"}, {0: 4, 1: "nowhere"}, {7: 1}):
        neighbour.says(Interest(updates={"k": moved}))
        broker = neighbour.station.broker
        broker.handle(Publish("r", Event("q", {"at": time_of(0)})), "p", 0)
        (one,) = broker.links.subscriptions.held("n").values()
        encode_control(Interest({"k": one}))
    neighbour.says(Interest(updates={"unknown": {0: 1}}))
    neighbour.station.broker._check()


def test_what_cannot_be_asked_of_a_neighbour_as_a_whole_is_asked_singly() -> None:
    neighbour = Neighbour(settings=Settings(advertised=True))
    neighbour.says(Offer({"k": Advertisement(None, anything=True)}, reset=True))
    text = "SELECT * FROM f WHERE x = :a THEN SELECT * FROM g WHERE x = :b"
    long = standing(text, a="a" * 600_000, b="b" * 600_000)
    (reply,) = of("Reply", neighbour.station.ask("p", Subscribe("r", "s", long), 0))
    assert reply.refused is None
    neighbour.station.broker._check()
    assert len(neighbour.station.broker.links.subscriptions.table.told("n")) == 2


@pytest.mark.parametrize("field", ["added", "sequences", "removed"])
def test_any_part_of_an_interest_may_be_too_long(field: str, monkeypatch) -> None:
    monkeypatch.setattr(codec, "PAYLOAD_BYTES_MAX", 300)
    monkeypatch.setattr(codec, "ENTRIES_MAX", 10)
    one = wanted("SELECT * FROM q WHERE x = 1")
    keys = [str(number) for number in range(40)]
    given = {
        "added": dict.fromkeys(keys, one),
        "sequences": dict.fromkeys(keys, Sequence(((one,), (one,)))),
        "removed": tuple(keys),
    }[field]
    said = [decode_control(payload) for payload in _payloads(Interest(**{field: given}))]
    assert len(said) > 3
    if field == "removed":
        assert [key for one in said for key in one.removed] == keys
    else:
        assert {key: one for part in said for key, one in getattr(part, field).items()} == given
    said = [decode_control(each) for each in _payloads(Interest(**{field: given}, reset=True))]
    assert [one.reset for one in said] == [False] * (len(said) - 1) + [True]


def test_an_event_that_fits_no_frame_with_its_homes_is_refused() -> None:
    neighbour = Neighbour(Role.MESH)
    neighbour.says(Neighbours("n", 1, ("a",)))
    neighbour.says(Home("n", 1, 0, {"k": Filter(None)}))
    large = Event("q", {"text": "x" * (codec.PAYLOAD_BYTES_MAX - 200)})
    (reply,) = of("Reply", neighbour.station.ask("p", Publish("r", large), 0))
    assert "at most" in str(reply.refused)
    assert not neighbour.station.broker.outbox.links()


def test_more_homes_than_a_parcel_can_name_are_named_by_several() -> None:
    broker = Broker("a")
    broker.connect("n", Role.MESH, 0)
    members = [f"{number:0200d}" for number in range(400)]
    broker.handle(Neighbours("n", 1, ("a", *members)), "n", 0)
    for member in members:
        broker.handle(Neighbours(member, 1, ("n",)), "n", 0)
        broker.handle(Home(member, 1, 0, {"k": Filter(None)}), "n", 0)
    (sent,) = of("SendParcels", broker.handle(Publish("r", Event("q", {"x": 1})), "p", 0))
    assert isinstance(sent, SendParcels)
    named = [home for _, parcel in sent.parcels for home in parcel.homes]
    assert len(sent.parcels) > 1
    assert sorted(named) == members
    encode_batch([parcel for _, parcel in sent.parcels])


@pytest.mark.parametrize(
    "asked",
    [
        Confirm("r", within=-1),
        Confirm("r", within=1.5),  # type: ignore[arg-type]
        Confirm("r", within=2**63),
        Interested("r", Advertisement("y" * 70_000)),
        Subscribe("r", "s", standing("SELECT a.x FROM a JOIN b ON a.k < b.k")),
        Subscribe("r", "s", standing("SELECT COUNT(*) FROM a WHERE t > now()")),
        Subscribe("r", "s", Standing.of(View.of_rows(parse("SELECT * FROM a WHERE t > now()")))),
        Subscribe("r", "s", standing('SELECT * FROM "$rows:a"')),
        Declare("r", TableDeclaration("t", "k"), within=-1),
        Subscribe("r", "s", standing("SELECT * FROM q WHERE moved(x, by => env('far'))")),
        Publish("r", Event("q", {"x": "y" * 9_000_000})),
        Publish("r", Event("$rows:q", {"x": 1})),
    ],
    ids=lambda asked: type(asked).__name__,
)
def test_what_cannot_be_done_is_refused_and_leaves_nothing(asked) -> None:
    neighbour = Neighbour()
    (reply,) = of("Reply", neighbour.station.ask("p", asked, 0))
    assert isinstance(reply, Reply)
    assert reply.refused is not None
    assert not neighbour.station.broker._waves._waves
    neighbour.station.broker._check()


def test_true_is_another_value_than_one() -> None:
    broker = Broker("a")
    text = "SELECT * FROM q WHERE x = :v"
    broker.handle(Subscribe("r", "s", standing(text, v=1)), "p", 0)
    broker.handle(Subscribe("r", "s", standing(text, v=True)), "p", 0)
    assert not of("Deliver", broker.handle(Publish("r", Event("q", {"x": 1})), "p", 0))
    assert of("Deliver", broker.handle(Publish("r", Event("q", {"x": True})), "p", 0))


def test_the_environment_survives_a_crash() -> None:
    broker, journal = Broker("a"), {}
    text = "SELECT * FROM q WHERE x < env('limit')"
    for asked in (Observed("limit", 10), Subscribe("r", "s", standing(text))):
        for effect in broker.handle(asked, "p", 0):
            if isinstance(effect, Store):
                journal.update(effect.values)
    again = Broker("a", 2, None, journal)
    (deliver,) = of("Deliver", again.handle(Publish("r", Event("q", {"x": 5})), "p", 0))
    assert isinstance(deliver, Deliver)


@pytest.mark.parametrize("incarnation", [0, INCARNATIONS, 1_700_000_000])
def test_a_broker_can_start_so_often_and_no_more(incarnation: int) -> None:
    with pytest.raises(InvalidValue, match="incarnation"):
        Broker("a", incarnation)


def test_an_offer_of_anything_covers_and_meets_all() -> None:
    anything, some = (
        Advertisement(None, anything=True),
        advertisement("SELECT * FROM q WHERE x = 1"),
    )
    assert decode_control(encode_control(Offer({"k": anything}))) == Offer({"k": anything})
    assert anything.covers(Event("q", {"any": 1}))
    assert not some.covers(Event("q", {"any": 1}))


def test_a_sequence_with_a_step_that_evolves_is_refused() -> None:
    broker = Broker("b")
    broker.connect("n", Role.PEER, 0)
    (step,) = parse("SELECT * FROM q WHERE x < env('v')").filters()
    with pytest.raises(NotSupported, match="evolve"):
        broker.handle(Interest(sequences={"s": Sequence(((step,), (step,)))}), "n", 0)
    broker._check()
