"""Followers of values across brokers: what travels, what is asked for, what relabelling does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from driftline import Event, parse
from driftline.broker.broker import Broker
from driftline.broker.effects import MISSING
from driftline.broker.labels import KNOWN_MAX, Labels
from driftline.broker.links import Role
from driftline.broker.requests import Advertise, Cancel, Declare, Delete, Publish, Subscribe
from driftline.broker.settings import Settings
from driftline.language.advertising import advertisement
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.sim.overlay import SECOND, Overlay
from driftline.sim.party import Party
from driftline.sim.trace import described
from driftline.stateful.value_based.address import PLACE_MAX, Asked, Box, asked_by

IBM = "SELECT price FROM stock WHERE symbol = 'IBM' AND moved(price, by => :r)"
SAYS = advertisement(
    "SELECT * FROM stock WHERE symbol IS NOT NULL AND price IS NOT NULL AND sector IS NOT NULL"
)
ROLES = {"acyclic": Role.PEER, "hierarchical": Role.MASTER, "mesh": Role.MESH}
MODES = [(kind, advertised) for kind in ROLES for advertised in (False, True)]


class Network:
    """a – b – c – d: the table at a, which is published at b, and followed at d and a."""

    def __init__(
        self, kind: str = "acyclic", advertised: bool = False, bits: int = 40, many: int = 64
    ) -> None:
        settings = Settings(advertised=advertised, label_bits=bits, many=many)
        self.overlay = Overlay(1, settings)
        for name in "abcd":
            self.overlay.broker(name)
        for here, there in ("ab", "cb", "dc"):
            self.overlay.link(here, there, ROLES[kind])
        self.overlay.run()
        self.keeper = self.overlay.party("keeper", "a")
        self.publisher = self.overlay.party("publisher", "b")
        self.far = self.overlay.party("far", "d")
        for party in (self.publisher, self.keeper):
            self.ask(party, Advertise("says", "says", SAYS))
        declared = TableDeclaration.of("stock", "symbol", {"price": "0.01"})
        assert self.ask(self.keeper, Declare("declare", declared)).refused is None

    def ask(self, party: Party, asked):
        self.overlay.ask(party, asked)
        self.overlay.run()
        return party.answered[asked.request]

    def put(self, price: float, symbol: str = "IBM", **more: object) -> None:
        event = Event("stock", {"symbol": symbol, "price": price, **more})
        assert self.ask(self.publisher, Publish("put", event)).refused is None

    def follow(self, party: Party, id: str, text: str = IBM, **params: object) -> None:
        standing = party.wants[id] = Standing.of(parse(text), params)
        assert self.ask(party, Subscribe("subscribe", id, standing)).refused is None

    def move(self, party: Party, id: str, **params: object) -> None:
        standing = party.wants[id] = party.wants[id].moved_to(params)
        self.ask(party, Subscribe("move", id, standing))

    def told(self, party: Party, id: str) -> list[tuple[str, object]]:
        found = [one for deliver in party.told for one in deliver.news.get(id, ())]
        return [(one.kind.value, next(iter(one.values.values()), None)) for one in found]

    def broker(self, name: str):
        return self.overlay.station(name).broker

    def home(self):
        return self.broker("a").tables.home._reformulators["$moved:stock"]

    def check(self) -> None:
        for name in "abcd":
            self.broker(name)._check()
            assert self.broker(name).edge.views.unjoined() == []

    def asked_on_the_way(self) -> list[Asked]:
        """What the brokers from the home to the far follower hold for it."""
        found = []
        for here, there in ("ab", "bc", "cd"):
            links = self.broker(here).links.subscriptions
            keys = [(there, key) for key in links.keys(there)]
            if here == "a":  # In a mesh only whoever sends it asks whom it concerns.
                keys += [("\nmesh", key) for key in links.keys("\nmesh") if key[0] == "d"]
            filters = (links.filter(owner, key) for owner, key in keys)
            found += [one for one in map(asked_by, filter(None, filters)) if one is not None]
        return found

    def address(self, party: str, id: str) -> tuple[float, float | None]:
        found = self.broker(party).edge.views._views[id].fold.found
        return found.radius, found.place


@pytest.mark.parametrize(("kind", "advertised"), MODES)
def test_a_follower_far_away_is_told_exactly_what_moved(kind: str, advertised: bool) -> None:
    net = Network(kind, advertised)
    net.put(100.0)
    net.follow(net.far, "s", r=2)
    for price in (101.0, 101.99, 102.0, 100.01, 100.0, 97.0):
        net.put(price)
    assert net.told(net.far, "s") == [
        ("snapshot", 100.0),
        ("change", 102.0),
        ("change", 100.0),
        ("change", 97.0),
    ]
    net.check()


@pytest.mark.parametrize(("kind", "advertised"), MODES)
def test_a_row_that_is_not_there_yet_is_told_when_it_is_and_when_it_is_gone(
    kind: str, advertised: bool
) -> None:
    net = Network(kind, advertised)
    net.follow(net.far, "s", r=2)
    net.put(100.0)
    net.put(103.0)
    net.ask(net.publisher, Delete("gone", "stock", "IBM"))
    net.put(103.5)
    net.put(104.0)
    net.put(106.0)
    kinds = ["snapshot", "change", "leave", "enter", "change"]
    assert [kind for kind, _ in net.told(net.far, "s")] == kinds
    net.check()


@pytest.mark.parametrize(("kind", "advertised"), MODES)
def test_a_radius_moves_from_afar_and_what_is_overdue_by_it_is_told(
    kind: str, advertised: bool
) -> None:
    net = Network(kind, advertised)
    net.put(100.0)
    net.follow(net.far, "s", r=10)
    net.put(103.0)
    net.move(net.far, "s", r=5)
    net.move(net.far, "s", r=3)
    net.put(105.0)
    net.put(106.0)
    assert net.told(net.far, "s") == [("snapshot", 100.0), ("change", 103.0), ("change", 106.0)]
    net.check()


@pytest.mark.parametrize(("kind", "advertised"), MODES)
def test_what_happens_between_a_move_and_its_answer_is_told_by_the_radius_before(
    kind: str, advertised: bool
) -> None:
    net = Network(kind, advertised)
    net.put(100.0)
    net.follow(net.far, "s", r=2)
    standing = net.far.wants["s"] = net.far.wants["s"].moved_to({"r": 50})
    net.overlay.ask(net.far, Subscribe("move", "s", standing))
    for price in (102.0, 100.0):
        net.overlay.ask(net.publisher, Publish("put", Event("stock", _row(price))))
    net.overlay.run()
    # The home hears of them before it hears of the radius: nothing is skipped.
    told = net.told(net.far, "s")
    assert told in ([("snapshot", 100.0)], [("snapshot", 100.0), *_changes(102.0, 100.0)])
    assert net.home()._members["d\ns"].move.radius == 5000
    net.check()


def _row(price: float) -> dict[str, object]:
    return {"symbol": "IBM", "price": price}


def _changes(*prices: float) -> list[tuple[str, float]]:
    return [("change", price) for price in prices]


@pytest.mark.parametrize(("kind", "advertised"), MODES)
def test_whoever_follows_every_row_of_a_condition_is_told_of_each(
    kind: str, advertised: bool
) -> None:
    net = Network(kind, advertised)
    net.put(100.0, "IBM", sector="tech")
    text = "SELECT symbol FROM stock WHERE sector = 'tech' AND moved(price, percent => 5)"
    net.follow(net.far, "s", text)
    net.put(10.0, "HP", sector="tech")
    net.put(10.5, "HP", sector="tech")
    net.put(50.0, "GM", sector="cars")
    net.put(104.0, "IBM", sector="tech")
    net.put(200.0, "IBM", sector="cars")
    net.put(105.0, "IBM", sector="tech")
    assert net.told(net.far, "s") == [
        ("snapshot", "IBM"),
        ("enter", "HP"),
        ("change", "HP"),
        ("change", "IBM"),
    ]
    net.check()


@pytest.mark.parametrize(("kind", "advertised"), MODES)
def test_what_crossed_and_what_stands_beside_a_variable_is_told_from_afar(
    kind: str, advertised: bool
) -> None:
    net = Network(kind, advertised)
    net.put(100.0, sector="tech")
    crossed = "SELECT price FROM stock WHERE crossed(price, above => :high, clear => 101)"
    net.follow(net.far, "c", crossed, high=103)
    beside = "SELECT price FROM stock WHERE sector = :s AND moved(price, by => 2)"
    net.follow(net.far, "m", beside, s="tech")
    for price in (103.0, 102.0, 104.0, 101.0, 103.0):
        net.put(price, sector="tech")
    net.put(200.0, sector="cars")
    assert net.told(net.far, "c") == [("enter", 103.0), ("change", 103.0)]
    assert net.told(net.far, "m") == [("snapshot", 100.0), *_changes(103.0, 101.0, 103.0)]
    net.check()


@pytest.mark.parametrize(("kind", "advertised"), MODES)
def test_events_that_are_no_rows_are_followed_too_until_they_are(
    kind: str, advertised: bool
) -> None:
    net = Network(kind, advertised)
    says = advertisement("SELECT * FROM load WHERE v IS NOT NULL AND host IS NOT NULL")
    net.ask(net.publisher, Advertise("load", "load", says))
    net.follow(net.far, "s", "SELECT v FROM load WHERE moved(v, by => 2)")
    for v in (1, 2, 3):
        net.ask(net.publisher, Publish("put", Event("load", {"v": v, "host": "x"})))
    assert net.told(net.far, "s") == [("event", 1), ("event", 3)]
    net.ask(net.keeper, Declare("declare", TableDeclaration.of("load", "host")))
    net.ask(net.publisher, Publish("put", Event("load", {"v": 4, "host": "x"})))
    net.ask(net.publisher, Publish("put", Event("load", {"v": 5, "host": "y"})))
    assert net.told(net.far, "s")[2:] == [("enter", 4), ("enter", 5)]
    net.check()


# What travels


def test_a_follower_asks_for_its_own_address_when_it_is_known() -> None:
    net = Network()
    net.put(100.0)
    net.follow(net.far, "s", r=2)
    radius, place = net.address("d", "s")
    asked = net.asked_on_the_way()
    assert [(one.key, one.radius, one.place) for one in asked] == [("IBM", radius, place)] * 3


def test_nobody_hears_of_a_value_that_concerns_nobody_behind() -> None:
    net = Network()
    net.put(100.0)
    net.follow(net.far, "s", r=50)
    net.follow(net.keeper, "near", r=1)
    net.overlay.run()
    before = net.broker("c").passing.had("a")
    for price in (101.0, 102.0, 103.0):
        net.put(price)
    assert [price for _, price in net.told(net.keeper, "near")] == [100.0, 101.0, 102.0, 103.0]
    assert net.broker("c").passing.had("a") == before


def test_a_follower_that_left_is_forgotten_by_the_home() -> None:
    net = Network()
    net.put(100.0)
    net.follow(net.far, "s", r=2)
    assert len(net.home()) == 1
    net.ask(net.far, Cancel("cancel", "s"))
    assert len(net.home()) == 0
    assert net.asked_on_the_way() == []
    net.check()


class Crowded(Network):
    """One follower far away, among ever more at the home who have its radius."""

    def __init__(self, kind: str, advertised: bool = False) -> None:
        super().__init__(kind, advertised, bits=5, many=2)
        self._draw = random.Random(1)
        self._near = 0
        for price in (100.0, 98.0, 99.0, 102.0):
            self.put(price)
            self.crowd()
        self.put(101.0)
        self.follow(self.far, "s", r=50)
        self._place = self.address("d", "s")[1]

    def crowd(self) -> bool:
        """One more at the home: is the far one's place another by that?"""
        self._near += 1
        self.follow(self.keeper, f"near {self._near}", r=50)
        return "s" in self.far.wants and self.address("d", "s")[1] != self._place

    def until_relabelled(self, before: Callable[[], None] = lambda: None) -> None:
        for _ in range(200):
            self.put(round(self._draw.uniform(97, 105), 2))
            before()
            if self.crowd():
                return
        raise AssertionError("no relabelling")


@pytest.mark.parametrize(("kind", "advertised"), MODES)
def test_relabelling_shifts_what_brokers_on_the_way_hold(kind: str, advertised: bool) -> None:
    net = Crowded(kind, advertised)
    net.until_relabelled()
    radius, place = net.address("d", "s")
    home = net.home()
    member = home._members["d\ns"]
    assert home._found(member)[:4] == (member.group, radius, "IBM", place)
    asked = {(one.radius, one.place) for one in net.asked_on_the_way()}
    assert asked == {(radius, place)}
    net.put(160.0)
    assert net.told(net.far, "s")[-1] == ("change", 160.0)
    net.check()


def test_a_relabelling_is_one_message_on_each_link(monkeypatch) -> None:
    said: list[tuple[str, str, str]] = []
    net = Crowded("acyclic")
    real = Overlay._send

    def noting(self, here, effect):
        said.append((here, effect.peer, described(effect.data)))
        real(self, here, effect)

    monkeypatch.setattr(Overlay, "_send", noting)
    net.until_relabelled(before=said.clear)
    batches = Counter((here, there) for here, there, text in said if "'SHIFT'" in text)
    assert batches == {("a", "b"): 1, ("b", "c"): 1, ("c", "d"): 1}
    # What the shift has said is not said again: interest is in the near one alone, by the home.
    wants = [(here, text.count("+ $moved")) for here, _, text in said if "wants" in text]
    assert "d" not in {here for here, _ in wants}
    assert {count for _, count in wants} <= {1}


# What brokers know of labels


def shift(generation: int, low: int, high: int, by: int) -> Event:
    box = Box(2.0, 2.0, low, high).said()
    said = {"GROUP": "g", "KEY": "IBM", "SHIFT": by, "GENERATION": generation, **box}
    return Event.of_admitted("$moved:stock", said, 0)


def asks(place: int, generation: int = 0, radius: float = 2.0) -> Asked:
    return Asked("g", "IBM", radius, place, generation)


def translated(labels: Labels, asked: Asked) -> Asked | None:
    return asked_by(labels.current(asked.filter("$moved:stock")))


def test_what_does_not_know_of_a_relabelling_yet_is_translated() -> None:
    labels = Labels(lambda key, value: None)
    labels.hear(shift(1, 10, 20, 5))
    labels.hear(shift(2, 24, 30, -3))
    assert translated(labels, asks(12)) == asks(17, 1)
    assert translated(labels, asks(20)) == asks(22, 2)
    assert translated(labels, asks(24, 1)) == asks(21, 2)
    assert translated(labels, asks(24, 2)) == asks(24, 2)
    assert translated(labels, asks(9)) == asks(9)
    assert translated(labels, asks(12, radius=3.0)) == asks(12, radius=3.0)


def test_when_a_row_is_gone_every_place_is_the_first() -> None:
    labels = Labels(lambda key, value: None)
    labels.hear(shift(1, 10, 20, 5))
    said = dict(shift(2, 0, PLACE_MAX, 0).attributes)
    del said["SHIFT"]
    labels.hear(Event.of_admitted("$moved:stock", {**said, "GONE": True}, 0))
    assert translated(labels, asks(12)) == asks(0, 2)
    assert translated(labels, asks(7, 2)) == asks(7, 2)


def test_what_is_too_old_to_be_translated_asks_for_all_with_its_radius() -> None:
    labels = Labels(lambda key, value: None)
    for generation in range(1, KNOWN_MAX + 10):
        labels.hear(shift(generation, 10, 10, 0))
    wide = labels.current(asks(12, 3).filter("$moved:stock"))
    assert asked_by(wide) is None
    assert {one.attribute for one in wide.constraints} == {"GROUP", "KEY", "RADIUS_L", "RADIUS_R"}
    assert translated(labels, asks(12, KNOWN_MAX)) == asks(12, KNOWN_MAX)


def test_what_is_known_of_labels_survives() -> None:
    stored: dict = {}
    labels = Labels(stored.__setitem__)
    labels.hear(shift(1, 10, 20, 5))
    again = Labels(lambda key, value: None)
    again.restore(stored)
    assert translated(again, asks(12)) == asks(17, 1)


# Faults


def test_a_broker_that_begins_again_holds_what_was_shifted() -> None:
    net = Crowded("acyclic")
    net.until_relabelled()
    journal = net.overlay.journal("c")
    again = Broker("c", 9, net.broker("c").settings, journal).links.subscriptions
    held = net.broker("c").links.subscriptions
    places = {asked_by(held.filter("d", key)) for key in held.keys("d")} - {None}
    assert {asked_by(again.filter("d", key)) for key in again.keys("d")} - {None} == places
    assert {one.place for one in places} == {net.address("d", "s")[1]}


@pytest.mark.parametrize(("kind", "advertised"), MODES)
def test_a_home_that_begins_anew_is_followed_anew_behind_a_gap(kind: str, advertised: bool) -> None:
    net = Network(kind, advertised)
    net.put(100.0)
    net.follow(net.far, "s", r=2)
    net.overlay.crash("a")
    net.overlay.run(net.overlay.now + 60 * SECOND)
    net.put(101.0)
    net.put(103.0)
    kinds = [kind for kind, _ in net.told(net.far, "s")]
    assert kinds[:3] == ["snapshot", "gap", "snapshot"]
    assert net.told(net.far, "s")[-1] == ("change", 103.0)
    net.check()


@pytest.mark.parametrize("name", ["c", "d"])
def test_a_broker_on_the_way_that_crashes_loses_nothing(name: str) -> None:
    net = Crowded("acyclic")
    net.until_relabelled()
    net.overlay.crash(name)
    net.overlay.run(net.overlay.now + 60 * SECOND)
    net.put(160.0)
    assert net.told(net.far, "s")[-1] == ("change", 160.0)
    net.check()


def test_a_follower_of_events_is_told_what_a_crash_took() -> None:
    """What it was told last was in memory: it begins anew, and says so."""
    overlay = Overlay()
    overlay.broker("b")
    party, publisher = overlay.party("p", "b"), overlay.party("publisher", "b")
    texts = {"s": "SELECT v FROM load WHERE moved(v, by => 2)", "plain": "SELECT * FROM load"}
    for id, text in texts.items():
        overlay.ask(party, Subscribe("", id, Standing.of(parse(text))))
    overlay.run()
    for v in (1, 2, 3):
        overlay.ask(publisher, Publish("", Event("load", {"v": v})))
    overlay.run()
    overlay.crash("b")
    overlay.run()
    assert [one.gaps for one in party.told if one.event == MISSING] == [("s",)]
    before = len(party.told)
    overlay.ask(publisher, Publish("", Event("load", {"v": 4})))
    overlay.run()
    assert [set(one.subscriptions) for one in party.told[before:]] == [{"s", "plain"}]
    overlay.station("b").broker._check()
