"""Are followers told what moved and what crossed, while radii and places become others in flight?

Some followers are alone behind a link: nobody else's filter brings what theirs should.
"""

from __future__ import annotations

import pytest

from driftline import Event, parse
from driftline.broker.links import Role
from driftline.broker.requests import Cancel, Declare, Delete, Publish, Subscribe
from driftline.broker.settings import Settings
from driftline.model.standing import Standing
from driftline.model.table import TableDeclaration
from driftline.model.view import View
from driftline.sim import checkers
from driftline.sim.faults import MILLISECOND
from driftline.sim.overlay import Overlay
from driftline.sim.party import Party
from driftline.sim.scenario import Plan, Scenario
from driftline.sim.texts import rows_of
from driftline.sim.topologies import TOPOLOGIES
from driftline.sim.view_checkers import ViewStory
from driftline.stateful.value_based.reformulate import MovedMessages

PINNED = "SELECT k, y FROM t WHERE k = 1 AND moved(y, by => :r)"


class Run:
    """A table at a, behind b a follower at c, and a crowd beside the table."""

    def __init__(self, role: Role = Role.PEER) -> None:
        overlay = self.overlay = Overlay(1, Settings(label_bits=4, many=1))
        for name in "abc":
            overlay.broker(name)
        for here, there in ("ab", "bc"):
            overlay.link(here, there, role)
        overlay.run()
        self.story = ViewStory.of({"t": "k"})
        self.crowd, self.witness = overlay.party("crowd", "a"), overlay.party("witness", "a")
        self.alone = overlay.party("alone", "c")
        self.crowd.keeps["t"] = TableDeclaration.of("t", "k")
        overlay.ask(self.crowd, Declare("declare t", self.crowd.keeps["t"]))
        overlay.run()
        self.story.witnesses["rows"] = "t"
        self._wants(self.witness, "rows", Standing.of(rows_of("SELECT * FROM t")), anew=True)
        overlay.run()

    def _wants(self, party: Party, id: str, standing: Standing, *, anew: bool) -> None:
        party.wants[id] = self.story.becomes(id, standing, anew=anew)
        self.overlay.ask(party, Subscribe(f"subscribe {id}", id, party.wants[id]))

    def follow(self, party: Party, id: str, text: str = PINNED, **params: float) -> None:
        view = View.of_change(parse(text))
        anew = id not in party.wants
        self._wants(party, id, Standing.of(view, params), anew=anew)

    def cancel(self, party: Party, id: str) -> None:
        del party.wants[id]
        self.overlay.ask(party, Cancel(f"cancel {id}", id))

    def put(self, y: float, **rest: int) -> None:
        event = Event("t", {"k": 1, "y": y, **rest})
        self.overlay.ask(self.crowd, Publish("publish", event))

    def remove(self) -> None:
        self.overlay.ask(self.crowd, Delete("delete", "t", 1))

    @property
    def place(self) -> object:
        """Where the home finds the one who is alone."""
        moved = self.overlay.station("a").broker.tables.home._reformulators["$moved:t"]
        assert isinstance(moved, MovedMessages)
        member = moved._members.get("c\nalone")
        return None if member is None else moved._found(member).place

    def crowded(self, first: int, count: int, until: object = None) -> None:
        """Some come, each at a value between those of the two before; until a place is another."""
        low, high = 10.0, 50.0
        for at in range(first, first + count):
            y = (low + high) / 2
            low, high = (low, y) if at % 3 else (y, high)
            if until is not None and self.place != until:
                return
            self.put(y)
            self.follow(self.crowd, f"crowd {at}", r=60)

    def passes(self, milliseconds: int | None = None) -> None:
        """Time passes, or so much that nothing is on its way any more."""
        now = self.overlay.now
        self.overlay.run(None if milliseconds is None else now + milliseconds * MILLISECOND)
        for party in (self.witness, self.crowd, self.alone):
            self.story.read(party)

    def check(self) -> None:
        self.passes()
        home = self.overlay.station("a").broker.tables.home
        contents = {"t": tuple(home.tables["t"].items())}
        for party in (self.witness, self.crowd, self.alone):
            for id in party.wants:
                self.story.rest(party, id, contents, (home.life, home.sequence))
        checkers.quiet(self.overlay)

    def told(self) -> list[tuple[str, object]]:
        """What the one who is alone was told."""
        news = (one for deliver in self.alone.told for one in deliver.news.get("alone", ()))
        return [(one.kind.value, one.values.get("y")) for one in news]

    @property
    def relabelled(self) -> list[int]:
        return [self.overlay.station(name).broker.links.labels.heard for name in "abc"]


@pytest.mark.parametrize("role", [Role.PEER, Role.MASTER, Role.MESH])
def test_who_is_alone_behind_a_link_is_found_at_its_new_place(role: Role) -> None:
    run = Run(role)
    run.crowded(0, 3)
    run.put(30.0)
    run.follow(run.alone, "alone", r=60)
    run.passes()
    for round in range(1, 6):
        run.crowded(8 * round, 8)
        run.check()
    # The one who is alone was concerned, or nobody behind the home would have heard of it.
    at_home, _, far = run.relabelled
    assert at_home >= far > 0
    run.put(-31.0)
    run.passes()
    assert run.told() == [("snapshot", 30.0), ("change", -31.0)]
    run.check()


@pytest.mark.parametrize("way", [60.0, -60.0])
def test_a_value_right_behind_a_relabelling_finds_everybody(way: float) -> None:
    """Of all others some are told and some are not, on one side of the one who is alone."""
    run = Run()
    run.crowded(0, 3)
    run.put(30.0)
    run.follow(run.alone, "alone", r=60)
    run.passes()
    before = run.place
    for round in range(1, 40):
        run.crowded(8 * round, 8, until=before)
    assert run.place != before
    run.put(30.0 + way)
    run.check()
    assert run.told()[-1] == ("change", 30.0 + way)


@pytest.mark.parametrize("pause", range(0, 60, 3))
def test_places_become_others_while_somebody_comes(pause: int) -> None:
    run = Run()
    run.put(30.0)
    run.crowded(0, 3)
    run.follow(run.alone, "alone", r=60)
    run.passes(pause)
    run.crowded(3, 8)
    run.check()
    run.put(500.0)
    run.check()
    assert run.told()[-1] == ("change", 500.0)


@pytest.mark.parametrize("pause", range(0, 60, 3))
def test_a_radius_that_moves_again_before_it_was_answered(pause: int) -> None:
    run = Run()
    run.put(0.0)
    run.follow(run.alone, "alone", r=5)
    run.passes()
    run.put(3.0)
    run.passes()
    run.follow(run.alone, "alone", r=1)
    run.passes(pause)
    run.put(3.5)
    run.follow(run.alone, "alone", r=5)
    run.check()
    for y in (4.2, 4.6, 5.5, 8.5, 9.0, 13.6):
        run.put(y)
        run.check()


@pytest.mark.parametrize("pause", range(0, 90, 6))
def test_values_move_while_somebody_comes(pause: int) -> None:
    run = Run()
    run.put(0.0)
    run.follow(run.alone, "alone", r=5)
    run.passes(pause)
    for y in (100.0, 200.0, 300.0):
        run.put(y)
        run.passes(5)
    run.check()


@pytest.mark.parametrize("pause", range(0, 90, 6))
def test_a_radius_moves_while_somebody_comes(pause: int) -> None:
    run = Run()
    run.put(0.0)
    run.follow(run.alone, "alone", r=5)
    run.passes(pause)
    run.follow(run.alone, "alone", r=1)
    run.check()
    run.put(2.0)
    run.check()
    assert run.told() == [("snapshot", 0.0), ("change", 2.0)]


@pytest.mark.parametrize("pause", range(0, 90, 6))
def test_values_move_while_a_radius_does(pause: int) -> None:
    run = Run()
    run.put(0.0)
    run.follow(run.alone, "alone", r=5)
    run.passes()
    run.follow(run.alone, "alone", r=6)
    run.passes(pause)
    for y in (7.0, 0.5, 8.0, 1.0):
        run.put(y)
    run.check()


def test_all_is_told_by_a_smaller_radius_as_soon_as_it_counts() -> None:
    run = Run()
    run.put(0.0)
    run.follow(run.alone, "alone", r=50)
    run.passes()
    run.follow(run.alone, "alone", r=1)
    for y in range(2, 100, 2):
        run.passes(3)
        run.put(float(y))
    run.check()


def test_two_radii_of_one_who_is_alone_move() -> None:
    text = "SELECT k, y FROM t WHERE moved(y, may => :a, must => :b)"
    run = Run()
    run.put(5.0)
    run.follow(run.alone, "alone", text, a=1, b=2)
    run.passes()
    run.put(6.2)
    run.follow(run.alone, "alone", text, a=1, b=3)
    run.check()
    for y in (3.1, 6.3, 7.5, 9.4):
        run.put(y)
        run.check()


def test_of_two_radii_only_those_are_told_whom_the_home_means() -> None:
    text = "SELECT k, y FROM t WHERE moved(y, may => :a, must => :b)"
    run = Run()
    run.put(5.0)
    run.follow(run.alone, "alone", text, a=1, b=3)
    run.follow(run.crowd, "sooner", text, a=1, b=1.5)
    run.passes()
    run.put(6.2)
    run.follow(run.crowd, "between", text, a=1, b=2)
    run.put(6.6)
    run.passes()
    run.cancel(run.crowd, "sooner")
    run.cancel(run.crowd, "between")
    run.put(3.5)
    run.check()
    run.put(2.0)
    run.check()


@pytest.mark.parametrize("pause", range(0, 60, 6))
def test_two_radii_that_move(pause: int) -> None:
    text = "SELECT k, y FROM t WHERE moved(y, may => :a, must => :b)"
    run = Run()
    run.put(5.0, z=1)
    run.follow(run.alone, "alone", text, a=1, b=2)
    run.follow(run.crowd, "other", text, a=1, b=1.5)
    run.passes()
    run.put(6.2, z=1)
    run.follow(run.alone, "alone", text, a=1, b=3)
    run.passes(pause)
    for y in (6.8, 3.4, 4.1, 6.9, 5.2, 8.3):
        run.put(y, z=1)
        run.check()


def test_a_row_that_goes_and_comes_again_finds_all_at_their_first_places() -> None:
    run = Run()
    run.put(30.0)
    run.crowded(0, 8)
    run.follow(run.alone, "alone", r=60)
    run.passes()
    run.crowded(8, 8)
    run.check()
    run.remove()
    run.check()
    run.put(7.0)
    run.check()
    run.put(99.0)
    run.check()
    assert [kind for kind, _ in run.told()][-3:] == ["leave", "enter", "change"]


def test_who_is_late_is_not_told_of_a_value_from_before() -> None:
    text = "SELECT k, y FROM t WHERE k = 1 AND z = 1 AND moved(y, by => :r)"
    run = Run()
    run.put(10.0, z=1)
    run.follow(run.crowd, "first", text, r=2)
    run.put(11.0, z=0)
    run.follow(run.alone, "alone", text, r=2)
    run.follow(run.crowd, "late", text, r=2)
    run.passes()
    run.cancel(run.crowd, "first")
    run.follow(run.crowd, "last", text, r=2)
    run.follow(run.crowd, "last", text, r=1)
    run.follow(run.alone, "alone", text, r=1)
    run.check()
    run.put(10.5, z=1)
    run.check()
    assert run.told() == [("snapshot", 10.5)]


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("faults", ["none", "random"])
def test_runs_with_followers(topology: str, faults: str) -> None:
    scenario = Scenario(Plan(topology, 41, steps=40, brokers=5, faults=faults, tables=True))
    scenario.run()
    if faults == "none":
        assert scenario.relabelled > 0
