"""Do the matchers answer every case, and every other pair of a case's text and another's event?"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from driftline.matching.columns import Columns
from driftline.matching.lazy import Lazy
from driftline.matching.matcher import Matcher
from driftline.model.event import Event
from tests.conformance.loader import Run, runs
from tests.matching.makers import each_matcher

RUNS = runs()
each_run = pytest.mark.parametrize("run", RUNS, ids=lambda run: f"env {dict(run.env)}")


def filled(make: Callable[[], Matcher], run: Run) -> Lazy:
    made = Lazy(make())
    for record in run.records:
        made.add(record.id, record.standing)
    made._check()
    return made


def told(run: Run, event: Event, step: int = 1) -> list[str]:
    """By the definition: who of every so many is told of the event?"""
    records = run.records[step - 1 :: step]
    return [record.id for record in records if record.standing.matches(event, run.env)]


@each_matcher
@each_run
def test_each_case_is_answered_as_specified(make: Callable[[], Matcher], run: Run) -> None:
    made = filled(make, run)
    wrong = [
        f"{case.id}: wanted {case.expect}"
        for case in run.cases
        if (case.id in made.match(case.event, run.env)) is not case.matches
    ]
    assert not wrong, "\n".join(wrong)


@each_matcher
@each_run
def test_each_event_is_answered_as_defined_alone_and_in_a_batch(
    make: Callable[[], Matcher], run: Run
) -> None:
    made = filled(make, run)
    batch = made.match_batch(Columns.of_events(run.events), run.env)
    for at, event in enumerate(run.events):
        wanted = told(run, event)
        assert made.match(event, run.env) == wanted, event
        assert batch.ids(at) == wanted, event


@each_matcher
@each_run
def test_what_is_discarded_is_told_no_more(make: Callable[[], Matcher], run: Run) -> None:
    made = filled(make, run)
    for case in run.cases[::2]:
        made.discard(case.id)
    made._check()
    for event in run.events:
        assert made.match(event, run.env) == told(run, event, step=2), event
