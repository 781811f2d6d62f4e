"""What of a party that is away from its broker: what arrives, when, and what is made of it?"""

from __future__ import annotations

from driftline import Event, parse
from driftline.broker.requests import Confirm, Publish, Subscribe
from driftline.model.standing import Standing
from driftline.sim.faults import MILLISECOND, SECOND
from driftline.sim.overlay import Overlay
from driftline.sim.party import Party

TEXT = parse("SELECT * FROM q WHERE x > :low")


def alone(away: int) -> tuple[Overlay, Party, Party]:
    """One broker, a subscriber that is away from it, and a publisher that is not."""
    overlay = Overlay()
    overlay.broker("b")
    return overlay, overlay.party("p", "b", away), overlay.party("publisher", "b")


def wants(overlay: Overlay, party: Party, low: int) -> int:
    party.wants["s"] = Standing.of(TEXT, {"low": low})
    return overlay.ask(party, Subscribe("subscribe", "s", party.wants["s"]))


def publishes(overlay: Overlay, publisher: Party, x: int) -> None:
    overlay.ask(publisher, Publish("publish", Event("q", {"x": x})))


def test_a_reply_takes_both_ways() -> None:
    overlay, party, _ = alone(5 * MILLISECOND)
    number = wants(overlay, party, 0)
    overlay.run(9 * MILLISECOND)
    assert "subscribe" not in party.answered
    overlay.run()
    assert party.done[number] == 10 * MILLISECOND


def test_what_was_asked_later_arrives_later() -> None:
    overlay, party, publisher = alone(5 * MILLISECOND)
    for low in (5, 3, 7):
        wants(overlay, party, low)
    overlay.run()
    publishes(overlay, publisher, 6)
    publishes(overlay, publisher, 8)
    overlay.run()
    assert [one.event.attributes["x"] for one in party.told] == [8]


def test_what_a_broker_found_under_an_old_value_is_not_let_through() -> None:
    overlay, party, publisher = alone(5 * MILLISECOND)
    wants(overlay, party, 0)
    overlay.run()
    publishes(overlay, publisher, 3)
    publishes(overlay, publisher, 9)
    wants(overlay, party, 5)
    overlay.run()
    assert [one.event.attributes["x"] for one in party.told] == [3, 9]
    assert [one.ids for one in party.decided] == [(), ("s",)]


def test_what_is_on_its_way_to_a_broker_that_crashes_is_asked_again() -> None:
    """In order, and once: a later request must not overtake it in the broker's next life."""
    overlay, party, _ = alone(500 * MILLISECOND)
    wants(overlay, party, 5)
    overlay.run(100 * MILLISECOND)
    overlay.crash("b")
    overlay.run(SECOND)
    number = wants(overlay, party, 3)
    overlay.run()
    assert not party.unanswered
    assert party.done[number] > 2 * SECOND
    assert overlay.station("b").broker.edge.standing("s") == party.wants["s"]


def test_a_broker_that_forgot_all_is_told_the_newest_only() -> None:
    overlay, party, _ = alone(0)
    wants(overlay, party, 1)
    overlay.crash("b", lost=True)
    asked = wants(overlay, party, 2)
    confirm = overlay.ask(party, Confirm("confirm"))
    overlay.run()
    assert overlay.station("b").broker.edge.standing("s") == party.wants["s"]
    assert asked not in party.done
    assert confirm in party.done
