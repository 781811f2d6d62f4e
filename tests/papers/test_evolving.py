"""The examples of evolving subscriptions [EVOLVE III, IV, V.D]."""

from __future__ import annotations

import pytest

import driftline as dl
from driftline import Event, parse
from driftline.broker.links import Role
from driftline.broker.requests import Observed, Publish, Subscribe
from driftline.broker.settings import Settings
from driftline.matching.scan import Scan
from driftline.model.standing import Standing
from driftline.moving.evolving.as_of import AsOf
from driftline.sim.overlay import SECOND, Overlay

WALK = """SELECT * FROM pickup WHERE x >= -3 + elapsed() AND x <= 3 + elapsed()
          AND y >= -2 + elapsed() AND y <= 2 + elapsed()"""
FOG = """SELECT * FROM pickup WHERE
         x >= (-3 + elapsed()) * env('v') AND x <= (3 + elapsed()) * env('v')
         AND y >= (-2 + elapsed()) * env('v') AND y <= (2 + elapsed()) * env('v')"""
WAYS = ("lazy", "cached", "versioned", "adaptive")


def apple(x: float, y: float) -> Event:
    return Event("pickup", {"x": x, "y": y, "action": "pickup", "object": "apple"})


@pytest.mark.parametrize("way", WAYS)
def test_the_apple_at_4_3_is_picked_up_in_time(way: str) -> None:
    """Section III.C: not when the player subscribes, but one or two seconds later."""
    clock = dl.ManualClock()
    engine = dl.Engine(clock=clock, evolving=way)
    engine.subscribe(WALK)
    seen = []
    for _ in range(8):
        seen.append(engine.publish(apple(4, 3)))
        clock.advance(1)
    assert seen == [0, 1, 1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize("way", WAYS)
def test_in_fog_the_area_is_smaller(way: str) -> None:
    """Figure 1(b): at t = 1 and a visibility of 0.5 the far corner is (2, 1.5)."""
    clock = dl.ManualClock()
    engine = dl.Engine(clock=clock, evolving=way)
    engine.subscribe(FOG)
    clock.advance(1)
    assert engine.publish(apple(2, 1.5)) == 0  # Nobody has said how far one can see.
    engine.set_env("v", 0.5)
    assert engine.publish(apple(2, 1.5)) == 1
    assert engine.publish(apple(2.01, 1.5)) == 0
    assert engine.publish(apple(4, 3)) == 0
    engine.set_env("v", 1)
    assert engine.publish(apple(4, 3)) == 1


def test_versions_of_figure_1_are_a_second_old_at_most() -> None:
    """With a minimum evaluation interval of 1 s the area jumps from second to second [IV.A]."""
    as_of = AsOf(Scan(), "versioned", SECOND)
    as_of.add("player", parse(WALK).filters())
    at_the_corner = {  # The far corner of the area as it is, and of the version at hand.
        0.0: ((3, 2), True),
        0.9: ((3.9, 2.9), False),
        0.95: ((3, 2), True),
        1.0: ((4, 3), True),
        3.99: ((6, 5), True),
        4.0: ((7, 6), True),
    }
    for time, (corner, found) in at_the_corner.items():
        event = apple(*corner).stamped(round(time * SECOND))
        assert bool(as_of.match(event, {})) is found, time


def test_the_cache_of_figure_2_is_filled_at_1_and_3() -> None:
    """Events come 1, 1.5 and 3 s after subscribing; the threshold is 1 s [IV.C]."""
    as_of = AsOf(Scan(), "cached", SECOND)
    as_of.add("player", parse(WALK).filters())
    made = []
    for time in (1.0, 1.5, 3.0):
        # The far corner of the version that the figure shows at this time.
        version = {1.0: 1, 1.5: 1, 3.0: 3}[time]
        at = round(time * SECOND)
        assert as_of.match(apple(3 + version, 2 + version).stamped(at), {}) == ["player"]
        assert as_of.match(apple(3.1 + version, 2 + version).stamped(at), {}) == []
        made.append(as_of._standing["player"].made)
    assert made == [SECOND, SECOND, 3 * SECOND]


def test_a_producer_takes_less_as_the_warehouse_fills() -> None:
    """Section III.C.2: the lowest price falls with the time since the last sale."""
    clock = dl.ManualClock()
    engine = dl.Engine(clock=clock)
    text = "SELECT * FROM offer WHERE good = 'chair' AND price >= :top - :fall * elapsed()"
    s = engine.subscribe(text, {"top": 100, "fall": 10})
    offer = Event("offer", {"good": "chair", "price": 70})
    assert engine.publish(offer) == 0
    clock.advance(3)
    assert engine.publish(offer) == 1
    s.set(top=100, fall=10, rebase=True)  # Sold: there is room again.
    assert engine.publish(offer) == 0


def test_modes_of_the_system() -> None:
    """Section III.D: everything that matters when critical, a sample in diagnosis, else nothing."""
    engine = dl.Engine()
    engine.subscribe(
        """SELECT * FROM report WHERE env('mode') = 'critical' AND level > 3
           OR env('mode') = 'diagnosis' AND number - 10 * floor(number / 10) = 0"""
    )
    told = {}
    for mode in ("standard", "diagnosis", "critical"):
        engine.set_env("mode", mode)
        told[mode] = sum(
            engine.publish(Event("report", {"number": at, "level": at % 6})) for at in range(60)
        )
    assert told == {"standard": 0, "diagnosis": 6, "critical": 20}


def test_a_broker_under_load_sends_less() -> None:
    """Section III.D: the nearer, the more important; nothing at all when the way out is full."""
    overlay = Overlay()
    for name in ("far", "edge"):
        overlay.broker(name)
    overlay.link("far", "edge", Role.PEER)
    overlay.run()
    text = "SELECT * FROM seen WHERE distance < :most * (:bandwidth - env('broker.outgoing'))"
    party = overlay.party("player", "edge")
    standing = Standing.of(parse(text), {"most": 0.01, "bandwidth": 10_000})
    overlay.ask(party, Subscribe("subscribe", "s", standing))
    overlay.run()
    publisher = overlay.party("publisher", "far")
    far, near = (Event("seen", {"distance": distance}) for distance in (95, 1))
    overlay.run(overlay.now + 3 * SECOND)
    for _ in range(300):
        for event in (far, near):
            overlay.ask(publisher, Publish("publish", event))
    overlay.run()
    told = [one.event.attributes["distance"] for one in party.told]
    # At rest both go through; soon only what is near, and then nothing.
    assert told[:2] == [95, 1]
    assert 0 < told.count(95) < told.count(1) < 300
    assert told[-1] == 1
    overlay.run(overlay.now + 3 * SECOND)
    overlay.ask(publisher, Publish("publish", far))
    overlay.run()
    assert party.told[-1].event.attributes["distance"] == 95


# Consistency [V.D]


def foggy(stamped: bool) -> tuple[Overlay, list[int]]:
    """Two brokers that see the fog differently, and an event from each to a player at the other."""
    overlay = Overlay(settings=Settings(stamped=stamped))
    for name, visibility in (("coast", 0.5), ("hill", 1)):
        overlay.broker(name)
        provider = overlay.party(f"{name}-weather", name)
        overlay.ask(provider, Observed("v", visibility))
    overlay.link("coast", "hill", Role.PEER)
    overlay.run(SECOND)
    told = []
    for here, there in (("coast", "hill"), ("hill", "coast")):
        player = overlay.party(f"{here}-player", here)
        text = "SELECT * FROM pickup WHERE x <= 3 * env('v')"
        overlay.ask(player, Subscribe("s", f"{here}-s", Standing.of(parse(text))))
        overlay.run()
        overlay.ask(overlay.party(f"{there}-p", there), Publish("publish", apple(2, 0)))
        overlay.run()
        told.append(len(player.told))
    return overlay, told


def test_an_event_is_judged_by_what_was_seen_where_it_entered() -> None:
    overlay, told = foggy(stamped=True)
    # From the hill, in clear sight, to the coast: told; from the fog to the hill: not.
    assert told == [1, 0]
    assert overlay.parties["coast-player"].told[0].stamps["v"] == 1


def test_without_stamps_it_must_be_seen_everywhere_on_its_way() -> None:
    _, told = foggy(stamped=False)
    assert told == [0, 0]


def test_a_start_travels_and_clocks_may_differ() -> None:
    """The player's broker counts from its own clock; the event has the time of its entry."""
    overlay = Overlay()
    overlay.broker("home", skew=0)
    overlay.broker("away", skew=2 * SECOND)
    overlay.link("home", "away", Role.PEER)
    overlay.run(SECOND)
    player = overlay.party("player", "home")
    standing = Standing.of(parse(WALK), start_us=overlay.now)
    overlay.ask(player, Subscribe("s", "s", standing))
    overlay.run()
    overlay.ask(overlay.party("p", "away"), Publish("publish", apple(4, 3)))
    overlay.run()
    (told,) = player.told
    assert told.event.entered is not None
    assert standing.matches(told.event, {})
    assert overlay.station("away").broker.links.subscriptions.held("home")
