"""Is a network's answer the one that a single broker would give? [EVOLVE V.D, Figure 7]

Players at all brokers of a tree walk about, links take 10 ms, and each broker hears of the
visibility at a time of its own. The answer is that of the definition, for each event with the time
and the visibility at the broker where it entered.

- *stamped*: events carry both, and every broker judges by them.
- *unstamped*: every broker judges by its own clock and what it knows, as in the paper.
- *as of*: the paper's versions besides, up to a second old.
"""

from __future__ import annotations

from random import Random

from driftline.broker.links import Role
from driftline.broker.requests import Observed, Publish, Subscribe
from driftline.broker.settings import Settings
from driftline.language.sql import parse
from driftline.model.event import Event
from driftline.model.standing import Standing
from driftline.model.value import Value
from driftline.sim.faults import MILLISECOND, SECOND, LinkFaults
from driftline.sim.overlay import Overlay

MODES = {
    "stamped, lazy": Settings(evolving="lazy"),
    "stamped, cached": Settings(evolving="cached"),
    "stamped, versioned": Settings(evolving="versioned"),
    "unstamped, lazy": Settings(evolving="lazy", stamped=False),
    "as of, cached": Settings(evolving="cached", as_of=True, stamped=False),
    "as of, versioned": Settings(evolving="versioned", as_of=True, stamped=False),
}
_AREA = parse(
    "SELECT * FROM pickup WHERE x >= (:x - 3 + :dx * elapsed()) * env('v') AND "
    "x <= (:x + 3 + :dx * elapsed()) * env('v')"
)
_WORLD = 20.0
_PLAYERS, _SPEED = 40, 2.0
_STEP = 20 * MILLISECOND
_LATE = 200 * MILLISECOND


def measured(mode: str, events: int) -> dict[str, float]:
    """How many should be told in all, and what share is told besides, or is not."""
    world = _World(MODES[mode])
    for number in range(events):
        world.step(number)
    world.overlay.run()
    told = {
        (int(str(one.event.attributes["n"])), id)
        for party in world.overlay.parties.values()
        for one in party.told
        for id in one.subscriptions
    }
    right = world.right
    return {
        "right": float(len(right)),
        "more_percent": 100 * len(told - right) / len(right),
        "less_percent": 100 * len(right - told) / len(right),
    }


class _World:
    """A centre, three cores, and three edges at each; players at all of them."""

    def __init__(self, settings: Settings) -> None:
        self.overlay = overlay = Overlay(settings=settings)
        self.right: set[tuple[int, str]] = set()
        self._draw = Random(1)
        self._known: dict[str, dict[str, Value]] = {}
        self._news: list[tuple[int, str, float]] = []
        self._players: dict[str, Standing] = {}
        overlay.broker("centre")
        for core in ("a", "b", "c"):
            overlay.broker(core)
            overlay.link("centre", core, Role.PEER)
            for edge in (f"{core}1", f"{core}2", f"{core}3"):
                overlay.broker(edge)
                overlay.link(core, edge, Role.PEER)
        overlay.run()
        overlay.faults = LinkFaults(10 * MILLISECOND, 10 * MILLISECOND)
        for name in overlay.names():
            self._hear(name, 1.0)
        for number in range(_PLAYERS):
            self._join(f"player {number}")
        overlay.run(overlay.now + SECOND)

    def _join(self, name: str) -> None:
        draw = self._draw
        speed = draw.uniform(-_SPEED, _SPEED)
        params = {"x": draw.uniform(-_WORLD, _WORLD), "dx": speed}
        self._players[name] = standing = Standing.of(_AREA, params, self.overlay.now)
        party = self.overlay.party(name, draw.choice(self.overlay.names()))
        self.overlay.ask(party, Subscribe("play", name, standing))

    def _hear(self, broker: str, visibility: float) -> None:
        self._known[broker] = {"v": visibility}
        weather = self.overlay.party(f"weather at {broker}", broker)
        self.overlay.ask(weather, Observed("v", visibility))

    def step(self, number: int) -> None:
        """A little later: perhaps the weather changes, and something is picked up somewhere."""
        draw, overlay = self._draw, self.overlay
        overlay.run(overlay.now + _STEP)
        if number % 50 == 0:
            visibility = draw.choice((0.25, 0.5, 1.0))
            self._news += (
                (overlay.now + draw.randrange(_LATE), name, visibility) for name in overlay.names()
            )
        due = [one for one in self._news if one[0] <= overlay.now]
        self._news = [one for one in self._news if one[0] > overlay.now]
        for _, name, visibility in due:
            self._hear(name, visibility)
        broker = draw.choice(overlay.names())
        event = Event("pickup", {"x": draw.uniform(-_WORLD, _WORLD), "n": number})
        overlay.ask(overlay.party(f"world at {broker}", broker), Publish("publish", event))
        stamped = event.entering(overlay.now)
        self.right |= {
            (number, name)
            for name, standing in self._players.items()
            if standing.matches(stamped, self._known[broker])
        }
