"""A crash at every step of joining: is the view right in the end, and was all right that was told?

A table is kept at a, views of it are followed at c, behind b: asked for, moved, and changes come
all the while, from the other side. One broker crashes just before one of its effects, and every
effect has its turn.
"""

from __future__ import annotations

import os

import pytest

from driftline import Event, parse
from driftline.broker.effects import Effect
from driftline.broker.links import Role
from driftline.broker.requests import Advertise, Declare, Delete, Publish, Subscribe
from driftline.broker.settings import Settings
from driftline.model.advertisement import Advertisement
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.sim import checkers
from driftline.sim.faults import MILLISECOND, SECOND
from driftline.sim.overlay import Overlay
from driftline.sim.party import Party
from driftline.sim.texts import rows_of
from driftline.sim.view_checkers import ViewStory

LEAST = parse("SELECT MIN(y) FROM t WHERE x BETWEEN :low AND :high")
TOTAL = parse("SELECT COUNT(*), SUM(y) FROM t WHERE x >= :low")
PAIRS = parse("SELECT t.k, u.w FROM t JOIN u ON t.z = u.z WHERE t.x >= :low")
# One effect of so many has its turn, others in each setting: all of them take minutes.
EVERY = 1 if os.environ.get("DRIFTLINE_PROFILE") == "thorough" else 29
UNHARMED = 1 << 30


class Crashing(Overlay):
    """An overlay of which one broker crashes just before one of its effects."""

    victim = ""
    lost = False
    left = -1
    had = -1

    def _one(self, place, effect: Effect) -> None:
        if place.name == self.victim and self.left >= 0:
            self.left -= 1
            if self.left < 0:
                self.crash(place.name, lost=self.lost, down=30 * MILLISECOND)
                return
        super()._one(place, effect)


class Run:
    """One run; `left` effects of the victim come before its crash."""

    def __init__(self, advertised: bool, victim: str, lost: bool, left: int) -> None:
        overlay = self.overlay = Crashing(left, Settings(advertised=advertised))
        for name in "abcd":
            overlay.broker(name)
        for here, there in ("ab", "bc", "da"):
            overlay.link(here, there, Role.PEER)
        overlay.run()
        self.story = ViewStory.of({"t": "k", "u": "j"})
        self.keeper, self.witness = overlay.party("keeper", "a"), overlay.party("witness", "a")
        self.publisher, self.viewer = overlay.party("publisher", "d"), overlay.party("viewer", "c")
        for name, key in (("t", "k"), ("u", "j")):
            self.keeper.keeps[name] = TableDeclaration.of(name, key)
            overlay.ask(self.keeper, Declare(f"declare {name}", self.keeper.keeps[name]))
            says = self.publisher.offers[name] = Advertisement(name, anything=True)
            overlay.ask(self.publisher, Advertise(name, name, says))
            self.story.witnesses[name] = name
            self.wants(self.witness, name, Standing.of(rows_of(f"SELECT * FROM {name}")))
        overlay.run()
        overlay.victim, overlay.lost, overlay.left = victim, lost, left

    def wants(self, party: Party, id: str, standing: Standing) -> None:
        anew = id not in party.wants
        party.wants[id] = self.story.becomes(id, standing, anew=anew)
        self.overlay.ask(party, Subscribe(f"subscribe {id}", id, party.wants[id]))

    def publishes(self, number: int) -> None:
        """Something changes, and a moment passes."""
        values = {"x": number % 5, "y": (7 * number) % 11, "z": number % 2}
        event = Event("t", {"k": number % 4, **values})
        if number % 5 == 4:
            event = Event("u", {"j": number % 3, "z": number % 2, "w": number})
        self.overlay.ask(self.publisher, Publish("publish", event))
        if number % 6 == 5:
            self.overlay.ask(self.publisher, Delete("delete", "t", number % 4))
        self.overlay.run(self.overlay.now + 10 * MILLISECOND)
        self.look()

    def look(self) -> None:
        """Is what was told until now right?"""
        self.story.read(self.witness)
        self.story.read(self.viewer)

    def run(self) -> None:
        """Ask, move, and change the table meanwhile; then look whether all is right."""
        for number in range(6):
            self.publishes(number)
        self.follow(1)
        for number in range(6, 20):
            self.publishes(number)
        self.follow(3)
        for number in range(20, 40):
            self.publishes(number)
        self.overlay.had, self.overlay.left = self.overlay.left, -1
        self.overlay.run(self.overlay.now + 60 * SECOND)
        self.declare_again()
        self.publishes(40)
        self.overlay.run()
        self.check()

    def follow(self, low: int) -> None:
        self.wants(self.viewer, "least", Standing.of(LEAST, {"low": low, "high": low + 2}))
        self.wants(self.viewer, "total", Standing.of(TOTAL, {"low": low}))
        self.wants(self.viewer, "pairs", Standing.of(PAIRS, {"low": low}))

    def declare_again(self) -> None:
        """What was refused because a broker was away."""
        for name, declaration in self.keeper.keeps.items():
            if self.keeper.answered[f"declare {name}"].refused is not None:
                self.overlay.ask(self.keeper, Declare(f"declare {name}", declaration))
        self.overlay.run()

    def check(self) -> None:
        self.look()
        home = self.overlay.station("a").broker.tables.home
        now = home.life, home.sequence
        contents = {name: tuple(table.items()) for name, table in home.tables.items()}
        for party in (self.witness, self.viewer):
            assert self.overlay.station(party.broker).broker.edge.views.unjoined() == []
            for id in party.wants:
                self.story.rest(party, id, contents, now)
        checkers.quiet(self.overlay)


def effects_of(victim: str, advertised: bool) -> int:
    """How many effects a broker has when nothing happens to it."""
    run = Run(advertised, victim, False, UNHARMED)
    run.run()
    return UNHARMED - run.overlay.had


SETTINGS = [
    (victim, lost, advertised)
    for victim in "abc"
    for lost in (False, True)
    for advertised in (False, True)
]


@pytest.mark.parametrize(("victim", "lost", "advertised"), SETTINGS)
def test_a_crash_at_any_step(victim: str, lost: bool, advertised: bool) -> None:
    first = 5 * SETTINGS.index((victim, lost, advertised)) % EVERY
    effects = effects_of(victim, advertised)
    assert effects > 50
    for left in range(first, effects, EVERY):
        try:
            Run(advertised, victim, lost, left).run()
        except AssertionError as wrong:
            raise AssertionError(f"a crash before effect {left} of {effects}") from wrong
