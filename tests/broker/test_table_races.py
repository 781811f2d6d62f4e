"""What comes at the same time: claims of one table, requests to remove rows, moves nobody tells."""

from __future__ import annotations

import pytest

from driftline import Event, parse
from driftline.broker.links import Role
from driftline.broker.requests import Declare, Delete, Publish, Subscribe
from driftline.broker.settings import Settings
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.model.view import View
from driftline.sim.faults import MILLISECOND, SECOND
from driftline.sim.overlay import Overlay
from tests.broker.test_tables import ROLES, Network

STOCK = TableDeclaration.of("stock", "symbol")


@pytest.mark.parametrize("role", [Role.PEER, Role.MESH])
@pytest.mark.parametrize("after", range(0, 60, 3))
@pytest.mark.parametrize("first", "ac")
def test_of_two_claims_exactly_one_is_right(role: Role, after: int, first: str) -> None:
    """Though one that must be asked too takes its time, so that the first is not sure yet."""
    overlay = Overlay(after)
    for name in "abcd":
        overlay.broker(name)
    for name in "acd":
        overlay.link(name, "b", role)
    overlay.run()
    overlay.pause("d", 40 * MILLISECOND)
    parties = [overlay.party(name, name) for name in (first, "c" if first == "a" else "a")]
    for party in parties:
        overlay.ask(party, Declare("declare", STOCK))
        overlay.run(overlay.now + after * MILLISECOND)
    overlay.run()
    assert sorted(party.answered["declare"].refused is None for party in parties) == [False, True]
    kept = [name for name in "abcd" if "stock" in overlay.station(name).broker.tables]
    assert len(kept) == 1


@pytest.mark.parametrize("role", ROLES)
def test_rows_removed_one_right_after_the_other_are_all_gone(role: str) -> None:
    network = Network(ROLES[role], advertised=True)
    for symbol in "ABC":
        network.put(symbol, risk=1, per=1)
    for symbol in "ABC":
        network.overlay.ask(network.subscriber, Delete(f"delete {symbol}", "stock", symbol))
    network.overlay.run()
    assert len(network.broker("a").tables.get("stock")) == 0


def test_a_claim_that_is_refused_leaves_the_table_to_others() -> None:
    overlay = Overlay(1, Settings())
    for name in "ab":
        overlay.broker(name)
    overlay.link("a", "b", Role.PEER)
    overlay.run()
    first, second = overlay.party("first", "a"), overlay.party("second", "b")
    overlay.cut("b", "a")
    overlay.ask(first, Declare("declare", STOCK))
    overlay.run(overlay.now + 20 * SECOND)
    assert first.answered["declare"].refused is not None
    overlay.cut("b", "a", healed=True)
    overlay.ask(second, Declare("declare", STOCK))
    overlay.run()
    assert second.answered["declare"].refused is None


def test_rows_known_before_a_quiet_move_leave_far_from_their_table() -> None:
    """What the network brings must be wide enough for all that was told."""
    network = Network(Role.PEER, advertised=False)
    rows = View.of_rows(parse("SELECT symbol FROM stock WHERE risk < :r"))
    standing = Standing.of(rows, {"r": 50})
    network.ask(network.subscriber, Subscribe("subscribe", "v", standing))
    network.put("A", risk=30, per=1)
    moved = standing.moved_to({"r": 20})
    network.ask(network.subscriber, Subscribe("move", "v", moved, quietly=True))
    event = Event("stock", {"symbol": "A", "risk": 40, "per": 1})
    network.ask(network.publisher, Publish("put", event))
    assert [kind for kind, _, _ in network.told("v")] == ["enter", "leave"]
    network.subscriber.wants["v"] = moved
    network.check()
