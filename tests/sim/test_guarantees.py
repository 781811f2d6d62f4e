"""Do the checkers of strictness and coverage see what they must, and nothing else?

A party wants x above 2: asked at 10, answered at 20, confirmed at 30. Then it wants x above 5:
asked at 40, answered at 50, confirmed at 60. No broker is asked: it is told what a test says.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from driftline import Event, parse
from driftline.broker.effects import Deliver, Reply
from driftline.model.standing import Standing
from driftline.sim import checkers
from driftline.sim.checkers import Violation
from driftline.sim.overlay import Overlay
from driftline.sim.party import Decided
from driftline.sim.story import Story, Version

ID = "s"
BOTH, ONLY_FIRST = 4, 2
"""After how many requests what it wants is both, or only the first."""


class Run:
    """What a run looks like to the checkers."""

    def __init__(self) -> None:
        self.overlay = Overlay()
        self.overlay.broker("b")
        self.party = self.overlay.party("p", "b")
        self.publisher = self.overlay.party("publisher", "b")
        self.story = Story(first={"b"}, sure={"publisher"}, confirms={"p": [2, 4]})
        self.becomes(2, number=1, asked=10)
        self.becomes(5, number=3, asked=40)
        self.party.done.update({1: 20, 2: 30, 3: 50, 4: 60})

    def becomes(self, low: int | None, number: int, asked: int) -> None:
        text = parse("SELECT * FROM q WHERE x > :low")
        standing = None if low is None else Standing.of(text, {"low": low})
        self.story.becomes(self.party, ID, Version(standing, number, asked))

    def published(self, x: int, at: int) -> Event:
        number = len(self.story.published)
        event = Event("q", {"x": x, "n": number}).stamped(1)
        self.story.published[number] = self.publisher, event, at
        self.publisher.answered[f"publish {number}"] = Reply("publisher", "")
        return event

    def told(self, event: Event, *ids: str, asked: int = BOTH) -> None:
        """The party is told for its id, and lets it through for these."""
        number = 1 + checkers.number_of(event)
        self.party.told.append(Deliver("p", number, (ID,), event, {}, "b", number))
        self.party.decided.append(Decided(ids, asked))


@pytest.fixture
def run() -> Run:
    return Run()


def holds(checker, run: Run) -> bool:
    try:
        checker(run.overlay, run.story)
    except Violation:
        return False
    return True


# What is told


@pytest.mark.parametrize(("at", "right"), [(15, True), (35, True), (50, True), (51, False)])
def test_an_old_value_counts_until_the_new_one_is_known_at_the_broker(run, at, right) -> None:
    run.told(run.published(4, at), ID)
    assert holds(checkers.always, run) is right


@pytest.mark.parametrize(("at", "right"), [(75, True), (85, False)])
def test_what_is_cancelled_counts_until_that_is_known(run, at, right) -> None:
    run.becomes(None, number=5, asked=70)
    run.party.done[5] = 80
    run.told(run.published(9, at), ID)
    assert holds(checkers.always, run) is right


def test_a_new_value_counts_from_when_it_is_asked(run) -> None:
    run.becomes(0, number=5, asked=70)
    run.told(run.published(1, 65), ID)
    assert holds(checkers.always, run)


# Strictness


def test_what_is_let_through_is_wanted_at_that_moment(run) -> None:
    run.told(run.published(4, 35), ID, asked=ONLY_FIRST)
    assert holds(checkers.strict, run)
    run.told(run.published(4, 35), asked=BOTH)
    assert holds(checkers.strict, run)
    run.told(run.published(4, 35), ID, asked=BOTH)
    assert not holds(checkers.strict, run)


def test_nothing_is_let_through_for_what_is_cancelled(run) -> None:
    run.becomes(None, number=5, asked=70)
    run.told(run.published(9, 65), ID, asked=5)
    assert not holds(checkers.strict, run)


# Coverage


@pytest.mark.parametrize(("at", "right"), [(25, True), (30, True), (31, False), (99, False)])
def test_what_is_confirmed_must_be_told(run, at, right) -> None:
    run.published(9, at)
    assert holds(checkers.coverage, run) is right


def test_what_is_told_must_be_let_through_as_well(run) -> None:
    event = run.published(9, 99)
    run.told(event)
    assert not holds(checkers.coverage, run)
    run.party.decided[0] = Decided((ID,), BOTH)
    assert holds(checkers.coverage, run)


def test_what_a_later_value_does_not_want_may_be_missed(run) -> None:
    run.published(4, 35)
    assert holds(checkers.coverage, run)


def test_unless_it_came_through_before_that_was_asked(run) -> None:
    run.published(4, 35)
    run.story.rests.append(38)
    assert not holds(checkers.coverage, run)


def test_what_was_refused_is_not_missed(run) -> None:
    run.published(9, 99)
    run.publisher.answered["publish 0"] = Reply("publisher", "", ValueError())
    assert holds(checkers.coverage, run)


def test_a_party_that_was_told_of_a_gap_may_miss_something(run) -> None:
    run.published(9, 99)
    run.told(run.published(9, 99), ID)
    run.party.told[0] = replace(run.party.told[0], gap=True)
    assert holds(checkers.coverage, run)


def test_where_a_journal_was_lost_only_what_came_after_all_was_well_again_counts(run) -> None:
    run.overlay.lost_journals = 1
    run.story.calm = 80
    run.published(9, 70)
    assert holds(checkers.coverage, run)
    run.published(9, 90)
    assert not holds(checkers.coverage, run)
