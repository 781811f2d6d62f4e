"""Events that are published as records survive whatever becomes of their broker."""

from __future__ import annotations

from random import Random

import pytest

from driftline.broker.requests import Cancel, Publish, Subscribe
from driftline.broker.settings import Settings
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.sim.faults import MILLISECOND
from driftline.sim.overlay import Overlay
from driftline.sim.scenario import Plan, Scenario
from driftline.sim.topologies import TOPOLOGIES

WANTED = parse("SELECT * FROM q WHERE x BETWEEN :low AND :high")


def run(
    seed: int, *, as_records: bool, crashes: float, events: list[Event] | None = None
) -> Overlay:
    """Parties that subscribe, move and publish at one broker, which crashes between effects."""
    events = [] if events is None else events
    draw = Random(seed)
    overlay = Overlay(seed, Settings(matcher="index"))
    overlay.as_records = as_records
    overlay.broker("b")
    parties = [overlay.party(f"p{at}", "b") for at in range(4)]
    number = 0
    for step in range(120):
        party = draw.choice(parties)
        # With crashes requests of different parties may change places: nobody moves then.
        if step == 40:
            overlay.run()
            overlay.crashes = crashes
        choice = draw.random() if step < 40 or not crashes else 1.0
        low = draw.randrange(8)
        if choice < 0.15:
            standing = Standing.of(WANTED, {"low": low, "high": low + 3})
            id = f"{party.name} {draw.randrange(3)}"
            if id in party.wants:
                standing = party.wants[id].moved_to(standing.params)
            party.wants[id] = standing
            overlay.ask(party, Subscribe(f"s{step}", id, standing))
        elif choice < 0.2 and party.wants:
            id = draw.choice(sorted(party.wants))
            del party.wants[id]
            overlay.ask(party, Cancel(f"c{step}", id))
        else:
            number += 1
            event = Event("q", {"x": draw.randrange(10), "n": number}, time=step)
            events.append(event)
            overlay.ask(party, Publish(f"e{step}", event))
        overlay.run(overlay.now + draw.randrange(3_000) * MILLISECOND)
    overlay.crashes = 0.0
    overlay.run()
    overlay.station("b").broker._check()
    return overlay


def told(overlay: Overlay) -> dict[str, list[tuple[object, ...]]]:
    return {
        party.name: [
            (one.event.attributes["n"], *sorted(zip(one.subscriptions, one.epochs, strict=True)))
            for one in party.told
        ]
        for party in overlay.parties.values()
    }


@pytest.mark.parametrize("seed", range(12))
def test_as_records_or_one_by_one_is_the_same(seed):
    assert told(run(seed, as_records=True, crashes=0.0)) == told(
        run(seed, as_records=False, crashes=0.0)
    )


@pytest.mark.parametrize("seed", range(40))
def test_nothing_that_was_acknowledged_is_lost_by_a_crash(seed):
    events: list[Event] = []
    overlay = run(seed, as_records=True, crashes=0.05, events=events)
    for party in overlay.parties.values():
        assert not party.unanswered
        assert not party.repeated
        numbers = [one.event.attributes["n"] for one in party.told]
        assert len(numbers) == len(set(numbers))
        late = [one for one in party.told if one.event.time >= 40]
        wanted = {
            event.attributes["n"]: {
                id for id, one in party.wants.items() if WANTED.truth(one.scope(event, {})) is True
            }
            for event in events
            if event.time >= 40
        }
        found = {one.event.attributes["n"]: set(one.subscriptions) for one in late}
        assert found == {number: ids for number, ids in wanted.items() if ids}


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("seed", range(2))
def test_whole_runs_in_which_events_are_records(topology, seed):
    """Everything that is checked of any run holds, whatever goes wrong in it."""
    Scenario(Plan(topology, seed, steps=40, brokers=5, matcher="index", advertised=False)).run()
