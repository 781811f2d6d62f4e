"""Do the checkers of tables and views bite? Each fault below is put into the code on purpose.

Each comes with the runs that show it soon: a topology, and what goes wrong in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from driftline.broker import edge, views
from driftline.broker.asking import Asking
from driftline.broker.broker import Broker
from driftline.broker.edge import Edge
from driftline.broker.effects import Reply
from driftline.broker.links import LOCAL, Links
from driftline.broker.resyncs import Resyncs
from driftline.broker.tables import JOIN, Tables
from driftline.broker.views import Views
from driftline.sim.scenario import Plan, Scenario
from driftline.stateful.range_min.fold import Extreme
from tests.sim.test_joining_views import Run

RUNS = 60
CRASHES = "crashes=0.02,trouble=0.1"
LOST = "crashes=0.02,trouble=0.1,lost=0.5"

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Fault:
    patch: Patch
    topology: str
    faults: str
    advertised: bool


@dataclass(frozen=True)
class Crash:
    """To be noticed when one broker crashes while views join: see `test_joining_views`."""

    patch: Patch
    victim: str
    lost: bool
    advertised: bool


FAULTS: dict[str, Fault] = {}
CRASHES_AT: dict[str, Crash] = {}


def fault(
    topology: str, faults: str = "none", *, advertised: bool = False
) -> Callable[[Patch], Patch]:
    def known(patch: Patch) -> Patch:
        FAULTS[patch.__name__] = Fault(patch, topology, faults, advertised)
        return patch

    return known


def crash(victim: str, *, lost: bool = False, advertised: bool = False) -> Callable[[Patch], Patch]:
    def known(patch: Patch) -> Patch:
        CRASHES_AT[patch.__name__] = Crash(patch, victim, lost, advertised)
        return patch

    return known


@fault("acyclic", "slowest=100000")
def a_home_is_asked_before_interest_is_in_effect(patched: pytest.MonkeyPatch) -> None:
    wave = Broker.wave

    def hasty(self, request, within, now, says):
        if says != JOIN:
            return wave(self, request, within, now, says)
        return [*self.links.tell(), Reply(LOCAL, request)]

    patched.setattr(Broker, "wave", hasty)


@fault("hierarchical", CRASHES)
def whether_a_home_can_be_asked_is_known_above_only(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Links, "everybody", Links.listeners)


@fault("acyclic")
def what_a_snapshot_has_in_it_counts_again(patched: pytest.MonkeyPatch) -> None:
    fold = Views._fold

    def forgetful(self, id, viewed, message):
        viewed.snapshot = -1
        return fold(self, id, viewed, message)

    patched.setattr(Views, "_fold", forgetful)


@fault("acyclic")
def of_what_one_change_says_the_first_counts(patched: pytest.MonkeyPatch) -> None:
    fold = Views._fold

    def hasty(self, id, viewed, message):
        news = fold(self, id, viewed, message)
        viewed.snapshot = viewed.sequence
        return news

    patched.setattr(Views, "_fold", hasty)


@fault("acyclic", LOST)
def a_life_of_the_home_is_as_good_as_another(patched: pytest.MonkeyPatch) -> None:
    numbers = views._numbers
    patched.setattr(views, "_numbers", lambda said: (0, numbers(said)[1]))


@fault("acyclic", LOST)
def that_something_is_missing_is_not_passed_on(patched: pytest.MonkeyPatch) -> None:
    resynced = Broker._resynced

    def quiet(self, said, sender):
        resynced(self, said, sender)
        return []

    patched.setattr(Broker, "_resynced", quiet)


@crash("b", lost=True)
def that_something_is_missing_is_said_once(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Resyncs, "again", lambda self, link, role, new: [])


@fault("acyclic", LOST)
def that_something_is_missing_is_of_no_interest(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Views, "again", lambda self, table: None)


@crash("b", lost=True)
def who_forgot_everything_does_not_say_so(patched: pytest.MonkeyPatch) -> None:
    begin = Broker.begin

    def silent(self, now):
        self._forgetful = False
        return begin(self, now)

    patched.setattr(Broker, "begin", silent)


@fault("acyclic")
def rows_are_not_stored(patched: pytest.MonkeyPatch) -> None:
    _without(patched, "row")


@fault("acyclic")
def the_number_of_changes_is_not_stored(patched: pytest.MonkeyPatch) -> None:
    _without(patched, "sequence")


@fault("acyclic")
def what_is_made_of_changes_is_not_stored(patched: pytest.MonkeyPatch) -> None:
    _without(patched, "listens")


@fault("acyclic", LOST)
def what_is_missing_is_not_stored(patched: pytest.MonkeyPatch) -> None:
    _without(patched, "resync")


def _without(patched: pytest.MonkeyPatch, kind: str) -> None:
    out = Broker._out

    def forgetful(self, effects):
        for key in [key for key in self._puts if key[0] == kind]:
            del self._puts[key]
        return out(self, effects)

    patched.setattr(Broker, "_out", forgetful)


@fault("acyclic")
def a_second_claim_is_accepted(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Asking, "has", lambda self, table, asker: False)


@crash("c", advertised=True)
def a_home_answers_before_what_it_offers_is_known(patched: pytest.MonkeyPatch) -> None:
    hear = Tables.hear
    patched.setattr(Tables, "hear", lambda self, *said, later: hear(self, *said, later=False))


@fault("acyclic", "slowest=100000", advertised=True)
def only_the_first_who_asks_a_home_must_ask_again(patched: pytest.MonkeyPatch) -> None:
    hear = Tables.hear

    def hasty(self, event, env, now, later):
        before = set(self._since)
        messages = hear(self, event, env, now, later)
        if later and self._since.keys() == before:
            return hear(self, event, env, now, False)
        return messages

    patched.setattr(Tables, "hear", hasty)


@fault("acyclic", advertised=True)
def what_is_followed_at_home_is_not_offered(patched: pytest.MonkeyPatch) -> None:
    keep = Asking.keep
    patched.setattr(Asking, "keep", lambda self, names: keep(self, names) if names else None)


@fault("centralised")
def a_value_that_must_be_asked_for_is_not(patched: pytest.MonkeyPatch) -> None:
    take = Extreme.take

    def content(self, message):
        news = take(self, message)
        self.stale = False
        return news

    patched.setattr(Extreme, "take", content)


@fault("centralised")
def messages_for_views_are_told_as_events(patched: pytest.MonkeyPatch) -> None:
    fold = Edge._fold

    def to_all(self, event, env, at, found):
        fold(self, event, env, at, found)
        for id in self._plain.match(event, env, at):
            if id not in self.views:
                found.setdefault(self._owner[id], edge._Found()).ids.append(id)

    patched.setattr(Edge, "_fold", to_all)


@fault("acyclic")
def a_moved_view_hears_what_it_heard_before(patched: pytest.MonkeyPatch) -> None:
    move = Edge.move

    def half(self, id, standing, **how):
        if id not in self.views:
            return move(self, id, standing, **how)
        self._put(("sub", id), (self._owner[id], standing))
        self._standing[id] = standing
        return self.views.move(id, standing, **how)

    patched.setattr(Edge, "move", half)


@fault("acyclic")
def a_moved_view_does_not_join_anew(patched: pytest.MonkeyPatch) -> None:
    move = Views.move

    def hasty(self, id, standing, **how):
        joined = not self._views[id].asked
        interest = move(self, id, standing, **how)
        if joined:
            self._views[id].asked = 0
            self.due.pop(id, None)
        return interest

    patched.setattr(Views, "move", hasty)


@fault("centralised")
def what_was_forgotten_of_a_view_is_not_told_anew(patched: pytest.MonkeyPatch) -> None:
    resume = Edge.resume

    def careless(self, name):
        lost, self.views.lost = self.views.lost, lambda ids: None
        try:
            return resume(self, name)
        finally:
            self.views.lost = lost

    class Loose(Views):
        """Whose methods can be replaced."""

    patched.setattr("driftline.broker.edge.Views", Loose)
    patched.setattr(Edge, "resume", careless)


@fault("acyclic", CRASHES)
def an_edge_that_comes_back_tells_of_no_gap(patched: pytest.MonkeyPatch) -> None:
    subscribe = Edge.subscribe

    def quiet(self, *asked, gap=False, **how):
        subscribe(self, *asked, **how)

    patched.setattr(Edge, "subscribe", quiet)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_what_views_ride_on_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = FAULTS[name]
    known.patch(monkeypatch)
    for seed in range(RUNS):
        plan = Plan(
            known.topology,
            seed,
            steps=40,
            brokers=5,
            faults=known.faults,
            advertised=known.advertised,
            tables=True,
        )
        try:
            Scenario(plan).run()
        except AssertionError:  # A checker's, not an accident of the fault itself.
            return
    pytest.fail(f"{RUNS} runs have not noticed that {name.replace('_', ' ')}")


@pytest.mark.parametrize("name", CRASHES_AT)
def test_a_fault_is_found_where_a_broker_crashes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = CRASHES_AT[name]
    known.patch(monkeypatch)
    for left in range(66, 300, 11):
        try:
            Run(known.advertised, known.victim, known.lost, left).run()
        except AssertionError:
            return
    pytest.fail(f"no crash has shown that {name.replace('_', ' ')}")
