"""Do the checkers of followers bite? Each fault below is put into the code on purpose.

Most are noticed where one follower is alone behind a link: elsewhere the filters of others bring
what its own does not. Some need a crash, or a table that is none for a while.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from driftline.broker import labels, views
from driftline.broker.labels import Labels
from driftline.broker.links import Links, Role
from driftline.broker.tables import Tables
from driftline.broker.views import Views, _Viewed
from driftline.sim.scenario import Plan, Scenario
from driftline.stateful.news import News
from driftline.stateful.value_based.address import Relabelling
from driftline.stateful.value_based.follower import Follower, RowsFollower
from driftline.stateful.value_based.group import Group, Pairs, Singles
from driftline.stateful.value_based.states import States
from tests.sim import test_followers as directed

RUNS = 60
TROUBLE = "trouble=0.15"
LOST = "crashes=0.02,trouble=0.1,lost=0.5"

Patch = Callable[[pytest.MonkeyPatch], None]
ALONE: dict[str, Patch] = {}
IN_RUNS: dict[str, tuple[Patch, str, str]] = {}


def alone(patch: Patch) -> Patch:
    ALONE[patch.__name__] = patch
    return patch


def in_runs(topology: str, faults: str = "none") -> Callable[[Patch], Patch]:
    def known(patch: Patch) -> Patch:
        IN_RUNS[patch.__name__] = patch, topology, faults
        return patch

    return known


# Places


@alone
def what_is_asked_by_an_older_place_is_not_translated(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Labels, "current", lambda self, one: one)


@alone
def brokers_on_the_way_shift_nothing(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Links, "relabel", lambda self, event, by, held, own: self.tell())


@alone
def brokers_on_the_way_shift_the_wrong_way(patched: pytest.MonkeyPatch) -> None:
    def back(one, event, by):
        wrong = by if by.by is None else by._replace(by=-by.by)
        return right(one, event, wrong)

    right = labels.relabelled
    patched.setattr("driftline.broker.links.relabelled", back)


@alone
def a_follower_does_not_hear_of_its_new_place(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Follower, "_readdress", lambda self, message: None)


@alone
def a_relabelling_is_done_again_by_who_knows_it(patched: pytest.MonkeyPatch) -> None:
    of = Relabelling.of
    patched.setattr(Relabelling, "of", lambda self, asked: of(self, asked._replace(generation=0)))


@alone
def places_stay_when_a_row_is_gone(patched: pytest.MonkeyPatch) -> None:
    of = Relabelling.of
    patched.setattr(
        Relabelling, "of", lambda self, asked: asked if self.by is None else of(self, asked)
    )


@alone
def shifts_are_not_said(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(
        "driftline.stateful.value_based.reformulate.MovedMessages._shifted", lambda *about: []
    )


# Radii


@alone
def a_home_tells_by_the_radius_before(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Singles, "change", lambda self, item, number, move: None)


@alone
def what_is_overdue_by_a_new_radius_is_not_told(patched: pytest.MonkeyPatch) -> None:
    def silent(self: Follower, before: Follower) -> list[News]:
        self.states.succeed(before.states)
        return []

    patched.setattr(Follower, "succeed", silent)


@alone
def a_follower_goes_on_by_the_radius_before(patched: pytest.MonkeyPatch) -> None:
    succeed = States.succeed

    def careless(self: States, before: States) -> None:
        succeed(self, before)
        self._by_key = before._by_key

    patched.setattr(States, "succeed", careless)


@alone
def what_was_said_before_an_answer_is_forgotten(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(views, "_between", lambda waiting, viewed, numbers: [])


@alone
def what_is_in_a_snapshot_counts_again(patched: pytest.MonkeyPatch) -> None:
    fold = Views._fold

    def forgetful(self, id, viewed, message):
        viewed.snapshot = -1
        return fold(self, id, viewed, message)

    patched.setattr(Views, "_fold", forgetful)


@alone
def a_follower_asks_for_its_place_before_it_is_answered(patched: pytest.MonkeyPatch) -> None:
    interest = _Viewed.interest

    def narrow(self):
        asked, self.asked = self.asked, 0
        try:
            return interest(self)
        finally:
            self.asked = asked

    patched.setattr(_Viewed, "interest", narrow)


# Two radii


@alone
def of_two_radii_a_follower_decides_alone(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Follower, "_radius", lambda self, said: self._move.may)


@alone
def what_a_home_believes_to_have_told_is_not_told(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(States, "tell", lambda self, keys, row: None)


@alone
def of_two_radii_a_home_keeps_the_ones_before(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Pairs, "change", lambda self, item, number, move: None)


# Rows that come and go


@alone
def who_is_late_is_told_of_what_was_before(patched: pytest.MonkeyPatch) -> None:
    def careless(self: Group, number, item) -> None:
        late = self._late.get(item, {})
        if late.pop(number, None) is None:
            self.followers.delete(item, number)
        if not late:
            self._late.pop(item, None)

    patched.setattr(Group, "_leave", careless)


@alone
def a_row_that_is_gone_is_not_told(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(States, "leave", lambda self, keys: None)


# In runs


@in_runs("acyclic", TROUBLE)
def a_home_that_forgot_its_followers_does_not_say_so(patched: pytest.MonkeyPatch) -> None:
    restore = Tables.restore

    def silent(self, stored):
        restore(self, stored)
        self.forgot.clear()

    patched.setattr(Tables, "restore", silent)


@in_runs("acyclic", LOST)
def a_table_that_is_one_again_tells_of_no_gap(patched: pytest.MonkeyPatch) -> None:
    unfound = Views.unfound

    def forgetful(self, asked):
        self._views[asked.id].gap = False
        return unfound(self, asked)

    patched.setattr(Views, "unfound", forgetful)


@in_runs("acyclic")
def what_crossed_is_told_by_the_thresholds_before(patched: pytest.MonkeyPatch) -> None:
    def late(self: RowsFollower, before: RowsFollower) -> list[News]:
        self.states = before.states
        return []

    patched.setattr(RowsFollower, "succeed", late)


@in_runs("acyclic")
def a_shared_centre_is_not_told(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Group, "_told", lambda self, number, item, row: row)


def scenarios() -> list[Callable[[], None]]:
    """All that one follower goes through alone."""
    pauses = range(0, 60, 6)
    return [
        lambda: directed.test_who_is_alone_behind_a_link_is_found_at_its_new_place(Role.PEER),
        lambda: directed.test_who_is_alone_behind_a_link_is_found_at_its_new_place(Role.MESH),
        lambda: directed.test_a_value_right_behind_a_relabelling_finds_everybody(60.0),
        lambda: directed.test_a_value_right_behind_a_relabelling_finds_everybody(-60.0),
        directed.test_all_is_told_by_a_smaller_radius_as_soon_as_it_counts,
        directed.test_two_radii_of_one_who_is_alone_move,
        directed.test_of_two_radii_only_those_are_told_whom_the_home_means,
        directed.test_a_row_that_goes_and_comes_again_finds_all_at_their_first_places,
        directed.test_who_is_late_is_not_told_of_a_value_from_before,
        *(lambda at=at: directed.test_values_move_while_somebody_comes(at) for at in pauses),
        *(lambda at=at: directed.test_values_move_while_a_radius_does(at) for at in pauses),
        *(lambda at=at: directed.test_two_radii_that_move(at) for at in pauses),
        *(
            lambda at=at: directed.test_a_radius_that_moves_again_before_it_was_answered(at)
            for at in pauses
        ),
        *(
            lambda at=at: directed.test_places_become_others_while_somebody_comes(at)
            for at in pauses
        ),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ALONE)
def test_a_fault_is_found_where_one_is_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ALONE[name](monkeypatch)
    for scenario in scenarios():
        try:
            scenario()
        except AssertionError:
            return
    pytest.fail(f"nobody has noticed that {name.replace('_', ' ')}")


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_RUNS)
def test_a_fault_is_found_in_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, topology, faults = IN_RUNS[name]
    patch(monkeypatch)
    for seed in range(RUNS):
        try:
            Scenario(Plan(topology, seed, steps=40, brokers=5, faults=faults, tables=True)).run()
        except AssertionError:
            return
    pytest.fail(f"{RUNS} runs have not noticed that {name.replace('_', ' ')}")
