"""When a party is told that all is in effect, is it? And is it told who did not answer?"""

from __future__ import annotations

import random

import pytest

from driftline import Event, parse
from driftline.broker.links import Role
from driftline.broker.requests import Advertise, Confirm, Publish, Subscribe
from driftline.broker.settings import Settings
from driftline.language.advertising import advertisement
from driftline.model.standing import Standing
from driftline.sim.faults import MILLISECOND, LinkFaults
from driftline.sim.overlay import SECOND, Overlay
from driftline.sim.topologies import TOPOLOGIES, build

EVERYTHING = Standing.of(parse("SELECT * FROM q WHERE x >= 0"))


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("seed", range(8))
def test_what_is_confirmed_is_in_effect_everywhere(topology: str, seed: int) -> None:
    """From the moment of the reply an event from any broker arrives, though links are bad."""
    draw = random.Random(f"{topology} {seed}")
    overlay = Overlay(seed)
    build(overlay, topology, 8, draw)
    overlay.run()
    overlay.faults = LinkFaults(slowest=300 * MILLISECOND, loss=0.2, reordering=True)
    broker = draw.choice(overlay.names())
    party = overlay.party("p", broker)
    overlay.ask(party, Subscribe("subscribe", "s", EVERYTHING))
    overlay.ask(party, Confirm("confirm", within=600 * SECOND))
    while "confirm" not in party.answered:
        overlay.run(overlay.now + MILLISECOND)
    assert party.answered["confirm"].silent == ()
    for number, name in enumerate(overlay.names()):
        publisher = overlay.party(f"{name}-publisher", name)
        overlay.ask(publisher, Publish("publish", Event("q", {"x": number})))
    overlay.run()
    told = sorted(deliver.event.attributes["x"] for deliver in party.told)
    assert told == list(range(len(overlay.names())))


def test_who_does_not_answer_in_time_is_named() -> None:
    overlay = Overlay(1)
    for name in ("b0", "b1", "b2"):
        overlay.broker(name)
    overlay.link("b0", "b1", Role.PEER)
    overlay.link("b1", "b2", Role.PEER)
    overlay.run()
    overlay.cut("b1", "b2")
    party = overlay.party("p", "b0")
    overlay.ask(party, Confirm("cut", within=2 * SECOND))
    overlay.run(overlay.now + 3 * SECOND)
    assert party.answered["cut"].silent == ("b2",)
    overlay.cut("b1", "b2", healed=True)
    overlay.ask(party, Confirm("healed", within=20 * SECOND))
    overlay.run()
    assert party.answered["healed"].silent == ()


@pytest.mark.parametrize("after", range(0, 30 * MILLISECOND, 500))
def test_a_broker_that_has_just_joined_confirms_when_interest_has_met_what_is_offered(
    after: int,
) -> None:
    overlay = Overlay(after, Settings(advertised=True))
    for name in ("b0", "b1"):
        overlay.broker(name)
    overlay.link("b0", "b1", Role.PEER)
    publisher = overlay.party("publisher", "b0")
    overlay.ask(publisher, Advertise("offer", "1", advertisement("SELECT * FROM q WHERE x >= 0")))
    overlay.run()
    overlay.broker("b2")
    overlay.link("b2", "b1", Role.PEER)
    party = overlay.party("p", "b2")
    overlay.ask(party, Subscribe("subscribe", "s", EVERYTHING))
    overlay.run(overlay.now + after)
    overlay.ask(party, Confirm("confirm"))
    while "confirm" not in party.answered:
        overlay.run(overlay.now + 100)
    overlay.ask(publisher, Publish("publish", Event("q", {"x": 1})))
    overlay.run()
    assert publisher.answered["publish"].refused is None
    assert party.told or party.answered["confirm"].silent


def test_a_broker_alone_confirms_at_once() -> None:
    overlay = Overlay(1)
    overlay.broker("b0")
    party = overlay.party("p", "b0")
    overlay.ask(party, Confirm("confirm"))
    assert party.answered["confirm"].silent == ()
