"""Tables and views across brokers: who keeps a table, what is told, and what may go wrong."""

from __future__ import annotations

import pytest

from driftline import Event, parse
from driftline.broker.links import Role
from driftline.broker.requests import Advertise, Cancel, Declare, Delete, Publish, Subscribe
from driftline.broker.settings import Settings
from driftline.errors import TableError
from driftline.language.advertising import advertisement
from driftline.model.message import Parcel
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.model.view import View
from driftline.sim.overlay import Overlay
from driftline.sim.party import Party
from driftline.stateful.news import NOTHING
from driftline.wire.events import encode_batch

STOCK = TableDeclaration.of("stock", "symbol")
LEAST = "SELECT MIN(per) FROM stock WHERE risk BETWEEN :low AND :high"
SAYS = advertisement(
    "SELECT * FROM stock WHERE symbol IS NOT NULL AND risk IS NOT NULL AND per IS NOT NULL"
)
ROLES = {"acyclic": Role.PEER, "hierarchical": Role.MASTER, "mesh": Role.MESH}


class Network:
    """Three brokers around a fourth: the home at a, publishers at b, subscribers at c."""

    def __init__(self, role: Role, advertised: bool) -> None:
        self.overlay = Overlay(1, Settings(advertised=advertised))
        for name in "abcd":
            self.overlay.broker(name)
        for name in "abc":
            self.overlay.link(name, "d", role)
        self.overlay.run()
        self.keeper = self.overlay.party("keeper", "a")
        self.publisher = self.overlay.party("publisher", "b")
        self.subscriber = self.overlay.party("subscriber", "c")
        for party in (self.publisher, self.keeper):
            self.ask(party, Advertise("says", "says", SAYS))
        assert self.ask(self.keeper, Declare("declare", STOCK)).refused is None

    def ask(self, party: Party, asked):
        self.overlay.ask(party, asked)
        self.overlay.run()
        return party.answered[asked.request]

    def put(self, symbol: str, **values: object) -> None:
        event = Event("stock", {"symbol": symbol, **values})
        assert self.ask(self.publisher, Publish("put", event)).refused is None

    def subscribe(self, id: str, text: str, *, rows: bool = False, **params: object) -> None:
        statement = parse(text)
        standing = Standing.of(View.of_rows(statement) if rows else statement, params)
        self.subscriber.wants[id] = standing
        assert self.ask(self.subscriber, Subscribe("subscribe", id, standing)).refused is None

    def move(self, id: str, **params: object) -> None:
        standing = self.subscriber.wants[id] = self.subscriber.wants[id].moved_to(params)
        self.ask(self.subscriber, Subscribe("move", id, standing))

    def told(self, id: str) -> list[tuple[str, dict, dict | None]]:
        found = [one for deliver in self.subscriber.told for one in deliver.news.get(id, ())]
        return [(one.kind.value, one.values, one.old) for one in found if one != NOTHING]

    def values(self, id: str) -> list[tuple[str, object]]:
        return [(kind, next(iter(new.values()), None)) for kind, new, _ in self.told(id)]

    def broker(self, name: str):
        return self.overlay.station(name).broker

    def check(self) -> None:
        for name in self.overlay.names():
            self.broker(name)._check()
            assert self.broker(name).edge.views.unjoined() == []


@pytest.fixture(params=[(name, said) for name in ROLES for said in (False, True)], ids=str)
def network(request) -> Network:
    name, advertised = request.param
    return Network(ROLES[name], advertised)


def test_a_view_far_from_its_table_is_told_its_value_and_the_changes(network) -> None:
    network.put("A", risk=30, per=8)
    network.subscribe("v", LEAST, low=20, high=60)
    network.put("B", risk=40, per=9)
    network.put("C", risk=50, per=5)
    network.ask(network.publisher, Delete("delete", "stock", "C"))
    network.put("A", risk=70, per=1)
    assert network.values("v") == [("snapshot", 8), ("change", 5), ("change", 8), ("change", 9)]
    network.check()


def test_a_bound_that_moves_tells_the_new_value(network) -> None:
    network.put("A", risk=30, per=8)
    network.put("B", risk=70, per=3)
    network.subscribe("v", LEAST, low=20, high=60)
    network.move("v", low=20, high=80)
    network.put("B", risk=70, per=4)
    network.move("v", low=90, high=99)
    expected = [("snapshot", 8), ("change", 3), ("change", 4), ("change", None)]
    assert network.values("v") == expected
    network.check()


def test_rows_enter_change_and_leave_across_brokers(network) -> None:
    network.subscribe("v", "SELECT symbol, per FROM stock WHERE risk < :r", rows=True, r=50)
    network.put("A", risk=30, per=8)
    network.put("A", risk=30, per=9)
    network.put("B", risk=60, per=1)
    network.move("v", r=20)
    network.move("v", r=70)
    network.put("A", risk=90, per=9)
    eight, nine = {"symbol": "A", "per": 8}, {"symbol": "A", "per": 9}
    one = {"symbol": "B", "per": 1}
    assert network.told("v") == [
        ("enter", eight, None),
        ("change", nine, eight),
        ("leave", {}, nine),
        ("enter", nine, None),
        ("enter", one, None),
        ("leave", {}, nine),
    ]
    network.check()


def test_sums_and_distinct_values_across_brokers(network) -> None:
    network.put("A", risk=30, per=8)
    network.subscribe("sum", "SELECT COUNT(*) AS n, SUM(per) AS s FROM stock WHERE risk < 50")
    network.subscribe("distinct", "SELECT DISTINCT per FROM stock")
    network.put("B", risk=30, per=8)
    network.put("B", risk=60, per=2)
    assert [values for _, values, _ in network.told("sum")] == [
        {"n": 1, "s": 8},
        {"n": 2, "s": 16},
        {"n": 1, "s": 8},
    ]
    assert network.values("distinct") == [("snapshot", 8), ("enter", 2)]
    network.check()


def test_a_second_claim_is_refused_and_the_first_may_be_repeated(network) -> None:
    refused = network.ask(network.publisher, Declare("again", STOCK)).refused
    assert isinstance(refused, TableError)
    assert "another broker" in str(refused)
    assert network.ask(network.keeper, Declare("again", STOCK)).refused is None
    other = TableDeclaration.of("stock", "risk")
    assert "another key" in str(network.ask(network.keeper, Declare("other", other)).refused)


def test_of_two_claims_at_once_one_is_right() -> None:
    network = Network(Role.PEER, advertised=False)
    table = TableDeclaration.of("other", "k")
    for party in (network.subscriber, network.publisher, network.keeper):
        network.overlay.ask(party, Declare("claim", table))
    network.overlay.run()
    homes = [name for name in "abcd" if "other" in network.broker(name).tables]
    assert homes == ["a"]
    assert network.keeper.answered["claim"].refused is None
    assert network.subscriber.answered["claim"].refused is not None


def test_a_claim_is_refused_while_somebody_does_not_answer() -> None:
    network = Network(Role.PEER, advertised=False)
    network.overlay.cut("d", "b")
    network.overlay.ask(network.keeper, Declare("claim", TableDeclaration.of("other", "k")))
    network.overlay.run(network.overlay.now + 20_000_000)
    assert "did not answer: b" in str(network.keeper.answered["claim"].refused)


def test_a_view_waits_for_its_table() -> None:
    network = Network(Role.PEER, advertised=False)
    network.subscribe("v", "SELECT COUNT(*) FROM other")
    assert network.told("v") == []
    network.ask(network.publisher, Declare("claim", TableDeclaration.of("other", "k")))
    assert network.values("v") == [("snapshot", 0)]
    network.check()


def test_a_row_that_the_home_cannot_take_is_told_as_an_event_and_left_out() -> None:
    network = Network(Role.PEER, advertised=False)
    network.subscribe("events", "SELECT * FROM stock")
    network.subscribe("v", "SELECT COUNT(*) FROM stock")
    for values in ({"per": 1}, {"symbol": "A", "per": float("nan")}):
        network.ask(network.publisher, Publish("put", Event("stock", values)))
    assert network.values("v") == [("snapshot", 0)]
    assert sum("events" in deliver.subscriptions for deliver in network.subscriber.told) == 2
    assert "finite" in network.broker("a").tables.refused["stock"]
    refused = network.ask(network.keeper, Publish("put", Event("stock", {"per": 1}))).refused
    assert isinstance(refused, TableError)


def test_a_large_snapshot_comes_in_parts() -> None:
    network = Network(Role.PEER, advertised=False)
    for at in range(30):
        network.put(f"S{at}", note="x" * 100_000)
    network.subscribe("v", "SELECT * FROM stock", rows=True)
    kinds = [kind for kind, _ in network.values("v")]
    assert kinds == ["snapshot"] * 30


def test_a_change_too_long_for_a_message_is_asked_for() -> None:
    network = Network(Role.PEER, advertised=False)
    network.subscribe("v", "SELECT note FROM stock", rows=True)
    for letter in "xy":
        network.put("A", note=letter * 5_000_000)
    told = [(kind, new["note"][0]) for kind, new, _ in network.told("v") if kind != "gap"]
    assert told[-1] == ("snapshot", "y")
    network.check()


def test_when_a_view_ends_nothing_is_left_of_it(network) -> None:
    network.subscribe("v", LEAST, low=20, high=60)
    network.ask(network.subscriber, Cancel("cancel", "v"))
    network.put("A", risk=30, per=8)
    assert network.values("v") == [("snapshot", None)]
    wanted = network.broker("d").links.subscriptions.wanted()
    types = {one.type for _, one in wanted if one.type is not None}
    assert types <= {"stock", "$ask:stock", "$delete:stock"}
    network.check()


def test_a_home_that_comes_back_goes_on(network) -> None:
    network.put("A", risk=30, per=8)
    network.subscribe("v", LEAST, low=20, high=60)
    network.overlay.crash("a")
    network.overlay.run()
    network.put("B", risk=30, per=7)
    network.put("A", risk=30, per=1)
    # Where its links were the ways of a mesh, others cannot be sure that nothing was overtaken.
    assert network.values("v")[0] == ("snapshot", 8)
    assert [one for one in network.values("v") if one[0] == "change"] == [
        ("change", 7),
        ("change", 1),
    ]
    network.check()


def test_a_home_that_lost_its_tables_is_a_gap(network) -> None:
    network.put("A", risk=30, per=8)
    network.subscribe("v", LEAST, low=20, high=60)
    network.overlay.crash("a", lost=True)
    network.overlay.run()
    network.ask(network.keeper, Advertise("says", "says", SAYS))
    network.ask(network.keeper, Declare("declare", STOCK))
    network.put("B", risk=30, per=9)
    told = network.values("v")
    assert told[0] == ("snapshot", 8)
    assert told[-3:] == [("gap", None), ("snapshot", None), ("change", 9)]
    network.check()


def test_an_edge_that_comes_back_joins_again(network) -> None:
    network.subscribe("v", LEAST, low=20, high=60)
    network.overlay.crash("c")
    network.overlay.run()
    network.put("A", risk=30, per=8)
    assert network.values("v") == [
        ("snapshot", None),
        ("gap", None),
        ("snapshot", None),
        ("change", 8),
    ]
    network.check()


def test_the_deletion_of_a_long_row_is_told() -> None:
    network = Network(Role.PEER, advertised=False)
    network.subscribe("v", "SELECT COUNT(*) FROM stock")
    network.put("A", note="x" * 5_000_000)
    network.ask(network.publisher, Delete("delete", "stock", "A"))
    assert network.values("v")[-1][1] == 0
    network.check()


def test_a_row_of_many_attributes_is_told() -> None:
    network = Network(Role.PEER, advertised=False)
    network.subscribe("v", "SELECT COUNT(*), SUM(a7) FROM stock")
    for value in (1, 2):
        network.put("A", **{f"a{at}": value for at in range(40_000)})
    assert network.told("v")[-1][1] == {"COUNT(*)": 1, "SUM(a7)": 2}
    network.check()


ASKED = {"TO": "a", "SUBSCRIPTION": "v", "ASKED": 1}
NUMBERS = {"HOME_LIFE": 1 << 60, "HOME_SEQUENCE": 1}
HOSTILE = [
    ("$delete:stock", {}),
    ("$ask:stock", {}),
    ("$ask:stock", {**ASKED, "VIEW": "text"}),
    ("$ask:stock", {**ASKED, "VIEW": b"junk"}),
    ("$ask:stock", {**ASKED, "VIEW": b"\x97\x90\xa5stock\xc3\xc2\xc0\x90\x00"}),
    ("$snapshot:stock", {"TO": "c"}),
    ("$snapshot:stock", {**ASKED, "TO": "c", "ASKED": "x"}),
    ("$snapshot:stock", {**ASKED, **NUMBERS, "TO": "c", "PART": 0, "PARTS": 1 << 40, "DATA": b""}),
    ("$min:stock.per/risk", {"INNER_L": 1}),
    ("$min:stock.per/risk", {**NUMBERS, "INNER_L": "a"}),
    ("$rows:stock", {**NUMBERS}),
    ("$rows:stock", {"HOME_LIFE": "x", "HOME_SEQUENCE": 1, "KEY": 1}),
    ("$nonsense", {**NUMBERS}),
    ("$nonsense:stock", {**NUMBERS}),
]


@pytest.mark.parametrize(("type", "said"), HOSTILE, ids=str)
def test_what_no_broker_says_is_not_listened_to(type: str, said: dict) -> None:
    network = Network(Role.PEER, advertised=False)
    network.put("A", risk=30, per=8)
    network.subscribe("v", LEAST, low=20, high=60)
    network.subscribe("sum", "SELECT SUM(per) FROM stock")
    hostile = Parcel("x", 1, Event.of_admitted(type, said, 0))
    for name in "ac":
        network.broker(name).handle_batch(encode_batch([hostile]), "d", network.overlay.now)
        network.broker(name)._check()
    network.put("A", risk=30, per=7)
    assert network.values("v") == [("snapshot", 8), ("change", 7)]
    network.check()


@pytest.mark.parametrize(
    "row",
    [
        {"OLD": True, "OLD_per": 4, "OLD_ce_type": "stock"},
        {"NEW": True, "NEW_per": 4, "NEW_ce_type": "stock", "NEW_ce_time": "soon"},
        {"NEW": True, "NEW_per": 4, "NEW_ce_type": 5},
        {"NEW": True, "NEW_per": 4, "NEW_": 5, "NEW_ce_type": "stock"},
    ],
    ids=str,
)
def test_a_message_that_contradicts_what_is_known_is_a_gap(row: dict) -> None:
    network = Network(Role.PEER, advertised=False)
    network.put("A", risk=30, per=8)
    for id, columns in (("least", "MIN(per), MAX(per)"), ("distinct", "DISTINCT per")):
        network.subscribe(id, f"SELECT {columns} FROM stock")
    home = network.broker("a").tables.home
    said = {"HOME_LIFE": home.life, "HOME_SEQUENCE": home.sequence + 1, "KEY": "Z", **row}
    said |= {"CHANGED per": True}
    hostile = Parcel("x", 1, Event.of_admitted("$rows:stock", said, 0))
    batch = encode_batch([hostile])
    network.overlay._do(
        "c",
        lambda station, now: station._carried(station.broker.handle_batch(batch, "d", now), now),
    )
    network.overlay.run()
    network.put("A", risk=30, per=7)
    assert network.told("least")[-1][1] == {"MIN(per)": 7, "MAX(per)": 7}


@pytest.mark.parametrize("key", [None, [1], 2**70], ids=str)
def test_a_key_that_is_none_is_refused(key: object) -> None:
    network = Network(Role.PEER, advertised=False)
    for party in (network.publisher, network.keeper):
        assert network.ask(party, Delete("delete", "stock", key)).refused is not None


@pytest.mark.parametrize(
    "declaration", [("", "k"), ("$x", "k"), ("t", ""), ("t", "ce_id")], ids=str
)
def test_a_declaration_that_is_none_is_refused(declaration: tuple[str, str]) -> None:
    network = Network(Role.PEER, advertised=False)
    asked = Declare("bad", TableDeclaration(*declaration))
    assert isinstance(network.ask(network.keeper, asked).refused, TableError)
    assert not network.broker("a").asking._claims
