"""Do the matchers answer every case, and every other pair of a case's text and another's event?"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from driftline.matching.hashed import Hashed
from driftline.matching.matcher import Matcher
from driftline.matching.scan import Scan
from tests.conformance.loader import Run, runs

RUNS = runs()
each_matcher = pytest.mark.parametrize("matcher", [Scan, Hashed])
each_run = pytest.mark.parametrize("run", RUNS, ids=lambda run: f"env {dict(run.env)}")


def filled(matcher: Callable[[], Matcher], run: Run) -> Matcher:
    made = matcher()
    for record in run.records:
        made.add(record.id, record.standing)
    made._check()
    return made


@each_matcher
@each_run
def test_each_case_is_answered_as_specified(matcher: Callable[[], Matcher], run: Run) -> None:
    made = filled(matcher, run)
    wrong = [
        f"{case.id}: wanted {case.expect}"
        for case in run.cases
        if (case.id in made.match(case.event, run.env)) is not case.matches
    ]
    assert not wrong, "\n".join(wrong)


@each_run
def test_hashed_answers_each_event_as_scan_does(run: Run) -> None:
    scan, hashed = filled(Scan, run), filled(Hashed, run)
    for event in run.events:
        assert hashed.match(event, run.env) == scan.match(event, run.env), event


@each_run
def test_what_is_discarded_is_told_no_more(run: Run) -> None:
    hashed = filled(Hashed, run)
    for case in run.cases[::2]:
        hashed.discard(case.id)
        hashed._check()
    scan = Scan()
    for record in run.records[1::2]:
        scan.add(record.id, record.standing)
    for event in run.events:
        assert hashed.match(event, run.env) == scan.match(event, run.env), event
