"""What does a broker do in the corners that random runs seldom reach?"""

from __future__ import annotations

import pytest

from driftline import Event, parse
from driftline.broker.broker import Broker
from driftline.broker.effects import Deliver, Effect, Reply, Send, SendBytes, SendParcels, Store
from driftline.broker.links import Role
from driftline.broker.requests import (
    Advertise,
    Cancel,
    Confirm,
    Interested,
    Publish,
    Redirect,
    Resume,
    Subscribe,
    Suspend,
    Told,
    Unadvertise,
)
from driftline.broker.settings import Settings
from driftline.broker.station import Station
from driftline.errors import NotSupported
from driftline.language.advertising import advertisement
from driftline.model.message import Answer, Ask, Home, Interest, Neighbours, Offer, Parcel
from driftline.model.standing import Standing
from driftline.sim.overlay import Overlay
from driftline.wire import codec
from driftline.wire.codec import encode_control
from driftline.wire.events import encode_batch
from driftline.wire.framing import Decoder, Frame, FrameKind, encode_frame

X = Standing.of(parse("SELECT * FROM q WHERE x > 0"))
(WANTED,) = parse("SELECT * FROM q WHERE x > 0").filters()


def published(x: int, number: int = 0) -> Publish:
    return Publish("r", Event("q", {"x": x}, time=x), number)


def of(kind: type, effects: list[Effect]) -> list:
    return [effect for effect in effects if isinstance(effect, kind)]


@pytest.mark.parametrize("role", [Role.PEER, Role.MESH])
def test_a_party_may_be_named_like_a_link(role: Role) -> None:
    broker = Broker("a")
    broker.connect("b", role, 0)
    if role is Role.MESH:
        broker.handle(Neighbours("b", 1, ("a",)), "b", 0)
        broker.handle(Home("b", 1, 0, {"k": WANTED}), "b", 0)
    else:
        broker.handle(Interest({"k": WANTED}), "b", 0)
    broker.handle(Subscribe("r", "s", X), "c", 0)
    effects = broker.handle(published(5), "b", 0)
    assert [one.party for one in of(Deliver, effects)] == ["c"]
    assert [one.peer for one in of(SendParcels, effects)] == ["b"]


def test_names_may_be_anything() -> None:
    for name in ("mesh", "local", "b\nc", ""):
        broker = Broker("a")
        broker.connect(name, Role.PEER, 0)
        broker.handle(Interest({"k": WANTED}), name, 0)
        assert [one.peer for one in of(SendParcels, broker.handle(published(5), "p", 0))] == [name]
        broker._check()


def test_a_link_that_changes_its_role_leaves_the_mesh() -> None:
    broker = Broker("a")
    for link in ("b", "c"):
        broker.connect(link, Role.MESH, 0)
    broker.connect("b", Role.PEER, 0)
    broker._check()
    assert broker.links.homes.links() == ["c"]
    broker.disconnect("b", 0)
    broker.disconnect("c", 0)
    broker._check()
    assert not broker.links.homes.links()


def test_only_peers_and_clients_say_what_they_want() -> None:
    broker = Broker("a")
    broker.connect("up", Role.MASTER, 0)
    broker.handle(Interest(reset=True), "up", 0)
    assert [one.peer for one in of(SendParcels, broker.handle(published(5), "p", 0))] == ["up"]


def test_a_party_is_told_once_of_an_event_that_also_completes_a_pattern() -> None:
    broker = Broker("a")
    both = Standing.of(parse("SELECT * FROM q WHERE x = 1 THEN SELECT * FROM q WHERE x = 2"))
    broker.handle(Subscribe("r", "plain", X), "p", 0)
    broker.handle(Subscribe("r", "pattern", both), "p", 0)
    broker.handle(published(1), "p", 0)
    # Asking for the same again, as after a lost reply, forgets nothing.
    broker.handle(Subscribe("r", "pattern", both), "p", 0)
    (deliver,) = of(Deliver, broker.handle(published(2), "p", 0))
    assert deliver.subscriptions == ("plain", "pattern")
    assert [event.attributes["x"] for event in deliver.sequences["pattern"]] == [1, 2]


def test_what_a_suspended_party_missed_is_flagged_also_after_a_crash() -> None:
    journal: dict = {}
    broker = Broker("a", settings=Settings(keep=2))
    for asked in (Subscribe("r", "s", X), Suspend("r"), *(published(x) for x in range(1, 6))):
        for store in of(Store, broker.handle(asked, "p", 0)):
            journal.update(store.values)
    stored = {key: value for key, value in journal.items() if value is not None}
    again = Broker("a", 2, Settings(keep=2), stored)
    for one in (broker, again):
        told = of(Deliver, one.handle(Resume("r"), "p", 0))
        assert [(each.event.attributes["x"], each.gap) for each in told] == [(4, True), (5, False)]
    again.handle(Told(told[-1].number), "p", 0)
    assert not of(Deliver, again.handle(Resume("r"), "p", 0))


def test_of_what_is_kept_the_bytes_are_limited_too_and_what_is_missing_is_flagged() -> None:
    settings = Settings(keep_bytes=4_000)
    journal: dict = {}
    broker = Broker("a", settings=settings)
    large = [Event("q", {"x": x, "text": "x" * 1_500}, time=x) for x in range(1, 6)]
    # One alone that is larger than all may be is kept.
    huge = Event("q", {"x": 6, "text": "x" * 10_000}, time=6)
    asked = (Subscribe("r", "s", X), Suspend("r"), *(Publish("", one) for one in large))
    for one in asked:
        for store in of(Store, broker.handle(one, "p", 0)):
            journal.update(store.values)
    assert broker.edge.parties["p"].dropped == 3
    again = Broker(
        "a", 2, settings, {key: value for key, value in journal.items() if value is not None}
    )
    for one in (broker, again):
        one._check()
        told = of(Deliver, one.handle(Resume("r"), "p", 0))
        assert [(each.event.attributes["x"], each.gap) for each in told] == [(4, True), (5, False)]
        one.handle(Suspend("r"), "p", 0)
        one.handle(Publish("", huge), "p", 0)
        told = of(Deliver, one.handle(Resume("r"), "p", 0))
        assert [(each.event.attributes["x"], each.gap) for each in told] == [(6, True)]
        one._check()


def test_an_event_that_cannot_travel_is_refused_and_changes_nothing() -> None:
    broker = Broker("a")
    broker.connect("b", Role.PEER, 0)
    broker.handle(Interest({"k": WANTED}), "b", 0)
    large = Event("q", {"x": 1, "text": "x" * 9_000_000})
    effects = broker.handle(Publish("r", large, 1), "p", 0)
    assert [one.refused is not None for one in of(Reply, effects)] == [True]
    assert not of(SendParcels, effects)
    assert not broker.outbox.links()
    # The number is still free.
    assert of(SendParcels, broker.handle(published(1, 1), "p", 0))


SAYS = advertisement("SELECT * FROM q WHERE x > 0")


def test_an_offer_is_not_understood_where_advertisements_mean_nothing() -> None:
    broker = Broker("a")
    broker.connect("b", Role.PEER, 0)
    with pytest.raises(NotSupported, match="does not go by advertisements"):
        broker.handle(Offer({"k": SAYS}), "b", 0)
    # A party may advertise all the same; nobody else is told.
    assert not of(Send, broker.handle(Advertise("r", "ad", SAYS), "p", 0))
    assert broker.advertising.of("p") == {"ad": SAYS}


def test_what_was_advertised_and_by_which_handler_survives_a_crash() -> None:
    settings = Settings(advertised=True)
    broker, journal = Broker("a", settings=settings), {}
    asked = (
        Advertise("r", "ad", SAYS),
        Subscribe("r", "s", X),
        Redirect("r", "http://example.org/told"),
        published(5),
    )
    for one in asked:
        keep(journal, broker.handle(one, "p", 0))
    again = Broker("a", 2, settings, journal)
    again._check()
    (deliver,) = of(Deliver, again.begin(0))
    assert deliver.handler == "http://example.org/told"
    assert again.advertising.of("p") == {"ad": SAYS}
    # Another handler gets what the first may not have had.
    (deliver,) = of(Deliver, again.handle(Redirect("r", "mailto:p@example.org"), "p", 0))
    assert deliver.handler == "mailto:p@example.org"
    again.handle(Told(deliver.number), "p", 0)
    assert not of(Deliver, again.handle(Redirect("r", ""), "p", 0))
    keep(journal, again.handle(Unadvertise("r", SAYS), "p", 0))
    assert Broker("a", 3, settings, journal).advertising.of("p") == {}


def keep(journal: dict, effects: list[Effect]) -> None:
    for store in of(Store, effects):
        for key, value in store.values.items():
            journal[key] = value
            if value is None:
                del journal[key]


def test_who_is_interested_is_asked_of_those_who_may_know() -> None:
    broker = Broker("a")
    broker.connect("master", Role.MASTER, 0)
    broker.connect("client", Role.CLIENT, 0)
    # That the master wants everything says nothing.
    (asked,) = of(Send, broker.handle(Interested("r", SAYS), "p", 0))
    assert asked.peer == "master"
    (reply,) = of(Reply, broker.handle(Answer(asked.message.token, interested=True), "master", 0))
    assert reply.interested
    # What a client wants is known here.
    broker.handle(Interest({"k": WANTED}), "client", 0)
    (reply,) = of(Reply, broker.handle(Interested("r", SAYS), "p", 0))
    assert reply.interested
    # The client itself asks for others, not for itself.
    ask = Ask("t", 10, SAYS)
    assert [one.peer for one in of(Send, broker.handle(ask, "client", 0))] == ["master"]


def test_a_party_that_counts_anew_says_so() -> None:
    broker = Broker("a")
    broker.handle(Subscribe("r", "s", X), "c", 0)
    assert of(Deliver, broker.handle(published(5, 7), "p", 0))
    assert not of(Deliver, broker.handle(published(5, 1), "p", 0))
    anew = Publish("r", Event("q", {"x": 5}), 1, life=1)
    assert of(Deliver, broker.handle(anew, "p", 0))
    assert not of(Deliver, broker.handle(anew, "p", 0))


def test_half_a_pattern_goes_on_when_its_parameters_move() -> None:
    broker = Broker("a")
    pattern = parse("SELECT * FROM q WHERE x = 1 THEN SELECT * FROM q WHERE x = :p")
    broker.handle(Subscribe("r", "s", Standing.of(pattern, {"p": 2})), "c", 0)
    broker.handle(published(1), "p", 0)
    broker.handle(Subscribe("r", "s", Standing.of(pattern, {"p": 3})), "c", 0)
    broker._check()
    assert not of(Deliver, broker.handle(published(2), "p", 0))
    (deliver,) = of(Deliver, broker.handle(published(3), "p", 0))
    assert [one.attributes["x"] for one in deliver.sequences["s"]] == [1, 3]


def test_settings_of_an_overlay_that_go_by_advertisements_tell_offers_first() -> None:
    broker = Broker("a", settings=Settings(advertised=True))
    broker.handle(Advertise("r", "ad", SAYS), "p", 0)
    broker.handle(Subscribe("r", "s", X), "p", 0)
    said = [one.message for one in of(Send, broker.connect("b", Role.PEER, 0))]
    assert [type(one) for one in said] == [Offer, Interest]
    assert (list(said[0].added.values()), dict(said[1].added)) == ([SAYS], {})
    (drawn,) = of(Send, broker.handle(Offer({"k": SAYS}), "b", 0))
    assert list(drawn.message.added.values()) == [WANTED]
    (taken,) = of(Send, broker.handle(Offer({}, ("k",)), "b", 0))
    assert len(taken.message.removed) == 1
    broker._check()


def test_a_link_that_was_never_up_is_silent() -> None:
    station = Station("a")
    station.connect("b", Role.PEER, 0)
    assert not of(Reply, station.ask("p", Confirm("r", within=10), 0))
    (reply,) = of(Reply, station.wake(20))
    assert reply.silent == ("b",)


def frame(kind: FrameKind, payload: bytes, sequence: int, receiver: int) -> bytes:
    return encode_frame(Frame(kind, payload, 7, receiver, sequence))


def test_no_frame_says_that_an_event_was_heard_before_it_is_stored() -> None:
    """Not even the greeting of a session that begins with the event."""
    station = Station("a")
    station.ask("p", Subscribe("r", "s", X), 0)
    (hello,) = of(SendBytes, station.connect("b", Role.CLIENT, 0))
    mine = Decoder().feed(hello.data)[0].sender
    batch = encode_batch([Parcel("b", 1, Event("q", {"x": 5}, time=1, entered=1))])
    effects = station.receive("b", frame(FrameKind.EVENTS, batch, 1, mine), 0)
    at = max(place for place, one in enumerate(effects) if isinstance(one, Store))
    acknowledged = [Decoder().feed(one.data)[0].acknowledged for one in of(SendBytes, effects[:at])]
    assert not any(acknowledged)
    assert Decoder().feed(of(SendBytes, effects)[-1].data)[0].acknowledged == 1
    assert of(Deliver, effects[at:])


def test_a_message_that_nobody_knows_is_counted_and_passed_over() -> None:
    station = Station("a")
    (hello,) = of(SendBytes, station.connect("b", Role.PEER, 0))
    mine = Decoder().feed(hello.data)[0].sender
    station.receive("b", frame(FrameKind.CONTROL, b"\xc1", 1, mine), 0)
    station.receive("b", frame(FrameKind.CONTROL, encode_control(Offer()), 2, mine), 0)
    station.receive(
        "b", frame(FrameKind.CONTROL, encode_control(Interest({"k": WANTED})), 3, mine), 0
    )
    assert station.refused == 2
    assert of(SendBytes, station.ask("p", published(5), 0))


def test_a_long_outbox_is_sent_in_several_frames() -> None:
    station = Station("a")
    (hello,) = of(SendBytes, station.connect("b", Role.PEER, 0))
    mine = Decoder().feed(hello.data)[0].sender
    station.receive(
        "b", frame(FrameKind.CONTROL, encode_control(Interest({"k": WANTED})), 1, mine), 0
    )
    for number in range(30):
        station.ask("p", Publish("r", Event("q", {"x": 1, "text": "x" * 50_000, "n": number})), 0)
    # It begins anew: everything is sent again.
    again = encode_frame(Frame(FrameKind.HELLO, b"", 8, mine))
    frames = [Decoder().feed(one.data)[0] for one in of(SendBytes, station.receive("b", again, 1))]
    events = [one for one in frames if one.kind is FrameKind.EVENTS]
    assert len(events) > 3
    assert station.broker.outbox.counts()["b"] == 30
    # What has arrived is forgotten, and nothing else.
    first = encode_frame(Frame(FrameKind.ACK, b"", 8, mine, 0, events[0].sequence))
    station.receive("b", first, 2)
    assert 20 < station.broker.outbox.counts()["b"] < 30


def test_an_interest_too_long_for_a_frame_is_said_in_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And nothing that was wanted before is forgotten until all has been said."""
    monkeypatch.setattr(codec, "PAYLOAD_BYTES_MAX", 400)
    overlay = Overlay()
    for name in "ab":
        overlay.broker(name)
    party = overlay.party("p", "a")
    texts = [f"SELECT * FROM q WHERE x = {x}" for x in range(40)]
    for text in texts:
        overlay.ask(party, Subscribe("r", text, Standing.of(parse(text))))
    overlay.link("a", "b", Role.PEER)
    overlay.run()
    known = overlay.station("b").broker.links.subscriptions
    assert len(known.keys("a")) == 40
    overlay.ask(party, Cancel("r", texts[0]))
    overlay.crash("a")
    overlay.crash("b")
    fewest = 40
    while not overlay.at_rest:
        overlay.run(overlay.now + 1000)
        if overlay.up("b"):
            fewest = min(fewest, len(overlay.station("b").broker.links.subscriptions.keys("a")))
    assert fewest == 39
    for name in "ab":
        overlay.station(name).broker._check()
